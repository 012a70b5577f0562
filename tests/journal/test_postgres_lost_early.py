"""A connection that is lost while it is made ready is one that is lost: it is made again, and nothing is told of it."""

from collections.abc import Callable, Iterator

import pytest
from cuttable_wire import Wire
from postgres_server import Server

from treadle.journal import JournalUnavailable, PostgresJournal
from treadle.journal.postgres import reader
from treadle.kernel.events import RunStarted

pytestmark = pytest.mark.anyio


@pytest.fixture
def wire(server: Server) -> Iterator[Wire]:
    made = Wire(server.port)
    yield made
    made.close()


def made_ready(times: float) -> Callable[[bytes], str]:
    """Cuts so many connections where their settings are made."""
    left = [times]

    def cut(said: bytes) -> str:
        if b"set_config" in said and left[0]:
            left[0] -= 1
            return "before"
        return ""

    return cut


@pytest.mark.parametrize("times", [1, 3])
async def test_a_connection_that_is_lost_while_it_is_made_ready_is_made_again(
    server: Server, schema: str, wire: Wire, started: Callable[..., RunStarted], times: int
) -> None:
    dsn = f"{server.dsn()} port={wire.port}"
    wire.cut = made_ready(times)
    async with PostgresJournal(dsn, schema=schema) as journal:
        await journal.append("r", 0, [started()])
    wire.cut = made_ready(times)
    async with PostgresJournal(dsn, schema=schema) as journal:
        assert await journal.read("r") == [started()]
    assert wire.cuts == ["before"] * (2 * times)


async def test_one_that_is_lost_each_time_is_told_of_after_a_while_and_not_asked_for_without_a_pause(
    server: Server, schema: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "PATIENCE", 1.0)
    wire.cut = made_ready(float("inf"))
    async with PostgresJournal(f"{server.dsn()} port={wire.port}", schema=schema) as journal:
        with pytest.raises(JournalUnavailable, match=r"cannot be used \(.*connection"):
            await journal.list()
    assert 2 <= len(wire.cuts) < 30
