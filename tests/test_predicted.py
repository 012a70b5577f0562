"""What any run will do can be said from the kernel alone: odd situations, and the events that were foretold of them."""

import pytest

from treadle import Agent, Limits, MemoryJournal, Retry, deny, external_tool, handoff, tool
from treadle.kernel.events import RunFinished, RunPaused, StepPrepared, ToolFinished, ToolReacted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio
TEXTS = {
    "RunStarted": "begin", "StepPrepared": "step", "ModelReplied": "reply", "ToolStarted": "start",
    "ToolFinished": "back", "ToolReacted": "react", "ApprovalRequested": "ask", "ApprovalDecided": "decide",
    "ResultAwaited": "await", "MessageAdded": "said", "NudgeGiven": "nudge", "RunPaused": "pause",
    "RunResumed": "resume", "RunFinished": "end",
}  # fmt: skip


def told(result):
    """The events of a run in a word each: "!" is an error, "?" a result that is looked at first."""
    words = []
    for event in result.events:
        word = TEXTS[type(event).__name__]
        if isinstance(event, StepPrepared) and event.landing is not None:
            word = "land"
        if isinstance(event, ToolFinished):
            word += "!" * event.is_error + "?" * event.provisional
        if isinstance(event, ToolReacted):
            word += f"={event.action}"
        if isinstance(event, (RunPaused, RunFinished)):
            word += f"={event.stop.reason}"
        words.append(word)
    return " ".join(words)


@tool(effect="read")
def look(what: str = "x") -> str:
    """Looks."""
    return f"saw {what}"


@tool(needs_approval=True)
def pay(amount: int = 1) -> str:
    """Pays."""
    return f"paid {amount}"


def built(*turns, tools=(look, pay), **options):
    return Agent(ScriptedModel(list(turns)), tools=list(tools), journal=MemoryJournal(), **options)


async def test_a_limit_is_reached_in_a_batch_of_which_a_call_waits():
    agent = built([("pay", {}), ("look", {})], "so far", limits=Limits(tool_calls=1))
    waiting = await agent.run("go")
    result = await agent.resume(waiting, approve=waiting.pending)
    assert told(result) == "begin step reply ask pause=waiting resume decide start back land reply end=max_tool_calls"


async def test_with_more_room_the_same_run_does_not_land():
    agent = built([("pay", {}), ("look", {})], [("look", {})], "done", limits=Limits(tool_calls=1))
    waiting = await agent.run("go")
    result = await agent.resume(waiting, approve=waiting.pending, limits=Limits(tool_calls=5))
    after = "resume decide start back step reply start back step reply end=answered"
    assert told(result) == f"begin step reply ask pause=waiting {after}"


async def test_a_rule_that_was_added_denies_what_was_approved():
    model = ScriptedModel([[("pay", {})], "no, then"])
    journal = MemoryJournal()
    waiting = await Agent(model, tools=[pay], journal=journal).run("go")
    stricter = Agent(model, tools=[pay], journal=journal, approvals=[deny("pay")])
    result = await stricter.resume(waiting.run_id, approve=waiting.pending)
    assert told(result) == "begin step reply ask pause=waiting resume decide back! step reply end=answered"


async def test_what_is_said_during_a_question_waits_for_the_answer():
    asks = external_tool("asks", "Asks.", {"type": "object", "properties": {}}, wait=True)
    agent = built([("asks", {})], "fine", tools=[asks])
    waiting = await agent.run("go")
    waiting = await agent.resume(waiting, message="hurry")
    result = await agent.resume(waiting, results={waiting.pending[0].key: "red"})
    before = "begin step reply await pause=waiting resume said pause=waiting"
    assert told(result) == f"{before} resume back step reply end=answered"
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "user", "assistant"]


async def test_what_is_said_to_a_run_that_was_handed_on_is_answered_by_the_first_agent():
    other = Agent(ScriptedModel([[("pay", {})], "paid"]), name="other", tools=[pay])
    agent = built([("transfer_to_other", {})], "here again", tools=[handoff(other)])
    waiting = await agent.run("go")
    result = await agent.resume(waiting, approve=waiting.pending, message="and?")
    before = "begin step reply start await pause=waiting"
    assert told(result) == f"{before} resume decide said start back step reply end=answered"


async def test_a_hook_that_raises_after_a_retry_is_asked_again_about_the_second_result():
    asked = []

    def look_at(call, result):
        asked.append(call.made)
        if len(asked) == 1:
            return Retry()
        if len(asked) == 2:
            raise RuntimeError("the hook failed")

    agent = built([("look", {})], "done", on_tool_result=look_at)
    with pytest.raises(RuntimeError):
        await agent.run("go")
    (line,) = await agent.journal.list()
    result = await agent.resume(line.run_id)
    before = "begin step reply start back? react=call start back?"
    assert told(result) == f"{before} resume react=keep step reply end=answered"
    assert asked == [1, 2, 2]


async def test_a_call_that_ends_the_run_waits_for_one_beside_it_that_is_decided():
    ends = external_tool("ends", "Ends.", {"type": "object", "properties": {}})
    agent = built([("ends", {}), ("pay", {})], tools=[ends, pay])
    waiting = await agent.run("go")
    result = await agent.resume(waiting, approve=waiting.pending)
    assert told(result) == "begin step reply await ask pause=waiting resume decide start back end=external_tool"


async def test_changed_arguments_are_judged_and_what_is_denied_never_starts():
    agent = built(
        [("look", {})],
        "done",
        on_tool_call=lambda call: {"what": "secrets"},
        approvals=[deny("look", when=lambda given: given["what"] == "secrets")],
    )
    assert told(await agent.run("go")) == "begin step reply react=change back! step reply end=answered"


async def test_answers_that_are_sent_back_land_the_run():
    agent = Agent(ScriptedModel(lambda request: f"try {request.step}"), on_answer=lambda answer, context: "No.")
    result = await agent.run("go")
    assert told(result) == f"begin {'step reply nudge ' * 3}land reply end=consecutive_errors"
    assert result.text == "try 3"


async def test_a_run_that_its_limit_ended_and_that_is_spoken_to_counts_on():
    calls = [[("look", {}), ("look", {"what": "y"})], "wrote", [("look", {"what": "z"})], "wrote again"]
    agent = built(*calls, limits=Limits(tool_calls=1))
    result = await agent.resume(await agent.run("go"), message="more?")
    before = "begin step reply start back land reply end=max_tool_calls"
    assert told(result) == f"{before} resume said step reply land reply end=max_tool_calls"
