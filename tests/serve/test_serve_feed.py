"""Whenever a client comes, wherever it goes on, and however slowly it reads: it gets each event once, in order."""

import asyncio
from types import SimpleNamespace

import pytest
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle import MemoryJournal
from treadle.kernel.events import MessageAdded, NudgeGiven, RunFinished, RunPaused, RunStarted
from treadle.kernel.messages import UserMessage
from treadle.kernel.stop import Stop
from treadle.models import TextDelta
from treadle.serve import feed
from treadle.serve.feed import Hearing, Numbered
from treadle.serve.live import Carried, Live

WAITING = Stop("waiting", "for somebody")

batches = st.lists(st.integers(1, 9), min_size=1, max_size=8)
clients = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 45), st.integers(0, 5), st.booleans()), min_size=1, max_size=5
)
"""Of each client: after how many batches it comes, from where it goes on, how slowly it reads, and whether it ends at a
pause."""


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(feed, "LATEST", 4)
    monkeypatch.setattr(feed, "TOGETHER", 3)


@settings(max_examples=deep(20))
@given(batches, clients, st.sets(st.integers(1, 60)), st.booleans())
def test_each_client_gets_each_event_once_in_order(sizes, coming, pauses, live):
    asyncio.run(followed(sizes, coming, pauses, live))


async def followed(sizes, coming, pauses, live):
    journal = MemoryJournal()
    following = Live(journal, runs=1, grace=1)
    hearing = Hearing()
    first = RunStarted("r", (UserMessage("go"),), 1, at=1.0)
    await journal.append("r", 0, [first])
    if live:
        hearing.hear(first)
    async with following.running(), asyncio.TaskGroup() as group:
        task = asyncio.current_task()
        if live:
            following._driven["r"] = Carried(SimpleNamespace(driven=SimpleNamespace()), hearing, task)
        reading, count = [], 1
        for number, size in enumerate([*sizes, 0]):
            reading += [
                (one, group.create_task(read(following, one))) for one in coming if min(one[0], len(sizes)) == number
            ]
            events = [_event(count + at, pauses) for at in range(size)] or [RunFinished(Stop("answered"), at=99.0)]
            for event in events:
                if live:
                    hearing.hear(event)
                    hearing.hear(TextDelta(f"{count}"))
                await journal.append("r", count, [event])
                count += 1
            for _ in range(3):
                await asyncio.sleep(0)
        following._driven.clear()
    stored = await journal.read("r")
    for (_, after, _, until_pause), task in reading:
        numbers = [one.number for one in task.result() if isinstance(one, Numbered)]
        assert numbers == list(range(after + 1, after + 1 + len(numbers)))
        assert all(one.event == stored[one.number - 1] for one in task.result() if isinstance(one, Numbered))
        if not until_pause:
            assert len(numbers) == max(0, len(stored) - after)
        elif numbers:
            assert isinstance(stored[numbers[-1] - 1], RunPaused | RunFinished)
        pieces = [one for one in task.result() if not isinstance(one, Numbered)]
        assert [one.after for one in pieces] == sorted(one.after for one in pieces)
        assert len({one.event.text for one in pieces}) == len(pieces)


def _event(number, pauses):
    if number in pauses:
        return RunPaused(WAITING, at=float(number))
    return NudgeGiven("x", at=float(number)) if number % 2 else MessageAdded(UserMessage("x"), at=float(number))


async def read(following, client):
    _, after, slow, until_pause = client
    found = []
    async for batch in following.follow("r", after, pieces=True, until_pause=until_pause):
        found += batch
        for _ in range(slow):
            await asyncio.sleep(0)
    return found
