"""Runs taken up under other limits, rules that change what they are given, and hooks that cancel what runs them."""

import asyncio

import pytest
from play import Bank, copied, cut, kinds, pieces, reply, told, within

from treadle import (
    Agent,
    Alternative,
    CallModel,
    Conversation,
    Limits,
    MemoryJournal,
    Misuse,
    PrepareStep,
    Price,
    Retries,
    Retry,
    RunTools,
    SqliteJournal,
    StepSettings,
    ToolError,
    ask_before,
    deny,
    external_tool,
    handoff,
    has_tool_call,
    tool,
    tool_call_count,
)
from treadle.kernel.events import ToolStarted
from treadle.models import ConnectionFailed
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

PAY = [("pay", {"amount": 5})]


def paying(times, first=0):
    return [("pay", {"amount": n}) for n in range(first, first + times)]


async def test_a_waiting_run_goes_on_under_a_higher_limit_on_calls():
    bank = Bank()
    agent = Agent(
        ScriptedModel([paying(4), paying(2, 10), "done"]), tools=bank.tools, limits=Limits(tool_calls=2),
        approvals=[ask_before("pay", when=lambda arguments: arguments["amount"] == 0)],
    )  # fmt: skip
    waiting = await within(agent.run("go"))
    result = await within(agent.resume(waiting, approve=waiting.pending, limits=Limits(tool_calls=10)))
    assert result.stop.reason == "answered"
    assert len(bank.ran) == 4


async def test_a_sub_run_goes_on_under_a_higher_limit_of_the_run_above():
    bank = Bank()
    below = Agent(
        ScriptedModel([paying(3), paying(2, 10), "paid"]), name="below", tools=bank.tools,
        approvals=[ask_before("pay", when=lambda arguments: arguments["amount"] == 0)],
    )  # fmt: skip
    agent = Agent(
        ScriptedModel([[("below", {"task": "pay"})], "done"]), tools=[below.as_tool()], limits=Limits(tool_calls=3)
    )
    waiting = await within(agent.run("go"))
    result = await within(agent.resume(waiting, approve=waiting.pending, limits=Limits(tool_calls=50)))
    assert (result.text, told(result)[-1]) == ("done", "paid")
    assert len(bank.ran) == 4


@pytest.mark.parametrize("most", [0, 1, 3])
async def test_a_lower_limit_on_calls_holds_for_calls_that_wait(most):
    bank = Bank()
    agent = Agent(ScriptedModel([paying(4), "done"]), tools=bank.tools, approvals=[ask_before("pay")])
    waiting = await within(agent.run("go"))
    result = await within(agent.resume(waiting, approve=waiting.pending, limits=Limits(tool_calls=most)))
    assert bank.ran == [f"pay {n}" for n in range(most)]
    assert (
        sum("limit of tool calls is reached" in one and '"executed":false' in one for one in told(result)) == 4 - most
    )


async def test_a_lower_limit_on_calls_holds_below():
    bank = Bank()
    below = Agent(ScriptedModel([paying(3), "paid"]), name="below", tools=bank.tools, approvals=[ask_before("pay")])
    agent = Agent(ScriptedModel([[("below", {"task": "pay"})], "done"]), tools=[below.as_tool()])
    waiting = await within(agent.run("go"))
    await within(agent.resume(waiting, approve=waiting.pending, limits=Limits(tool_calls=2)))
    assert bank.ran == ["pay 0"]


def to_9999(arguments):
    arguments["amount"] = 9999
    return True


async def test_a_rules_function_cannot_change_what_runs():
    bank = Bank()
    agent = Agent(ScriptedModel([PAY, "done"]), tools=bank.tools, approvals=[ask_before("pay", when=to_9999)])
    waiting = await within(agent.run("go"))
    await within(agent.resume(waiting, approve=[waiting.pending[0].key]))
    assert bank.ran == ["pay 5"]


async def test_a_rules_function_that_takes_an_argument_out_spoils_no_call():
    bank = Bank()
    agent = Agent(
        ScriptedModel([PAY, "done"]), tools=bank.tools,
        approvals=[deny("pay", when=lambda arguments: arguments.pop("amount") > 100)],
    )  # fmt: skip
    assert told(await within(agent.run("go"))) == ["paid 5"]


async def test_a_function_above_cannot_lead_a_rule_below_astray():
    bank = Bank()

    def to_1(arguments):
        arguments["amount"] = 1
        return False

    below = Agent(
        ScriptedModel([[("pay", {"amount": 500})], "paid"]), name="below", tools=bank.tools,
        approvals=[deny("pay", when=to_1), deny("pay", when=lambda arguments: arguments["amount"] > 100)],
    )  # fmt: skip
    agent = Agent(
        ScriptedModel([[("below", {"task": "pay"})], "done"]), tools=[below.as_tool()],
        approvals=[deny("pay", when=to_1)],
    )  # fmt: skip
    await within(agent.run("go"))
    assert not bank.ran


async def test_each_attempt_of_a_tool_is_given_what_was_asked_for():
    seen = []

    @tool(effect="read", retries=2)
    async def collect(items: list[int]) -> str:
        """Collects."""
        seen.append(list(items))
        items.append(99)
        raise ValueError("not now")

    await within(Agent(ScriptedModel([[("collect", {"items": [1]})], "done"]), tools=[collect]).run("go"))
    assert seen == [[1], [1], [1]]


async def test_a_message_goes_on_with_a_run_that_a_condition_ended():
    bank = Bank()
    agent = Agent(
        ScriptedModel([[("look", {"key": "a"})], "It is there."]), tools=bank.tools, stop_when=has_tool_call("look")
    )
    first = await within(agent.run("go"))
    assert first.stop.reason == "condition"
    second = await within(agent.resume(first, message="And what is it?"))
    assert (second.stop.reason, second.text) == ("answered", "It is there.")


async def test_a_step_by_hand_that_is_taken_up_is_one_more_step():
    bank = Bank()
    agent = Agent(ScriptedModel([[("look", {"key": "a"})], [("look", {"key": "b"})], "done"]), tools=bank.tools)
    first = await within(agent.step("go"))
    second = await within(agent.resume(first, message="go on"))
    assert (second.stop.reason, bank.ran) == ("max_steps", ["look a", "look b"])


async def test_a_step_by_hand_that_a_limit_cut_says_which():
    bank = Bank()
    agent = Agent(
        ScriptedModel([[("look", {"key": "a"}), ("look", {"key": "b"})], "done"]), tools=bank.tools,
        limits=Limits(tool_calls=1),
    )  # fmt: skip
    assert (await within(agent.step("go"))).stop.reason == "max_tool_calls"


async def test_what_a_hook_made_of_a_handed_on_answer_is_said_to_be_no_output():
    expert = Agent(ScriptedModel(['{"n": 3}']), name="expert", output_mode="prompted", output=dict)
    agent = Agent(
        ScriptedModel([[("transfer_to_expert", {"reason": "hard"})]]), tools=[handoff(expert)], output=dict,
        output_mode="prompted", on_tool_result=lambda call, output: f"checked: {output.content}",
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.output is None
    assert "what came back of the hand-off is no" in result.stop.detail


async def test_conditions_by_name_count_what_a_hook_had_called():
    bank = Bank()

    def instead(call, output):
        return Alternative("pay", {"amount": 5}) if call.doing.name == "look" else None

    agent = Agent(
        ScriptedModel([[("look", {"key": "a"})], "done"]), tools=bank.tools, on_tool_result=instead,
        stop_when=tool_call_count(1, "pay"),
    )  # fmt: skip
    assert (await within(agent.run("go"))).stop.reason == "condition"
    again = Agent(
        ScriptedModel([[("look", {"key": "a"})], "done"]), tools=bank.tools,
        on_tool_result=lambda call, output: Retry() if call.made == 1 else None, stop_when=tool_call_count(2, "look"),
    )  # fmt: skip
    assert (await within(again.run("go"))).stop.reason == "condition"


async def test_what_needs_nobody_is_not_pending():
    bank = Bank()
    hand_in = external_tool("hand_in", "Hand in.", {"type": "object", "properties": {}}, wait=False)
    agent = Agent(ScriptedModel([[*PAY, ("hand_in", {})]]), tools=[bank.pay, hand_in], approvals=[ask_before("pay")])
    waiting = await within(agent.run("go"))
    assert [one.tool for one in waiting.pending] == ["pay"]
    assert (await within(agent.resume(waiting, approve=waiting.pending))).stop.reason == "external_tool"


@pytest.mark.parametrize("run", [None, 5, {"run_id": "r"}])
async def test_what_is_no_run_cannot_be_taken_up(run):
    with pytest.raises(Misuse, match="resume takes a run's id"):
        await within(Agent(ScriptedModel(["done"]), journal=MemoryJournal()).resume(run))


@pytest.mark.parametrize("options", [{"retries": "a"}, {"retries": 1.5}, {"name": 5}])
def test_odd_options_are_refused_when_the_agent_is_built(options):
    (name,) = options
    with pytest.raises(Misuse, match=name):
        Agent(ScriptedModel(["done"]), **options)


@pytest.mark.parametrize("given", [Retry, object()])
async def test_a_hook_that_returns_no_value_is_told_so_and_loses_no_result(given):
    bank, journal = Bank(), MemoryJournal()
    agent = Agent(
        ScriptedModel([PAY, "done"]), tools=bank.tools, on_tool_result=lambda call, output: given, journal=journal
    )
    with pytest.raises(Misuse, match="what on_tool_result returns"):
        await within(agent.run("go"))
    (run,) = await journal.list(5)
    mended = Agent(ScriptedModel(["done"]), tools=bank.tools, on_tool_result=lambda call, output: None, journal=journal)
    assert told(await within(mended.resume(run.run_id))) == ["paid 5"]
    assert bank.ran == ["pay 5"]


@pytest.mark.parametrize("value", [object(), {"a": object()}, ToolError("x")])
async def test_a_result_from_outside_without_a_json_form_decides_nothing(value):
    bank = Bank()
    agent = Agent(ScriptedModel([PAY, "done"]), tools=bank.tools, approvals=[ask_before("pay")])
    waiting = await within(agent.run("go"))
    with pytest.raises(Misuse, match="JSON"):
        await within(agent.resume(waiting, results={waiting.pending[0].call_id: value}))
    assert told(await within(agent.resume(waiting, results={waiting.pending[0].call_id: "paid"}))) == ["paid"]
    assert not bank.ran


def large(arguments):
    return arguments["amount"] > 1000


async def under_way(bank, **options):
    """A journal of which the process died while `pay` was under way."""
    journal = MemoryJournal()
    await within(Agent(ScriptedModel([PAY, "done"]), tools=bank.tools, journal=journal, **options).run("go"))
    (run,) = await journal.list(5)
    events = await journal.read(run.run_id)
    return run.run_id, await cut(run.run_id, events[: kinds(events).index("ToolStarted") + 1])


@pytest.mark.parametrize("how", ["edited", "denied since"])
async def test_a_write_that_was_cut_off_is_never_told_as_not_executed(how):
    bank = Bank()
    run_id, journal = await under_way(bank, approvals=[deny("pay", when=large)])
    rules = [deny("pay", when=large), *([deny("pay")] if how == "denied since" else [])]
    agent = Agent(ScriptedModel(["done"]), tools=bank.tools, approvals=rules, journal=journal)
    left = await within(agent.resume(run_id))
    if how == "edited":
        (one,) = left.pending
        with pytest.raises(Misuse, match="may have been done"):
            await within(agent.resume(run_id, approve={one.call_id: {"amount": 5000}}))
        left = await within(agent.resume(run_id, deny=[one.call_id]))
    elif left.stop.reason == "waiting":
        left = await within(agent.resume(run_id, approve=[one.call_id for one in left.pending]))
    (result,) = told(left)
    assert '"executed":"unknown"' in result
    assert bank.ran == ["pay 5"]


@pytest.mark.parametrize("how", ["a person", "a rule", "nobody"])
async def test_the_known_result_stays_when_a_call_in_its_place_was_cut_off(how):
    bank, journal = Bank(), MemoryJournal()

    @tool
    async def other(amount: int) -> str:
        """The other."""
        return "other"

    def instead(call, output):
        return Alternative("other", {"amount": 1}) if call.doing.name == "pay" else None

    tools = [bank.pay, other]
    await within(Agent(ScriptedModel([PAY, "done"]), tools=tools, on_tool_result=instead, journal=journal).run("go"))
    (run,) = await journal.list(5)
    events = await journal.read(run.run_id)
    at = [i for i, event in enumerate(events) if isinstance(event, ToolStarted)][1]
    left = await cut(run.run_id, events[: at + 1])
    rules = [deny("other")] if how == "a rule" else []
    agent = Agent(
        ScriptedModel(["done"]), tools=tools, on_tool_result=instead, journal=left, approvals=rules,
        on_interrupted="tell" if how == "nobody" else "ask",
    )  # fmt: skip
    result = await within(agent.resume(run.run_id))
    if result.stop.reason == "waiting":
        decision = {"deny": result.pending} if how == "a person" else {"approve": result.pending}
        result = await within(agent.resume(run.run_id, **decision))
    (shown,) = told(result)
    assert shown.startswith("paid 5")
    assert "its outcome is unknown" in shown


async def test_a_conversation_after_a_hook_that_raised_names_no_odd_reason():
    bank = Bank()

    def fails(call, output):
        raise ValueError("mine")

    conversation = Conversation()
    agent = Agent(ScriptedModel([[*PAY, ("look", {"key": "a"})]]), tools=bank.tools, on_tool_result=fails)
    with pytest.raises(ValueError, match="mine"):
        await within(agent.run("go", conversation=conversation))
    assert not any("(running)" in message.text for message in conversation.messages)


async def test_of_several_resumes_at_once_in_one_process_one_goes_on():
    bank, journal = Bank(), MemoryJournal()
    agent = Agent(
        ScriptedModel(lambda request: "done" if request.step else [reply(("a", "pay", '{"amount": 5}'))][0]),
        tools=bank.tools, approvals=[ask_before("pay")], journal=journal,
    )  # fmt: skip
    waiting = await within(agent.run("go"))
    runs = [agent.resume(waiting.run_id, approve=waiting.pending) for _ in range(3)]
    found = await asyncio.gather(*runs, return_exceptions=True)
    assert sum(not isinstance(one, Exception) for one in found) == 1
    assert bank.ran == ["pay 5"]
    assert len(await (await copied(journal)).list(5)) == 1


@tool(effect="read")
async def cancels_its_task() -> str:
    """Cancels the task that runs it."""
    asyncio.current_task().cancel()
    await asyncio.sleep(0)
    return "never"


async def test_a_tool_that_cancels_its_own_task_beside_another_is_a_failed_call():
    bank = Bank()
    agent = Agent(
        ScriptedModel([[("cancels_its_task", {}), ("look", {"key": "a"})], "done"]), tools=[cancels_its_task, bank.look]
    )
    result = await within(agent.run("go"))
    assert (result.stop.reason, result.text) == ("answered", "done")
    assert "cancelled itself" in told(result)[0]
    assert told(result)[1] == "value of a"


async def test_a_tool_that_leaves_a_cancellation_behind_ends_no_run_in_silence():
    @tool(effect="read")
    async def leaves_one() -> str:
        """Cancels the task that runs it, and returns."""
        asyncio.current_task().cancel()
        return "here"

    bank = Bank()
    agent = Agent(ScriptedModel([[("leaves_one", {}), ("look", {"key": "a"})], "done"]), tools=[leaves_one, bank.look])
    assert told(await within(agent.run("go"))) == ["here", "value of a"]


async def test_a_hook_that_cancels_the_task_that_runs_it_ends_no_run_in_silence(tmp_path):
    bank = Bank()

    def cancels(call, output):
        asyncio.current_task().cancel()

    turns = [[("look", {"key": "a"}), ("look", {"key": "b"})], "done"]
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = Agent(ScriptedModel(turns), tools=bank.tools, on_tool_result=cancels, journal=journal)
        with pytest.raises(RuntimeError, match="on_tool_result cancelled itself"):
            await within(agent.run("go"))
        (run,) = await journal.list(5)
        mended = Agent(
            ScriptedModel(["done"]), tools=bank.tools, on_tool_result=lambda call, output: None, journal=journal
        )
        assert (await within(mended.resume(run.run_id))).text == "done"
    assert sorted(bank.ran) == ["look a", "look b"]


async def test_an_early_tool_that_cancels_its_own_task_is_a_failed_call():
    async def stream():
        for piece in pieces("c1", "cancels_its_task", "{}"):
            yield piece
        await asyncio.sleep(0.01)
        yield reply(("c1", "cancels_its_task", "{}"))

    result = await within(Agent(ScriptedModel([stream(), "done"]), tools=[cancels_its_task]).run("go"))
    assert result.text == "done"
    assert "cancelled itself" in told(result)[0]


async def test_what_is_said_during_a_hand_off_is_answered():
    bank = Bank()
    expert = Agent(
        ScriptedModel(lambda request: "paid" if request.step else PAY), name="expert", tools=bank.tools,
        approvals=[ask_before("pay")],
    )  # fmt: skip

    def turn(request):
        if request.step == 0:
            return [("transfer_to_expert", {"reason": "money"})]
        return f"seen: {request.messages[-1].text}"

    waiting = await within(Agent(ScriptedModel(turn), tools=[handoff(expert)]).run("go"))
    agent = Agent(ScriptedModel(turn), tools=[handoff(expert)])
    result = await within(agent.resume(waiting, approve=waiting.pending, message="use Bob instead"))
    assert result.text == "seen: use Bob instead"
    assert [message.text for message in result.messages][-3:-1] == ["paid", "use Bob instead"]


@pytest.mark.parametrize("below", ["as_tool", "handoff", "two below"])
def test_an_agent_below_without_a_price_is_refused_when_the_agent_is_built(below):
    helper = Agent(ScriptedModel(["x"]), name="helper")
    one = handoff(helper) if below == "handoff" else helper.as_tool()
    if below == "two below":
        one = Agent(ScriptedModel(["x"], price=Price(1, 1)), name="middle", tools=[one]).as_tool()
    with pytest.raises(Misuse, match="price"):
        Agent(ScriptedModel(["x"], price=Price(1, 1)), tools=[one], limits=Limits(usd=1))


async def test_an_agent_below_without_a_price_is_refused_before_a_run_is_paid():
    bank = Bank()
    agent = Agent(
        ScriptedModel([PAY], price=Price(1, 1)),
        tools=[bank.pay, Agent(ScriptedModel(["x"]), name="helper").as_tool()],
    )
    with pytest.raises(Misuse, match="price"):
        await within(agent.run("go", limits=Limits(usd=1)))
    assert not bank.ran


async def test_an_early_call_that_is_written_otherwise_the_second_time_is_the_same():
    bank = Bank()

    async def breaks():
        for piece in pieces("a1", "look", '{"key":"a"}'):
            yield piece
        await asyncio.sleep(0.01)
        raise ConnectionFailed("gone")

    turns = [breaks(), reply(("a2", "look", '{ "key": "a" }')), "done"]
    agent = Agent(ScriptedModel(turns), tools=[bank.look], retries=Retries(attempts=2, base=0.001))
    result = await within(agent.run("go"))
    assert (result.text, bank.ran, told(result)) == ("done", ["look a"], ["value of a"])


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"messages": [{"role": "user", "content": "x"}]}, "messages"),
        ({"messages": "x"}, "messages"),
        ({"model": 5}, "model takes"),
        ({"tool_choice": ""}, "tool_choice"),
    ],
)
async def test_a_step_that_cannot_be_chosen_is_a_misuse(chosen, says):
    agent = Agent(ScriptedModel(["done"]), tools=[Bank().look], prepare_step=lambda context: StepSettings(**chosen))
    with pytest.raises(Misuse, match=says):
        await within(agent.run("go"))


async def test_what_is_no_conversation_cannot_be_gone_on_with():
    agent = Agent(ScriptedModel([PAY, "done"]), tools=Bank().tools, approvals=[ask_before("pay")])
    waiting = await within(agent.run("go"))
    with pytest.raises(Misuse, match="Conversation"):
        await within(agent.resume(waiting, approve=waiting.pending, conversation="x"))


def test_fewer_attempts_than_one_are_refused():
    with pytest.raises(Misuse, match=r"retries .* it was given -1"):
        Agent(ScriptedModel(["done"]), retries=-1)


@pytest.mark.parametrize("given", [0.0, "", [], 1.5])
def test_what_is_no_number_of_retries_is_not_taken_for_the_usual_one(given):
    with pytest.raises(Misuse, match="a whole number from 0"):
        Agent(ScriptedModel(["done"]), retries=given)


async def test_a_run_by_hand_that_was_committed_can_be_resumed():
    bank = Bank()
    agent = Agent(ScriptedModel([PAY, "done"]), tools=bank.tools, approvals=[ask_before("pay")])
    run = agent.start("go")
    while command := run.next():
        match command:
            case PrepareStep():
                run.feed(run.prepare(command))
            case CallModel():
                async for event in agent.model.stream(run.request()):
                    last = event
                run.feed(last)
            case RunTools(records=records):
                for record in records:
                    await run.call_tool(record)
            case _:
                run.feed(command.event())
        await run.commit()
    result = await within(agent.resume(run.result, approve=run.result.pending))
    assert (result.text, bank.ran) == ("done", ["pay 5"])
