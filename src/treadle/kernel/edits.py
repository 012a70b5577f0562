"""What `ContextEdited` does to a run's state, and what reported tokens teach about estimates. `fold.py` calls it."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from treadle.kernel.context import completed, have_distinct_ids
from treadle.kernel.events import ContextEdited, ModelReplied
from treadle.kernel.log import Log
from treadle.kernel.messages import AssistantMessage, Message, SystemMessage, ToolMessage
from treadle.kernel.money import total
from treadle.kernel.state import RunState
from treadle.kernel.stubs import is_stub, reference
from treadle.kernel.tokens import Ratio, estimate_tokens


def edited(state: RunState, event: ContextEdited) -> RunState:
    """The state with the messages as `event` says.

    Nobody has counted a request of them, so that what is known of its size is what was known when the run began.

    Raises:
        ValueError: the edit does not fit the messages, or would leave them invalid.
    """
    prepared = state.prepared
    chosen = None if prepared is None else prepared.messages
    before: Sequence[Message] = state.messages if chosen is None else chosen
    note = 1 if prepared is not None and chosen is None and prepared.note else 0
    after = _spliced(before, event, len(before) - note)
    changes: dict[str, Any] = {"messages": Log(after), "known_tokens": state.tool_tokens, "known_messages": 0}
    if prepared is not None and chosen is not None:
        changes = {"prepared": replace(prepared, messages=tuple(after))}
    return replace(
        state,
        **changes,
        reported=False,
        shelf=_shelved(state, before, event),
        failure=None,
        usage=state.usage if event.usage is None else state.usage + event.usage,
        cost=total(state.cost, event.cost),
        now=event.at,
        events=state.events + 1,
    )


def _spliced(messages: Sequence[Message], event: ContextEdited, end: int) -> list[Message]:
    """The messages after the edit, which may touch those before index `end`."""
    start, stop = event.start, event.stop
    if not 0 <= start <= stop <= end:
        raise ValueError(f"it replaces messages {start} to {stop}, but only those up to {end} may be replaced")
    if any(isinstance(message, SystemMessage) for message in (*messages[start:stop], *event.messages)):
        raise ValueError("it touches the system message, which stays")
    after = [*messages[:start], *event.messages, *messages[stop:]]
    if not after:
        raise ValueError("it leaves no message")
    first, last = max(0, start - 1), start + len(event.messages)
    while first > 0 and isinstance(after[first], ToolMessage):
        first -= 1
    while last < len(after) and isinstance(after[last], ToolMessage):
        last += 1
    around = after[first:last]
    sound = all(have_distinct_ids(one.calls) for one in around if isinstance(one, AssistantMessage) and one.calls)
    if not sound or completed(around) != around:
        raise ValueError("it parts a tool call from its result, or leaves a message that says nothing")
    return after


def _shelved(state: RunState, before: Sequence[Message], event: ContextEdited) -> dict[str, ToolMessage]:
    """The shelf with the results that something shorter was put in the place of; a stub is on it already."""
    left = {(one.call_id, one.text): one for one in event.messages if isinstance(one, ToolMessage)}
    ids = {call_id for call_id, _ in left}
    taken = {
        reference(one): one
        for one in before[event.start : event.stop]
        if isinstance(one, ToolMessage)
        and one.call_id in ids
        and (one.call_id, one.text) not in left
        and not is_stub(one)
    }
    return {**state.shelf, **taken} if taken else state.shelf


def learnt(state: RunState, event: ModelReplied) -> dict[str, Ratio]:
    """The ratios, with what the provider reported for the messages that are new since the last report.

    The first request teaches nothing: providers add hundreds of tokens of their own for tools, whatever the text is.
    Nor does one after a reply with hidden reasoning, which is counted in the reply and not in the request.
    """
    if not state.reported:
        return state.ratios
    estimated = 0
    for message in state.messages.since(state.known_messages):
        estimated += estimate_tokens(message)
    new = event.usage.input_tokens - state.known_tokens
    if new <= 0 or not estimated:
        return state.ratios
    return {**state.ratios, event.model: state.ratios.get(event.model, Ratio()).learnt(new, estimated)}
