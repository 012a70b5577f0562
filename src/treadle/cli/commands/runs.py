"""`treadle runs`: the runs in the journal."""

import asyncio
import time
from typing import Any

import click

from treadle.cli.storage import journal_option, journal_path, opened
from treadle.cli.terminal import console, note, print_json, print_table, shorten
from treadle.journal import RunInfo
from treadle.kernel.events import Event, ModelReplied
from treadle.kernel.fold import fold_all


@click.command(short_help="List the runs in the journal, newest first.")
@journal_option
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many at most.")
@click.option("--json", "as_list", is_flag=True, help="Print a JSON list.")
def runs(journal: str | None, limit: int, as_list: bool) -> int:
    """List the runs in the journal, newest first.

    The status is "running" for a run that is under way, or whose process died; else why it ended or what it waits for.
    """
    found = asyncio.run(_found(journal, limit))
    if as_list:
        print_json([_as_json(info, events) for info, events in found])
        return 0
    if not found:
        note(f"no runs yet in {journal_path(journal)}")
        return 0
    out = console()
    # A run a line: the question gets what a terminal has left.
    room = max(12, out.width - 70) if out.is_terminal else 60
    rows = [
        (info.run_id, _when(info.started_at), status(info), _steps(events), _calls(events), info.model,
         shorten(info.question, room))
        for info, events in found
    ]  # fmt: skip
    print_table(
        ["run", "started", "status", "steps", "calls", "model", "question"],
        rows,
        right=["steps", "calls"],
        whole=["started", "status", "model", "question"],
    )
    return 0


async def _found(journal: str | None, limit: int) -> list[tuple[RunInfo, list[Event]]]:
    async with opened(journal) as kept:
        if kept is None:
            return []
        return [(info, await kept.read(info.run_id)) for info in await kept.list(limit)]


def status(info: RunInfo) -> str:
    """How a run stands, in a word: why it ended, or that it waits or runs."""
    return info.stop.reason if info.stop is not None else info.status


def _steps(events: list[Event]) -> int:
    return sum(isinstance(event, ModelReplied) for event in events)


def _calls(events: list[Event]) -> int:
    return fold_all(events).tool_calls


def _when(at: float) -> str:
    return time.strftime("%m-%d %H:%M", time.localtime(at))


def _as_json(info: RunInfo, events: list[Event]) -> dict[str, Any]:
    return {
        "run_id": info.run_id,
        "agent": info.agent,
        "model": info.model,
        "question": info.question,
        "status": info.status,
        "stop": info.stop,
        "started_at": info.started_at,
        "updated_at": info.updated_at,
        "steps": _steps(events),
        "tool_calls": _calls(events),
        "events": info.events,
    }
