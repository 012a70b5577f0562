"""agent.replay: an old run comes out as recorded, and a changed agent is told where it does not."""

import asyncio

import pytest

from treadle import (
    Agent,
    Limits,
    MemoryJournal,
    Misuse,
    ReplayDiffers,
    RunContext,
    StepSettings,
    ask_before,
    replay,
    step_count,
    tool,
)
from treadle.context.policies import Edit
from treadle.journal import UnknownRun
from treadle.testing import ScriptedModel

done: list[str] = []


@tool(effect="read")
def look(what: str) -> str:
    """Looks."""
    done.append(what)
    return f"saw {what}"


@tool
def buy(what: str) -> str:
    """Buys."""
    done.append(what)
    return f"bought {what}"


class Forgets:
    """Leaves the first exchange out as soon as there is a second."""

    def edit(self, messages, tokens, facts):
        return Edit([messages[0], *messages[4:]], tokens, tokens - 1) if len(messages) > 4 else None


TURNS = ([("look", {"what": "tea"}), ("buy", {"what": "tea"})], [("look", {"what": "cups"})], "All done.")


def agent(journal, *turns, tools=(look, buy), **more):
    return Agent(ScriptedModel(list(turns or TURNS)), tools=list(tools), journal=journal, **more)


def recorded(change=None, **more):
    """A run of the agent, and what its replay by an agent with `change` shows."""

    async def main():
        journal = MemoryJournal()
        result = await agent(journal, **more).run("Buy tea.")
        done.clear()
        given = more | (change or {})
        found = await agent(journal, "never", **given).replay(result.run_id)
        assert done == []
        return found

    return asyncio.run(main())


def test_the_same_agent_comes_out_the_same_and_calls_nothing():
    found = recorded()
    assert found.same
    assert found.changed == ()
    assert (found.events, found.decided) == (14, 7)
    assert found.require() is found
    assert "as recorded (14 events, 7 decided anew by agent agent)" in str(found)


@pytest.mark.parametrize(
    ("change", "event", "kinds", "field"),
    [
        ({"limits": Limits(steps=2)}, 7, ("StepPrepared", "StepPrepared"), "landing"),
        ({"limits": Limits(tool_calls=1)}, 4, ("ToolStarted", None), None),
        ({"approvals": [ask_before("buy")]}, 4, ("ToolStarted", "ApprovalRequested"), None),
        ({"stop_when": step_count(2)}, 11, ("StepPrepared", "RunFinished"), None),
        ({"tools": [look]}, 4, ("ToolStarted", "ToolFinished"), None),
        (
            {"prepare_step": lambda context: StepSettings(tools=["look"]) if context.step_number else None},
            7,
            ("StepPrepared", "StepPrepared"),
            "tools",
        ),
        ({"context": Forgets()}, 11, ("StepPrepared", "ContextEdited"), None),
        ({"output": int}, 13, ("RunFinished", "NudgeGiven"), None),
        ({"tool_choice": "look"}, 4, ("ToolStarted", "ToolFinished"), None),
    ],
)
def test_a_changed_agent_is_told_the_first_event_that_differs(change, event, kinds, field):
    found = recorded(change)
    assert not found.same
    difference = found.difference
    names = tuple(None if one is None else type(one).__name__ for one in (difference.recorded, difference.now))
    assert (difference.event, names) == (event, kinds)
    assert field is None or field in {change.field.partition(".")[0] for change in difference.changes}
    with pytest.raises(ReplayDiffers, match=f"differs first at event {event}"):
        found.require()


def test_other_instructions_are_no_difference_by_themselves():
    found = recorded({"instructions": "Be brief."}, instructions="Be kind.")
    assert found.same
    assert [str(change) for change in found.changed] == ["instructions: recorded 'Be kind.', now 'Be brief.'"]


def test_instructions_may_be_a_function_of_the_dependencies():
    async def main():
        journal = MemoryJournal()

        async def told(context: RunContext) -> str:
            return f"You work for {context.deps}."

        result = await agent(journal, instructions=told).run("Buy tea.", deps="Ann")
        by = agent(journal, instructions=told)
        assert not (await by.replay(result.run_id, deps="Ann")).changed
        assert [change.field for change in (await by.replay(result.run_id, deps="Bob")).changed] == ["instructions"]

    asyncio.run(main())


def test_a_function_that_raises_is_told():
    def broken(context):
        raise KeyError("city")

    found = recorded({"prepare_step": broken})
    assert "KeyError was raised in deciding it anew" in str(found.difference)


def test_limits_of_the_run_itself():
    async def main():
        journal = MemoryJournal()
        result = await agent(journal).run("Buy tea.", limits=Limits(steps=2))
        assert result.stop.reason == "max_steps"
        found = await agent(journal).replay(result.run_id)
        assert not found.same
        assert [change.field for change in found.changed] == ["limits.steps"]
        assert (await agent(journal).replay(result.run_id, recorded_limits=True)).same
        assert (await agent(journal).replay(result.run_id, limits=Limits(steps=2))).same

    asyncio.run(main())


def test_a_run_that_its_time_limit_ended_cannot_tell_of_a_longer_one():
    async def main():
        journal = MemoryJournal()

        @tool(effect="read")
        async def waits() -> str:
            """Waits."""
            await asyncio.sleep(60)
            return "done"

        given = {"tools": [waits], "journal": journal}
        turns = [[("waits", {})], "never"]
        result = await Agent(ScriptedModel(turns), limits=Limits(seconds=0.05), **given).run("go")
        assert result.stop.reason == "deadline"
        assert (await Agent(ScriptedModel([]), limits=Limits(seconds=0.05), **given).replay(result.run_id)).same
        longer = await Agent(ScriptedModel([]), limits=Limits(seconds=5), **given).replay(result.run_id)
        assert "now has a time limit of 5 s" in str(longer.difference)

    asyncio.run(main())


def test_runs_below_are_replayed_with_it():
    async def main():
        journal = MemoryJournal()

        def boss(**more):
            low = Agent(ScriptedModel([[("look", {"what": "x"})], "low"]), name="low", tools=[look], **more)
            turns = [[("low", {"task": "look"})], "done"]
            return Agent(ScriptedModel(turns), name="boss", tools=[low.as_tool()], journal=journal)

        result = await boss().run("go")
        found = await boss().replay(result.run_id)
        assert found.same
        assert [(one.agent, one.same) for one in found.below] == [("low", True)]
        assert "and 1 run below it" in str(found)
        changed = await boss(limits=Limits(steps=1)).replay(result.run_id)
        assert changed.same
        strict = await boss(approvals=[ask_before("look")]).replay(result.run_id)
        assert (strict.difference, strict.same) == (None, False)
        (difference,) = strict.differences
        assert difference.run_id.startswith(f"{result.run_id}.")
        with pytest.raises(Misuse, match="is replayed with it"):
            await boss().replay(difference.run_id)
        assert (await replay(journal, difference.run_id)).same

    asyncio.run(main())


def test_a_result_without_a_journal_is_replayed_too():
    result = agent(None).run_sync("Buy tea.")
    assert asyncio.run(agent(None).replay(result)).same
    with pytest.raises(Misuse, match="keeps no journal"):
        asyncio.run(agent(None).replay("nobody"))


def test_a_run_that_waited_and_was_decided_on():
    async def main():
        journal = MemoryJournal()
        rules = [ask_before("buy")]
        waiting = await agent(journal, approvals=rules).run("Buy tea.")
        assert (await agent(journal, approvals=rules).replay(waiting.run_id)).same
        call = waiting.pending[0].call_id
        result = await agent(journal, *TURNS[1:], approvals=rules).resume(waiting, approve=[call])
        assert (await agent(journal, approvals=rules).replay(result.run_id)).same
        assert not (await agent(journal).replay(result.run_id)).same

    asyncio.run(main())


def test_a_fork_is_replayed_from_its_beginning():
    async def main():
        journal = MemoryJournal()
        first = await agent(journal).run("Buy tea.")
        fork = await agent(journal, "No more.").fork(
            first.run_id, at=1, tool_results={"call_0_0": "sold out"}, message="Stop."
        )
        assert (await agent(journal).replay(fork.run_id)).same
        assert (await replay(journal, fork.run_id)).same

    asyncio.run(main())


def test_the_journal_alone_shows_that_the_rules_of_the_loop_were_kept():
    async def main():
        journal = MemoryJournal()
        result = await agent(journal).run("Buy tea.", limits=Limits(steps=2))
        found = await replay(journal, result.run_id)
        assert (found.same, found.agent) == (True, None)
        events = await journal.read(result.run_id)
        import msgspec

        first = msgspec.structs.replace(events[0], run_id="more", limits=Limits(steps=9))
        await journal.append("more", 0, [first, *events[1:]])
        found = await replay(journal, "more")
        assert not found.same
        assert found.difference.event == 7
        with pytest.raises(UnknownRun):
            await replay(journal, "nobody")

    asyncio.run(main())


def test_what_differs_is_plain_data():
    found = recorded({"limits": Limits(steps=2)}).to_dict()
    assert found["same"] is False
    assert found["difference"]["event"] == 7
    assert {change["field"] for change in found["changed"]} == {"limits.steps"}
