"""Forking: a run that begins with the first steps of another, under the rules of its agent, and goes on by itself."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import msgspec

from treadle.context.policies import DEFAULT
from treadle.context.storable import storable_event
from treadle.drivers.answers import Answers
from treadle.drivers.approvals import require_rules
from treadle.drivers.beginning import new_run_id
from treadle.drivers.below import parts_below
from treadle.drivers.checks import (
    Input,
    OnEvent,
    all_budgets,
    asked_of,
    check_limits,
    check_takes_tools,
    check_whose,
    kind,
    model_of,
    require_dependencies,
    with_budgets,
)
from treadle.drivers.clock import Clock
from treadle.drivers.compact import chosen_policies
from treadle.drivers.configuration import Configuration
from treadle.drivers.dispatch import cancelled
from treadle.drivers.drive import DRIVER
from treadle.drivers.lifted import tell_lifted
from treadle.drivers.listing import said
from treadle.drivers.output import answer_type, told_its_way
from treadle.drivers.purse.drawing import Budgets, Whose, purses_of, whose_again, whose_run
from treadle.drivers.purse.patience import patiently
from treadle.drivers.purse.rows import BudgetUnavailable
from treadle.drivers.purse.telling import tell_whose
from treadle.drivers.run import Run
from treadle.drivers.taking_up import GoingOn, recorded, taken_up
from treadle.journal import Journal, JournalError, MemoryJournal
from treadle.journal.ones_own import standing_of, told_as_its_own
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, MessageAdded, RunForked, RunStarted
from treadle.kernel.fold import fold_all
from treadle.kernel.state import RunState
from treadle.kernel.stop import Limits
from treadle.models.names import UnknownModel
from treadle.models.port import Model
from treadle.models.profile import profile_of
from treadle.result import RunResult, result_of
from treadle.timetravel.cut import cut_at
from treadle.tools import ToolOutput
from treadle.tools.output import encode_given


class Forked(NamedTuple):
    """What a fork is made with; see `treadle.Agent.fork`."""

    at: int
    message: Input = None
    results: Mapping[str, Any] | None = None
    model: str | Model | None = None
    limits: Limits | None = None
    deps: Any = None
    on_event: OnEvent = None
    budget: Budgets = None
    user: str | None = None
    by: str = ""
    origin: str = ""
    instructions: str | None = None

    def applied_to(self, config: Configuration) -> Configuration:
        """`config` with the model that is asked for, if one is."""
        return config if self.model is None else with_model(config, self.model)


async def forked(config: Configuration, run: str | RunResult[Any], asked: Forked) -> tuple[Run, Sequence[Event]]:
    """A fork of `run`, taken up, and the events that it has. Raises as `begin_fork`."""
    begun = await begin_fork(config, run, asked)
    going_on = GoingOn(Answers(), deps=asked.deps, on_event=asked.on_event, budget=asked.budget, user=asked.user)
    async with _ended_if_cancelled(config, begun, asked):
        driven, earlier, _ = await taken_up(asked.applied_to(config), begun, going_on)
    return driven, earlier


@asynccontextmanager
async def _ended_if_cancelled(config: Configuration, fork: str | RunResult[Any], asked: Forked) -> AsyncIterator[None]:
    """Ends a fork that is recorded where whoever asked for it goes away: nobody else knows of it, to have it go on."""
    try:
        yield
    except asyncio.CancelledError:
        if isinstance(fork, str):
            # It may not have come to be recorded.
            with suppress(JournalError, BudgetUnavailable):
                await cancelled(config, fork, budget=asked.budget)
        raise


async def begin_fork(config: Configuration, run: str | RunResult[Any], asked: Forked) -> str | RunResult[Any]:
    """Records a fork of `run` that nothing has been done for yet: its id, or where there is no journal its result.

    Raises:
        UnknownRun: the journal has no such run.
        Misuse: the run has no such step or call, works for another run, was started under stricter rules than these,
            or nothing would be left to do; nothing has been recorded.
    """
    if isinstance(asked.at, bool) or not isinstance(asked.at, int) or asked.at < 0:
        raise Misuse(f"fork takes at= the number of a step, from 0; it was given {asked.at!r:.100}")
    events, journal = await recorded(config, "fork", run)
    source = standing_of(events)
    outputs = _outputs(config, source, asked.results or {})
    cut = cut_at(events, asked.at, outputs, told=asked.message is not None)
    config = with_budgets(asked.applied_to(config), asked.budget)
    whose = await _checked(config, source, cut.state, asked)
    # However the clock was set, it begins after what it shares, and tells then what it tells once more.
    run_id, now, question = new_run_id(), Clock(after=cut.state.now).began, asked_of(asked.message, "message")
    # A fork of a fork from before that one began has its model all the same.
    another = asked.model is not None or source.model == config.model.name != cut.state.model
    model = config.model.name if another else ""
    if cut.again:
        # What was given up to the beginning of the step may come after what is shared.
        model = model or cut.state.model
    tell_lifted(run_id, cut.state.limits, asked.limits)
    limits = asked.limits or (cut.state.limits if cut.again else None)
    told, again = _told(config, cut.state, asked.instructions), len(cut.again)
    named = bool(model) and _is_named(asked, model, source, cut.state)
    own: list[Event] = [
        RunForked(run_id, model, limits, dict(cut.taken), asked.origin, told, again, named, at=now, by=asked.by),
        *[msgspec.structs.replace(event, at=now) for event in cut.again],
    ]
    own += [] if question is None else [MessageAdded(question, at=now, by=asked.by)]
    own = [storable_event(event) for event in own]
    whole = [*events[: cut.seq], *own]
    fork = Run(config, DRIVER, state=fold_all(whole))
    kept = await _in_memory(source.run_id, events) if journal is None else journal
    await tell_whose(purses_of(config.budgets, (), whose, fork, run_id), run_id)
    async with _ended_if_cancelled(config, run_id, asked):
        with told_as_its_own(kept):
            await kept.fork(source.run_id, cut.seq, run_id, own)
    return run_id if config.journal is not None else result_of(fork.state, None, whole, kept)


async def _checked(config: Configuration, source: RunState, cut: RunState, asked: Forked) -> Whose:
    """For whom the fork works. What cannot be right is refused here, before anything is recorded of it."""
    above = source.started.parent
    if above is not None:
        raise Misuse(
            f"run {source.run_id} works for run {above.run_id}, under the rules and limits of that one too: fork that "
            "one"
        )
    if cut.phase == "replied" and asked.message is None and not asked.results:
        raise Misuse(
            f"run {source.run_id} had ended before step {asked.at}, and nothing is left to do. Say something to the "
            "fork (message=…), or fork at an earlier step"
        )
    require_dependencies(config.tools, asked.deps)
    require_rules(
        source.run_id,
        source.started.rules,
        source.started.hooks,
        config.rules,
        config.hooks,
        parts_below(config),
    )
    check_limits(config, asked.limits or cut.limits)
    said = whose_run(asked.user, None)
    whose = await patiently(lambda: whose_again(all_budgets(config), source, said))
    check_whose(config, whose)
    return whose


def _told(config: Configuration, state: RunState, instructions: str | None) -> str | None:
    """The text of the system message with other instructions; None if it stays as it is.

    Another model may be asked for an answer of a type in another way, and is to be told of that one.
    """
    if instructions is None:
        return told_its_way(config, state.messages)
    kind("instructions", instructions, lambda it: isinstance(it, str), "a text")
    return "".join([message.text for message in config.system(instructions, config.output)])


def _outputs(config: Configuration, source: RunState, results: Mapping[str, Any]) -> dict[str, ToolOutput]:
    """Other results, as the model is shown them."""
    if not isinstance(results, Mapping):
        raise Misuse(f"tool_results takes a dict of results by call id; it was given {results!r:.200}")
    names = {record.id: record.doing.name for step in source.steps for record in step.calls}
    found: dict[str, ToolOutput] = {}
    for call_id, value in results.items():
        tool = config.tools.get(names.get(call_id, ""))
        most = 50_000 if tool is None else tool.max_output
        found[call_id] = encode_given(value, most, f"tool_results: the result of {call_id!r}")
    return found


def with_model(config: Configuration, model: str | Model) -> Configuration:
    """`config` with another model, and what follows from it.

    Raises:
        Misuse: it is no model, a limit cannot be kept with it, or it takes no tools and there are some.
    """
    chosen = model_of(model)
    context, output = config.context, config.output
    if context is None or context == DEFAULT:
        context = chosen_policies(None, chosen, model_of)
    specs = config.specs
    if output is not None:
        tools = config.tools
        mode = output.chosen or profile_of(chosen).output_mode(bool(tools or config.servers))
        output = dataclasses.replace(answer_type(output.kind, mode, tools), chosen=output.chosen)
        specs = (*[said(one) for one in tools.values()], *([] if output.tool is None else [output.tool]))
    named = isinstance(model, str)
    other = dataclasses.replace(
        config, model=chosen, named=named, context=context, output=output, specs=specs
    ).counted()
    check_takes_tools(other)
    check_limits(other, other.limits)
    return other


def _is_named(asked: Forked, model: str, *states: RunState) -> bool:
    """Whether the model of a fork is had by its name, as it was given now, or to those of `states` that have it."""
    if asked.model is not None:
        return isinstance(asked.model, str)
    return all([state.started.named for state in states if state.model == model])


def as_forked(config: Configuration, events: Sequence[Event]) -> Configuration:
    """`config` with the model that the run of `events`, if it is a fork, was begun with, where it was given by name.

    An object may have a provider's name, and another address: found by that, it would have what is said sent elsewhere.

    Raises:
        Misuse: that model cannot be used here.
    """
    forks = [one for one in events if isinstance(one, RunForked) and one.model]
    started = events[0]
    own = {config.model.name, started.model if isinstance(started, RunStarted) else ""}
    if not forks or not forks[-1].named or forks[-1].model in own:
        return config
    try:
        return with_model(config, forks[-1].model)
    except UnknownModel:
        # Such as one at an address of its own, which its name does not hold.
        return config


async def _in_memory(run_id: str, events: Sequence[Event]) -> Journal:
    """A journal for the fork of a run that is kept with its result only."""
    journal = MemoryJournal()
    await journal.append(run_id, 0, events)
    return journal
