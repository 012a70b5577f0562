"""Schedule: a run that is begun again and again, at times that a cron line says."""

from datetime import UTC, datetime
from typing import Final

from croniter import CroniterBadDateError, croniter  # type: ignore[import-untyped]  # it has no types
from msgspec import Struct

from treadle.drivers.dispatch import own_run_id, queued_as, sent_name
from treadle.drivers.purse.budget import checked_name
from treadle.kernel.errors import Misuse

_FIELDS: Final = 5
"""Minute, hour, day, month, day of the week."""

_LONGEST: Final = 100
"""Bytes of a name; procrastinate has 128 characters for it and what it puts before."""


class Schedule(Struct, frozen=True):
    """A run that is begun at each time of `cron`, once in all, however many workers know of it.

    Attributes:
        cron: the times in UTC, as five fields: minute, hour, day, month, day of the week ("0 7 * * 1-5").
        agent: the name of the agent.
        input: the question.
        name: what its runs are called, before their time, and their key: under `per_key=1` they run one after another.
        priority: as in `agent.submit`.

    Raises:
        Misuse: a name is none that a queue takes, there is no question, the line is not cron's, with five fields and a
            time that comes, or the priority is no whole number.
    """

    cron: str
    agent: str
    input: str
    name: str
    priority: int = 0

    def __post_init__(self) -> None:
        for name in ("cron", "agent", "input", "name"):
            checked_name(f"Schedule({name}=…)", getattr(self, name))
        fields = self.cron.split()
        # What croniter takes an "R" for is drawn anew each time, so that no two workers would have the same times.
        by_chance = any(field[0] in "rR" for field in fields)
        if len(fields) != _FIELDS or by_chance or not croniter.is_valid(self.cron):
            raise Misuse(
                f'Schedule(cron=…) takes a line of five fields such as "0 7 * * 1-5"; it was given {self.cron!r:.100}'
            )
        try:
            croniter(self.cron, datetime.now(UTC)).get_next()
        except CroniterBadDateError:
            raise Misuse(f"Schedule(cron=…) takes times that come; {self.cron!r:.100} never does") from None
        own_run_id(self.run_id(0), "Schedule(name=…)")
        if len(self.name.encode()) > _LONGEST:
            raise Misuse(f"Schedule(name=…) takes {_LONGEST} bytes at most; it was given {self.name!r:.150}")
        sent_name("Schedule(agent=…)", self.agent)
        queued_as(self.name, self.priority, None)

    def run_id(self, timestamp: int) -> str:
        """What the run of that time, in Unix seconds, is called."""
        return f"{self.name}-{datetime.fromtimestamp(timestamp, UTC):%Y%m%d-%H%M%S}"
