"""Replies that were paid for and came to no journal.

- a reply that was to be written together with the next step was counted nowhere, where the journal could not be
  written -> test_a_reply_is_counted_that_a_journal_failed_to_take_together_with_the_next_step
- likewise where the process died after less had been set aside for that step than for the reply
  -> test_a_reply_is_counted_where_the_process_died_as_the_next_step_was_paid
"""

from pathlib import Path

import pytest
from play import within

from treadle import Agent, Budget, MemoryJournal, ModelSettings, PrepareStep, Run, StepSettings, Text, Usage
from treadle.journal import JournalUnavailable
from treadle.kernel.events import StepPrepared
from treadle.models import AssistantMessage, Model, ModelReply
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

PAID = 500
"""Tokens of each reply."""


@pytest.fixture(params=["memory", "file"])
def budget(request: pytest.FixtureRequest, tmp_path: Path) -> Budget:
    return Budget(tokens=100_000, path=tmp_path / "spend.db" if request.param == "file" else None)


class FullAtSecondStep(MemoryJournal):
    """Cannot be written when it is given the second step, while `full`."""

    full = True

    async def append(self, run_id, seq, events):
        if self.full and any(isinstance(event, StepPrepared) and event.step == 1 for event in events):
            raise JournalUnavailable("the disk is full")
        await super().append(run_id, seq, events)


def number(budget: Budget, journal: MemoryJournal) -> tuple[Agent, ScriptedModel]:
    """An agent that answers with a number at its second attempt."""
    model = ScriptedModel(["no number", "3", "3"], usage=Usage(PAID - 10, 10))
    return Agent(model, output=int, output_mode="prompted", budget=budget, journal=journal), model


async def test_a_reply_is_counted_that_a_journal_failed_to_take_together_with_the_next_step(budget: Budget) -> None:
    journal = FullAtSecondStep()
    agent, model = number(budget, journal)
    with pytest.raises(JournalUnavailable):
        await within(agent.run("Which?"))
    assert (len(model.requests), budget.spent().held_tokens) == (1, 0)

    journal.full = False
    (line,) = await journal.list()
    result = await within(agent.resume(line.run_id))

    assert result.usage.total_tokens >= PAID * len(model.requests)
    assert (budget.spent().tokens, budget.spent().held_tokens) == (result.usage.total_tokens, 0)


async def test_a_reply_is_counted_where_the_process_died_as_the_next_step_was_paid(budget: Budget) -> None:
    journal = MemoryJournal()
    breaks = ModelReply(AssistantMessage((Text("One moment."),)), Usage(PAID - 10, 10), "pause")
    agent = Agent(ScriptedModel([breaks]), budget=budget, journal=journal)
    run = agent.start("Which?")
    await run.commit()
    await asks(run, agent.model, longest=5_000)
    command = run.next()
    assert isinstance(command, PrepareStep)
    run.feed(run.prepare(command, StepSettings(settings=ModelSettings(max_tokens=10))))
    # It dies here: nothing of the reply was written.

    again = ScriptedModel(["It is 3."], usage=Usage(PAID - 10, 10))
    result = await within(Agent(again, budget=budget, journal=journal).resume(run.run_id))

    assert result.usage.total_tokens >= 2 * PAID
    assert (budget.spent().tokens, budget.spent().held_tokens) == (result.usage.total_tokens, 0)


async def asks(run: Run, model: Model, longest: int) -> None:
    """Makes a step of `run` by hand, and the call of `model` for it, of a reply that may be that long."""
    command = run.next()
    assert isinstance(command, PrepareStep)
    run.feed(run.prepare(command, StepSettings(settings=ModelSettings(max_tokens=longest))))
    await run.commit()
    async for event in model.stream(run.request()):
        if isinstance(event, ModelReply):
            run.feed(event)
