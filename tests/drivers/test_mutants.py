"""What mutation testing found untested in the door; each test kills a change that no other test noticed."""

import asyncio
import json
import time
from contextlib import suppress
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, BeforeValidator, Field

from treadle import (
    Agent,
    Alternative,
    Done,
    Image,
    Limits,
    MemoryJournal,
    Misuse,
    Retry,
    SqliteJournal,
    Text,
    ToolContext,
    ToolError,
    ToolResult,
    ask_before,
    deny,
    external_tool,
    handoff,
    tool,
)
from treadle.drivers.lease import taken
from treadle.journal import TakenOver
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.events import (
    ApprovalRequested,
    ResultAwaited,
    RunFinished,
    RunPaused,
    ToolFinished,
    ToolReacted,
    ToolStarted,
)
from treadle.models import AssistantMessage, ModelReply, ToolCall, ToolCallCompleted, ToolCallDelta, ToolCallStarted
from treadle.testing import ScriptedModel
from treadle.tools.errors import AsksPerson, OutcomeUnknown

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@tool(effect="read")
async def look(key: str) -> ToolResult:
    """Look something up."""
    return ToolResult(f"value of {key}", for_app={"key": key})


@tool
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(effect="read")
async def down() -> str:
    """Fail."""
    raise ValueError("the server is down")


def told(result):
    return [message.text for message in result.messages if message.role == "tool"]


def reactions(result):
    return [event for event in result.events if isinstance(event, ToolReacted)]


def waiting_stream(*calls, name="look"):
    """A model whose stream waits after each of `calls`, (id, key), before it says `done` in the next step."""

    async def stream():
        for id, key in calls:
            yield ToolCallStarted(id, name)
            yield ToolCallDelta(id, f'{{"key": "{key}"}}')
            yield ToolCallCompleted(id)
            for _ in range(20):
                await asyncio.sleep(0)
        whole = tuple(ToolCall(f"{id}{i}", name, f'{{"key": "{key}"}}') for i, (id, key) in enumerate(calls))
        yield ModelReply(AssistantMessage(whole), finish="tool_calls")

    return ScriptedModel([stream(), "done"])


def early(result):
    """The calls that started before their reply was in."""
    return [event.arguments for event in result.events if isinstance(event, ToolStarted) and event.name]


async def test_a_tool_that_is_like_no_other_has_no_nearest():
    result = await Agent(ScriptedModel([[("qqqqqq", {})], "done"]), tools=[look]).run("go")
    assert json.loads(told(result)[0]).keys() >= {"given", "available_tools"}
    assert "nearest" not in told(result)[0]


async def test_a_hook_that_a_fresh_process_asks_sees_what_the_application_was_given():
    seen = []
    agent = Agent(ScriptedModel([[("look", {"key": "a"})], "done"]), tools=[look], on_tool_result=lambda *_: None)
    whole = await agent.run("go")
    after = next(i for i, event in enumerate(whole.events) if isinstance(event, ToolFinished)) + 1
    journal = MemoryJournal()
    await journal.append(whole.run_id, 0, whole.events[:after])
    again = Agent(
        ScriptedModel(lambda request: "done"),
        tools=[look],
        journal=journal,
        on_tool_result=lambda call, output: seen.append((output.content, output.app)),
    )
    assert (await again.resume(whole.run_id)).finished
    assert seen == [("value of a", {"key": "a"})]


@pytest.mark.parametrize(
    ("calls", "begun"),
    [
        ([("c", "a"), ("d", "a")], ['{"key": "a"}']),
        ([("c", "a"), ("c", "b")], ['{"key": "a"}']),
        ([("c", "a"), ("d", "b")], ['{"key": "a"}', '{"key": "b"}']),
    ],
)
async def test_neither_the_same_call_nor_the_same_id_starts_early_twice(calls, begun):
    result = await Agent(waiting_stream(*calls), tools=[look]).run("go")
    assert result.finished
    assert early(result) == begun


@pytest.mark.parametrize(("most", "begun"), [(2, 0), (3, 1), (4, 1), (5, 2)])
async def test_a_call_starts_early_while_more_than_twice_as_many_are_left_as_have_begun(most, begun):
    result = await Agent(waiting_stream(("c", "a"), ("d", "b")), tools=[look], limits=Limits(tool_calls=most)).run("go")
    assert len(early(result)) == begun


async def test_a_tool_of_a_run_without_a_deadline_has_none():
    seen = []

    @tool(effect="read")
    async def when(context: ToolContext) -> str:
        """Look at the clock."""
        seen.append(context.deadline)
        return "now"

    agent = Agent(ScriptedModel([[("when", {})], "done"]), tools=[when], limits=Limits(seconds=None))
    assert told(await agent.run("go")) == ["now"]
    assert seen == [None]


async def test_why_a_write_is_not_called_again_is_recorded():
    model = ScriptedModel([[("pay", {"amount": 1})], "done"])
    result = await Agent(model, tools=[pay], on_tool_result=lambda *_: Alternative("pay", {"amount": 2})).run("go")
    assert told(result) == ["paid 1"]
    assert [one.reason for one in reactions(result)] == [
        "pay is not called again: its effect is 'write', it may run only once"
    ]


async def test_a_write_that_was_refused_may_be_called_in_its_own_place():
    model = ScriptedModel([[("pay", {"amount": "much"})], "done"])

    def mend(call, output):
        return Alternative("pay", {"amount": 2}) if output.is_error else None

    assert told(await Agent(model, tools=[pay], on_tool_result=mend).run("go")) == ["paid 2"]


async def test_the_instructions_of_a_sub_agent_are_asked_for_with_the_run_that_they_are_for():
    asked = []
    child = Agent(
        ScriptedModel(["below"]),
        name="child",
        instructions=lambda context: asked.append((context.run_id, context.deps)) or "Be brief.",
    )
    above = Agent(ScriptedModel([[("child", {"task": "x"})], "done"]), tools=[child.as_tool()])
    result = await above.run("go", deps="the deps")
    assert asked == [(f"{result.run_id}.0.call_0_0", "the deps")]


async def test_instructions_of_a_sub_agent_that_are_no_text_are_refused():
    child = Agent(ScriptedModel(["below"]), name="child", instructions=lambda context: 7)
    above = Agent(ScriptedModel([[("child", {"task": "x"})], "done"]), tools=[child.as_tool()])
    with pytest.raises(Misuse, match="the instructions of child are a text; it was given 7"):
        await above.run("go")


async def test_a_quick_result_is_reacted_to_while_a_slow_call_is_under_way():
    reacted = asyncio.Event()

    @tool(effect="read")
    async def slow() -> str:
        """Wait until the other result was looked at."""
        async with asyncio.timeout(10):
            await reacted.wait()
        return "slow"

    def react(call, output):
        if call.name == "look":
            reacted.set()

    model = ScriptedModel([[("slow", {}), ("look", {"key": "a"})], "done"])
    result = await Agent(model, tools=[slow, look], on_tool_result=react).run("go")
    assert told(result) == ["slow", "value of a"]


async def test_a_call_that_a_rule_denies_is_said_not_to_have_been_made():
    model = ScriptedModel([[("pay", {"amount": 1})], "done"])
    result = await Agent(model, tools=[pay], approvals=[deny("pay", reason="no money")]).run("go")
    said = json.loads(told(result)[0])
    assert (said["executed"], said["message"]) == (False, "This call is not allowed: no money.")


async def test_a_call_in_a_step_without_tools_is_said_not_to_have_been_made():
    model = ScriptedModel([[("pay", {"amount": 1})], "done"])
    result = await Agent(model, tools=[pay], tool_choice="none").run("go")
    said = json.loads(told(result)[0])
    assert (said["executed"], said["message"]) == (False, "Tools are off in this step: answer from what you have.")


async def test_a_question_about_a_call_that_was_cut_off_is_recorded_as_that():
    whole = await Agent(ScriptedModel([[("pay", {"amount": 1})], "done"]), tools=[pay]).run("go")
    after = next(i for i, event in enumerate(whole.events) if isinstance(event, ToolStarted)) + 1
    journal = MemoryJournal()
    await journal.append(whole.run_id, 0, whole.events[:after])
    again = Agent(ScriptedModel(["done"]), tools=[pay], journal=journal)
    waiting = await again.resume(whole.run_id)
    (asked,) = [event for event in waiting.events if isinstance(event, ApprovalRequested)]
    assert (asked.why, waiting.pending[0].kind) == ("interrupted", "interrupted")


async def test_a_call_whose_result_comes_from_outside_does_not_start_early():
    schema = {"type": "object", "properties": {"key": {"type": "string"}}}
    outside = external_tool("outside", "Asks somebody.", schema, wait=True)
    agent = Agent(waiting_stream(("c", "a"), name="outside"), tools=[outside, look], journal=MemoryJournal())
    waiting = await agent.run("go")
    assert early(waiting) == []
    assert [one.kind for one in waiting.pending] == ["result"]


async def test_a_call_of_another_tool_than_the_one_that_was_asked_for_is_said_not_to_have_been_made():
    model = ScriptedModel([[("pay", {"amount": 1})], [("look", {"key": "a"})], "done"])
    result = await Agent(model, tools=[pay, look], tool_choice="look", limits=Limits(steps=3)).run("go")
    said = json.loads(told(result)[0])
    assert (said["executed"], said["available_tools"]) == (False, ["look"])


def says(*script):
    """A model that says the same in a step in whatever process."""
    return ScriptedModel(lambda request: script[request.step])


async def taken_up(agent, journal, kind=ToolStarted):
    """What comes of a run whose process died right after the first event of that `kind`."""
    whole = await agent(MemoryJournal()).run("go")
    after = next(i for i, event in enumerate(whole.events) if isinstance(event, kind)) + 1
    await journal.append(whole.run_id, 0, whole.events[:after])
    return await agent(journal).resume(whole.run_id)


async def test_what_cancels_itself_as_it_looks_at_what_a_tool_found_out_says_nothing_of_it():
    """Not even in a task that was told to stop before the run began, and went on."""

    def looks(value):
        raise asyncio.CancelledError

    @tool(reconcile=lambda context: Done("paid before"), errors=looks)
    async def pay() -> str:
        """Pay."""
        return "paid"

    def agent(journal):
        return Agent(says([("pay", {})], "done"), tools=[pay], journal=journal)

    assert told(await taken_up(agent, MemoryJournal())) == ["paid before"]
    (task := asyncio.current_task()).cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    assert told(await taken_up(agent, MemoryJournal())) == ["paid before"]
    task.uncancel()


BEFORE = "It was under way once before, and the outcome of that is unknown: it may have taken effect."
PICTURE = Image(url="https://example.org/a.png")


@pytest.mark.parametrize(
    ("given", "once", "again"),
    [
        (
            ToolError("no such shop", executed=False, available=["a"]),
            '{"error":true,"message":"no such shop","executed":false,"available":["a"]}',
            f'{{"error":true,"message":"no such shop. {BEFORE}","executed":"unknown","available":["a"]}}',
        ),
        (
            ToolResult({"executed": False}, is_error=True),
            '{"error":true,"executed":false}',
            f'{{"error":true,"message":"{BEFORE}","executed":"unknown"}}',
        ),
        (ToolError("no"), *['{"error":true,"message":"no"}'] * 2),
        (ToolError("no", executed=True), *['{"error":true,"message":"no","executed":true}'] * 2),
        (ToolResult(["no", {"executed": False}], is_error=True), *['["no",{"executed":false}]'] * 2),
        (ToolResult(PICTURE, is_error=True), (PICTURE,), (PICTURE,)),
        ("executed: false", "executed: false", "executed: false"),
        ('{"executed":false}', *['{"executed":false}'] * 2),
    ],
)
async def test_a_call_that_is_made_again_and_refused_keeps_what_it_says_beside_what_was_before(given, once, again):
    """The hints of an error that said "not executed" were left out where its words were put right."""

    def fails(value):
        return isinstance(given, ToolResult) or given == "executed: false"

    @tool(effect="idempotent")
    async def ship() -> object:
        """Ship it."""
        if isinstance(given, Exception):
            raise given
        return given

    def agent(journal):
        return Agent(says([("ship", {})], "done"), tools=[ship], journal=journal, errors=fails)

    (first,) = [message for message in (await agent(None).run("go")).messages if message.role == "tool"]
    (second,) = [message for message in (await taken_up(agent, MemoryJournal())).messages if message.role == "tool"]
    assert (first.content, second.content) == (once, again)
    assert first.is_error == second.is_error == (isinstance(given, ToolError) or fails(given))


@pytest.mark.parametrize("effect", ["read", "idempotent"])
async def test_a_call_that_may_be_repeated_and_got_no_answer_is_an_error_like_any_other(effect):
    @tool(effect=effect)
    async def ask() -> str:
        """Ask."""
        raise OutcomeUnknown("the line is dead")

    for on_interrupted in ("ask", "tell"):
        agent = Agent(says([("ask", {})], "done"), tools=[ask], on_interrupted=on_interrupted)
        assert told(await agent.run("go")) == ['{"error":true,"message":"the line is dead"}']


async def test_a_person_is_asked_about_a_write_that_got_no_answer_and_the_model_is_told_where_nobody_is():
    @tool
    async def pay() -> str:
        """Pay."""
        raise OutcomeUnknown("the line is dead")

    why = "pay was under way, and what served it gave no answer"
    asks = Agent(says([("pay", {})], "done"), tools=[pay], journal=MemoryJournal())
    waiting = await asks.run("go")
    assert [(one.kind, one.question) for one in waiting.pending] == [("interrupted", f"{why}.")]
    tells = await Agent(says([("pay", {})], "done"), tools=[pay], on_interrupted="tell").run("go")
    words = f"{why}; its outcome is unknown: it may or may not have taken effect."
    assert told(tells) == [f'{{"error":true,"message":"{words}","executed":"unknown"}}']


async def test_a_write_that_asked_a_person_and_was_cut_off_asks_again_where_it_is_made_again():
    """What the person answered was for the call that was cut off; the token of that without an answer says nothing."""
    seen = []

    @tool
    async def pay(context: ToolContext) -> str:
        """Pay, in the currency that the person wants."""
        seen.append((context.again, context.answer))
        if not context.again:
            raise AsksPerson("which currency?", "token")
        return f"paid in {context.answer}"

    def agent(journal):
        return Agent(says([("pay", {})], "done"), tools=[pay], journal=journal)

    waiting = await (first := agent(MemoryJournal())).run("go")
    whole = (await first.resume(waiting, results={"call_0_0": "euros"})).events
    starts = [i for i, event in enumerate(whole) if isinstance(event, ToolStarted)]
    await (journal := MemoryJournal()).append(waiting.run_id, 0, whole[: starts[1] + 1])
    cut_off = await agent(journal).resume(waiting.run_id)
    again = await agent(journal).resume(waiting.run_id, approve=cut_off.pending)
    assert seen == [("", None), ("token", "euros"), ("", None)]
    assert [one.question for one in again.pending] == ["which currency?"]


async def test_a_call_in_place_of_another_has_a_key_of_its_own():
    keys = []

    @tool(effect="idempotent")
    async def ship(to: str, context: ToolContext) -> str:
        """Ship it."""
        keys.append((to, context.idempotency_key))
        return "the address is wrong" if len(keys) < 3 else "shipped"

    def react(call, output):
        return {1: Retry(), 2: Retry(arguments={"to": "b"})}.get(call.made)

    await Agent(says([("ship", {"to": "a"})], "done"), tools=[ship], on_tool_result=react).run("go")
    assert [to for to, _ in keys] == ["a", "a", "b"]
    assert keys[0][1] == keys[1][1] != keys[2][1]


async def test_a_tool_that_starts_early_is_told_what_was_said_so_far():
    seen = []

    @tool(effect="read")
    async def recap(key: str, context: ToolContext) -> str:
        """Say what was said so far."""
        seen.append([message.text for message in context.history()])
        return "recap"

    result = await Agent(waiting_stream(("c", "a"), name="recap"), tools=[recap]).run("go")
    assert early(result) == ['{"key": "a"}']
    assert seen == [["go"]]


async def test_a_process_that_slept_asks_whether_its_run_was_taken_over_before_it_pays(tmp_path, monkeypatch):
    """Its clock stands for the sleep: between the start of the call, which was stored, and the call itself."""
    paid, asleep = [], 0.0
    monkeypatch.setattr("treadle.drivers.heartbeat.steady", lambda: time.monotonic() + asleep)

    class Slow(SqliteJournal):
        async def append(self, run_id, seq, events, held=None):
            nonlocal asleep
            await super().append(run_id, seq, events, held)
            if any(isinstance(event, ToolStarted) for event in events):
                async with SqliteJournal(tmp_path / "runs.db") as other:
                    lease = await taken(other, run_id, takeover=True)
                    lease.give_back(over=False)
                asleep = 3600.0

    @tool
    async def pay() -> str:
        """Pay."""
        paid.append(True)
        return "paid"

    async with Slow(tmp_path / "runs.db") as journal:
        agent = Agent(says([("pay", {})], "done"), tools=[pay], journal=journal)
        with pytest.raises(TakenOver):
            await agent.run("go")
    assert paid == []


REFUSED = '{"error":true,"message":"This call is not allowed.","executed":false}'
TOO_MANY = (
    '{"error":true,"message":"This call was not executed. The run\'s limit of tool calls is reached.","executed":false}'
)
LOOK = ("look", {"key": "a"})


async def test_the_fourth_of_four_calls_alike_of_one_reply_can_be_denied():
    agent = Agent(ScriptedModel([[LOOK] * 4, "done"]), tools=[look], approvals=[deny("look", repeats=3)])
    assert told(await agent.run("go")) == [*["value of a"] * 3, REFUSED]


async def test_long_arguments_are_alike_where_the_tool_is_given_the_same():
    long = "a" * 3000
    calls = [ToolCall("a", "look", json.dumps({"key": long})), ToolCall("b", "look", f'{{ "key":"{long}" }}')]
    other = ToolCall("c", "look", json.dumps({"key": f"{long}b"}))
    replies = [ModelReply(AssistantMessage((one,)), finish="tool_calls") for one in (*calls, other)]
    agent = Agent(ScriptedModel([*replies, "done"]), tools=[look], approvals=[deny("look", repeats=1)])
    assert told(await agent.run("go")) == [f"value of {long}", REFUSED, f"value of {long}b"]


async def test_arguments_that_have_no_form_in_json_are_alike_as_they_were_written():
    class Place:
        def __init__(self, name):
            self.name = name

    @tool(effect="read")
    async def visit(place: Annotated[Any, BeforeValidator(Place)]) -> str:
        """Visit a place."""
        return f"was in {place.name}"

    turns = [[("visit", {"place": name})] for name in ("Rome", "Rome", "Oslo")]
    agent = Agent(ScriptedModel([*turns, "done"]), tools=[visit], approvals=[deny("visit", repeats=1)])
    assert told(await agent.run("go")) == ["was in Rome", REFUSED, "was in Oslo"]


async def test_calls_are_counted_beside_those_of_a_tool_that_is_gone_and_of_one_that_takes_something_else_now():
    @tool(effect="read")
    async def gone() -> str:
        """Look elsewhere."""
        return "seen"

    @tool(name="look", effect="read")
    async def looks(key: str, where: str = "here", *, size: int) -> str:
        """Look something up."""
        return f"value of {key} {where}"

    journal, other = MemoryJournal(), ("look", {"key": "a", "size": 1})
    script = says([("gone", {}), LOOK], [other], [other], "done")
    first = Agent(script, tools=[look, gone], journal=journal, limits=Limits(steps=1), on_limit="stop")
    stopped = await first.run("go")
    again = Agent(script, tools=[looks], journal=journal, approvals=[deny("look", repeats=1)])
    result = await again.resume(stopped.run_id, limits=Limits(steps=9))
    assert told(result)[2:] == ["value of a here", REFUSED]


async def test_a_run_without_a_limit_on_its_tool_calls_makes_them():
    agent = Agent(ScriptedModel([[LOOK] * 3, "done"]), tools=[look], limits=Limits(tool_calls=None))
    assert told(await agent.run("go")) == ["value of a"] * 3


PAYS = [("pay", {"amount": amount}) for amount in (1, 2, 3)]


@pytest.mark.parametrize(
    ("denied", "most", "left"),
    [
        ([], 1, ["paid 1", TOO_MANY, TOO_MANY]),
        ([], 2, ["paid 1", "paid 2", TOO_MANY]),
        (["call_0_0"], 2, ["paid 2", TOO_MANY]),
    ],
)
async def test_a_lower_limit_holds_for_what_was_approved_under_a_higher_one(denied, most, left):
    agent = Agent(says(PAYS, "done"), tools=[pay], journal=MemoryJournal(), approvals=[ask_before("pay")])
    waiting = await agent.run("go")
    approve = [one for one in waiting.pending if one.call_id not in denied]
    result = await agent.resume(waiting.run_id, approve=approve, deny=denied, limits=Limits(tool_calls=most))
    assert told(result)[len(denied) :] == left


async def test_what_was_paid_before_a_crash_counts_for_a_lower_limit():
    whole = await Agent(says(PAYS, "done"), tools=[pay]).run("go")
    after = next(i for i, event in enumerate(whole.events) if isinstance(event, ToolFinished)) + 1
    journal = MemoryJournal()
    await journal.append(whole.run_id, 0, whole.events[:after])
    again = await Agent(says(PAYS, "done"), tools=[pay], journal=journal).resume(
        whole.run_id, limits=Limits(tool_calls=2)
    )
    assert told(again) == ["paid 1", "paid 2", TOO_MANY]


@pytest.mark.parametrize("effect", ["read", "idempotent"])
async def test_a_rule_that_is_new_since_a_call_was_cut_off_asks_before_it_is_made_again(effect):
    made = []

    @tool(effect=effect)
    async def ship() -> str:
        """Ship it."""
        made.append(True)
        return "shipped"

    def agent(journal, *rules):
        return Agent(says([("ship", {})], "done"), tools=[ship], journal=journal, approvals=rules)

    whole = await agent(MemoryJournal()).run("go")
    after = next(i for i, event in enumerate(whole.events) if isinstance(event, ToolStarted)) + 1
    await (journal := MemoryJournal()).append(whole.run_id, 0, whole.events[:after])
    asks = agent(journal, ask_before("ship", reason="dear"))
    waiting = await asks.resume(whole.run_id)
    assert [(one.kind, one.question) for one in waiting.pending] == [("interrupted", "dear")]
    assert [event.why for event in waiting.events if isinstance(event, ApprovalRequested)] == ["interrupted"]
    assert len(made) == 1
    assert told(await asks.resume(whole.run_id, approve=waiting.pending)) == ["shipped"]


async def test_a_rule_that_is_new_since_an_agent_below_was_cut_off_lets_it_go_on():
    """Its own calls are judged; what it has done until then is done."""

    def agent(journal, *rules):
        below = Agent(says([LOOK], "below"), name="child", tools=[look])
        model = says([("child", {"task": "x"})], "done")
        return Agent(model, tools=[below.as_tool()], journal=journal, approvals=rules)

    journal, left = MemoryJournal(), MemoryJournal()
    whole = await agent(journal).run("go")
    below = f"{whole.run_id}.0.call_0_0"
    after = next(i for i, event in enumerate(whole.events) if isinstance(event, ToolStarted)) + 1
    await left.append(whole.run_id, 0, whole.events[:after])
    await left.append(below, 0, (await journal.read(below))[:4])
    result = await agent(left, ask_before("child")).resume(whole.run_id)
    assert (result.text, result.pending, told(result)) == ("done", (), ["below"])


def passing_on(*names):
    """Hand-offs under these names."""
    return [handoff(Agent(ScriptedModel([f"{name} answers"]), name=name), name=name) for name in names]


async def test_a_hand_off_that_waits_for_a_person_goes_before_one_that_comes_after_it():
    def agent(journal):
        model = ScriptedModel([[("one", {}), ("two", {})]])
        return Agent(model, tools=passing_on("one", "two"), journal=journal, approvals=[ask_before("one")])

    waiting = await (agent := agent(MemoryJournal())).run("go")
    assert [one.tool for one in waiting.pending] == ["one"]
    result = await agent.resume(waiting, approve=waiting.pending)
    assert result.text == "one answers"
    assert [one.result.text for one in result.steps[0].calls][1] == (
        '{"error":true,"message":"The conversation is handed on already.","executed":false}'
    )


async def test_a_hand_off_that_has_begun_goes_before_one_that_comes_in_the_place_of_a_call_before_it():
    below = Agent(says([("pay", {"amount": 1})], "two answers"), name="two", tools=[pay], approvals=[ask_before("pay")])
    agent = Agent(
        says([LOOK, ("two", {})]),
        tools=[look, *passing_on("one"), handoff(below, name="two")],
        journal=MemoryJournal(),
        approvals=[ask_before("look")],
        on_tool_result=lambda call, output: Alternative("one", {}) if call.doing.name == "look" else None,
    )
    waiting = await agent.run("go")
    assert [one.tool for one in waiting.pending] == ["look", "pay"]
    result = await agent.resume(waiting, approve=waiting.pending)
    assert result.text == "two answers"
    assert [one.reason for one in reactions(result) if one.reason] == ["one: The conversation is handed on already."]
    assert result.steps[0].calls[0].result.text == "value of a"


async def test_of_two_rules_that_ask_the_reason_of_the_nearest_is_told():
    below = Agent(
        says([("pay", {"amount": 1})]), name="child", tools=[pay], approvals=[ask_before("pay", reason="ours")]
    )
    rules = [ask_before("pay", reason="theirs")]
    waiting = await Agent(says([("child", {"task": "x"})]), tools=[below.as_tool()], approvals=rules).run("go")
    assert [one.question for one in waiting.pending] == ["ours"]


async def test_a_default_that_is_written_out_and_a_number_as_a_text_make_no_other_call_of_it():
    @tool(effect="read")
    async def page(number: int, size: int = 10) -> str:
        """Read a page."""
        return f"page {number}"

    calls = [("page", {"number": 1}), ("page", {"number": "1", "size": 10}), ("page", {"number": 1, "size": 20})]
    agent = Agent(ScriptedModel([calls, "done"]), tools=[page], approvals=[deny("page", repeats=1)])
    assert told(await agent.run("go")) == ["page 1", REFUSED, "page 1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"fault":"write the call alone","text":"x"}', {"message": "write the call alone", "executed": False}),
        (
            "{}",
            {
                "message": "There is no tool 'invalid_call'",
                "given": "invalid_call",
                "available_tools": ["look"],
            },
        ),
    ],
)
async def test_what_was_wrong_with_an_attempt_at_a_call_is_said_in_the_words_of_its_model(arguments, said):
    call = ToolCall("c", "invalid_call", arguments)
    agent = Agent(ScriptedModel([ModelReply(AssistantMessage((call,)), finish="tool_calls"), "done"]), tools=[look])
    assert json.loads(told(await agent.run("go"))[0]) == {"error": True} | said


@pytest.mark.parametrize("call", [("lok", {}), LOOK, ("one", {})])
async def test_by_hand_a_call_that_was_made_is_not_made_again(call):
    agent = Agent(ScriptedModel([[call], "done"]), tools=[look, *passing_on("one")])
    run = agent.start("go")
    run.feed(run.prepare(run.next()))
    async for event in agent.model.stream(run.request()):
        reply = event
    run.feed(reply)
    (record,) = run.next().records
    await run.call_tool(record)
    with pytest.raises(IllegalEvent, match="cannot take Tool"):
        await run.call_tool(record)


async def test_who_is_handed_on_to_is_shown_what_was_called_beside_that_after_a_model_that_paused():
    to = ScriptedModel(["two answers"])
    paused = ModelReply(AssistantMessage((Text("I look."),)), finish="pause")
    model = ScriptedModel([paused, ("I hand on.", [LOOK, ("two", {})])])
    agent = Agent(model, tools=[look, handoff(Agent(to, name="two"), name="two")])
    assert (await agent.run("go")).text == "two answers"
    shown = [(message.role, message.text) for message in to.requests[0].messages]
    assert shown == [("user", "go"), ("assistant", "I look."), ("assistant", "I hand on."), ("tool", "value of a")]


class Bill(BaseModel):
    """What is to be paid; it is read under another name than it is told under."""

    amount: int = Field(validation_alias="total")


async def test_the_answer_of_an_agent_below_is_read_as_it_was_written_and_given_to_the_application_as_it_was_read():
    def answers():
        return Agent(ScriptedModel(['{"total": 5}']), name="two", output=Bill)

    handed = await Agent(ScriptedModel([[("two", {})]]), tools=[handoff(answers(), name="two")], output=Bill).run("go")
    assert (handed.output.amount, handed.steps[0].calls[0].app) == (5, {"total": 5})
    asked = await Agent(ScriptedModel([[("two", {"task": "x"})], "done"]), tools=[answers().as_tool()]).run("go")
    assert asked.steps[0].calls[0].app == {"amount": 5}


async def test_a_run_below_that_waits_for_a_person_is_left_as_it_is_where_the_run_above_is_cancelled():
    """Whoever takes that one up may still ask for what it waits for."""

    @tool(effect="read")
    async def rest() -> str:
        """Rest until somebody comes."""
        await asyncio.Event().wait()
        return "rested"

    def cancels(event):
        if isinstance(event, ResultAwaited):
            task.cancel()

    below = Agent(ScriptedModel([[PAYS[0]]]), name="child", tools=[pay], approvals=[ask_before("pay")])
    model = ScriptedModel([[("child", {"task": "x"}), ("rest", {})]])
    agent = Agent(model, tools=[below.as_tool(), rest], journal=(journal := MemoryJournal()))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(agent.run("go", on_event=cancels))
        with pytest.raises(asyncio.CancelledError):
            await task
    last = {line.run_id.count("."): (await journal.read(line.run_id))[-1] for line in await journal.list()}
    assert isinstance(last[0], RunFinished)
    assert [type(event) for depth, event in last.items() if depth] == [RunPaused]


async def test_an_agent_below_whose_instructions_take_longer_than_it_may_is_an_error_that_says_so():
    async def instructions(context):
        await asyncio.Event().wait()

    below = Agent(ScriptedModel(["below"]), name="child", instructions=instructions, limits=Limits(seconds=0.05))
    agent = Agent(ScriptedModel([[("child", {"task": "x"})], "done"]), tools=[below.as_tool()])
    async with asyncio.timeout(20):
        (said,) = told(await agent.run("go"))
    assert "the instructions of child" in json.loads(said)["message"]


async def test_what_the_instructions_of_an_agent_below_take_is_time_of_its_run():
    asked = []

    async def instructions(context):
        asked.append(time.time())
        await asyncio.sleep(0.01)
        return "Be brief."

    below = Agent(ScriptedModel(["below"]), name="child", instructions=instructions)
    agent = Agent(
        ScriptedModel([[("child", {"task": "x"})], "done"]),
        tools=[below.as_tool()],
        journal=(journal := MemoryJournal()),
    )
    result = await agent.run("go")
    assert (await journal.read(f"{result.run_id}.0.call_0_0"))[0].at <= asked[0]
