"""Checks: what cannot be right is refused at once, by a `Misuse` that says what would be."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from treadle.drivers.approvals import ApprovalRule
from treadle.drivers.below import Below
from treadle.drivers.configuration import model_named, require_price
from treadle.drivers.run import RunEvent
from treadle.judging.conditions import Condition
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Content, File, Image, Text, UserMessage
from treadle.kernel.stop import Limits
from treadle.models.port import Model
from treadle.tools import Tool
from treadle.tools.errors import nearest

Input = str | UserMessage | Sequence[Content] | None
OnEvent = Callable[[RunEvent], object] | None


def model_of(model: str | Model) -> Model:
    """The model in `model`: itself, or the one of that name."""
    if isinstance(model, str):
        return model_named(model)
    if not callable(getattr(model, "stream", None)) or not isinstance(getattr(model, "name", None), str):
        raise Misuse(
            "model takes a name such as 'anthropic:claude-sonnet-4-5' or 'offline', or an object with a name and "
            f"stream(request); it was given {model!r}"
        )
    return model


def check_limits(model: Model, limits: Limits) -> None:
    """Refuses limits that are none, or that cannot be kept with `model`."""
    kind("limits", limits, lambda it: isinstance(it, Limits), "Limits(steps=…, usd=…, …)")
    require_price(model, limits)


def one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    """Refuses a value that is none of `known`."""
    if value not in known:
        raise Misuse(f"{name} takes one of {', '.join(map(repr, known))}; it was given {value!r}")


def kind(name: str, value: object, fits: Callable[[Any], bool], wanted: str) -> None:
    """Refuses a value that is given and does not fit; `wanted` says what would."""
    if value is not None and not fits(value):
        raise Misuse(f"{name} takes {wanted}; it was given {value!r}")


def asked_of(input: Input) -> UserMessage | None:
    """The question in `input` as a message."""
    if input is None or isinstance(input, UserMessage):
        return input
    if isinstance(input, str):
        if not input.strip():
            raise Misuse("the question is empty")
        return UserMessage(input)
    if isinstance(input, (list, tuple)) and input and all(isinstance(part, (Text, Image, File)) for part in input):
        return UserMessage(tuple(input))
    raise Misuse(f"the question is a text, or a list of Text, Image and File parts; it was given {input!r}")


def watcher_of(on_event: OnEvent) -> OnEvent:
    """`on_event`, if it can be called as a plain function."""
    if on_event is not None and (inspect.iscoroutinefunction(on_event) or not callable(on_event)):
        raise Misuse("on_event takes a plain function; for an asynchronous one, iterate over agent.stream(…)")
    return on_event


def approvals_of(approvals: Iterable[ApprovalRule], tools: Mapping[str, Tool]) -> tuple[ApprovalRule, ...]:
    """The rules on approvals of an agent with these tools; they may name those of the agents below it too."""
    rules, names = tuple(approvals), _names_below(tools)
    for rule in rules:
        kind("approvals", rule, lambda it: isinstance(it, ApprovalRule), "ask_before(…), deny(…) and allow(…)")
        for unknown in sorted(set(rule.tools).difference(names)):
            raise Misuse(f"an approval rule names a tool {unknown!r}; this agent has {', '.join(names) or 'none'}")
    return rules


def _names_below(tools: Mapping[str, Tool]) -> list[str]:
    """The names of `tools`, and of those of the agents that work on calls of some of them."""
    names = list(tools)
    for tool in tools.values():
        if isinstance(tool.agent, Below):
            names += _names_below(tool.agent.config.tools)
    return list(dict.fromkeys(names))


WORDS = {
    "system_prompt": "instructions",
    "system": "instructions",
    "prompt": "instructions",
    "output_type": "output",
    "result_type": "output",
    "response_format": "output",
    "max_steps": "limits=Limits(steps=…)",
    "max_iterations": "limits=Limits(steps=…)",
    "max_turns": "limits=Limits(steps=…)",
    "max_tokens": "settings=ModelSettings(max_tokens=…)",
    "temperature": "settings=ModelSettings(temperature=…)",
    "model_settings": "settings",
    "functions": "tools",
    "toolsets": "skills",
    "handoffs": "tools=[handoff(agent)]",
    "stop": "stop_when",
    "hooks": "on_tool_result, prepare_step and on_event",
    "llm": "model",
}
"""What other frameworks call the arguments of an agent, and what they are here."""


def refuse_unknown(unknown: Iterable[str], known: Iterable[str]) -> None:
    """Refuses keyword arguments that an agent does not take, with what was probably meant."""
    for name in unknown:
        near = WORDS.get(name) or nearest(name, list(known))
        raise Misuse(f"Agent takes no argument {name!r}{f'; did you mean {near}?' if near else ''}")


def require_dependencies_injected(tools: Iterable[Tool]) -> None:
    """Refuses a parameter of the dependencies' type that the model would have to fill in."""
    tools = list(tools)
    kinds = {one for tool in tools for one in tool.deps_types}
    for tool in tools:
        for name, annotation in tool.filled:
            if annotation in kinds:
                what = getattr(annotation, "__name__", annotation)
                raise Misuse(
                    f"the parameter {name!r} of {tool.name} has the type of the dependencies, {what}, and the model "
                    f"would fill it in: write {name}: Injected[{what}]"
                )


def ceiling(limits: Limits | None, stop_when: Condition | None) -> Limits:
    """The limits of an agent: those it was given, else the defaults, with room for the steps that `stop_when` counts."""
    if limits is not None:
        return limits
    counted = 0 if stop_when is None else stop_when.most_steps
    return Limits(steps=max(counted + 1, Limits().steps or 0)) if counted else Limits()
