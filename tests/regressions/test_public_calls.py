"""What people give to the public calls: each is refused where it is given, or means what it says.

- a rule that could never match, and other things in the place of rules, tools and agents ->
  test_a_rule_that_could_never_match_is_refused, test_one_rule_without_a_list_is_refused,
  test_an_agent_in_the_place_of_a_tool_is_told_apart, test_a_handoff_takes_an_agent
- a reaction that cannot be carried out killed the run for good -> test_a_reaction_that_cannot_be_is_refused_when_made
- an answer that is None was said to be none -> test_an_output_that_is_none_is_an_output
- decisions and stop conditions of the wrong kind were raw errors, some of them in the middle of a run ->
  test_what_is_pending_can_be_decided_as_it_is, test_a_decision_of_the_wrong_kind_is_refused,
  test_a_stop_condition_of_the_wrong_kind_is_refused
- a loop of `agent.step` that never ended, and what is said of a step ->
  test_a_loop_of_steps_ends_where_the_model_fails, test_a_step_that_is_not_the_last_says_so,
  test_a_loop_of_steps_over_an_approval, test_a_step_over_a_wrong_answer_goes_on, test_a_step_takes_plain_messages,
  test_a_step_that_cannot_be_names_step
- words of other frameworks in the calls of an agent -> test_an_unknown_argument_of_a_call_gets_did_you_mean,
  test_an_unknown_limit_gets_did_you_mean
- tools that want dependencies were run without any -> test_a_run_without_the_dependencies_of_its_tools_is_refused,
  test_a_tool_that_can_do_without_dependencies_is_run_without
"""

import copy
import inspect
import pickle

import msgspec
import pytest
from play import within

from treadle import (
    Agent,
    Alternative,
    ApprovalRule,
    AskUser,
    Injected,
    Limits,
    Misuse,
    Retry,
    RunStopped,
    Text,
    ToolContext,
    allow,
    ask_before,
    consecutive_errors,
    cost_over,
    deny,
    elapsed_over,
    handoff,
    has_tool_call,
    step_count,
    text_contains,
    tokens_over,
    tool,
    tool_call_count,
)
from treadle.kernel.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from treadle.models import BadRequest
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look(key: str) -> str:
    """Looks something up."""
    return f"{key} is there"


class Shop:
    pass


@tool(effect="read")
def stock(shop: Injected[Shop]) -> str:
    """Tells what is in stock."""
    return type(shop).__name__


@tool(effect="read")
def stock_by_context(context: ToolContext[Shop]) -> str:
    """Tells what is in stock."""
    return type(context.deps).__name__


@tool(effect="read")
def stock_if_any(shop: Injected[Shop | None], context: ToolContext[Shop] | None = None) -> str:
    """Tells what is in stock."""
    return type(shop).__name__


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


def careful():
    script = [[("look", {"key": "a"}), ("look", {"key": "b"})], "done"]
    return Agent(ScriptedModel(script), tools=[look], approvals=[ask_before("look")])


@pytest.mark.parametrize("by", ["approve", "deny"])
async def test_what_is_pending_can_be_decided_as_it_is(by):
    agent = careful()
    waiting = await within(agent.run("go"))
    result = await within(agent.resume(waiting, **{by: waiting.pending}))
    assert result.text == "done"
    assert [call.executed for call in result.tool_calls_made] == [by == "approve"] * 2


async def test_a_pending_call_stands_for_its_arguments():
    agent = careful()
    first, _ = (await within(agent.run("go"))).pending
    other = Agent(ScriptedModel([[("look", {"key": "z"})]]), tools=[look], approvals=[ask_before("look")])
    waiting = await within(other.run("go"))
    with pytest.raises(Misuse, match="other arguments"):
        await within(other.resume(waiting, approve=[first]))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (lambda one: {"approve": one}, r"a list of call ids, such as approve=\[pending.call_id\]"),
        (lambda one: {"approve": True}, "a list of call ids"),
        (lambda one: {"approve": "call_0_0"}, "a list of call ids"),
        (lambda one: {"approve": [5]}, "by its call_id or key"),
        (lambda one: {"deny": one}, r"deny=\[pending.call_id\]"),
        (lambda one: {"deny": {5: "no"}}, "by its call_id or key"),
        (lambda one: {"results": ["call_0_0"]}, r"a dict of results by call id: \{call_id: result\}"),
        (lambda one: {"results": {5: "x"}}, "by its call_id or key"),
    ],
)  # fmt: skip
async def test_a_decision_of_the_wrong_kind_is_refused(given, says):
    agent = careful()
    waiting = await within(agent.run("go"))
    with pytest.raises(Misuse, match=says):
        await within(agent.resume(waiting, **given(waiting.pending[0])))


@pytest.mark.parametrize(
    "make",
    [
        lambda: step_count("3"),
        lambda: step_count(-1),
        lambda: step_count(True),
        lambda: step_count(2.5),
        lambda: has_tool_call(look),
        lambda: has_tool_call(""),
        lambda: tool_call_count("3"),
        lambda: tool_call_count(3, look),
        lambda: text_contains(7),
        lambda: text_contains(""),
        lambda: cost_over("1"),
        lambda: cost_over(float("nan")),
        lambda: tokens_over("many"),
        lambda: elapsed_over(None),
        lambda: consecutive_errors("2"),
        lambda: consecutive_errors(2, by="reply"),
    ],
)
def test_a_stop_condition_of_the_wrong_kind_is_refused(make):
    with pytest.raises(Misuse, match="it was given"):
        make()


async def looped(agent, messages):
    """The loop of docs/steps.md."""
    result = await within(agent.step(messages))
    while result.stop.reason == "max_steps":
        result = await within(agent.step(result.messages))
    return result


async def test_a_loop_of_steps_ends_where_the_model_fails():
    agent = Agent(ScriptedModel([[("look", {"key": "a"})], BadRequest("no")]), tools=[look])
    result = await looped(agent, "go")
    assert result.stop.reason == "model_error"
    with pytest.raises(RunStopped, match="model_error"):
        result.require()


async def test_a_step_that_is_not_the_last_says_so():
    agent = Agent(ScriptedModel([[("look", {"key": "a"})], "done"]), tools=[look], on_limit="raise")
    result = await within(agent.step("go"))
    assert result.stop.reason == "max_steps"
    assert "one step was made" in result.stop.detail
    assert "step again with result.messages" in result.stop.detail
    assert "Raise limits" not in str(result) + result.message
    assert (await looped(agent, result.messages)).text == "done"


async def test_a_loop_of_steps_over_an_approval():
    agent = Agent(
        ScriptedModel([[("look", {"key": "a"})], "done"]), tools=[look], approvals=[ask_before("look")],
        instructions="Be brief.",
    )  # fmt: skip
    waiting = await looped(agent, "go")
    assert waiting.stop.reason == "waiting"
    decided = await within(agent.resume(waiting, approve=waiting.pending))
    assert decided.stop.reason == "max_steps"
    assert (await looped(agent, decided.messages)).text == "done"


async def test_a_step_over_a_wrong_answer_goes_on():
    agent = Agent(ScriptedModel(["many", "3"]), output=int, output_mode="prompted")
    assert (await looped(agent, "How many?")).output == 3


PLAIN = [
    {"role": "system", "content": "left out"},
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"key":"a"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a is there"},
    {"role": "assistant", "content": "It is.", "tool_calls": None},
    {"role": "user", "content": "And b?"},
]


async def test_a_step_takes_plain_messages():
    model = ScriptedModel(["done"])
    result = await within(Agent(model, tools=[look]).step([{"role": "developer", "content": "too"}, *PLAIN]))
    assert result.messages == [
        UserMessage("go"),
        AssistantMessage((ToolCall("c1", "look", '{"key":"a"}'),)),
        ToolMessage("c1", "look", "a is there"),
        AssistantMessage((Text("It is."),)),
        UserMessage("And b?"),
        AssistantMessage((Text("done"),)),
    ]


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ("", r"nothing to answer: give step\(…\)"),
        ([], r"nothing to answer: give step\(…\)"),
        (PLAIN[:5], r"nothing to answer: give step\(…\)"),
        (PLAIN[:1], r"nothing to answer: give step\(…\)"),
        (None, "step takes a question"),
        (5, "step takes a question"),
        (["go"], "treadle.kernel.messages"),
        ([{"role": "robot", "content": "go"}], "Invalid enum value 'robot'"),
        ([{"role": "user", "content": 5}], "Expected `str"),
        ([{"content": "go"}], "missing required field `role`"),
        ([{"role": "tool", "tool_call_id": "c9", "content": "x"}], "of no call before it"),
    ],
)
async def test_a_step_that_cannot_be_names_step(messages, says):
    with pytest.raises(Misuse, match=says):
        await within(Agent(ScriptedModel(["done"]), tools=[look]).step(messages))


@pytest.mark.parametrize(
    ("way", "given", "says"),
    [
        ("run", "max_steps", r"run takes no argument 'max_steps'; did you mean limits=Limits\(steps=…\)"),
        ("run_sync", "limit", "run_sync takes no argument 'limit'; did you mean limits"),
        ("run", "prompt", "did you mean input"),
        ("stream", "message_history", r"did you mean conversation=Conversation\(messages\)"),
        ("start", "onevent", "did you mean on_event"),
        ("run", "tools", r"it is the agent that takes tools: Agent\(…\)"),
        ("run", "system_prompt", r"it is the agent that takes instructions: Agent\(…\)"),
        ("run", "xyzzy", "run takes no argument 'xyzzy'$"),
        ("resume", "approved", "resume takes no argument 'approved'; did you mean approve"),
        ("step", "dependencies", "step takes no argument 'dependencies'; did you mean deps"),
    ],
)
async def test_an_unknown_argument_of_a_call_gets_did_you_mean(way, given, says):
    agent = Agent(ScriptedModel(["done"]))

    async def call():
        found = getattr(agent, way)("go", **{given: 3})
        return await found if inspect.isawaitable(found) else found

    with pytest.raises(Misuse, match=says):
        await call()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("max_steps", "Limits takes no argument 'max_steps'; did you mean steps="),
        ("max_tool_calls", "did you mean tool_calls="),
        ("timeout", "did you mean seconds="),
        ("max_cost", "did you mean usd="),
        ("max_turns", "did you mean steps="),
        ("xyzzy", "it takes steps, tool_calls, seconds, usd, tokens, consecutive_errors"),
    ],
)
def test_an_unknown_limit_gets_did_you_mean(given, says):
    with pytest.raises(Misuse, match=says):
        Limits(**{given: 3})


def test_limits_are_still_plain_data():
    limits = Limits(3, seconds=1)
    assert msgspec.json.decode(msgspec.json.encode(limits), type=Limits) == limits
    assert msgspec.structs.replace(limits, steps=4) == Limits(4, seconds=1)
    assert pickle.loads(pickle.dumps(limits)) == copy.deepcopy(limits) == limits


def below(used):
    """An agent whose tool wants dependencies, as a tool."""
    return Agent(ScriptedModel([[(used.name, {})], "done"]), tools=[used], name="keeper").as_tool()


@pytest.mark.parametrize("given", [stock, stock_by_context, below(stock)], ids=["injected", "context", "below"])
async def test_a_run_without_the_dependencies_of_its_tools_is_refused(given):
    agent = Agent(ScriptedModel(["done", "done"]), tools=[given])
    for way in (agent.run, agent.step):
        with pytest.raises(Misuse, match=r"takes dependencies of type Shop: give the run some with deps=…"):
            await within(way("go"))
    assert agent.model.requests == []
    assert (await within(agent.run("go", deps=Shop()))).finished


async def test_dependencies_of_a_plain_type_are_asked_for_too():
    """The function was given None, and its error was for the model to read."""

    @tool
    def left(stock: Injected[dict[str, int]]) -> int:
        """Tells what is left."""
        return stock["tea"]

    agent = Agent(ScriptedModel([[("left", {})], "done"]), tools=[left])
    with pytest.raises(
        Misuse, match=r"left takes dependencies of type dict\[str, int\]: give the run some with deps=…"
    ):
        await within(agent.run("go"))
    assert (await within(agent.run("go", deps={"tea": 3}))).tool_calls_made[0].result.text == "3"


async def test_a_tool_that_can_do_without_dependencies_is_run_without():
    agent = Agent(ScriptedModel([[("stock_if_any", {})], "done"]), tools=[stock_if_any])
    result = await within(agent.run("go"))
    assert result.tool_calls_made[0].result.text == "NoneType"
