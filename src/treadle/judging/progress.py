"""Progress: is a run still getting anywhere, judged by its latest tool calls?

`detect_stuck` looks at the last few steps of a run and says whether their calls brought anything that the run did not
know already. It is a pure function of those calls: no clock, no files. What is done about a finding (a nudge, tools
withheld, the end of the run) is decided in `judge.py`.

How it judges. Going back from the latest step, each step that brought nothing adds points:

- the same call with the same result as before: 3 points the second time, 5 from the third time on, counted from the
  last step that did bring something. Where that same call was made before it, the first time after it weighs 3 too;
- an error: 1 point, since it rules something out but is no step forward.

The first step that did bring something ends the walk: whatever lies before it, the run was getting somewhere there.
With 9 points the run is stuck. In words: the same call failing alike three times (1 + 3 + 5), the same call answered
alike four times (0 + 3 + 5 + 5), nine errors in a row; and any mixture of these that weighs as much. A step of several
calls weighs what the least of them weighs. Two patterns are known by their shape: a cycle of two to six steps gone
through twice with the same results, and three steps in a row that call only tools that do not exist.

What is never a loop: different calls that succeed, however many there are and however alike their results, for that is
work through a list; nor calls that succeed of tools that change something, though the same one be made again.
`bench/progress.md` says what these rules find in recorded runs.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, TypeAlias

from msgspec import Struct

from treadle.judging.failures import names_no_tool, put_differently, reads_as_error
from treadle.judging.findings import Finding, FindingKind, in_words
from treadle.judging.sameness import arguments_key, same_result

WINDOW: Final = 12
"""How many of the latest steps are looked at."""

RESULTS: Final = 2
"""How many different results of the same call a result is held against, the latest first."""

OTHERS: Final = 24
"""How many calls of the same tool that read as errors are looked at for one that says the same in other words."""


class ObservedCall(Struct, frozen=True):
    """A tool call that has its result, as far as the watch for progress needs to know it.

    Attributes:
        name: The tool that was called.
        arguments: The arguments as JSON text. Key order and white space do not matter; text that is not JSON is
            compared as it stands.
        result: What the model was shown. Where only the beginning of a long result is at hand, put a digest of the
            whole after it, so that two results that begin alike are told apart.
        is_error: Whether the tool failed. Many tools report a failure as ordinary text; such a text counts as an error
            where other calls of the run bear that out.
        polling: Whether waiting for a change is the tool's purpose. Such calls are never evidence of a loop, and when
            one shows a change, the calls before it no longer are.
        write: Whether the tool says that it changes something. Its successes are never evidence of a loop.
        step: The number of the step that the call belongs to; None for a step of its own.
    """

    name: str
    arguments: str
    result: str
    is_error: bool = False
    polling: bool = False
    write: bool = False
    step: int | None = None


class Weights(Struct, frozen=True):
    """How much each sign of a run that is stuck counts, and how much is enough.

    The defaults say in numbers what the text at the top of the module says in words. Raise `enough` for more patience.

    Attributes:
        window: How many of the latest steps are looked at. 12 holds two rounds of a cycle of six steps, and bounds the
            work however long the run has been going.
        rechecked: The same call with the same result as before the last step that brought something. To look again
            after a change is sensible, and that nothing has changed is still nothing new.
        repeated: The same call with the same result, for the second time since then. A second look may be meant.
        again: The same, from the third time on. More than `repeated`, because the second time already told the model
            that nothing had changed; less than `enough`, so that one call which is repeated between others that do
            bring something (back to the list, run the tests) is never enough by itself.
        error: An error.
        enough: The points at which the run is stuck.
        unknown_tools: Steps in a row with nothing but calls of tools that do not exist at which the run is stuck. By
            the third the model has twice been shown the tools that do.

    Raises:
        ValueError: A weight is negative, or `window`, `enough` or `unknown_tools` is below 1.
    """

    window: int = WINDOW
    rechecked: int = 3
    repeated: int = 3
    again: int = 5
    error: int = 1
    enough: int = 9
    unknown_tools: int = 3

    def __post_init__(self) -> None:
        for name in ("window", "enough", "unknown_tools"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("rechecked", "repeated", "again", "error"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, but is {getattr(self, name)}")


DEFAULT_WEIGHTS: Final = Weights()


def detect_stuck(calls: Sequence[ObservedCall], weights: Weights = DEFAULT_WEIGHTS) -> Finding | None:
    """Say whether the run is stuck now, after the last of `calls`.

    Only the last `weights.window` steps are looked at, so it may be asked after every step of a long run. Which calls
    came before them does not change the answer.

    Args:
        calls: The calls of the run that have their results, oldest first.
        weights: How much each sign counts. The defaults are meant to be right.

    Returns:
        What the run is stuck in, or None. Never raises for what a call's texts hold.
    """
    window = _Window(_watched(calls, weights.window))
    if not window.steps:
        return None
    return _unknown_tools(window, weights) or _cycle(window) or _nothing_new(window, weights)


Sight: TypeAlias = tuple[str, int, int]


class _Look:
    """One call of the window: which step it is in, and its sight, which calls share that say and bring the same."""

    __slots__ = ("call", "index", "reads", "sight", "step")

    def __init__(self, index: int, call: ObservedCall, sight: Sight) -> None:
        self.index, self.call, self.sight = index, call, sight
        self.reads = call.is_error or reads_as_error(call.result)
        self.step = 0

    @property
    def went_well(self) -> bool:
        """Whether the call changed something, as far as its result says."""
        return self.call.write and not self.reads


class _Sights:
    """Tells which calls are the same and brought the same."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, int], dict[str, int]] = {}

    def of(self, call: ObservedCall) -> Sight:
        key = (call.name, arguments_key(call.arguments))
        results = self._results.setdefault(key, {})
        number = results.get(call.result)
        if number is None:
            latest = islice(reversed(results), RESULTS)
            same = next((other for other in latest if same_result(other, call.result)), None)
            number = results[call.result] = len(results) if same is None else results[same]
        return *key, number


class _Window:
    """The steps that are looked at, with what can be told about their calls only side by side.

    Attributes:
        steps: the looks of each step.
        places: the steps in which a sight was seen, first to last.
    """

    def __init__(self, steps: list[list[_Look]]) -> None:
        self.steps = steps
        self.places: dict[Sight, list[int]] = {}
        self._failing: dict[str, list[_Look]] = {}
        for number, looks in enumerate(steps):
            for look in looks:
                look.step = number
                places = self.places.setdefault(look.sight, [])
                if number not in places[-1:]:
                    places.append(number)
                    if look.reads:
                        self._failing.setdefault(look.call.name, []).append(look)

    def failed(self, look: _Look) -> bool:
        """Whether a call failed: its tool says so, or its result reads so and another call bears that out."""
        if look.call.is_error or not look.reads:
            return look.call.is_error
        return len(self.places[look.sight]) > 1 or any(
            put_differently(look.call.arguments, other.call.arguments)
            for other in self._failing[look.call.name][-OTHERS:]
        )

    def brought_something(self, look: _Look) -> bool:
        """Whether a call brought what was not known: neither its result of before nor an error."""
        return self.places[look.sight][0] == look.step and not self.failed(look)


def _watched(calls: Sequence[ObservedCall], window: int) -> list[list[_Look]]:
    """The looks of the last steps without the polling, from the last moment on at which polling showed a change."""
    sights, polls = _Sights(), set[Sight]()
    steps: list[list[_Look]] = []
    for indexes in _by_step(calls, window):
        looks = [_Look(i, calls[i], sights.of(calls[i])) for i in indexes]
        polled = {look.sight for look in looks if look.call.polling}
        if polled - polls:
            steps.clear()
        polls |= polled
        steps.append([look for look in looks if not look.call.polling])
    return [looks for looks in steps if looks] if steps and steps[-1] else []


def _by_step(calls: Sequence[ObservedCall], steps: int) -> list[range]:
    """The indexes of the calls of each of the last `steps` steps."""
    found: list[range] = []
    end = len(calls)
    while end and len(found) < steps:
        begin, step = end - 1, calls[end - 1].step
        while begin and step is not None and calls[begin - 1].step == step:
            begin -= 1
        found.append(range(begin, end))
        end = begin
    return found[::-1]


def _unknown_tools(window: _Window, weights: Weights) -> Finding | None:
    streak = [look for looks in window.steps[-weights.unknown_tools :] for look in looks]
    if len(window.steps) < weights.unknown_tools:
        return None
    if not all(look.call.is_error and names_no_tool(look.call.result) for look in streak):
        return None
    return _finding("unknown_tool", streak)


def _cycle(window: _Window) -> Finding | None:
    """The shortest cycle of at least two different steps that ends the window, if it was gone through twice."""
    sights = [{look.sight for look in looks} for looks in window.steps]
    for period in range(2, len(sights) // 2 + 1):
        if sights[-period:] == sights[-2 * period : -period]:
            looks = [look for step in window.steps[-2 * period :] for look in step]
            if all(one == sights[-1] for one in sights[-period:]) or any(look.went_well for look in looks):
                return None
            return _finding("cycle", looks)
    return None


def _nothing_new(window: _Window, weights: Weights) -> Finding | None:
    """Walk back from the latest step until one brought something, and add up what the others weigh."""
    begin = len(window.steps) - 1
    while begin >= 0 and not any(map(window.brought_something, window.steps[begin])):
        begin -= 1
    points = 0
    streak: list[_Look] = []
    for looks in window.steps[begin + 1 :]:
        counted = [look for look in looks if not look.went_well]
        points += min((_weight(window, look, begin, weights) for look in counted), default=0)
        streak += counted
    if points < weights.enough or streak[-1].step != len(window.steps) - 1:
        return None
    sights = {look.sight for look in streak}
    shown = [look for looks in window.steps for look in looks if look.sight in sights]
    if len({frozenset(look.sight for look in looks) for looks in _apart(shown)}) == 1:
        return _finding("repeat", shown)
    return _finding("errors" if all(map(window.failed, shown)) else "nothing_new", shown)


def _weight(window: _Window, look: _Look, begin: int, weights: Weights) -> int:
    """What a call that brought nothing weighs, the last step that brought something being `begin`."""
    before = [step for step in window.places[look.sight] if step < look.step]
    if not before:
        return weights.error
    times = sum(step >= begin for step in before)
    return (weights.rechecked, weights.repeated, weights.again)[min(times, 2)]


def _apart(looks: Iterable[_Look]) -> list[list[_Look]]:
    """The looks of each step."""
    steps: dict[int, list[_Look]] = {}
    for look in looks:
        steps.setdefault(look.step, []).append(look)
    return list(steps.values())


def _finding(kind: FindingKind, looks: Sequence[_Look]) -> Finding:
    names = list(dict.fromkeys(look.call.name for look in looks))
    different = len({look.sight for look in looks})
    message = in_words(kind, names, len(looks), len(_apart(looks)), different)
    return Finding(kind, tuple(look.index for look in looks), message)
