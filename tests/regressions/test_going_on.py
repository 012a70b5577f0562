"""Going on: a run that a limit stopped continues, and what is said of a run is true.

What was found, and the test that holds it:

- a run that a limit stopped can go on -> test_a_run_that_a_limit_stopped_goes_on_with_a_higher_one,
  test_the_message_of_a_run_that_goes_on_is_seen, test_a_finished_run_without_either_is_returned_as_it_is,
  test_a_message_goes_on_with_a_run_that_had_answered, test_a_run_that_goes_on_needs_no_journal,
  test_a_run_that_wrote_up_at_its_limit_goes_on, test_a_cancelled_run_goes_on_with_a_message,
  test_the_same_limit_stops_it_again, test_what_was_done_before_the_limit_is_not_done_again,
  test_each_kind_of_limit_can_be_raised
- `run(conversation=…)` accepts a history that ends in tool results
  -> test_a_conversation_that_ends_in_tool_results_goes_on
- async conditions end the run at once -> test_an_async_condition_is_waited_for (alone and combined),
  test_an_async_condition_can_be_inverted, test_an_async_condition_says_why_it_holds,
  test_an_async_condition_that_raises_leaves_a_run_that_goes_on
- `run.result` of a healthy run says `cancelled` -> test_the_result_of_a_run_under_way_says_running
- `tool_choice` is enforced -> test_tool_choice_none_runs_no_tool, test_a_named_tool_choice_runs_no_other,
  test_tool_choice_required_is_held_to, test_tool_choice_required_ends_no_run_with_a_text
- a request is never empty -> in test_context.py
- `errors=` -> test_a_returned_error_counts_where_the_agent_says_so, test_a_returned_error_is_shown_as_it_is,
  test_the_tools_own_word_on_errors_wins, test_says_error_knows_the_convention,
  test_a_predicate_on_errors_may_be_async
- errors by call or by step -> test_errors_can_be_counted_by_call
- logging -> test_a_step_is_a_line_at_info, test_an_event_is_a_line_at_debug,
  test_an_exception_in_a_tool_reaches_the_log, test_the_record_keeps_the_type_and_the_last_frame,
  test_a_message_of_a_log_is_one_line
- `step_count(30)` alone means 30 -> test_step_count_alone_means_what_it_says,
  test_step_count_does_not_raise_a_limit_that_was_given
- the loop by hand over one's own messages -> test_the_loop_by_hand_over_ones_own_messages,
  test_a_step_by_hand_runs_the_agents_below, test_a_step_by_hand_hands_the_conversation_on,
  test_a_step_by_hand_that_waits_below_ends_with_the_step_once_it_is_decided,
  test_a_step_by_hand_that_was_decided_gives_a_result_where_runs_raise,
  test_a_run_is_not_taken_up_without_the_dependencies_that_its_tools_want,
  test_a_step_by_hand_keeps_the_instructions_once, test_a_step_by_hand_leaves_the_callers_list_alone (rows 000.24,
  004.35, 36)
- another model by name -> test_another_model_by_name_for_a_step
- `add_assistant` that checks before it appends -> test_add_assistant_checks_before_it_appends,
  test_add_assistant_takes_plain_dicts
- words of other frameworks -> test_a_word_of_another_framework_gets_did_you_mean
"""

import asyncio
import json
import logging

import pytest
from play import Bank, told, within

import treadle
from treadle import (
    Agent,
    Conversation,
    Limits,
    MemoryJournal,
    Misuse,
    StepSettings,
    ToolContext,
    ask_before,
    condition,
    consecutive_errors,
    handoff,
    step_count,
    tool,
)
from treadle.kernel.events import ToolFinished
from treadle.kernel.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from treadle.models import Usage
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


def looks(count, end="done"):
    """Looks at `count` things, each in a step, then answers."""
    return lambda request: end if request.step >= count else [("look", {"key": str(request.step)})]


async def test_a_run_that_a_limit_stopped_goes_on_with_a_higher_one():
    bank, journal = Bank(), MemoryJournal()
    agent = Agent(ScriptedModel(looks(4)), tools=bank.tools, limits=Limits(steps=2), on_limit="stop", journal=journal)
    short = await within(agent.run("go"))
    assert short.stop.reason == "max_steps"
    result = await within(agent.resume(short.run_id, limits=Limits(steps=10)))
    assert (result.stop.reason, result.text) == ("answered", "done")
    assert result.run_id == short.run_id
    assert bank.ran == [f"look {n}" for n in range(4)]
    assert list(await journal.read(short.run_id)) == list(result.events)


async def test_a_run_that_goes_on_needs_no_journal():
    bank = Bank()
    agent = Agent(ScriptedModel(looks(4)), tools=bank.tools, limits=Limits(steps=2), on_limit="stop")
    short = await within(agent.run("go"))
    result = await within(agent.resume(short, limits=Limits(steps=10)))
    assert result.text == "done"
    assert len(bank.ran) == 4


async def test_a_run_that_wrote_up_at_its_limit_goes_on():
    def turn(request):
        return "so far: little" if request.tool_choice == "none" else looks(4)(request)

    bank = Bank()
    agent = Agent(ScriptedModel(turn), tools=bank.tools, limits=Limits(steps=2), journal=MemoryJournal())
    short = await within(agent.run("go"))
    assert (short.stop.reason, short.text) == ("max_steps", "so far: little")
    result = await within(agent.resume(short.run_id, limits=Limits(steps=10)))
    assert (result.stop.reason, result.text) == ("answered", "done")


@pytest.mark.parametrize(
    ("low", "high", "reason"),
    [
        (Limits(tool_calls=1), Limits(tool_calls=50), "max_tool_calls"),
        (Limits(tokens=1000), Limits(tokens=1_000_000), "max_tokens"),
        (Limits(consecutive_errors=1), Limits(consecutive_errors=9), "consecutive_errors"),
    ],
    ids=["calls", "tokens", "errors"],
)
async def test_each_kind_of_limit_can_be_raised(low, high, reason):
    bank = Bank()

    def turn(request):
        return "done" if request.step >= 3 else [("down", {"key": str(request.step)})]

    model = ScriptedModel(turn, usage=Usage(400, 100))
    agent = Agent(model, tools=bank.tools, limits=low, on_limit="stop", journal=MemoryJournal())
    short = await within(agent.run("go"))
    assert short.stop.reason == reason
    result = await within(agent.resume(short.run_id, limits=high))
    assert result.text == "done"


async def test_the_same_limit_stops_it_again():
    agent = Agent(
        ScriptedModel(looks(4)), tools=Bank().tools, limits=Limits(steps=2), on_limit="stop", journal=MemoryJournal()
    )
    short = await within(agent.run("go"))
    again = await within(agent.resume(short.run_id, message="go on"))
    assert again.stop.reason == "max_steps"
    assert len(agent.model.requests) == 2


async def test_the_message_of_a_run_that_goes_on_is_seen():
    bank = Bank()
    agent = Agent(
        ScriptedModel(looks(3)), tools=bank.tools, limits=Limits(steps=2), on_limit="stop", journal=MemoryJournal()
    )
    short = await within(agent.run("go"))
    result = await within(agent.resume(short.run_id, limits=Limits(steps=10), message="be quick"))
    assert result.finished
    asked = [message.text for message in agent.model.requests[2].messages if message.role == "user"]
    assert asked == ["go", "be quick"]


async def test_a_message_goes_on_with_a_run_that_had_answered():
    model = ScriptedModel(lambda request: request.messages[-1].text.upper())
    agent = Agent(model, journal=MemoryJournal())
    first = await within(agent.run("go"))
    result = await within(agent.resume(first.run_id, message="and then?"))
    assert (first.text, result.text) == ("GO", "AND THEN?")
    assert [message.text for message in result.messages] == ["go", "GO", "and then?", "AND THEN?"]


async def test_a_finished_run_without_either_is_returned_as_it_is():
    agent = Agent(ScriptedModel(["done"]), journal=MemoryJournal())
    first = await within(agent.run("go"))
    again = await within(agent.resume(first.run_id))
    assert (again.text, again.stop, len(again.events)) == (first.text, first.stop, len(first.events))


async def test_what_was_done_before_the_limit_is_not_done_again():
    """A batch of which the limit let one call through: the others were answered, and are not run behind its back."""
    bank = Bank()
    batch = [("pay", {"amount": n}) for n in range(3)]
    agent = Agent(
        ScriptedModel(lambda request: "done" if request.step else batch), tools=bank.tools,
        limits=Limits(tool_calls=1), on_limit="stop", journal=MemoryJournal(),
    )  # fmt: skip
    short = await within(agent.run("go"))
    assert short.stop.reason == "max_tool_calls"
    result = await within(agent.resume(short.run_id, limits=Limits(tool_calls=10)))
    assert result.text == "done"
    assert bank.ran == ["pay 0"]


async def test_a_cancelled_run_goes_on_with_a_message():
    reached = asyncio.Event()

    async def turn(request):
        if len(model.requests) == 1:
            reached.set()
            await asyncio.sleep(60)
        return "done"

    model = ScriptedModel(turn)
    agent = Agent(model, journal=MemoryJournal())
    async with agent.stream("go") as run:
        await reached.wait()
        cancelled = await run.cancel()
    assert cancelled.stop.reason == "cancelled"
    result = await within(agent.resume(cancelled.run_id, message="go on"))
    assert result.text == "done"


HISTORY = [
    UserMessage("what is a?"),
    AssistantMessage((ToolCall("c1", "look", '{"key": "a"}'),)),
    ToolMessage("c1", "look", "value of a"),
]


async def test_a_conversation_that_ends_in_tool_results_goes_on():
    agent = Agent(ScriptedModel(lambda request: f"it is {request.messages[-1].text}"), tools=Bank().tools)
    result = await within(agent.run(conversation=Conversation(HISTORY)))
    assert result.text == "it is value of a"


async def yes(state):
    return True


async def no(state):
    return False


async def at_two(state):
    await asyncio.sleep(0)
    return len(state.steps) >= 2


@pytest.mark.parametrize(
    ("when", "steps", "reason"),
    [
        (no, 4, "answered"),
        (at_two, 2, "condition"),
        (lambda state: at_two(state), 2, "condition"),
        ([no, no], 4, "answered"),
        ([no, at_two], 2, "condition"),
        (step_count(9) | no, 4, "answered"),
        (step_count(9) | at_two, 2, "condition"),
        (step_count(1) & at_two, 2, "condition"),
        (step_count(1) & no, 4, "answered"),
    ],
)
async def test_an_async_condition_is_waited_for(when, steps, reason):
    agent = Agent(ScriptedModel(looks(3)), tools=Bank().tools, stop_when=when)
    result = await within(agent.run("go"))
    assert (result.stop.reason, len(result.steps)) == (reason, steps)


async def test_an_async_condition_can_be_inverted():
    agent = Agent(ScriptedModel(looks(3)), tools=Bank().tools, stop_when=~condition(yes))
    assert (await within(agent.run("go"))).stop.reason == "answered"


async def test_an_async_condition_says_why_it_holds():
    async def enough(state):
        return "two are enough" if len(state.steps) >= 2 else ""

    agent = Agent(ScriptedModel(looks(3)), tools=Bank().tools, stop_when=enough)
    result = await within(agent.run("go"))
    assert "two are enough" in result.stop.detail


async def test_an_async_condition_that_raises_leaves_a_run_that_goes_on():
    looks_at = []

    async def broken_at_first(state):
        looks_at.append(len(state.steps))
        if len(looks_at) == 1:
            raise LookupError("mine")
        return False

    bank, journal = Bank(), MemoryJournal()
    agent = Agent(ScriptedModel(looks(1)), tools=bank.tools, stop_when=broken_at_first, journal=journal)
    with pytest.raises(LookupError, match="mine"):
        await within(agent.run("go"))
    (info,) = await journal.list()
    assert (await within(agent.resume(info.run_id))).finished
    assert bank.ran == ["look 0"]


async def test_the_result_of_a_run_under_way_says_running():
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def turn(request):
        reached.set()
        await go_on.wait()
        return "done"

    async with Agent(ScriptedModel(turn)).stream("go") as run:
        await reached.wait()
        under_way = run.result
        go_on.set()
        async for _ in run:
            pass
    assert under_way.stop.reason == "running"
    assert not under_way.finished
    assert run.result.finished


async def test_tool_choice_none_runs_no_tool():
    bank = Bank()
    agent = Agent(
        ScriptedModel([[("pay", {"amount": 5})], "done", "done"]), tools=bank.tools, tool_choice="none",
        limits=Limits(steps=3),
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert not bank.ran
    assert all(message.is_error for message in result.messages if message.role == "tool")


async def test_a_named_tool_choice_runs_no_other():
    bank = Bank()
    agent = Agent(
        ScriptedModel([[("pay", {"amount": 5}), ("look", {"key": "a"})], "done"]), tools=bank.tools,
        prepare_step=lambda context: StepSettings(tool_choice="look") if context.step_number == 0 else None,
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert bank.ran == ["look a"]
    assert "look" in told(result)[0]


async def test_tool_choice_required_is_held_to():
    bank = Bank()
    agent = Agent(
        ScriptedModel(["I would rather talk", [("look", {"key": "a"})], "done"]), tools=bank.tools,
        prepare_step=lambda context: StepSettings(tool_choice="required") if not context.state.tool_calls else None,
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert bank.ran == ["look a"]
    assert result.text == "done"


async def test_tool_choice_required_ends_no_run_with_a_text():
    bank = Bank()
    agent = Agent(
        ScriptedModel(lambda request: "I would rather talk"), tools=bank.tools, tool_choice="required",
        limits=Limits(steps=5), on_limit="stop",
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert not result.finished


@tool(effect="read")
async def reads(path: str) -> dict:
    """Read a file."""
    return {"error": f"no file {path}"}


@tool(effect="read")
async def says(path: str) -> str:
    """Read a file."""
    return f"Error: no file {path}"


def insists(name):
    return lambda request: "gave up" if request.tool_choice == "none" else [(name, {"path": str(request.step)})]


@pytest.mark.parametrize("given", [reads, says], ids=["dict", "text"])
async def test_a_returned_error_counts_where_the_agent_says_so(given):
    agent = Agent(
        ScriptedModel(insists(given.name)), tools=[given], errors=treadle.says_error, on_limit="stop",
        limits=Limits(steps=9, consecutive_errors=2),
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.stop.reason == "consecutive_errors"
    assert all(record.is_error for record in result.tool_calls_made)


@pytest.mark.parametrize(("given", "text"), [(reads, '{"error":"no file 0"}'), (says, "Error: no file 0")])
async def test_a_returned_error_is_shown_as_it_is(given, text):
    for options in ({}, {"errors": treadle.says_error}):
        agent = Agent(ScriptedModel([[(given.name, {"path": "0"})], "done"]), tools=[given], **options)
        result = await within(agent.run("go"))
        assert told(result) == [text]
        assert result.tool_calls_made[0].is_error is bool(options)


async def test_the_tools_own_word_on_errors_wins():
    @tool(effect="read", errors=lambda value: "missing" in value)
    async def find(key: str) -> str:
        """Find."""
        return "Error: this is the log that was asked for" if key == "log" else "missing"

    agent = Agent(
        ScriptedModel([[("find", {"key": "log"}), ("find", {"key": "b"})], "done"]),
        tools=[find],
        errors=treadle.says_error,
    )
    result = await within(agent.run("go"))
    assert [record.is_error for record in result.tool_calls_made] == [False, True]


async def test_a_predicate_on_errors_may_be_async():
    async def failed(value):
        return value == "value of a"

    agent = Agent(
        ScriptedModel([[("look", {"key": "a"}), ("look", {"key": "b"})], "done"]), tools=Bank().tools, errors=failed
    )
    result = await within(agent.run("go"))
    assert [record.is_error for record in result.tool_calls_made] == [True, False]


@pytest.mark.parametrize(
    ("value", "expected"),
    [({"error": "x"}, True), ({"error": True}, True), ("Error: x", True), ({"error": None}, False),
     ({"error": ""}, False),
     ({"error": False}, False), ({"errors": 0}, False), ("no error", False), (None, False), (5, False), ([], False)],
)  # fmt: skip
def test_says_error_knows_the_convention(value, expected):
    assert bool(treadle.says_error(value)) is expected


async def test_errors_can_be_counted_by_call():
    """Three failing calls of one reply are one step, and three calls."""
    batch = [("down", {"key": str(n)}) for n in range(3)]

    def turn(request):
        return "done" if request.step else batch

    by_call = Agent(ScriptedModel(turn), tools=Bank().tools, stop_when=consecutive_errors(3, by="call"))
    by_step = Agent(ScriptedModel(turn), tools=Bank().tools, stop_when=consecutive_errors(3))
    assert (await within(by_call.run("go"))).stop.reason == "condition"
    assert (await within(by_step.run("go"))).stop.reason == "answered"


async def logged(caplog, level):
    bank = Bank()
    calls = [("look", {"key": "a"}), ("down", {"key": "b"})]
    agent = Agent(ScriptedModel([calls, "done"]), tools=bank.tools)
    with caplog.at_level(level, logger="treadle"):
        result = await within(agent.run("go"))
    return result, [record for record in caplog.records if record.name.split(".")[0] == "treadle"]


async def test_a_step_is_a_line_at_info(caplog):
    result, records = await logged(caplog, logging.INFO)
    lines = [record.getMessage() for record in records if record.levelno == logging.INFO]
    assert len(lines) == len(result.steps)
    assert "look" in lines[0]
    assert all(result.run_id in line for line in lines)


async def test_an_event_is_a_line_at_debug(caplog):
    result, records = await logged(caplog, logging.DEBUG)
    lines = [record.getMessage() for record in records if record.levelno == logging.DEBUG]
    assert len(lines) == len(result.events)
    for line, event in zip(lines, result.events, strict=True):
        assert type(event).__name__ in line


async def test_an_exception_in_a_tool_reaches_the_log(caplog):
    _, records = await logged(caplog, logging.WARNING)
    (record,) = [one for one in records if one.exc_info]
    assert isinstance(record.exc_info[1], ValueError)
    assert "the server is down" in caplog.text
    assert "Traceback" in caplog.text
    assert "down" in record.getMessage()


async def test_a_message_of_a_log_is_one_line(caplog):
    with caplog.at_level(logging.DEBUG, logger="treadle"):
        await within(Agent(ScriptedModel([[("look", {"key": "a\nb"})], "x\ny"]), tools=Bank().tools).run("a\nb"))
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("treadle")]
    assert lines
    assert all("\n" not in line for line in lines)


async def test_the_record_keeps_the_type_and_the_last_frame():
    agent = Agent(ScriptedModel([[("down", {"key": "a"})], "done"]), tools=Bank().tools)
    result = await within(agent.run("go"))
    (finished,) = [event for event in result.events if isinstance(event, ToolFinished)]
    assert "ValueError" in repr(finished.raised)
    assert "play.py" in repr(finished.raised)
    assert "play.py" not in told(result)[0]


async def test_step_count_alone_means_what_it_says():
    bank = Bank()
    agent = Agent(ScriptedModel(looks(99)), tools=bank.tools, stop_when=step_count(30))
    result = await within(agent.run("go"))
    assert (result.stop.reason, len(result.steps)) == ("condition", 30)


async def test_step_count_does_not_raise_a_limit_that_was_given():
    agent = Agent(
        ScriptedModel(looks(99)), tools=Bank().tools, stop_when=step_count(30), limits=Limits(steps=5), on_limit="stop"
    )
    assert len((await within(agent.run("go"))).steps) == 5


async def test_the_loop_by_hand_over_ones_own_messages():
    bank = Bank()
    agent = Agent(
        ScriptedModel(
            lambda request: "done" if len(request.messages) > 4 else [("look", {"key": str(len(request.messages))})]
        ),
        tools=bank.tools,
    )
    messages = [UserMessage("go")]
    turns = 0
    while turns < 9:
        result = await within(agent.step(messages))
        messages = result.messages
        turns += 1
        if result.finished:
            break
    assert (result.text, turns) == ("done", 3)
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert len(bank.ran) == 2


async def test_a_step_by_hand_keeps_the_instructions_once():
    agent = Agent(
        ScriptedModel(lambda request: "done" if len(request.messages) > 3 else [("look", {"key": "a"})]),
        tools=Bank().tools, instructions="be brief",
    )  # fmt: skip
    first = await within(agent.step([UserMessage("go")]))
    assert not first.finished
    second = await within(agent.step(first.messages))
    assert second.finished
    for request in agent.model.requests:
        assert [message.role for message in request.messages].count("system") == 1


async def test_a_step_by_hand_runs_the_agents_below():
    below = Agent(ScriptedModel([[("look", {"key": "a"})], "found it"]), name="below", tools=Bank().tools)
    agent = Agent(ScriptedModel([[("below", {"task": "find"})], "done"]), tools=[below.as_tool()])
    first = await within(agent.step("go"))
    assert (first.stop.reason, first.messages[-1].content) == ("max_steps", "found it")
    assert (await within(agent.step(first.messages))).text == "done"


async def test_a_step_by_hand_hands_the_conversation_on():
    below = Agent(ScriptedModel([[("look", {"key": "a"})], "found it"]), name="below", tools=Bank().tools)
    agent = Agent(ScriptedModel([[("transfer_to_below", {})]]), tools=[handoff(below)])
    result = await within(agent.step("go"))
    assert (result.finished, result.text) == (True, "found it")


async def test_a_run_is_not_taken_up_without_the_dependencies_that_its_tools_want():
    @tool
    def look(key: str, context: ToolContext[Bank]) -> str:
        return "seen"

    agent = Agent(ScriptedModel([[("look", {"key": "a"})], "done"]), tools=[look], on_limit="stop")
    bank = Bank()
    stopped = await within(agent.run("go", deps=bank, limits=Limits(steps=1)))
    with pytest.raises(Misuse, match="look takes dependencies of type Bank"):
        await within(agent.resume(stopped, limits=Limits(steps=5)))
    assert (await within(agent.resume(stopped, limits=Limits(steps=5), deps=bank))).text == "done"


async def test_a_step_by_hand_leaves_the_callers_list_alone():
    messages = [UserMessage("go")]
    await within(Agent(ScriptedModel(["done"])).step(messages))
    assert messages == [UserMessage("go")]


async def test_another_model_by_name_for_a_step():
    bank = Bank()
    agent = Agent(
        ScriptedModel([[("look", {"key": "a"})]]), tools=bank.tools,
        prepare_step=lambda context: StepSettings(model="offline") if context.step_number else None,
        limits=Limits(steps=2), on_limit="stop",
    )  # fmt: skip
    result = await within(agent.run("What is 2 + 2?"))
    assert result.steps[1].model == "offline"


@pytest.mark.parametrize(
    ("word", "meant"),
    [("system_prompt", "instructions"), ("output_type", "output"), ("max_steps", "limits"),
     ("max_iterations", "limits"),
     ("instruction", "instructions"), ("tool", "tools")],
)  # fmt: skip
def test_a_word_of_another_framework_gets_did_you_mean(word, meant):
    with pytest.raises((Misuse, TypeError), match=rf"(?s){word}.*did you mean.*{meant}"):
        Agent(ScriptedModel([]), **{word: 5})


def test_add_assistant_checks_before_it_appends():
    conversation = Conversation()
    conversation.add_user("go")
    for wrong in (["no call"], [{"id": "a"}], [{"name": "look"}], [7], [ToolCall("a", "x"), ToolCall("a", "x")]):
        with pytest.raises(Misuse):
            conversation.add_assistant("text", wrong)
        assert len(conversation) == 1, wrong


def test_add_assistant_takes_plain_dicts():
    conversation = Conversation()
    conversation.add_user("go")
    conversation.add_assistant("let me see", [{"id": "c1", "name": "look", "arguments": {"key": "a"}}])
    conversation.add_tool_result("c1", "value of a")
    (call,) = conversation.messages[1].calls
    assert (conversation.messages[1].text, call.id, call.name) == ("let me see", "c1", "look")
    assert json.loads(call.arguments) == {"key": "a"}
    assert conversation.messages[2].name == "look"


async def test_a_step_by_hand_that_waits_below_ends_with_the_step_once_it_is_decided():
    below = Agent(
        ScriptedModel([[("pay", {"amount": 5})], "paid it"]), name="below", tools=Bank().tools,
        approvals=[ask_before("pay")],
    )  # fmt: skip
    agent = Agent(ScriptedModel([[("below", {"task": "pay"})], "done"]), tools=[below.as_tool()])
    waiting = await within(agent.step("go"))
    assert waiting.stop.reason == "waiting"
    decided = await within(agent.resume(waiting, approve=waiting.pending))
    assert (decided.stop.reason, decided.messages[-1].content) == ("max_steps", "paid it")
    assert (await within(agent.step(decided.messages))).text == "done"


async def test_a_step_by_hand_that_was_decided_gives_a_result_where_runs_raise():
    agent = Agent(
        ScriptedModel([[("pay", {"amount": 5})], "done"]), tools=Bank().tools, approvals=[ask_before("pay")],
        on_limit="raise",
    )  # fmt: skip
    waiting = await within(agent.step("go"))
    decided = await within(agent.resume(waiting, approve=waiting.pending))
    assert decided.stop.reason == "max_steps"
    assert (await within(agent.step(decided.messages))).text == "done"
