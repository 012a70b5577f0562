"""Assembly: a configuration, made of what an agent was given. All that cannot be right is refused here, at once."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from os import PathLike
from types import UnionType
from typing import Annotated, Any, Literal, NoReturn, SupportsIndex, TypeGuard, Union, get_args, get_origin

from treadle.context.policies import ContextPolicy
from treadle.drivers.approvals import named, of_below, rules_of
from treadle.drivers.below import agents_in, rules_below
from treadle.drivers.calls.early import any_may_start_early
from treadle.drivers.checks import (
    check_approvals,
    check_condition,
    check_limits,
    check_takes_tools,
    kind,
    model_of,
    one_of,
    require_answers_that_fit,
    require_dependencies_injected,
    require_one_kind_of_dependencies,
    with_budgets,
)
from treadle.drivers.compact import chosen_policies, reads_results
from treadle.drivers.configuration import AnswerType, Configuration, Retries, check_tool_choice
from treadle.drivers.listing import said
from treadle.drivers.output import answer_type
from treadle.drivers.purse.drawing import Budgets
from treadle.drivers.tool_search import FIND, ToolSearch
from treadle.journal.ones_own import is_journal
from treadle.kernel.errors import Misuse
from treadle.models.given import check_settings
from treadle.models.port import Model
from treadle.models.profile import OutputMode, profile_of
from treadle.signatures import takes
from treadle.tools import Skill, SkillRegistry, Tool, agent_skills, tool
from treadle.tools.read_result import read_result
from treadle.tools.server import ToolServer, is_of
from treadle.visible import visible

log = logging.getLogger("treadle")

FEWEST_WORDS = 3
"""Words of a description below which it says next to nothing."""

Policies = tuple[ContextPolicy, ...] | None


Tools = Iterable[Tool | Callable[..., Any] | ToolServer] | Mapping[str, Tool | Callable[..., Any]]
"""Tools, plain functions and servers of tools; or the first two by the name that the model is to call."""


def toolbox_of(
    tools: Tools,
    skills: Iterable[Skill | str | PathLike[str]],
    context: ContextPolicy | Iterable[ContextPolicy] | None,
    model: Model,
) -> tuple[SkillRegistry, Policies, tuple[ToolServer, ...]]:
    """The tools and skills of an agent, with the tool that reads what its context policies cleared; the policies; and
    the servers whose tools it has besides.

    Raises:
        Misuse: they are no lists of tools and skills, one of them is an agent, or no policies.
        BadTool: two have one name, or one is none.
    """
    if any(isinstance(many, (Tool, Skill, str)) or not isinstance(many, Iterable) for many in (tools, skills)):
        raise Misuse("tools and skills take lists: tools=[my_tool], skills=[my_skill]")
    policies, servers = chosen_policies(context, model, model_of), list[ToolServer]()
    if isinstance(tools, Mapping):
        given = [_tool_of(one, name) for name, one in tools.items()]
    else:
        several = list(tools)
        servers = [one for one in several if _is_server(one)]
        given = [_tool_of(one) for one in several if isinstance(one, Tool) or not isinstance(one, ToolServer)]
    if sum(one.name == FIND for one in given) > 1:
        raise Misuse(
            f"there are two tools named {FIND!r}, which every ToolSearch has: give one search all the tools, "
            "ToolSearch([*these, *those])"
        )
    if isinstance(skills, SkillRegistry):
        given = [*skills.loose, *given]
    else:
        skills = _with_folders(skills)
    if context is not None and reads_results(policies or ()):
        given.append(read_result)
    return SkillRegistry(skills=skills, tools=given), policies, tuple(servers)


def _is_server(given: object) -> TypeGuard[ToolServer]:
    # To ask whether something is of a protocol takes as long as all else that is done with a tool here.
    return not isinstance(given, Tool) and isinstance(given, ToolServer)


def _with_folders(skills: Iterable[Skill | str | PathLike[str]]) -> list[Skill]:
    """The skills, those that stand in folders together as one, in the place of the first of them."""
    made: list[Skill] = []
    paths: list[str | PathLike[str]] = []
    place = 0
    for one in skills:
        if isinstance(one, (str, PathLike)):
            place = place if paths else len(made)
            paths.append(one)
        else:
            made.append(one)
    if paths:
        made.insert(place, agent_skills(*paths))
    return made


def _tool_of(given: Tool | Callable[..., Any], name: str | None = None) -> Tool:
    # The module of agents is made of this one, so that their class cannot be asked for here.
    if isinstance(getattr(given, "_config", None), Configuration):
        raise Misuse("tools was given an agent: give agent.as_tool(), which has it do a task, or handoff(agent)")
    if isinstance(given, Tool):
        return given if name is None else given.named(name)
    if given is None or isinstance(given, Mapping):
        raise Misuse(
            f"tools takes functions and tools; it was given {given!r:.100}. Of tools that dicts describe, "
            "load_tools([…], execute) makes tools, where execute(name, arguments) carries them out"
        )
    return tool(given, name=name)


class Stock:
    """The configuration of an agent, made anew when more skills were registered in the registry that it was given.

    Args:
        make: makes it of the skills and tools that there are.
        toolbox: those that there are now.
        skills: what the agent was given.
    """

    def __init__(
        self, make: Callable[[SkillRegistry], Configuration], toolbox: SkillRegistry, skills: Iterable[Any]
    ) -> None:
        self._make = make
        self._toolbox = toolbox
        self._registry = skills if isinstance(skills, SkillRegistry) else None
        self._config = make(toolbox)

    @property
    def config(self) -> Configuration:
        """The configuration that a run begins with now.

        Raises:
            Misuse, BadTool: what was registered since does not fit the agent.
        """
        registry = self._registry
        if registry is not None and len(registry) != len(self._toolbox):
            toolbox = SkillRegistry(registry, self._toolbox.loose)
            self._config, self._toolbox = self._make(toolbox), toolbox
        return self._config

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """An agent has functions, locks and connections, which no other process can be given."""
        raise Misuse(
            "an agent cannot be pickled, or copied with all that it has: let each process make it anew, such as by "
            "importing the module that defines it, and hand over the run's id"
        )

    def changed(self, change: Callable[[Configuration], Configuration]) -> "Stock":
        """The same with something else in every configuration.

        Raises:
            Misuse: it does not fit.
        """
        other, make = object.__new__(type(self)), self._make
        other.__dict__.update(self.__dict__)
        other._config = change(self.config)
        other._make = lambda toolbox: change(make(toolbox))
        return other


def stocked(
    given: Configuration,
    tools: Tools,
    skills: Iterable[Skill | str | PathLike[str]],
    context: ContextPolicy | Iterable[ContextPolicy] | None,
    output: Any,
    output_mode: OutputMode | None,
    budget: Budgets,
) -> Stock:
    """The configuration of an agent that was given these tools, skills and policies, as a stock; `given` is the rest.

    Raises:
        Misuse, BadTool: something does not fit; the message says what would.
    """
    toolbox, policies, servers = toolbox_of(tools, skills, context, given.model)
    given = replace(given, context=policies, servers=servers)
    stock = Stock(lambda stock: with_budgets(assembled(given, stock, output, output_mode), budget), toolbox, skills)
    if not isinstance(skills, SkillRegistry):  # to which any tool may come later
        check_condition(stock.config)
        for one in given.prepare_step:
            if isinstance(one, ToolSearch):
                one.require(stock.config.tools)
    return stock


def assembled(
    given: Configuration, toolbox: SkillRegistry, output: Any, output_mode: OutputMode | None
) -> Configuration:
    """The configuration that runs need, of what an agent was `given`: checked, and with what follows from it.

    Args:
        given: all but what follows.
        toolbox: its skills and tools.
        output: the type of the answer; None for text.
        output_mode: how the model is to be asked for it; None for what the model says of itself.

    Raises:
        Misuse: something does not fit; the message says what would.
    """
    tools = list(toolbox.tools)
    given = replace(given, tools={one.name: one for one in tools}, skills=toolbox)
    _check_servers(given)
    _check_kinds(given)
    for one in tools:
        _point_out(one.name, one.description, one.where)
    _point_out_allowed(given, toolbox)
    check_approvals(given.approvals, given.tools, given.servers)
    require_dependencies_injected(tools)
    require_one_kind_of_dependencies(given.tools, given.deps_type)
    typed = _answer_type(output, output_mode, given)
    final = () if typed is None or typed.tool is None else (typed.tool.name,)
    if not any(is_of(server.name, given.tool_choice) for server in given.servers):
        told = [*given.tools, *final, *[f"{one.name}__…" for one in given.servers]]
        check_tool_choice(given.tool_choice, told, "Agent")
    if typed is not None:
        require_answers_that_fit(given.tools, typed)
    specs = (*[said(one) for one in tools], *([] if typed is None or typed.tool is None else [typed.tool]))
    free = any_may_start_early(tools, more=bool(given.servers))
    config = replace(
        given,
        output=typed,
        specs=specs,
        eager=given.eager and not (given.approvals or given.on_tool_call) and free,
        rules=rules_of(given.approvals, tools, rules_below(given)),
        hooks=_hooks(given, typed),
    ).counted()
    check_takes_tools(config)
    check_limits(config, config.limits)
    return config


def _check_servers(given: Configuration) -> None:
    """Refuses names by which it could not be told whose a tool is."""
    names = [server.name for server in given.servers]
    for name in names:
        if names.count(name) > 1:
            raise Misuse(f"there are two servers named {name!r}: give one of them another name")
        taken = next((tool for tool in given.tools if is_of(name, tool)), None)
        if taken is not None:
            raise Misuse(f"the name of the tool {taken!r} says that it is the server {name!r}'s: rename one of them")


@lru_cache(1000)
def _point_out(name: str, description: str, where: str) -> None:
    """Says, once in a process, that a tool is described in too few words; nothing is refused for it."""
    if len(description.split()) < FEWEST_WORDS:
        log.warning(
            "tool %s%s is described as %r: a model chooses tools, and what to give them, by their descriptions. Say "
            "what it does, when it is to be used, and what comes back.",
            name, f" ({where})" if where else "", description,
        )  # fmt: skip


def _point_out_allowed(given: Configuration, toolbox: SkillRegistry) -> None:
    """Says which tools a skill allows that the agent has not, such as those of another program."""
    for skill in toolbox.skills:
        for name, allowed in skill.in_folders.items():
            known = [one for one in allowed or () if one in given.tools]
            unknown = [one for one in allowed or () if one not in known]
            if unknown and not any(is_of(server.name, one) for server in given.servers for one in unknown):
                _say_allowed(name, visible(", ".join(unknown))[:500], visible(", ".join(known)) or "none")


@lru_cache(1000)
def _say_allowed(skill: str, unknown: str, known: str) -> None:
    log.warning(
        "the skill %s allows the tools %s, which the agent has not: while it is active, of its own it is offered %s",
        skill, unknown, known,
    )  # fmt: skip


def retries_of(given: Retries | int | None) -> Retries:
    """The retries that are meant by a plain number of them.

    Raises:
        Misuse: it is neither that nor `Retries`.
    """
    if isinstance(given, Retries):
        return given
    kind(
        "retries",
        given,
        lambda it: _is_number(it, int) and it >= 0,
        "Retries(…), such as Retries(attempts=3), or a whole number from 0",
    )
    return Retries() if given is None else Retries(attempts=1 + given)


def _is_number(it: object, *kinds: type) -> bool:
    """Whether it is of one of these kinds, and no truth value, which Python takes for 0 or 1."""
    return isinstance(it, kinds) and not isinstance(it, bool)


def _check_kinds(given: Configuration) -> None:
    one_of("on_limit", given.on_limit, ("answer", "stop", "raise"))
    one_of("on_interrupted", given.on_interrupted, ("ask", "tell"))
    kind("instructions", given.instructions, _is_said, "a text or a function of a RunContext")
    kind("errors", given.errors, _takes_one, "a function of the value that a tool returned")
    kind("name", given.name, lambda it: isinstance(it, str), "a text")
    attempts, seconds = given.retries.attempts, (given.retries.base, given.retries.most)
    kind("retries", attempts, lambda it: _is_number(it, int) and it >= 1, "Retries(attempts=…) from 1")
    for one in seconds:
        kind("retries", one, lambda it: _is_number(it, int, float) and it >= 0, "base= and most= in seconds, from 0")
    check_settings(given.settings)
    kind("journal", given.journal, is_journal, "a journal such as SqliteJournal(path)")
    kind(
        "telemetry",
        given.telemetry,
        lambda it: hasattr(it, "observed") and not isinstance(it, type),
        "treadle.telemetry.Telemetry(…)",
    )
    kind("deps_type", given.deps_type, lambda it: isinstance(it, type), "the class of the dependencies")
    for name, value in (
        ("tell_remaining", given.tell_remaining),
        ("watch_progress", given.watch),
        ("eager", given.eager),
    ):
        if not isinstance(value, bool):
            raise Misuse(f"{name} takes True or False; it was given {value!r:.100}")


def _takes_one(given: Any) -> bool:
    return callable(given) and takes(given, None)


def _is_said(given: Any) -> bool:
    return isinstance(given, str) or _takes_one(given)


def _answer_type(output: Any, output_mode: OutputMode | None, given: Configuration) -> AnswerType | None:
    if output is None and output_mode is not None:
        raise Misuse("output_mode says how an answer of a type is asked for; give the type too: output=…")
    mode = output_mode or profile_of(given.model).output_mode(bool(given.tools or given.servers))
    one_of("output_mode", mode, ("native", "tool", "prompted"))
    return None if output is None else replace(answer_type(output, mode, given.tools), chosen=output_mode)


def _hooks(given: Configuration, typed: AnswerType | None) -> tuple[str, ...]:
    """What else of the application's takes part in runs, and in those of the agents below, by name."""
    kinds = (
        ("on_tool_call", given.on_tool_call),
        ("on_tool_result", given.on_tool_result),
        ("on_answer", given.on_answer),
        ("prepare_step", given.prepare_step),
    )
    lines = [f"{what} {named(one)}" for what, functions in kinds for one in functions]
    lines += [] if given.stop_when is None else [f"stop_when {given.stop_when}"]
    lines += [] if typed is None else [f"output {_in_words(typed.kind)}"]
    return (*lines, *[line for name, below in agents_in(given.tools) for line in of_below(name, below.config.hooks)])


def _in_words(kind: Any) -> str:
    """A type with what stands in its brackets, by which `list[int]` is not `list[str]`; the same in each process."""
    inner = get_args(kind)
    if not inner:
        return "..." if kind is Ellipsis else str(getattr(kind, "__name__", kind))
    if get_origin(kind) is Annotated:
        return _in_words(inner[0])
    if get_origin(kind) is Literal:
        return f"Literal[{', '.join(map(repr, inner))}]"
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(map(_in_words, inner))
    return f"{getattr(kind, '__name__', kind)}[{', '.join(map(_in_words, inner))}]"
