"""Keyed: a call that comes with a key is one run, however often it is asked for.

A client that did not hear what came of a call asks again, under the same key. The run is named after the key, so it is
found in the journal, by another process too: what came of it is told, and it is gone on with where a process died.
"""

import json
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Final

from msgspec.structs import replace

from treadle.agent import Agent
from treadle.drivers.beginning import Asked, begun
from treadle.drivers.checks import OnEvent
from treadle.drivers.dispatch import carried
from treadle.drivers.drive import CALLED, driven
from treadle.drivers.taking_up import GoingOn
from treadle.journal import JournalConflict, RunHeld, UnknownRun
from treadle.journal.ones_own import read_of, standing_of
from treadle.journal.redaction import as_kept
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, ModelReplied, RunPaused, RunStarted
from treadle.kernel.messages import UserMessage
from treadle.mcp.naming import KEY
from treadle.mcp.relay import called
from treadle.result import RunResult

_LONGEST: Final = 1000


def key_in(meta: Any) -> str | None:
    """The key that a call came with; None if with none.

    Raises:
        Misuse: it is no text that could be one.
    """
    key = dict(meta or {}).get(KEY)
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= _LONGEST:
        raise Misuse(f"{KEY} is a text of at most {_LONGEST} characters")
    return key


async def run_once(
    agent: Agent[Any, Any], said: str, key: str | None, on_event: OnEvent, *, one_call: bool
) -> RunResult[Any]:
    """The run of a call: a new one, or with a key that is known, what came of it. Without a journal no key is known.

    Args:
        agent: whose run it is.
        said: what the run is asked.
        key: the call's.
        on_event: watches it.
        one_call: whether it is one call of a tool, and not a task.

    Raises:
        Misuse: the key is that of another call, or the call is under way.
    """
    asked = Asked(said, on_event=on_event, one_step=one_call, origin=CALLED if one_call else "")
    if key is None or agent.journal is None:
        return await driven(await begun(agent._config, asked))
    named = sha256(json.dumps([agent.name, key]).encode()).hexdigest()
    run_id = f"mcp-{named[:24]}"
    question = UserMessage(said)
    kept = as_kept(question, getattr(agent.journal, "redact", None))
    try:
        events = await read_of(agent.journal, run_id)
    except UnknownRun:
        try:
            return await driven(await begun(agent._config, asked._replace(run_id=run_id)))
        except JournalConflict as error:
            raise _under_way(run_id) from error
    first = next(one for one in standing_of(events).messages if isinstance(one, UserMessage))
    if first.text != kept.text:
        raise Misuse(
            f"the key is that of another call (run {run_id}): nothing was done. Each call has a key of its own"
        )
    # What has paused goes on with what is written where a person decided on it, who was shown that.
    paused = any(isinstance(event, RunPaused) for event in events)
    return await known(agent, run_id, on_event, in_words_of(said) if one_call and not paused else tuple)


async def known(
    agent: Agent[Any, Any],
    run_id: str,
    on_event: OnEvent,
    as_said: Callable[[Sequence[Event]], Sequence[Event]] = tuple,
) -> RunResult[Any]:
    """What came of a run, which is gone on with if the process died that had it.

    Args:
        agent: whose run it is.
        run_id: the run.
        on_event: watches it.
        as_said: gives back to its events what their journal redacted.

    Raises:
        Misuse: it is under way.
        UnknownRun: the journal has no such run.
    """
    try:
        return await carried(agent._config, run_id, GoingOn(on_event=on_event, as_said=as_said))
    except RunHeld as error:
        raise _under_way(run_id) from error


def in_words_of(said: str) -> Callable[[Sequence[Event]], Sequence[Event]]:
    """Gives the events of the run of one call its arguments back, as whoever asked for it says them.

    It would else make the call with what a journal that redacts put in place of them.
    """
    return partial(_as_said, UserMessage(said))


def _as_said(question: UserMessage, events: Sequence[Event]) -> Sequence[Event]:
    call, told = called(question), list[Event]()
    for event in events:
        match event:
            case RunStarted(messages=messages):
                said = [question if isinstance(one, UserMessage) else one for one in messages]
                told.append(replace(event, messages=tuple(said)))
            case ModelReplied():
                told.append(replace(event, message=call))
            case _:
                told.append(event)
    return told


def _under_way(run_id: str) -> Misuse:
    return Misuse(f"this call is under way already, as run {run_id}; it is not made a second time. Ask again later")
