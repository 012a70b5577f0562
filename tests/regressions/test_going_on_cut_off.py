"""A run that is gone on with, and whose process dies in between."""

from collections.abc import Sequence
from typing import Any

import pytest

from treadle import Agent, Limits, MemoryJournal, tool
from treadle.journal import JournalUnavailable
from treadle.kernel.events import Event
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class FullAfter(MemoryJournal):
    """Takes so many appends, and no more: whatever its process does then is lost, as if it had died there."""

    left: float = float("inf")

    async def append(self, run_id: str, seq: int, events: Sequence[Event], *more: Any, **named: Any) -> None:
        if self.left < 1:
            raise JournalUnavailable("the process is gone")
        await super().append(run_id, seq, events, *more, **named)
        self.left -= 1


@tool(effect="read")
def look(page: int) -> str:
    """Looks at a page."""
    return "empty"


@pytest.mark.parametrize("appends", [0, 1, 2])
async def test_an_answered_run_is_never_asked_on_without_what_was_said_to_it(appends: int) -> None:
    """It was taken up in one append and told in the next: in between it lost the message, and its answer with it."""
    journal, model = FullAfter(), ScriptedModel(lambda request: request.messages[-1].text)
    agent = Agent(model, journal=journal)
    answered = await agent.run("one")
    journal.left = appends
    with pytest.raises(JournalUnavailable):
        await agent.resume(answered.run_id, message="two")
    journal.left = float("inf")

    again = await agent.resume(answered.run_id, takeover=True)
    assert again.stop.reason == "answered"
    assert again.text == ("one" if appends == 0 else "two")
    assert all(request.messages[-1].role == "user" for request in model.requests)


@pytest.mark.parametrize("appends", [0, 1, 2])
async def test_a_run_that_landed_is_never_asked_on_without_being_told_of_its_room(appends: int) -> None:
    journal = FullAfter()
    model = ScriptedModel(
        lambda request: "So far." if request.tool_choice == "none" else [("look", {"page": request.step})]
    )
    agent = Agent(model, tools=[look], limits=Limits(steps=2), journal=journal)
    landed = await agent.run("Look.")
    assert landed.stop.reason == "max_steps"
    journal.left = appends
    with pytest.raises(JournalUnavailable):
        await agent.resume(landed.run_id, limits=Limits(steps=4))
    journal.left = float("inf")

    await agent.resume(landed.run_id, takeover=True)
    assert all(request.messages[-1].role in ("user", "tool") for request in model.requests)
