"""Agents: the one that a command runs, which is the user's own (`--agent`) or one made of the options."""

from collections.abc import Sequence
from typing import Literal

import click

from treadle.agent import Agent
from treadle.cli.choose import ModelChoice, choose, is_of_library, library_model, model_named
from treadle.cli.configure import Options
from treadle.cli.failures import in_options
from treadle.cli.loading import load
from treadle.cli.next_command import COMMAND_LINE, NextCommand, only_with_agent, only_with_model
from treadle.cli.servers import servers_of
from treadle.cli.settings import configured_limits
from treadle.cli.terminal import set_off, visible
from treadle.cli.toolset import gather
from treadle.drivers.drive import CALLED
from treadle.journal import Journal
from treadle.kernel.events import Event, RunStarted
from treadle.kernel.state import RunState
from treadle.models.names import OFFLINE
from treadle.models.port import Model
from treadle.timetravel.forking import as_forked
from treadle.tools import AgentSkills, Tool

_OWN = "the run's own"


def agent_to_ask(
    options: Options,
    journal: Journal | None,
    *,
    instructions: str | None = None,
    on_limit: Literal["answer", "stop"] | None = None,
    after: RunState | None = None,
) -> tuple[Agent, ModelChoice]:
    """The agent that the options describe, for a run that begins; and its model.

    Args:
        options: what the command line says.
        journal: where its runs are kept.
        instructions: the system prompt.
        on_limit: what happens at a limit.
        after: the run whose conversation it goes on with, by that run's model unless another is named.

    Raises:
        Misuse, BadTool, UnknownModel, MissingKey, click.UsageError: something does not fit; says what and why.
    """
    if options.agent is not None:
        if instructions is not None or on_limit is not None:
            raise click.UsageError("--agent brings its own; leave out --instructions and --on-limit")
        return _own(options.agent, journal)
    if after is None:
        choice = choose(options.model)
        model = model_named(choice.name)
    else:
        _require_no_agent(after.started)
        model, choice = _model_of(after, options)
    toolset = gather(options.skill, options.tools, options.sources, model=choice.name)
    agent = Agent(
        # A run says whether the name alone brings its model back.
        choice.name if is_of_library(choice.name) else model,
        instructions=instructions,
        skills=toolset.skills,
        tools=[*toolset.tools, *servers_of(options.mcp)],
        on_limit=on_limit or "answer",
        limits=options.limits(configured_limits()),
        journal=journal,
        name=COMMAND_LINE,
    )
    return agent, choice


def agent_to_go_on(
    state: RunState, events: Sequence[Event], options: Options, journal: Journal
) -> tuple[Agent, ModelChoice]:
    """An agent that can go on with a run: the user's own, or the run's model and its tools by their names.

    Args:
        state: where the run stands; its `events` say more of a fork.
        events: them.
        options: what the command line says.
        journal: where the run is.

    Raises:
        Misuse, BadTool, UnknownModel, MissingKey, click.UsageError: there is none; says what to name.
    """
    if state.parent is not None and state.phase != "finished":
        show = NextCommand.guessed(state.started, options.journal).line("show", state.parent.run_id)
        raise click.UsageError(
            f"run {state.run_id} works for run {state.parent.run_id}, under that run's rules too, and goes on with it: "
            f"name that one ({show} says what it waits for)"
        )
    if options.agent is not None:
        agent, choice = _own(options.agent, journal)
        if options.model is not None:
            # The fork that is to have it does without the one before, which may not be here any more.
            return agent, choice
        agent = agent._with(lambda config: as_forked(config, events))
        return agent, choice if agent.model.name == choice.name else ModelChoice(agent.model.name, "the fork's own")
    goes_on = state.phase != "finished" or options.limits(state.limits) != state.limits
    if goes_on:
        _require_no_agent(state.started)
    by_name, folders = _tools(options)
    wanted = state.started.tools
    missing = [name for name in wanted if name not in by_name]
    if missing and state.phase != "finished":
        raise click.UsageError(
            f"run {state.run_id} uses tools that are not here: {visible(', '.join(missing))}. Name them again with "
            "--tools or --skill, or the agent that has them with --agent"
        )
    servers = servers_of(options.mcp)
    asked = {one.server for one in state.stock.now if one.server} - {one.name for one in servers}
    if asked and state.phase != "finished":
        raise click.UsageError(
            f"run {state.run_id} uses tools of servers that are not here: {visible(', '.join(sorted(asked)))}. Name "
            "the file that describes them again with --mcp"
        )
    # Of one that has ended the answer is told, and one that is a single call of a tool ends with that.
    none_asked = (not goes_on or state.started.origin == CALLED) and options.model is None
    model, choice = (OFFLINE, ModelChoice(state.model, _OWN)) if none_asked else _model_of(state, options)
    # Skills in folders come whole: which tools are offered depends on those that are active.
    skills = [one for one in folders if any(tool.name in wanted for tool in one.tools)]
    in_skills = {tool.name for one in skills for tool in one.tools}
    tools = [by_name[name] for name in wanted if name in by_name and name not in in_skills]
    return Agent(model, tools=[*tools, *servers], skills=skills, journal=journal, name=state.agent), choice


def _model_of(state: RunState, options: Options) -> tuple[Model, ModelChoice]:
    """The model that is named, else the run's own, if its name brings it back.

    An object may have a provider's name, and another address: found by that, it would have what is said sent elsewhere.
    """
    choice = ModelChoice(state.model, _OWN)
    if options.model is not None:
        choice = ModelChoice(options.model, "named by --model", named=True)
    elif only_with_model(state.started):
        how = "Name that model again with --model"
        if state.agent != COMMAND_LINE:
            how = (
                f"Give the agent that began it ({visible(state.agent)}) with --agent module:name, or name with --model "
            )
            how += "NAME a model to which the conversation may be sent"
        raise click.UsageError(
            f"run {state.run_id} has a model that is called {visible(state.model)}, and its journal does not say that "
            "this name brings it back: it may be one of your program's, or at another address, such as a gateway's. "
            f"Nothing is sent where the name alone would lead. {how}"
        )
    try:
        # A journal only says which model it was: it must not be able to have a module of any name imported.
        model = model_named(choice.name) if choice.named else library_model(choice.name)
    except ValueError as error:
        if choice.named:
            raise
        raise click.UsageError(
            f"the run's own model cannot be used here; name one with --model: {set_off(in_options(error))}"
        ) from error
    return model, choice


def _own(target: str, journal: Journal | None) -> tuple[Agent, ModelChoice]:
    agent = load_agent(target)
    agent = agent.with_journal(None) if journal is None else keeping(agent, journal)
    return agent, ModelChoice(agent.model.name, f"of {target}")


def keeping(agent: Agent, journal: Journal) -> Agent:
    """The agent with the command's journal, to which its texts are written as its own journal would write them.

    Raises:
        click.UsageError: another agent's texts are written there in another way.
    """
    redact, other = (getattr(one, "redact", None) for one in (agent.journal, journal))
    if redact is not None and redact is not other:
        if other is not None:
            raise click.UsageError("the agents' journals have different redact functions: use a command for each")
        if not hasattr(journal, "redact"):
            raise click.UsageError(f"the journal of {agent.name} has a redact function, which {journal!r} cannot take")
        journal.redact = redact
    return agent.with_journal(journal)


def load_agent(target: str) -> Agent:
    """The agent that `target` names: "module:name", "path.py:name", or a module or file that has one.

    Raises:
        click.BadParameter: there is none; says what there is.
    """
    module, name, value = load(target, "--agent")
    if isinstance(value, Agent):
        return value
    found = {name: each for name, each in vars(module).items() if isinstance(each, Agent)}
    one, names = next(iter(found.values()), None), ", ".join(found)
    if not name and one is not None and all(each is one for each in found.values()):
        return one
    where = target.removesuffix(f":{name}")
    there = f"there are {names}: say which, such as {where}:{next(iter(found))}" if found else f"{where} has none"
    what = f"{target} is {value!r:.60}, not a treadle.Agent" if name else f"{target} is to name one treadle.Agent"
    raise click.BadParameter(f"{what}; {there}", param_hint="'--agent'")


def _require_no_agent(started: RunStarted) -> None:
    """Refuses a run that had more than the command line can give it again: it must not go on under less."""
    if not only_with_agent(started):
        return
    name = started.agent
    if started.rules is None or started.hooks is None:
        what = f"it was begun by an agent ({name}) under treadle 0.1, whose journals do not say what rules that had"
    else:
        what = f"its agent ({name}) has rules or hooks: {'; '.join((*started.rules, *started.hooks))}"
    raise click.UsageError(
        f"run {started.run_id} only goes on with the agent that began it: {what}. Give that agent with --agent "
        "module:name or --agent path.py:name"
    )


def _tools(options: Options) -> tuple[dict[str, Tool], list[AgentSkills]]:
    """The tools by their names, and the skills in folders, whose tools are among them."""
    named = gather(options.skill, options.tools, options.sources)
    shipped = gather((), (), None) if options.tools and not options.skill else named
    by_name = {tool.name: tool for tool, _ in [*shipped.all_tools, *named.all_tools]}
    folders = {skill.name: skill for skill in (*shipped.skills, *named.skills) if isinstance(skill, AgentSkills)}
    return by_name, list(folders.values())
