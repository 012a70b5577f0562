"""What is given in place of a list, a turn, a number of seconds or a text is refused in words, where it is given."""

import pytest

from treadle import (
    Agent,
    Budget,
    Conversation,
    Limits,
    MemoryJournal,
    Misuse,
    PostgresJournal,
    Retries,
    Skill,
    SkillRegistry,
    SqliteJournal,
    ToolSearch,
    deny,
    external_tool,
    tool,
)
from treadle.mcp import MCPServer
from treadle.models import FallbackModel, Overloaded, RateLimited
from treadle.testing import ScriptedModel
from treadle.tools import BadTool


@tool(effect="read")
def look(q: str = "") -> str:
    """Looks at a thing again."""
    return q


async def later(text: str) -> str:
    return text


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Skill("s", "", look), r"the tools of the skill 's' are given as a list, \[Tool\('look'"),
        (lambda: Skill("s", 3, [look]), "the instructions of the skill 's' are a text, not 3"),
        (lambda: SkillRegistry(Skill("s", "", [look])), "the skills of a registry are given as a list"),
        (lambda: SkillRegistry(tools=look), "the tools of a registry are given as a list"),
        (lambda: tool(description=3)(lambda: 1), "description=3, but it is a text"),
        (lambda: external_tool("done", 3), "external_tool: description=3, but it is a text"),
        (lambda: Agent(ScriptedModel([])).as_tool("x", 3), "as_tool: description=3, but it is a text"),
    ],
)
def test_what_is_no_tool_says_how_it_is_given(make, told):
    with pytest.raises(BadTool, match=told):
        make()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: ToolSearch(look), "ToolSearch takes a list of tools"),
        (
            lambda: ToolSearch([MCPServer.stdio("true", name="shop")]),
            "'shop' is a server, .*; give the server to the agent",
        ),
        (lambda: FallbackModel(ScriptedModel([])), "FallbackModel takes a list of models"),
        (lambda: FallbackModel(["openai:gpt-5"]), "model_from_name"),
        (
            lambda: Agent(ScriptedModel([])).with_journal("runs.db"),
            r"with_journal takes a journal such as SqliteJ.*'runs\.db'",
        ),
        (lambda: Agent(ScriptedModel([])).with_model(None), "model takes a name such as .*; it was given None"),
        (lambda: Budget(usd=1, on_warning=print), r"say which, such as warn=\(0\.5, 0\.9\)"),
        (lambda: MemoryJournal(redact="secret"), "redact= takes a plain function .*; it was given 'secret'"),
        (lambda: SqliteJournal("runs.db", redact=later), "redact= takes a plain function"),
        (lambda: PostgresJournal("postgresql:///x", redact=3), "redact= takes a plain function .*; it was given 3"),
        (lambda: FallbackModel([ScriptedModel([])], on=ValueError), r"FallbackModel\(on=…\) takes classes"),
        (lambda: Conversation(3), "a conversation holds .*; it was given 3"),
        (lambda: ScriptedModel("hello"), r"takes a list of turns, such as .*; given: 'hello'"),
        (lambda: ScriptedModel(None), "takes a list of turns"),
        (lambda: ScriptedModel(["x"], price=3), r"takes price=Price\(…\); it was given 3"),
        (lambda: ScriptedModel(["x"], usage=3), r"takes usage=Usage\(…\); it was given 3"),
        (lambda: Agent(ScriptedModel([]), retries=Retries(attempts="3")), "retries takes .*; it was given '3'"),
        (lambda: Agent(ScriptedModel([]), retries=Retries(base=-1)), "retries takes base= and most= in seconds"),
        (lambda: Agent(ScriptedModel([]), retries=Retries(most=True)), "retries takes base= and most= in seconds"),
        (lambda: Agent(ScriptedModel([]), retries=Retries(attempts=True)), "retries takes Retries"),
        (lambda: Agent(ScriptedModel([]), retries=True), "retries takes Retries"),
        (lambda: Agent(ScriptedModel([]), retries=Retries(most="60")), "retries takes base= and most= in seconds"),
    ],
)
def test_what_does_not_fit_says_what_would(make, told):
    with pytest.raises(Misuse, match=told):
        make()


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (3, "it is 3"),
        (("a",), r"it is \('a',\)"),
        (("a", "b"), r"it is \('a', 'b'\)"),
        (("look", {"q": "x"}), r"it is \('look', \{'q': 'x'\}\)"),
        (["look"], r"'look' is no \(tool, arguments\) pair"),
        ([("look",)], r"\('look',\) is no \(tool, arguments\) pair"),
        (None, "it is None"),
    ],
)
def test_a_turn_that_is_none_is_told_by_its_number(turn, why):
    agent = Agent(ScriptedModel([[("look", {})], turn]), tools=[look], limits=Limits(steps=3))
    with pytest.raises(Misuse, match=f"turn 2 of the script is none: {why}"):
        agent.run_sync("go")


def test_one_class_of_errors_may_stand_alone():
    models = [ScriptedModel([Overloaded("busy")]), ScriptedModel(["other"])]
    assert Agent(FallbackModel(models, on=Overloaded)).run_sync("go").text == "other"
    models = [ScriptedModel([Overloaded("busy")]), ScriptedModel(["other"])]
    assert Agent(FallbackModel(models, on=RateLimited), retries=0).run_sync("go").stop.reason == "model_error"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"prepare_step": lambda: None}, "prepare_step takes a function of a StepContext; it was given"),
        ({"on_tool_call": lambda call, result: None}, "on_tool_call takes a function of a call; it was given"),
        ({"on_tool_result": lambda result: None}, "on_tool_result takes a function of a call and a result; it"),
        ({"on_tool_result": [lambda call, result: None, lambda: None]}, "on_tool_result takes .* with that alone"),
        ({"on_answer": lambda answer: None}, "on_answer takes a function of an answer and its StepContext; it was"),
        ({"instructions": lambda: "Be brief."}, "instructions takes a text or a function of a RunContext; it was"),
        ({"errors": lambda: True}, "errors takes a function of the value that a tool returned; it was given"),
    ],
)
def test_a_function_that_takes_other_arguments_is_refused_before_anything_is_paid(given, told):
    with pytest.raises(Misuse, match=told):
        Agent(ScriptedModel([]), **given)


def test_a_rule_whose_function_takes_other_arguments_is_refused_and_not_held_for_a_no():
    with pytest.raises(Misuse, match="when= takes a function of the arguments; it was given"):
        deny("look", when=lambda: False)
    with pytest.raises(BadTool, match=r"needs_approval=.*, but it is True, False, or a function of the arguments"):
        tool(needs_approval=lambda: False, name="one", description="Looks at it.")(lambda: 1)
    with pytest.raises(BadTool, match=r"errors=.*, but it is a function of the returned value"):
        tool(errors=lambda: False, name="one", description="Looks at it.")(lambda: 1)


def test_functions_that_take_more_by_default_are_taken():
    model = ScriptedModel([[("look", {"q": "x"})], "Done."])
    agent = Agent(
        model,
        tools=[look],
        instructions=lambda context, more="": "Be brief.",
        prepare_step=lambda *given: None,
        on_tool_result=lambda call, result, again=False: f"{result.content}!",
        approvals=[deny("look", when=lambda arguments, **more: arguments["q"] == "y")],
    )
    assert agent.run_sync("go").tool_calls_made[0].result.text == "x!"
