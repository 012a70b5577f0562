"""An agent whose tool takes long where a file says so, and leaves a line for each time that it is called."""

import asyncio
import os
from pathlib import Path

from treadle import Agent, tool
from treadle.kernel.messages import UserMessage
from treadle.testing import ScriptedModel

FOLDER = Path(os.environ.get("SLOW_FOLDER", "."))


def earlier() -> str:
    """The lines that there are."""
    calls = FOLDER / "calls"
    return calls.read_text() if calls.exists() else ""


async def work(name: str) -> str:
    """Leaves a line, and takes a minute as long as the file `slow` is there."""
    (FOLDER / "calls").write_text(f"{earlier()}{name}\n")
    if (FOLDER / "slow").exists():
        await asyncio.sleep(60)
    return "done"


@tool(effect="idempotent")
async def look() -> str:
    """May be called again."""
    return await work("look")


def says(request):
    """Calls what it is told to, and then says so."""
    last = request.messages[-1]
    return [(last.text, {})] if isinstance(last, UserMessage) else "It is done."


agent = Agent(ScriptedModel(says, keep_requests=False), tools=[look], name="slow")
