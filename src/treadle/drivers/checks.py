"""Checks: what cannot be right is refused at once, by a `Misuse` that says what would be."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from treadle.drivers.approvals import ApprovalRule
from treadle.drivers.below import agents_in
from treadle.drivers.configuration import AnswerType, Configuration, model_named
from treadle.drivers.purse.budget import Budget
from treadle.drivers.purse.drawing import Budgets, Whose, budgets_in, require_whose
from treadle.drivers.purse.reckoning import require_price
from treadle.drivers.watching import RunEvent
from treadle.judging.conditions import Condition
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Content, File, Image, ModelSettings, Text, UserMessage
from treadle.kernel.stop import Limits, Stop
from treadle.misnamed import ARGUMENTS, OF_RESUMED, OF_RUNS, OF_TOOLS, as_spelled_here
from treadle.models.port import Model, is_model
from treadle.models.profile import profile_of
from treadle.tools import Tool
from treadle.tools.errors import nearest
from treadle.tools.server import ToolServer, is_of

Input = str | UserMessage | Sequence[Content] | None
OnEvent = Callable[[RunEvent], object] | None


def model_of(model: str | Model) -> Model:
    """The model in `model`: itself, or the one of that name."""
    if isinstance(model, str):
        return model_named(model)
    if not is_model(model):
        raise Misuse(
            "model takes a name such as 'anthropic:claude-sonnet-4-5' or 'offline', or an object with a name and "
            f"stream(request); it was given {model!r}"
        )
    return model


def check_limits(config: Configuration, limits: Limits) -> None:
    """Refuses limits that are none, or that cannot be kept with the models of an agent and of those below it."""
    kind("limits", limits, lambda it: isinstance(it, Limits), "Limits(steps=…, usd=…, …) or Limits.simple()")
    require_price(config.model, config.settings, limits)
    for _, below in agents_in(config.tools):
        check_limits(below.config, limits)


def check_takes_tools(config: Configuration) -> None:
    """Refuses tools beside a model that takes none; the final one of a typed answer is a tool too."""
    require_takes_tools(config.model, [*[one.name for one in config.specs], *[one.name for one in config.servers]])


def require_takes_tools(model: Model, tools: Sequence[str]) -> None:
    """Refuses `tools`, by their names, for a model that takes none. Raises `Misuse`."""
    if tools and profile_of(model).tools is False:
        raise Misuse(
            f"{model.name} takes no tools, and there are {len(tools)}, {tools[0]!r} first: wrap the model, "
            "TextTools(model), which asks for them in words"
        )


def with_budgets(config: Configuration, given: Budgets) -> Configuration:
    """`config` with the budgets in `given` beside its own; one that it has already is not had twice.

    Raises:
        Misuse: they are none, or are in dollars and the price of a model of it, or of an agent below, is not known.
    """
    budgets = tuple([budget for budget in budgets_in(given) if budget not in config.budgets])
    for budget in budgets:
        _check_prices(config, budget)
    hooks = (*config.hooks, *[budget.hook for budget in budgets])
    return replace(config, budgets=(*config.budgets, *budgets), hooks=hooks) if budgets else config


def _check_prices(config: Configuration, budget: Budget) -> None:
    require_price(config.model, config.settings, budget)
    for _, below in agents_in(config.tools):
        _check_prices(below.config, budget)


def stopped_by(config: Configuration, stop: Stop | None) -> tuple[Budget, ...] | None:
    """The budgets of an agent of which one stopped a run, for somebody who asks to go on with it: there may be more in
    them now, after midnight or as they allow more. None if none of them did."""
    if stop is None or stop.reason not in ("max_cost", "max_tokens"):
        return None
    stopped = any(stop.detail.startswith(f"{budget.called} ") for budget in config.budgets)
    return config.budgets if stopped else None


def all_budgets(config: Configuration) -> Iterator[Budget]:
    """The budgets of an agent and of those below it."""
    yield from config.budgets
    for _, below in agents_in(config.tools):
        yield from all_budgets(below.config)


def check_whose(config: Configuration, whose: Whose) -> None:
    """Refuses a run of which a budget, of an agent below too, does not know whose purse is meant."""
    for budget in all_budgets(config):
        require_whose(budget, whose)


def one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    """Refuses a value that is none of `known`."""
    if value not in known:
        raise Misuse(f"{name} takes one of {', '.join(map(repr, known))}; it was given {value!r}")


def kind(name: str, value: object, fits: Callable[[Any], bool], wanted: str) -> None:
    """Refuses a value that is given and does not fit; `wanted` says what would."""
    if value is not None and not fits(value):
        raise Misuse(f"{name} takes {wanted}; it was given {value!r}")


def asked_of(input: Input, what: str = "the question") -> UserMessage | None:
    """The question in `input` as a message; `what` is what it is called where it cannot be one."""
    if input is None:
        return None
    parts = (Text, Image, File)
    if isinstance(input, (list, tuple)) and input and all(isinstance(part, parts) for part in input):
        input = UserMessage(tuple(input))
    elif isinstance(input, str):
        input = UserMessage(input)
    if not isinstance(input, UserMessage):
        raise Misuse(f"{what} is a text, or a list of Text, Image and File parts; it was given {input!r}")
    if isinstance(input.content, (str, tuple)) and not input.says_something:
        raise Misuse(f"{what} is empty")
    return input


def watcher_of(on_event: OnEvent) -> OnEvent:
    """`on_event`, if it can be called as a plain function."""
    if on_event is not None and (inspect.iscoroutinefunction(on_event) or not callable(on_event)):
        raise Misuse("on_event takes a plain function; for an asynchronous one, iterate over agent.stream(…)")
    return on_event


def rules_in(approvals: Iterable[ApprovalRule]) -> tuple[ApprovalRule, ...]:
    """The rules of an agent, which are a list also where there is one."""
    if isinstance(approvals, (ApprovalRule, str)) or not isinstance(approvals, Iterable):
        raise Misuse(f"approvals takes a list of rules: approvals=[ask_before(…)]; it was given {approvals!r:.100}")
    return tuple(approvals)


def check_approvals(
    rules: Sequence[ApprovalRule], tools: Mapping[str, Tool], servers: Sequence[ToolServer] = ()
) -> None:
    """Refuses rules that are none, or name a tool that neither these are nor those of the agents below.

    What a server will list is not known yet: any name of its own is taken.
    """
    names = list(dict.fromkeys(name for name, _ in _all_below(tools)))
    for rule in rules:
        kind("approvals", rule, lambda it: isinstance(it, ApprovalRule), "ask_before(…), deny(…) and allow(…)")
        for unknown in sorted(set(rule.tools).difference(names)):
            if any(is_of(server.name, unknown) for server in (*servers, *_servers_below(tools))):
                continue
            raise Misuse(f"an approval rule names a tool {unknown!r}; this agent has {', '.join(names) or 'none'}")


def check_condition(config: Configuration) -> None:
    """Refuses a stop condition that looks for calls of a tool which the agent has not: it would never hold, or always.

    The calls of an agent below are made in a run of its own, at which no condition of this one looks; what the final
    tool of a typed answer is called with is the answer, and no call.
    """
    enough, typed = config.stop_when, config.output
    for wanted in () if enough is None else enough.calls_of:
        if wanted in config.tools or any(is_of(server.name, wanted) for server in config.servers):
            continue
        why = ""
        if any(name == wanted for name, _ in _all_below(config.tools)):
            why = "; it looks at the calls of this agent's runs, and not at those of agents below"
        elif typed is not None and typed.tool is not None and wanted == typed.tool.name:
            why = "; that one's arguments are the answer, with which the run ends"
        told = [*config.tools, *[f"{server.name}__…" for server in config.servers]]
        raise Misuse(f"stop_when names a tool {wanted!r}; this agent has {', '.join(told) or 'none'}{why}")


def _servers_below(tools: Mapping[str, Tool]) -> Iterator[ToolServer]:
    for _, below in agents_in(tools):
        yield from below.config.servers
        yield from _servers_below(below.config.tools)


def _all_below(tools: Mapping[str, Tool]) -> Iterator[tuple[str, Tool]]:
    """`tools` by name, and those of the agents that work on calls of some of them."""
    yield from tools.items()
    for _, below in agents_in(tools):
        yield from _all_below(below.config.tools)


def refuse_unknown(function: Callable[..., Any], unknown: Iterable[str], agent: type[Any]) -> None:
    """Refuses keyword arguments that `function` does not take, with what was probably meant.

    Args:
        function: the agent itself, a way to run it, or to make it a tool.
        unknown: the names that were given.
        agent: the class of the agent.
    """
    for name in unknown:
        known, of_agents, of_runs = (inspect.signature(one).parameters for one in (function, agent, agent.run))
        # A stream may be of a new run, or of one that goes on.
        of_some = OF_RUNS if "approve" not in known else OF_RESUMED | OF_RUNS if "input" in known else OF_RESUMED
        of_some = OF_TOOLS if "description" in known else of_some
        words, word = ARGUMENTS if function is agent else of_some, as_spelled_here(name)
        meant = words.get(word) or (word if word in of_runs else _part_of_option(word))
        meant = meant or nearest(word, known) or name
        near, option = "" if meant == name else f"; did you mean {meant}?", meant.partition("=")[0]
        if option not in known and option in of_agents:
            near = f"; it is the agent that takes {meant}: {agent.__name__}(…)"
        elif option not in known and option in of_runs:
            near = f"; it is a run that takes {meant}: agent.run(…, {option}=…)"
        raise Misuse(f"{function.__name__} takes no argument {name!r}{near}")


def _part_of_option(name: str) -> str:
    """The option that `name` is a part of: one of the limits, or of how a model is to generate; empty if it is none."""
    if limit := Limits.called(name):
        return f"limits=Limits({limit}=…)"
    setting = ModelSettings.called(name)
    return f"settings=ModelSettings({setting}=…)" if setting else ""


def require_dependencies_injected(tools: Iterable[Tool]) -> None:
    """Refuses a parameter of the dependencies' type that the model would have to fill in."""
    tools = list(tools)
    kinds = {one for tool in tools for one in tool.deps_types} - {type(None)}
    for tool in tools:
        for name, annotation in tool.filled:
            if annotation in kinds:
                what = getattr(annotation, "__name__", annotation)
                raise Misuse(
                    f"the parameter {name!r} of {tool.name} has the type of the dependencies, {what}, and the model "
                    f"would fill it in: write {name}: Injected[{what}]"
                )


def require_one_kind_of_dependencies(tools: Mapping[str, Tool], deps_type: type | None) -> None:
    """Refuses tools that no one value of `deps=` could serve, those of the agents below included.

    Two fit each other where a class that one takes is a subclass of one that the other takes; with `deps_type`, each
    takes that class or a class above it.
    """
    wanted = {name: tool.deps_types for name, tool in _all_below(tools) if tool.deps_types}
    for name, kinds in wanted.items():
        if deps_type is not None and not any(_is_below(deps_type, kind) for kind in kinds):
            raise Misuse(
                f"{name} takes dependencies of type {_named(kinds)}, and deps_type is {deps_type.__name__}; give a "
                "deps_type that is both"
            )
    # Most tools take the same, and what fits one of them fits all.
    alike: list[tuple[str, Any]] = []
    for name, kinds in wanted.items() if deps_type is None else ():
        if all(kinds != others for _, others in alike):
            alike.append((name, kinds))
    for (one, kinds), (other, others) in combinations(alike, 2):
        if not any(_is_below(a, b) or _is_below(b, a) for a in kinds for b in others):
            raise Misuse(
                f"a run has one value for deps=, but {one} takes {_named(kinds)} and {other} takes {_named(others)}; "
                "let both take one class, or give as deps_type= a class that is both"
            )


def require_dependencies(
    tools: Mapping[str, Tool], deps: object, advice: str = "give the run some with deps=…"
) -> None:
    """Refuses a run without dependencies where a tool, of an agent below too, says that it takes some."""
    for name, tool in _all_below(tools) if deps is None else ():
        if tool.needs_deps:
            raise Misuse(f"{name} takes dependencies of type {tool.needs_deps}: {advice}")


def require_answers_that_fit(tools: Mapping[str, Tool], output: AnswerType) -> None:
    """Refuses a hand-off to an agent whose answer is of another type than that of the agent that hands on."""
    for name, below in agents_in(tools):
        other = below.other_than(output)
        if other is not None and other.output is not None:
            given = _kind(other.output)
            raise Misuse(
                f"{name} hands the conversation on, and the answer of {other.name} is a {given}, but "
                f"that of this agent must be a {_kind(output)}; give {other.name} the same output=, or none"
            )


def _kind(output: AnswerType) -> str:
    """A type as it is written, where its name alone would not tell: `list[int]`, and not `list`."""
    return output.name if isinstance(output.kind, type) else str(output.kind).replace("typing.", "")


def _is_below(kind: type, other: type) -> bool:
    try:
        return issubclass(kind, other)
    except TypeError:
        # A protocol that cannot be asked: what fits it is the type checker's to say.
        return True


def _named(kinds: Iterable[type]) -> str:
    return " or ".join(kind.__name__ for kind in kinds)


def ceiling(limits: Limits | None, stop_when: Condition | None) -> Limits:
    """The limits of an agent: those it was given, else the defaults, with room for the steps `stop_when` counts."""
    if limits is not None:
        return limits
    counted = 0 if stop_when is None else stop_when.most_steps
    return Limits(steps=max(counted + 1, Limits().steps or 0)) if counted else Limits()
