"""`treadle resume`, `approve` and `deny`: going on with a run that is in the journal."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

import click

from treadle.cli.agents import agent_to_go_on
from treadle.cli.configure import Options, agent_options
from treadle.cli.exits import exit_code
from treadle.cli.next_command import NextCommand
from treadle.cli.output import Output, output_options
from treadle.cli.storage import find_run, no_runs, opened
from treadle.cli.terminal import visible
from treadle.cli.waiting import Waiting, WaitingCall, read_arguments, read_value
from treadle.cli.watch import Watch
from treadle.drivers.answers import Answers
from treadle.drivers.watching import RunEvent
from treadle.kernel.fold import fold_all
from treadle.kernel.state import RunState


class Said(NamedTuple):
    """What a command says of the calls that wait: how they are answered, the calls, and words to tell of each."""

    answers: Answers
    calls: list[WaitingCall]
    doing: str
    more: str = ""


class Announced:
    """Tells what is done to the calls that wait once it is done: the answers may yet be refused before that."""

    def __init__(self, output: Output, lines: list[str]) -> None:
        self._output = output
        self._lines = lines

    def see(self, event: RunEvent, before: RunState, after: RunState) -> None:
        """Tells it at the first event."""
        for line in self._lines:
            self._output.say(line)
        self._lines = []


@click.command(short_help="Go on with a run that is paused, or whose process died.")
@click.argument("run")
@agent_options
@click.option(
    "--result", "results", multiple=True, metavar="CALL=VALUE", help="The result of a call that waits; repeatable."
)
@output_options
def resume(run: str, options: Options, results: tuple[str, ...], output: Output) -> int:
    """Go on with RUN: its id, a beginning of it, or "last".

    A run that your program began goes on with its agent: --agent module:name. For one of the command line the run's
    own model is used unless another is named, and own tools are named again with --tools. A run that has finished is
    not run again: its answer is printed. Only resume a run that no other process is carrying out.
    """

    def say(waiting: Waiting) -> Said:
        answered = [waiting.answered(item) for item in results]
        given = {call.pending.key: read_value(value) for call, value in answered}
        if len(given) < len(answered):
            raise click.BadParameter("a call is given two results", param_hint="'--result'")
        return Said(Answers(results=given), [call for call, _ in answered], "giving the result of")

    return _go_on(run, options, output, say)


@click.command(short_help="Allow a tool call that a run waits for, and go on.")
@click.argument("run")
@click.argument("call", required=False)
@agent_options
@click.option("--arguments", metavar="JSON", help="Arguments to use in place of the model's, for one CALL.")
@output_options
def approve(run: str, call: str | None, options: Options, arguments: str | None, output: Output) -> int:
    """Allow CALL of RUN, or every call that it waits for, and go on with it.

    A run that your program began goes on with its agent: --agent module:name.
    """
    edited = None if arguments is None else read_arguments(arguments)
    if edited is not None and call is None:
        raise click.UsageError("--arguments are for one call: name it")

    def say(waiting: Waiting) -> Said:
        calls = waiting.decided("approve", call)
        answers = Answers(approve={one.pending.key: edited for one in calls})
        return Said(answers, calls, "approving", "" if arguments is None else f" with {visible(arguments)}")

    return _go_on(run, options, output, say)


@click.command(short_help="Refuse a tool call that a run waits for, and go on.")
@click.argument("run")
@click.argument("call", required=False)
@agent_options
@click.option("--reason", default="", metavar="TEXT", help="Why; the model is told.")
@output_options
def deny(run: str, call: str | None, options: Options, reason: str, output: Output) -> int:
    """Refuse CALL of RUN, or every call that it waits for, and go on with it.

    A run that your program began goes on with its agent: --agent module:name.
    """

    def say(waiting: Waiting) -> Said:
        calls = waiting.decided("deny", call)
        return Said(Answers(deny={one.pending.key: reason for one in calls}), calls, "denying")

    return _go_on(run, options, output, say)


def _go_on(run: str, options: Options, output: Output, say: Callable[[Waiting], Said]) -> int:
    return asyncio.run(_resumed(run, options, output, say))


async def _resumed(run: str, options: Options, output: Output, say: Callable[[Waiting], Said]) -> int:
    async with opened(options.journal) as journal:
        if journal is None:
            raise no_runs(options.journal, run)
        events = await journal.read(await find_run(journal, run))
        state = fold_all(events)
        said = say(await Waiting.of(events, journal))
        agent, choice = agent_to_go_on(state, options, journal)
        output.say(str(choice))
        doing = [f"{said.doing} {call.call(agent.tools)}{said.more}" for call in said.calls]
        limits, answers = options.limits(state.limits), said.answers
        result = await Watch([Announced(output, doing), *output.views], events).carry(
            lambda see: agent.resume(
                state.run_id, approve=answers.approve, deny=answers.deny, results=answers.results, on_event=see,
                limits=None if limits == state.limits else limits, user=options.user,
            )
        )  # fmt: skip
        waiting = await Waiting.of(result.events, journal)
    output.end(result, state.model, waiting, agent.tools, NextCommand.again(options, choice))
    return exit_code(result.stop)
