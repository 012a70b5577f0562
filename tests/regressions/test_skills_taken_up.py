"""What was found wrong with skills of runs that are taken up by an agent without them: one test for each."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tools.skill_folders import skill_in

from treadle import (
    Agent,
    ClearToolResults,
    Conversation,
    KeepFirstAndRecent,
    Limits,
    MemoryJournal,
    ask_before,
    handoff,
    tool,
)
from treadle.journal.redaction import redacted
from treadle.kernel.messages import UserMessage
from treadle.testing import ScriptedModel
from treadle.tools.agent_skills.skill import ACTIVATE

PDF = (ACTIVATE, {"name": "pdf"})
FILL, SHRED = ("fill", {"field": "a"}), ("shred", {"field": "a"})
RULES = [ask_before("fill")]


@tool(effect="read")
def fill(field: str) -> str:
    """Fills a field of a form."""
    return f"filled {field} " + "with many words " * 60


@tool(effect="read")
def shred(field: str) -> str:
    """Shreds a form for ever."""
    return "shredded"


def results(result: Any) -> list[str]:
    return [message.text for message in result.messages if message.role == "tool"]


def offered(model: ScriptedModel) -> list[list[str]]:
    return [[spec.name for spec in request.tools] for request in model.requests]


def agent(script: Any, journal: Any, *skills: Path, **more: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(script), tools=[fill, shred], skills=skills, journal=journal, approvals=RULES, **more)


async def waiting(folder: Path, journal: MemoryJournal, how: str) -> Any:
    """A run that waits for an approval, in which a skill is active that allows `fill` alone."""
    skill_in(folder, "pdf", "allowed-tools: fill\n", "The instructions.")
    said: Any = "Go."
    conversation = Conversation()
    first = agent([[PDF], "Hello.", [FILL]] if how == "before" else [[PDF], [FILL]], journal, folder)
    if how == "typed":
        first = agent([[FILL]], journal, folder)
        said = first.skills.said("/pdf Go.")
    if how == "before":
        await first.run("Hello.", conversation=conversation)
    return await first.run(said, conversation=conversation)


@pytest.mark.parametrize("policy", [None, ClearToolResults(high=100, low=50, keep=0), KeepFirstAndRecent(100, 50)])
@pytest.mark.parametrize("how", ["activated", "typed", "before"])
def test_a_run_taken_up_without_its_skill_stays_narrowed(tmp_path: Path, how: str, policy: Any) -> None:
    async def run() -> None:
        journal = MemoryJournal()
        paused = await waiting(tmp_path, journal, how)
        assert [one.tool for one in paused.pending] == ["fill"]
        again = agent([[SHRED], [SHRED], "Done."], journal, context=[] if policy is None else policy)
        result = await again.resume(paused.run_id, approve=paused.pending)
        told = results(result)[-2:]
        assert all("is not offered while a skill is active that does not allow it" in text for text in told), told

    asyncio.run(run())


def test_a_fork_by_an_agent_without_the_skill_stays_narrowed(tmp_path: Path) -> None:
    async def run() -> None:
        journal = MemoryJournal()
        paused = await waiting(tmp_path, journal, "before")
        fork = await agent([[SHRED], "Done."], journal).fork(paused.run_id, at=0)
        assert "is not offered while a skill is active" in results(fork)[-1]

    asyncio.run(run())


def test_a_run_below_that_is_taken_up_without_its_skill_stays_narrowed(tmp_path: Path) -> None:
    async def run() -> None:
        skill_in(tmp_path, "pdf", "allowed-tools: fill\n")
        journal = MemoryJournal()

        def above(script: Any, inner: Any, *skills: Path) -> Agent[Any, Any]:
            below = Agent(ScriptedModel(inner), name="below", tools=[fill, shred], skills=skills, approvals=RULES)
            return Agent(ScriptedModel(script), tools=[below.as_tool()], journal=journal)

        paused = await above([[("below", {"task": "Go."})]], [[PDF], [FILL]], tmp_path).run("Go.")
        result = await above(["Done."], [[SHRED], "Below."]).resume(paused.run_id, approve=paused.pending)
        assert result.text == "Done."
        events = await journal.read(f"{paused.run_id}.0.call_0_0")
        assert any("is not offered while a skill is active" in str(getattr(one, "content", "")) for one in events)

    asyncio.run(run())


def test_who_was_handed_the_conversation_is_not_narrowed_by_the_other_s_skill_when_it_is_taken_up(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        skill_in(tmp_path, "pdf", "allowed-tools: transfer_to_other\n")
        journal = MemoryJournal()

        def first(script: Any) -> Agent[Any, Any]:
            other = Agent(ScriptedModel(script), name="other", tools=[fill, shred], approvals=RULES)
            opening = ScriptedModel([[PDF], [("transfer_to_other", {})]])
            return Agent(opening, tools=[handoff(other)], skills=[tmp_path], journal=journal)

        paused = await first([[FILL]]).run("Go.")
        result = await first([[SHRED], "Shredded."]).resume(paused.run_id, approve=paused.pending)
        assert result.text == "Shredded."

    asyncio.run(run())


def hidden(text: str) -> str:
    return "(hidden)"


def without_names(text: str) -> str:
    return text.replace("pdf", "***").replace("fill", "***")


def without_tags(text: str) -> str:
    return text.replace("<skill_content", "[skill]")


def from_outside(call: Any, output: Any) -> str:
    return f"From outside:\n{output.content}"


@pytest.mark.parametrize("redact", [hidden, without_names, without_tags])
@pytest.mark.parametrize("how", ["activated", "typed", "before", "rewritten", "corrected"])
@pytest.mark.parametrize("forked", [False, True])
def test_a_run_stays_narrowed_where_its_journal_redacts_what_a_skill_said(
    tmp_path: Path, how: str, redact: Any, forked: bool
) -> None:
    """Where nothing was left of what stands before the instructions, whoever took the run up could call everything."""

    async def run() -> None:
        journal = MemoryJournal(redact=redact)
        if how in ("activated", "typed", "before"):
            paused = await waiting(tmp_path, journal, how)
        else:
            skill_in(tmp_path, "pdf", "allowed-tools: fill\n")
            asked = [ask_before(ACTIVATE)] if how == "corrected" else []
            hook = from_outside if how == "rewritten" else None
            first = Agent(
                ScriptedModel([[PDF], [FILL]]), tools=[fill, shred], skills=[tmp_path], journal=journal,
                approvals=[*RULES, *asked], on_tool_result=hook,
            )  # fmt: skip
            paused = await first.run("Go.")
            if how == "corrected":
                paused = await first.resume(paused.run_id, approve={paused.pending[0].call_id: {"name": "pdf"}})
        kept = list(await journal.read(paused.run_id))
        # What is written again, as into a fork, a conversation or another journal, stays as it is.
        assert list(redacted(paused.run_id, 0, kept, redact, "")) == kept
        model = ScriptedModel([[SHRED], [FILL]])
        again = Agent(
            model, tools=[fill, shred], skills=[tmp_path], journal=journal,
            approvals=[*RULES, ask_before(ACTIVATE)], on_tool_result=from_outside,
        )  # fmt: skip
        if forked:
            result = await again.fork(paused.run_id, at=len(paused.steps) - 1)
        else:
            result = await again.resume(paused.run_id, approve=paused.pending)
        assert offered(model) == [[ACTIVATE, "read_skill_file", "fill"]] * 2
        assert [call.executed for call in result.tool_calls_made if call.name == "shred"] == [False]

    asyncio.run(run())


@pytest.mark.parametrize("handed", [False, True])
def test_a_run_below_stays_narrowed_where_a_journal_redacts_what_a_skill_said(tmp_path: Path, handed: bool) -> None:
    async def run() -> None:
        skill_in(tmp_path, "pdf", "allowed-tools: fill\n")
        journal = MemoryJournal(redact=hidden)

        def above(model: Any) -> Agent[Any, Any]:
            below = Agent(model, name="below", tools=[fill, shred], skills=[tmp_path], approvals=RULES)
            call = ("transfer_to_below", {}) if handed else ("below", {"task": "Go."})
            tool = handoff(below) if handed else below.as_tool()
            return Agent(ScriptedModel(lambda request: [call]), tools=[tool], journal=journal, limits=Limits(steps=9))

        paused = await above(ScriptedModel([[PDF], [FILL]])).run("Go.")
        model = ScriptedModel([[SHRED], [FILL]])
        await above(model).resume(paused.run_id, approve=paused.pending)
        assert offered(model) == [[ACTIVATE, "read_skill_file", "fill"]] * 2

    asyncio.run(run())


def test_instructions_of_which_a_journal_has_left_nothing_allow_nothing() -> None:
    from treadle.tools.agent_skills.active import active_in, narrowed

    said = UserMessage("Go. ***", skill="pdf")
    assert active_in([said]) == {"pdf": ()}
    assert narrowed([said]) == {ACTIVATE, "read_skill_file"}
