"""The tool calls of a step: what became of each, and all of them as an immutable sequence.

A reply may hold thousands of calls, and each has several events. Copying all of them for each would make a batch dearer
the larger it is; so `Calls` keeps them in blocks, and a change copies one block and the list of blocks.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import chain
from math import isfinite
from operator import attrgetter
from typing import Any, ClassVar, Literal, overload

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel.accounts import NOTHING_SPENT, Spent
from treadle.kernel.log import Unchanging
from treadle.kernel.messages import ToolCall, ToolMessage

CallStatus = Literal[
    "asked", "started", "interrupted", "needs_approval", "approved", "awaited", "returned", "done", "refused"
]
"""Where a call stands: asked for; handed to its tool; in flight when a process died; waiting for a person's decision;
decided and to be run; waiting for a result from outside; back, and the application has yet to say what becomes of its
result; answered; answered, but not allowed."""


class Awaited(Struct, frozen=True, gc=False, omit_defaults=True):
    """A call of a sub-run that waits for someone: its id there, the tool, the JSON of its arguments, what for.

    `question` is what the person is asked, `found` the result that they are asked about, `asked` how often somebody has
    been asked about it, this time included, and `run_id` the run that made it, where that is not the sub-run itself."""

    call_id: str
    name: str
    arguments: str
    kind: Literal["approval", "interrupted", "result"]
    question: str = ""
    found: str = ""
    asked: int = 1
    run_id: str = ""


def part(path: str) -> Any:
    """What a part of a struct says, by a name of the struct's own: a property, read in C."""
    return property(attrgetter(path))


class CallRecord(Struct, frozen=True, gc=False, omit_defaults=True):
    """A tool call and what became of it.

    Attributes:
        call: the call as the model made it.
        status: where it stands.
        result: what the model was shown; None until the call is answered.
        app: what the tool gave the application.
        edited: the JSON text of the arguments that a person, or the application, put in place of the model's.
        corrected: whether it was a person, who put others there than the model wrote.
        stand_in: what is called in its place, or again, because the application's reaction said so.
        made: how many calls were made for it: 1, and one for each reaction that called again.
        other: how many of them were other calls than the one before, so that they have a key of their own.
        foreign: whether the last is such a one, as recorded: with secrets taken out it may read like the model's own.
        ran: the calls that were run for it before a reaction called again.
        found: the last result that came back, where the application has yet to say what the model is shown.
        final: whether its result is the run's answer.
        wait: for a call of a tool without a function: whether the run pauses for its result.
        run_id: the sub-run that works on it, if one does and waits for someone; `waits` is for what.
        question: what the person who decides or answers is asked.
        asked: how often somebody was asked: an answer is to one question; `leave`: which of those `made` was allowed.
        again: what its tool is given back with the `answer` (JSON text), where it asked in the middle of the call.
        spent: what a sub-run has taken for it, as far as it stands in the accounts.
        began_as: the id under which it began early, while its reply was still arriving; empty if it did not.
        stale: of one that began early: whether something was said to the run before the reply came that makes it.
        executed: whether it was handed to a tool, which may have had no thread, or to whoever answers from outside.
        in_doubt: whether it was in flight when a process died, so that nobody knows what it did.
        writes: whether its tool said, when it was handed to it, that it may change something.
        started_at: Unix seconds at which it was handed to its tool; `ended_at`, at which it was answered; 0 until then.
        seconds: that its tool, or the run below, worked on it, waits and what was cut off left out; None if never.
    """

    call: ToolCall
    status: CallStatus = "asked"
    result: ToolMessage | None = None
    app: Any = None
    edited: str | None = None
    corrected: bool = False
    stand_in: ToolCall | None = None
    made: int = 1
    other: int = 0
    foreign: bool = False
    ran: tuple[ToolCall, ...] = ()
    found: ToolMessage | None = None
    final: bool = False
    wait: bool = False
    run_id: str = ""
    waits: tuple[Awaited, ...] = ()
    question: str = ""
    asked: int = 0
    leave: int = 0
    again: str = ""
    answer: str | None = None
    spent: Spent = NOTHING_SPENT
    began_as: str = ""
    stale: bool = False
    executed: bool = False
    in_doubt: bool = False
    writes: bool = False
    started_at: float = 0.0
    ended_at: float = 0.0
    seconds: float | None = None

    id: ClassVar[str] = part("call.id")
    """The call's id."""
    name: ClassVar[str] = part("call.name")
    """The tool's name."""

    @property
    def arguments_json(self) -> str:
        """The JSON text of the arguments that count: the edited ones, else the model's."""
        return self.call.arguments if self.edited is None else self.edited

    @property
    def arguments(self) -> Any:
        """The arguments as data, as `parsed` gives them."""
        return parsed(self.arguments_json)

    @property
    def doing(self) -> ToolCall:
        """What is to be run, or is being run, for it."""
        if self.stand_in is not None:
            return self.stand_in
        return self.call if self.edited is None else replace(self.call, arguments=self.edited)

    @property
    def does_its_own(self) -> bool:
        """Whether that is the model's own call, or that again, and no other in its place."""
        own = self.stand_in is None or same_call(self.stand_in, replace(self.call, arguments=self.arguments_json))
        return own and not self.foreign

    @property
    def calls_run(self) -> tuple[ToolCall, ...]:
        """The calls that were run for it so far."""
        return (*self.ran, self.doing) if self.executed else self.ran

    @property
    def is_error(self) -> bool:
        """Whether the model was shown an error."""
        return self.result is not None and self.result.is_error

    def answered(
        self, content: Any, is_error: bool, *, at: float, app: Any = None, below: bool = False
    ) -> "CallRecord":
        """The same call with its one result."""
        result = ToolMessage(self.call.id, self.call.name, content, is_error, below=below)
        seconds = self.worked_on(at)
        return replace(self, status="done", result=result, app=app, in_doubt=False, ended_at=at, seconds=seconds)

    def worked_on(self, at: float) -> float | None:
        """The `seconds` of it by then, where it is under way with what has passed since it was started."""
        return (self.seconds or 0.0) + max(0.0, at - self.started_at) if self.status == "started" else self.seconds

    def settled(self, at: float) -> "CallRecord":
        """The same call with the result that was found as its one result: that of the last one which was run."""
        own = self.executed or not self.ran
        ran, last = (self.ran, self.stand_in) if own else (self.ran[:-1], self.ran[-1])
        executed = self.executed or bool(self.ran)
        return replace(self, status="done", result=self.found, ran=ran, stand_in=last, executed=executed, ended_at=at)


def parsed(arguments: str) -> Any:
    """Arguments as data, a number that no float holds as a `Decimal`; the text itself where it is not JSON."""
    return _decoded(_WITH_DECIMALS, arguments)


def alike(arguments: str, other: str) -> bool:
    """Whether two calls of a tool have the same arguments, however they are written."""
    if arguments == other:
        return True
    left = [(parsed(arguments), parsed(other))]
    if left[0][0] != left[0][1]:
        return False
    for one, same in left:
        # To Python they are numbers.
        if isinstance(one, bool) is not isinstance(same, bool):
            return False
        if isinstance(one, dict):
            left += [(value, same[name]) for name, value in one.items()]
        elif isinstance(one, list):
            left += zip(one, same, strict=True)
    return True


def same_call(one: ToolCall, other: ToolCall) -> bool:
    """Whether both ask for the same: the same tool with the same arguments, whatever their ids."""
    return one.name == other.name and alike(one.arguments, other.arguments)


def plain(arguments: str) -> Any:
    """Likewise, of the types that a journal can give back: a number that no float holds is the text of it."""
    return _decoded(_WITH_TEXT, arguments)


def _decoded(decoder: msgspec.json.Decoder[Any], arguments: str) -> Any:
    try:
        return decoder.decode(arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        return arguments


def exact(text: str) -> float | Decimal:
    """A number of JSON: a float, or a `Decimal` where no float holds it."""
    if str(number := float(text)) == text:
        return number
    try:
        held = Decimal(text)
    except InvalidOperation:
        # Farther from 1 than a `Decimal` can say.
        if not isfinite(number):
            raise ValueError("Number out of range") from None
        return number
    return number if held == Decimal(str(number)) else held


def _exact_text(text: str) -> float | str:
    return text if isinstance(found := exact(text), Decimal) else found


_WITH_DECIMALS = msgspec.json.Decoder(float_hook=exact)
_WITH_TEXT = msgspec.json.Decoder(float_hook=_exact_text)
UNKNOWN = "its outcome is unknown: it may or may not have taken effect."
"""How the model is told of a call of which nobody knows what it did; a note about one ends so too."""


def told(message: str, executed: bool | str = False) -> str:
    """What the model is shown of a call that has no result of its own, and whether it was executed."""
    return msgspec.json.encode({"error": True, "message": message, "executed": executed}).decode()


def cut_off(reason: str = "") -> str:
    """The result of a call whose outcome nobody knows, as the model is shown it."""
    return told(f"This call was under way when the run stopped{reason}; {UNKNOWN}", executed="unknown")


BLOCK = 64
"""Calls in a block; most replies have one block."""


class Calls(Unchanging[CallRecord]):
    """An immutable sequence of records, one a call."""

    __slots__ = ("_blocks", "_length", "_places")

    def __init__(self, records: Iterable[CallRecord] = ()) -> None:
        items = tuple(records)
        self._length = len(items)
        many = len(items) > BLOCK
        self._blocks = tuple(items[i : i + BLOCK] for i in range(0, len(items), BLOCK)) if many else (items,)
        self._places: dict[str, int] | None = None

    def find(self, call_id: str) -> CallRecord | None:
        """The record of call `call_id`; None if there is none."""
        if self._length == 1:
            record = self._blocks[0][0]
            return record if record.call.id == call_id else None
        place = self._all_places().get(call_id)
        return None if place is None else self[place]

    def put(self, record: CallRecord) -> "Calls":
        """The same records with `record` in place of that of its call, which is one of them."""
        calls = Calls.__new__(Calls)
        if self._length == 1:
            calls._blocks = ((record,),)
        else:
            blocks = self._blocks
            number, at = divmod(self._all_places()[record.call.id], BLOCK)
            changed = (*blocks[number][:at], record, *blocks[number][at + 1 :])
            calls._blocks = (*blocks[:number], changed, *blocks[number + 1 :])
        calls._length, calls._places = self._length, self._places
        return calls

    def _all_places(self) -> dict[str, int]:
        if self._places is None:
            self._places = {record.call.id: i for i, record in enumerate(self)}
        return self._places

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[CallRecord]:
        return chain.from_iterable(self._blocks)

    @overload
    def __getitem__(self, index: int) -> CallRecord: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[CallRecord]: ...
    def __getitem__(self, index: int | slice) -> CallRecord | Sequence[CallRecord]:
        if isinstance(index, slice):
            return tuple(self)[index]
        if not -self._length <= index < self._length:
            raise IndexError(f"index {index} is outside {self._length} calls")
        number, at = divmod(index if index >= 0 else self._length + index, BLOCK)
        return self._blocks[number][at]


NO_CALLS = Calls()
