"""Moves: what a watcher of a run is told, one thing at a time, whatever protocol tells it.

They are balanced: what is opened is closed before a step, a reply or the telling ends; a call is there before its
result; and nothing is told twice. `narrator.py` makes them of events, and each protocol writes them down.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct

from treadle.kernel.messages import Content, Json, Usage
from treadle.kernel.stop import Stop
from treadle.result import Pending

PartKind = Literal["text", "thinking"]


class Began(Struct, frozen=True, gc=False):
    """The telling begins: of a new run, or of one that is taken up again. It may be told more than once."""

    run_id: str
    agent: str
    again: bool = False


class _Step(Struct, frozen=True, gc=False):
    """About a step, counted from 0."""

    step: int


class StepBegan(_Step, frozen=True, gc=False):
    """The step is under way."""


class StepEnded(_Step, frozen=True, gc=False):
    """It is over."""


class _Part(Struct, frozen=True, gc=False):
    """About something that the model says, or thinks. `id` is this part's alone, within the run."""

    kind: PartKind
    id: str


class PartBegan(_Part, frozen=True, gc=False):
    """The model has begun to say, or think, it."""


class PartPiece(_Part, frozen=True, gc=False):
    """A piece of it."""

    text: str


class PartEnded(_Part, frozen=True, gc=False):
    """It is complete, or withdrawn: then `Withdrawn` follows."""


class CallBegan(Struct, frozen=True, gc=False):
    """The model has begun to ask for a tool call."""

    id: str
    name: str


class CallPiece(Struct, frozen=True, gc=False):
    """A piece of the JSON text of its arguments."""

    id: str
    json: str


class _Call(Struct, frozen=True, gc=False):
    """About a call, with the JSON text of its arguments."""

    id: str
    name: str
    arguments: str


class CallReady(_Call, frozen=True, gc=False):
    """The call is complete; `arguments` are as the model wrote them, which may be malformed."""


class CallStarted(_Call, frozen=True, gc=False):
    """It was handed to its tool."""


class CallEdited(_Call, frozen=True, gc=False):
    """A person allowed it with other arguments, or the application has given it others."""


class CallReturned(Struct, frozen=True, gc=False):
    """The one result of a call, as the model is shown it. `name` and `arguments` are the call's, as far as known."""

    id: str
    name: str
    content: str | tuple[Content, ...]
    is_error: bool = False
    arguments: str = ""


class CallRefused(Struct, frozen=True, gc=False):
    """A person refused the call; `reason` is what the model is told, if a reason was given.

    `name` and `arguments` are the call's, as far as they are known. One that had been made by then, in whole, in part
    or as another, or of which nobody knows, comes with what it `returned`: it is not told as one that was not made.
    """

    id: str
    reason: str
    name: str = ""
    arguments: str = ""
    returned: CallReturned | None = None


class Answered(Struct, frozen=True, gc=False):
    """An agent that the conversation was handed on to has answered, which no reply of the run itself says."""

    id: str
    text: str

    @property
    def parts(self) -> tuple[PartBegan, PartPiece, PartEnded]:
        """It, as what the model says is told."""
        return PartBegan("text", self.id), PartPiece("text", self.id, self.text), PartEnded("text", self.id)


class Withdrawn(Struct, frozen=True, gc=False):
    """A reply broke off: what was shown of it (these parts, these calls) is no part of the run.

    Attributes:
        parts: their ids.
        calls: their ids and names.
        again: whether it is asked for once more.
        results: calls that stay, whose results were shown and are no part of the run either.
        taken_over: whether the reply was whole, and lost as another process took the run over.
    """

    parts: tuple[str, ...]
    calls: tuple[tuple[str, str], ...]
    again: bool
    results: tuple[str, ...] = ()
    taken_over: bool = False


class Progress(Struct, frozen=True, gc=False):
    """A tool under way said how far it is."""

    id: str
    name: str
    update: str | Json


class Said(Struct, frozen=True, gc=False):
    """Somebody said something to the run under way; `number` counts these."""

    number: int
    text: str


class Asked(Struct, frozen=True, gc=False):
    """The run waits for someone: for these calls, in the order in which they were made."""

    pending: tuple[Pending, ...]


class Ended(Struct, frozen=True, gc=False):
    """The telling is over: the run has ended, or is paused.

    Attributes:
        stop: why.
        text: the answer, or the last that the model said.
        output: the typed answer, or an external tool's arguments.
        usage: tokens of all model calls of the run.
        cost: dollars; None if the price of any call is not known.
        failure: what the model's failure is called, and what it said, if one ended the run.
        unanswered: the calls of tools without a function that the run ended with: their ids, names and arguments.
        answer: the typed answer alone, as the model wrote its JSON; the text where there is none.
    """

    stop: Stop
    text: str
    output: Any
    usage: Usage
    cost: Decimal | None
    failure: tuple[str, str] | None = None
    unanswered: Sequence[tuple[str, str, str]] = ()
    answer: str = ""


def has_output(ended: Ended, typed: bool) -> bool:
    """Whether a run has an output; of one whose answer is `typed` that may be null."""
    return ended.output is not None or (typed and ended.stop.reason == "answered")


class Below(Struct, frozen=True, gc=False):
    """Something happened in a sub-run.

    Attributes:
        path: what is put before the ids of its calls to name them from the top ("call/").
        run_id: the sub-run.
        parent: the run that it works for.
        call_id: the call that it works on, as the run at the top names it.
        agent: what its agent is called.
        move: what happened.
    """

    path: str
    run_id: str
    parent: str
    call_id: str
    agent: str
    move: "Move"


Move = (
    Began
    | StepBegan
    | StepEnded
    | PartBegan
    | PartPiece
    | PartEnded
    | CallBegan
    | CallPiece
    | CallReady
    | CallStarted
    | CallEdited
    | CallRefused
    | CallReturned
    | Answered
    | Withdrawn
    | Progress
    | Said
    | Asked
    | Ended
    | Below
)
