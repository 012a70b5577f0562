"""Functions of the application's that hold the event loop up beyond the run's deadline: nothing more begins after them.

The loop cannot tell of a deadline while a function holds it, and what came next began before it could: a model was
asked, and paid for, and a tool that writes was run -> test_nothing_begins_after_a_function_that_held_the_loop_too_long
"""

import time

import pytest
from play import within

from treadle import Agent, Limits, MemoryJournal, Retry, Summarise, deny, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

LIMIT = 0.5
"""Seconds that a run has; it comes to the function that holds the loop long before."""


class World:
    """What was begun, and what of it after a function held the event loop for longer than the run has."""

    def __init__(self):
        self.begun, self.before = [], None

    def hold(self, *_):
        if self.before is None:
            time.sleep(LIMIT * 1.1)
            self.before = [*self.begun]

    def model(self):
        def turn(request):
            self.begun.append("model")
            more = self.before is None and request.step < 5
            return [("pay", {"n": 1}), ("look", {"n": 1}), ("look", {"n": 2})] if more else "done"

        return ScriptedModel(turn)

    def tools(self):
        @tool
        async def pay(n: int) -> str:
            """Pays."""
            self.begun.append("pay")
            return "paid " + "lorem " * 300

        @tool(effect="read")
        async def look(n: int) -> str:
            """Looks."""
            self.begun.append("look")
            return "seen"

        return [pay, look]

    def again(self, call, result):
        self.hold()
        return Retry() if call.name == "look" else None

    def summary(self):
        """A condition that holds the loop, where a summary comes next."""

        def write(request):
            self.begun.append("summary")
            return "All was seen."

        policy = Summarise(ScriptedModel(write), high=700, low=300, max_tokens=50)
        return {"stop_when": lambda state: len(state.steps) == 2 and bool(self.hold()), "context": policy}


PLACES = {
    "instructions": lambda world: {"instructions": lambda _: world.hold() or "Be quick."},
    "prepare_step": lambda world: {"prepare_step": world.hold},
    "stop_when": lambda world: {"stop_when": lambda _: bool(world.hold())},
    "approvals": lambda world: {"approvals": [deny(when=lambda _: bool(world.hold()))]},
    "on_tool_call": lambda world: {"on_tool_call": world.hold},
    "a condition before a summary": World.summary,
    "on_tool_result": lambda world: {"on_tool_result": world.again},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("journal", "eager"), [(None, True), (MemoryJournal(), False)])
async def test_nothing_begins_after_a_function_that_held_the_loop_too_long(place, journal, eager):
    world = World()
    agent = Agent(
        world.model(), tools=world.tools(), limits=Limits(seconds=LIMIT), journal=journal, eager=eager,
        **PLACES[place](world),
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.stop.reason == "deadline"
    assert world.before is not None
    assert world.begun == world.before
    asked = sum(len(message.calls) for message in result.messages if message.role == "assistant")
    assert asked == sum(message.role == "tool" for message in result.messages)
