"""Why a run goes on or stops: limits, stop reasons, and the record of each decision.

Limits are hard: they are looked at before the effect that would break them. Conditions, which say that enough has been
done, and the watch for progress are judged outside the kernel; what they found comes in as a `Judgement`.
"""

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Literal, get_args

from msgspec import Struct

StopReason = Literal[
    "answered",
    "condition",
    "external_tool",
    "waiting",
    "max_steps",
    "max_tool_calls",
    "deadline",
    "max_cost",
    "max_tokens",
    "consecutive_errors",
    "no_progress",
    "length",
    "content_filter",
    "refusal",
    "model_error",
    "cancelled",
]
STOP_REASONS: tuple[str, ...] = get_args(StopReason)
FINISHED: frozenset[str] = frozenset({"answered", "condition", "external_tool"})
LIMIT_REASONS: frozenset[str] = frozenset(
    {"max_steps", "max_tool_calls", "deadline", "max_cost", "max_tokens", "consecutive_errors", "no_progress"}
)

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
    "waiting": "Give the decisions or results that are pending, and resume the run.",
    "cancelled": "Run it again, or go on with the conversation.",
}


class Stop(Struct, frozen=True, gc=False, omit_defaults=True):
    """Why a run ended or paused.

    Attributes:
        reason: one of `STOP_REASONS`.
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


def stopped(reason: StopReason, detail: str = "") -> Stop:
    """A `Stop` with the advice that goes with its reason."""
    return Stop(reason, detail, ADVICE.get(reason, ""))


class Limits(Struct, frozen=True, gc=False):
    """What a run may use at most. Each limit has its own stop reason; None leaves one off.

    Attributes:
        steps: model calls, the closing one of `on_limit="answer"` included (`max_steps`).
        tool_calls: tool calls, each call of a parallel batch counted (`max_tool_calls`).
        seconds: time under way, pauses not counted; what is in flight then is cancelled (`deadline`).
        usd: money; a call whose worst case would go over it is not made (`max_cost`).
        tokens: input and output tokens of all calls; likewise (`max_tokens`).
        consecutive_errors: steps in a row in which everything went wrong (`consecutive_errors`).

    Raises:
        ValueError: a limit is negative, or not a number.
    """

    steps: int | None = 20
    tool_calls: int | None = 100
    seconds: float | None = 300
    usd: Decimal | float | None = None
    tokens: int | None = None
    consecutive_errors: int | None = 3

    def __post_init__(self) -> None:
        for name in ("steps", "consecutive_errors"):
            _check(name, getattr(self, name), at_least=1, whole=True)
        for name in ("tool_calls", "tokens"):
            _check(name, getattr(self, name), at_least=0, whole=True)
        for name in ("seconds", "usd"):
            _check(name, getattr(self, name), at_least=0, whole=False)

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
        return None if self.usd is None else Decimal(str(self.usd))


def _check(name: str, value: object, *, at_least: int, whole: bool) -> None:
    if value is None:
        return
    kind = "a whole number" if whole else "a number"
    wanted = f"Limits.{name} takes {kind} of at least {at_least}, or None for no limit; it was given {value!r}"
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float, Decimal)):
        raise ValueError(wanted)
    try:
        enough = Decimal(str(value)) >= at_least
    except InvalidOperation:
        enough = False
    if not enough:
        raise ValueError(wanted)


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


class Verdict(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a stop condition found.

    Attributes:
        met: whether it holds.
        detail: what held, in words; empty if it does not.
        checks: everything that was looked at on the way.
        reason: why a run that it ends has ended; of a condition that does not hold, what its opposite would give.
    """

    met: bool
    detail: str
    checks: tuple[Check, ...]
    reason: StopReason = "condition"


class Stuck(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is to be done about a run that gets nowhere.

    Attributes:
        act: tell the model so; do not offer `tools` for one step; end the run.
        kind: the kind of what was found.
        message: what the model is told, or the detail of the stop.
        tools: the tools to be withheld.
    """

    act: Literal["nudge", "withhold", "stop"]
    kind: str
    message: str
    tools: tuple[str, ...] = ()


class Judgement(Struct, frozen=True, gc=False, omit_defaults=True):
    """What was found about whether a run goes on, apart from its limits.

    Attributes:
        verdict: what the stop conditions found; None if there are none, or no step to look at.
        stuck: what is to be done about a run that gets nowhere; None if nothing.
        loop: a sentence that names a call which the last steps repeat, to be added where a limit ends the run first.
    """

    verdict: Verdict | None = None
    stuck: Stuck | None = None
    loop: str = ""
