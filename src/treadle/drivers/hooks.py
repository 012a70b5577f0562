"""Hooks: the application's functions around model calls and tool calls, and how several of a kind make one.

Each kind is asked at one place: before a model call (`prepare_step`), about an answer (`on_answer`), before a tool call
(`on_tool_call`, and then the rules of `treadle.drivers.approvals`), about a tool's result (`on_tool_result`). They are
asked in the order in which they were given, each with what those before it made of the matter; what comes of it is one
event.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import fields, replace
from itertools import islice
from typing import Any, Final

from treadle.drivers.configuration import StepContext, StepSettings
from treadle.drivers.request import require_tools
from treadle.drivers.run import Run
from treadle.kernel.errors import Misuse
from treadle.signatures import takes

MOST: Final = 100_000
"""Messages, or tools, that are read of what may have no end; far more than any model takes."""


def hooks_in(name: str, given: Any, wanted: str, *takes_these: None) -> tuple[Callable[..., Any], ...]:
    """The functions of one kind: none, one, or several in their order.

    Raises:
        Misuse: something is no function, or takes more or less than `takes_these`.
    """
    several = isinstance(given, (list, tuple)) or (isinstance(given, Iterable) and not callable(given))
    # Of these the members are no functions, or in no order.
    several = several and not isinstance(given, (str, bytes, Mapping, Set))
    functions = () if given is None else tuple(given) if several else (given,)
    for one in functions:
        if not callable(one):
            raise Misuse(f"{name} takes {wanted}, or a list of them; it was given {one!r:.100}")
        if not takes(one, *takes_these):
            raise Misuse(f"{name} takes {wanted}; it was given {one!r:.100}, which cannot be called with that alone")
    return functions


def context_of(run: Run, step: int, chosen: StepSettings) -> StepContext[Any]:
    """What a function is told of a step, with what those before it have chosen."""
    state = run.state
    messages = state.messages if chosen.messages is None else chosen.messages
    return StepContext(step, state.steps, messages, run.config.model, state, run.deps, chosen, tuple(run.config.tools))


async def settings_of(run: Run, step: int) -> StepSettings | None:
    """What the functions of `prepare_step` choose together for a step; None if none of them chooses anything.

    A tool is offered if all of them that name tools offer it; of everything else the last word counts.

    Raises:
        Misuse: one of them returned something else.
    """
    settings: StepSettings | None = None
    for function in run.config.prepare_step:
        found = await run.driven.own(function, "prepare_step", context_of(run, step, settings or StepSettings()))
        if found is not None and not isinstance(found, StepSettings):
            raise Misuse(f"prepare_step returns StepSettings or None; it returned {found!r}")
        if found is not None:
            found = _readable(found)
            require_tools(run.config, found.tools)
            settings = found if settings is None else _together(settings, found)
    return settings


def _readable(found: StepSettings) -> StepSettings:
    """`found` with lists in place of what can be read only once: the functions after this one read it, and the step."""
    return replace(found, tools=_listed("tools", found.tools), messages=_listed("messages", found.messages))


def _listed(name: str, given: Any) -> Any:
    """`given`, as a list if it can be read only once. Raises Misuse if it comes to no end."""
    if not isinstance(given, Iterator):
        return given
    listed = list(islice(given, MOST + 1))
    if len(listed) > MOST:
        raise Misuse(f"StepSettings takes {name} as a list; it was given {given!r:.100}, with no end after {MOST:,}")
    return listed


def _together(before: StepSettings, after: StepSettings) -> StepSettings:
    chosen = {one.name: getattr(after, one.name) for one in fields(after) if getattr(after, one.name) is not None}
    if before.tools is not None and after.tools is not None:
        chosen["tools"] = [name for name in after.tools if name in before.tools]
    return replace(before, **chosen)


async def objection_of(run: Run, answer: Any) -> str:
    """What the first function of `on_answer` that objects has against an answer; empty if none has anything.

    Raises:
        Misuse: one of them returned something else.
    """
    for function in run.config.on_answer:
        step = len(run.state.steps) - 1
        found = await run.driven.own(function, "on_answer", answer, context_of(run, step, StepSettings()))
        if found is not None and (not isinstance(found, str) or not found.strip()):
            raise Misuse(
                f"on_answer returns a text that says what is wrong with the answer, or None; it returned {found!r:.100}"
            )
        if found is not None:
            return found
    return ""
