"""What is checked of messages, requests and states wherever they are met; each check says what broke it."""

from collections.abc import Iterable, Sequence
from typing import Any

from player import Player, Says

from treadle import Event
from treadle.kernel.calls import CallRecord
from treadle.kernel.messages import (
    AssistantMessage,
    Message,
    Opaque,
    SystemMessage,
    Text,
    Thinking,
    ToolMessage,
)
from treadle.kernel.state import RunState
from treadle.kernel.step import Step


def valid(messages: Sequence[Message], *, apart: bool = True) -> None:
    """The strictest provider would take these messages; ids of calls may come again if they need not be `apart`."""
    i = 0
    seen: set[str] = set()
    while i < len(messages):
        message = messages[i]
        assert not isinstance(message, SystemMessage) or i == 0, f"a system message at {i}: {messages}"
        assert not isinstance(message, ToolMessage), f"a result at {i} that answers nothing: {messages}"
        i += 1
        if isinstance(message, AssistantMessage):
            says_something = any(
                isinstance(part, (Thinking, Opaque)) or (isinstance(part, Text) and part.text.strip())
                for part in message.content
            )
            assert says_something or message.calls, f"an assistant message that says nothing: {messages}"
            ids = [call.id for call in message.calls]
            assert all(ids), f"a call without an id: {messages}"
            assert len(seen.union(ids)) == len(seen) + len(ids), f"calls with the same id: {messages}"
            seen.update(ids if apart else ())
            for call in message.calls:
                assert i < len(messages), f"call {call.id} has no result: {messages}"
                result = messages[i]
                assert isinstance(result, ToolMessage), f"call {call.id} is not answered at once: {messages}"
                assert (result.call_id, result.name) == (call.id, call.name), f"results out of order: {messages}"
                i += 1


def requests_valid(player: Player) -> None:
    """Every request that was sent was valid, is unchanged since, and says something."""
    for request, sent in zip(player.requests, player.sent, strict=True):
        assert list(request.messages) == sent
        valid(sent)
        assert any(not isinstance(message, SystemMessage) for message in sent), "a request without messages"
        # Only a reply that is to be gone on with at once may be its end.
        paused = any(isinstance(turn, Says) and turn.finish == "pause" for turn in player.script)
        assert paused or not isinstance(sent[-1], AssistantMessage), f"nothing to answer: {sent[-1]}"


def same(one: RunState, other: RunState) -> bool:
    """Equal, field by field; says which field differs."""
    for name in one.__struct_fields__:
        mine, others = getattr(one, name), getattr(other, name)
        assert mine == others, f"{name}: {mine!r} is not {others!r}"
    return True


def shape(steps: Iterable[Step]) -> list[Any]:
    """What a redacted text changes nothing of: which calls there were, what was made for them, and when."""
    return [
        (one.number, one.failures, one.usage, one.cost, one.handed_in, [_of_call(record) for record in one.calls])
        for one in steps
    ]


def _of_call(record: CallRecord) -> tuple[Any, ...]:
    doing = (record.id, record.name, record.doing.name, [call.name for call in record.ran])
    made = (record.status, record.made, record.other, record.began_as, record.corrected, record.asked, record.in_doubt)
    ended = None if record.result is None else (record.result.call_id, record.result.is_error)
    return (*doing, *made, ended, record.executed, record.final, record.started_at, record.ended_at, record.seconds)


def shape_of(state: RunState) -> dict[str, Any]:
    """Likewise of a whole run; of what is under way, too."""
    same = ("phase", "limits", "open_calls", "refused", "handed_on", "accounts", "events", "taken_up", "paused_from")
    early = [_of_call(record) for record in state.early]
    steps = shape([*state.steps, *([] if state.step is None else [state.step])])
    return {name: getattr(state, name) for name in same} | {"early": early, "steps": steps}


def events_of(journal: Any, run_id: str) -> list[Event]:
    """What a MemoryJournal holds of a run, without an event loop; nothing if the run is unknown to it."""
    return list(journal._runs.get(run_id, []))
