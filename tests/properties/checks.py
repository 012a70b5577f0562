"""What is checked of messages, requests and states wherever they are met; each check says what broke it."""

from collections.abc import Sequence
from typing import Any

from player import Player, Says

from treadle import Event
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


def valid(messages: Sequence[Message]) -> None:
    """The strictest provider would take these messages."""
    i = 0
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
            assert len(set(ids)) == len(ids), f"calls with the same id: {messages}"
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


def events_of(journal: Any, run_id: str) -> list[Event]:
    """What a MemoryJournal holds of a run, without an event loop; nothing if the run is unknown to it."""
    return list(journal._runs.get(run_id, []))
