"""Clock: what time it is for a run, and what day it is for a budget. Nothing else in the drivers looks at a clock."""

import time


class Clock:
    """The times of a run's events in this process: those of the wall clock when it was begun, and steady from there.

    A wall clock can be set: an hour on, or a year back. The time that a run has been under way must not jump with it,
    and its events are in the order of their times. So the wall clock is looked at once, when a process begins a run or
    takes it up, and from there on the seconds are counted by the monotonic clock. It stands still while the machine
    sleeps, on Linux and macOS: so does the run.

    Args:
        after: no time is before this one, which is that of the run's last event; Unix seconds.
        above: the clock of the run that it works for, which it goes with.

    Attributes:
        began: what it told first.
    """

    __slots__ = ("_ahead", "began")

    def __init__(self, after: float = 0.0, above: "Clock | None" = None) -> None:
        now = time.time() if above is None else above.now()
        self.began = max(now, after)
        self._ahead = self.began - time.monotonic()

    def now(self) -> float:
        """The time, in Unix seconds; never before one that it has told."""
        return self._ahead + time.monotonic()

    def on_the_wall(self, at: float) -> float:
        """What the wall clock, as it is set now, shows when this clock shows `at`."""
        return time.time() + at - self.now()


def steady() -> float:
    """Seconds that only ever go on, from a beginning of this machine's own: to tell how long ago something was."""
    return time.monotonic()


def day(at: float | None = None) -> str:
    """The day by UTC, such as "2026-11-22", of a time in Unix seconds; today, by the wall clock, without one.

    Budgets have real days: this does not stand still while the machine sleeps, and follows the clock when it is set.
    """
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() if at is None else at))
