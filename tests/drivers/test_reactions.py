"""What the application makes of tool results before the model is shown them; and what the model is told is left."""

import pytest

from treadle import Agent, Alternative, AskUser, Limits, Misuse, Retry, tool
from treadle.kernel.events import ToolReacted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


def tools(failures=0):
    tries = []

    @tool(effect="read")
    def search(text: str) -> dict:
        """Search the web."""
        tries.append(text)
        if len(tries) <= failures:
            raise ValueError("down")
        return {"found": text, "confidence": 0.3}

    @tool(effect="read")
    def archive(text: str) -> str:
        """Search the archive."""
        return f"archived {text}"

    @tool
    def write(text: str) -> str:
        """Write."""
        tries.append(text)
        raise ValueError("no")

    return [search, archive, write], tries


async def run(react, failures=0, call=("search", {"text": "x"}), **options):
    given, tries = tools(failures)
    agent = Agent(ScriptedModel([[call], "done"]), tools=given, on_tool_result=react, **options)
    return await agent.run("go"), tries, agent


async def test_a_result_may_be_replaced_or_left():
    result, _, _ = await run(lambda call, output: {"text": output.content.upper()})
    assert "FOUND" in result.tool_calls_made[0].result.text
    result, _, _ = await run(lambda call, output: None)
    assert '"found":"x"' in result.tool_calls_made[0].result.text


async def test_a_call_may_be_made_again_and_its_last_result_stands():
    async def react(call, output):
        return Retry(arguments={"text": "better"}) if output.is_error else None

    result, tries, _ = await run(react, failures=1)
    assert tries == ["x", "better"]
    assert not result.tool_calls_made[0].is_error
    result, tries, _ = await run(react, failures=99)
    assert len(tries) == 4
    assert result.tool_calls_made[0].is_error


async def test_another_tool_may_be_tried_on_an_error():
    result, _, _ = await run(
        lambda call, output: Alternative("archive", {"text": call.arguments["text"]}) if output.is_error else None, 1
    )
    assert [m.text for m in result.messages if m.role == "tool"] == ["archived x"]


async def test_the_person_is_asked_when_the_result_says_that_its_confidence_is_low():
    asked = lambda call, output: AskUser("Is it x?") if '"confidence":0.3' in output.content else None  # noqa: E731
    result, _, agent = await run(asked)
    assert result.stop.reason == "waiting"
    (pending,) = result.pending
    assert (pending.kind, pending.question) == ("result", "Is it x?")
    done = await agent.resume(result, results={pending.call_id: "no, y"})
    assert done.finished
    assert done.tool_calls_made[0].result.text == "no, y"


async def test_what_may_run_only_once_is_not_called_again():
    result, tries, _ = await run(lambda call, output: Retry(), call=("write", {"text": "x"}))
    assert tries == ["x"]
    assert result.finished
    assert "ValueError: no" in result.tool_calls_made[0].result.text
    [reaction] = [event for event in result.events if isinstance(event, ToolReacted)]
    assert reaction.action == "keep"
    assert "may run only once" in reaction.reason


async def test_a_tool_that_the_agent_does_not_have_is_no_alternative():
    with pytest.raises(Misuse, match="does not have"):
        await run(lambda call, output: Alternative("nix", {}))


async def test_the_model_is_told_what_is_left_where_it_breaks_no_prefix():
    given, _ = tools()
    model = ScriptedModel([[("search", {"text": "a"})], [("search", {"text": "b"})], "done"])
    agent = Agent(model, tools=given, tell_remaining=True, limits=Limits(steps=7, tokens=50_000))
    result = await agent.run("go")
    notes = [request.messages[-1].text for request in model.requests]
    assert notes[0].startswith("(What is left of this task's limits: 7 steps, this one included, 100 tool calls")
    assert "5 steps" in notes[2]
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert list(after.messages)[: len(before.messages) - 1] == list(before.messages)[:-1]
    assert not any("What is left" in message.text for message in result.messages)
