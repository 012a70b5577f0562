"""`treadle runs delete` and `treadle runs prune`: runs are removed for good, with those that work for them."""

import asyncio
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import get_args

import click

from treadle.cli import completion
from treadle.cli.exits import ExitCode
from treadle.cli.moments import age
from treadle.cli.storage import find_run, journal_named, journal_option, no_runs, opened
from treadle.cli.terminal import note
from treadle.cli.words import OneOf
from treadle.drivers.lease import may_hold_money, undriven
from treadle.journal import Journal, JournalDamaged, RunHeld, RunInfo, SqliteJournal, UnknownRun
from treadle.journal.addresses import without_password
from treadle.journal.families import delete_family, families, family
from treadle.journal.ones_own import read_of
from treadle.journal.standing import ENDED, Standing, standing

_TOGETHER = 200
"""Runs that are deleted at once: they share a commit."""

_LOOKS, _LOOK = 20, 0.05
"""How often it is looked whether a run that somebody has is free, or gone, and the seconds between."""

_YES = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command(short_help="Delete runs, with those that work for them.")
@click.argument("run", shell_complete=completion.runs, nargs=-1, required=True)
@journal_option
@_YES
@click.pass_context
def delete(context: click.Context, run: tuple[str, ...], journal: str | None, yes: bool) -> int:
    """Delete runs for good, with the runs of other agents that work for them.

    RUN is a run's id, a beginning of it that no other run has, or "last". Of what is deleted no byte is left in the
    journal's file. You are asked first; without a terminal, say --yes.
    """
    return asyncio.run(_delete(run, journal or context.obj, yes))


@click.command(short_help="Delete old runs.")
@journal_option
@click.option(
    "--older-than", "for_long", metavar="AGE", type=age, required=True, help="How long nothing came to it: 90d."
)
@click.option(
    "--status", "statuses", type=OneOf(get_args(Standing)), multiple=True, default=ENDED,
    show_default=True, help="Those that stand so; may be said more than once.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only print which they would be.")
@_YES
@click.pass_context
def prune(
    context: click.Context,
    journal: str | None,
    for_long: float,
    statuses: tuple[Standing, ...],
    dry_run: bool,
    yes: bool,
) -> int:
    """Delete runs to which nothing has come for a time, with the runs of other agents that work for them.

    A run that works for another one goes and stays with it; where that one was deleted before, it counts as cancelled.
    Runs that wait or may be under way are only deleted if --status says so. Their ids are printed.
    """
    return asyncio.run(_prune(journal or context.obj, time.time() - for_long, statuses, (dry_run, yes)))


async def _delete(given: Sequence[str], named: str | None, yes: bool) -> int:
    async with opened(named) as journal:
        if journal is None:
            raise no_runs(named, given[0])
        found = [await family(journal, await find_run(journal, one)) for one in given]
        # The id of a run that works for another has a dot.
        if any("." in runs[0] for runs in found):
            await _refuse_parts(journal, {run_id for runs in found for run_id in runs})
        meant = list(dict.fromkeys(run_id for runs in found for run_id in runs))
        if _is_agreed(meant, yes):
            await _gone(journal, meant)
    return ExitCode.FINISHED


async def _refuse_parts(journal: Journal, meant: set[str]) -> None:
    """Refuse to take a run that works for another one away from that, which would have it done anew if it went on.

    Raises:
        click.UsageError: the one at the top has not ended, and stays.
    """
    for runs in await families(journal):
        top, parts = runs[0], [line.run_id for line in runs if line.run_id in meant]
        if parts and top.run_id not in meant and top.status not in ("finished", "damaged"):
            raise click.UsageError(f"run {parts[0]} works for run {top.run_id}, which has not ended: delete that one")


async def _prune(named: str | None, before: float, statuses: Sequence[Standing], how: tuple[bool, bool]) -> int:
    dry_run, yes = how
    async with opened(named) as journal:
        if journal is None:
            note(f"no runs yet in {without_password(journal_named(named))}")
            return ExitCode.FINISHED
        old = [runs for runs in await families(journal) if await _is_meant(journal, runs, before, statuses)]
        run_ids = [line.run_id for runs in old for line in runs]
        for run_id in run_ids:
            click.echo(run_id)
        if not run_ids:
            note("no such run is that old")
        elif dry_run:
            note(f"{_count(run_ids)} would be deleted")
        elif _is_agreed(run_ids, yes):
            await _gone(journal, run_ids, {line.run_id: line for line, *_ in old})
    return ExitCode.FINISHED


async def _is_meant(journal: Journal, runs: Sequence[RunInfo], before: float, statuses: Sequence[Standing]) -> bool:
    """Whether a family is to go: the first of it stands as was asked for, and nothing has come to any of it since.

    Only who reads a run knows that it is damaged. One that is stays, as what shows it, unless it is asked for.
    """
    stands = {standing(runs[0])}
    if runs[0].parent is not None:
        # The run that it worked for was deleted without it, so that nobody can have it go on.
        stands.add("cancelled")
    if any(line.updated_at >= before for line in runs) or not {*stands, "damaged"} & {*statuses}:
        return False
    for line in runs:
        try:
            await read_of(journal, line.run_id)
        except JournalDamaged:
            if "damaged" not in statuses:
                note(f"run {line.run_id} is damaged, and stays: --status damaged, or `treadle runs delete`, deletes it")
            return "damaged" in statuses
        except UnknownRun:
            return False
    return bool(stands & {*statuses})


def _is_agreed(run_ids: Sequence[str], yes: bool) -> bool:
    """Whether the runs are to be deleted; asks, but for `yes`."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise click.UsageError(f"{_count(run_ids)} would be deleted for good: say --yes, or do it at a terminal")
    named = f"{run_ids[0]}{', …' if run_ids[1:] else ''}"
    agreed = _agreed(f"Delete {_count(run_ids)} for good ({named})?")
    if not agreed:
        note("nothing was deleted")
    return agreed


async def _gone(journal: Journal, run_ids: Sequence[str], shown: Mapping[str, RunInfo] | None = None) -> None:
    """Deletes the runs, each of which nobody has go on meanwhile.

    Args:
        journal: that has them.
        run_ids: the runs.
        shown: how those at the top stood; one to which something has come since stays. None to take them as they are.

    Raises:
        click.UsageError: some are driven, or would leave money set aside, and stay.
    """
    under: dict[str, list[str]] = {}
    for run_id in run_ids:
        under.setdefault(run_id.partition(".")[0], []).append(run_id)
    tops, deleted, stay = [*under], 0, list[str]()
    for at in range(0, len(tops), _TOGETHER):
        some = tops[at : at + _TOGETHER]
        for found in await asyncio.gather(*[_one_gone(journal, top, under[top], shown) for top in some]):
            if isinstance(found, str):
                stay.append(found)
            else:
                deleted += found
    if isinstance(journal, SqliteJournal):
        await journal.compact()
    note(f"{deleted} deleted" if deleted != len(run_ids) else f"{_count(run_ids)} deleted")
    if stay:
        raise click.UsageError("; ".join(stay))


async def _one_gone(journal: Journal, top: str, runs: Sequence[str], shown: Mapping[str, RunInfo] | None) -> int | str:
    """How many of these runs, which are `top` or work for it, were deleted; or why none is."""
    looks = _LOOKS
    while True:
        try:
            async with undriven(journal, top):
                if shown is not None and top in shown and await _has_gone_on(journal, shown[top]):
                    note(f"run {top} is not as it was any more, and stays")
                    return 0
                if await may_hold_money(journal, top, runs):
                    return (
                        f"run {top} was left in the middle under a budget, and what that set aside for it, if "
                        "anything, would stay so for ever: have it go on, or end it in Python with "
                        f"agent.cancel({top!r}), and the budget= that it was given if it was, and then delete it"
                    )
                return await delete_family(journal, runs)
        except RunHeld as held:
            # Somebody has it go on, or deletes it as well.
            looks -= 1
            if not looks:
                who = "" if held.holder is None else f" in {held.holder}"
                return f"run {top} is under way{who}: end it there first, or wait until it has ended"
        except UnknownRun:
            return await delete_family(journal, runs)
        await asyncio.sleep(_LOOK)


async def _has_gone_on(journal: Journal, line: RunInfo) -> bool:
    """Whether something has come to a run since, or it is another of that name."""
    try:
        last = await read_of(journal, line.run_id, line.events - 1)
    except JournalDamaged:
        return False
    return [event.at for event in last] != [line.updated_at]


def _agreed(question: str) -> bool:
    """What a person says; Ctrl-C ends the command, which an event loop would only be told when it has its turn."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return click.confirm(question, err=True)
    finally:
        signal.signal(signal.SIGINT, before)


def _count(run_ids: Sequence[str]) -> str:
    return f"{len(run_ids)} run{'' if len(run_ids) == 1 else 's'}"
