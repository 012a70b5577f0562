"""Told effect: what a call that waits would do to the world, as its tool says, or else the journal of its run."""

from collections.abc import Mapping

from treadle.drivers.below import agents_in
from treadle.drivers.unsettled import unsettled
from treadle.journal import Journal, JournalDamaged, UnknownRun
from treadle.journal.ones_own import read_of, standing_of
from treadle.kernel.state import RunState
from treadle.result import Pending
from treadle.tools import Tool


async def maker_of(one: Pending, state: RunState, journal: Journal | None) -> RunState | None:
    """The run that made a call which waits in that of `state`: itself, or one that may be several below.

    None if nothing tells (any more): there is no journal, or the run below is gone, or has gone on.
    """
    made, path = one, one.call_id
    while made.run_id:
        if journal is None:
            return None
        try:
            state = standing_of(await read_of(journal, made.run_id))
        except (UnknownRun, JournalDamaged):
            return None
        # Of a call further below, journals tell the run that made it, and those of earlier versions the run next below.
        waiting, inner = {each.call_id: each for each in await unsettled(state, journal)}, None
        while path and inner is None:
            path = path.partition("/")[2]
            inner = waiting.get(path)
        if inner is None:
            return None
        made = inner
    return state


def told_effect(maker: RunState, name: str) -> str:
    """What the journal of the run that makes it says that a call of tool `name` does; empty if it does not know."""
    # It names the tools that say that they write; of the others it knows those of servers.
    effect = "write" if name in maker.started.writes else ""
    return next((listed.effect for listed in maker.stock.now if listed.name == name), effect)


def tool_below(tools: Mapping[str, Tool], agent: str, name: str) -> Tool | None:
    """The tool `name` of the agent below that is called `agent`; None if there is none."""
    for _, below in agents_in(tools):
        config = below.config
        found = config.tools.get(name) if config.name == agent else None
        found = found or tool_below(config.tools, agent, name)
        if found is not None:
            return found
    return None
