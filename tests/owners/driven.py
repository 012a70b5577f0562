"""A process that drives one run, for tests of who owns it: python driven.py JOURNAL LEDGER WORLD [SECONDS]

Each effect is a line of the ledger, on the disk before the tool goes on; a tool that waits does so until a file named
"go" stands beside the ledger. What became of the run is the last line.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

from treadle import Agent, Budget, PostgresJournal, SqliteJournal, ToolContext, Usage, tool
from treadle.journal import JournalError
from treadle.testing import ScriptedModel

LEDGER = Path(sys.argv[2]) if len(sys.argv) > 2 else Path("ledger")


def note(line: str) -> None:
    with open(LEDGER, "a") as file:
        file.write(f"{os.getpid()} {line}\n")
        file.flush()
        os.fsync(file.fileno())


def go_on() -> bool:
    return (LEDGER.parent / "go").exists()


@tool(effect="idempotent")
async def waits(n: int, context: ToolContext) -> str:
    """Waits for a word."""
    note(f"waits {n} {context.idempotency_key}")
    while not go_on():  # noqa: ASYNC110 - another process says so
        await asyncio.sleep(0.01)
    note(f"waited {n}")
    return f"waited {n}"


@tool(effect="idempotent", thread=False)
def blocks(n: int) -> str:
    """Keeps the event loop from doing anything else until it is told to go on."""
    note(f"blocks {n}")
    while not go_on():
        time.sleep(0.01)
    return f"blocked {n}"


@tool(effect="write")
async def pays(n: int, context: ToolContext) -> str:
    """Does something that must not be done twice."""
    note(f"pays {n} {context.idempotency_key}")
    return f"paid {n}"


@tool(effect="read")
async def counts(n: int) -> str:
    """Counts."""
    return f"counted {n}"


def said(name: str, *script):
    """A model that notes each of its calls."""

    def reply(request):
        note(f"model {name} {request.step}")
        return script[min(request.step, len(script) - 1)]

    return ScriptedModel(reply, name=name)


def purse(address: str) -> Budget:
    """The budget of runs that spend, in the same place as their journal."""
    name = str(LEDGER)
    if address.startswith("/"):
        return Budget(tokens=1_000_000, name=name, path=address + ".spend")
    return Budget(tokens=1_000_000, name=name, path=address, schema="spenders")


def stopping_at(budget: Budget, number: int) -> Budget:
    """Has this process wait before it changes the budget for so many times, until it is told to go on."""
    change, changes = budget.ledger.store.change, 0

    def waiting(*given):
        nonlocal changes
        changes += 1
        if changes == number:
            note("changes the budget")
            while not go_on():
                time.sleep(0.01)
        return change(*given)

    budget.ledger.store.change = waiting
    return budget


class Nowhere:
    """A queue that has whoever asks drive the run."""

    async def accept(self, agent):
        pass

    async def dispatch(self, order):
        pass


def spender(journal, budget: Budget) -> Agent:
    """An agent of three calls, under a budget."""
    script = ([("counts", {"n": 1})], [("counts", {"n": 2})], "done")
    model = ScriptedModel(lambda request: script[request.step], usage=Usage(2000, 1000))
    return Agent(model, tools=[counts], journal=journal, budget=budget, name="spender")


def agent(world: str, journal) -> Agent:
    """The agent of a world."""
    if world == "alone":
        script = ([("waits", {"n": 1})], [("pays", {"n": 2})], "done")
        return Agent(said("alone", *script), tools=[waits, pays], journal=journal, name="alone")
    if world == "blocked":
        script = ([("blocks", {"n": 1})], [("pays", {"n": 2})], "done")
        return Agent(said("blocked", *script), tools=[blocks, pays], journal=journal, name="blocked")
    below = Agent(
        said("below", [("waits", {"n": 1}), ("pays", {"n": 1})], [("pays", {"n": 2})], "below done"),
        tools=[waits, pays],
        name="below",
        journal=journal,
    )
    script = ([("below", {"task": "work"}), ("pays", {"n": 3})], [("pays", {"n": 4})], "done")
    return Agent(said("above", *script), tools=[below.as_tool("below"), pays], journal=journal, name="above")


def journal_at(address: str, seconds: float = 15.0, schema: str = "owners") -> SqliteJournal | PostgresJournal:
    """The journal in a file, or in a database."""
    if address.startswith("/"):
        return SqliteJournal(address, lease=seconds)
    return PostgresJournal(address, schema=schema, lease=seconds)


async def main() -> None:
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 15.0
    kind, _, number = sys.argv[3].partition(" ")
    async with journal_at(sys.argv[1], seconds, "spenders" if number else "owners") as journal:
        try:
            if number:
                one = spender(journal, stopping_at(purse(sys.argv[1]), int(number)))
                result = await one.drive(await one.submit("go", to=Nowhere()))
            else:
                result = await agent(kind, journal).run("go", on_event=lambda event: None)
        except JournalError as error:
            note(f"stopped: {type(error).__name__}: {error}")
        else:
            note(f"ended: {result.stop.reason}")


if __name__ == "__main__":
    asyncio.run(main())
