"""A call that is asked for again, as its client did not hear what came of it: it is not carried out twice."""

import asyncio
import sys
from collections import Counter

import pytest

pytest.importorskip("mcp")

import mcp_types as types
from mcp import Client

from treadle import Agent, MemoryJournal, SqliteJournal, ToolContext, tool
from treadle.kernel.events import ModelReplied, RunStarted, ToolStarted
from treadle.mcp import MCPServer, server_of
from treadle.mcp.secrets import Secrets
from treadle.mcp.waiting import question_of
from treadle.testing import ScriptedModel
from treadle.tools.errors import AsksPerson

pytestmark = pytest.mark.anyio

KEYED = {"io.treadle/idempotency-key": "order 7"}


class Till:
    """A tool that pays, with what it paid."""

    def __init__(self, **options):
        self.paid, self.may_end = [], asyncio.Event()

        @tool(**options)
        async def pay(amount: int, context: ToolContext) -> str:
            """Pays an amount."""
            self.paid.append((amount, context.idempotency_key))
            await self.may_end.wait()
            return f"paid {amount}"

        self.pay = pay


def words(found):
    return found.content[0].text


async def agrees(context, params):
    return types.ElicitResult(action="accept", content={"allow": True})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_that_is_asked_for_again_under_its_key_is_made_once(mode):
    till, journal = Till(), MemoryJournal()
    till.may_end.set()
    async with Client(server_of([till.pay], journal=journal), mode=mode) as client:
        first = await client.call_tool("pay", {"amount": 5}, meta=KEYED)
        again = await client.call_tool("pay", {"amount": 5}, meta=KEYED)
        assert (words(first), words(again)) == ("paid 5", "paid 5")
        assert first.meta["io.treadle/run"] == again.meta["io.treadle/run"]
        other = await client.call_tool("pay", {"amount": 6}, meta=KEYED)
        assert other.is_error
        assert "the key is that of another call" in words(other)
        assert not (await client.call_tool("pay", {"amount": 5})).is_error
        assert (await client.call_tool("pay", {"amount": 5}, meta={"io.treadle/idempotency-key": 7})).is_error
    assert [amount for amount, _ in till.paid] == [5, 5]


async def test_a_call_with_a_secret_is_known_again_under_its_key():
    till, journal = Till(), MemoryJournal(redact=lambda text: text.replace("4711", "[CARD]"))
    till.may_end.set()
    async with Client(server_of([till.pay], journal=journal)) as client:
        first = await client.call_tool("pay", {"amount": 4711}, meta=KEYED)
        again = await client.call_tool("pay", {"amount": 4711}, meta=KEYED)
        assert (words(first), words(again)) == ("paid 4711", "paid [CARD]")
        other = await client.call_tool("pay", {"amount": 4712}, meta=KEYED)
        assert "the key is that of another call" in words(other)
    assert [amount for amount, _ in till.paid] == [4711]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_whoever_asks_again_is_told_that_a_purchase_that_was_cut_off_may_have_been_made(mode):
    """It was told that a person had not answered, whom nobody had asked, or in the newest era that it has to be able to
    ask its own, and not that a call anew may be a second purchase."""
    till, whole, left = Till(), MemoryJournal(), MemoryJournal()
    till.may_end.set()
    async with Client(server_of([till.pay], journal=whole)) as client:
        first = await client.call_tool("pay", {"amount": 5}, meta=KEYED)
    run_id = first.meta["io.treadle/run"]
    events = await whole.read(run_id)
    last = next(i for i, event in enumerate(events) if isinstance(event, ToolStarted))
    await left.append(run_id, 0, events[: last + 1])
    async with Client(server_of([till.pay], journal=left), mode=mode) as client:
        again = await client.call_tool("pay", {"amount": 5}, meta=KEYED)
    assert again.is_error
    assert words(again) == (
        f"Run {run_id} was cut off in pay (call): nobody knows whether that took effect, and to call it anew may do it "
        "twice. Whoever runs this server is to say what came of it."
    )


@pytest.mark.parametrize("kind", [RunStarted, ModelReplied, ToolStarted])
async def test_a_call_with_a_secret_whose_process_died_is_made_as_it_was_asked_for(kind):
    """It was made with what the journal had put in the place of the secret."""
    cards: list[str] = []

    @tool(effect="idempotent")
    def charge(card: str) -> str:
        """Charges a card."""
        cards.append(card)
        return "charged"

    whole, left = (MemoryJournal(redact=lambda text: text.replace("visa", "[CARD]")) for _ in range(2))
    async with Client(server_of([charge], journal=whole)) as client:
        first = await client.call_tool("charge", {"card": "visa"}, meta=KEYED)
    run_id = first.meta["io.treadle/run"]
    events = await whole.read(run_id)
    last = next(i for i, event in enumerate(events) if isinstance(event, kind))
    await left.append(run_id, 0, events[: last + 1])
    async with Client(server_of([charge], journal=left)) as client:
        again = await client.call_tool("charge", {"card": "visa"}, meta=KEYED)
    assert (words(again), cards) == ("charged", ["visa", "visa"])
    assert not any("visa" in repr(event) for event in await left.read(run_id))


async def test_a_call_that_is_under_way_is_not_begun_a_second_time():
    till = Till()
    async with Client(server_of([till.pay], journal=MemoryJournal())) as client:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(client.call_tool("pay", {"amount": 5}, meta=KEYED))
            while not till.paid:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            again = await client.call_tool("pay", {"amount": 5}, meta=KEYED)
            assert "under way already" in words(again)
            till.may_end.set()
        assert words(first.result()) == words(await client.call_tool("pay", {"amount": 5}, meta=KEYED)) == "paid 5"
    assert len(till.paid) == 1


async def test_two_that_begin_at_once_begin_one():
    till = Till()
    till.may_end.set()
    async with Client(server_of([till.pay], journal=MemoryJournal())) as client:
        calls = [client.call_tool("pay", {"amount": 5}, meta=KEYED) for _ in range(5)]
        found = Counter(words(one).partition(",")[0] for one in await asyncio.gather(*calls))
    assert set(found) <= {"paid 5", "this call is under way already"}
    assert len(till.paid) == 1


async def test_a_call_whose_client_went_away_is_told_to_be_in_doubt():
    till, journal = Till(), MemoryJournal()
    async with Client(server_of([till.pay], journal=journal)) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await client.call_tool("pay", {"amount": 5}, meta=KEYED)
        while (await journal.list(1))[0].status != "finished":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        again = await client.call_tool("pay", {"amount": 5}, meta=KEYED)
        assert again.is_error
        assert "its outcome is unknown" in words(again)
    assert len(till.paid) == 1


@pytest.mark.parametrize("kept", [True, False])
async def test_an_answer_that_is_brought_again_is_told_what_came_of_it(kept):
    """It was told to call the tool anew, which would have paid again."""
    till = Till(needs_approval=True)
    till.may_end.set()
    served = server_of([till.pay], journal=MemoryJournal() if kept else None)
    async with Client(served, elicitation_callback=agrees) as client:
        call = client.session.call_tool
        first = await call("pay", {"amount": 5}, allow_input_required=True)
        said = {name: types.ElicitResult(action="accept", content={"allow": True}) for name in first.input_requests}
        again = {"input_responses": said, "request_state": first.request_state, "allow_input_required": True}
        other = await call("pay", {"amount": 500}, **again)
        assert "goes on with another call, or with other arguments" in words(other)
        assert words(await call("pay", {"amount": 5}, **again)) == "paid 5"
        assert ("paid 5" if kept else "it is not done a second time") in words(
            await call("pay", {"amount": 5}, **again)
        )
    assert len(till.paid) == 1


TILL = '''
import os, signal
from treadle import ToolContext, tool

def noted(context):
    with open("paid", "a") as file:
        file.write(context.idempotency_key + "\\n")
    with open("paid") as file:
        return len(file.readlines())

@tool(effect="idempotent")
def pay(amount: int, context: ToolContext) -> str:
    """Pays an amount, once for each key."""
    if noted(context) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"paid {amount}"

@tool
def buy(amount: int, context: ToolContext) -> str:
    """Buys something."""
    noted(context)
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"

@tool(needs_approval=True)
def agreed(amount: int, context: ToolContext) -> str:
    """Buys something that a person has agreed to."""
    noted(context)
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"
'''


def till_in(folder, **options):
    (folder / "till.py").write_text(TILL)
    served = (
        "-m",
        "treadle",
        "mcp",
        "--tools",
        "till:pay",
        "--tools",
        "till:buy",
        "--tools",
        "till:agreed",
        "--journal",
        "journal.db",
    )
    env = {"PYTHONPATH": ":".join([str(folder), *sys.path])}
    return MCPServer.stdio(
        sys.executable, *served, name="till", cwd=folder, env=env, effects={"pay": "idempotent"}, **options
    )


async def test_a_payment_whose_server_was_killed_is_made_again_under_the_same_key(tmp_path):
    """By a server in another process, which had made a key of its own."""
    result = await Agent(ScriptedModel([[("till__pay", {"amount": 5})], "done"]), tools=[till_in(tmp_path)]).run("go")
    assert result.steps[0].calls[0].result.text == "paid 5"
    first, second = (tmp_path / "paid").read_text().split()
    assert first == second


async def test_a_purchase_whose_server_was_killed_is_made_once_however_often_it_is_asked_for(tmp_path):
    till = till_in(tmp_path)
    agent = Agent(ScriptedModel([[("till__buy", {"amount": 5})], "done"]), tools=[till], journal=MemoryJournal())
    waiting = await agent.run("go")
    assert [one.kind for one in waiting.pending] == ["interrupted"]
    # The person takes it for not done, and has it made again; whoever serves it knows better.
    result = await agent.resume(waiting, approve=waiting.pending)
    told = result.steps[0].calls[0].result.text
    assert "nobody knows whether that took effect, and to call it anew may do it twice" in told
    assert "who has not answered" not in told
    assert len((tmp_path / "paid").read_text().split()) == 1
    async with SqliteJournal(tmp_path / "journal.db") as journal:
        assert [one.status for one in await journal.list(9)] == ["waiting"]


@pytest.mark.parametrize(
    "answer",
    [types.ErrorData(code=-1, message="there is nobody"), types.ElicitResult.model_construct(action="perhaps")],
    ids=["an error", "no answer"],
)
async def test_a_client_that_fails_to_ask_its_person_is_told_that_the_run_waits(answer):
    """It was told that the call had failed."""

    async def fails(context, params):
        return answer

    till, journal = Till(needs_approval=True), MemoryJournal()
    async with Client(server_of([till.pay], journal=journal), mode="legacy", elicitation_callback=fails) as client:
        found = await client.call_tool("pay", {"amount": 5})
    assert found.is_error
    assert "waits for a person" in words(found)
    assert ([one.status for one in await journal.list(9)], till.paid) == (["waiting"], [])


async def test_an_answer_for_a_server_that_was_killed_as_it_went_on_by_it_buys_nothing_again(tmp_path):
    """It was told to call the tool anew."""
    till, journal = till_in(tmp_path, ask="pause"), MemoryJournal()
    model = ScriptedModel([[("till__agreed", {"amount": 5})], "done"])
    agent = Agent(model, tools=[till], journal=journal)
    asked = await agent.run("go")
    assert "Allow agreed" in asked.pending[0].question
    cut_off = await agent.resume(asked, results={asked.pending[0].call_id: "yes"})
    assert [one.kind for one in cut_off.pending] == ["interrupted"]
    result = await agent.resume(cut_off, approve=cut_off.pending)
    told = result.steps[0].calls[0].result.text
    assert "nobody knows whether that took effect, and to call it anew may do it twice" in told
    assert "who has not answered" not in told
    assert len((tmp_path / "paid").read_text().split()) == 1


@pytest.mark.parametrize(
    ("message", "state", "schema"),
    [("Sure?", "x" * 200_000, {}), ("Sure?", "x", {"x": {"enum": ["y" * 200_000]}}), ("S" * 200_000, "x", {"x": True})],
)
def test_what_a_server_has_kept_for_it_in_a_journal_has_a_bound(message, state, schema):
    params = types.ElicitRequestFormParams(message=message, requested_schema={"type": "object", "properties": schema})
    asked = types.InputRequiredResult(input_requests={"q": types.ElicitRequest(params=params)}, request_state=state)
    found = question_of(asked, "shop", Secrets({}))
    assert len(str(found)) + len(getattr(found, "again", "")) < 10_000
    assert isinstance(found, AsksPerson) == (message != "Sure?")


async def test_a_call_has_its_key_with_the_service_also_where_the_journal_is_lost():
    till = Till()
    till.may_end.set()
    for _ in range(2):
        async with Client(server_of([till.pay], journal=MemoryJournal())) as client:
            assert words(await client.call_tool("pay", {"amount": 5}, meta=KEYED)) == "paid 5"
    (first, again) = till.paid
    assert first == again
