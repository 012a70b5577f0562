"""Progress: what is a loop, what is none, and what the model and the person are told of it.

What was found, and the test that holds it:

- tools withheld say so to the model, and for how long -> test_withheld_tools_are_told_to_the_model_and_for_how_long,
  test_a_call_of_a_withheld_tool_says_that_it_is_withheld
- success is success even if its text begins with "Error" -> test_a_reader_of_logs_is_not_stopped
- the window counts steps, not calls -> test_a_batch_repeated_for_ever_is_seen
- the live gate canonicalises arguments as the finder does -> test_a_loop_is_seen_however_its_arguments_are_written
- repeated successes of `write` tools are not a loop by themselves -> test_repeated_writes_that_succeed_are_no_loop
- nudges have a bound -> test_nudges_have_a_bound
- "withheld" never leads to `answered` -> test_a_run_that_ends_while_tools_are_withheld_is_not_answered
- the loop is named where a limit ended the run, and only there -> test_no_loop_is_named_where_there_is_none
- wanted by readers -> test_the_loop_is_named_although_a_limit_ended_the_run
"""

import pytest
from play import Bank, reply, within

from treadle import Agent, Limits, tool
from treadle.kernel.events import NudgeGiven
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
async def other() -> str:
    """Do something else."""
    return "else"


def stubborn(request):
    return "summary" if request.tool_choice == "none" else [("look", {"key": "a"})]


def nudges(result):
    return [event for event in result.events if isinstance(event, NudgeGiven)]


async def test_withheld_tools_are_told_to_the_model_and_for_how_long():
    model = ScriptedModel(stubborn)
    await within(Agent(model, tools=[Bank().look, other]).run("go"))
    without = [request for request in model.requests if "look" not in {spec.name for spec in request.tools}]
    assert without, "look is withheld for a step"
    said = " ".join(message.text for message in without[0].messages if message.role in ("user", "system"))
    assert "look" in said
    assert "step" in said


async def test_a_call_of_a_withheld_tool_says_that_it_is_withheld():
    model = ScriptedModel(stubborn)
    result = await within(Agent(model, tools=[Bank().look, other]).run("go"))
    refused = [message.text for message in result.messages if message.role == "tool" and message.is_error]
    assert refused
    assert all("no tool" not in text for text in refused), "it exists, and is withheld"
    assert "step" in refused[0]


async def test_a_reader_of_logs_is_not_stopped():
    @tool(effect="read")
    async def ticket(n: int) -> str:
        """Read a ticket."""
        return "Error: the printer is out of paper"

    def turn(request):
        return "done" if request.step >= 15 or request.tool_choice == "none" else [("ticket", {"n": request.step})]

    result = await within(Agent(ScriptedModel(turn), tools=[ticket]).run("go"))
    assert result.stop.reason == "answered"
    assert len(result.tool_calls_made) == 15
    assert not nudges(result)


async def test_a_batch_repeated_for_ever_is_seen():
    bank = Bank()
    batch = [("look", {"key": str(n)}) for n in range(10)]

    def turn(request):
        return "summary" if request.tool_choice == "none" else batch

    agent = Agent(ScriptedModel(turn), tools=bank.tools, limits=Limits(steps=40, tool_calls=1000))
    result = await within(agent.run("go"))
    assert result.stop.reason == "no_progress"
    assert len(result.steps) < 20


async def test_a_loop_is_seen_however_its_arguments_are_written():
    bank = Bank()

    @tool(effect="read")
    async def find(a: int, b: int) -> str:
        """Find."""
        return "found"

    ways = ['{"a":1,"b":2}', '{"b": 2, "a": 1}', '{ "a" : 1,\n "b" : 2 }', '{"a":1,"b":2}  ']

    def turn(request):
        if request.tool_choice == "none":
            return "summary"
        return reply((f"c{request.step}", "find", ways[request.step % 4]))

    result = await within(Agent(ScriptedModel(turn), tools=[find, bank.look], limits=Limits(steps=30)).run("go"))
    assert result.stop.reason == "no_progress"
    plain = await within(
        Agent(
            ScriptedModel(lambda request: "x" if request.tool_choice == "none" else [("find", {"a": 1, "b": 2})]),
            tools=[find, bank.look], limits=Limits(steps=30),
        ).run("go")
    )  # fmt: skip
    assert len(result.steps) == len(plain.steps)


async def test_repeated_writes_that_succeed_are_no_loop():
    pressed = []

    @tool(effect="write")
    async def press() -> str:
        """Press the button once more."""
        pressed.append(1)
        return "pressed"

    def turn(request):
        return "done" if request.step >= 12 or request.tool_choice == "none" else [("press", {})]

    result = await within(Agent(ScriptedModel(turn), tools=[press]).run("press it twelve times"))
    assert result.stop.reason == "answered"
    assert len(pressed) == 12


async def test_nudges_have_a_bound():
    """A model that does something else after each nudge, and then falls back, is not told so for ever."""
    bank = Bank()

    def turn(request):
        if request.tool_choice == "none":
            return "summary"
        last = request.messages[-1]
        if last.role == "user" and request.step:
            return [("look", {"key": f"new {request.step}"})]
        return [("look", {"key": "a"})]

    agent = Agent(ScriptedModel(turn), tools=[bank.look, other], limits=Limits(steps=200, tool_calls=None))
    result = await within(agent.run("go"))
    assert result.stop.reason == "no_progress"
    assert len(nudges(result)) <= 5


async def test_a_run_that_ends_while_tools_are_withheld_is_not_answered():
    """A model that is denied its tool and says something empty-handed has not done the task."""

    def turn(request):
        if request.tool_choice == "none":
            return "summary"
        if "look" not in {spec.name for spec in request.tools}:
            return "I cannot go on without look."
        return [("look", {"key": "a"})]

    result = await within(Agent(ScriptedModel(turn), tools=[Bank().look, other]).run("go"))
    assert result.stop.reason == "no_progress"
    assert not result.finished


@pytest.mark.parametrize("steps", [3, 4, 5])
@pytest.mark.parametrize("on_limit", ["stop", "answer"])
async def test_the_loop_is_named_although_a_limit_ended_the_run(steps, on_limit):
    agent = Agent(ScriptedModel(stubborn), tools=[Bank().look, other], limits=Limits(steps=steps), on_limit=on_limit)
    result = await within(agent.run("go"))
    assert result.stop.reason in ("max_steps", "no_progress")
    assert "look" in f"{result.stop.detail} {result.stop.advice}"


async def test_no_loop_is_named_where_there_is_none():
    agent = Agent(
        ScriptedModel(lambda request: [("look", {"key": str(request.step)})]), tools=[Bank().look],
        limits=Limits(steps=4), on_limit="stop",
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.stop.reason == "max_steps"
    assert "look" not in f"{result.stop.detail} {result.stop.advice}"
