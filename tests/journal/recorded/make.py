"""Makes the fixtures of a version: a journal file, and beside it what its runs are, a run a line.

`python tests/journal/recorded/make.py version-3`, once, with the code that first writes that version.
"""

import asyncio
import sys
from pathlib import Path

from treadle import Agent, Limits, Price, SqliteJournal, tool
from treadle.kernel.events import NudgeGiven, RunForked, encode_event
from treadle.kernel.messages import Usage
from treadle.testing import ScriptedModel, Turn

LEASE = " ".join(f"Article {number}: the books are kept for {number} years." for number in range(1, 160))


@tool(effect="read")
def contract(name: str) -> str:
    """Reads a contract."""
    return f"{name}: {LEASE}"


@tool(effect="write", needs_approval=True)
def pay(amount: int) -> str:
    """Pays an amount."""
    return f"paid {amount}"


def model(*turns: Turn) -> ScriptedModel:
    return ScriptedModel(turns, usage=Usage(100, 20), price=Price(3, 15))


async def record(path: Path) -> None:
    async with SqliteJournal(path) as journal:
        reads = ("I read it.", [("contract", {"name": "lease"})])
        clerk = Agent(model(reads, "79 articles."), name="clerk", tools=[contract], journal=journal)
        await clerk.run("How many articles does the lease have?")
        payer = Agent(model([("pay", {"amount": 5})]), name="payer", tools=[pay], journal=journal)
        await payer.run("Pay 5, please.")
        below = Agent(model(reads, "The lease has 79."), name="reader", tools=[contract])
        asks = [("reader", {"task": "the lease"})]
        above = Agent(model(asks, "79."), name="boss", tools=[below.as_tool()], journal=journal)
        await above.run("Ask for the lease.")
        short = Agent(
            model(reads), name="short", tools=[contract], limits=Limits(steps=1), journal=journal, on_limit="stop"
        )
        await short.run("Read all.")
        stopped = Agent(model(reads), name="killed", tools=[contract], journal=journal).start("Was it killed?")
        await stopped.commit()
        fork = RunForked("a-fork", at=stopped.state.started.at + 1)
        await journal.fork(stopped.run_id, 1, "a-fork", [fork, NudgeGiven(at=fork.at, text=LEASE)])
        with path.with_suffix(".jsonl").open("wb") as expected:
            for line in reversed(await journal.list()):
                expected.write(b"\n".join(map(encode_event, await journal.read(line.run_id))) + b"\n")


if __name__ == "__main__":
    asyncio.run(record(Path(__file__).with_name(f"{sys.argv[1]}.db")))
