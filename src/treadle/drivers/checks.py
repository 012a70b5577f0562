"""Checks: what cannot be right is refused at once, by a `Misuse` that says what would be."""

import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from treadle.drivers.approvals import ApprovalRule
from treadle.drivers.configuration import require_price
from treadle.drivers.run import RunEvent
from treadle.kernel.context import storable_text
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Content, File, Image, Text, UserMessage
from treadle.kernel.stop import Limits
from treadle.models.port import Model

Input = str | UserMessage | Sequence[Content] | None
OnEvent = Callable[[RunEvent], object] | None


def model_of(model: str | Model) -> Model:
    """The model in `model`: itself, or the one of that name."""
    if isinstance(model, str):
        from treadle.models.names import model_from_name

        return model_from_name(model)
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
        return UserMessage(storable_text(input))
    if isinstance(input, (list, tuple)) and input and all(isinstance(part, (Text, Image, File)) for part in input):
        return UserMessage(tuple(input))
    raise Misuse(f"the question is a text, or a list of Text, Image and File parts; it was given {input!r}")


def watcher_of(on_event: OnEvent) -> OnEvent:
    """`on_event`, if it can be called as a plain function."""
    if on_event is not None and (inspect.iscoroutinefunction(on_event) or not callable(on_event)):
        raise Misuse("on_event takes a plain function; for an asynchronous one, iterate over agent.stream(…)")
    return on_event


def rules_of(approvals: Iterable[ApprovalRule], names: Collection[str]) -> tuple[ApprovalRule, ...]:
    """The rules on approvals of an agent whose tools have these names."""
    rules = tuple(approvals)
    for rule in rules:
        kind("approvals", rule, lambda it: isinstance(it, ApprovalRule), "ask_before(…), deny(…) and allow(…)")
        for unknown in set(rule.tools).difference(names):
            raise Misuse(f"an approval rule names a tool {unknown!r}; this agent has {', '.join(names) or 'none'}")
    return rules
