"""Stop conditions: when has enough been done?

A condition is looked at when a step's tool results are in. It asks the run's state, and may wait for its answer; where
nothing in it does, it is answered at once. Conditions combine with `|`, `&` and `~`, a function, asynchronous or not,
`(state) -> bool | str` may stand wherever one is wanted, and what each of them found is kept in the step's decision
record. Each built-in one looks at the last step or at a running total, so that it costs the same in a long run as in a
short one.
"""

from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from decimal import Decimal
from math import isnan
from typing import Any, Literal, NoReturn, TypeAlias

from treadle.judging.observed import observed
from treadle.judging.progress import detect_stuck
from treadle.kernel.errors import Misuse
from treadle.kernel.state import RunState
from treadle.kernel.stop import Check, StopReason, Verdict
from treadle.signatures import takes

Answer: TypeAlias = bool | str
"""What a function says that stands as a condition; a text that is not empty says why it holds."""

Found: TypeAlias = Verdict | Awaitable[Verdict]
"""What a condition finds: at once, or when it has been waited for."""


class Condition:
    """A question to a run's state, answered by `look`; combine with `|`, `&`, `~`."""

    __slots__ = ()

    @property
    def most_steps(self) -> int:
        """The largest number of steps that is counted in it; 0 if none is."""
        return 0

    @property
    def calls_of(self) -> tuple[str, ...]:
        """The tools whose calls it looks for, by name."""
        return ()

    def look(self, state: RunState) -> Found:
        """Whether the condition holds in `state`, and why; to be awaited where something in it is asynchronous."""
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

    def __bool__(self) -> NoReturn:
        # `and` and `or` would take one of the two and lose the other without a word.
        raise Misuse(f"{self!r} is a question to a run: combine conditions by &, | and ~, not by and, or and not")


StopWhen: TypeAlias = Condition | Callable[[RunState], Answer | Awaitable[Answer]] | Sequence["StopWhen"]


class Named(Condition):
    """A condition made of one function: `(state) -> (met, value)`, held against `bound` in the record."""

    __slots__ = ("bound", "function", "name", "reason")

    def __init__(
        self,
        name: str,
        function: Callable[[RunState], tuple[bool, float | int | str | None]],
        bound: Decimal | float | int | str | None = None,
        reason: StopReason = "condition",
    ) -> None:
        # As a journal reads it back: what is recorded of a look must be what a replay finds.
        self.bound = float(bound) if isinstance(bound, Decimal) else bound
        self.name, self.function, self.reason = name, function, reason

    def look(self, state: RunState) -> Verdict:
        met, value = self.function(state)
        check = Check(str(self), value, self.bound, met)
        return Verdict(met, str(self) if met else "", (check,), self.reason if met else "condition")

    def __repr__(self) -> str:
        return self.name


class StepCount(Named):
    """So many steps have been made."""

    __slots__ = ()

    @property
    def most_steps(self) -> int:
        return self.bound if isinstance(self.bound, int) else 0


class CallsOf(Named):
    """A tool was called, once or so many times; `tool` is its name."""

    __slots__ = ("tool",)

    def __init__(
        self, tool: str, name: str, function: Callable[[RunState], tuple[bool, int | str]], bound: int | str
    ) -> None:
        super().__init__(name, function, bound)
        self.tool = tool

    @property
    def calls_of(self) -> tuple[str, ...]:
        return (self.tool,)


class Custom(Condition):
    """A function of the state, asynchronous or not; a text that it returns says why it holds."""

    __slots__ = ("function", "name")

    def __init__(self, function: Callable[[RunState], Answer | Awaitable[Answer]]) -> None:
        self.function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)

    def look(self, state: RunState) -> Found:
        found = self.function(state)
        return self._later(found) if isinstance(found, Awaitable) else self._verdict(found)

    async def _later(self, found: Awaitable[Answer]) -> Verdict:
        return self._verdict(await found)

    def _verdict(self, found: Any) -> Verdict:
        if callable(found) or isinstance(found, Condition | Awaitable | AsyncIterable):
            raise TypeError(
                f"the stop condition {self.name} takes the run's state and returns a bool, or a text that says why it "
                f"holds; it returned {found!r}"
            )
        met = bool(found)
        detail = f"{self.name}: {found}" if isinstance(found, str) and found else self.name
        return Verdict(met, detail if met else "", (Check(self.name, str(found), None, met),))

    def __repr__(self) -> str:
        return self.name


class Combined(Condition):
    """Several conditions, of which any or all must hold. Looks at one after the other, no further than it has to."""

    __slots__ = ("how", "parts")

    def __init__(self, how: Literal["any", "all"], parts: tuple[Condition, ...]) -> None:
        self.how, self.parts = how, parts

    @property
    def most_steps(self) -> int:
        return max([part.most_steps for part in self.parts], default=0)

    @property
    def calls_of(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in part.calls_of)

    def look(self, state: RunState) -> Found:
        verdicts: list[Verdict] = []
        for number, part in enumerate(self.parts):
            found = found_by(part, state)
            if not isinstance(found, Verdict):
                return self._later(state, verdicts, found, self.parts[number + 1 :])
            verdicts.append(found)
            if self._decided(found):
                break
        return self._joined(verdicts)

    async def _later(
        self, state: RunState, verdicts: list[Verdict], first: Awaitable[Verdict], rest: tuple[Condition, ...]
    ) -> Verdict:
        verdicts.append(checked(await first))
        for part in rest:
            if self._decided(verdicts[-1]):
                break
            found = found_by(part, state)
            verdicts.append(found if isinstance(found, Verdict) else checked(await found))
        return self._joined(verdicts)

    def _decided(self, verdict: Verdict) -> bool:
        return verdict.met is (self.how == "any")

    def _joined(self, verdicts: Sequence[Verdict]) -> Verdict:
        last = verdicts[-1]
        checks = tuple(check for verdict in verdicts for check in verdict.checks)
        if self._decided(last):
            return Verdict(last.met, last.detail, checks, last.reason)
        details = " and ".join(verdict.detail for verdict in verdicts if verdict.met)
        special = [verdict.reason for verdict in verdicts if verdict.reason != "condition"]
        return Verdict(last.met, details, checks, special[0] if special else "condition")

    def __repr__(self) -> str:
        return f"({(' | ' if self.how == 'any' else ' & ').join(map(repr, self.parts))})"


class Inverted(Condition):
    """Holds when the condition in it does not."""

    __slots__ = ("part",)

    def __init__(self, part: Condition) -> None:
        self.part = part

    @property
    def calls_of(self) -> tuple[str, ...]:
        return self.part.calls_of

    def look(self, state: RunState) -> Found:
        found = found_by(self.part, state)
        return self._verdict(found) if isinstance(found, Verdict) else self._later(found)

    async def _later(self, found: Awaitable[Verdict]) -> Verdict:
        return self._verdict(checked(await found))

    def _verdict(self, verdict: Verdict) -> Verdict:
        return Verdict(not verdict.met, "" if verdict.met else repr(self), verdict.checks, verdict.reason)

    def __invert__(self) -> Condition:
        return self.part

    def __repr__(self) -> str:
        return f"~{self.part!r}"


def found_by(part: Condition, state: RunState) -> Found:
    """What `part` finds; a `look` of somebody's own may give anything."""
    found: Any = part.look(state)
    return found if isinstance(found, Awaitable) else checked(found)


def checked(found: Any) -> Verdict:
    """The verdict that was found.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(found, Verdict):
        raise TypeError(f"look() of a condition returns a Verdict, or an awaitable of one; it returned {found!r}")
    return found


def condition(what: StopWhen) -> Condition:
    """The condition in `what`: a condition, a function of the state, or a list of which any may hold.

    Raises:
        TypeError: `what` is none of these, or a function that takes more or less than the state.
    """
    if isinstance(what, Condition):
        return what
    if isinstance(what, Sequence) and not isinstance(what, str) and what:
        return Combined("any", tuple(condition(part) for part in what))
    if callable(what) and takes(what, None):
        return Custom(what)
    more = ", which cannot be called with that alone" if callable(what) else ""
    raise TypeError(
        f"stop_when takes a condition such as step_count(3), a function of the run's state, or a list of these; "
        f"it was given {what!r}{more}"
    )


def _require_count(name: str, given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise Misuse(f"{name} takes a whole number from 0; it was given {given!r:.100}")


def _require_amount(name: str, given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int | float | Decimal) or isnan(given) or given < 0:
        raise Misuse(f"{name} takes a number from 0; it was given {given!r:.100}")


def _require_text(name: str, wanted: str, given: object) -> None:
    if not isinstance(given, str) or not given:
        raise Misuse(f"{name} takes {wanted}, as a text; it was given {given!r:.100}")


def step_count(count: int) -> Condition:
    """`count` steps have been made."""
    _require_count("step_count", count)
    return StepCount(f"step_count({count})", lambda state: (len(state.steps) >= count, len(state.steps)), count)


def has_tool_call(name: str) -> Condition:
    """The last step asked for the tool `name`, whatever came of the call."""
    _require_text("has_tool_call", "the name of a tool", name)

    def look(state: RunState) -> tuple[bool, str]:
        names = [call.name for call in state.steps[-1].calls]
        return name in names, ", ".join(names)

    return CallsOf(name, f"has_tool_call({name!r})", look, name)


def tool_call_count(count: int, name: str | None = None) -> Condition:
    """`count` tool calls have been made within the limits in all, or `count` calls of the tool `name`."""
    _require_count("tool_call_count", count)
    if name is not None:
        _require_text("tool_call_count", "as its second argument the name of a tool", name)
    title = f"tool_call_count({count})" if name is None else f"tool_call_count({count}, {name!r})"

    def look(state: RunState) -> tuple[bool, int]:
        made = state.tool_calls if name is None else state.call_counts.get(name, 0)
        return made >= count, made

    return Named(title, look, count) if name is None else CallsOf(name, title, look, count)


def text_contains(text: str, *, ignore_case: bool = False) -> Condition:
    """The model's last reply contains `text`."""
    _require_text("text_contains", "what the reply is to contain", text)
    wanted = text.casefold() if ignore_case else text

    def look(state: RunState) -> tuple[bool, str]:
        said = state.steps[-1].text
        return wanted in (said.casefold() if ignore_case else said), said[-80:]

    return Named(f"text_contains({text!r})", look, text)


def cost_over(usd: Decimal | float) -> Condition:
    """More than `usd` dollars have been spent. Where the model's price is unknown this never holds."""
    _require_amount("cost_over", usd)
    # A float is taken as it is written: 0.1 is ten cents.
    most = Decimal(str(usd))

    def look(state: RunState) -> tuple[bool, float | None]:
        return (False, None) if state.cost is None else (state.cost > most, float(state.cost))

    return Named(f"cost_over({usd})", look, usd)


def tokens_over(tokens: int) -> Condition:
    """More than `tokens` tokens, input and output, have been used."""
    _require_count("tokens_over", tokens)
    return Named(
        f"tokens_over({tokens})", lambda state: (state.usage.total_tokens > tokens, state.usage.total_tokens), tokens
    )


def elapsed_over(seconds: Decimal | float) -> Condition:
    """The run has been under way for more than `seconds` seconds, pauses not counted; it cancels nothing."""
    _require_amount("elapsed_over", seconds)
    return Named(f"elapsed_over({seconds})", lambda state: (state.elapsed > seconds, round(state.elapsed, 3)), seconds)


def consecutive_errors(count: int, by: Literal["step", "call"] = "step") -> Condition:
    """Everything has gone wrong in `count` steps in a row; or, by call, the last `count` calls have all failed."""
    _require_count("consecutive_errors", count)
    if by == "step":
        return Named(f"consecutive_errors({count})", lambda state: (state.errors >= count, state.errors), count)
    if by != "call":
        raise Misuse(f'consecutive_errors counts by="step" or by="call"; it was given {by!r}')

    def look(state: RunState) -> tuple[bool, int]:
        failed = _failed_last(state, count)
        return failed >= count, failed

    return Named(f"consecutive_errors({count}, by='call')", look, count)


def _failed_last(state: RunState, count: int) -> int:
    """How many of the last `count` calls failed, the latest first, up to the first that did not."""
    failed = 0
    for number in range(len(state.steps) - 1, -1, -1):
        for record in reversed(state.steps[number].calls):
            if failed == count or not record.is_error:
                return failed
            failed += 1
    return failed


class Repeating(Condition):
    """The last calls repeat themselves, as `detect_stuck` sees it."""

    __slots__ = ()

    def look(self, state: RunState) -> Verdict:
        finding = detect_stuck(observed(state))
        if finding is None:
            return Verdict(False, "", (Check(repr(self), "moving"),))
        check = Check(repr(self), finding.kind, None, True)
        return Verdict(True, f"{finding.kind}: {finding.message}", (check,), "no_progress")

    def __repr__(self) -> str:
        return "no_progress()"


def no_progress() -> Condition:
    """The last calls repeat themselves (see `treadle.judging.progress`). The run then stops with `no_progress`."""
    return Repeating()
