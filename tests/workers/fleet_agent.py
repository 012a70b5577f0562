"""The agent of the fleet: each of its runs has two effects, a row each in a table, and then answers.

How long its model and its effects take is said in the environment, as is the database.
"""

import asyncio
import os

import psycopg

from treadle import Agent, Limits, ToolContext, tool
from treadle.kernel.messages import UserMessage
from treadle.testing import ScriptedModel

SECONDS = float(os.environ.get("FLEET_SECONDS", "0.1"))
EFFECTS = 2


@tool(effect="write")
async def effect(number: int, context: ToolContext) -> str:
    """Leaves a row for each time that it happens."""
    async with await psycopg.AsyncConnection.connect(os.environ["FLEET_URL"], autocommit=True) as connection:
        await connection.execute(
            "INSERT INTO effects (run_id, number, pid) VALUES (%s, %s, %s)", [context.run_id, number, os.getpid()]
        )
    await asyncio.sleep(SECONDS / 2)
    return "done"


async def says(request):
    """The next of two effects, then an answer; of one whose outcome is unknown it does not ask again."""
    await asyncio.sleep(SECONDS)
    asked = sum(
        not isinstance(message, UserMessage) and bool(getattr(message, "calls", ())) for message in request.messages
    )
    return [("effect", {"number": asked})] if asked < EFFECTS else "both are done"


agent = Agent(
    ScriptedModel(says, keep_requests=False),
    tools=[effect],
    name="fleet",
    on_interrupted="tell",
    limits=Limits(seconds=600),
)
