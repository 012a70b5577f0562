"""Calls: what tools are asked to do in a run, and since when; out of these the spans of tools are made."""

from typing import Final

from msgspec import Struct

from treadle.kernel.events import ApprovalDecided, ToolReacted, ToolStarted
from treadle.kernel.messages import ToolCall

LONGEST: Final = 256
"""Characters of a name that others gave, such as the id of a call."""


class Underway(Struct):
    """A call that was started and has not ended.

    Attributes:
        at: when it was started, in seconds since 1970.
        step: the step that it is of.
        span: by what the id of its span is made: the call, or the event's number where it was started before.
    """

    at: float
    step: int
    span: int | str


class Calls:
    """The calls of tools of a run, by the ids that the model gave them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._arguments: dict[str, str] = {}
        self._seen: set[str] = set()
        self.open: dict[str, Underway] = {}

    def asked(self, calls: tuple[ToolCall, ...]) -> None:
        """A model asks for them."""
        for call in calls:
            self._names[call.id], self._arguments[call.id] = call.name, call.arguments

    def changed(self, event: ToolReacted | ApprovalDecided) -> None:
        """A call is to be made otherwise from here on, or another in its place."""
        match event:
            case ToolReacted(call=call) if call is not None:
                self._names[event.call_id], self._arguments[event.call_id] = call.name, call.arguments
            case ToolReacted(arguments=str(given)) | ApprovalDecided(arguments=str(given)):
                self._arguments[event.call_id] = given

    def started(self, seq: int, event: ToolStarted) -> None:
        """Event number `seq` starts one, perhaps again."""
        call = f"{event.step}.{event.call_id}"
        again = call in self._seen
        self._seen.add(call)
        if event.name:
            self._names[event.call_id], self._arguments[event.call_id] = event.name, event.arguments
        self.open[event.call_id] = Underway(event.at, event.step, seq if again else call)

    def name(self, call_id: str) -> str:
        """The name of the tool; empty where nobody said it."""
        return self._names.get(call_id, "")

    def arguments(self, call_id: str) -> str:
        """What it is given, as JSON."""
        return self._arguments.get(call_id, "")
