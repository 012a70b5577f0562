"""Whatever is done to it, a journal gives the answers that `MemoryJournal` gives."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from treadle.journal.conformance.samples import FINISHED, PAUSED, RESUMED, in_a_loop, note, started
from treadle.journal.errors import JournalConflict, UnknownRun
from treadle.journal.memory import MemoryJournal
from treadle.journal.port import Journal
from treadle.kernel.events import Event

RUN_IDS = ("a", "b", "ab", "", "'; --", "ä\x00", "%")
TIMES = (0.0, 1.0, 1.5, 2e9)


class Agreeing:
    """A random walk over both; the seeds make each the same every time."""

    @pytest.mark.parametrize("seed", range(8))
    @in_a_loop
    async def test_it_answers_as_the_journal_in_memory_does(self, journal: Journal, seed: int) -> None:
        chance, model = random.Random(seed), MemoryJournal()  # noqa: S311 - no secret
        lengths: dict[str, int] = {}

        async def both(ask: Callable[[Journal], Awaitable[Any]]) -> Any:
            expected, found = await _outcome(ask, model), await _outcome(ask, journal)
            assert found == expected
            return found

        for _ in range(60):
            run_id, count = chance.choice(RUN_IDS), lengths.get(run_id := chance.choice(RUN_IDS), 0)
            match chance.choice(("append", "append", "append", "guess", "read", "delete", "list")):
                case "append" | "guess" as how:
                    seq = count if how == "append" else chance.randrange(8)
                    first = [started(run_id, at=chance.choice(TIMES))] if seq == 0 else []
                    events = [*first, *_some(chance)]
                    if await both(lambda one: one.append(run_id, seq, events)) is None:  # noqa: B023 - asked at once
                        lengths[run_id] = seq + len(events)
                case "read":
                    start = chance.randrange(-1, 8)
                    await both(lambda one: one.read(run_id, start))  # noqa: B023 - asked at once
                case "delete":
                    known = lengths.pop(run_id, None)
                    assert await both(lambda one: one.delete(run_id)) is (known is not None)  # noqa: B023 - asked at once
                case _:
                    limit = chance.randrange(4)
                    page = await both(lambda one: one.list(limit))  # noqa: B023 - asked at once
                    while page:
                        page = await both(lambda one: one.list(limit, page[-1]))  # noqa: B023 - asked at once
            lines = await both(lambda one: one.list())
            assert {line.run_id: line.events for line in lines} == lengths


def _some(chance: random.Random) -> list[Event]:
    kinds: tuple[Event, ...] = (note("a"), note("\x00ä"), PAUSED, RESUMED, FINISHED)
    return [chance.choice(kinds) for _ in range(chance.randrange(4))]


async def _outcome(ask: Callable[[Journal], Awaitable[Any]], journal: Journal) -> Any:
    try:
        return await ask(journal)
    except JournalConflict as error:
        return error.run_id, error.expected, error.found
    except UnknownRun as error:
        return error.run_id, error.nearest
    except ValueError as error:
        return str(error)
