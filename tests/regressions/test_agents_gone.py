"""A run below whose agent is gone, and what waits in a journal that redacts.

What was found, and the test that holds it:

- a run dies while a run below has a model call under way, and is taken up by an agent without that tool, or with a
  plain function in its place: what was set aside for the call, and what was paid before it, are told nowhere, the run
  below is `running` for ever and a person is asked whether the function is to run
  -> test_a_run_below_whose_agent_is_gone_is_ended_and_told_at_its_worst_case
- so is it two levels down, and where it worked on a call in place of another
  -> the same, and test_what_was_known_of_a_call_stays_where_the_one_in_its_place_is_cut_off
- the budget of that agent keeps what was set aside -> test_the_budget_of_an_agent_that_was_gone_is_told_by_that_agent
- in a journal with `redact=` a call that waits is shown as it was said, and refused under its key and as what is
  pending, as what is run is what the journal has -> test_what_waits_in_a_journal_that_redacts_is_told_as_it_is_run
- so it is below -> test_so_is_what_waits_below
- its conversation is refused, as if more had been said in it
  -> test_a_conversation_goes_on_after_a_pause_that_was_redacted, and after a run that broke off, in
  test_a_conversation_goes_on_with_a_run_that_broke_off
"""

import sqlite3
from decimal import Decimal

import pytest
from play import copied, within

from treadle import (
    Agent,
    Alternative,
    Budget,
    Conversation,
    Limits,
    MemoryJournal,
    Misuse,
    Price,
    SqliteJournal,
    Usage,
    ask_before,
    replay,
    statistics,
    tool,
)
from treadle.journal import RedactionFailed
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

PRICE = Price(1000, 1000)
EACH = Decimal("0.2")


def scripted(turns):
    model = ScriptedModel(turns, usage=Usage(100, 100), price=PRICE)
    model.max_output_tokens = 300
    return model


@tool(name="sub")
async def plain(task: str) -> str:
    """Works on a task."""
    raise AssertionError("it is not what was asked")


async def left_behind(deep=False, bounded=True, **options):
    """The journal of a process that died as a run below asked its model for the second time; the run's id."""
    journal, left = MemoryJournal(), []

    async def asked(request):
        if request.step == 0:
            return [("nothing", {})]
        left.append(await copied(journal))
        return "sub end"

    below = Agent(scripted(asked), name="sub", **options)
    if deep:
        below = Agent(scripted([[("low", {"task": "x"})], "sub"]), name="sub", tools=[below.as_tool(name="low")])
    limits = Limits(usd=50) if bounded else Limits()
    top = Agent(
        scripted([[("sub", {"task": "x"})], "end"]), tools=[below.as_tool()], journal=journal, limits=limits, name="top"
    )
    result = await within(top.run("go"))
    return left[0], result.run_id, top


@pytest.mark.parametrize("tools", [[], [plain]], ids=["gone", "a plain function"])
@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("bounded", [False, True])
async def test_a_run_below_whose_agent_is_gone_is_ended_and_told_at_its_worst_case(tools, deep, bounded):
    left, run_id, _ = await left_behind(deep, bounded)
    again = Agent(scripted(["end"]), tools=tools, journal=left, name="top")
    result = await within(again.resume(run_id))
    assert result.stop.reason == "answered"
    paid = EACH * (4 if deep else 3)
    if bounded:
        # The longest reply, and the request of the call that nobody heard of any more.
        assert paid + EACH < result.cost < paid + 1
    else:
        assert result.cost == paid
    assert (await again.spending(result)).total.cost == result.cost
    assert (await statistics(left)).cost.total == result.cost
    runs = {info.run_id: info for info in await left.list()}
    assert len(runs) == 2 + deep
    for name, info in runs.items():
        assert info.status == "finished"
        if name != run_id:
            assert (await left.read(name))[-1].stop.reason == "cancelled"
    assert (await replay(left, run_id)).same


async def test_what_was_known_of_a_call_stays_where_the_one_in_its_place_is_cut_off():
    journal, left = MemoryJournal(), []

    @tool(effect="read")
    async def look() -> str:
        """Looks."""
        return "seen"

    async def asked(request):
        left.append(await copied(journal))
        return "sub end"

    def instead(call, output):
        return Alternative("sub", {"task": "x"}) if call.doing.name == "look" else None

    sub = Agent(scripted(asked), name="sub")
    given = {"limits": Limits(usd=50), "name": "top", "on_tool_result": instead}
    top = Agent(scripted([[("look", {})], "end"]), tools=[look, sub.as_tool()], journal=journal, **given)
    run_id = (await within(top.run("go"))).run_id
    again = Agent(scripted(["end"]), tools=[look], journal=left[0], **given)
    result = await within(again.resume(run_id))
    assert result.cost > EACH * 3
    assert "seen" in result.tool_calls_made[0].result.text
    assert "outcome is unknown" in result.tool_calls_made[0].result.text
    assert {info.status for info in await left[0].list()} == {"finished"}


async def test_the_budget_of_an_agent_that_was_gone_is_told_by_that_agent(tmp_path):
    journal, left = MemoryJournal(), []

    def budget(name):
        return Budget(usd=50, path=tmp_path / name, name="sub's")

    async def asked(request):
        left.append(await copied(journal))
        with sqlite3.connect(tmp_path / "live.db") as live, sqlite3.connect(tmp_path / "left.db") as copy:
            live.backup(copy)
        copy.close()
        live.close()
        return "sub end"

    def top(journal, path):
        sub = Agent(scripted(asked), name="sub", budget=budget(path))
        return Agent(scripted([[("sub", {"task": "x"})], "end"]), tools=[sub.as_tool()], journal=journal, name="top")

    run_id = (await within(top(journal, "live.db").run("go"))).run_id
    gone = Agent(scripted(["end"]), journal=left[0], name="top")
    result = await within(gone.resume(run_id))
    assert result.cost > EACH * 2
    assert budget("left.db").spent().held_usd > 0
    back = await within(top(left[0], "left.db").resume(run_id))
    spent = budget("left.db").spent()
    assert (spent.held_usd, spent.usd) == (0, back.cost - 2 * EACH)


CARD = "4111 1111 1111 1111"


def hidden(text):
    return text.replace(CARD, "[card]")


class Till:
    """A tool that asks before it is paid, and an agent that pays."""

    def __init__(self, journal=None, **options):
        self.paid = paid = []

        @tool(needs_approval=True)
        async def pay(card: str) -> str:
            """Pays."""
            paid.append(card)
            return f"paid with {card}"

        def replies(request):
            last = request.messages[-1]
            return f"end: {last.text}" if last.role == "tool" else [("pay", {"card": CARD})]

        self.agent = Agent(ScriptedModel(replies), name="till", tools=[pay], journal=journal, **options)


@pytest.fixture(params=["memory", "sqlite"])
async def redacting(request, tmp_path):
    if request.param == "memory":
        yield MemoryJournal(redact=hidden)
    else:
        async with SqliteJournal(tmp_path / "runs.db", redact=hidden) as journal:
            yield journal


NAMES = {
    "key": lambda waiting: [waiting.pending[0].key],
    "pending": lambda waiting: waiting.pending,
    "id": lambda waiting: [waiting.pending[0].call_id],
}


@pytest.mark.parametrize("named", NAMES)
@pytest.mark.parametrize("by", ["result", "id", "stream"])
async def test_what_waits_in_a_journal_that_redacts_is_told_as_it_is_run(redacting, named, by):
    till = Till(redacting)
    if by == "stream":
        async with till.agent.stream(f"pay with {CARD}") as live:
            async for _ in live:
                pass
            waiting = live.result
    else:
        waiting = await till.agent.run(f"pay with {CARD}")
    assert waiting.pending[0].arguments == {"card": "[card]"}
    assert CARD not in str(waiting.to_dict())
    result = await till.agent.resume(waiting.run_id if by == "id" else waiting, approve=NAMES[named](waiting))
    assert result.text == "end: paid with [card]"
    assert till.paid == ["[card]"]


@pytest.mark.parametrize("named", NAMES)
async def test_so_is_what_waits_below(redacting, named):
    till = Till()
    script = ScriptedModel([[("till", {"task": f"pay with {CARD}"})], "done"])
    top = Agent(script, tools=[till.agent.as_tool()], journal=redacting)
    waiting = await top.run("go")
    assert waiting.pending[0].arguments == {"card": "[card]"}
    result = await top.resume(waiting, approve=NAMES[named](waiting))
    assert (result.text, till.paid) == ("done", ["[card]"])


async def test_a_conversation_goes_on_after_a_pause_that_was_redacted(redacting):
    till, conversation = Till(redacting), Conversation()
    for _ in range(2):
        waiting = await till.agent.run(f"pay with {CARD}", conversation=conversation)
        assert waiting.stop.reason == "waiting"
        assert CARD not in str(conversation.messages)
        result = await till.agent.resume(waiting, approve=waiting.pending, conversation=conversation)
        assert result.text == conversation.messages[-1].text == "end: paid with [card]"


async def test_a_conversation_goes_on_with_a_run_that_broke_off(redacting):
    broken, conversation = [], Conversation()

    def breaks(context):
        if broken:
            raise ValueError(broken.pop())

    agent = Agent(ScriptedModel(lambda _: f"seen {CARD}"), journal=redacting, prepare_step=breaks)
    await agent.run(f"this is {CARD}", conversation=conversation)
    broken.append("broken")
    with pytest.raises(ValueError, match="broken"):
        await agent.run(f"and {CARD}", conversation=conversation)
    left = next(info.run_id for info in await redacting.list() if info.status == "running")
    other = Conversation([*conversation.messages, *conversation.messages])
    for wrong in (other, Conversation(conversation.messages[1:])):
        with pytest.raises(Misuse, match="more was said"):
            await agent.resume(left, conversation=wrong)
    result = await agent.resume(left, conversation=conversation)
    assert result.stop.reason == "answered"
    assert [message.text for message in conversation.messages][-2:] == ["and [card]", f"seen {CARD}"]


async def test_a_redaction_that_fails_at_a_pause_is_told_and_lets_the_conversation_go():
    class Failing:
        def __init__(self):
            self.wrong = False

        def __call__(self, text):
            if self.wrong:
                raise ValueError("wrong")
            return text

    redact = Failing()
    till, conversation = Till(MemoryJournal(redact=redact)), Conversation()

    def watch(event):
        redact.wrong = redact.wrong or type(event).__name__ == "ModelReplied"

    with pytest.raises(RedactionFailed):
        await till.agent.run("pay", conversation=conversation, on_event=watch)
    redact.wrong = False
    assert (await till.agent.run("pay", conversation=conversation)).stop.reason == "waiting"


async def test_arguments_for_a_tool_that_is_gone_are_refused_and_the_call_can_still_be_decided():
    """Nothing is there that could check them; approved as it is, the call is answered as one of an unknown tool."""

    @tool
    def pay(amount: int) -> str:
        """Pays."""
        return "paid"

    journal, rules = MemoryJournal(), [ask_before(effect="write")]
    begun = Agent(ScriptedModel([[("pay", {"amount": 5})]]), tools=[pay], approvals=rules, journal=journal)
    waiting = await begun.run("Pay 5.")
    (one,) = waiting.pending
    without = Agent(ScriptedModel(["I cannot."]), approvals=rules, journal=journal)
    events = await journal.read(waiting.run_id)
    with pytest.raises(Misuse, match="has no tool 'pay'"):
        await without.resume(waiting.run_id, approve={one.key: {"amount": 1}})
    assert await journal.read(waiting.run_id) == events
    result = await without.resume(waiting.run_id, approve=[one])
    assert result.text == "I cannot."
    assert "There is no tool 'pay'" in result.tool_calls_made[0].result.text
