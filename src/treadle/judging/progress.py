"""Progress: is a run still getting anywhere, judged by its latest tool calls?

`detect_stuck` looks at the last few calls of a run and says whether they brought anything that the run did not know
already. It is a pure function of those calls: no clock, no files, nothing remembered between one call and the next.
What is done about a finding (a nudge, a tool withheld, the end of the run) is decided elsewhere in the kernel.

How it judges. Going back from the latest call, each call that brought nothing adds points:

- the same call with the same result as before: 2 points the second time, 4 from the third time on;
- an error that another call had brought already: 2 points;
- an error that is seen for the first time: 1 point, since it rules something out but is no step forward.

The first call that did bring something ends the walk: whatever lies before it, the run was getting somewhere there.
With 7 points the run is stuck. In words: the same call failing alike three times (1 + 2 + 4), the same call answered
alike four times (0 + 2 + 4 + 4), one error from four different calls (1 + 2 + 2 + 2), seven errors of any kind in a
row; and any mixture of these that weighs as much. Two patterns are known by their shape: a cycle of two to six calls
gone through twice with the same results, and three calls in a row of tools that do not exist.

It follows that calls with different arguments that succeed are never a loop, however many there are and however alike
their results: that is work through a list. `bench/progress.md` says what these rules find in recorded runs.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal, assert_never

import msgspec
from msgspec import Struct

FindingKind = Literal["repeat", "cycle", "errors", "unknown_tool", "nothing_new", "polling"]


WINDOW: Final = 12
"""How many of the latest calls are looked at."""


class ObservedCall(Struct, frozen=True):
    """A tool call that has its result, as far as the watch for progress needs to know it.

    Attributes:
        name: The tool that was called.
        arguments: The arguments as JSON text. Key order and white space do not matter; text that is not JSON is
            compared as it stands.
        result: What the model was shown. Where only the beginning of a long result is at hand, put a digest of the
            whole after it, so that two results that begin alike are told apart.
        is_error: Whether the tool failed. Many tools report a failure as ordinary text, so the beginning of the result
            is looked at as well.
        polling: Whether waiting for a change is the tool's purpose. Such calls are never evidence of a loop, and when
            one shows a change, the calls before it no longer are.
    """

    name: str
    arguments: str
    result: str
    is_error: bool = False
    polling: bool = False


class Finding(Struct, frozen=True):
    """The run is stuck, and this is how.

    Attributes:
        kind: `repeat`: one call again and again with the same result. `cycle`: the same few calls in the same order,
            with the same results. `errors`: nothing but errors. `unknown_tool`: calls of tools that do not exist.
            `nothing_new`: different calls, each of which brought an error or what it had brought before.
        calls: Indexes into the sequence that was looked at, in order: the calls that make up the pattern.
        message: A sentence or two for the model that name the pattern and ask for another way.
    """

    kind: FindingKind
    calls: tuple[int, ...]
    message: str


class Weights(Struct, frozen=True):
    """How much each sign of a run that is stuck counts, and how much is enough.

    The defaults say in numbers what the text at the top of the module says in words. Raise `enough` for more patience.

    Attributes:
        window: How many of the latest calls are looked at. 12 holds two rounds of a cycle of six calls, and bounds the
            work however long the run has been going.
        repeated: The same call with the same result, for the second time in the window. A second look may be meant.
        again: The same, from the third time on. More than `repeated`, because the second time already told the model
            that nothing had changed; no more than twice as much, so that one call which is repeated between others
            that do bring something (back to the list, run the tests) is never enough by itself.
        known_error: An error that an earlier, different call had brought in the same words.
        fresh_error: An error that was not seen before in the window.
        enough: The points at which the run is stuck.
        unknown_tools: Calls in a row of tools that do not exist at which the run is stuck. By the third the model has
            twice been shown the tools that do.

    Raises:
        ValueError: A weight is negative, or `window`, `enough` or `unknown_tools` is below 1.
    """

    window: int = WINDOW
    repeated: int = 2
    again: int = 4
    known_error: int = 2
    fresh_error: int = 1
    enough: int = 7
    unknown_tools: int = 3

    def __post_init__(self) -> None:
        for name, least in (("window", 1), ("enough", 1), ("unknown_tools", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")
        for name in ("repeated", "again", "known_error", "fresh_error"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, but is {getattr(self, name)}")


DEFAULT_WEIGHTS: Final = Weights()

# What differs from one answer to the next though nothing has changed: the moment, how long it took, which attempt it
# was, under which id it was filed. A bare number, date or hash stays: it is as likely to be the answer itself.
_COUNTS_ONLY: Final = re.compile(
    r"""
    \b(?=[\da-frst])(?:  # what begins with another letter need not be tried: half the time
        \d{4}-\d\d-\d\d[T\ ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?Z|\s?[+-]\d\d:?\d\d)?  # 2026-01-31T10:20:30.5Z
      | \d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b                                 # 10:20:30.500
      | \d+(?:\.\d+)?\s?(?:ns|[µu]s|ms|s|secs?|seconds?)\b               # 12.3 ms
      | [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b     # a UUID
      | 0x[0-9a-f]{6,}\b                                                  # an address in memory
      | (?:(?:request|req|trace|span|correlation)[ _-]?id
          |timestamp|ts|elapsed(?:[ _-]?m?s)?|duration(?:[ _-]?m?s)?|took(?:[ _-]?ms)?
          |(?:attempt|retry|request|call)s?(?:[ _-]?(?:no|number|count))?
        )(?:["']?\s*[:=#]\s*["']?|\s+)(?=[\w.-]*\d)[\w.-]+               # request_id: "8f3a", attempt 3
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)

# How a failure reads where the tool has no other way to report it: the first words of the result, after brackets and at
# most one label ("result:"). Words further on do not count: a document may well speak of errors. Nor does a field that
# says that there is none ("error": null).
_READS_AS_ERROR: Final = re.compile(
    r"""
    ^[\s\[\](){}"'*\#<>!-]*
    (?:\w{1,40}["']?:\s*["']?)?
    (?: (?:errors?|failures?|exception|(?-i:[\w.]*[a-z](?:Error|Exception)))\b
        (?!["']?\s*[:=]\s*(?:null|none|false|0\b|""|''|\[\]|\{\}))
      | (?:traceback|fatal|failed|invalid|unknown|unrecogni[sz]ed|unsupported|malformed|illegal)\b
      | (?:unauthorized|forbidden)\b
      | (?:cannot|can't|could\ not|couldn't|unable\ to|no\ such|bad\ request|permission\ denied|access\ denied)\b
      | (?:\w+\ )?not\ (?:found|allowed|permitted|supported)\b
      | (?:timed\ out|timeout)\b
      | usage:
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ERROR_LOOK: Final = 300  # characters: enough for brackets, labels and the first words

_NO_SUCH_TOOL: Final = re.compile(
    r"""
      "available_tools"
    | \b(?:unknown|no\ such|non-?existent|unrecogni[sz]ed)\ tool\b
    | \bthere\ is\ no\ tool\b
    | \btool\ \S{1,80}\ (?:was\ |is\ )?(?:not\ (?:found|available|defined)|does\ not\ exist|unknown)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def detect_stuck(calls: Sequence[ObservedCall], weights: Weights = DEFAULT_WEIGHTS) -> Finding | None:
    """Say whether the run is stuck now, after the last of `calls`.

    Only the last `weights.window` calls are looked at, so it may be asked after every call of a long run. Which calls
    came before them does not change the answer.

    Args:
        calls: The calls of the run that have their results, oldest first.
        weights: How much each sign counts. The defaults are meant to be right.

    Returns:
        What the run is stuck in, or None. Never raises for what a call's texts hold.
    """
    start = max(0, len(calls) - weights.window)
    window = [_Look(index, calls[index]) for index in range(start, len(calls))]
    if not window or window[-1].call.polling:
        return None
    watched = _watched(window)
    return _unknown_tools(watched, weights) or _cycle(watched) or _nothing_new(watched, weights)


def reads_as_error(result: str) -> bool:
    """Whether a result says by its first words that the call failed, as tools do that have no other way to say it."""
    return _READS_AS_ERROR.match(result[:_ERROR_LOOK]) is not None


class _Look:
    """One call of the window, with what can be told about it; the dearer answers are worked out once, when asked."""

    def __init__(self, index: int, call: ObservedCall) -> None:
        self.index = index
        self.call = call
        self.failed = call.is_error or reads_as_error(call.result)
        self._arguments: str | None = None
        self._result: str | None = None

    @property
    def arguments(self) -> str:
        if self._arguments is None:
            self._arguments = _canonical(self.call.arguments)
        return self._arguments

    @property
    def result(self) -> str:
        if self._result is None:
            self._result = _COUNTS_ONLY.sub("#", self.call.result.strip())
        return self._result

    def same_result(self, other: "_Look") -> bool:
        return self.call.result == other.call.result or self.result == other.result

    def same_call(self, other: "_Look") -> bool:
        if self.call.name != other.call.name:
            return False
        return self.call.arguments == other.call.arguments or self.arguments == other.arguments

    def same(self, other: "_Look") -> bool:
        return self.same_call(other) and self.same_result(other)

    @property
    def tool_missing(self) -> bool:
        return self.failed and _NO_SUCH_TOOL.search(self.call.result) is not None


def _canonical(arguments: str) -> str:
    """The same text for the same JSON value; text that is not JSON, stripped."""
    text = arguments.strip()
    try:
        return msgspec.json.encode(msgspec.json.decode(text or "{}"), order="deterministic").decode()
    except (ValueError, RecursionError):
        return text


def _watched(window: Sequence[_Look]) -> list[_Look]:
    """The calls that are not polling, from the last moment on at which polling showed a change."""
    polls: list[_Look] = []
    watched: list[_Look] = []
    for look in window:
        if not look.call.polling:
            watched.append(look)
        elif not any(look.same(poll) for poll in polls):
            watched.clear()
            polls.append(look)
    return watched


def _unknown_tools(watched: Sequence[_Look], weights: Weights) -> Finding | None:
    streak = watched[-weights.unknown_tools :]
    if len(streak) < weights.unknown_tools or not all(look.tool_missing for look in streak):
        return None
    return _finding("unknown_tool", streak)


def _cycle(watched: Sequence[_Look]) -> Finding | None:
    """The shortest cycle of at least two different calls that ends the window, if it was gone through twice."""
    for period in range(2, len(watched) // 2 + 1):
        latest, before = watched[-period:], watched[-2 * period : -period]
        if all(a.same(b) for a, b in zip(latest, before, strict=True)):
            if any(not look.same(latest[0]) for look in latest):
                return _finding("cycle", [*before, *latest])
            return None
    return None


def _nothing_new(watched: Sequence[_Look], weights: Weights) -> Finding | None:
    """Walk back from the latest call until one brought something, and add up what the others weigh."""
    points = 0
    streak: list[_Look] = []
    sources: list[_Look] = []
    for position in range(len(watched) - 1, -1, -1):
        look, earlier = watched[position], watched[:position]
        same = [other for other in earlier if look.same(other)]
        if same:
            points += weights.repeated if len(same) == 1 else weights.again
            sources += same
        elif look.failed:
            known = any(other.failed and look.same_result(other) for other in earlier)
            points += weights.known_error if known else weights.fresh_error
        else:
            break
        streak.append(look)
    if points < weights.enough:
        return None
    shown = sorted({look.index: look for look in [*streak, *sources]}.values(), key=lambda look: look.index)
    if all(look.same(shown[0]) for look in shown):
        return _finding("repeat", shown)
    if all(look.failed for look in shown):
        return _finding("errors", shown)
    return _finding("nothing_new", shown)


def _finding(kind: FindingKind, looks: Sequence[_Look]) -> Finding:
    names = list(dict.fromkeys(look.call.name for look in looks))
    return Finding(kind=kind, calls=tuple(look.index for look in looks), message=_message(kind, len(looks), names))


def _message(kind: FindingKind, count: int, names: Sequence[str]) -> str:
    tools = ", ".join(names)
    match kind:
        case "repeat":
            return (
                f"You called {tools} {count} times with the same arguments and got the same result each time. "
                "It will not change: use what it says, call it differently, or take another way."
            )
        case "cycle":
            return (
                f"You went through the same {count // 2} calls twice ({tools}), with the same results. "
                "Going round again will bring nothing: decide from what you have, or take another way."
            )
        case "errors":
            return (
                f"The last {count} calls of {tools} failed. Read what the errors say, check your assumptions about "
                "what exists, and take another way; or say what you cannot do and why."
            )
        case "unknown_tool":
            return f"You called tools that do not exist: {tools}. Call only the tools that you were given."
        case "nothing_new":
            return (
                f"Your last {count} calls ({tools}) brought nothing new: each gave an error or what it had given "
                "before. Decide from what you have, or take another way."
            )
        case "polling":
            return f"You have called {tools} again and again, and the answer has not changed."
        case _:
            assert_never(kind)
