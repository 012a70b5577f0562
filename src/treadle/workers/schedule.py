"""Schedule: a run that is begun again and again, at times that a cron line says."""

from datetime import UTC, datetime

from croniter import croniter  # type: ignore[import-untyped]
from msgspec import Struct

from treadle.drivers.purse.budget import checked_name
from treadle.kernel.errors import Misuse


class Schedule(Struct, frozen=True):
    """A run that is begun at each time of `cron`, once in all, however many workers know of it.

    Attributes:
        cron: the times in UTC, as five fields: minute, hour, day, month, day of the week ("0 7 * * 1-5").
        agent: the name of the agent.
        input: the question.
        name: what its runs are called, before their time; they run one after another.
        priority: as in `agent.submit`.

    Raises:
        Misuse: a name is none, there is no question, or the line is not cron's.
    """

    cron: str
    agent: str
    input: str
    name: str
    priority: int = 0

    def __post_init__(self) -> None:
        for name in ("cron", "agent", "input", "name"):
            checked_name(f"Schedule({name}=…)", getattr(self, name))
        if not croniter.is_valid(self.cron):
            raise Misuse(f'Schedule(cron=…) takes a line such as "0 7 * * 1-5"; it was given {self.cron!r:.100}')
        if "/" in self.name or "." in self.name:
            raise Misuse(f"Schedule(name=…) begins the ids of runs, which have no / and no dot; it was {self.name!r}")

    def run_id(self, timestamp: int) -> str:
        """What the run of that time, in Unix seconds, is called."""
        return f"{self.name}-{datetime.fromtimestamp(timestamp, UTC):%Y%m%d-%H%M%S}"
