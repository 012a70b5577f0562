"""A call that may have been done is made again as it was: with a person's other arguments it would have the same key.

A service that knew the key answered with its first receipt, and the model was told that what the person put there had
been done.
"""

from typing import Any

import pytest
from play import copied, within

from treadle import Agent, Event, MemoryJournal, Misuse, RunResult, SqliteJournal, ToolContext, ask_before, tool
from treadle.result import Pending
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

CARD = "4111"


class Service:
    """A payment service that does nothing twice under a key, and a process that dies before it hears of the first."""

    def __init__(self, *, below: bool = False, **options: Any) -> None:
        self.receipts: dict[str, str] = {}
        self.journal, self.below = MemoryJournal(**options), below
        self.left: MemoryJournal | None = None
        self._options = options

        @tool
        async def pay(amount: int, card: str = "", *, context: ToolContext) -> str:
            """Pays."""
            self.receipts.setdefault(context.idempotency_key, f"paid {amount} {card}".strip())
            if self.left is None:
                self.left = await copied(self.journal, **self._options)
            return self.receipts[context.idempotency_key]

        self.pay = pay

    def agent(self, *tools: Any, journal: Any = None, **arguments: Any) -> Agent[Any]:
        given = {"amount": 500, **arguments}
        script = ScriptedModel(lambda request: "done" if request.step else [("pay", given)])
        agent: Agent[Any] = Agent(script, name="clerk", tools=[*(tools or [self.pay])], journal=journal or self.journal)
        if not self.below:
            return agent
        above = ScriptedModel(lambda request: "done" if request.step else [("clerk", {"task": "pay"})])
        return Agent(above, tools=[agent.as_tool("clerk", "Pays.")], journal=journal or self.journal)

    async def crashed(self, **arguments: Any) -> str:
        """The run whose process died while it paid; `left` has what it wrote until then."""
        return (await within(self.agent(**arguments).run("go"))).run_id

    async def taken_up(self, **arguments: Any) -> tuple[Agent[Any], RunResult[Any], Pending]:
        run_id = await self.crashed(**arguments)
        agent = self.agent(journal=self.left, **arguments)
        waiting = await within(agent.resume(run_id))
        (one,) = waiting.pending
        assert one.kind == "interrupted"
        return agent, waiting, one


async def held(journal: MemoryJournal | None) -> dict[str, list[Event]]:
    assert journal is not None
    return {info.run_id: list(await journal.read(info.run_id)) for info in await journal.list(500)}


def told(result: RunResult[Any]) -> list[str]:
    return [message.text for message in result.messages if message.role == "tool"]


@pytest.mark.parametrize("below", [False, True])
async def test_other_arguments_are_refused_and_nothing_is_recorded(below: bool) -> None:
    service = Service(below=below)
    agent, waiting, one = await service.taken_up()
    before = await held(service.left)
    for name in (one.key, one.call_id):
        with pytest.raises(Misuse, match="Allow it again as it was, give its result, or deny it"):
            await within(agent.resume(waiting.run_id, approve={name: {"amount": 50}}))
    live = agent.stream(resume=waiting.run_id, approve={one.key: {"amount": 50}})
    with pytest.raises(Misuse, match="takes no other arguments"):
        await within(live.__aenter__())
    assert await held(service.left) == before
    done = await within(agent.resume(waiting.run_id, approve=[one]))
    assert done.finished
    assert list(service.receipts.values()) == ["paid 500"]
    if not below:
        assert told(done) == ["paid 500"]


@pytest.mark.parametrize("below", [False, True])
async def test_so_they_are_where_nobody_was_asked_yet(below: bool) -> None:
    service = Service(below=below)
    run_id = await service.crashed()
    agent = service.agent(journal=service.left)
    # Its key is the same before it is asked about.
    (asked,) = (await within(service.agent(journal=await copied(service.left)).resume(run_id))).pending
    before = await held(service.left)
    with pytest.raises(Misuse, match="takes no other arguments"):
        await within(agent.resume(run_id, approve={asked.key: {"amount": 50}}))
    assert await held(service.left) == before
    assert list(service.receipts.values()) == ["paid 500"]


async def test_the_same_arguments_are_no_others() -> None:
    service = Service()
    agent, waiting, one = await service.taken_up()
    done = await within(agent.resume(waiting.run_id, approve={one.key: {"amount": 500}}))
    assert told(done) == ["paid 500"]


async def test_a_denied_one_is_told_as_unknown_and_the_model_calls_again_under_a_key_of_its_own() -> None:
    service = Service()
    run_id = await service.crashed()
    waiting = await within(service.agent(journal=service.left).resume(run_id))

    def turns(request: Any) -> Any:
        return [("pay", {"amount": 50})] if request.step == 1 else "done"

    agent: Agent[Any] = Agent(ScriptedModel(turns), name="clerk", tools=[service.pay], journal=service.left)
    done = await within(agent.resume(waiting.run_id, deny={waiting.pending[0].key: "50 is enough"}))
    unknown, paid = told(done)
    assert '"executed":"unknown"' in unknown
    assert paid == "paid 50"
    assert list(service.receipts.values()) == ["paid 500", "paid 50"]


async def test_those_that_a_person_had_put_there_before_the_crash_are_its_own() -> None:
    service = Service()

    def careful(journal: MemoryJournal) -> Agent[Any]:
        script = ScriptedModel(lambda request: "done" if request.step else [("pay", {"amount": 900})])
        return Agent(script, tools=[service.pay], approvals=[ask_before("pay")], journal=journal)

    first = await within(careful(service.journal).run("go"))
    await within(careful(service.journal).resume(first.run_id, approve={first.pending[0].key: {"amount": 500}}))
    assert service.left is not None
    again = careful(service.left)
    waiting = await within(again.resume(first.run_id))
    (one,) = waiting.pending
    assert (one.kind, one.arguments) == ("interrupted", {"amount": 500})
    with pytest.raises(Misuse, match="takes no other arguments"):
        await within(again.resume(first.run_id, approve={one.key: {"amount": 900}}))
    done = await within(again.resume(first.run_id, approve={one.key: {"amount": 500}}))
    assert told(done) == ['A person put these arguments in place of yours: {"amount":500}\npaid 500']


async def test_what_the_journal_has_redacted_is_put_back() -> None:
    def hide(text: str) -> str:
        return text.replace(CARD, "[card]")

    service = Service(redact=hide)
    agent, waiting, one = await service.taken_up(card=CARD)
    assert one.arguments == {"amount": 500, "card": "[card]"}
    with pytest.raises(Misuse, match="takes no other arguments"):
        await within(agent.resume(waiting.run_id, approve={one.key: {"amount": 50, "card": CARD}}))
    done = await within(agent.resume(waiting.run_id, approve={one.key: {"amount": 500, "card": CARD}}))
    assert done.finished
    assert list(service.receipts.values()) == [f"paid 500 {CARD}"]


async def test_so_are_those_of_one_that_goes_on_with_a_worker(tmp_path: Any) -> None:
    class Nowhere:
        async def dispatch(self, *_: Any, **__: Any) -> None:
            raise AssertionError("nothing is queued")

    service = Service()
    run_id = await service.crashed()
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        await journal.append(run_id, 0, (await held(service.left))[run_id])
        agent = service.agent(journal=journal)
        waiting = await within(agent.resume(run_id))
        with pytest.raises(Misuse, match="takes no other arguments"):
            await agent.resubmit(run_id, to=Nowhere(), approve={waiting.pending[0].key: {"amount": 50}})
        assert (await within(agent.resume(run_id, approve=waiting.pending))).finished


@pytest.mark.parametrize("effect", ["read", "idempotent"])
async def test_a_rule_that_was_added_asks_about_it_as_it_was(effect: Any) -> None:
    keys: list[tuple[str, str]] = []
    journal, left = MemoryJournal(), list[MemoryJournal]()

    @tool(effect=effect)
    async def look(text: str, *, context: ToolContext) -> str:
        """Looks."""
        keys.append((context.idempotency_key, text))
        left.append(await copied(journal))
        return text

    def agent(*rules: Any, kept: Any) -> Agent[Any]:
        script = ScriptedModel(lambda request: "done" if request.step else [("look", {"text": "one"})])
        return Agent(script, tools=[look], approvals=rules, journal=kept)

    run_id = (await within(agent(kept=journal).run("go"))).run_id
    asking = agent(ask_before("look"), kept=left[0])
    waiting = await within(asking.resume(run_id))
    (one,) = waiting.pending
    with pytest.raises(Misuse, match="takes no other arguments"):
        await within(asking.resume(run_id, approve={one.key: {"text": "two"}}))
    assert (await within(asking.resume(run_id, approve=[one]))).finished
    assert len(set(keys)) == 1
