"""`treadle resume`, `approve`, `deny` and `resolve`: going on with a run that is in the journal."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import click

from treadle.agent import Agent
from treadle.cli import completion
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
from treadle.drivers.checks import stopped_by
from treadle.drivers.conversing import GoneOn
from treadle.drivers.drive import driven
from treadle.drivers.taking_up import GoingOn, taken_up
from treadle.drivers.watching import RunEvent
from treadle.journal.ones_own import read_of, standing_of
from treadle.kernel.state import RunState
from treadle.result import RunResult
from treadle.tools import ToolResult


class Said(NamedTuple):
    """What a command says of the calls that wait: how they are answered, the calls, and words to tell of each."""

    answers: Answers
    calls: list[WaitingCall]
    doing: str
    more: str = ""


class Insisted(NamedTuple):
    """On what the caller insists: that the run is taken from whoever drives it, and that it goes on beside the
    conversation that it belongs to.
    """

    takeover: bool
    beside: bool


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


def _insisting(command: Callable[..., int]) -> Callable[..., int]:
    """The options --take-over and --beside."""
    takeover = click.option(
        "--take-over", "takeover", is_flag=True, help="Take the run from a process that is driving it."
    )
    beside = click.option("--beside", is_flag=True, help="Go on though the run's conversation has gone on without it.")
    decorated: Callable[..., int] = takeover(beside(command))
    return decorated


@click.command(short_help="Go on with a run that is paused, or whose process died.")
@click.argument("run", shell_complete=completion.runs)
@agent_options
@click.option(
    "--result", "results", multiple=True, metavar="CALL=VALUE", help="The result of a call that waits; repeatable."
)
@_insisting
@output_options
def resume(
    run: str, options: Options, results: tuple[str, ...], takeover: bool, beside: bool, output: Output
) -> int:  # fmt: skip
    """Go on with RUN: its id, a beginning of it, or "last".

    A run that your program began goes on with its agent: --agent module:name. For one of the command line the run's
    own model is used unless another is named, and own tools are named again with --tools. A run that has finished is
    not run again: its answer is printed; one that a limit or a budget stopped goes on if you allow more. One that
    another process is carrying out is left to that one, unless you --take-over; the other stops then before it does
    anything more. One whose conversation has gone on without it would say what is no part of that: it is left, unless
    you want it --beside.
    """

    def say(waiting: Waiting) -> Said:
        answered = [waiting.answered(item) for item in results]
        given = {call.pending.key: read_value(value) for call, value in answered}
        if len(given) < len(answered):
            raise click.BadParameter("a call is given two results", param_hint="'--result'")
        return Said(Answers(results=given), [call for call, _ in answered], "giving the result of")

    return _go_on(run, options, output, say, Insisted(takeover, beside))


@click.command(short_help="Allow a tool call that a run waits for, and go on.")
@click.argument("run", shell_complete=completion.runs)
@click.argument("call", required=False)
@agent_options
@click.option("--arguments", metavar="JSON", help="Arguments to use in place of the model's, for one CALL.")
@_insisting
@output_options
def approve(
    run: str, call: str | None, options: Options, arguments: str | None, takeover: bool, beside: bool, output: Output
) -> int:  # fmt: skip
    """Allow CALL of RUN, or every call that it waits for, and go on with it.

    A run that your program began goes on with its agent: --agent module:name.
    """
    edited = None if arguments is None else read_arguments(arguments)

    def say(waiting: Waiting) -> Said:
        calls = waiting.decided("approve", call)
        if edited is not None and call is None:
            named = ", ".join(one.name for one in calls)
            raise click.UsageError(
                f"--arguments are for one call: name it, {'as' if len(calls) == 1 else 'one of'} {named}"
            )
        answers = Answers(approve={one.pending.key: edited for one in calls})
        return Said(answers, calls, "approving", "" if arguments is None else f" with {visible(arguments)}")

    return _go_on(run, options, output, say, Insisted(takeover, beside))


@click.command(short_help="Refuse a tool call that a run waits for, and go on.")
@click.argument("run", shell_complete=completion.runs)
@click.argument("call", required=False)
@agent_options
@click.option("--reason", default="", metavar="TEXT", help="Why; the model is told.")
@_insisting
@output_options
def deny(
    run: str, call: str | None, options: Options, reason: str, takeover: bool, beside: bool, output: Output
) -> int:  # fmt: skip
    """Refuse CALL of RUN, or every call that it waits for, and go on with it.

    A run that your program began goes on with its agent: --agent module:name.
    """

    def say(waiting: Waiting) -> Said:
        calls = waiting.decided("deny", call)
        return Said(Answers(deny={one.pending.key: reason for one in calls}), calls, "denying")

    return _go_on(run, options, output, say, Insisted(takeover, beside))


@click.command(short_help="Say what came of a tool call that a crash cut off, and go on.")
@click.argument("run", shell_complete=completion.runs)
@click.argument("call")
@click.option("--done", metavar="RESULT", help="It was done, with this result: JSON, or a text.")
@click.option("--failed", metavar="WHY", help="It was not done, or failed; the model is told why.")
@click.option("--again", is_flag=True, help="Run it again, with the same idempotency key.")
@agent_options
@_insisting
@output_options
def resolve(
    run: str, call: str, done: str | None, failed: str | None, again: bool, options: Options, takeover: bool,
    beside: bool, output: Output,
) -> int:  # fmt: skip
    """Say what came of CALL of RUN, which was under way when its process died, and go on with the run.

    Only you can look: `treadle show RUN` says what the call was. A run that your program began goes on with its agent:
    --agent module:name.
    """
    if (done is not None) + (failed is not None) + again != 1:
        raise click.UsageError("say what came of the call: one of --done RESULT, --failed WHY and --again")

    def say(waiting: Waiting) -> Said:
        one = waiting.settled(call)
        if again:
            if one.pending.kind != "interrupted":
                raise click.UsageError(f"call {call!r} is answered from outside: nothing of it can be run here")
            return Said(Answers(approve={one.pending.key: None}), [one], "running again")
        value = ToolResult(failed, is_error=True) if failed is not None else read_value(done or "")
        what = "giving the result of" if failed is None else "telling the failure of"
        return Said(Answers(results={one.pending.key: value}), [one], what)

    return _go_on(run, options, output, say, Insisted(takeover, beside))


def _go_on(run: str, options: Options, output: Output, say: Callable[[Waiting], Said], how: Insisted) -> int:
    try:
        return asyncio.run(_resumed(run, options, output, say, how))
    except GoneOn as error:
        raise click.UsageError(
            f"{error}. What it says now would be no part of that. Say it in the conversation, fork the run, or go on "
            "with it --beside."
        ) from error


async def _resumed(run: str, options: Options, output: Output, say: Callable[[Waiting], Said], how: Insisted) -> int:
    async with opened(options.journal) as journal:
        if journal is None:
            raise no_runs(options.journal, run)
        events = await read_of(journal, await find_run(journal, run))
        state = standing_of(events)
        said = say(await Waiting.of(events, journal))
        agent, choice = agent_to_go_on(state, events, options, journal)
        output.say(str(choice))
        doing = [f"{said.doing} {call.call(agent.tools)}{said.more}" for call in said.calls]
        limits, answers = options.limits(state.limits), said.answers
        result = await Watch([Announced(output, doing), *output.views], events, quiet=output.quiet).carry(
            lambda see: _carried(
                agent, state.run_id,
                GoingOn(
                    answers, on_event=see, limits=None if limits == state.limits else limits, user=options.user,
                    budget=stopped_by(agent._config, state.stop), takeover=how.takeover, last=not how.beside,
                ),
            )
        )  # fmt: skip
        waiting = await Waiting.of(result.events, journal)
    command = NextCommand.again(options, choice)
    if how.beside:
        # Who decides on what waits then has to insist once more.
        command = replace(command, agent=(*command.agent, "--beside"))
    output.end(result, state.model, waiting, agent.tools, command)
    return exit_code(result.stop)


async def _carried(agent: Agent, run_id: str, going_on: GoingOn) -> RunResult:
    begun = await taken_up(agent._config, run_id, going_on)
    return await driven(begun.run, begun.earlier) if begun.to_do else begun.result
