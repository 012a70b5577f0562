"""`treadle submit`: a run that a worker is to drive."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import click

from treadle.cli import completion
from treadle.cli.agents import keeping, load_agent
from treadle.cli.next_command import NextCommand, journal_words
from treadle.cli.queues import queue_named
from treadle.cli.storage import find_run, journal_at
from treadle.cli.terminal import note
from treadle.cli.waiting import Waiting, call_and_value, read_value


@click.command(short_help="Have a worker answer a question, or go on with a run.")
@click.argument("prompt", nargs=-1)
@click.option(
    "--agent",
    "-a",
    required=True,
    metavar="MODULE[:NAME]",
    shell_complete=completion.agents,
    help="Your agent, the same as the workers': module:name or path.py:name.",
)
@click.option("--journal", metavar="URL", help="The journal that the workers share (TREADLE_JOURNAL).")
@click.option("--queue", metavar="URL", help="postgresql://… or temporal://HOST:PORT. Default: the journal's database.")
@click.option("--key", metavar="NAME", help="In whose turn it runs, such as a user's or a tenant's.")
@click.option("--priority", type=int, default=0, show_default=True, help="Higher goes first.")
@click.option("--at", metavar="TIME", help="When to begin it, such as 2027-01-01T07:00+01:00.")
@click.option("--run-id", metavar="ID", help="A name of your own; submitting it again begins no second run.")
@click.option("--user", metavar="NAME", help="Whose run it is, for budgets that each user has.")
@click.option("--again", metavar="RUN", help="Queue this run again: with what was decided, or for another worker.")
@click.option("--approve", multiple=True, metavar="CALL", help="With --again: allow a call that waits; repeatable.")
@click.option(
    "--deny", multiple=True, metavar="CALL[=REASON]", help="With --again: refuse a call that waits; repeatable."
)
@click.option(
    "--result", "results", multiple=True, metavar="CALL=VALUE",
    help="With --again: the result of a call that waits; repeatable.",
)  # fmt: skip
@click.option("--message", metavar="TEXT", help="With --again: something to say to the run.")
def submit(
    prompt: tuple[str, ...],
    agent: str,
    journal: str | None,
    queue: str | None,
    key: str | None,
    priority: int,
    at: str | None,
    run_id: str | None,
    user: str | None,
    again: str | None,
    **decided: Any,
) -> int:
    """Record a run with the question PROMPT and queue it for a worker; its id is printed.

    Nothing of it happens in this process: `treadle worker` carries it out. `treadle show RUN` tells how it stands, and
    what it waits for.
    """
    if bool(prompt) == (again is not None):
        raise click.UsageError("give a question, or --again RUN")
    if again is None and any(decided.values()):
        raise click.UsageError("--approve, --deny, --result and --message are for a run that is there: --again RUN")
    kept = {"--key": key, "--priority": priority, "--at": at, "--run-id": run_id}
    if again is not None and (beside := [option for option, value in kept.items() if value]):
        raise click.UsageError(
            f"{' and '.join(beside)} cannot be changed of a run that is there; leave it out with --again"
        )
    begins = _time(at)

    async def submitted() -> str:
        async with journal_at(journal) as kept, queue_named(queue, journal) as to:
            one = keeping(load_agent(agent), kept)
            if again is not None:
                name = await find_run(kept, again)
                waiting = await Waiting.of(await kept.read(name), kept)
                return await one.resubmit(name, to=to, user=user, **_decided(waiting, **decided))
            return await one.submit(
                " ".join(prompt), to=to, key=key, priority=priority, at=begins, run_id=run_id, user=user
            )

    queued = asyncio.run(submitted())
    click.echo(queued)
    # A clock that is set forward lacks an hour, one that is set back has it twice: which moment it is has to be said.
    when = "" if begins is None else f"at {begins.isoformat()} at the earliest "
    show = NextCommand((), journal_words(journal)).line("show", queued)
    note(f"{when}a worker goes on with it; how it stands: {show}")
    return 0


def _decided(
    waiting: Waiting, approve: tuple[str, ...], deny: tuple[str, ...], results: tuple[str, ...], message: str | None
) -> dict[str, Any]:
    """What was decided of the run's calls, as `agent.resubmit` takes it."""
    whole = {one for one in deny if "=" not in one or waiting.find(one) is not None}
    refused = dict((one, "") if one in whole else call_and_value(one, waiting.find, "--deny") for one in deny)
    told = [call_and_value(one, waiting.find, "--result") for one in results]
    given = {call: read_value(value) for call, value in told}
    if len(refused) < len(deny) or len(given) < len(results):
        raise click.UsageError("a call is decided on twice: say it once with --deny, or --result")
    return {"approve": approve, "deny": refused, "results": given, "message": message}


def _time(given: str | None) -> datetime | None:
    """The time in `given`; one without a zone is meant as the clock on the wall here."""
    if given is None:
        return None
    try:
        # By way of its moment: of an hour that the clock does not have, Pythons before 3.12 make another by themselves.
        return datetime.fromtimestamp(datetime.fromisoformat(given).timestamp(), UTC).astimezone()
    except (ValueError, OverflowError, OSError) as error:
        raise click.BadParameter(f"{given} is no time such as 2027-01-01T07:00", param_hint="'--at'") from error
