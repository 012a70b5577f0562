"""Keyed: a call that comes with a key is one run, however often it is asked for.

A client that did not hear what came of a call asks again, under the same key. The run is named after the key, so it is
found in the journal, by another process too: what came of it is told, and it is gone on with where a process died.
"""

import json
from hashlib import sha256
from typing import Any, Final

from treadle.agent import Agent
from treadle.drivers.beginning import Asked, begun
from treadle.drivers.checks import OnEvent
from treadle.drivers.drive import CALLED, driven
from treadle.journal import JournalConflict, RunHeld, UnknownRun
from treadle.journal.redaction import as_kept
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import UserMessage
from treadle.mcp.naming import KEY
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
    try:
        result = await known(agent, run_id, on_event)
    except UnknownRun:
        try:
            return await driven(await begun(agent._config, asked._replace(run_id=run_id)))
        except JournalConflict as error:
            raise _under_way(run_id) from error
    first = next(one for one in result.messages if isinstance(one, UserMessage))
    if first.text != as_kept(UserMessage(said), getattr(agent.journal, "redact", None)).text:
        raise Misuse(
            f"the key is that of another call (run {run_id}): nothing was done. Each call has a key of its own"
        )
    return result


async def known(agent: Agent[Any, Any], run_id: str, on_event: OnEvent) -> RunResult[Any]:
    """What came of a run, which is gone on with if the process died that had it.

    Raises:
        Misuse: it is under way.
        UnknownRun: the journal has no such run.
    """
    try:
        return await agent.drive(run_id, on_event=on_event)
    except RunHeld as error:
        raise _under_way(run_id) from error


def _under_way(run_id: str) -> Misuse:
    return Misuse(f"this call is under way already, as run {run_id}; it is not made a second time. Ask again later")
