"""Figures: what statistics tell of many runs. `statistics.py` reckons them."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Spread:
    """How large something was, over many: their sum, the 50th and 95th percentile, and the largest.

    A percentile is the smallest value that at least so many of them do not exceed (nearest rank).
    """

    total: float
    p50: float
    p95: float
    most: float


@dataclass(frozen=True, slots=True)
class Money:
    """Dollars over many.

    Attributes:
        total: their sum; None if any of them is not known.
        p50, p95, most: of those that are known; None if none is, or there are none.
        unknown: how many are not known.
    """

    total: Decimal | None
    p50: Decimal | None
    p95: Decimal | None
    most: Decimal | None
    unknown: int


@dataclass(frozen=True, slots=True)
class Group:
    """Figures over what has one name.

    Attributes:
        name: of a model, an agent, a tool or a day (`2026-11-22`, in local time); empty if nobody knows it any more.
        count: how many model calls (of a model), runs (of an agent, those below others too, or a day) or calls (of a
            tool) there were.
        failed: how many of them failed: attempts at the model, runs that ended without their task being done, calls
            answered with an error.
        open: how many of the runs wait or are under way, and so have neither finished nor failed; 0 of models and
            tools.
        tokens, cost: of each, but for attempts at a model that took nothing; None of a tool.
        seconds: that each took; None if that is known of none. Of a model those of its replies, not of what failed and
            was waited for before them; of a tool those that it worked, not the waits for people, nor what a crash cut
            off.
    """

    name: str
    count: int
    failed: int
    tokens: Spread | None
    cost: Money | None
    seconds: Spread | None
    open: int = 0


@dataclass(frozen=True, slots=True)
class Statistics:
    """Figures over many runs.

    Attributes:
        runs: how many; runs that work for others are not counted beside those.
        ended: how many ended for each reason; "running", "waiting" and "damaged" are among them. A damaged run counts
            for nothing else; what one took that worked for another is told by that, or not known.
        steps, tool_calls, tokens, seconds, cost: of a run, with those below it; seconds under way, pauses not counted.
            None if there is no run.
        by_model, by_agent, by_tool, by_day: taken apart, the largest part first, days in their order.
    """

    runs: int
    ended: Mapping[str, int]
    steps: Spread | None
    tool_calls: Spread | None
    tokens: Spread | None
    seconds: Spread | None
    cost: Money | None
    by_model: tuple[Group, ...]
    by_agent: tuple[Group, ...]
    by_tool: tuple[Group, ...]
    by_day: tuple[Group, ...]
