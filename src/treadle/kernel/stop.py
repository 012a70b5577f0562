"""Why a run goes on or stops: limits, stop reasons, and the record of each decision.

Limits are hard: they are looked at before the effect that would break them. Conditions, which say that enough has been
done, and the watch for progress are judged outside (`treadle.judging`); what they found comes in as a `Judgement`.
"""

import reprlib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import ClassVar, Final, Literal, get_args

from msgspec import Struct
from msgspec.structs import force_setattr

from treadle.kernel.errors import Named
from treadle.kernel.money import MOST, dollars

Done = Literal["answered", "condition", "external_tool"]
AtLimit = Literal[
    "max_steps", "max_tool_calls", "deadline", "max_cost", "max_tokens", "consecutive_errors", "no_progress"
]
StopReason = Literal[
    "running", Done, "waiting", AtLimit, "length", "content_filter", "refusal", "model_error", "cancelled"
]
STOP_REASONS: tuple[str, ...] = get_args(StopReason)
FINISHED: frozenset[str] = frozenset(get_args(Done))
LIMIT_REASONS: frozenset[str] = frozenset(get_args(AtLimit))

OnLimit = Literal["answer", "stop", "raise"]

ADVICE: dict[str, str] = {
    "max_steps": "Raise limits.steps, or ask for less at once.",
    "max_tool_calls": "Raise limits.tool_calls, or ask for less at once.",
    "deadline": "Raise limits.seconds, or look at which step took the time.",
    "max_cost": "Raise limits.usd, or use a cheaper model.",
    "max_tokens": "Raise limits.tokens, or shorten what the tools return.",
    "consecutive_errors": "Look at the errors of the last steps: a tool or its description is probably wrong.",
    "no_progress": "Look at the last steps: the model repeats itself. Another tool or clearer instructions may help.",
    "length": "Raise settings.max_tokens, or ask for a shorter answer.",
    "content_filter": "The provider withheld the reply; rephrase the question.",
    "refusal": "The model declined; rephrase the question or use another model.",
    "model_error": "See result.error; when its cause is gone, run it again or go on with the conversation.",
    "running": "Wait for it, or resume it if its process died.",
    "waiting": "Give the decisions or results that are pending, and resume the run.",
    "cancelled": "Run it again, or go on with the conversation.",
}
NO_ANSWER: Final = (
    "Look at why the last replies were sent back: they say nothing, or not what their check, or their type, asks for."
)
"""The advice where no tool had a part in what went wrong."""


class Stop(Struct, frozen=True, gc=False, omit_defaults=True):
    """Why a run ended or paused.

    Attributes:
        reason: one of `STOP_REASONS`; "running" in the result of a run that is still under way.
        detail: what exactly, such as the name of the condition that was met.
        advice: what to try next; empty if the run finished.
    """

    reason: StopReason
    detail: str = ""
    advice: str = ""

    @property
    def finished(self) -> bool:
        """Whether the task was done: answered, a condition met, or an external tool called."""
        return self.reason in FINISHED


def stopped(reason: StopReason, detail: str = "", advice: str = "") -> Stop:
    """A `Stop` with `advice`, else that which goes with its reason."""
    return Stop(reason, detail, advice or ADVICE.get(reason, ""))


def counted(number: object, what: str) -> str:
    """So many of something, such as "1 step" and "2 steps"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


class Limits(Struct, metaclass=Named, frozen=True, gc=False):
    """What a run may use at most. Each limit has its own stop reason; None leaves one off.

    Attributes:
        steps: model calls, the closing one of `on_limit="answer"` included (`max_steps`).
        tool_calls: tool calls, each call of a parallel batch and those of sub-runs counted (`max_tool_calls`).
        seconds: time under way, pauses not counted; what is in flight then is cancelled (`deadline`).
        usd: money; a call whose worst case would go over it is not made (`max_cost`).
        tokens: input and output tokens of all calls; likewise (`max_tokens`).
        consecutive_errors: steps in a row in which everything went wrong (`consecutive_errors`).

    Raises:
        ValueError: a limit is negative, not finite, no number, or too large; or none of these (`Misuse`).
    """

    _others_words: ClassVar[Mapping[str, str]] = {
        "turns": "steps", "iterations": "steps", "timeout": "seconds", "time": "seconds", "deadline": "seconds",
        "cost": "usd", "budget": "usd", "dollars": "usd", "total_tokens": "tokens", "calls": "tool_calls",
        "errors": "consecutive_errors",
    }  # fmt: skip

    steps: int | None = 20
    tool_calls: int | None = 100
    seconds: int | float | None = 300
    # A whole number is read from a journal as it was given: what is told of it is the same then.
    usd: Decimal | int | float | None = None
    tokens: int | None = None
    consecutive_errors: int | None = 3

    def __post_init__(self) -> None:
        for name, at_least in _LEAST.items():
            value = getattr(self, name)
            if value is not None:
                _check(self, name, value, at_least)
        if self.usd is not None:
            budget = dollars(self.usd)
            if budget is None:
                raise _refused("usd", f"a number of dollars (int, float or Decimal) from 0 to {MOST:,}", self.usd)
            if type(self.usd) not in (int, float, Decimal):
                force_setattr(self, "usd", budget)

    @classmethod
    def simple(cls) -> "Limits":
        """For a question that one or two tools answer: 3 steps."""
        return cls(steps=3)

    @classmethod
    def medium(cls) -> "Limits":
        """For a question that takes some looking: 5 steps."""
        return cls(steps=5)

    @classmethod
    def complex(cls) -> "Limits":
        """For a task of several parts: 10 steps."""
        return cls(steps=10)

    @property
    def budget(self) -> Decimal | None:
        """`usd` as an exact number."""
        return None if self.usd is None else dollars(self.usd)


_LEAST: Final = {"steps": 1, "consecutive_errors": 1, "tool_calls": 0, "tokens": 0, "seconds": 0}
_LARGEST: Final = 2**63 - 1


def _check(limits: Limits, name: str, value: object, at_least: int) -> None:
    """Refuses what is no limit. One of a kind of number that has no JSON form, such as NumPy's, is made a plain one."""
    plain: int | float | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        plain = int(value)
    elif isinstance(value, float) and name == "seconds":
        plain = float(value)
    if plain is None or not at_least <= plain <= _LARGEST:
        kind = "a number (int or float)" if name == "seconds" else "a whole number"
        raise _refused(name, f"{kind} of at least {at_least} and at most {_LARGEST:,}", value)
    if type(value) is not type(plain):
        force_setattr(limits, name, plain)


def _refused(name: str, wanted: str, value: object) -> ValueError:
    # A number may have thousands of digits.
    return ValueError(f"Limits.{name} takes {wanted}, or None for no limit; it was given {reprlib.repr(value)}")


class Check(Struct, frozen=True, gc=False, omit_defaults=True):
    """One thing that was looked at: its name, the value found, the bound it was held against, whether it was met."""

    name: str
    value: float | int | str | None
    bound: float | int | str | None = None
    met: bool = False


class Decision(Struct, frozen=True, gc=False, omit_defaults=True):
    """The record of one look at whether a run goes on.

    Attributes:
        verdict: "go" (another step), "land" (one last call that writes up), "stop".
        why: the reason and its detail, if the verdict is not "go".
        steps: steps made so far; likewise `tool_calls`, `seconds` (under way), `usd`, `tokens`, `errors` (steps in a
            row in which everything went wrong).
        conditions: the stop conditions that were looked at.
    """

    verdict: Literal["go", "land", "stop"]
    why: str = ""
    steps: int = 0
    tool_calls: int = 0
    seconds: float = 0.0
    usd: Decimal | None = None
    tokens: int = 0
    errors: int = 0
    conditions: tuple[Check, ...] = ()

    def checks(self, limits: Limits) -> Iterator[Check]:
        """Everything that was looked at, a row each: the limits that are on, then the conditions."""
        rows = (
            ("steps", self.steps, limits.steps),
            ("tool_calls", self.tool_calls, limits.tool_calls),
            ("seconds", round(self.seconds, 3), limits.seconds),
            ("usd", None if self.usd is None else float(self.usd), None if limits.usd is None else float(limits.usd)),
            ("tokens", self.tokens, limits.tokens),
            ("consecutive_errors", self.errors, limits.consecutive_errors),
        )
        for name, value, bound in rows:
            if bound is not None:
                yield Check(name, value, bound, value is not None and value >= bound)
        yield from self.conditions


class Verdict(Struct, frozen=True, gc=False):
    """What a stop condition found: met or not, in words, and everything that was looked at on the way."""

    met: bool
    detail: str
    checks: tuple[Check, ...]
    reason: StopReason = "condition"


class Stuck(Struct, frozen=True, gc=False):
    """A run that gets nowhere, and what is to be done about it.

    Attributes:
        act: "nudge" tells the model, "withhold" takes `tools` away for one step, "stop" ends the run.
        kind: how it is stuck, in a word.
        message: the same in a sentence or two, for the model.
        tools: the tools whose calls lead nowhere.
    """

    act: Literal["nudge", "withhold", "stop"]
    kind: str
    message: str
    tools: tuple[str, ...] = ()


class Judgement(Struct, frozen=True, gc=False):
    """What was found about a run that may take another step.

    Attributes:
        verdict: of the stop conditions; None if there are none.
        stuck: what is to be done if the run gets nowhere; None if it gets somewhere.
        loop: a sentence that names the call that the run repeats, for a limit that ends it first; empty if none.
    """

    verdict: Verdict | None = None
    stuck: Stuck | None = None
    loop: str = ""


UNJUDGED = Judgement()
