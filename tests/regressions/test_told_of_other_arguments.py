"""A person allows a call with other arguments: the model, whose own call stands in the conversation, is told so.

A tool that says "ok" had it report what was never done.
"""

from pathlib import Path
from typing import Any

import pytest

from treadle import (
    Agent,
    Alternative,
    Conversation,
    KeepFirstAndRecent,
    MemoryJournal,
    Retry,
    RunResult,
    SqliteJournal,
    ToolError,
    ask_before,
    deny,
    external_tool,
    handoff,
    tool,
)
from treadle.kernel.events import ApprovalDecided
from treadle.kernel.messages import Text, ToolMessage, UserMessage
from treadle.kernel.reply import CORRECTED
from treadle.models import TextTools
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

TOLD = 'A person put these arguments in place of yours: {"amount":50}'
PAID: list[int] = []


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pays."""
    PAID.append(amount)
    return "ok"


def paying(*then: Any, **options: Any) -> Agent[Any]:
    PAID.clear()
    return Agent(ScriptedModel([[("pay", {"amount": 500})], *(then or ("done",))]), **{"tools": [pay], **options})


async def allowed_with(agent: Agent[Any], amount: int = 50) -> RunResult[Any]:
    waiting = await agent.run("Pay.")
    return await agent.resume(waiting, approve={waiting.pending[0].call_id: {"amount": amount}})


def told(result: RunResult[Any]) -> list[str]:
    return [message.text for message in result.messages if isinstance(message, ToolMessage)]


async def test_the_model_is_told_before_the_result() -> None:
    agent = paying()
    result = await allowed_with(agent)
    assert PAID == [50]
    (said,) = [one for one in agent.model.requests[-1].messages if isinstance(one, ToolMessage)]
    assert said.content == (Text(TOLD), Text("ok"))
    # What the tool gave is what the application is given.
    (call,) = result.tool_calls_made
    assert call.result is not None
    assert call.result.content == "ok"
    assert call.corrected


async def test_the_same_arguments_are_not_told_of() -> None:
    result = await allowed_with(paying(), 500)
    assert told(result) == ["ok"]
    assert not result.tool_calls_made[0].corrected


async def test_what_the_application_changed_is_its_own_affair() -> None:
    agent = paying(on_tool_call=lambda call: {"amount": 20})
    waiting = await agent.run("Pay.")
    result = await agent.resume(waiting, approve=[waiting.pending[0].key])
    assert PAID == [20]
    assert told(result) == ["ok"]


async def test_a_result_that_the_application_puts_in_its_place_leaves_it_said() -> None:
    result = await allowed_with(paying(on_tool_result=lambda call, result: "fine"))
    assert told(result) == [f"{TOLD}\nfine"]


async def test_a_rule_that_denies_the_other_arguments() -> None:
    careful = deny("pay", when=lambda arguments: arguments["amount"] == 50, reason="not fifty")
    result = await allowed_with(paying(approvals=[careful]))
    assert PAID == []
    (said,) = told(result)
    assert said.startswith(TOLD)
    assert "not fifty" in said


async def test_it_is_told_by_another_process_and_in_the_next_run(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "runs.sqlite")
    agent = paying("done", "more", journal=journal)
    conversation = Conversation()
    waiting = await agent.run("Pay.", conversation=conversation)
    later = Agent(ScriptedModel(["done", "more"]), tools=[pay], journal=SqliteJournal(tmp_path / "runs.sqlite"))
    result = await later.resume(waiting.run_id, approve={waiting.pending[0].key: {"amount": 50}})
    assert told(result) == [f"{TOLD}\nok"]
    after = await later.run("And?", conversation=Conversation(result.messages))
    assert told(after) == [f"{TOLD}\nok"]


async def test_a_call_of_a_text_protocol() -> None:
    script = ScriptedModel(['<tool_call>{"name": "pay", "arguments": {"amount": 500}}</tool_call>', "done"])
    PAID.clear()
    result = await allowed_with(Agent(TextTools(script), tools=[pay]))
    assert PAID == [50]
    assert told(result) == [f"{TOLD}\nok"]
    assert TOLD in script.requests[-1].messages[-1].text


async def test_a_call_of_a_run_below_is_told_there() -> None:
    clerk = ScriptedModel([[("pay", {"amount": 500})], "done"])
    below = Agent(clerk, name="clerk", tools=[pay]).as_tool()
    PAID.clear()
    result = await allowed_with(Agent(ScriptedModel([[("clerk", {"task": "Pay."})], "done"]), tools=[below]))
    assert PAID == [50]
    assert clerk.requests[-1].messages[-1].text == f"{TOLD}\nok"
    assert told(result) == ["done"]


async def test_a_conversation_that_is_handed_on_with_other_arguments_has_its_answer_alone() -> None:
    clerk = Agent(ScriptedModel(["paid"]), name="clerk")
    agent = Agent(
        ScriptedModel([[("transfer_to_clerk", {"reason": "you"})], "more"]),
        tools=[handoff(clerk)],
        approvals=[ask_before("transfer_to_clerk")],
    )
    waiting = await agent.run("Pay.")
    result = await agent.resume(waiting, approve={waiting.pending[0].call_id: {"reason": "me"}})
    assert result.text == "paid"


async def test_a_call_that_somebody_outside_makes() -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
    outside = external_tool("pay", "Pays.", schema, wait=True)
    agent = paying(tools=[outside], approvals=[ask_before("pay")])
    waiting = await allowed_with(agent)
    (one,) = waiting.pending
    assert one.arguments == {"amount": 50}
    result = await agent.resume(waiting, results={one.call_id: "ok"})
    assert told(result) == [f"{TOLD}\nok"]


@pytest.mark.parametrize("reaction", [Retry(), Alternative("look", {})])
async def test_it_stays_said_where_another_call_is_made(reaction: Any) -> None:
    @tool(effect="read", needs_approval=True)
    def find(amount: int) -> str:
        """Finds."""
        return f"found {amount}"

    @tool(effect="read")
    def look() -> str:
        """Looks."""
        return "looked"

    agent = Agent(
        ScriptedModel([[("find", {"amount": 500})], "done"]),
        tools=[find, look],
        on_tool_result=lambda call, result: reaction if call.made == 1 else None,
    )
    result = await allowed_with(agent)
    while result.pending:
        result = await agent.resume(result, approve=[result.pending[0].key])
    assert told(result)[0].startswith(TOLD)


async def test_of_what_is_called_in_place_of_it_neither_the_model_nor_the_journal_says_so() -> None:
    @tool(effect="read")
    def look(amount: int) -> str:
        """Looks."""
        return f"looked for {amount}"

    agent = Agent(
        ScriptedModel([[("look", {"amount": 500})], "done"]),
        tools=[look, pay],
        on_tool_result=lambda call, result: Alternative("pay", {"amount": 9}) if call.made == 1 else None,
    )
    result = await allowed_with(agent)
    assert told(result) == ["ok"]
    (decided,) = [event for event in result.events if isinstance(event, ApprovalDecided)]
    assert (decided.arguments, decided.corrects) == ('{"amount":50}', False)


async def test_a_fork_and_a_replay_tell_it_too() -> None:
    journal = MemoryJournal()
    agent = paying("done", "again", journal=journal)
    result = await allowed_with(agent)
    forked = await agent.fork(result.run_id, at=1)
    assert told(forked) == [f"{TOLD}\nok"]


@tool(effect="read")
def read_page(page: int) -> str:
    """Reads."""
    return "x " * 1200


PAGES = [[("read_page", {"page": page})] for page in range(3)]
ROOM = KeepFirstAndRecent(high=1200, low=900)
LEFT_OUT = "with the arguments that a person put in place of yours"


def notice(agent: Agent[Any]) -> str:
    (said,) = [one.text for one in agent.model.requests[-1].messages if isinstance(one, UserMessage) and one.left_out]
    return str(said)


async def test_what_is_left_out_to_make_room_is_named_as_it_was_made() -> None:
    agent = paying(*PAGES, "done", tools=[pay, read_page], context=ROOM)
    result = await allowed_with(agent)
    assert (result.text, PAID) == ("done", [50])
    assert f'- pay({{"amount":50}}), {LEFT_OUT}' in notice(agent)
    assert "500" not in notice(agent)


async def test_so_is_what_another_process_leaves_out_and_what_was_made_in_vain() -> None:
    journal = MemoryJournal()
    waiting = await paying(journal=journal).run("Pay.")

    @tool(name="pay", needs_approval=True)
    def fails(amount: int) -> str:
        """Pays."""
        raise ToolError("no money")

    tools = [fails, read_page]
    failed = Agent(ScriptedModel([*PAGES, "done"]), tools=tools, journal=journal, context=ROOM)
    await failed.resume(waiting.run_id, approve={waiting.pending[0].key: {"amount": 50}})
    assert f'- pay({{"amount":50}}), {LEFT_OUT}, which was answered with an error' in notice(failed)


async def test_what_a_run_before_was_given_is_named_as_it_was_made() -> None:
    result = await allowed_with(paying())
    then = Agent(ScriptedModel([*PAGES, "done"]), tools=[pay, read_page], context=ROOM)
    conversation = Conversation(result.messages)
    conversation.add_user("And?")
    await then.run("Read.", conversation=conversation)
    assert f'- pay({{"amount":50}}), {LEFT_OUT}' in notice(then)
    assert "500" not in notice(then)


async def test_the_words_of_a_tool_are_for_no_notice() -> None:
    @tool
    def pay() -> str:
        """Pays."""
        return CORRECTED + '{"amount":7}'

    agent = Agent(ScriptedModel([[("pay", {})], *PAGES, "done"]), tools=[pay, read_page], context=ROOM)
    await agent.run("Pay.")
    assert "- pay({})\n" in f"{notice(agent)}\n"


async def test_the_offline_planner_repeats_what_was_done() -> None:
    @tool(needs_approval=True)
    def convert(amount: float, from_currency: str, to_currency: str) -> dict[str, float]:
        """Converts an amount from one currency to another."""
        return {"converted": amount * 2}

    agent = Agent("offline", tools=[convert])
    waiting = await agent.run("Convert 500 from EUR to USD.")
    arguments = {**waiting.pending[0].arguments, "amount": 50}
    result = await agent.resume(waiting, approve={waiting.pending[0].call_id: arguments})
    assert "100" in result.text
    assert "500" not in result.text, result.text
