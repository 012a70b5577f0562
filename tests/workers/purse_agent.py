"""An agent whose runs share a purse a user: each makes one call, which may cost far more than it does.

Where the purses are and what each has is said in the environment, and where each call leaves its process's number.
"""

import asyncio
import os

from treadle import Agent, Budget, Price, Usage
from treadle.kernel.messages import ModelSettings
from treadle.testing import ScriptedModel


def note():
    """Leaves the number of this process."""
    with open(os.environ["PURSE_PIDS"], "a") as pids:
        print(os.getpid(), file=pids)


async def says(request):
    """An answer, after a moment."""
    note()
    await asyncio.sleep(float(os.environ.get("PURSE_SECONDS", "0.02")))
    return "fine"


agent = Agent(
    ScriptedModel(says, usage=Usage(20, 10), price=Price(input=1, output=1), keep_requests=False),
    name="fleet",
    settings=ModelSettings(max_tokens=1000),
    budget=Budget(usd=float(os.environ["PURSE_USD"]), per="user", path=os.environ["PURSE_PATH"]),
)
