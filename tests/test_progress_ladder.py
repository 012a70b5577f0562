"""A run that repeats itself is told so, then has the tools concerned withheld for a step, and then lands."""

import pytest

from treadle import Agent, Decision, Limits, Nudge, PrepareStep, decide, no_progress, tool
from treadle.judging.judge import judge
from treadle.kernel.events import ModelReplied, NudgeGiven, RunStarted, StepPrepared, ToolFinished, ToolStarted
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import AssistantMessage, ToolCall, UserMessage
from treadle.testing import ScriptedModel


@tool(effect="read")
def look(key: str) -> str:
    """Look something up."""
    return f"value of {key}"


@tool(effect="read")
def other() -> str:
    """Do something else."""
    return "else"


def stubborn(request):
    return "summary" if request.tool_choice == "none" else [("look", {"key": "a"})]


def test_the_ladder_nudges_withholds_and_lands():
    model = ScriptedModel(stubborn)
    result = Agent(model, tools=[look, other]).run_sync("go")
    assert result.stop.reason == "no_progress"
    assert not result.finished
    assert result.text == "summary"
    assert "look" in result.stop.detail
    nudges = [event for event in result.events if isinstance(event, NudgeGiven)]
    assert len(nudges) == 1
    assert nudges[0].text.startswith("You called look 3 times with the same arguments")
    offered = [[spec.name for spec in request.tools] for request in model.requests]
    assert offered == [["look", "other"]] * 4 + [["other"], ["look", "other"]]
    assert [step.decision.verdict for step in result.steps] == ["go"] * 5 + ["land"]
    assert any(check.name == "progress" for check in result.steps[4].decision.conditions)


def test_the_nudge_stands_where_the_history_stays_valid():
    model = ScriptedModel(stubborn)
    Agent(model, tools=[look, other]).run_sync("go")
    roles = [message.role for message in model.requests[3].messages]
    assert roles[-2:] == ["tool", "user"]


def test_a_run_that_finds_another_way_after_the_nudge_goes_on():
    def turn(request):
        told = any("same arguments" in message.text for message in request.messages if message.role == "user")
        if not told:
            return [("look", {"key": "a"})]
        return [("look", {"key": str(request.step)})] if request.step < 12 else "done"

    result = Agent(ScriptedModel(turn), tools=[look]).run_sync("go")
    assert result.stop.reason == "answered"


def test_where_no_tool_would_be_left_the_run_lands_at_once():
    model = ScriptedModel(stubborn)
    result = Agent(model, tools=[look]).run_sync("go")
    assert result.stop.reason == "no_progress"
    assert result.text == "summary"
    assert len(model.requests) == 5
    assert [spec.name for spec in model.requests[-1].tools] == ["look"]


def test_batch_work_over_many_items_is_not_taken_for_a_loop():
    model = ScriptedModel(lambda request: "done" if request.step == 60 else [("look", {"key": str(request.step)})])
    result = Agent(model, tools=[look], limits=Limits(steps=100)).run_sync("go")
    assert result.stop.reason == "answered"
    assert not any(isinstance(event, NudgeGiven) for event in result.events)


def test_a_polling_tool_is_not_taken_for_a_loop():
    @tool(effect="read", polling=True)
    def status() -> str:
        """Is it done?"""
        return "pending"

    model = ScriptedModel(lambda request: "done" if request.step == 30 else [("status", {})])
    result = Agent(model, tools=[status], limits=Limits(steps=50)).run_sync("go")
    assert result.stop.reason == "answered"


def test_a_polling_tool_whose_answer_does_not_change_is_watched_by_time():
    def polled(seconds, answer):
        events = [RunStarted("r", (UserMessage("go"),), 1, tools=("status",), polling=("status",), at=1.0)]
        for i, now in enumerate((1.0, 1.0 + seconds)):
            call = AssistantMessage((ToolCall(f"c{i}", "status", "{}"),))
            events += [
                StepPrepared(i, Decision("go"), at=now),
                ModelReplied(i, call, at=now),
                ToolStarted(i, f"c{i}", at=now),
                ToolFinished(i, f"c{i}", answer(i), at=now),
            ]
        return decide(state := fold_all(events), judge(state))

    assert isinstance(polled(100, lambda i: "pending"), PrepareStep)
    assert isinstance(polled(130, lambda i: f"{i} %"), PrepareStep)
    told = polled(130, lambda i: "pending")
    assert isinstance(told, Nudge)
    assert told.text == "You have asked status for 130 seconds, and its answer has not changed."


def test_the_watch_can_be_turned_off():
    agent = Agent(ScriptedModel(stubborn), tools=[look], limits=Limits(steps=12), watch_progress=False)
    assert agent.run_sync("go").stop.reason == "max_steps"


@pytest.mark.parametrize("combined", [no_progress(), no_progress() | (lambda state: False)])
def test_as_a_condition_it_ends_the_run_and_names_the_pattern(combined):
    agent = Agent(ScriptedModel(stubborn), tools=[look, other], stop_when=combined)
    result = agent.run_sync("go")
    assert result.stop.reason == "no_progress"
    assert "4 times" in result.stop.detail


def test_the_model_is_told_what_is_withheld_and_for_how_long():
    model = ScriptedModel(stubborn)
    Agent(model, tools=[look, other]).run_sync("go")
    told = [request.messages[-1].text for request in model.requests if len(request.tools) == 1]
    assert len(told) == 1
    assert told[0].endswith("In your next step, and only in that one, you do not have look.")


@pytest.mark.parametrize("steps", [3, 4, 5])
@pytest.mark.parametrize("on_limit", ["answer", "stop"])
def test_the_repeated_call_is_named_where_a_small_limit_ends_the_run(steps, on_limit):
    """A limit of three to five steps ended the run before the watch did, and said nothing of the loop."""
    limits = Limits(steps=steps)
    result = Agent(ScriptedModel(stubborn), tools=[look, other], limits=limits, on_limit=on_limit).run_sync("go")
    assert result.stop.reason == "max_steps"
    made = steps if on_limit == "stop" else steps - 1
    named = f"The last {made} steps made the same call with the same result: look({{"
    withheld = "Your last 5 calls (look) brought nothing new"
    assert (withheld if made == 5 else named) in result.stop.detail


def test_a_stop_condition_may_be_asynchronous():
    """The truth of a coroutine ended the run after its first step, as finished."""

    async def enough(state):
        return len(state.steps) == 2 and "seen twice"

    result = Agent(ScriptedModel(stubborn), tools=[look, other], stop_when=enough).run_sync("go")
    assert (result.stop.reason, result.stop.detail) == ("condition", "enough: seen twice")


def test_a_run_of_new_calls_whose_results_begin_with_error_is_not_stopped():
    @tool(effect="read")
    def ticket(number: int) -> str:
        """Read a ticket."""
        return f"Error: customer {number} cannot log in"

    model = ScriptedModel(lambda request: "done" if request.step == 15 else [("ticket", {"number": request.step})])
    result = Agent(model, tools=[ticket]).run_sync("go")
    assert result.stop.reason == "answered"
    assert not any(isinstance(event, NudgeGiven) for event in result.events)
