"""Replay: a run carried out again from its journal, with no model, no tool and no network.

What came from outside (replies, failures, results, decisions, messages) is taken where it came. What the agent decided
is decided anew at the same place, and held against what was recorded. Without an agent, that is what the journal alone
lets the loop decide (`bare.py`). The first event that comes out otherwise ends the replay of that run.
"""

from collections.abc import Sequence
from typing import Any

from treadle.drivers.configuration import Configuration
from treadle.journal import Journal
from treadle.journal.ones_own import check_journal, read_of
from treadle.kernel.errors import Misuse
from treadle.kernel.events import (
    Event,
    RunForked,
    RunStarted,
)
from treadle.kernel.fold import fold_all
from treadle.kernel.stop import Limits
from treadle.timetravel.anew import Anew
from treadle.timetravel.player import Player
from treadle.timetravel.replayed import Replay, ReplayDiffers


async def replay(journal: Journal, run_id: str) -> Replay:
    """Replays a run from its journal alone, without its agent.

    It shows that the events are whole and in an order that can be, that the accounts and the history follow from them,
    and that the limits, the watch for progress and the rules of the loop lead to each step, pause and end. What an
    agent's own functions would say stays as they said it: conditions, `prepare_step`, context policies, rules on calls.

    Raises:
        UnknownRun: the journal has no such run.
        JournalDamaged: its events are not what was stored.
        Misuse: it was given no journal.
    """
    check_journal("replay", journal)
    events = await read_of(journal, run_id)
    return await replayed(events, journal)


async def replayed(
    events: Sequence[Event],
    journal: Journal | None,
    config: Configuration | None = None,
    *,
    deps: Any = None,
    limits: Limits | None = None,
    recorded_limits: bool = False,
) -> Replay:
    """Replays the run of `events`, and the runs below it that `journal` has.

    Raises:
        Misuse: it is to be replayed with an agent, and works for another run, under that one's rules.

    Args:
        events: all events of the run.
        journal: where those of the runs below it are.
        config: the agent that decides anew; None for what the journal alone tells.
        deps: what its functions are given as dependencies.
        limits: in place of the agent's; `recorded_limits` for those that the run began with.
    """
    first = events[0]
    forked = any(isinstance(event, RunForked) for event in events)
    parent = first.parent if isinstance(first, RunStarted) and not forked else None
    if config is not None and parent is not None:
        raise Misuse(
            f"run {fold_all(events).run_id} works for run {parent.run_id}, and is replayed with it: name that one"
        )
    anew = None if config is None else Anew(config, deps, redact=getattr(journal, "redact", None))
    return await Player(journal, anew, limits, recorded_limits).play(events)


__all__ = ["Replay", "ReplayDiffers", "replay", "replayed"]
