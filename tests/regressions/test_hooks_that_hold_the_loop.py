"""Functions of the application's that hold the event loop up beyond the run's deadline: nothing more begins after them.

The loop cannot tell of a deadline while a function holds it, and what came next began before it could: a model was
asked, and paid for, and a tool that writes was run -> test_nothing_begins_after_a_function_that_held_the_loop_too_long
"""

import time

import pytest
from play import within

from treadle import Agent, Limits, MemoryJournal, Retry, deny, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class World:
    """What was begun, and what of it after a function held the event loop for longer than the run has."""

    def __init__(self):
        self.begun, self.before = [], None

    def hold(self, *_):
        if self.before is None:
            time.sleep(0.3)
            self.before = [*self.begun]

    def model(self):
        def turn(request):
            self.begun.append("model")
            return "done" if request.step else [("pay", {"n": 1}), ("look", {"n": 1}), ("look", {"n": 2})]

        return ScriptedModel(turn)

    def tools(self):
        @tool
        async def pay(n: int) -> str:
            """Pays."""
            self.begun.append("pay")
            return "paid"

        @tool(effect="read")
        async def look(n: int) -> str:
            """Looks."""
            self.begun.append("look")
            return "seen"

        return [pay, look]

    def again(self, call, result):
        self.hold()
        return Retry() if call.name == "look" else None


PLACES = {
    "instructions": lambda world: {"instructions": lambda _: world.hold() or "Be quick."},
    "prepare_step": lambda world: {"prepare_step": world.hold},
    "stop_when": lambda world: {"stop_when": lambda _: bool(world.hold())},
    "approvals": lambda world: {"approvals": [deny(when=lambda _: bool(world.hold()))]},
    "on_tool_call": lambda world: {"on_tool_call": world.hold},
    "on_tool_result": lambda world: {"on_tool_result": world.again},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("journal", [None, MemoryJournal()])
@pytest.mark.parametrize("eager", [True, False])
async def test_nothing_begins_after_a_function_that_held_the_loop_too_long(place, journal, eager):
    world = World()
    agent = Agent(
        world.model(), tools=world.tools(), limits=Limits(seconds=0.2), journal=journal, eager=eager,
        **PLACES[place](world),
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.stop.reason == "deadline"
    assert world.before is not None
    assert world.begun == world.before
    told = [message for message in result.messages if message.role == "tool"]
    assert len(told) == (0 if not result.steps or not result.steps[0].calls else 3)
