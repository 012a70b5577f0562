"""History: a run's messages as a model without tools is sent them.

Assistant messages have their calls written out in the format, and the results of one reply become one user message.
What a message is rendered to depends on it and its neighbours in the history alone, so it is the same bytes in every
step; and it is the same object, so that a model which keeps what it encoded need not encode it again. Pure but for what
is kept. Neighbours: the formats; `treadle.models.codec` keeps histories likewise.
"""

from collections.abc import Sequence
from itertools import islice
from operator import is_
from threading import Lock
from typing import Final, NamedTuple

import msgspec

from treadle.kernel.messages import (
    AssistantMessage,
    AssistantPart,
    Content,
    Json,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from treadle.models.invalid_call import attempt_of
from treadle.models.text_tools.pieces import THOUGHT, Format

_MOST_RUNS: Final = 64
NOTHING: Final = "(no content)"
"""What stands for a reply without a word: hosts refuse an empty message, and templates two of the user's in a row."""


class _Trail(NamedTuple):
    """What was rendered: the messages, and what the first `settled` of them became."""

    messages: list[Message]
    settled: int
    rendered: list[Message]


class History:
    """Renders histories in one format.

    It may be used from several threads: what is kept of a run is taken out while it is worked on.
    """

    def __init__(self, form: Format) -> None:
        self._form = form
        self._trails: dict[str, _Trail] = {}
        self._lock = Lock()

    def render(self, run_id: str, messages: Sequence[Message]) -> list[Message]:
        """`messages`, without a tool message or a tool call in them."""
        with self._lock:
            trail = self._trails.pop(run_id, None)
        items = list(messages)
        start, out = 0, list[Message]()
        if trail is not None and _begins(items, trail.messages[: trail.settled]):
            start, out = trail.settled, trail.rendered
        settled, group = start, list[Message]()
        last = next((item for item in reversed(items[:start]) if isinstance(item, AssistantMessage)), None)
        done = list(out)
        for place, item in enumerate(islice(items, start, None), start):
            if group and not _joins(group, item):
                done += self._group(group, last)
                last = next((one for one in group if isinstance(one, AssistantMessage)), last)
                settled, group = place, []
            group.append(item)
        # The last group may still grow.
        kept = _Trail(items, settled, done)
        with self._lock:
            self._trails[run_id] = kept
            while len(self._trails) > _MOST_RUNS:
                del self._trails[next(iter(self._trails))]
        return [*done, *self._group(group, last)] if group else list(done)

    def _group(self, group: list[Message], last: AssistantMessage | None) -> list[Message]:
        first = group[0]
        if isinstance(first, AssistantMessage):
            return [self._said(first)]
        if isinstance(first, ToolMessage):
            return [self._answered(group, last)]
        return list(group)

    def _said(self, message: AssistantMessage) -> Message:
        """An assistant message with its calls as text, and all its text in one part."""
        kept: list[AssistantPart] = []
        thoughts: list[str] = []
        texts: list[str] = []
        calls: list[str] = []
        for part in message.content:
            if isinstance(part, Text):
                texts.append(part.text)
            elif isinstance(part, ToolCall):
                calls.append(self._call(part))
            elif isinstance(part, Thinking) and part.id == THOUGHT:
                thoughts.append(part.text)
            else:
                kept.append(part)
        text = self._form.said("\n".join(thoughts), "".join(texts), [call for call in calls if call])
        if not text and (calls or not kept):
            text = NOTHING
        return AssistantMessage((*kept, Text(text)) if text else tuple(kept))

    def _call(self, call: ToolCall) -> str:
        attempt = attempt_of(call)
        return self._form.call(call.name, call.arguments or "{}") if attempt is None else attempt.text

    def _answered(self, group: list[Message], last: AssistantMessage | None) -> Message:
        """The results of one reply, and what was said right after them, as one user message."""
        faults = {call.id: one.fault for call in last.calls if (one := attempt_of(call))} if last else {}
        results = [item for item in group if isinstance(item, ToolMessage)]
        parts: list[Content] = []
        for number, item in enumerate(results, 1):
            fault = faults.get(item.call_id)
            # The driver says it as JSON; the words alone are plainer.
            text = f"Error: {fault}" if fault is not None and _says(item, fault) else item.text
            name = item.name if fault is None else "the last reply"
            parts.append(Text(self._form.result(name, number, len(results), text)))
            if isinstance(item.content, tuple):
                parts += [part for part in item.content if not isinstance(part, Text)]
        for said in group[len(results) :]:
            if isinstance(said, UserMessage):
                parts += [Text(said.content)] if isinstance(said.content, str) else said.content
        texts = [part.text for part in parts if isinstance(part, Text)]
        return UserMessage("\n\n".join(texts) if len(texts) == len(parts) else tuple(parts))


def _says(result: ToolMessage, fault: str) -> bool:
    """Whether a result is the driver's word of the fault, and not what a hook, a person or a policy made of it."""
    try:
        said = msgspec.json.decode(result.text, type=Json)
    except (ValueError, RecursionError):
        return False
    return result.is_error and said == {"error": True, "message": fault, "executed": False}


def _begins(items: list[Message], earlier: list[Message]) -> bool:
    return len(earlier) <= len(items) and all(map(is_, items, earlier))


def _joins(group: list[Message], item: Message) -> bool:
    """Whether `item` goes into one message with `group`: results do with each other, and with what is said after them.

    Two user messages in a row are refused by the templates of many local models.
    """
    if not isinstance(group[0], ToolMessage):
        return False
    return isinstance(item, UserMessage) or (isinstance(item, ToolMessage) and isinstance(group[-1], ToolMessage))
