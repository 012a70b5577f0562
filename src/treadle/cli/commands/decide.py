"""`treadle resume`, `approve` and `deny`: going on with a run that is in the journal."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import click
import msgspec

from treadle.agent import Agent
from treadle.cli.answer import Answer
from treadle.cli.choose import Choice, library_model, model_named
from treadle.cli.configure import Options, agent_options
from treadle.cli.exits import exit_code
from treadle.cli.lines import trace
from treadle.cli.report import as_json, closing
from treadle.cli.storage import find_run, journal_path, no_runs
from treadle.cli.terminal import note, print_json
from treadle.cli.toolset import gather
from treadle.cli.watch import View, Watch
from treadle.journal import SqliteJournal
from treadle.kernel.events import Event, RunStarted
from treadle.kernel.fold import fold_all
from treadle.kernel.state import RunState
from treadle.kernel.stop import Limits
from treadle.result import Pending, RunResult, pending_in


@dataclass(frozen=True, slots=True)
class Decided:
    """What a command says about the calls that wait: how they are decided, and which command says it.

    Attributes:
        verb: "approve" and "deny" decide on the calls named, or on all that wait; "resume" decides on none.
        call: the call's id; None for all that wait for a decision.
        arguments: to use in place of the model's, for the one call.
        reason: shown to the model.
        results: by call id, for calls that are answered from outside.
    """

    verb: str
    call: str | None = None
    arguments: Mapping[str, Any] | None = None
    reason: str = ""
    results: Mapping[str, Any] = field(default_factory=dict)


_output = (
    click.option("--json", "as_object", is_flag=True, help="Print one JSON object instead of the text."),
    click.option("--trace", "tracing", is_flag=True, help="Show perceive, think and act on standard error."),
    click.option("--quiet", "-q", is_flag=True, help="Print the answer when it is whole, and nothing else."),
)


def _shown(command: Any) -> Any:
    for option in reversed(_output):
        command = option(command)
    return command


@click.command(short_help="Go on with a run that is paused, or whose process died.")
@click.argument("run")
@agent_options
@click.option(
    "--result", "results", multiple=True, metavar="CALL=VALUE", help="The result of a call that waits for one."
)
@_shown
def resume(run: str, options: Options, results: tuple[str, ...], as_object: bool, tracing: bool, quiet: bool) -> int:
    """Go on with RUN: its id, a beginning of it, or "last".

    The run's own model is used unless another is named; own tools are named again with --tools. A run that has
    finished is not run again: its answer is printed. Only resume a run that no other process is carrying out.
    """
    given = dict(_result(item) for item in results)
    return _go_on(run, options, Decided("resume", results=given), as_object, tracing, quiet)


@click.command(short_help="Allow a tool call that a run waits for, and go on.")
@click.argument("run")
@click.argument("call", required=False)
@agent_options
@click.option("--arguments", metavar="JSON", help="Arguments to use in place of the model's, for one CALL.")
@_shown
def approve(
    run: str, call: str | None, options: Options, arguments: str | None, as_object: bool, tracing: bool, quiet: bool
) -> int:
    """Allow CALL of RUN, or every call that it waits for, and go on with it."""
    edited = None if arguments is None else read_arguments(arguments)
    if edited is not None and call is None:
        raise click.UsageError("--arguments are for one call: name it")
    return _go_on(run, options, Decided("approve", call, edited), as_object, tracing, quiet)


@click.command(short_help="Refuse a tool call that a run waits for, and go on.")
@click.argument("run")
@click.argument("call", required=False)
@agent_options
@click.option("--reason", default="", metavar="TEXT", help="Why; the model is told.")
@_shown
def deny(run: str, call: str | None, options: Options, reason: str, as_object: bool, tracing: bool, quiet: bool) -> int:
    """Refuse CALL of RUN, or every call that it waits for, and go on with it."""
    return _go_on(run, options, Decided("deny", call, reason=reason), as_object, tracing, quiet)


def read_arguments(text: str) -> dict[str, Any]:
    """Arguments as a person writes them: a JSON object.

    Raises:
        click.BadParameter: they are something else.
    """
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise click.BadParameter(f'arguments are a JSON object, such as {{"sku": 7}}: {error}') from error


def _result(item: str) -> tuple[str, Any]:
    call, sign, value = item.partition("=")
    if not sign or not call:
        raise click.BadParameter(f"{item!r} is not CALL=VALUE", param_hint="'--result'")
    try:
        return call, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return call, value


def _go_on(run: str, options: Options, decided: Decided, as_object: bool, tracing: bool, quiet: bool) -> int:
    path = journal_path(options.journal)
    if not path.exists():
        raise no_runs(options.journal, run)
    answer = None if as_object or quiet else Answer()
    views: list[View] = [
        view for view in (answer, trace(texts=answer is None) if tracing else None) if view is not None
    ]
    result, model = asyncio.run(_resumed(SqliteJournal(path), run, options, decided, views, quiet))
    if as_object:
        print_json(as_json(result, model))
    elif answer is None:
        click.echo(result.text)
    else:
        answer.complete(result.text)
    if not (quiet and result.finished):
        closing(result, journaled=True)
    return exit_code(result.stop)


async def _resumed(
    journal: SqliteJournal, run: str, options: Options, decided: Decided, views: list[View], quiet: bool
) -> tuple[RunResult, str]:
    async with journal:
        run_id = await find_run(journal, run)
        events = await journal.read(run_id)
        state = fold_all(events)
        approve, deny = _decisions(state, decided)
        agent, choice = _agent(events, state, options, journal)
        if not quiet:
            note(str(choice))
        overridden = options.limits(state.limits)
        result = await Watch(views, events).carry(
            lambda see: agent.resume(
                run_id, approve=approve, deny=deny, results=decided.results, on_event=see,
                limits=None if overridden == state.limits else overridden,
            )
        )  # fmt: skip
        return result, state.model


def _decisions(state: RunState, decided: Decided) -> tuple[Any, dict[str, str]]:
    """What is allowed and refused, by call id."""
    if decided.verb == "resume":
        return (), {}
    waiting = [one for one in waiting_calls(state) if one.kind != "result"]
    if not waiting:
        how = "has finished" if state.phase == "finished" else "waits for no decision"
        raise click.UsageError(f"there is nothing to {decided.verb}: run {state.run_id} {how}")
    known = [one.call_id for one in waiting]
    if decided.call is not None and decided.call not in known:
        raise click.UsageError(f"call {decided.call!r} of run {state.run_id} does not wait for a decision; "
                               f"these do: {', '.join(known)}")  # fmt: skip
    ids = known if decided.call is None else [decided.call]
    if decided.verb == "deny":
        return (), dict.fromkeys(ids, decided.reason)
    return (ids if decided.arguments is None else {ids[0]: decided.arguments}), {}


def waiting_calls(state: RunState) -> tuple[Pending, ...]:
    """The calls of a paused run that wait for someone."""
    return () if state.phase != "paused" or state.step is None else pending_in(state.step)


def _agent(events: list[Event], state: RunState, options: Options, journal: SqliteJournal) -> tuple[Agent, Choice]:
    """An agent that can go on with the run: its model, and its tools by their names."""
    choice = Choice(options.model, "named by --model") if options.model else Choice(state.model, "the run's own")
    started = events[0]
    wanted = started.tools if isinstance(started, RunStarted) else ()
    toolset = gather(options.skill, options.tools, options.sources)
    own = gather((), (), None) if options.tools and not options.skill else toolset
    by_name = {tool.name: tool for tool, _ in [*own.all_tools, *toolset.all_tools]}
    missing = [name for name in wanted if name not in by_name]
    if missing and state.phase != "finished":
        raise click.UsageError(
            f"run {state.run_id} uses tools that are not here: {', '.join(missing)}. Name them again with --tools or "
            "--skill"
        )
    tools = [by_name[name] for name in wanted if name in by_name]
    try:
        # A journal only says which model it was: it must not be able to have a module of any name imported.
        model = model_named(choice.name) if options.model else library_model(choice.name)
    except ValueError as error:
        if options.model:
            raise
        raise click.UsageError(f"the run's own model cannot be used here; name one with --model: {error}") from error
    return Agent(model, tools=tools, limits=Limits(), journal=journal, name=state.agent), choice
