"""What a hostile reader of the docs gave to the public calls: each is refused where it is given, or means what it says.

- a rule that could never match, and other things in the place of rules, tools and agents ->
  test_a_rule_that_could_never_match_is_refused, test_one_rule_without_a_list_is_refused,
  test_an_agent_in_the_place_of_a_tool_is_told_apart, test_a_handoff_takes_an_agent
- a reaction that cannot be carried out killed the run for good -> test_a_reaction_that_cannot_be_is_refused_when_made
- an answer that is None was said to be none -> test_an_output_that_is_none_is_an_output
"""

import pytest
from play import within

from treadle import (
    Agent,
    Alternative,
    ApprovalRule,
    AskUser,
    Misuse,
    Retry,
    allow,
    ask_before,
    deny,
    handoff,
    step_count,
    tool,
)
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look(key: str) -> str:
    """Looks something up."""
    return f"{key} is there"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ask_before(effect="wirte"), "'wirte'; did you mean 'write'"),
        (lambda: deny(effect="Write"), "'Write'; did you mean 'write'"),
        (lambda: allow(effect=""), "'read', 'idempotent', 'write'"),
        (lambda: ask_before(effect=["write"]), "'read', 'idempotent', 'write'"),
        (lambda: deny(["pay"]), r"one by one, such as deny\('pay', 'refund'\)"),
        (lambda: deny(look), "names of tools"),
        (lambda: ask_before(""), "names of tools"),
        (lambda: ask_before("look", None), "names of tools"),
        (lambda: ApprovalRule("dney"), "did you mean 'deny'"),
        (lambda: ApprovalRule("deny", tools="pay"), "takes a tuple as tools="),
        (lambda: ApprovalRule("deny", effects=("wirte",)), "did you mean 'write'"),
        (lambda: deny("look", when=True), "function of the arguments"),
        (lambda: deny("look", repeats="2"), "whole number"),
    ],
)  # fmt: skip
def test_a_rule_that_could_never_match_is_refused(make, says):
    with pytest.raises(Misuse, match=says):
        make()


@pytest.mark.parametrize("given", [ask_before("look"), "look", None, True], ids=repr)
def test_one_rule_without_a_list_is_refused(given):
    with pytest.raises(Misuse, match=r"takes a list of rules: approvals=\[ask_before"):
        Agent(ScriptedModel([]), tools=[look], approvals=given)


@pytest.mark.parametrize("given", [None, print, Agent(ScriptedModel([]))], ids=["none", "function", "agent"])
def test_tools_without_a_list_are_refused(given):
    with pytest.raises(Misuse, match=r"take lists: tools=\[my_tool\]"):
        Agent(ScriptedModel([]), tools=given)


def test_an_agent_in_the_place_of_a_tool_is_told_apart():
    with pytest.raises(Misuse, match=r"agent\.as_tool\(\).*handoff\(agent\)"):
        Agent(ScriptedModel([]), tools=[Agent(ScriptedModel([]))])


@pytest.mark.parametrize("given", ["x", None, look], ids=["text", "none", "tool"])
def test_a_handoff_takes_an_agent(given):
    with pytest.raises(Misuse, match=r"handoff\(agent\)"):
        handoff(given)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: AskUser(""), "the question that the person is asked"),
        (lambda: AskUser(" \n"), "the question"),
        (lambda: AskUser(None), "the question"),
        (lambda: Retry("3"), "seconds from 0 as delay=; it was given '3'"),
        (lambda: Retry(-1), "seconds from 0"),
        (lambda: Retry(True), "seconds from 0"),
        (lambda: Retry(float("nan")), "seconds from 0"),
        (lambda: Retry(float("inf")), "seconds from 0"),
        (lambda: Retry(arguments="{}"), "Retry takes the arguments to call with, as a dict"),
        (lambda: Alternative("s", "x"), "Alternative takes the arguments to call with, as a dict"),
        (lambda: Alternative("s", None), "as a dict"),
        (lambda: Alternative("", {}), "the name of one of the agent's tools"),
        (lambda: Alternative(look, {}), "the name of one"),
    ],
)  # fmt: skip
def test_a_reaction_that_cannot_be_is_refused_when_made(make, says):
    with pytest.raises(Misuse, match=says):
        make()


@pytest.mark.parametrize("mode", ["native", "tool", "prompted"])
@pytest.mark.parametrize("enough", [None, step_count(1)], ids=["answered", "condition"])
async def test_an_output_that_is_none_is_an_output(mode, enough):
    said = {"native": '{"result": null}', "tool": [("final_answer", {"result": None})], "prompted": "null"}[mode]
    agent = Agent(ScriptedModel([said]), output=int | None, output_mode=mode, stop_when=enough)
    result = await within(agent.run("How many, if any?"))
    assert result.finished
    assert result.output is None
    assert "no output" not in str(result.stop)


async def test_an_output_that_is_none_comes_through_a_handoff():
    expert = Agent(ScriptedModel(['{"result": null}']), name="expert", output=int | None, output_mode="native")
    agent = Agent(
        ScriptedModel([[("transfer_to_expert", {})]]), tools=[handoff(expert)], output=int | None, output_mode="native"
    )
    result = await within(agent.run("How many, if any?"))
    assert result.finished
    assert result.output is None
    assert "no output" not in str(result.stop)


async def test_an_output_that_could_not_be_read_is_still_said_to_be_missing():
    agent = Agent(ScriptedModel(["many"]), output=int | None, stop_when=step_count(1))
    result = await within(agent.run("How many, if any?"))
    assert result.output is None
    assert "there is no output" in result.stop.detail
