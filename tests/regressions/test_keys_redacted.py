"""Calls that a reaction or a person makes in the place of others keep their own keys in a journal that redacts.

- redacted, the arguments of both are alike, so that who took the run up made the second under the key of the first: a
  service that knows the key does nothing, and gives what came of the first
  -> test_a_call_in_the_place_of_another_that_is_written_alike_keeps_its_key
- whoever watched the run, and its result, had the event without what the journal has of it
  -> test_what_is_shown_of_such_a_call_is_what_is_written
- a person who changed such a call was said to have changed the model's own
  -> test_what_a_person_changes_of_such_a_call_is_not_told_as_the_models
- so it was where the run was imported from a journal that does not redact -> the same, "imported"
"""

import re
from io import BytesIO

import pytest
from play import within

from treadle import Agent, Alternative, MemoryJournal, Retry, ToolContext, ask_before, tool
from treadle.journal import export_runs, import_runs
from treadle.kernel.events import Happened, ToolReacted, ToolStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


def hidden():
    return MemoryJournal(redact=lambda text: re.sub(r"SECRET\d", "[hidden]", text))


async def imported(run_id, events):
    journal, into, file = MemoryJournal(), hidden(), BytesIO()
    await journal.append(run_id, 0, events)
    async for line in export_runs(journal):
        file.write(line)
    file.seek(0)
    await import_runs(into, file)
    return into


@pytest.mark.parametrize("crashed", ["", "here", "imported"])
@pytest.mark.parametrize("way", ["reaction", "asked about", "person"])
async def test_a_call_in_the_place_of_another_that_is_written_alike_keeps_its_key(way, crashed):
    keys = []

    @tool(effect="idempotent")
    def put(key: str, context: ToolContext) -> str:
        """Puts it there."""
        keys.append(context.idempotency_key)
        return "put"

    def reaction(call, output):
        if call.made == 1:
            return Retry() if way == "person" else Alternative("put", {"key": "SECRET2"})
        return None

    def agent(journal):
        return Agent(
            ScriptedModel(lambda request: "done" if request.step else [("put", {"key": "SECRET1"})]),
            tools=[put],
            on_tool_result=reaction,
            approvals=[] if way == "reaction" else [ask_before("put", repeats=1 if way == "person" else 0)],
            journal=journal,
        )

    journal = MemoryJournal() if crashed == "imported" else hidden()
    result = await within(agent(journal).run("go"))
    while result.pending:
        given = {result.pending[0].call_id: {"key": "SECRET3"}} if way == "person" else result.pending
        result = await within(agent(journal).resume(result.run_id, approve=given))
    first, second = keys
    assert second == f"{first}+2"

    if crashed:
        events = await journal.read(result.run_id)
        begun = [i for i, event in enumerate(events) if isinstance(event, ToolStarted)][-1] + 1
        left = hidden()
        if crashed == "imported":
            left = await imported(result.run_id, events[:begun])
        else:
            await left.append(result.run_id, 0, events[:begun])
        result = await within(agent(left).resume(result.run_id))
        while result.pending:
            result = await within(agent(left).resume(result.run_id, approve=result.pending))
        assert keys[2:] == [second]


async def test_what_is_shown_of_such_a_call_is_what_is_written():
    @tool(effect="idempotent")
    def put(n: int) -> str:
        """Puts it there."""
        return "put"

    shown, journal = [], hidden()
    agent = Agent(
        ScriptedModel(lambda request: "done" if request.step else [("put", {"n": 1})]),
        tools=[put],
        on_tool_result=lambda call, output: Alternative("put", {"n": 2}) if call.made == 1 else None,
        journal=journal,
    )
    result = await within(agent.run("go", on_event=shown.append))
    stored = await journal.read(result.run_id)
    assert [event.other for event in stored if isinstance(event, ToolReacted)] == [True, None]
    assert [event for event in shown if isinstance(event, Happened)] == stored == list(result.events)


async def test_what_a_person_changes_of_such_a_call_is_not_told_as_the_models():
    @tool(effect="idempotent")
    def put(key: str) -> str:
        """Puts it there."""
        return f"put {key}"

    journal = hidden()
    agent = Agent(
        ScriptedModel(lambda request: "done" if request.step else [("put", {"key": "SECRET1"})]),
        tools=[put],
        on_tool_result=lambda call, output: Alternative("put", {"key": "SECRET2"}) if call.made == 1 else None,
        approvals=[ask_before("put", when=lambda arguments: "SECRET2" in arguments["key"])],
        journal=journal,
    )
    result = await within(agent.run("go"))
    (pending,) = result.pending
    result = await within(agent.resume(result.run_id, approve={pending.call_id: {"key": "mine"}}))
    assert [message.text for message in result.messages if message.role == "tool"] == ["put mine"]
