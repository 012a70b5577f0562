"""The same with pydantic-ai on DBOS: a step that was cut off is run again, and looks in the ledger itself."""

import asyncio
import os
import sys
from pathlib import Path

from dbos import DBOS
from played import by_results
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability

LEDGER, POWER_CUT_AT = Path("ledger.txt"), "7.00 EUR" if "--power-cut" in sys.argv else None
AMOUNTS = ("12.50 EUR", "7.00 EUR", "3.10 EUR")
turns = [*(("book", {"amount": amount}) for amount in AMOUNTS), "All are booked."]
model = by_results(turns)

DBOS(config={"name": "nightly", "system_database_url": "sqlite:///nightly.sqlite", "run_admin_server": False})
agent = Agent(model, name="nightly", capabilities=[DBOSDurability()])


@agent.tool_plain
@DBOS.step()
async def book(amount: str) -> str:
    """Books an amount, such as "12.50 EUR", in the ledger."""
    key = f"{DBOS.workflow_id}-{DBOS.step_id}"
    lines = LEDGER.read_text().splitlines() if LEDGER.exists() else []
    if any(line.endswith(key) for line in lines):
        return "booked"
    with LEDGER.open("a") as ledger:
        ledger.write(f"{amount} {key}\n")
    if amount == POWER_CUT_AT:
        os._exit(1)
    return "booked"


@DBOS.workflow()
async def booked() -> str:
    return (await agent.run("Book what came in today.")).output


async def job() -> None:
    DBOS.launch()
    left = await DBOS.list_workflows_async(status=["PENDING", "ENQUEUED"])
    if left:
        handle = await DBOS.retrieve_workflow_async(left[0].workflow_id)
    else:
        handle = await DBOS.start_workflow_async(booked)
    print(await handle.get_result())
    DBOS.destroy()


# --- the program ends here; what follows plays two nights

if "--job" in sys.argv:
    asyncio.run(job())
else:
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, str(Path(__file__).resolve()), "--job"]
        print("first night: ended with", subprocess.run([*program, "--power-cut"], cwd=folder).returncode)
        done = subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=60)
        print("second night:", done.stdout.strip().splitlines()[-1:] or done.stderr[-2000:])
        amounts = [line.split()[0] for line in Path(folder, LEDGER).read_text().splitlines()]
        print("in the ledger:", ", ".join(amounts))
