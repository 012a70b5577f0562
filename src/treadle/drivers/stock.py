"""Stock: what an agent's servers of tools have, asked before each step, so that a change takes effect between steps.

What they say is an event of the run: who resumes or replays it goes by that, and starts no server for it.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from treadle.drivers.listing import with_listed
from treadle.drivers.run import Run
from treadle.kernel.events import ToolsListed
from treadle.tools.server import ToolServer


async def take_stock(run: Run) -> bool:
    """Records what the servers of `run` list, if that is not what it knows; whether it was not.

    Raises:
        ServerFailed: one of them cannot say, and has not said before in this run.
    """
    servers = run.config.servers
    if not servers:
        return False
    known, first = run.state.listed, run.state.first_listed
    found = [one for one in known if not one.server]
    for server in servers:
        found += await server.listed(
            [one for one in known if one.server == server.name], [one for one in first if one.server == server.name]
        )
    if tuple(found) == known:
        return False
    run.feed(ToolsListed(tuple(found), with_listed(run.config, found).tool_tokens))
    return True


@asynccontextmanager
async def serving(servers: Sequence[ToolServer]) -> AsyncIterator[None]:
    """Keeps each of these running, from its first use on, as long as this is entered."""
    async with AsyncExitStack() as held:
        for server in servers:
            await held.enter_async_context(server.held())
        yield
