"""A conversation that a run gave back with more in it than its journal had kept, as that had failed.

- it was refused where the run was taken up, as if something had been said in it meanwhile
"""

from collections.abc import Sequence
from typing import Any

import pytest

from treadle import Agent, Conversation, MemoryJournal, Misuse, tool
from treadle.journal import JournalUnavailable
from treadle.kernel.events import Event
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class FailsOnce(MemoryJournal):
    """Fails at one append."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    async def append(self, run_id: str, seq: int, events: Sequence[Event], *more: Any, **named: Any) -> None:
        self.left -= 1
        if not self.left:
            raise JournalUnavailable("the disk was full for a moment")
        await super().append(run_id, seq, events, *more, **named)


@tool(effect="idempotent")
async def note(text: str) -> str:
    """Keeps a note."""
    return f"kept {text}"


def noting(request):
    turns = len([message for message in request.messages if message.role == "assistant"])
    return [("note", {"text": str(turns)})] if turns < 3 else "All is noted."


async def left_at(append: int) -> tuple[Agent, Conversation, str]:
    journal, talk = FailsOnce(append), Conversation()
    agent = Agent(ScriptedModel(noting), tools=[note], journal=journal)
    with pytest.raises(JournalUnavailable):
        await agent.run("Note it.", conversation=talk)
    (line,) = await journal.list()
    return agent, talk, line.run_id


@pytest.mark.parametrize("append", range(2, 9))
async def test_the_run_goes_on_in_the_conversation_that_it_left(append: int) -> None:
    agent, talk, run_id = await left_at(append)
    result = await agent.resume(run_id, conversation=talk)
    assert result.text == "All is noted."
    assert [message.role for message in talk.messages] == ["user", *["assistant", "tool"] * 3, "assistant"]
    assert list(talk.messages) == [message for message in result.messages if message.role != "system"]


async def test_what_was_said_there_meanwhile_is_not_lost() -> None:
    agent, talk, run_id = await left_at(4)
    talk.add_user("One thing more.")
    before = talk.messages
    with pytest.raises(Misuse, match="more was said in this conversation than the run has"):
        await agent.resume(run_id, conversation=talk)
    assert talk.messages == before


async def test_a_run_does_not_take_the_place_of_another_that_left_it() -> None:
    agent, talk, run_id = await left_at(4)
    await Agent(ScriptedModel(["Hello."])).run("Hello?", conversation=talk)
    with pytest.raises(Misuse, match="more was said in this conversation than the run has"):
        await agent.resume(run_id, conversation=talk)
