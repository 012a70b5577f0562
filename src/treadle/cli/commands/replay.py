"""`treadle replay`: a run carried out again from its journal, with no model, no tool and no network."""

import asyncio
from contextlib import nullcontext

import click

from treadle.agent import Agent
from treadle.cli import completion
from treadle.cli.agents import keeping, load_agent
from treadle.cli.exits import ExitCode
from treadle.cli.storage import find_run, journal_option, no_runs, opened
from treadle.cli.terminal import apart, print_json, set_off
from treadle.timetravel.replay import Replay
from treadle.timetravel.replay import replay as replayed_alone


@click.command(short_help="Carry a run out again from the journal, and say where it differs.")
@click.argument("run", shell_complete=completion.runs)
@click.option(
    "--agent",
    "-a",
    metavar="MODULE[:NAME]",
    shell_complete=completion.agents,
    help="The agent that decides anew: module:name or path.py:name. Without one, the journal alone is looked at.",
)
@click.option(
    "--recorded-limits", is_flag=True, help="Keep the limits that the run began with, in place of the agent's."
)
@journal_option
@click.option("--json", "as_object", is_flag=True, help="Print one JSON object.")
def replay(run: str, agent: str | None, recorded_limits: bool, journal: str | None, as_object: bool) -> int:
    """Carry RUN out again from the journal, and say at which event it comes out otherwise.

    RUN is its id, a beginning of it, or "last". No model and no tool is called: replies, results and decisions are
    taken where they came, and what the agent decides is decided anew. The exit code is 6 if anything differs.
    """
    if recorded_limits and agent is None:
        raise click.UsageError("--recorded-limits are in place of an agent's: name it with --agent")
    # What the agent's own functions print as they decide anew is no part of the object.
    with apart() if as_object else nullcontext():
        found = asyncio.run(_replayed(journal, run, None if agent is None else load_agent(agent), recorded_limits))
    if as_object:
        print_json(found.to_dict())
    else:
        for line in found.lines():
            click.echo(set_off(line))
    return ExitCode.FINISHED if found.same else ExitCode.DIFFERS


async def _replayed(journal: str | None, run: str, agent: Agent | None, recorded_limits: bool) -> Replay:
    async with opened(journal) as kept:
        if kept is None:
            raise no_runs(journal, run)
        run_id = await find_run(kept, run)
        if agent is None:
            return await replayed_alone(kept, run_id)
        return await keeping(agent, kept).replay(run_id, recorded_limits=recorded_limits)
