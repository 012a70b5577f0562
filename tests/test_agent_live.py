"""Runs under way: watched, steered, paused, cancelled, and carried out by hand."""

import asyncio

import pytest

from treadle import (
    Agent,
    CallModel,
    Conversation,
    Finish,
    MemoryJournal,
    Misuse,
    Nudge,
    Pause,
    PrepareStep,
    RunTools,
    Text,
    ToolContext,
    ToolProgress,
    tool,
)
from treadle.kernel.events import (
    ApprovalRequested,
    ModelReplied,
    RunFinished,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolStarted,
)
from treadle.kernel.messages import AssistantMessage
from treadle.models import ModelReply, TextDelta, ToolCallDelta
from treadle.testing import ScriptedModel


@tool(effect="read")
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


def multiplying(*more):
    return ScriptedModel([("Let me see. ", [("multiply", {"a": 6, "b": 7})]), *(more or ("It is 42.",))])


# Watching


def test_the_stream_shows_deltas_and_events_in_order():
    model = ScriptedModel([("Let me see. ", [("multiply", {"a": 6, "b": 7})]), "It is 42."], chunk=4)

    async def run():
        async with Agent(model, tools=[multiply], journal=MemoryJournal()).stream("go") as live:
            events = [event async for event in live]
        return events, live.result

    events, result = asyncio.run(run())
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Let me see. It is 42."
    assert sum(isinstance(event, TextDelta) for event in events) == 6
    kinds = [type(event) for event in events if not isinstance(event, TextDelta)]
    order = [
        RunStarted,
        StepPrepared,
        ToolCallDelta,
        ModelReplied,
        ToolStarted,
        ToolFinished,
        StepPrepared,
        ModelReplied,
    ]
    assert [kind for kind in kinds if kind in {*order, RunFinished}] == [*order, RunFinished]
    assert result.text == "It is 42."


def test_on_event_is_called_with_the_same():
    seen = []
    result = Agent(multiplying(), tools=[multiply]).run_sync("go", on_event=seen.append)
    assert [event for event in seen if event in result.events] == list(result.events)
    assert any(isinstance(event, TextDelta) for event in seen)


def test_a_watcher_that_raises_is_logged_and_the_run_goes_on(caplog):
    def watch(event):
        raise ValueError("mine")

    assert Agent(ScriptedModel(["hi"])).run_sync("go", on_event=watch).text == "hi"
    assert "on_event raised on RunStarted" in caplog.text


def test_progress_of_a_tool_is_shown_from_its_thread():
    @tool
    def long(context: ToolContext) -> str:
        """Take long."""
        context.report("half")
        return "whole"

    seen = []
    Agent(ScriptedModel([[("long", {})], "done"]), tools=[long]).run_sync("go", on_event=seen.append)
    assert ToolProgress("call_0_0", "long", "half") in seen


def test_an_exception_in_the_body_of_a_stream_reaches_the_caller_and_cancels_the_run():
    journal = MemoryJournal()

    async def run():
        async with Agent(ScriptedModel(["hi"]), journal=journal).stream("go") as live:
            raise LookupError("mine")
        return live

    with pytest.raises(LookupError, match="mine"):
        asyncio.run(run())
    (info,) = asyncio.run(journal.list())
    assert asyncio.run(journal.read(info.run_id))[-1].stop.reason == "cancelled"


def test_an_error_of_the_agents_own_code_is_raised_by_the_iteration():
    def prepare(context):
        raise LookupError("mine")

    async def run():
        async with Agent(ScriptedModel(["hi"]), prepare_step=prepare).stream("go") as live:
            with pytest.raises(LookupError, match="mine"):
                async for _ in live:
                    pass

    asyncio.run(run())


def test_an_error_of_the_agents_own_code_leaves_a_run_that_can_be_resumed():
    journal, broken = MemoryJournal(), [True]

    def prepare(context):
        if context.step_number and broken:
            raise LookupError("mine")

    agent = Agent(model := multiplying(), tools=[multiply], prepare_step=prepare, journal=journal)
    with pytest.raises(LookupError):
        asyncio.run(agent.run("go"))
    broken.clear()
    (info,) = asyncio.run(journal.list())
    assert asyncio.run(agent.resume(info.run_id)).text == "It is 42."
    assert len(model.requests) == 2


def test_a_stream_that_was_not_entered_says_so():
    live = Agent(ScriptedModel(["hi"])).stream("go")
    with pytest.raises(Misuse, match="async with"):
        _ = live.result


# Steering


def test_a_message_sent_to_a_run_under_way_is_taken_up_after_the_tools_results():
    async def run():
        @tool
        async def slow() -> str:
            """Be slow."""
            await live.send("also in French")
            return "slow"

        model = ScriptedModel([[("slow", {})], "done"])
        async with Agent(model, tools=[slow]).stream("go") as live:
            async for _ in live:
                pass
            with pytest.raises(Misuse, match="ended"):
                await live.send("too late")
        return model

    model = asyncio.run(run())
    assert [message.role for message in model.requests[1].messages] == ["user", "assistant", "tool", "user"]
    assert model.requests[1].messages[-1].text == "also in French"


def test_a_message_sent_while_the_answer_arrives_is_answered_too():
    async def run():
        async def answer():
            yield TextDelta("fo")
            await live.send("and twice that?")
            yield ModelReply(AssistantMessage((Text("four"),)))

        model = ScriptedModel([answer(), "eight"])
        async with Agent(model).stream("2 + 2?") as live:
            async for _ in live:
                pass
        return live.result

    result = asyncio.run(run())
    assert [message.text for message in result.messages] == ["2 + 2?", "four", "and twice that?", "eight"]


def test_pause_and_resume():
    async def run():
        journal = MemoryJournal()
        agent = Agent(model := multiplying(), tools=[multiply], journal=journal)
        async with agent.stream("go") as live:
            async for event in live:
                if isinstance(event, ModelReplied):
                    break
            paused = await live.pause()
            with pytest.raises(Misuse, match="paused"):
                await live.send("hello?")
        assert (paused.stop.reason, paused.stop.detail) == ("waiting", "paused by the caller")
        assert paused.messages[-1].text == "42"
        result = await agent.resume(live.run_id)
        assert result.text == "It is 42."
        assert len(model.requests) == 2

    asyncio.run(run())


def test_cancel_returns_what_was_found():
    async def run():
        @tool
        async def hang() -> None:
            """Hang."""
            await asyncio.get_running_loop().create_future()

        model = ScriptedModel([("I found one. ", [("multiply", {"a": 1, "b": 1})]), ("And ", [("hang", {})])])
        async with Agent(model, tools=[multiply, hang]).stream("go") as live:
            async for event in live:
                if isinstance(event, ToolStarted) and event.step == 1:
                    break
            result = await live.cancel()
        assert result.stop.reason == "cancelled"
        assert result.text == "And "
        assert len(result.tool_calls_made) == 2
        return result

    asyncio.run(run())


# By hand


def by_hand(run, agent):
    async def loop():
        while command := run.next():
            match command:
                case PrepareStep():
                    run.feed(run.prepare(command))
                case CallModel():
                    async for event in agent.model.stream(run.request()):
                        reply = event
                    run.feed(reply)
                case RunTools(records=records):
                    for record in records:
                        await run.call_tool(record)
                case Nudge() | Pause() | Finish():
                    run.feed(command.event())

    asyncio.run(loop())
    return run.result


def test_the_loop_by_hand_gives_the_same_history_as_the_loop():
    turns = [[("multiply", {"a": 6, "b": 7}), ("nothing", {})], "", "It is 42."]
    automatic = Agent(ScriptedModel(turns), tools=[multiply]).run_sync("go")
    agent = Agent(ScriptedModel(turns), tools=[multiply])
    manual = by_hand(agent.start("go"), agent)
    assert manual.messages == automatic.messages
    assert manual.stop == automatic.stop
    assert [step.number for step in manual.steps] == [step.number for step in automatic.steps]


def test_a_run_by_hand_continues_its_conversation():
    said = Conversation()
    agent = Agent(ScriptedModel(["one", "two"]))
    by_hand(agent.start("first", conversation=said), agent)
    by_hand(agent.start("second", conversation=said), agent)
    assert [message.text for message in said.messages] == ["first", "one", "second", "two"]


def test_a_run_by_hand_pauses_for_an_approval():
    done = []

    @tool(needs_approval=True)
    def delete() -> None:
        """Delete."""
        done.append("deleted")

    agent = Agent(ScriptedModel([[("delete", {})]]), tools=[delete])
    result = by_hand(agent.start("go"), agent)
    assert result.stop.reason == "waiting"
    assert done == []
    assert any(isinstance(event, ApprovalRequested) for event in result.events)


def test_start_cannot_wait_for_instructions():
    async def instructions(context):
        return "Be good."

    with pytest.raises(Misuse, match="asynchronous instructions"):
        Agent(ScriptedModel(["x"]), instructions=instructions).start("go")


def test_a_request_before_a_step_is_prepared_is_a_misuse():
    with pytest.raises(Misuse, match="no step prepared"):
        Agent(ScriptedModel(["x"])).start("go").request()


@pytest.mark.anyio
async def test_a_stream_that_was_entered_is_not_entered_again():
    model = ScriptedModel(["Hello."])
    run = Agent(model).stream("Hello?")
    async with run:
        with pytest.raises(Misuse, match="was entered already, and a stream is entered once"):
            await run.__aenter__()
        assert [event async for event in run]
    with pytest.raises(Misuse, match="with resume= to go on with that run"):
        async with run:
            pass
    assert (run.result.text, len(model.requests)) == ("Hello.", 1)


@pytest.mark.anyio
@pytest.mark.parametrize("steer", ["cancel", "pause", "send", "iterate"])
async def test_a_run_is_steered_in_its_own_event_loop_or_not_at_all(steer):
    """Another loop waited for ever."""

    async def elsewhere(run):
        if steer == "iterate":
            return [event async for event in run]
        return await getattr(run, steer)(*(["Go on."] if steer == "send" else []))

    def in_a_loop_of_its_own(run):
        with pytest.raises(Misuse, match="belongs to the event loop in which it was entered"):
            asyncio.run(asyncio.wait_for(elsewhere(run), 5))

    async def slow(request):
        await asyncio.sleep(0.05)
        return "done"

    async with Agent(ScriptedModel(slow)).stream("go") as run:
        await asyncio.to_thread(in_a_loop_of_its_own, run)
        here = asyncio.get_running_loop()
        await asyncio.to_thread(asyncio.run_coroutine_threadsafe(run.send("More."), here).result)
        async for _ in run:
            pass
    assert run.result.text == "done"
