"""Stop conditions: when has enough been done?

A condition is looked at when a step's tool results are in. It is a pure function of the run's state; conditions combine
with `|`, `&` and `~`, a plain function `(state) -> bool | str` may stand wherever one is wanted, and what each of them
found is kept in the step's decision record. Each built-in one looks at the last step or at a running total, so that it
costs the same in a long run as in a short one.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from treadle.kernel.stop import Check, StopReason

if TYPE_CHECKING:
    from treadle.kernel.state import RunState


class Verdict(Struct, frozen=True, gc=False):
    """What a condition found: met or not, in words, and everything that was looked at on the way."""

    met: bool
    detail: str
    checks: tuple[Check, ...]
    reason: StopReason = "condition"


class Condition:
    """A question to a run's state, answered by `look`; combine with `|`, `&`, `~`."""

    __slots__ = ()

    def look(self, state: "RunState") -> Verdict:
        """Whether the condition holds in `state`, and why."""
        raise TypeError(f"{type(self).__name__} has no look(); make one with treadle.condition(function)")

    def __or__(self, other: "StopWhen") -> "Condition":
        return Combined("any", (self, condition(other)))

    def __ror__(self, other: "StopWhen") -> "Condition":
        return Combined("any", (condition(other), self))

    def __and__(self, other: "StopWhen") -> "Condition":
        return Combined("all", (self, condition(other)))

    def __rand__(self, other: "StopWhen") -> "Condition":
        return Combined("all", (condition(other), self))

    def __invert__(self) -> "Condition":
        return Inverted(self)


StopWhen: TypeAlias = Condition | Callable[["RunState"], bool | str] | Sequence["StopWhen"]


class Named(Condition):
    """A condition made of one function: `(state) -> (met, value)`, held against `bound` in the record."""

    __slots__ = ("bound", "function", "name", "reason")

    def __init__(
        self,
        name: str,
        function: Callable[["RunState"], tuple[bool, float | int | str | None]],
        bound: float | int | str | None = None,
        reason: StopReason = "condition",
    ) -> None:
        self.name, self.function, self.bound, self.reason = name, function, bound, reason

    def look(self, state: "RunState") -> Verdict:
        met, value = self.function(state)
        return Verdict(met, str(self) if met else "", (Check(str(self), value, self.bound, met),), self.reason)

    def __repr__(self) -> str:
        return self.name


class Custom(Condition):
    """A plain function of the state; a text that it returns says why it holds."""

    __slots__ = ("function", "name")

    def __init__(self, function: Callable[["RunState"], bool | str]) -> None:
        self.function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)

    def look(self, state: "RunState") -> Verdict:
        found = self.function(state)
        met = bool(found)
        detail = f"{self.name}: {found}" if isinstance(found, str) and found else self.name
        return Verdict(met, detail if met else "", (Check(self.name, str(found), None, met),))

    def __repr__(self) -> str:
        return self.name


class Combined(Condition):
    """Several conditions, of which any or all must hold. Looks no further than it has to."""

    __slots__ = ("how", "parts")

    def __init__(self, how: Literal["any", "all"], parts: tuple[Condition, ...]) -> None:
        self.how, self.parts = how, parts

    def look(self, state: "RunState") -> Verdict:
        checks: tuple[Check, ...] = ()
        details: list[str] = []
        reasons: list[StopReason] = []
        decisive = self.how == "any"
        for part in self.parts:
            verdict = part.look(state)
            checks += verdict.checks
            if verdict.met:
                details.append(verdict.detail)
                reasons.append(verdict.reason)
            if verdict.met is decisive:
                return Verdict(decisive, verdict.detail, checks, verdict.reason)
        special = [reason for reason in reasons if reason != "condition"]
        return Verdict(not decisive, " and ".join(details), checks, special[0] if special else "condition")

    def __repr__(self) -> str:
        return f"({(' | ' if self.how == 'any' else ' & ').join(map(repr, self.parts))})"


class Inverted(Condition):
    """Holds when the condition in it does not."""

    __slots__ = ("part",)

    def __init__(self, part: Condition) -> None:
        self.part = part

    def look(self, state: "RunState") -> Verdict:
        verdict = self.part.look(state)
        return Verdict(not verdict.met, "" if verdict.met else repr(self), verdict.checks)

    def __invert__(self) -> Condition:
        return self.part

    def __repr__(self) -> str:
        return f"~{self.part!r}"


def condition(what: StopWhen) -> Condition:
    """The condition in `what`: a condition, a function of the state, or a list of which any may hold.

    Raises:
        TypeError: `what` is none of these.
    """
    if isinstance(what, Condition):
        return what
    if isinstance(what, Sequence) and not isinstance(what, str) and what:
        return Combined("any", tuple(condition(part) for part in what))
    if callable(what):
        return Custom(what)
    raise TypeError(
        f"stop_when takes a condition such as step_count(3), a function of the run's state, or a list of these; "
        f"it was given {what!r}"
    )


def step_count(count: int) -> Condition:
    """`count` steps have been made."""
    return Named(f"step_count({count})", lambda state: (len(state.steps) >= count, len(state.steps)), count)


def has_tool_call(name: str) -> Condition:
    """The last step asked for the tool `name`, whatever came of the call."""

    def look(state: "RunState") -> tuple[bool, str]:
        names = [call.name for call in state.steps[-1].calls]
        return name in names, ", ".join(names)

    return Named(f"has_tool_call({name!r})", look, name)


def tool_call_count(count: int, name: str | None = None) -> Condition:
    """`count` tool calls have been made within the limits in all, or `count` calls of the tool `name`."""
    title = f"tool_call_count({count})" if name is None else f"tool_call_count({count}, {name!r})"

    def look(state: "RunState") -> tuple[bool, int]:
        made = state.tool_calls if name is None else state.call_counts.get(name, 0)
        return made >= count, made

    return Named(title, look, count)


def text_contains(text: str, *, ignore_case: bool = False) -> Condition:
    """The model's last reply contains `text`."""
    wanted = text.casefold() if ignore_case else text

    def look(state: "RunState") -> tuple[bool, str]:
        said = state.steps[-1].text
        return wanted in (said.casefold() if ignore_case else said), said[-80:]

    return Named(f"text_contains({text!r})", look, text)


def cost_over(usd: float) -> Condition:
    """More than `usd` dollars have been spent. Where the model's price is unknown this never holds."""

    def look(state: "RunState") -> tuple[bool, float | None]:
        spent = None if state.cost is None else float(state.cost)
        return spent is not None and spent > usd, spent

    return Named(f"cost_over({usd})", look, usd)


def tokens_over(tokens: int) -> Condition:
    """More than `tokens` tokens, input and output, have been used."""
    return Named(
        f"tokens_over({tokens})", lambda state: (state.usage.total_tokens > tokens, state.usage.total_tokens), tokens
    )


def elapsed_over(seconds: float) -> Condition:
    """The run has been under way for more than `seconds` seconds, pauses not counted; it cancels nothing."""
    return Named(f"elapsed_over({seconds})", lambda state: (state.elapsed > seconds, round(state.elapsed, 3)), seconds)


def consecutive_errors(count: int) -> Condition:
    """Everything has gone wrong in `count` steps in a row."""
    return Named(f"consecutive_errors({count})", lambda state: (state.errors >= count, state.errors), count)


class Repeating(Condition):
    """The last calls repeat themselves, as `detect_stuck` sees it."""

    __slots__ = ()

    def look(self, state: "RunState") -> Verdict:
        from treadle.judging.progress import detect_stuck

        finding = detect_stuck(state.observed())
        if finding is None:
            return Verdict(False, "", (Check(repr(self), "moving"),))
        check = Check(repr(self), finding.kind, None, True)
        return Verdict(True, f"{finding.kind}: {finding.message}", (check,), "no_progress")

    def __repr__(self) -> str:
        return "no_progress()"


def no_progress() -> Condition:
    """The last calls repeat themselves (see `treadle.judging.progress`). The run then stops with `no_progress`."""
    return Repeating()
