"""Runs to try policies in: a tool, scripts that use it, and what must hold of the record."""

import asyncio

from rules import valid

from treadle import Limits, tool
from treadle.kernel.events import (
    ContextEdited,
    decode_event,
    encode_event,
)
from treadle.kernel.fold import fold
from treadle.kernel.state import RunState

LIMITS = Limits(steps=60, tool_calls=200)


@tool(effect="read")
async def look(n: int, size: int = 1000) -> str:
    """Look."""
    return (f"saw {n}: " + "look " * size)[: size + 7]


def looks(count, size=1000, end="done"):
    """A script that looks `count` times and then answers."""
    return lambda request: end if request.step >= count else [("look", {"n": request.step, "size": size})]


def run(agent, text="the question", **more):
    return asyncio.run(agent.run(text, **more))


def edits(result):
    return [event for event in result.events if isinstance(event, ContextEdited)]


def refolded(result):
    """The run's state from its stored events alone; and they fold at every prefix."""
    events = [decode_event(encode_event(event)) for event in result.events]
    state = RunState()
    for event in events:
        state = fold(state, event)
    assert list(state.messages) == result.messages
    return state


def checked(model, result):
    """Every request was valid and the run's record folds."""
    for request in model.requests:
        valid(list(request.messages))
    refolded(result)
    return result
