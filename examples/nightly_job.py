"""A nightly job that dies in the middle of a write: started again, it goes on, and books nothing twice.

The first night ends in the middle of a booking, as a power cut would end it. The second goes on with what the journal
has, and the tool itself finds out in the ledger whether the booking that was under way had been made.
"""

import asyncio
import os
import sys
from pathlib import Path

from treadle import Agent, Done, NotDone, SqliteJournal, ToolContext, tool
from treadle.testing import ScriptedModel

LEDGER, POWER_CUT_AT = Path("ledger.txt"), "7.00 EUR" if "--power-cut" in sys.argv else None
AMOUNTS = ("12.50 EUR", "7.00 EUR", "3.10 EUR")
turns = [*([("book", {"amount": amount})] for amount in AMOUNTS), "All are booked."]
model = ScriptedModel(lambda request: turns[request.step])


def was_it_booked(context: ToolContext) -> Done | NotDone:
    """Looks whether the ledger has the call that was under way when a process died."""
    lines = LEDGER.read_text().splitlines() if LEDGER.exists() else []
    return Done("booked") if any(line.endswith(context.idempotency_key) for line in lines) else NotDone()


@tool(effect="write", reconcile=was_it_booked)
def book(amount: str, context: ToolContext) -> str:
    """Books an amount, such as "12.50 EUR", in the ledger."""
    with LEDGER.open("a") as ledger:
        ledger.write(f"{amount} {context.idempotency_key}\n")
    if amount == POWER_CUT_AT:
        os._exit(1)
    return "booked"


async def job() -> None:
    async with SqliteJournal("nightly.db") as journal:
        agent = Agent(model, tools=[book], journal=journal)
        left = [run.run_id for run in await journal.list() if run.status != "finished"]
        result = await (agent.resume(left[0]) if left else agent.run("Book what came in today."))
        print(result.text)


# --- the program ends here; what follows plays two nights

if "--job" in sys.argv:
    asyncio.run(job())
else:
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, str(Path(__file__).resolve()), "--job"]
        print("first night: ended with", subprocess.run([*program, "--power-cut"], cwd=folder).returncode)
        print("second night:", subprocess.run(program, cwd=folder, capture_output=True, text=True).stdout.strip())
        amounts = [line.split()[0] for line in Path(folder, LEDGER).read_text().splitlines()]
        print("in the ledger:", ", ".join(amounts))
