"""Tools that ask in the middle of a call, in runs that processes die in and that programs of stricter rules take up.

- a call is made under a rule that asks only if a person allowed it, however often its tool has asked by then
- what writes is made once, and again only where a person said so
- a call has one key, whoever makes it
"""

import asyncio
import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from worlds import examples

from treadle import Agent, MemoryJournal, ToolContext, ask_before, tool
from treadle.journal import JournalUnavailable
from treadle.kernel.fold import fold_all
from treadle.testing import ScriptedModel
from treadle.tools.errors import AsksPerson

MOST_PROCESSES = 60


class Dying(MemoryJournal):
    """That of a process that dies after so many events; None for one that lives."""

    left = None

    async def append(self, run_id, seq, events, held=None):
        if self.left == 0:
            raise JournalUnavailable("the process is dead")
        await super().append(run_id, seq, events, held)
        if self.left is not None:
            self.left = max(0, self.left - len(events))
            if not self.left:
                raise JournalUnavailable("the process dies")


class Shop:
    """A run of an agent, by itself or below another, through its processes; what was done, allowed and said of it."""

    def __init__(self, chance):
        self.chance = chance
        self.questions, self.calls, self.deep = chance.randint(0, 3), chance.randint(1, 3), chance.random() < 0.4
        self.effect = chance.choice(["write", "idempotent", "read"])
        self.asks = chance.random() < 0.3
        self.allowed, self.said_again, self.done, self.wrong = Counter(), Counter(), [], []

    def agent(self, journal):
        """The program, as it is by now."""

        @tool(effect=self.effect)
        async def pay(n: int, context: ToolContext) -> str:
            """Pays, once a person has answered so often."""
            if int(context.again or 0) < self.questions:
                raise AsksPerson("Sure?", str(int(context.again or 0) + 1))
            if self.asks and not self.allowed[n]:
                self.wrong.append(f"call {n} was made without leave")
            self.done.append((n, context.idempotency_key))
            return "paid"

        rules = [ask_before("pay")] if self.asks else []
        asked = [[("pay", {"n": n}) for n in range(self.calls)], "paid"]
        clerk = Agent(scripted(asked), name="clerk", tools=[pay], approvals=rules, journal=journal)
        if not self.deep:
            return clerk
        clerk = Agent(scripted(asked), name="clerk", tools=[pay], approvals=rules)
        return Agent(scripted([[("clerk", {"task": "Pay."})], "done"]), tools=[clerk.as_tool()], journal=journal)

    def answers(self, pending):
        """What a person says of some of what waits."""
        approve, deny, results = [], [], {}
        for one in pending:
            likely = self.chance.random() < 0.8
            if one.kind == "result" and likely:
                results[one.call_id] = self.chance.choice(["yes", True, {"sure": 1}])
            elif one.kind != "result" and likely:
                approve.append(one.key)
                self.allowed[one.arguments["n"]] += 1
                self.said_again[one.arguments["n"]] += one.kind == "interrupted"
            elif one.kind != "result":
                deny.append(one.key)
        return {"approve": approve, "deny": deny, "results": results}

    async def process(self, before):
        """One process after another, over what the one before has left: what this one leaves."""
        journal = Dying()
        runs = await before.list()
        for line in runs:
            await journal.append(line.run_id, 0, await before.read(line.run_id))
        if self.chance.random() < 0.5:
            journal.left = self.chance.randint(1, 15)
        try:
            if not runs:
                await self.agent(journal).run("go")
                return journal
            (run_id,) = [line.run_id for line in runs if line.parent is None]
            said = {}
            if fold_all(await before.read(run_id)).phase == "paused":
                said = self.answers((await self.agent(before).drive(run_id)).pending)
            await self.agent(journal).resume(run_id, **said)
        except JournalUnavailable:
            pass
        return journal


def scripted(replies):
    return ScriptedModel(lambda request: replies[request.step])


@examples(40, shrink=False)
@given(st.integers(0, 10**9))
def test_no_call_is_made_without_leave_or_twice_whatever_its_tool_has_asked(seed):
    shop = Shop(random.Random(seed))

    async def carried():
        journal = MemoryJournal()
        for _ in range(MOST_PROCESSES):
            journal = await shop.process(journal)
            ends = [fold_all(await journal.read(line.run_id)).phase for line in await journal.list()]
            if ends and set(ends) == {"finished"}:
                return True
            shop.asks = shop.asks or shop.chance.random() < 0.3
        return False

    assert asyncio.run(carried()), "it does not come to its end"
    assert shop.wrong == []
    made = Counter(n for n, _ in shop.done)
    if shop.effect == "write":
        assert all(times <= 1 + shop.said_again[n] for n, times in made.items()), shop.done
    assert len(set(shop.done)) == len(made), shop.done
