"""What a run below is given, what is told of it, and what it takes, to the letter."""

import asyncio
from decimal import Decimal

import pytest
from msgspec.structs import replace

from treadle import (
    Agent,
    Alternative,
    AskUser,
    Limits,
    MemoryJournal,
    Misuse,
    Price,
    SubRunEvent,
    ToolContext,
    ToolResult,
    Usage,
    ask_before,
    deny,
    external_tool,
    handoff,
    tool,
)
from treadle.journal import JournalConflict
from treadle.kernel.accounts import Spent
from treadle.kernel.calls import cut_off
from treadle.kernel.events import (
    ApprovalDecided,
    ModelReplied,
    ResultAwaited,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolStarted,
)
from treadle.kernel.messages import Text
from treadle.kernel.stop import stopped
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@tool(effect="read")
async def look(key: str) -> str:
    """Look something up."""
    return f"value of {key}"


TASK, LOOK = ("child", {"task": "x"}), ("look", {"key": "a"})


def child(*turns, **options):
    return Agent(ScriptedModel(list(turns) or ["below"], usage=Usage(10, 4)), name="child", **options)


def back(events):
    return [replace(one, at=0.0) for one in events if isinstance(one, ToolFinished)]


async def run(*turns, tools, **options):
    seen = options.pop("deps", None)
    async with asyncio.timeout(10):
        agent = Agent(ScriptedModel([*turns, "done"]), tools=tools, **options)
        return await agent.run("go", deps=seen)


async def started_below(journal, result, step=0):
    (first, *_) = await journal.read(f"{result.run_id}.{step}.call_0_0")
    assert isinstance(first, RunStarted)
    return first


async def test_who_watches_a_run_is_told_which_run_below_an_event_is_of():
    seen = []
    agent = Agent(ScriptedModel([[TASK], "done"]), tools=[child().as_tool()])
    result = await agent.run("go", on_event=seen.append)
    below = {(one.run_id, one.call_id, one.agent) for one in seen if isinstance(one, SubRunEvent)}
    assert below == {(f"{result.run_id}.0.call_0_0", "call_0_0", "child")}


async def test_tools_and_instructions_below_are_given_what_those_above_are():
    seen = []

    @tool(effect="read")
    async def ask(context: ToolContext) -> str:
        """Ask."""
        seen.append((context.deps, context.run_id))
        return "asked"

    below = child([("ask", {})], "below", tools=[ask], instructions=lambda context: seen.append(context) or "Be brief.")
    result = await run([TASK], tools=[below.as_tool()], deps="the deps")
    run_id = f"{result.run_id}.0.call_0_0"
    context, called = seen
    assert (context.run_id, context.agent, context.deps) == (run_id, "child", "the deps")
    assert called == ("the deps", run_id)


async def test_instructions_below_that_cancel_themselves_are_named():
    async def instructions(context):
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match=r"^the instructions of child cancelled itself$"):
        await run([TASK], tools=[child(instructions=instructions).as_tool()])


async def test_the_instructions_of_a_run_below_say_what_its_answer_is_to_be():
    below = child('{"n": 1}', output=dict[str, int], output_mode="prompted", instructions="Count.")
    journal = MemoryJournal()
    started = await started_below(journal, await run([TASK], tools=[below.as_tool()], journal=journal))
    system = started.messages[0].text
    assert system.startswith("Count.")
    assert "JSON" in system


async def test_a_run_below_has_no_more_time_than_the_run_that_it_works_for():
    journal = MemoryJournal()
    tools = [child(limits=Limits(seconds=500)).as_tool()]
    started = await started_below(journal, await run([TASK], tools=tools, journal=journal, limits=Limits(seconds=20)))
    assert started.limits.seconds <= 20


@pytest.mark.parametrize("reason", ["it knows", ""])
async def test_who_a_conversation_is_handed_on_to_sees_all_of_it_and_why_if_that_was_said(reason):
    journal = MemoryJournal()
    given = {"reason": reason} if reason else {}
    tools = [look, handoff(child(instructions="You do bills."))]
    agent = Agent(
        ScriptedModel([[LOOK], [("transfer_to_child", given)], "done"]),
        tools=tools,
        journal=journal,
        instructions="You greet.",
    )
    result = await agent.run("go")
    (first, *_) = await journal.read(f"{result.run_id}.1.call_1_0")
    said = [(message.role, message.text) for message in first.messages]
    note = [("user", "(This conversation was handed on to you: it knows)")] if reason else []
    assert said == [("system", "You do bills."), ("user", "go"), ("assistant", ""), ("tool", "value of a"), *note]


async def test_what_a_run_two_below_takes_counts_in_the_call_at_the_top():
    inner = Agent(ScriptedModel(["inner"], usage=Usage(1, 1)), name="inner")
    middle = child([("inner", {"task": "y"})], "below", tools=[inner.as_tool()])
    result = await run([TASK], tools=[middle.as_tool()])
    (found,) = back(result.events)
    assert found.spent == Spent(3, Usage(21, 9), tool_calls=1, unpriced=True)
    assert result.sub_steps == 3


async def test_a_question_about_a_call_below_says_how_often_somebody_was_asked_about_it():
    below = child(
        [LOOK], "below", tools=[look], on_tool_result=lambda call, output: AskUser("right?"),
        approvals=[ask_before("look", reason="dear")],
    )  # fmt: skip
    agent = Agent(ScriptedModel([[TASK], "done"]), tools=[below.as_tool()])
    result = await agent.run("go")
    (waits,) = [one for one in result.events if isinstance(one, ResultAwaited)]
    (asked,) = waits.waits
    assert (asked.question, asked.found, asked.asked) == ("dear", "", 1)
    # The step whose call waits is under way, and counts.
    assert waits.spent == Spent(1, Usage(10, 4), tool_calls=1, unpriced=True)
    result = await agent.resume(result, approve=[one.call_id for one in result.pending])
    (_, waits) = [one for one in result.events if isinstance(one, ResultAwaited)]
    (asked,) = waits.waits
    assert (asked.question, asked.found, asked.asked) == ("right?", "value of a", 2)
    done = await agent.resume(result, results={result.pending[0].call_id: "right"})
    assert done.finished
    (took,) = [one.spent for one in back(done.events)]
    assert took == Spent(2, Usage(20, 8), tool_calls=1, unpriced=True)


async def test_an_agent_below_that_ended_with_a_call_for_the_application_did_not_finish():
    below = child([("ends", {})], tools=[external_tool("ends", "End here.")])
    (found,) = back((await run([TASK], tools=[below.as_tool()])).events)
    assert (found.content, found.app, found.is_error) == ("{}", {}, False)


async def test_what_an_agent_says_is_cut_where_its_tool_says_so():
    long = "y" * 500
    short = replace(child(long).as_tool(), max_output=100)
    (found,) = back((await run([TASK], tools=[short])).events)
    assert len(found.content) == 100
    stops = child((long, [LOOK]), tools=[look], limits=Limits(steps=1), on_limit="stop")
    (found,) = back((await run([TASK], tools=[replace(stops.as_tool(), max_output=200)])).events)
    assert found.is_error
    assert len(found.content) <= 200


@pytest.mark.parametrize("typed", [False, True])
async def test_what_the_application_is_given_of_a_hand_off_is_the_answer_as_it_was_read(typed):
    to = child('{"n": 1}', output=dict[str, int]) if typed else child("below")
    (found,) = back((await run([("transfer_to_child", {})], tools=[handoff(to)])).events)
    assert (found.app, found.final) == ({"n": 1} if typed else None, True)
    text = child("below").as_tool()
    (found,) = back((await run([TASK], tools=[text])).events)
    assert (found.app, found.final) == (None, False)


async def died(tools, after=ModelReplied, **options):
    """The journal of a process that died once the run below had `after`, and the run's id."""
    whole, left = MemoryJournal(), MemoryJournal()
    result = await Agent(ScriptedModel([[TASK], "done"]), tools=tools, journal=whole, **options).run("go")
    for run_id, last in ((result.run_id, ToolStarted), (f"{result.run_id}.0.call_0_0", after)):
        events = await whole.read(run_id)
        cut = next(i for i, one in enumerate(events) if isinstance(one, last)) + 1
        await left.append(run_id, 0, events[:cut])
    return left, result.run_id


async def below(journal, run_id):
    return await journal.read(f"{run_id}.0.call_0_0")


async def test_a_run_below_is_taken_up_under_the_rules_that_it_was_started_under():
    strict = child([LOOK], "below", tools=[look], approvals=[deny("look")])
    journal, run_id = await died([strict.as_tool()])
    loose = Agent(ScriptedModel(["done"]), tools=[child("below", tools=[look]).as_tool()], journal=journal)
    with pytest.raises(Misuse, match=rf"^run {run_id} was started under stricter rules.*of child: deny look"):
        await loose.resume(run_id)


class Observed:
    """Who is told of runs: with which events before, and which afterwards."""

    def __init__(self):
        self.runs = []

    def observed(self, earlier, redact, conversation=""):
        told = []
        self.runs.append(([type(one).__name__ for one in earlier], told))
        return lambda seq, event: told.append((seq, type(event).__name__))


async def test_who_observes_a_run_below_that_is_taken_up_is_told_what_it_has_done():
    journal, run_id = await died([child([LOOK], "below", tools=[look]).as_tool()])
    observer = Observed()
    below = child("below", tools=[look]).as_tool()
    agent = Agent(ScriptedModel(["done"]), tools=[below], journal=journal, telemetry=observer)
    assert (await agent.resume(run_id)).finished
    _, (earlier, told) = observer.runs
    assert earlier == ["RunStarted", "StepPrepared", "ModelReplied"]
    assert told[0] == (3, "RunResumed")
    # And where its agent is gone, it is ended.
    journal, run_id = await died([child([LOOK], "below", tools=[look]).as_tool()])
    observer = Observed()
    agent = Agent(ScriptedModel(["done"]), journal=journal, telemetry=observer)
    assert (await agent.resume(run_id)).finished
    _, (earlier, told) = observer.runs
    assert earlier == ["RunStarted", "StepPrepared", "ModelReplied"]
    assert [name for _, name in told] == ["RunResumed", "RunFinished"]


@pytest.mark.parametrize(
    ("limits", "given"),
    [
        (None, None),
        # A step that was made above, one for its closing reply; and what the run below has had stays its own.
        (Limits(steps=9, tool_calls=5, seconds=100), (7, 4)),
        (Limits(steps=9, tool_calls=5, seconds=None), (7, 4)),
    ],
)
async def test_a_run_below_that_is_taken_up_has_other_limits_where_those_above_have_changed(limits, given):
    journal, run_id = await died([child([LOOK], "below", tools=[look]).as_tool()])
    agent = Agent(ScriptedModel(["done"]), tools=[child("below", tools=[look]).as_tool()], journal=journal)
    assert (await agent.resume(run_id, limits=limits)).finished
    (resumed,) = [one for one in await below(journal, run_id) if isinstance(one, RunResumed)]
    if limits is None:
        assert resumed.limits is None
    else:
        assert (resumed.limits.steps, resumed.limits.tool_calls) == given
        # What it has taken so far is its own.
        assert (resumed.limits.seconds < 200) == (limits.seconds == 100)


def asks(*turns):
    model = ScriptedModel(list(turns), usage=Usage(10, 4), price=Price(1, 1))
    return Agent(model, name="child", limits=Limits(tokens=50_000)).as_tool()


@pytest.mark.parametrize("case", ["it goes on", "its agent is gone", "it is cancelled"])
async def test_a_model_call_below_that_was_under_way_may_have_been_billed(case):
    gone = case == "its agent is gone"
    journal, run_id = await died([asks("below")], StepPrepared)
    model = ScriptedModel(["done"], price=Price(7, 7))
    agent = Agent(model, tools=[] if gone else [asks("below")], journal=journal)
    result = await (agent.cancel if case == "it is cancelled" else agent.resume)(run_id)
    (resumed,) = [one for one in await below(journal, run_id) if isinstance(one, RunResumed)]
    lost, (found,) = resumed.lost, back(result.events)
    assert lost.usage.output_tokens == 8192
    # What a model costs that nobody has here is not known.
    assert lost.cost == (None if gone else Price(1, 1).of(lost.usage))
    answered = Usage(10, 4) if case == "it goes on" else Usage()
    assert found.spent.usage.total_tokens == (lost.usage + answered).total_tokens
    assert found.spent.cost == (None if gone else Price(1, 1).of(lost.usage + answered))


async def test_a_run_below_whose_agent_is_gone_is_ended_and_what_it_took_is_told():
    journal, run_id = await died([child([LOOK], "below", tools=[look]).as_tool()])
    seen = []
    result = await Agent(ScriptedModel(["done"]), journal=journal).resume(run_id, on_event=seen.append)
    assert {one.agent for one in seen if isinstance(one, SubRunEvent)} == {"child"}
    (*_, ended) = await below(journal, run_id)
    assert ended.stop == stopped("cancelled", "the run that it works for goes on without it")
    took = Spent(1, Usage(10, 4), tool_calls=1, unpriced=True)
    assert back(result.events) == [ToolFinished(0, "call_0_0", cut_off(), True, spent=took)]


async def test_a_run_below_whose_call_another_tool_has_the_name_of_is_ended():
    @tool(effect="idempotent")
    async def child_now(task: str) -> str:
        """Do a task."""
        return "another"

    journal, run_id = await died([child([LOOK], "below", tools=[look]).as_tool()])
    other = replace(child_now, spec=replace(child_now.spec, name="child"))
    result = await Agent(ScriptedModel(["done"]), tools=[other], journal=journal).resume(run_id)
    (*_, ended) = await below(journal, run_id)
    assert ended.stop.reason == "cancelled"
    took = Spent(1, Usage(10, 4), tool_calls=1, unpriced=True)
    assert back(result.events) == [ToolFinished(0, "call_0_0", cut_off(), True, spent=took)]
    # A call below which nothing had begun is made by whatever has the name now.
    journal, run_id = await died([child([LOOK], "below", tools=[look]).as_tool()])
    await journal.delete(f"{run_id}.0.call_0_0")
    result = await Agent(ScriptedModel(["done"]), tools=[other], journal=journal).resume(run_id)
    assert back(result.events) == [ToolFinished(0, "call_0_0", "another")]


async def test_a_run_that_ends_ends_those_below_that_it_had_not_taken_up():
    journal, run_id = await died([child([LOOK], "below", tools=[look]).as_tool()])
    agent = Agent(ScriptedModel(["done"]), tools=[child("below", tools=[look]).as_tool()], journal=journal)
    result = await agent.cancel(run_id)
    (*_, ended) = await below(journal, run_id)
    assert ended.stop.reason == "cancelled"
    took = Spent(1, Usage(10, 4), tool_calls=1, unpriced=True)
    assert back(result.events) == [ToolFinished(0, "call_0_0", cut_off(), True, spent=took)]


@pytest.mark.parametrize("denied", [False, True])
async def test_what_was_found_before_a_call_in_place_was_cut_off_is_kept_with_what_was_taken_below(denied):
    """A hook had an agent called in place of a tool; the process died, and the agent is gone, or is not allowed now."""

    @tool(effect="read")
    async def first(key: str) -> ToolResult:
        """Look something up."""
        return ToolResult("found", {"n": 1})

    def react(call, output):
        return Alternative("child", {"task": "x"}) if call.doing.name == "first" else None

    whole, left = MemoryJournal(), MemoryJournal()
    tools = [first, child([LOOK], "below", tools=[look]).as_tool()]
    agent = Agent(ScriptedModel([[("first", {"key": "a"})], "done"]), tools=tools, journal=whole, on_tool_result=react)
    run_id = (await agent.run("go")).run_id
    events = await whole.read(run_id)
    cut = [i for i, one in enumerate(events) if isinstance(one, ToolStarted)][1] + 1
    await left.append(run_id, 0, events[:cut])
    name = f"{run_id}.0.call_0_0+2"
    await left.append(name, 0, (await whole.read(name))[:3])
    given = {"tools": tools, "approvals": [deny("child")]} if denied else {"tools": [first]}
    agent = Agent(ScriptedModel(["done"]), journal=left, on_tool_result=react, **given)
    result = await agent.resume(run_id)
    noted = Text(
        "child was called in its place and was under way when the run stopped; its outcome is unknown: it may or may "
        "not have taken effect."
    )
    took = Spent(1, Usage(10, 4), tool_calls=1, unpriced=True)
    content = (Text("found"), noted)
    assert back(result.events[cut:]) == [ToolFinished(0, "call_0_0", content, False, {"n": 1}, spent=took)]


class Silent(ScriptedModel):
    """A model that says what a call may cost, and not what one has cost."""

    def cost(self, usage):
        return None if usage == Usage(10, 4) else Decimal(usage.total_tokens) / 1_000_000


async def test_what_a_run_below_may_have_cost_counts_above_though_nobody_said_what_it_did():
    below = Agent(Silent(["below"], usage=Usage(10, 4)), name="child").as_tool()
    top = ScriptedModel([[TASK], "done"], price=Price(0, 0))
    result = await Agent(top, tools=[below], limits=Limits(usd=Decimal(1))).run("go")
    (found,) = back(result.events)
    assert (found.spent.cost, found.spent.unpriced) == (None, True)
    assert Decimal("0.008") < found.spent.presumed < Decimal("0.009")


@pytest.mark.parametrize("gone", [False, True])
async def test_a_run_below_that_was_decided_on_before_a_crash_goes_on_or_is_ended(gone):
    def pays(*turns):
        return child(*turns, tools=[look], approvals=[ask_before("look")]).as_tool()

    whole, left = MemoryJournal(), MemoryJournal()
    agent = Agent(ScriptedModel([[TASK], "done"]), tools=[pays([LOOK], "below")], journal=whole)
    waiting = await agent.run("go")
    run_id = (await agent.resume(waiting.run_id, approve=[one.call_id for one in waiting.pending])).run_id
    for name in (run_id, f"{run_id}.0.call_0_0"):
        events = await whole.read(name)
        cut = next(i for i, one in enumerate(events) if isinstance(one, ApprovalDecided)) + 1
        await left.append(name, 0, events[:cut])
    agent = Agent(ScriptedModel(["done"]), tools=[] if gone else [pays("below")], journal=left)
    result = await agent.resume(run_id)
    (*_, ended) = await below(left, run_id)
    assert ended.stop.reason == ("cancelled" if gone else "answered")
    (found,) = back(result.events)
    assert len([one for one in await below(left, run_id) if isinstance(one, RunResumed)]) == 2
    took = Usage(10, 4) if gone else Usage(20, 8)
    assert found.spent == Spent(1 if gone else 2, took, tool_calls=1, unpriced=True)
    assert found.content == (cut_off() if gone else "below")


@pytest.mark.parametrize("deep", [False, True])
async def test_what_one_run_below_took_before_a_crash_another_does_not_take_again(deep):
    """The first to go on would take all that is left, if what the second has taken were not claimed by then."""

    def tools(first, second):
        busy = Agent(ScriptedModel(first), name="busy", tools=[look], on_limit="stop").as_tool()
        last = Agent(ScriptedModel(second), name="last", tools=[look], on_limit="stop").as_tool()
        if deep:
            last = Agent(ScriptedModel([[("last", {"task": "x"})], "last"]), name="last", tools=[last]).as_tool()
        return [busy, last]

    def looking(request):
        return [("look", {"key": f"{request.run_id} {request.step}"})]

    whole, left = MemoryJournal(), MemoryJournal()
    calls = [("busy", {"task": "x"}), ("last", {"task": "x"})]
    options = {"limits": Limits(steps=14), "on_limit": "stop", "watch_progress": False}
    agent = Agent(
        ScriptedModel([calls, "done"]),
        tools=tools(["busy"], [*[[("look", {"key": str(n)})] for n in range(5)], "last"]),
        journal=whole,
        **options,
    )
    run_id = (await agent.run("go")).run_id
    for line in await whole.list(10):
        events = await whole.read(line.run_id)
        if line.run_id == run_id:
            cut = max(i for i, one in enumerate(events) if isinstance(one, ToolStarted)) + 1
        elif "call_0_0" in line.run_id.removeprefix(f"{run_id}.0.")[:8]:
            cut = 1
        elif deep and line.run_id.count(".") == 2:
            cut = next(i for i, one in enumerate(events) if isinstance(one, ToolStarted)) + 1
        else:
            cut = max(i for i, one in enumerate(events) if isinstance(one, ToolStarted)) + 1
        await left.append(line.run_id, 0, events[:cut])
    agent = Agent(ScriptedModel(["done"]), tools=tools(looking, looking), journal=left, **options)
    result = await agent.resume(run_id)
    assert result.sub_steps + len(result.steps) <= 14
    for line in await left.list(10):
        assert len([one for one in await left.read(line.run_id) if isinstance(one, RunResumed)]) == 1


class Disputed(MemoryJournal):
    """A journal in which another process goes on with a run below, as often as is said, when this one wants to."""

    def __init__(self, times):
        super().__init__()
        self.times = times

    async def append(self, run_id, seq, events):
        if "." in run_id and isinstance(events[0], RunResumed) and self.times:
            self.times -= 1
            await super().append(run_id, seq, [RunResumed(at=events[0].at)])
        await super().append(run_id, seq, events)


@pytest.mark.parametrize("times", [0, 1, 4, 5])
async def test_a_run_below_that_another_process_still_adds_to_is_looked_at_again_and_not_for_ever(times):
    left, run_id = await died([child([LOOK], "below", tools=[look]).as_tool()])
    journal = Disputed(times)
    for line in await left.list(5):
        await journal.append(line.run_id, 0, list(await left.read(line.run_id)))
    agent = Agent(ScriptedModel(["done"]), tools=[child("below", tools=[look]).as_tool()], journal=journal)
    if times == 5:
        with pytest.raises(JournalConflict, match="call_0_0"):
            await agent.resume(run_id)
        return
    result = await agent.resume(run_id)
    (found,) = back(result.events)
    assert (found.content, found.spent.steps) == ("below", 2)
    assert len([one for one in await below(journal, run_id) if isinstance(one, RunResumed)]) == 1 + times
