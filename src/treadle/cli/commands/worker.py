"""`treadle worker`: a process that drives the runs that were submitted."""

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import click

from treadle.agent import Agent
from treadle.cli import completion
from treadle.cli.agents import keeping, load_agent
from treadle.cli.exits import ExitCode
from treadle.cli.loading import load
from treadle.cli.queues import queue_named
from treadle.cli.signals import told_to_end
from treadle.cli.storage import journal_at
from treadle.cli.terminal import set_off

if TYPE_CHECKING:
    from treadle.workers import Schedule

_FIELDS = 5
"""A cron line's: minute, hour, day, month, day of the week."""


@click.command(short_help="Drive the runs that were submitted, until stopped.")
@click.option(
    "--agent",
    "-a",
    "agents",
    multiple=True,
    required=True,
    metavar="MODULE[:NAME]",
    shell_complete=completion.agents,
    help="An agent whose runs to drive: module:name or path.py:name; repeatable.",
)
@click.option("--journal", metavar="URL", help="The journal that the workers share (TREADLE_JOURNAL).")
@click.option("--queue", metavar="URL", help="postgresql://… or temporal://HOST:PORT. Default: the journal's database.")
@click.option(
    "--concurrency",
    "-c",
    multiple=True,
    metavar="[AGENT=]N",
    help="Runs under way at once in this worker, or of one agent in it; repeatable. Default: 10.",
)
@click.option("--per-key", type=click.IntRange(min=1), metavar="N", help="Runs of one key at once, on all workers.")
@click.option(
    "--heartbeat",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two signs of life; a worker silent for 1.25 of them counts as gone.",
)
@click.option(
    "--grace",
    type=click.FloatRange(min=0, min_open=True),
    default=25.0,
    show_default=True,
    metavar="SECONDS",
    help="For steps under way to end when it is told to stop.",
)
@click.option(
    "--schedule",
    "schedules",
    multiple=True,
    metavar='"NAME CRON QUESTION"',
    help='A run at times, by UTC: "morning 0 7 * * 1-5 What is overdue?"; repeatable.',
)
@click.option("--deps", metavar="MODULE:NAME", help="A function of a run's id that gives what its tools depend on.")
@click.option("--once", is_flag=True, help="End when nothing waits that is due.")
@click.option("--quiet", "-q", is_flag=True, help="Log warnings only.")
def worker(
    agents: tuple[str, ...],
    journal: str | None,
    queue: str | None,
    concurrency: tuple[str, ...],
    per_key: int | None,
    heartbeat: float,
    grace: float,
    schedules: tuple[str, ...],
    deps: str | None,
    once: bool,
    quiet: bool,
) -> int:
    """Drive the runs that were submitted for your agents, until SIGTERM or Ctrl-C.

    Then it takes no more, and each run pauses after its step for another worker to go on with. Have it started again
    when it ends with another code than 0: it has lost its database, say.
    """
    loaded = [load_agent(target) for target in agents]
    options: dict[str, Any] = {
        "concurrency": _concurrency(concurrency), "grace": grace,
        "deps": None if deps is None else load(deps, "--deps")[2],
    }  # fmt: skip
    if not (queue or "").startswith("temporal://"):
        planned = [_schedule(one, loaded[0].name) for one in schedules]
        options |= {"heartbeat": heartbeat, "schedules": planned, "once": once}
    elif schedules or once:
        raise click.UsageError("--schedule and --once are for a queue in PostgreSQL")
    logging.basicConfig(
        level=logging.WARNING if quiet else logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    return asyncio.run(_work(loaded, journal, queue, per_key, heartbeat, options))


async def _work(
    agents: list[Agent], journal: str | None, queue: str | None, per_key: int | None, heartbeat: float, options: Any
) -> int:
    from treadle.workers import QueueUnavailable, WorkerStopped
    from treadle.workers.deliveries import SILENT

    task = asyncio.current_task()

    def end(_: object) -> None:
        # Told again, it would be cut off in what it does to end.
        if task is not None and not task.cancelling():
            task.cancel()

    to = queue_named(queue, journal, per_key=per_key, heartbeat=heartbeat)
    with told_to_end(end):
        try:
            # Its runs are others' as soon as it counts as gone, and no later.
            async with journal_at(journal, SILENT * heartbeat) as kept, to:
                await to.work([keeping(agent, kept) for agent in agents], **options)
        except asyncio.CancelledError:
            return ExitCode.FINISHED
        except (QueueUnavailable, WorkerStopped) as error:
            click.echo(set_off(f"Error: {error}"), err=True)
            return ExitCode.INTERNAL_ERROR
    return ExitCode.FINISHED


def _concurrency(given: tuple[str, ...]) -> dict[str, int]:
    from treadle.workers.deliveries import DEFAULT

    found = {"": DEFAULT}
    for one in given:
        name, _, most = one.rpartition("=")
        if not most.isdecimal() or int(most) < 1:
            raise click.BadParameter(f"{one} is not N or AGENT=N", param_hint="'--concurrency'")
        found[name] = int(most)
    return found


def _schedule(given: str, agent: str) -> "Schedule":
    try:
        from treadle.workers import Schedule
    except ModuleNotFoundError as error:
        raise click.UsageError(str(error)) from error
    words = given.split(None, _FIELDS + 1)
    if len(words) < _FIELDS + 2:
        raise click.BadParameter(
            f'{given!r} is not a name, five cron fields and a question: "morning 0 7 * * 1-5 What is overdue?"',
            param_hint="'--schedule'",
        )
    return Schedule(cron=" ".join(words[1:-1]), agent=agent, input=words[-1], name=words[0])
