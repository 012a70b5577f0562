"""The journal in memory, beyond what every journal promises."""

from collections.abc import Callable

import pytest

from treadle.journal import MemoryJournal
from treadle.kernel.events import RunStarted

pytestmark = pytest.mark.anyio


async def test_memory_keeps_the_objects_themselves(started: Callable[..., RunStarted]) -> None:
    journal, event = MemoryJournal(), started()
    await journal.append("r", 0, [event])
    assert (await journal.read("r"))[0] is event


async def test_a_memory_append_does_not_wait(started: Callable[..., RunStarted]) -> None:
    with pytest.raises(StopIteration):
        MemoryJournal().append("r", 0, [started()]).send(None)
