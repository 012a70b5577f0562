"""`treadle runs`: the runs in the journal."""

import asyncio
import time
from typing import Any

import click

from treadle.cli.storage import journal_named, journal_option, opened, told
from treadle.cli.terminal import console, note, print_json, print_table, shorten
from treadle.journal import Journal, JournalDamaged, RunInfo
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.fold import fold_all


@click.command(short_help="List the runs in the journal, newest first.")
@journal_option
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many at most.")
@click.option("--json", "as_list", is_flag=True, help="Print a JSON list.")
def runs(journal: str | None, limit: int, as_list: bool) -> int:
    """List the runs in the journal, newest first.

    The status is "running" for a run that is under way, or whose process died; "damaged" for one that cannot be read,
    which is told below the list with what is wrong; else why it ended or what it waits for.
    """
    found = asyncio.run(_found(journal, limit))
    if as_list:
        print_json([_as_json(info, calls) for info, calls in found])
        return 0
    if not found:
        note(f"no runs yet in {told(journal_named(journal))}")
        return 0
    out = console()
    # A run a line: the question gets what a terminal has left.
    room = max(12, out.width - 70) if out.is_terminal else 60
    rows = [
        (info.run_id, _when(info.started_at), status(info), info.steps, "" if calls is None else calls, info.model,
         shorten(info.question, room))
        for info, calls in found
    ]  # fmt: skip
    print_table(
        ["run", "started", "status", "steps", "calls", "model", "question"],
        rows,
        right=["steps", "calls"],
        whole=["started", "status", "model", "question"],
    )
    for info, _ in found:
        if info.damage:
            note(f"run {info.run_id} is damaged and cannot be read: {info.damage}")
    return 0


async def _found(journal: str | None, limit: int) -> list[tuple[RunInfo, int | None]]:
    """The runs, and how many tool calls each has made; None if it cannot be read."""
    async with opened(journal) as kept:
        if kept is None:
            return []
        return [await _read(info, kept) for info in await kept.list(limit)]


async def _read(info: RunInfo, journal: Journal) -> tuple[RunInfo, int | None]:
    try:
        return info, fold_all(await journal.read(info.run_id)).tool_calls
    except JournalDamaged as error:
        (one,) = error.damage
        return info.damaged(f"event {one.event}: {one.why}"), None
    except IllegalEvent as error:
        return info.damaged(str(error)), None


def status(info: RunInfo) -> str:
    """How a run stands, in a word: why it ended, or that it waits, runs or is damaged."""
    return info.stop.reason if info.stop is not None and not info.damage else info.status


def _when(at: float) -> str:
    try:
        return time.strftime("%m-%d %H:%M", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        # No clock gave that: it is what damage has left.
        return "unknown"


def _as_json(info: RunInfo, calls: int | None) -> dict[str, Any]:
    return {
        "run_id": info.run_id,
        "agent": info.agent,
        "model": info.model,
        "question": info.question,
        "status": info.status,
        "stop": info.stop,
        "started_at": info.started_at,
        "updated_at": info.updated_at,
        "steps": info.steps,
        "tool_calls": calls,
        "events": info.events,
        "damage": info.damage,
    }
