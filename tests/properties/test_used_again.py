"""Names of runs that are used again: what is submitted, driven by halves, decided on, forked, moved and deleted.

- an idempotency key is that of one call of one run, whatever had the run's name before
- nothing that writes is done twice unless a person said so
- a decision on what a deleted run has asked decides nothing of the run that has its name now
- a decision under an id that is delivered again, whenever that is, is only taken where somebody is asked under that id
- what a run is told to have taken is what it took: nothing of a deleted run of its name, nor of what that one has left
- each run that is there is replayed as it went
- who watches a run is shown that one alone, whatever has its name by then
- the command line tells of all of them, once they stand in a file, what the library tells
"""

import asyncio
import io
import json
import random
import re
from contextlib import redirect_stdout, suppress
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from worlds import examples

from treadle import (
    Agent,
    Limits,
    MemoryJournal,
    Misuse,
    Price,
    SqliteJournal,
    ToolContext,
    Usage,
    external_tool,
    replay,
    statistics,
    tool,
    waterfall,
)
from treadle.cli.app import run
from treadle.drivers.dispatch import Pausing
from treadle.journal import JournalConflict, RunHeld, RunInfo, UnknownRun, export_runs, family, import_runs
from treadle.kernel.events import Event
from treadle.kernel.fold import fold_all
from treadle.result import result_of
from treadle.testing import ScriptedModel

NAMES = ("order-1", "order-2")
TAKEN = {"usage": Usage(100, 20), "price": Price(3, 15)}
BY_HEAD = ("look", "put", "pay", "sign", "ask", "clerk", "clerk")
BY_CLERK = ("look", "put", "pay", "sign")
ask = external_tool("ask", "Asks somebody.", {"type": "object", "properties": {"label": {"type": "string"}}}, wait=True)


class Kept:
    """A queue that takes all: what is queued is driven when it comes to that."""

    async def accept(self, agent):
        pass

    async def dispatch(self, order):
        pass


class Shop:
    """A journal, who works over it, and what was done."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.journal = chance, MemoryJournal()
        self.plans = {who: self.plan(names) for who, names in (("head", BY_HEAD), ("clerk", BY_CLERK))}
        self.done: list[tuple[str, str, str]] = []
        self.questions = self.said_again = 0
        self.asked: set[tuple[str, str, int]] = set()
        self.allowed: list[tuple[str, str]] = []
        self.watched: list[tuple[str, list[Event], asyncio.Task[None]]] = []
        self.gone: list[list[Event]] = []
        self.over = asyncio.Event()

    def plan(self, names):
        steps = range(self.chance.choice([1, 2]))
        return [[self.chance.choice(names) for _ in range(self.chance.choice([1, 2, 3]))] for _ in steps]

    def agent(self) -> Agent:
        """Agents as a process has them that begins anew."""
        own = self.tools()
        clerk = Agent(self.model("clerk"), name="clerk", tools=own)
        return Agent(
            self.model("head"),
            name="head",
            tools=[*own, ask, clerk.as_tool()],
            journal=self.journal,
            limits=Limits(steps=8),
        )

    def tools(self):
        async def act(label: str, context: ToolContext) -> str:
            await asyncio.sleep(0)
            self.done.append((context.tool_name, label, context.idempotency_key))
            await asyncio.sleep(0)
            return f"{context.tool_name} {label}"

        @tool(effect="read")
        async def look(label: str, context: ToolContext) -> str:
            """Looks."""
            return await act(label, context)

        @tool(effect="idempotent")
        async def put(label: str, context: ToolContext) -> str:
            """Puts."""
            return await act(label, context)

        @tool(effect="write")
        async def pay(label: str, context: ToolContext) -> str:
            """Pays."""
            return await act(label, context)

        @tool(effect="write", needs_approval=True)
        async def sign(label: str, context: ToolContext) -> str:
            """Signs."""
            return await act(label, context)

        return [look, put, pay, sign]

    def model(self, who: str) -> ScriptedModel:
        plan = self.plans[who]

        def turn(request):
            (label, *_) = re.findall(r"<(.*?)>", "".join(one.text for one in request.messages if one.role == "user"))
            if request.step >= len(plan) or not request.tools:
                return f"That was <{label}>."
            calls = [(name, f"{label}.{request.step}.{place}") for place, name in enumerate(plan[request.step])]
            return [(name, {"task": f"<{said}>"} if name == "clerk" else {"label": said}) for name, said in calls]

        return ScriptedModel(turn, keep_requests=False, name=who, **TAKEN)

    async def lines(self) -> list[RunInfo]:
        return [line for line in await self.journal.list(1000) if line.parent is None]

    async def pending(self, run_id: str):
        return result_of(fold_all(await self.journal.read(run_id))).pending

    async def carry_out(self) -> None:
        async with asyncio.TaskGroup() as self.watchers:
            for _ in range(self.chance.randrange(3, 14)):
                # Who is refused, or finds another at it, has changed nothing.
                with suppress(Misuse, RunHeld, JournalConflict):
                    await self.something()
            for line in await self.lines():
                await self.to_the_end(line.run_id)
            await self.look_at_who_watched()
        await self.look_at_all()

    async def something(self) -> None:
        lines, agent, chance = await self.lines(), self.agent(), self.chance
        what = chance.choice(
            [
                "submit",
                "drive",
                "drive",
                "drive",
                "decide",
                "decide",
                "late",
                "again",
                "cancel",
                "say",
                "fork",
                "watch",
                "watch",
                "delete",
                "delete",
                "delete",
                "move",
            ]
        )
        if what == "submit" or not lines:
            await self.submitted(agent, chance.choice(NAMES))
            return
        if what == "move":
            exported = [line async for line in export_runs(self.journal)]
            self.journal = MemoryJournal()
            await import_runs(self.journal, io.BytesIO(b"".join(exported)))
            return
        line = chance.choice(lines)
        match what:
            case "drive":
                await self.by_half(agent, line.run_id)
            case "decide":
                await self.decided(agent, line.run_id)
            case "late":
                await self.decided_late(agent, line.run_id)
            case "again":
                await self.allowed_again(agent, line.run_id)
            case "cancel":
                await agent.cancel(line.run_id)
            case "say":
                await agent.resubmit(line.run_id, to=Kept(), message="Go on.")
            case "fork":
                await agent.begin_fork(line.run_id, at=chance.randint(0, line.steps), message="Go on.")
            case "watch":
                self.watch(line.run_id)
            case "delete" if line.status == "finished":
                gone = [line.run_id] if chance.random() < 0.6 else reversed(await family(self.journal, line.run_id))
                gone = list(gone)
                # Who deletes a family may be stopped in the middle.
                for run_id in gone[: len(gone) if chance.random() < 0.7 else chance.randint(1, len(gone))]:
                    self.gone.append(await self.journal.read(run_id))
                    await self.journal.delete(run_id)
                if line.run_id in [one.run_id for one in await self.lines()]:
                    return
                if line.run_id in NAMES:
                    await self.submitted(agent, line.run_id)
                    await self.by_half(agent, line.run_id)
                    await self.decided_late(agent, line.run_id)

    async def submitted(self, agent: Agent, name: str) -> None:
        # What is asked of a name again may be the same.
        self.questions += not self.questions or self.chance.random() < 0.5
        await agent.submit(f"Do <{self.questions}>.", to=Kept(), run_id=name)

    async def by_half(self, agent: Agent, run_id: str) -> None:
        """Drives a run, and pauses it or lets its process die after a while, unless it is done by then."""
        pausing, ends = Pausing(), self.chance.choice(["pause", "give_up", ""])

        async def driven() -> None:
            with suppress(Misuse, RunHeld, JournalConflict):
                await agent.drive(run_id, pausing=pausing)

        async with asyncio.TaskGroup() as group:
            group.create_task(driven())
            for _ in range(self.chance.randrange(60) if ends else 0):
                await asyncio.sleep(0)
            if ends:
                getattr(pausing, ends)()
        await self.take_note(run_id)

    async def decided(self, agent: Agent, run_id: str) -> None:
        await self.take_note(run_id)
        for call in await self.pending(run_id):
            how = self.chance.choice(["approve", "deny"])
            self.said_again += how == "approve" and call.kind == "interrupted"
            name = self.chance.choice([call, call.call_id])
            given = {"results": {call.call_id: "told"}} if call.kind == "result" else {how: [name]}
            if how == "approve" and call.kind != "result":
                self.allowed.append((run_id, call.call_id))
            if self.chance.random() < 0.5:
                await agent.resubmit(run_id, to=Kept(), **given)
                await self.allowed_again(agent, run_id)
                await self.by_half(agent, run_id)
                await self.allowed_again(agent, run_id)
            else:
                await agent.resume(run_id, **given)

    async def take_note(self, run_id: str) -> int:
        """Keeps the keys of what the run asks; what tells it from others of its name."""
        pending = await self.pending(run_id)
        nonce = fold_all(await self.journal.read(run_id)).started.nonce
        self.asked |= {(run_id, call.key, nonce) for call in pending if call.kind != "result"}
        return nonce

    async def decided_late(self, agent: Agent, run_id: str) -> None:
        """Somebody allows what an earlier run of that name has asked."""
        nonce = await self.take_note(run_id)
        for key in [key for name, key, of in self.asked if name == run_id and of != nonce]:
            before = len(await self.journal.read(run_id))
            with suppress(Misuse, RunHeld, JournalConflict):
                await agent.resume(run_id, approve=[key])
                raise AssertionError(f"{key} was asked by a deleted run")
            assert len(await self.journal.read(run_id)) == before

    async def allowed_again(self, agent: Agent, run_id: str) -> None:
        """What was allowed under an id is delivered again."""
        for call_id in [call for of, call in self.allowed if of == run_id][-1:]:
            asked = [call for call in await self.pending(run_id) if call.call_id == call_id]
            waits = asked or await self.asks_below(run_id, call_id)
            self.said_again += any(call.kind == "interrupted" for call in asked)
            before = await self.lengths()
            try:
                await agent.resubmit(run_id, to=Kept(), approve=[call_id])
            except Misuse:
                assert await self.lengths() == before
            else:
                assert waits, f"{call_id} was allowed again, and nobody asks"

    async def lengths(self) -> dict[str, int]:
        return {line.run_id: len(await self.journal.read(line.run_id)) for line in await self.journal.list(1000)}

    async def asks_below(self, run_id: str, call_id: str) -> bool:
        """Whether the run that works on a call still asks: what was decided had not come there."""
        *path, last = call_id.split("/")
        for part in path:
            links = [(line.run_id, line.parent) for line in await self.journal.list(1000) if line.parent is not None]
            run_id = next((below for below, link in links if (link.run_id, link.call_id) == (run_id, part)), "")
        state = fold_all(await self.journal.read(run_id)) if run_id else None
        calls = () if state is None or state.step is None else state.step.calls
        return any(one.id == last and one.status == "needs_approval" for one in calls)

    async def to_the_end(self, run_id: str) -> None:
        agent, result = self.agent(), None
        # What a deleted run has left may be in its way, or results of others are waited for.
        with suppress(Misuse):
            result = await agent.resume(
                run_id, deny=[one for one in await self.pending(run_id) if one.kind != "result"]
            )
        if result is None or not result.finished:
            await agent.cancel(run_id)

    def watch(self, run_id: str) -> None:
        seen: list[Event] = []

        async def looks() -> None:
            with suppress(UnknownRun):
                async for event in journal.watch(run_id):
                    seen.append(event)
                    if len(seen) == falls_behind:
                        await self.over.wait()

        journal, falls_behind = self.journal, self.chance.choice([0, 1, 2, 5])
        self.watched.append((run_id, seen, self.watchers.create_task(looks())))

    async def look_at_who_watched(self) -> None:
        self.over.set()
        for _ in range(20):
            await asyncio.sleep(0)
        for run_id, seen, task in self.watched:
            task.cancel()
            await asyncio.wait([task])
            there = [await self.journal.read(line.run_id) for line in await self.lines() if line.run_id == run_id]
            assert any(seen == events[: len(seen)] for events in [*there, *self.gone]), seen

    async def look_at_all(self) -> None:
        agent, told = self.agent(), Decimal(0)
        for line in await self.lines():
            spending = await agent.spending(line.run_id)
            state = fold_all(await self.journal.read(line.run_id))
            assert (spending.total.cost or 0) + (spending.shared_total.cost or 0) == (state.cost or 0)
            bars = [bar for bar in (await waterfall(self.journal, line.run_id)).bars if not bar.shared]
            assert sum(bar.cost or 0 for bar in bars) == (spending.total.cost or 0)
            assert (await agent.replay(line.run_id, recorded_limits=True)).same
            assert (await replay(self.journal, line.run_id)).same
            told += spending.total.cost or 0
        left = [line for line in await self.journal.list(1000) if not await self.is_told(line)]
        told += sum(line.cost or 0 for line in left)
        figures = await statistics(self.journal)
        assert (figures.cost is None and told == 0) or figures.cost.total == told
        await self.look_at_the_command_line(figures, (await self.lines())[:2])
        calls = {}
        for name, label, key in self.done:
            assert calls.setdefault(key, (name, label)) == (name, label)
        writes = [key for name, _, key in self.done if name in ("pay", "sign")]
        assert len(writes) - len(set(writes)) <= self.said_again

    async def look_at_the_command_line(self, figures, lines) -> None:
        with TemporaryDirectory() as folder:
            where = "--json", "--journal", str(Path(folder) / "runs.db")
            async with SqliteJournal(where[-1]) as file:
                await import_runs(file, io.BytesIO(b"".join([line async for line in export_runs(self.journal)])))
            told = await asyncio.to_thread(printed, "stats", *where)
            assert (told["runs"], told["ended"]) == (figures.runs, figures.ended)
            if figures.cost is not None and figures.cost.total is not None:
                assert Decimal(told["cost"]["total"]) == figures.cost.total
            for line in lines:
                spending = await self.agent().spending(line.run_id)
                costs = await asyncio.to_thread(printed, "costs", line.run_id, *where)
                assert Decimal(costs["total"]["cost"] or 0) == (spending.total.cost or 0)

    async def is_told(self, line: RunInfo) -> bool:
        """Whether a run is one at the top, or works for one that is there."""
        known = {one.run_id: one for one in await self.journal.list(1000)}
        while (link := line.parent) is not None:
            above = known.get(link.run_id)
            if above is None or (above.fork is None and above.started_at != link.began):
                return False
            line = above
        return True


def printed(*command: str):
    with redirect_stdout(io.StringIO()) as out:
        assert run(command) == 0
    return json.loads(out.getvalue())


@examples(40, shrink=False)
@given(st.integers(0, 2**32))
def test_a_name_is_used_again_as_if_for_the_first_time(seed):
    asyncio.run(Shop(random.Random(seed)).carry_out())
