"""`treadle fork`: going on from a step of a run as a run of its own."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import click
from msgspec.structs import replace

from treadle.agent import Agent
from treadle.cli import completion
from treadle.cli.agents import agent_to_go_on
from treadle.cli.choose import is_of_library, model_named
from treadle.cli.configure import Options, agent_options
from treadle.cli.exits import exit_code
from treadle.cli.next_command import NextCommand
from treadle.cli.output import Output, output_options
from treadle.cli.storage import find_run, no_runs, opened
from treadle.cli.waiting import Waiting, call_and_value, read_value
from treadle.cli.watch import Watch
from treadle.journal import Journal
from treadle.journal.ones_own import read_of, standing_of
from treadle.kernel.names import escaped
from treadle.kernel.state import RunState
from treadle.result import RunResult


@click.command(short_help="Go on from any step of a run as a run of its own.")
@click.argument("run", shell_complete=completion.runs)
@click.option("--at", type=click.IntRange(min=0), required=True, metavar="STEP", help="The step, from 0.")
@click.option("--message", metavar="TEXT", help="Something to say to the run at that point.")
@click.option(
    "--tool-result",
    "results",
    multiple=True,
    metavar="CALL=VALUE",
    help="Another result of a call of the step before; repeatable.",
)
@partial(agent_options, another_model=True)
@output_options
def fork(
    run: str, at: int, message: str | None, results: tuple[str, ...], options: Options, output: Output
) -> int:  # fmt: skip
    """Go on from the beginning of step STEP of RUN as a run of its own; RUN stays as it is.

    RUN is its id, a beginning of it, or "last". What the steps before did is done, and is not repeated. A run that your
    program began is forked with its agent: --agent module:name; --model then replaces that agent's model.
    """
    return asyncio.run(_forked(run, at, message, results, options, output))


def _results(given: Sequence[str], source: RunState) -> dict[str, Any]:
    """Other results by the ids of calls, which are named by them or as they are shown."""
    made = [record.id for step in source.steps for record in step.calls]
    ids = {name: call_id for call_id in made for name in (call_id, escaped(call_id))}
    found: dict[str, Any] = {}
    for item in given:
        name, value = call_and_value(item, ids.get, "--tool-result")
        call = ids.get(name, name)
        if call in found:
            raise click.BadParameter("a call is given two results", param_hint="'--tool-result'")
        found[call] = read_value(value)
    return found


async def _forked(
    run: str,
    at: int,
    message: str | None,
    results: Sequence[str],
    options: Options,
    output: Output,
) -> int:
    async with opened(options.journal) as journal:
        if journal is None:
            raise no_runs(options.journal, run)
        events = await read_of(journal, await find_run(journal, run))
        source = standing_of(events)
        # Whoever goes on needs all that the run had, whether it has ended or not.
        agent, choice = agent_to_go_on(replace(source, phase="ready"), events, options, journal)
        agent = (
            agent if options.model is None or options.agent is None else agent.with_model(model_named(options.model))
        )
        output.say(str(choice) if options.agent is None else f"agent {options.agent}, model {agent.model.name}")
        limits = options.limits(source.limits)
        begun = await agent.begin_fork(
            source.run_id,
            at=at,
            message=message,
            tool_results=_results(results, source),
            model=options.model if options.model is None or is_of_library(options.model) else agent.model,
            limits=None if limits == source.limits else limits,
            user=options.user,
        )
        output.say(f"run {begun} is a fork of {source.run_id} at step {at}")
        result = await _carried_out(agent, begun, journal, options, output)
        waiting = await Waiting.of(result.events, journal)
    output.end(result, agent.model.name, waiting, agent.tools, NextCommand.again(options, choice))
    return exit_code(result.stop)


async def _carried_out(agent: Agent, run_id: str, journal: Journal, options: Options, output: Output) -> RunResult[Any]:
    watch = Watch(output.views, await read_of(journal, run_id), quiet=output.quiet)
    return await watch.carry(lambda see: agent.resume(run_id, on_event=see, user=options.user))
