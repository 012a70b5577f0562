"""`ask_user`: a run pauses for the person's answer, which may come to another process."""

import json
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, tool
from treadle.journal import SqliteJournal
from treadle.kernel.errors import Misuse
from treadle.models.port import ModelRequest
from treadle.testing import ScriptedModel
from treadle.tools import InvalidArguments, Tool
from treadle.tools.builtin import ask_user

pytestmark = pytest.mark.anyio

QUESTION = {"question": "Which one?", "choices": ["the red", "the blue"]}


@tool(effect="read")
def look(what: str) -> str:
    """Looks at something."""
    return f"seen {what}"


def answers(request: ModelRequest) -> Any:
    """Asks, and says what it was told."""
    told = [message.text for message in request.messages if message.role == "tool"]
    return f"told: {' / '.join(told)}" if told else [("ask_user", QUESTION), ("look", {"what": "both"})]


def agent(journal: SqliteJournal, tools: tuple[Tool, ...] = (ask_user, look)) -> Agent:
    return Agent(ScriptedModel(answers), tools=tools, journal=journal)


async def test_the_answer_comes_to_another_process(tmp_path: Path) -> None:
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        asked = await agent(journal).run("Buy it.")
    assert asked.stop.reason == "waiting"
    [pending] = asked.pending
    assert (pending.tool, pending.kind, pending.arguments) == ("ask_user", "result", QUESTION)
    # Nothing of the first agent is left but the file and the ids.
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        result = await agent(journal).resume(asked.run_id, results={pending.call_id: "the blue, please"})
    assert result.finished
    assert result.text == "told: the blue, please / seen both"


async def test_it_waits_on_until_the_answer_comes(tmp_path: Path) -> None:
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        asked = await agent(journal).run("Buy it.")
        still = await agent(journal).resume(asked.run_id)
        assert (still.stop.reason, still.pending) == ("waiting", asked.pending)
        [pending] = still.pending
        with pytest.raises(Misuse, match="does not wait"):
            await agent(journal).resume(asked.run_id, results={"call_9": "no such call"})
        with pytest.raises(Misuse, match=r"waits for a result, and not to be decided on: .* results=\{'"):
            await agent(journal).resume(asked.run_id, approve=[pending.call_id])
        result = await agent(journal).resume(asked.run_id, results={pending.call_id: ""})
        assert result.text == "told:  / seen both"
        # An answer is given once: the run has gone on with the first, and says so.
        with pytest.raises(Misuse, match="has finished: no call of it waits"):
            await agent(journal).resume(asked.run_id, results={pending.call_id: "another"})
        again = await agent(journal).resume(asked.run_id)
        assert again.text == result.text


async def test_several_questions_are_answered_one_by_one(tmp_path: Path) -> None:
    async def asks(request: ModelRequest) -> Any:
        told = [message.text for message in request.messages if message.role == "tool"]
        return ", ".join(told) if told else [("ask_user", {"question": "Where?"}), ("ask_user", {"question": "When?"})]

    async with SqliteJournal(tmp_path / "runs.db") as journal:
        asked = await Agent(ScriptedModel(asks), tools=[ask_user], journal=journal).run("Plan it.")
        where, when = asked.pending
        half = await Agent(ScriptedModel(asks), tools=[ask_user], journal=journal).resume(
            asked.run_id, results={when.call_id: "in May"}
        )
        assert [one.call_id for one in half.pending] == [where.call_id]
        result = await Agent(ScriptedModel(asks), tools=[ask_user], journal=journal).resume(
            asked.run_id, results={where.call_id: "Bonn"}
        )
    assert result.text == "Bonn, in May"


async def test_a_question_that_is_none_goes_back_to_the_model() -> None:
    script = ScriptedModel([[("ask_user", {"choices": ["a"]})], "I see."])
    result = await Agent(script, tools=[ask_user]).run("Buy it.")
    assert result.finished
    [call] = result.tool_calls_made
    assert call.is_error
    assert call.result is not None
    assert json.loads(call.result.text)["argument"] == "question"


@pytest.mark.parametrize(
    "arguments", ["{}", '{"question": ""}', '{"question": "a", "choices": [1]}', '{"question": 1}']
)
def test_its_arguments_are_checked(arguments: str) -> None:
    with pytest.raises(InvalidArguments):
        ask_user.validate(arguments)
