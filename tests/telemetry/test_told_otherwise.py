"""What was found wrong with spans: of runs whose journal fails, of forks, with processors: one test for each."""

from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from telemetry.test_spans import LOOK, ids, look, said, sent

from treadle import Agent, Conversation, MemoryJournal, tool
from treadle.journal import JournalUnavailable
from treadle.kernel.events import RunFinished, RunPaused
from treadle.telemetry.attributes import of_model
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Full(MemoryJournal):
    """A journal that takes no end until there is room again."""

    full = True

    async def append(self, run_id: str, seq: int, events: Any, *held: Any) -> None:
        if self.full and any(isinstance(event, (RunFinished, RunPaused)) for event in events):
            raise JournalUnavailable("the disk is full", where="here")
        await super().append(run_id, seq, events, *held)


@tool(needs_approval=True)
async def pay() -> str:
    """Pays an amount of money."""
    return "paid"


@tool
async def spend() -> str:
    """Spends an amount of money."""
    return "spent"


@pytest.mark.parametrize("reply", ["Done.", [("pay", {})]], ids=["ends", "pauses"])
async def test_an_end_that_the_journal_did_not_take_is_no_end_of_a_span(received: Any, reply: Any) -> None:
    journal, one = Full(), received()

    def agent(*script: Any) -> Agent[Any, Any]:
        return Agent(ScriptedModel(list(script)), tools=[look, pay], journal=journal, telemetry=one.telemetry)

    with pytest.raises(JournalUnavailable):
        await agent([LOOK], reply).run("Go.")
    assert [span.name for span in one.spans if span.name.startswith("invoke_agent")] == []
    journal.full = False
    (run_id,) = [info.run_id for info in await journal.list()]
    result = await agent(reply, "Done.").resume(run_id)
    while result.pending:
        result = await agent("Done.").resume(run_id, approve=result.pending)
    legs = [span for span in one.spans if span.name.startswith("invoke_agent")]
    assert [span.attributes.get("error.type", "") for span in legs][:2] == ["interrupted", ""]
    assert len({ids(span) for span in legs}) == len(legs)
    again = {ids(span): said(span) for span in await sent(journal)}
    assert all(again[ids(span)] == said(span) for span in legs)


async def test_without_a_journal_an_end_is_told_as_it_comes(received: Any) -> None:
    one = received()
    await Agent(ScriptedModel(["Done."]), telemetry=one.telemetry).run("Go.")
    assert [span.name for span in one.spans] == ["chat scripted", "invoke_agent agent"]


async def test_a_fork_with_another_result_tells_nothing_of_what_happened_in_the_other_run(received: Any) -> None:
    journal, one = MemoryJournal(), received()
    script = [[LOOK, LOOK], "Done.", "Done otherwise."]
    agent = Agent(ScriptedModel(script), tools=[look], journal=journal, telemetry=one.telemetry)
    result = await agent.run("Go.")
    fork = await agent.fork(result.run_id, at=1, tool_results={"call_0_0": "nothing"})
    assert [type(event).__name__ for event in fork.events].count("ToolFinished") == 2
    again = await sent(journal, [fork.run_id])
    assert [span.name for span in again] == ["chat scripted", "invoke_agent agent"]
    live = {ids(span): said(span) for span in one.spans}
    assert {ids(span): said(span) for span in await sent(journal)} == live


class Leaving(SpanProcessor):
    """A processor that raises what would end a program, of the first span that it is told of."""

    def __init__(self, error: BaseException) -> None:
        self.errors = [error]

    def on_end(self, span: ReadableSpan) -> None:
        if self.errors:
            raise self.errors.pop()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=lambda error: type(error).__name__)
async def test_a_processor_that_would_leave_ends_neither_the_run_nor_what_is_told(received: Any, error: Any) -> None:
    one = received(Leaving(error))
    result = await Agent(ScriptedModel(["Done."]), telemetry=one.telemetry).run("Go.")
    assert result.text == "Done."
    assert [span.name for span in one.spans] == ["invoke_agent agent"]


@pytest.mark.parametrize("scheme", ["http", "HTTPS"])
def test_the_address_of_a_model_is_not_told_however_it_is_written(scheme: str) -> None:
    assert of_model(f"openai-chat:m@{scheme}://inside.example")["gen_ai.request.model"] == "m"


async def test_a_fork_amid_what_another_fork_tells_once_more_is_told_as_it_was_live(received: Any) -> None:
    journal, one = MemoryJournal(), received()
    model = ScriptedModel(lambda asked: "Done." if asked.step else [LOOK, ("spend", {})])
    agent = Agent(model, tools=[look, spend], journal=journal, telemetry=one.telemetry)
    first = await agent.run("Go.")
    fork = await agent.fork(first.run_id, at=1, tool_results={"call_0_0": "nothing"})
    second = await agent.fork(fork.run_id, at=1, tool_results={"call_0_1": "nothing"})
    assert [type(event).__name__ for event in await journal.read(second.run_id)].count("RunForked") == 2
    assert [span.name for span in await sent(journal, [second.run_id])] == ["chat scripted", "invoke_agent agent"]
    live = {ids(span): said(span) for span in one.spans}
    assert {ids(span): said(span) for span in await sent(journal)} == live


async def test_what_works_for_a_run_is_sent_with_its_conversation_in_whatever_order_it_is_named(received: Any) -> None:
    journal, one = MemoryJournal(), received()
    below = Agent(ScriptedModel(["Warm."]), name="below").as_tool(description="Somebody who knows the weather well.")
    script = ScriptedModel([[("below", {"task": "Is it warm?"})], "It is."])
    agent = Agent(script, tools=[below], journal=journal, telemetry=one.telemetry)
    await agent.run("Is it warm?", conversation=Conversation())
    told = {ids(span): said(span) for span in one.spans}
    runs = [line.run_id for line in await journal.list()]
    assert len(runs) == 2
    for order in (runs, runs[::-1], [max(runs, key=len)]):
        for span in await sent(journal, order):
            assert said(span) == told[ids(span)]
