"""`treadle show`: the story of a run, from its journal."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from functools import partial

import click

from treadle.cli import completion
from treadle.cli.falls import print_waterfall
from treadle.cli.lines import teller
from treadle.cli.next_command import NextCommand
from treadle.cli.report import closing
from treadle.cli.storage import find_run, journal_option, no_runs, opened
from treadle.cli.story import Story, count, decisions, described, in_flight, is_harmless, number, went_wrong
from treadle.cli.table import print_table
from treadle.cli.terminal import clean, console, print_json, prose, set_off, visible
from treadle.cli.waiting import Waiting
from treadle.journal import Holder
from treadle.journal.info import told_by
from treadle.journal.ones_own import holder_of, seen_with
from treadle.kernel.events import Event
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import UserMessage
from treadle.kernel.names import escaped
from treadle.kernel.state import RunState
from treadle.result import result_of
from treadle.timetravel.waterfall import Waterfall, waterfall


@click.command(short_help="Tell the story of a run; with --why, why it went on and stopped.")
@click.argument("run", shell_complete=completion.runs)
@journal_option
@click.option(
    "--why", is_flag=True, help="Add what was looked at before each step and at the end, with the values found."
)
@click.option(
    "--waterfall", "falls", is_flag=True, help="Show where the time went: a bar for each step, call and wait."
)
@click.option("--json", "as_list", is_flag=True, help="Print the run's events, a JSON list; with --waterfall its bars.")
def show(run: str, journal: str | None, why: bool, falls: bool, as_list: bool) -> int:
    """Tell the story of RUN: its id, a beginning of it that no other run has, or "last"."""
    if why and as_list:
        raise click.UsageError("--json prints every event, with what was looked at; leave out --why")
    if falls:
        return _show_waterfall(run, journal, why, as_list)
    events, waiting, holder = asyncio.run(_events(journal, run))
    if as_list:
        print_json(events)
        return 0
    _heading(events)
    state = Story(teller(err=False), texts=True).tell(events)
    command = NextCommand.guessed(state.started, journal)
    if state.stop is None:
        _under_way(state, events, waiting, holder, command)
    if why:
        print_why(state)
    if state.stop is not None:
        click.echo(prose(_ending(state)))
        closing(result_of(state, None, events), waiting, {}, command)
    return 0


def _show_waterfall(run: str, journal: str | None, why: bool, as_object: bool) -> int:
    if why:
        raise click.UsageError("--waterfall and --why are two ways to look at a run; leave one out")
    found = asyncio.run(_fallen(journal, run))
    if as_object:
        print_json(found)
    else:
        print_waterfall(found)
    return 0


async def _fallen(journal: str | None, run: str) -> Waterfall:
    async with opened(journal) as kept:
        if kept is None:
            raise no_runs(journal, run)
        return await waterfall(kept, await find_run(kept, run))


def _under_way(
    state: RunState, events: list[Event], waiting: Waiting, holder: Holder | None, command: NextCommand
) -> None:
    """Says of a run that has not ended who drives it; if nobody does, what is to be settled and how to go on."""
    if holder is not None:
        ago = max(0.0, time.time() - holder.beat_at)
        click.echo(f"\nThe run is under way in {visible(str(holder))}, which was last heard of {ago:.0f} s ago.")
        for record in in_flight(events):
            click.echo(clean(f"  it is being made: {described(record.doing)} ({escaped(record.id)})"))
        return
    click.echo(
        f"\nThe run has not ended: its process died, or does not say that it lives. Go on with: "
        f"{command.line('resume', state.run_id)}{f' ({command.remark})' if command.remark else ''}"
    )
    for line in _cut_off(events, waiting):
        click.echo(f"  {line}")
    if waiting.calls:
        click.echo("If you know what came of a call, say so; one that may be run again is, when the run goes on:")
    for line in command.lines(waiting):
        click.echo(f"  {line}")


def _cut_off(events: Sequence[Event], waiting: Waiting) -> Iterator[str]:
    """The calls that were under way: those of a run below in place of the one that it works on, as they are settled."""
    for record in in_flight(events):
        name = escaped(record.id)
        found = [call for call in waiting.calls if call.name == name or call.name.startswith(f"{name}/")]
        for call in found:
            if call.pending.kind == "interrupted":
                yield f"it was started, and its outcome is unknown: {call.written} ({call.name})"
            else:
                yield from call.lines({})
        if not found:
            unsure = "to run it again does no harm" if is_harmless(record, events) else "its outcome is unknown"
            yield clean(f"it was started, and {unsure}: {described(record.doing)} ({name})")


async def _events(journal: str | None, run: str) -> tuple[list[Event], Waiting, Holder | None]:
    async with opened(journal) as kept:
        if kept is None:
            raise no_runs(journal, run)
        run_id = await find_run(kept, run)
        events, holder = await seen_with(kept, run_id, partial(holder_of, kept, run_id))
        return events, await Waiting.of(events, kept), holder


def _heading(events: Sequence[Event]) -> None:
    line, said = told_by(events), fold_all(events[:1]).messages
    question = next((message.text for message in reversed(said) if isinstance(message, UserMessage)), "")
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(line.started_at))
    of = "" if line.fork is None else f", a fork of run {line.fork.run_id}"
    click.echo(prose(set_off(f"run {line.run_id}{of}, started {started}, model {line.model}")))
    click.echo(prose(set_off(f"question: {question}"), indent="  | "))
    if wrong := went_wrong(events):
        out = console()
        out.print(
            prose("\n".join(["went wrong:", *(f"  {one}" for one in wrong)]), indent="    "),
            style="red",
            soft_wrap=True,
        )
    click.echo()


def _ending(state: RunState) -> str:
    total = state.usage
    about = "about " if total.estimated else ""
    least = "at least " if state.accounts.unpriced else ""
    cost = "" if not state.cost else f", {least}{about}${state.cost:f}"
    tokens = f"{about}{total.input_tokens:,} tokens in, {total.output_tokens:,} out"
    made = len(state.steps) + (state.step is not None)
    below = f" and {state.sub_steps:,} below" if state.sub_steps else ""
    steps, calls = f"{count(made, 'step')}{below}", count(state.tool_calls, "tool call")
    return f"\n{steps}, {calls}, {tokens}{cost}, {state.elapsed:.2f} s"


def print_why(state: RunState) -> None:
    """Prints every decision record of a run: what was looked at, the value found, the bound, and the verdict."""
    rows = [
        (when, decision.verdict, row.name, number(row.value), number(row.bound), "met" if row.met else "")
        for when, decision in decisions(state)
        for row in decision.checks(state.limits)
    ]
    click.echo()
    print_table(["when", "verdict", "looked at", "value", "bound", ""], rows, right=["value", "bound"])
    if state.stop is not None:
        detail = f": {state.stop.detail}" if state.stop.detail else ""
        click.echo()
        console().print(prose(set_off(f"stop reason: {state.stop.reason}{detail}"), indent="  | "), soft_wrap=True)
