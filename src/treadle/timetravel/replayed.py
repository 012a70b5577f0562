"""Replayed: what a replay of a run has shown, as data and in words."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from treadle.carried import Made, as_it_was
from treadle.timetravel.differences import Change, Difference, plain


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay of a run has shown.

    Attributes:
        run_id: the run.
        agent: the name of the agent that decided anew; None if the journal alone was looked at.
        events: how many events were gone through; `decided`, how many of them were decided anew and came out the same.
        changed: what of the agent is other than what the run began with; nothing of that is a difference by itself.
        difference: the first event that comes out otherwise; None if none does.
        below: the replays of the runs that worked for it.
    """

    run_id: str
    agent: str | None
    events: int
    decided: int
    changed: tuple[Change, ...] = ()
    difference: Difference | None = None
    below: "tuple[Replay, ...]" = field(default=())

    @property
    def same(self) -> bool:
        """Whether it comes out as recorded, with all runs below it."""
        return self.difference is None and all(one.same for one in self.below)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """The first difference of each run that has one, those of the runs below it before its own."""
        found = [difference for one in self.below for difference in one.differences]
        return (*found, *([] if self.difference is None else [self.difference]))

    def lines(self) -> Iterator[str]:
        """What it has shown, in words."""
        by = "its journal alone" if self.agent is None else f"agent {self.agent}"
        if self.same:
            runs = sum(1 for _ in self._runs())
            more = f" and {runs - 1} run{'' if runs == 2 else 's'} below it" if runs > 1 else ""
            decided = sum(one.decided for one in self._runs())
            yield f"run {self.run_id}{more}: as recorded ({self.events} events, {decided} decided anew by {by})"
        for one in self._runs():
            for change in one.changed:
                yield f"  the agent of run {one.run_id} is another: {change}"
        for difference in self.differences:
            yield from difference.lines()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """It as plain data for JSON."""
        return {
            "run_id": self.run_id,
            "agent": self.agent,
            "same": self.same,
            "events": self.events,
            "decided": self.decided,
            "changed": [plain(change) for change in self.changed],
            "difference": None if self.difference is None else plain(self.difference),
            "below": [one.to_dict() for one in self.below],
        }

    def require(self) -> "Replay":
        """This replay, if nothing differs.

        Raises:
            ReplayDiffers: something does; says what.
        """
        if not self.same:
            raise ReplayDiffers(self)
        return self

    def _runs(self) -> "Iterator[Replay]":
        yield self
        for one in self.below:
            yield from one._runs()


class ReplayDiffers(AssertionError):
    """A run does not come out as it was recorded. `replay` says where."""

    def __init__(self, replay: Replay) -> None:
        super().__init__(str(replay))
        self.replay = replay

    def __reduce__(self) -> Made:
        return as_it_was(self)
