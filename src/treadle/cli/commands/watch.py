"""`treadle watch`: follows a run that another process carries out."""

import asyncio
from functools import partial

import click

from treadle.cli import completion
from treadle.cli.exits import ExitCode, exit_code
from treadle.cli.lines import teller
from treadle.cli.next_command import NextCommand
from treadle.cli.storage import find_run, journal_option, no_runs, opened
from treadle.cli.story import Story
from treadle.cli.terminal import note, plain_letters, set_off
from treadle.cli.waiting import Waiting
from treadle.journal import Journal
from treadle.journal.leases import Leases
from treadle.journal.ones_own import holder_of, seen_with, standing_of
from treadle.kernel.events import Event, RunFinished, RunPaused, encode_event
from treadle.kernel.fold import fold
from treadle.kernel.state import RunState


@click.command(short_help="Follow a run that another process carries out.")
@click.argument("run", shell_complete=completion.runs)
@journal_option
@click.option("--json", "as_lines", is_flag=True, help="Print each event as a line of JSON.")
def watch(run: str, journal: str | None, as_lines: bool) -> int:
    """Follow RUN: its id, a beginning of it, or "last": what has happened, and what happens as it is recorded.

    It ends when the run ends, with the exit code of that, and goes on over a pause. Ctrl-C ends the watching; the run
    goes on.
    """
    return asyncio.run(_watched(run, journal, as_lines))


async def _watched(run: str, journal: str | None, as_lines: bool) -> int:
    async with opened(journal) as kept:
        if kept is None:
            raise no_runs(journal, run)
        run_id = await find_run(kept, run)
        await _tell_if_left(kept, run_id)
        story, state, events = Story(teller(err=False), texts=True), RunState(), list[Event]()
        async for event in kept.watch(run_id):
            before, state = state, fold(state, event)
            events.append(event)
            if as_lines:
                click.echo(plain_letters(encode_event(event).decode()))
                continue
            story.see(event, before, state)
            if isinstance(event, RunPaused) and not await kept.read(run_id, len(events)):
                _tell_waiting(await Waiting.of(events, kept), NextCommand.guessed(state.started, journal))
    last = events[-1]
    return exit_code(last.stop) if isinstance(last, RunFinished) else ExitCode.FINISHED


async def _tell_if_left(journal: Journal, run_id: str) -> None:
    """Says beside the story that nobody carries the run out, where the journal knows who does."""
    if not isinstance(journal, Leases):
        return
    events, holder = await seen_with(journal, run_id, partial(holder_of, journal, run_id))
    if holder is None and standing_of(events).phase not in ("finished", "paused"):
        note("no process carries this run out now; it is followed until somebody goes on with it, or Ctrl-C")


def _tell_waiting(waiting: Waiting, command: NextCommand) -> None:
    """Says beside the story what the run waits for, and how it is decided."""
    for line in command.lines(waiting):
        note(set_off(line))
