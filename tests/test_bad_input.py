"""Bad input to an agent or a run: refused at once, with what would be right."""

import asyncio

import pytest

from treadle import (
    Agent,
    BadTool,
    Conversation,
    Limits,
    Misuse,
    StepSettings,
    tool,
)
from treadle.kernel.messages import AssistantMessage, Text, UserMessage
from treadle.models.names import UnknownModel
from treadle.testing import ScriptedModel


@pytest.fixture
def done():
    return []


@pytest.fixture
def count(done):
    @tool(effect="read")
    async def count(n: int = 0) -> int:
        """Count."""
        done.append(n)
        return n

    return count


def named(name):
    def function() -> None:
        """Do nothing."""

    return tool(function, name=name)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"tools": [named("a"), named("a")]}, BadTool, "a"),
        ({"tools": [42]}, BadTool, "42"),
        ({"tools": named("a")}, Misuse, "lists"),
        ({"tools": "calculator"}, Misuse, "lists"),
        ({"skills": "arithmetic"}, Misuse, "lists"),
        ({"tool_choice": "nope"}, Misuse, "tool_choice 'nope' is none of auto, none, required"),
        ({"tool_choice": "nope", "tools": [named("yep")]}, Misuse, "yep"),
        ({"on_limit": "explode"}, Misuse, "'answer', 'stop', 'raise'"),
        ({"on_interrupted": "guess"}, Misuse, "'ask', 'tell'"),
        ({"limits": {"steps": 3}}, Misuse, "Limits"),
        ({"limits": 3}, Misuse, "Limits"),
        ({"stop_when": 3}, TypeError, "step_count"),
        ({"stop_when": []}, TypeError, "step_count"),
        ({"prepare_step": 3}, Misuse, "StepContext"),
        ({"instructions": 3}, Misuse, "text or a function"),
        ({"settings": {"temperature": 1}}, Misuse, "ModelSettings"),
        ({"journal": "runs.db"}, Misuse, "SqliteJournal"),
        ({"output": 42}, Misuse, "Pydantic"),
        ({"limits": Limits(usd=1)}, Misuse, "price of scripted is not known"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_a_wrong_agent_is_refused_at_once(arguments, error, says):
    with pytest.raises(error, match=says):
        Agent(ScriptedModel(["x"]), **arguments)


@pytest.mark.parametrize("model", ["gpt-5", "antropic:claude", "openai:", "", "local:model"])
def test_an_unknown_model_name_is_refused_at_once(model):
    with pytest.raises(UnknownModel):
        Agent(model)


@pytest.mark.parametrize("model", [None, 42, object(), ScriptedModel])
def test_what_is_no_model_is_refused_at_once(model):
    with pytest.raises(Misuse, match="model takes a name"):
        Agent(model)


def test_a_missing_key_is_said_at_once(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(Misuse, match="ANTHROPIC_API_KEY"):
        Agent("anthropic:claude-sonnet-4-5")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"input": ""}, "empty"),
        ({"input": "  \n"}, "empty"),
        ({"input": None}, "nothing to answer"),
        ({"input": 42}, "question is a text"),
        ({"input": ["go"]}, "question is a text"),
        ({"input": []}, "question is"),
        ({"limits": {"steps": 3}}, "Limits"),
        ({"conversation": []}, "Conversation"),
        ({"on_event": "print"}, "on_event"),
    ],
    ids=str,
)
def test_a_wrong_run_is_refused_before_anything_happens(given, says):
    model = ScriptedModel(["x"])
    agent = Agent(model)
    arguments = {"input": "go", **given}
    with pytest.raises(Misuse, match=says):
        agent.run_sync(**arguments)
    assert model.requests == []


def test_a_wrong_message_to_a_run_that_goes_on_is_called_by_its_name():
    agent = Agent(ScriptedModel(["x"]))
    result = agent.run_sync("go")
    with pytest.raises(Misuse, match="message is a text"):
        asyncio.run(agent.resume(result, message=3))
    with pytest.raises(Misuse, match="message is empty"):
        asyncio.run(agent.resume(result, message=" "))


@pytest.mark.parametrize("given", [{"input": ""}, {"limits": 3}, {"on_event": 3}], ids=str)
def test_a_wrong_run_does_not_keep_its_conversation(given):
    said = Conversation()
    agent = Agent(ScriptedModel(["x"]))
    with pytest.raises(Misuse):
        agent.run_sync(**{"input": "go", **given}, conversation=said)
    assert agent.run_sync("go", conversation=said).finished
    assert said.messages == (UserMessage("go"), AssistantMessage((Text("x"),)))


def test_an_asynchronous_on_event_is_refused():
    async def watch(event):
        raise AssertionError

    with pytest.raises(Misuse, match="plain function"):
        Agent(ScriptedModel(["x"])).run_sync("go", on_event=watch)


def test_resume_without_a_journal_says_what_to_do():
    with pytest.raises(Misuse, match=r"keeps no journal.*give resume the result"):
        asyncio.run(Agent(ScriptedModel(["x"])).resume("20260101-000000-abc"))
    with pytest.raises(Misuse, match=r"keeps no journal.*give cancel the result"):
        asyncio.run(Agent(ScriptedModel(["x"])).cancel("20260101-000000-abc"))


def test_a_run_without_a_journal_is_cancelled_by_its_result():
    made = []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pays."""
        made.append(amount)
        return "paid"

    async def check():
        agent = Agent(ScriptedModel([[("pay", {"amount": 1})], "Paid."]), tools=[pay])
        waiting = await agent.run("Pay.")
        assert (await agent.cancel(waiting)).stop.reason == "cancelled"
        with pytest.raises(Misuse, match="has finished"):
            await agent.resume(waiting, approve=waiting.pending)

    asyncio.run(check())
    assert made == []


def test_prepare_step_that_names_no_tool_of_the_agent(count):
    with pytest.raises(Misuse, match="count"):
        Agent(
            ScriptedModel(["x"]), tools=[count], prepare_step=lambda context: StepSettings(tools=["missing"])
        ).run_sync("go")
