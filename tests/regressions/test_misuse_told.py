"""What is given wrongly is refused in words that name it, and not by an error from within."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from treadle import Agent, Limits, MemoryJournal, Misuse, RunResult, StepSettings, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda result: pickle.loads(pickle.dumps(result))])
async def test_a_copy_of_a_result_is_refused_as_one(copied: Callable[[RunResult], RunResult]) -> None:
    """It was said that the run is kept in a journal, of which there is none."""
    paid: list[int] = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    agent = Agent(ScriptedModel([[("pay", {"amount": 5})], "Done."]), tools=[pay])
    waiting = await agent.run("Pay 5.")
    with pytest.raises(Misuse, match=r"or this result is a copy of the run's own: .* resume the very result"):
        await agent.resume(copied(waiting), approve=waiting.pending)
    assert paid == []
    assert (await agent.resume(waiting, approve=waiting.pending)).finished
    assert paid == [5]


@pytest.mark.parametrize("limits", [Limits(), Limits(tokens=10_000)])
@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (StepSettings(instructions=5), "StepSettings takes instructions as a text; it was given 5"),  # type: ignore[arg-type]
        (StepSettings(messages=5), "StepSettings takes messages as a list out of context.messages; it was given 5"),  # type: ignore[arg-type]
    ],
)
async def test_what_prepare_step_chooses_wrongly_is_named(chosen: StepSettings, words: str, limits: Limits) -> None:
    agent = Agent(ScriptedModel(["Good day."]), prepare_step=lambda context: chosen, limits=limits)
    with pytest.raises(Misuse, match=words):
        await agent.run("Hello.")


async def test_edited_arguments_that_hold_themselves_are_refused_and_the_call_still_waits() -> None:
    noted: list[Any] = []

    @tool(needs_approval=True)
    async def note(what: Any) -> str:
        """Notes."""
        noted.append(what)
        return "noted"

    ring: list[Any] = []
    ring.append(ring)
    journal = MemoryJournal()
    agent = Agent(ScriptedModel([[("note", {"what": 1})], "Done."]), tools=[note], journal=journal)
    waiting = await agent.run("Note it.")
    with pytest.raises(Misuse, match="hold themselves, or are nested too deep"):
        await agent.resume(waiting.run_id, approve={waiting.pending[0].key: {"what": ring}})
    result = await agent.resume(waiting.run_id, approve=waiting.pending)
    assert (result.text, noted) == ("Done.", [1])
