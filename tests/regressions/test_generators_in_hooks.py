"""Generators of the application's that end oddly, or never.

- a model that raises `GeneratorExit` ended `agent.run` with an exception group from within, as a hook did
- messages, or tools, of `StepSettings` out of a generator without an end were read for ever
"""

import asyncio
import itertools

import pytest

from treadle import Agent, Misuse, StepSettings, Summarise, tool
from treadle.kernel.messages import UserMessage
from treadle.models.text_tools import TextTools
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@tool(effect="read")
async def look() -> str:
    """Looks."""
    return "seen"


class Leaves:
    """A model that raises `GeneratorExit`: as it is asked, or from its stream."""

    name = "leaves"

    def __init__(self, at_once: bool) -> None:
        self.at_once = at_once

    def stream(self, request):
        if self.at_once:
            raise GeneratorExit("gone")
        return self

    def __aiter__(self):
        return self

    async def __anext__(self):
        raise GeneratorExit("gone")


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("at_once", [True, False])
async def test_a_model_that_raises_generator_exit_is_at_fault(at_once: bool, eager: bool) -> None:
    for model in (Leaves(at_once), TextTools(Leaves(at_once))):
        result = await Agent(model, tools=[look], eager=eager).run("go")
        assert (result.stop.reason, str(result.error)) == ("model_error", "GeneratorExit: gone")


async def test_a_summary_by_such_a_model_is_done_without() -> None:
    script = ScriptedModel([[("look", {})], [("look", {})], [("look", {})], "done"])
    agent = Agent(script, tools=[look], context=Summarise(Leaves(False), high=200, low=10))
    assert (await agent.run("go")).text == "done"


def leaves(*_):
    raise GeneratorExit("gone")


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize(
    ("hook", "told"),
    [
        ("prepare_step", "prepare_step raised GeneratorExit"),
        ("on_tool_call", "on_tool_call raised GeneratorExit"),
        ("on_tool_result", "on_tool_result raised GeneratorExit"),
        ("on_answer", "on_answer raised GeneratorExit"),
        ("stop_when", "stop_when raised GeneratorExit"),
    ],
)
async def test_a_hook_that_raises_generator_exit_raises_an_error_of_its_own(hook: str, told: str, eager: bool) -> None:
    functions = {
        "prepare_step": lambda context: leaves(),
        "on_tool_call": lambda call: leaves(),
        "on_tool_result": lambda call, result: leaves(),
        "on_answer": lambda answer, context: leaves(),
        "stop_when": lambda state: leaves(),
    }
    script = ScriptedModel([[("look", {}), ("look", {"again": 1})], "done"])
    with pytest.raises(RuntimeError, match=told):
        await Agent(script, tools=[look], eager=eager, **{hook: functions[hook]}).run("go")


class ToldToStop(asyncio.CancelledError):
    """What a group takes for any other error."""


@pytest.mark.parametrize("eager", [True, False])
async def test_a_condition_that_cancels_itself_in_words_of_its_own_is_in_no_group(eager: bool) -> None:
    def enough(state):
        raise ToldToStop

    with pytest.raises(RuntimeError, match="stop_when cancelled itself"):
        await Agent(ScriptedModel([[("look", {})], "done"]), tools=[look], eager=eager, stop_when=enough).run("go")


@pytest.mark.parametrize(
    "settings",
    [
        lambda: StepSettings(messages=itertools.repeat(UserMessage("go"))),
        lambda: StepSettings(tools=itertools.repeat("look")),
    ],
)
async def test_step_settings_without_an_end_are_refused(settings) -> None:
    agent = Agent(ScriptedModel(["done"]), tools=[look], prepare_step=lambda context: settings())
    with pytest.raises(Misuse, match="with no end after 100,000"):
        await agent.run("go")


async def test_a_live_run_whose_condition_raises_generator_exit_is_in_no_group() -> None:
    script = ScriptedModel([[("look", {})], "done"])
    agent = Agent(script, tools=[look], stop_when=lambda state: leaves())

    async def watched() -> None:
        async with agent.stream("go") as run:
            async for _ in run:
                pass

    with pytest.raises(RuntimeError, match="stop_when raised GeneratorExit"):
        await watched()
