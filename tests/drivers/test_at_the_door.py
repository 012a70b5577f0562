"""What comes of a call at the door, to the letter: each event that is recorded of it, in every circumstance."""

import asyncio
import time

import pytest
from msgspec.structs import replace

from treadle import (
    Agent,
    Alternative,
    AskUser,
    Done,
    Limits,
    MemoryJournal,
    Misuse,
    NotDone,
    Retry,
    StepSettings,
    ToolContext,
    ToolProgress,
    ToolResult,
    Usage,
    allow,
    ask_before,
    deny,
    external_tool,
    handoff,
    says_error,
    tool,
)
from treadle.kernel.accounts import Spent
from treadle.kernel.calls import cut_off
from treadle.kernel.events import ApprovalRequested, ResultAwaited, ToolFinished, ToolReacted, ToolStarted
from treadle.kernel.messages import Text, ToolCall
from treadle.testing import ScriptedModel
from treadle.tools.errors import AsksPerson

pytestmark = pytest.mark.anyio

KINDS = (ToolStarted, ToolFinished, ToolReacted, ApprovalRequested, ResultAwaited)
ID = "call_0_0"


@pytest.fixture
def anyio_backend():
    return "asyncio"


@tool(effect="read")
async def look(key: str) -> str:
    """Look something up."""
    return f"value of {key}"


@tool
async def pay(amount: int) -> str:
    """Pay somebody an amount."""
    return f"paid {amount}"


@tool(effect="read")
async def down() -> str:
    """Look where nothing answers."""
    raise ValueError("the server is down")


def calls_of(events):
    """What was recorded of calls, without the times."""
    return [replace(event, at=0.0) for event in events if isinstance(event, KINDS)]


async def came_of(*calls, tools=(look, pay, down), **options):
    """What was recorded of these calls of one reply."""
    agent = Agent(ScriptedModel([list(calls), *["done"] * 3]), tools=tools, **options)
    return calls_of((await agent.run("go")).events)


def started(id=ID, *, writes=False):
    return ToolStarted(0, id, writes=writes)


def error(text, **fields):
    return ToolFinished(0, ID, text, True, **fields)


LOOK, PAY = ("look", {"key": "a"}), ("pay", {"amount": 1})
FOUND = ToolFinished(0, ID, "value of a", provisional=True)


async def test_a_call_starts_and_comes_back():
    assert await came_of(LOOK) == [started(), ToolFinished(0, ID, "value of a")]
    (_, failed) = await came_of(("down", {}))
    assert (failed.content, failed.is_error) == ('{"error":true,"message":"ValueError: the server is down"}', True)
    assert failed.raised.startswith("ValueError at ")


@pytest.mark.parametrize(
    ("call", "options", "told"),
    [
        (
            ("lok", {}),
            {},
            '"There is no tool \'lok\'; did you mean \'look\'?","given":"lok","nearest":"look",'
            '"available_tools":["look","pay","down"]',
        ),
        (("zzzz", {}), {}, '"There is no tool \'zzzz\'","given":"zzzz","available_tools":["look","pay","down"]'),
        (PAY, {"approvals": [deny("pay")]}, '"This call is not allowed.","executed":false'),
        (PAY, {"approvals": [deny("pay", reason="no")]}, '"This call is not allowed: no.","executed":false'),
        (
            PAY,
            {"prepare_step": lambda context: StepSettings(tools=["look", "down"])},
            '"pay is not offered in this step.","executed":false,"available_tools":["look","down"]',
        ),
        (
            PAY,
            {"tool_choice": "look", "limits": Limits(steps=2)},
            '"Only look may be called in this step.","executed":false,"available_tools":["look"]',
        ),
        (
            PAY,
            {"tool_choice": "none"},
            '"Tools are off in this step: answer from what you have.","executed":false',
        ),
    ],
)
async def test_a_call_that_is_not_made_is_told_why(call, options, told):
    assert await came_of(call, **options) == [error(f'{{"error":true,"message":{told}}}')]


async def test_a_refusal_is_shown_to_a_hook_first():
    refused = error('{"error":true,"message":"This call is not allowed.","executed":false}', provisional=True)
    options = {"approvals": [deny("pay")], "on_tool_result": lambda call, output: None}
    assert await came_of(PAY, **options) == [refused, ToolReacted(0, ID, "keep")]


@pytest.mark.parametrize(
    ("reaction", "event"),
    [
        (None, ToolReacted(0, ID, "keep")),
        ("other", ToolReacted(0, ID, "replace", "other")),
        ({"n": 1}, ToolReacted(0, ID, "replace", '{"n":1}')),
        (ToolResult("m", {"n": 1}, is_error=False), ToolReacted(0, ID, "replace", "m", app={"n": 1})),
        (
            ToolResult("m", is_error=True),
            ToolReacted(0, ID, "replace", '{"error":true,"message":"m"}', is_error=True),
        ),
        (AskUser("right?"), ResultAwaited(0, ID, True, question="right?")),
    ],
)
async def test_a_reaction_is_one_event(reaction, event):
    assert await came_of(LOOK, on_tool_result=lambda call, output: reaction) == [started(), FOUND, event]


async def test_an_alternative_is_a_call_of_its_own():
    def react(call, output):
        return Alternative("pay", {"amount": 2}) if call.doing.name == "look" else None

    other = ToolReacted(0, ID, "call", call=ToolCall(ID, "pay", '{"amount":2}'))
    paid = ToolFinished(0, ID, "paid 2", provisional=True)
    kept = ToolReacted(0, ID, "keep")
    assert await came_of(LOOK, on_tool_result=react) == [started(), FOUND, other, started(writes=True), paid, kept]
    limit = ToolReacted(0, ID, "keep", reason="the run's limit of tool calls is reached")
    assert await came_of(LOOK, on_tool_result=react, limits=Limits(tool_calls=1)) == [started(), FOUND, limit]
    not_allowed = ToolReacted(0, ID, "keep", reason="pay: This call is not allowed.")
    found = await came_of(LOOK, on_tool_result=react, approvals=[deny("pay")])
    assert found == [started(), FOUND, other, not_allowed]
    asked = await came_of(LOOK, on_tool_result=react, approvals=[ask_before("pay", reason="dear")])
    assert asked == [started(), FOUND, other, ApprovalRequested(0, ID, reason="dear")]


async def test_a_call_is_made_again_with_its_arguments_or_others_and_not_for_ever():
    again = ToolReacted(0, ID, "call", call=ToolCall(ID, "look", '{"key":"a"}'))
    most = ToolReacted(0, ID, "keep", reason="it was called 4 times: its last result stands")
    found = await came_of(LOOK, on_tool_result=lambda call, output: Retry())
    assert found == [*[started(), FOUND, again] * 3, started(), FOUND, most]
    limit = ToolReacted(0, ID, "keep", reason="the run's limit of tool calls is reached")
    limited = await came_of(LOOK, on_tool_result=lambda call, output: Retry(), limits=Limits(tool_calls=2))
    assert limited == [started(), FOUND, again, started(), FOUND, limit]
    once = await came_of(PAY, on_tool_result=lambda call, output: Retry())
    reason = "pay is not called again: its effect is 'write', it may run only once"
    assert once[-1] == ToolReacted(0, ID, "keep", reason=reason)

    def other(call, output):
        return Retry(arguments={"key": "b\ud800", "more": [1, {"x\ud800": None}]}) if call.made == 1 else None

    found = await came_of(LOOK, on_tool_result=other)
    assert found[2].call.arguments == '{"key":"b?","more":[1,{"x?":null}]}'


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Retry(-1), "Retry takes a number of seconds from 0 as delay=; it was given -1"),
        (lambda: Retry(True), "Retry takes a number of seconds from 0 as delay=; it was given True"),
        (lambda: Retry("1"), "Retry takes a number of seconds from 0 as delay=; it was given '1'"),
        (lambda: Retry(float("inf")), "Retry takes a number of seconds from 0 as delay=; it was given inf"),
        (lambda: Retry(arguments=[1]), "Retry takes the arguments to call with, as a dict; it was given [1]"),
        (lambda: Alternative("", {}), "Alternative takes the name of one of the agent's tools; it was given ''"),
        (lambda: Alternative(7, {}), "Alternative takes the name of one of the agent's tools; it was given 7"),
        (lambda: Alternative("t", 7), "Alternative takes the arguments to call with, as a dict; it was given 7"),
        (lambda: AskUser(" "), "AskUser takes the question that the person is asked; it was given ' '"),
    ],
)
def test_a_reaction_that_cannot_be_right_is_refused_where_it_is_made(make, told):
    with pytest.raises(Misuse) as refused:
        make()
    assert str(refused.value) == told
    assert (Retry(0).delay, Retry(1.5, {}).delay) == (0, 1.5)


@pytest.mark.parametrize(
    ("reaction", "told"),
    [
        (
            Alternative("nix", {}),
            "on_tool_result calls 'nix', which this agent does not have; it has ['look', 'pay']",
        ),
        (
            Alternative("outside", {}),
            "on_tool_result calls 'outside', an external tool, which cannot stand in for another; these can: "
            "['look', 'pay']",
        ),
        (Retry(arguments={"key": object()}), "on_tool_result gives arguments that are not JSON: "),
    ],
)
async def test_a_reaction_that_cannot_be_carried_out_is_misuse(reaction, told):
    tools = [look, pay, external_tool("outside", "Ask somebody outside.")]
    with pytest.raises(Misuse) as refused:
        await came_of(LOOK, tools=tools, on_tool_result=lambda call, output: reaction)
    assert str(refused.value).startswith(told)


async def taken_up(tools, call=PAY, after=ToolStarted, answers=("done",), **options):
    """What is recorded of a call by the process that takes its run up, which died after `after`."""
    whole = await Agent(ScriptedModel([[call], "done"]), tools=[look, pay]).run("go")
    cut = next(i for i, event in enumerate(whole.events) if isinstance(event, after)) + 1
    journal = MemoryJournal()
    await journal.append(whole.run_id, 0, whole.events[:cut])
    agent = Agent(ScriptedModel(answers), tools=tools, journal=journal, **options)
    return calls_of((await agent.resume(whole.run_id)).events[cut:])


def paying(answer):
    """The same tool, which finds out what came of a call."""

    def ask(context):
        return answer(context) if callable(answer) else answer

    @tool(reconcile=ask)
    async def pay(amount: int) -> str:
        """Pay somebody an amount."""
        return f"paid {amount} again"

    return pay


async def test_a_write_that_was_cut_off_is_asked_about_or_told_of():
    assert await taken_up([pay]) == [ApprovalRequested(0, ID, "interrupted")]
    assert await taken_up([pay], on_interrupted="tell") == [error(cut_off())]
    assert await taken_up([look], LOOK) == [started(), ToolFinished(0, ID, "value of a")]


async def test_a_tool_finds_out_what_came_of_a_call():
    asked = {}

    def says(context):
        asked.update(call=context.call_id, tool=context.tool_name, arguments=dict(context.arguments))
        return Done("paid 1")

    assert await taken_up([paying(says)]) == [ToolFinished(0, ID, "paid 1")]
    assert asked == {"call": ID, "tool": "pay", "arguments": {"amount": 1}}
    assert await taken_up([paying(Done({"n": 1}))]) == [ToolFinished(0, ID, '{"n":1}')]
    assert await taken_up([paying(NotDone())]) == [started(writes=True), ToolFinished(0, ID, "paid 1 again")]
    seen = []
    hooked = await taken_up(
        [paying(Done("paid 1"))], on_tool_result=lambda call, output: seen.append((output.content, output.value))
    )
    assert hooked == [ToolFinished(0, ID, "paid 1", provisional=True), ToolReacted(0, ID, "keep")]
    assert seen == [("paid 1", "paid 1")]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "pay could not find out what came of it."),
        (7, "pay could not find out what came of it: it was given int, and not Done(…), NotDone() or None"),
        (lambda context: 1 / 0, "pay could not find out what came of it: ZeroDivisionError: division by zero"),
    ],
)
async def test_a_tool_that_cannot_find_out_says_why(answer, why):
    assert await taken_up([paying(answer)]) == [ApprovalRequested(0, ID, "interrupted", why)]
    assert await taken_up([paying(answer)], on_interrupted="tell") == [error(cut_off())]


async def test_arguments_that_no_longer_fit_leave_the_outcome_unknown():
    @tool(reconcile=lambda context: Done("x"))
    async def pay(amount: int, to: str) -> str:
        """Pay somebody an amount."""
        return f"paid {amount}"

    assert await taken_up([pay]) == [error(cut_off())]


async def test_a_lower_limit_leaves_no_room_for_calls_that_had_not_begun():
    calls = [("look", {"key": key}) for key in "abc"]
    whole = await Agent(ScriptedModel([calls, "done"]), tools=[look]).run("go")
    cut = next(i for i, event in enumerate(whole.events) if isinstance(event, ToolStarted))
    journal = MemoryJournal()
    await journal.append(whole.run_id, 0, whole.events[:cut])
    agent = Agent(ScriptedModel(["done"]), tools=[look], journal=journal)
    result = await agent.resume(whole.run_id, limits=Limits(tool_calls=2))
    told = [one.text for one in result.messages if one.role == "tool"]
    why = "This call was not executed. The run's limit of tool calls is reached."
    assert told == ["value of a", "value of b", f'{{"error":true,"message":"{why}","executed":false}}']


async def test_a_call_from_outside_ends_or_pauses_the_run():
    ends, waits = external_tool("ends", "End here."), external_tool("waits", "Ask somebody.", wait=True)
    assert await came_of(("ends", {}), tools=[ends, waits]) == [ResultAwaited(0, ID)]
    assert await came_of(("waits", {}), tools=[ends, waits]) == [ResultAwaited(0, ID, True)]


def child(*turns, **options):
    return Agent(ScriptedModel(turns, usage=Usage(10, 4)), name="child", **options)


TASK = ("child", {"task": "x"})


async def test_the_answer_of_an_agent_is_the_result_with_what_it_took():
    took = Spent(1, Usage(10, 4), unpriced=True)
    assert await came_of(TASK, tools=[child("below").as_tool()]) == [
        started(),
        ToolFinished(0, ID, "below", spent=took),
    ]
    typed = child('{"n": 1}', output=dict[str, int])
    (_, back) = await came_of(TASK, tools=[typed.as_tool()])
    assert (back.content, back.app, back.is_error, back.final) == ('{"n":1}', {"n": 1}, False, False)
    to = [handoff(child("below"))]
    (_, final) = await came_of(("transfer_to_child", {"reason": "it knows"}), tools=to)
    assert final == ToolFinished(0, ID, "below", spent=took, final=True)


async def test_an_agent_that_stops_short_is_an_error_with_what_it_found():
    calls = ("So far.", [("look", {"key": "a"})])
    short = child(calls, tools=[look], limits=Limits(steps=1), on_limit="stop")
    (_, back) = await came_of(TASK, tools=[short.as_tool()])
    told = "child stopped before it was done (max_steps: the limit of 1 step is reached.)"
    assert back == error(
        f'{{"error":true,"message":"{told}","found":"So far."}}',
        spent=Spent(1, Usage(10, 4), tool_calls=1, unpriced=True),
    )


async def test_what_an_agent_below_waits_for_the_call_waits_for():
    careful = child([PAY], "paid", tools=[pay], approvals=[ask_before("pay", reason="dear")])
    (_, waits) = await came_of(TASK, tools=[careful.as_tool()])
    (asked,) = waits.waits
    assert (waits.wait, waits.run_id[-11:], waits.spent.tool_calls) == (True, ".0.call_0_0", 1)
    assert (asked.call_id, asked.name, asked.arguments, asked.kind) == (ID, "pay", '{"amount":1}', "approval")
    assert asked.question == "dear"


async def test_a_second_hand_off_is_refused_before_it_is_paid():
    to = [handoff(child("first"), name="one"), handoff(child("second"), name="two")]
    found = await came_of(("one", {}), ("two", {}), tools=to)
    refused = '{"error":true,"message":"The conversation is handed on already.","executed":false}'
    assert ToolFinished(0, "call_0_1", refused, True) in found
    assert sum(isinstance(event, ToolStarted) for event in found) == 1


async def test_an_agent_for_which_no_step_is_left_is_not_asked():
    model = ScriptedModel([[TASK], "done"])
    agent = Agent(model, tools=[child("below").as_tool()], limits=Limits(steps=1), on_limit="stop")
    found = calls_of((await agent.run("go")).events)
    told = "the run has no step left that this agent could take; answer from what you have"
    assert found == [started(), error(f'{{"error":true,"message":"{told}"}}')]


async def test_writes_go_one_after_the_other_and_reads_at_once():
    async def order(*tools):
        under_way, most, ran = 0, 0, []

        async def work(name):
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            ran.append(name)
            under_way -= 1
            return name

        made = [
            tool(name=name, description="Do a piece of work.", **given)(one_of(work, name)) for name, given in tools
        ]
        await came_of(*[(name, {}) for name, _ in tools], tools=made)
        return most, ran

    def one_of(work, name):
        async def run() -> str:
            return await work(name)

        return run

    assert (await order(("a", {}), ("b", {}), ("c", {})))[1] == ["a", "b", "c"]
    assert (await order(("a", {}), ("b", {}), ("c", {})))[0] == 1
    assert (await order(("a", {"parallel": True}), ("b", {"parallel": True})))[0] == 2
    assert (await order(("a", {"effect": "read"}), ("b", {"effect": "read"})))[0] == 2
    assert (await order(("a", {"effect": "idempotent"}), ("b", {"effect": "idempotent"})))[0] == 2
    assert (await order(("a", {"effect": "read", "alone": True}), ("b", {"effect": "read"})))[0] == 1
    shared = {"effect": "read", "resource": "disk"}
    assert (await order(("a", shared), ("b", shared)))[0] == 1
    assert (await order(("a", shared), ("b", {**shared, "resource": "net"})))[0] == 2
    assert (await order(("a", {}), ("b", {"effect": "read"})))[0] == 2


async def test_what_cuts_itself_off_is_an_error_and_a_denied_call_in_place_keeps_what_was_found():
    agent = Agent(
        ScriptedModel([[LOOK], "done"]),
        tools=[look, pay],
        journal=MemoryJournal(),
        approvals=[ask_before("pay")],
        on_tool_result=lambda call, output: Alternative("pay", {"amount": 2}) if call.doing.name == "look" else None,
    )
    waiting = await agent.run("go")
    done = await agent.resume(waiting.run_id, deny={ID: "too dear"})
    (shown,) = [one for one in done.messages if one.role == "tool"]
    said = Text("pay was to be called in its place; this was not approved: too dear.")
    assert shown.content == (Text("value of a"), said)


def told(result):
    return [one.text for one in result.messages if one.role == "tool"]


REFUSED = '{"error":true,"message":"This call is not allowed.","executed":false}'


async def test_a_rule_on_repeats_counts_what_was_called_with_the_same_arguments():
    other = ("look", {"key": "b"})
    for turns in ([[LOOK, LOOK, other]], [[LOOK], [LOOK], [other]]):
        agent = Agent(ScriptedModel([*turns, "done"]), tools=[look], approvals=[deny("look", repeats=1)])
        assert told(await agent.run("go")) == ["value of a", REFUSED, "value of b"]
    twice = Agent(ScriptedModel([[LOOK], [LOOK], [LOOK], "done"]), tools=[look], approvals=[deny("look", repeats=2)])
    assert told(await twice.run("go")) == ["value of a", "value of a", REFUSED]


async def test_a_call_in_place_of_another_counts_as_a_repeat():
    def react(call, output):
        return Alternative("look", {"key": "a"}) if call.arguments == {"key": "b"} and call.made == 1 else None

    agent = Agent(
        ScriptedModel([[LOOK], [("look", {"key": "b"})], "done"]),
        tools=[look],
        approvals=[deny("look", repeats=1)],
        on_tool_result=react,
    )
    assert told(await agent.run("go")) == ["value of a", "value of b"]


async def test_a_call_that_was_cut_off_is_no_repeat_of_itself():
    rules = [deny("look", repeats=1)]
    assert (await taken_up([look], LOOK, approvals=rules))[-1] == ToolFinished(0, ID, "value of a")
    again = await taken_up([look], LOOK, answers=([LOOK], "done"), approvals=rules)
    assert [event.content for event in again if isinstance(event, ToolFinished)] == ["value of a", REFUSED]


async def test_a_tool_is_told_what_was_said_and_found_so_far():
    seen = []

    @tool(effect="read", alone=True)
    async def recap(context: ToolContext) -> str:
        """Say what was found so far."""
        seen.append([message.text for message in context.history()])
        return "recap"

    agent = Agent(ScriptedModel([[LOOK, ("recap", {})], [("recap", {})], "done"]), tools=[look, recap])
    await agent.run("go")
    assert seen == [["go", "", "value of a"], ["go", "", "value of a", "recap", ""]]


async def test_a_lower_limit_leaves_room_for_what_was_approved_before_it_leaves_room_for_what_waits():
    calls = [("pay", {"amount": amount}) for amount in (1, 2, 3)]
    ids = [f"call_0_{number}" for number in range(3)]
    agent = Agent(ScriptedModel([calls, "done"]), tools=[pay], journal=MemoryJournal(), approvals=[ask_before("pay")])
    first = await agent.run("go")
    limits = Limits(tool_calls=2)
    some = await agent.resume(first.run_id, approve=ids[:1], limits=limits)
    assert [one.call_id for one in some.pending] == ids[1:]
    assert [event.content for event in some.events if isinstance(event, ToolFinished)] == ["paid 1"]


async def test_what_a_tool_found_out_for_the_application_is_kept_with_it():
    found = await taken_up([paying(Done(ToolResult("m", {"n": 1})))])
    assert found == [ToolFinished(0, ID, "m", app={"n": 1})]


async def test_what_a_tool_is_told_of_its_call():
    seen, news = [], []

    @tool(effect="read")
    async def ask(context: ToolContext) -> str:
        """Ask a person for a colour."""
        seen.append(context)
        context.progress({"done": len(seen)})
        if not context.again:
            raise AsksPerson("which?", "token")
        return f"{context.answer} it is"

    agent = Agent(
        ScriptedModel([[LOOK], [("ask", {}), LOOK], "done"]),
        tools=[look, ask],
        on_tool_result=lambda call, output: Retry() if call.doing.name == "ask" and call.made == 1 else None,
        approvals=[],
    )
    waiting = await agent.run("go", deps="the deps", on_event=news.append)
    first = seen[0]
    assert (first.run_id, first.tool_name, first.call_id, first.step) == (waiting.run_id, "ask", "call_1_0", 1)
    assert (first.deps, first.made, first.other, first.again, first.answer) == ("the deps", 1, 0, "", None)
    assert 295 < first.deadline - time.time() <= 300
    assert ToolProgress("call_1_0", "ask", {"done": 1}) in news
    assert [message.text for message in first.history()][:2] == ["go", ""]
    done = await agent.resume(waiting, results={"call_1_0": "blue"}, deps="more", on_event=news.append)
    again = [(one.again, one.answer, one.made, one.other, one.deps) for one in seen[1:]]
    assert again == [("token", "blue", 1, 0, "more"), ("", None, 2, 0, "more")]
    assert ToolProgress("call_1_0", "ask", {"done": 2}) in news
    assert "blue it is" not in told(done)


async def test_a_hook_s_value_is_held_to_the_tool_s_own_length_and_must_have_a_form():
    @tool(effect="read", max_output=100)
    async def short() -> str:
        """Say something short."""
        return "x"

    (_, _, replaced) = await came_of(("short", {}), tools=[short], on_tool_result=lambda call, output: "y" * 199)
    assert len(replaced.content) == 100
    for length in (50_000, 50_001):
        value = "y" * length
        (_, replaced) = await came_of(("nix", {}), on_tool_result=lambda call, output, value=value: value)
        assert (replaced.content == value) == (length == 50_000)
    with pytest.raises(Misuse, match=r"^what on_tool_result returns is a value that JSON can hold, or a ToolResult; "):
        await came_of(LOOK, on_tool_result=lambda call, output: object())


async def test_what_a_tool_found_out_is_an_error_where_the_agent_says_so():
    (back,) = await taken_up([paying(Done({"error": "no"}))], errors=says_error)
    assert back == ToolFinished(0, ID, '{"error":"no"}', True)


async def test_of_two_hand_offs_the_first_is_carried_out_whatever_lies_between():
    def to():
        return [handoff(child("first"), name="one"), handoff(child("second"), name="two"), look]

    for calls in ([("one", {}), LOOK, ("two", {})], [LOOK, ("one", {}), ("two", {})]):
        result = await Agent(ScriptedModel([calls, "done"]), tools=to()).run("go")
        assert result.text == "first"
        assert sum("handed on already" in one for one in told(result)) == 1
    wrong = [("one", {"reason": 7}), ("two", {})]
    result = await Agent(ScriptedModel([wrong, "done"]), tools=to()).run("go")
    assert "handed on already" not in told(result)[0]


DEAR = ("pay", {"amount": 500})
ASKED = [("call_0_1", ApprovalRequested)]


def kinds(events):
    """Which event each call came to at last."""
    last = {event.call_id: type(event) for event in events}
    return [(call_id, kind) for call_id, kind in last.items() if kind is not ToolFinished]


async def test_a_tool_s_own_word_is_asked_with_the_arguments():
    @tool(needs_approval=lambda given: given["amount"] > 100)
    async def pay(amount: int) -> str:
        """Pay somebody an amount."""
        return f"paid {amount}"

    assert kinds(await came_of(PAY, DEAR, tools=[pay])) == ASKED
    assert kinds(await came_of(PAY, DEAR, tools=[pay], approvals=[ask_before("pay", repeats=9)])) == ASKED


async def test_a_call_of_a_tool_that_is_suspected_is_looked_at_whatever_rules_allow():
    odd = replace(pay, suspect="it says something else now")
    asked = [ApprovalRequested(0, ID, reason="it says something else now")]
    assert await came_of(PAY, tools=[odd]) == asked
    assert await came_of(PAY, tools=[odd], approvals=[allow("pay")]) == asked
    assert await came_of(PAY, tools=[odd], approvals=[deny("pay")]) == [error(REFUSED)]


def below(*calls, **options):
    """An agent that makes these calls, and says what they came to."""

    def answer(request):
        return " ".join(message.text for message in request.messages if message.role == "tool")

    model = ScriptedModel([list(calls), answer])
    return Agent(model, name="child", tools=[pay, look], **options).as_tool()


@pytest.mark.parametrize(
    ("own", "above", "text"),
    [
        ([], [deny("pay", when=lambda given: given["amount"] > 100)], f"paid 1 {REFUSED}"),
        ([allow("pay")], [deny("pay")], f"{REFUSED} {REFUSED}"),
        ([deny("pay", reason="ours")], [ask_before("pay")], REFUSED.replace("allowed.", "allowed: ours.")),
        ([ask_before("pay")], [deny("pay", reason="theirs")], REFUSED.replace("allowed.", "allowed: theirs.")),
        ([], [deny("pay", repeats=1)], "paid 1 paid 500"),
    ],
)
async def test_the_rules_of_a_run_above_hold_for_the_calls_below(own, above, text):
    calls = [TASK]
    found = await came_of(*calls, tools=[below(PAY, DEAR, approvals=own)], approvals=above)
    assert found[-1].content in (text, f"{text} {text}")
    twice = await came_of(*calls, tools=[below(PAY, PAY)], approvals=[deny("pay", repeats=1)])
    assert twice[-1].content == f"paid 1 {REFUSED}"


@pytest.mark.parametrize(
    ("own", "above", "reason"),
    [
        ([], [ask_before("pay", reason="dear", when=lambda given: given["amount"] > 100)], "dear"),
        ([allow("pay")], [ask_before("pay", reason="dear", when=lambda given: given["amount"] > 100)], "dear"),
    ],
)
async def test_a_person_is_asked_below_where_a_rule_above_says_so(own, above, reason):
    (_, waits) = await came_of(TASK, tools=[below(PAY, DEAR, approvals=own)], approvals=above)
    (asked,) = waits.waits
    assert (asked.call_id, asked.question) == ("call_0_1", reason)


async def test_a_call_in_place_that_was_cut_off_leaves_what_was_found_where_nobody_is_asked():
    def react(call, output):
        return Alternative("pay", {"amount": 2}) if call.doing.name == "look" else None

    whole = await Agent(ScriptedModel([[LOOK], "done"]), tools=[look, pay], on_tool_result=react).run("go")
    starts = [i for i, event in enumerate(whole.events) if isinstance(event, ToolStarted)]
    journal = MemoryJournal()
    await journal.append(whole.run_id, 0, whole.events[: starts[1] + 1])
    agent = Agent(
        ScriptedModel(["done"]), tools=[look, pay], journal=journal, on_tool_result=react, on_interrupted="tell"
    )
    result = await agent.resume(whole.run_id)
    assert calls_of(result.events[starts[1] + 1 :]) == [
        ToolReacted(0, ID, "keep", reason="pay: nobody is asked about it")
    ]
    assert "its outcome is unknown" in told(result)[0]


@pytest.mark.parametrize(
    ("top", "middle", "text"),
    [
        ([deny("pay", reason="top")], [], "top"),
        ([deny("pay", reason="top")], [ask_before("pay")], "top"),
        ([ask_before("pay")], [deny("pay", reason="middle")], "middle"),
        ([deny("pay", reason="top")], [deny("pay", reason="middle")], "middle"),
    ],
)
async def test_rules_hold_two_levels_below_and_the_nearest_of_the_strictest_is_told(top, middle, text):
    model = ScriptedModel([[TASK], lambda request: request.messages[-1].text])
    between = Agent(model, name="between", tools=[below(PAY)], approvals=middle)
    (_, back) = await came_of(("between", {"task": "x"}), tools=[between.as_tool()], approvals=top)
    assert back.content == REFUSED.replace("allowed.", f"allowed: {text}.")


@pytest.mark.parametrize("middle", [[], [allow("pay")]])
async def test_a_question_two_levels_above_reaches_the_person(middle):
    between = Agent(ScriptedModel([[TASK], "x"]), name="between", tools=[below(PAY)], approvals=middle)
    rules = [ask_before("pay", reason="top")]
    (_, waits) = await came_of(("between", {"task": "x"}), tools=[between.as_tool()], approvals=rules)
    assert [one.question for one in waits.waits] == ["top"]


async def test_a_batch_with_a_tool_that_there_is_not_runs_the_others():
    found = await came_of(("nix", {}), LOOK, PAY, ("nix", {}))
    back = {event.call_id: event.is_error for event in found if isinstance(event, ToolFinished)}
    assert back == {"call_0_0": True, "call_0_1": False, "call_0_2": False, "call_0_3": True}


@pytest.mark.parametrize("calls", [[LOOK], [LOOK, ("look", {"key": "b"})], [PAY, LOOK]])
async def test_a_hook_that_cancels_itself_ends_the_run_and_says_so(calls):
    async def react(call, output):
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match=r"^on_tool_result cancelled itself$"):
        await came_of(*calls, on_tool_result=react, journal=MemoryJournal())


async def test_each_of_several_hooks_sees_what_those_before_it_made_of_the_result():
    seen = []

    def see(call, output):
        seen.append((call.result.content, call.result.is_error, output.content))

    def shout(call, output):
        return ToolResult(output.content.upper(), is_error=False)

    def fail(call, output):
        return ToolResult("no", is_error=True)

    found = await came_of(LOOK, on_tool_result=[see, shout, see, fail, see])
    no = '{"error":true,"message":"no"}'
    assert found[-1] == ToolReacted(0, ID, "replace", no, is_error=True)
    assert seen == [
        ("value of a", False, "value of a"),
        ("VALUE OF A", False, "VALUE OF A"),
        (no, True, no),
    ]
    again = await came_of(LOOK, on_tool_result=[shout, lambda call, output: AskUser("right?"), fail])
    assert again[-1] == ResultAwaited(0, ID, True, question="right?")
