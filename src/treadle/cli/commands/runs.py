"""`treadle runs`: the runs in the journal."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, get_args

import click
from click.core import ParameterSource
from msgspec.structs import replace

from treadle.cli import completion
from treadle.cli.commands.runs_delete import delete, prune
from treadle.cli.commands.runs_export import export, import_
from treadle.cli.moments import in_order, moment
from treadle.cli.storage import journal_named, journal_option, opened
from treadle.cli.table import print_table
from treadle.cli.terminal import console, note, print_json, prose, shorten
from treadle.cli.words import OneOf
from treadle.journal import Journal, JournalDamaged, RunInfo, Stuck, Wanted, stuck_runs
from treadle.journal.addresses import without_password
from treadle.journal.families import every
from treadle.journal.ones_own import page_of, read_of, standing_of
from treadle.journal.standing import Standing, kept_as, standing

_WANTED = (
    click.option("--status", "stands", type=OneOf(get_args(Standing)), help="Those that stand so."),
    click.option(
        "--agent", metavar="NAME", shell_complete=completion.agents_of_runs, help="Those of the agent of that name."
    ),
    click.option(
        "--model",
        metavar="NAME",
        shell_complete=completion.models_of_runs,
        help="Those that were started with that model.",
    ),
    click.option("--since", metavar="TIME", type=moment, help="Those that began then or later: a date, or 2h, 7d."),
    click.option("--until", metavar="TIME", type=moment, help="Those that began before that."),
    click.option("--search", "text", metavar="TEXT", default="", help="Those with it in their question or id."),
)


def _wanted(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options that say which runs are meant."""
    for option in reversed(_WANTED):
        command = option(command)
    return command


@click.group(invoke_without_command=True, short_help="List the runs in the journal, newest first.")
@journal_option
@_wanted
@click.option("--stuck", is_flag=True, help="Those that should go on and that nobody drives, and why.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many at most.")
@click.option("--json", "as_list", is_flag=True, help="Print a JSON list.")
@click.pass_context
def runs(
    context: click.Context,
    /,
    journal: str | None,
    stands: Standing | None,
    stuck: bool,
    limit: int,
    as_list: bool,
    **options: Any,
) -> int:
    """List the runs in the journal, newest first.

    The status is "running" for a run that is under way, or whose process died; "damaged" for one that cannot be read,
    which is told below the list with what is wrong; else why it ended or what it waits for. Options narrow the list to
    the runs for which all of them hold.
    """
    if context.invoked_subcommand is not None:
        _require_no_filter(context)
        # Said before the command's name, it is meant for the command.
        context.obj = journal
        return 0
    in_order(options["since"], options["until"])
    wanted = Wanted(**options)
    any_run = stands is None and wanted == Wanted()
    if stuck:
        return _stuck(journal, limit, any_run, as_list)
    found = asyncio.run(_found(journal, limit, wanted, stands))
    if as_list:
        print_json([_as_json(info) for info in found])
        return 0
    if not found:
        note(f"no {'' if any_run else 'such '}runs yet in {without_password(journal_named(journal))}")
        return 0
    most = 300 if console().is_terminal else 60
    rows = [
        (info.run_id, _when(info.started_at), status(info), info.steps, "" if info.damage else info.tool_calls,
         info.model, shorten(info.question, most))
        for info in found
    ]  # fmt: skip
    print_table(
        ["run", "started", "status", "steps", "calls", "model", "question"],
        rows,
        right=["steps", "calls"],
        whole=["started", "status"],
        cut=["question"],
    )
    for info in found:
        if info.damage:
            note(prose(f"run {info.run_id} is damaged and cannot be read: {info.damage}", err=True))
    return 0


def _require_no_filter(context: click.Context) -> None:
    """Refuses what narrows the list where a command follows that would go by none of it, such as one that deletes."""
    given = [
        one.opts[0]
        for one in context.command.params
        if one.name not in (None, "journal") and context.get_parameter_source(one.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(
            f"{' and '.join(given)} before {context.invoked_subcommand} would not count: it is for the list of runs; "
            f"treadle runs {context.invoked_subcommand} --help says what there is"
        )


def _stuck(journal: str | None, limit: int, any_run: bool, as_list: bool) -> int:
    """Prints the runs that nobody drives."""
    if not any_run:
        raise click.UsageError("--stuck looks at all runs; give it without --status, --agent, --model and the like")
    found = asyncio.run(_left(journal, limit))
    if as_list:
        print_json([{**_as_json(one.run), "why": one.why, "quiet": round(one.seconds)} for one in found])
    elif not found:
        note(f"no run is stuck in {without_password(journal_named(journal))}")
    else:
        rows = [(one.run.run_id, _when(one.run.updated_at), one.run.status, one.run.steps, one.why) for one in found]
        print_table(["run", "last event", "status", "steps", "why"], rows, right=["steps"], whole=["last event"])
    return 0


async def _left(journal: str | None, limit: int) -> list[Stuck]:
    async with opened(journal) as kept:
        return [] if kept is None else await stuck_runs(kept, limit)


for _command in (export, import_, delete, prune):
    runs.add_command(_command)


async def _found(journal: str | None, limit: int, wanted: Wanted, stands: Standing | None) -> list[RunInfo]:
    async with opened(journal) as kept:
        if kept is None:
            return []
        if stands is None:
            return [await _read(info, kept) for info in await page_of(kept, limit, None, wanted)]
        # Only who reads a run knows that it is damaged: for those that are, all are read.
        wanted = replace(wanted, status=None if stands == "damaged" else kept_as(stands))
        found: list[RunInfo] = []
        async for line in every(kept, wanted):
            if stands in ("damaged", standing(line)) and standing(info := await _read(line, kept)) == stands:
                found.append(info)
                if len(found) == limit:
                    break
        return found


async def _read(info: RunInfo, journal: Journal) -> RunInfo:
    """The line of a run after a look at all of it: a list looks at its ends only."""
    try:
        standing_of(await read_of(journal, info.run_id))
    except JournalDamaged as error:
        (one,) = error.damage
        return info.damaged(f"event {one.event}: {one.why}")
    return info


def status(info: RunInfo) -> str:
    """How a run stands, in a word: why it ended, or that it waits, runs or is damaged."""
    return info.stop.reason if info.stop is not None and not info.damage else info.status


def _when(at: float) -> str:
    try:
        return time.strftime("%m-%d %H:%M", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        # No clock gave that: it is what damage has left.
        return "unknown"


def _as_json(info: RunInfo) -> dict[str, Any]:
    return {
        "run_id": info.run_id,
        "agent": info.agent,
        "model": info.model,
        "question": info.question,
        "status": standing(info),
        "stop": info.stop,
        "started_at": info.started_at,
        "updated_at": info.updated_at,
        "steps": info.steps,
        "tool_calls": None if info.damage else info.tool_calls,
        "usage": info.usage,
        "cost": info.cost,
        "events": info.events,
        "damage": info.damage,
    }
