"""Times: an instant is the same instant, and lies on the same day, whoever looks from wherever."""

import time
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from treadle.analyst import AnalystError

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
ZONED = ("csv", "json", "sqlite", "duckdb", "parquet", "frame", "postgres", "alchemy-postgres", "alchemy-sqlite")
SERVER = ("postgres", "alchemy-postgres")

# Midnight in UTC, midnight in Central Europe (an hour earlier), and one instant in two spellings.
INSTANTS = [
    ("2024-02-01 00:00:00+00", 1),
    ("2024-02-01 00:00:00+01", 2),
    ("2024-01-31 23:30:00+00", 4),
    ("2024-02-01 00:30:00+01", 8),
]
DAYS = {date(2024, 2, 1): D(1), date(2024, 1, 31): D(14)}
MOMENTS = {datetime(2024, 2, 1): D(1), datetime(2024, 1, 31, 23): D(2), datetime(2024, 1, 31, 23, 30): D(12)}


@pytest.fixture(params=["UTC", "Pacific/Kiritimati"])
def elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, world: Any) -> Iterator[str]:
    """The process and, where there is one, the server's default and the client's wish are in that time zone."""
    zone = request.param
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    yield zone
    monkeypatch.undo()
    time.tzset()


def move(world: Any, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    """Gives the database's sessions another time zone, date style and spelling of floats."""
    for setting in (f"timezone = '{zone}'", "datestyle = 'German, DMY'", "extra_float_digits = -4"):
        world.server.execute(f"ALTER DATABASE postgres SET {setting}")
    monkeypatch.setenv("PGTZ", zone)


@pytest.fixture
def moved(world: Any, elsewhere: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Any]:
    server = request.node.callspec.params.get("engine") in SERVER
    yield lambda: move(world, monkeypatch, elsewhere) if server else None
    if server:
        world.server.execute("ALTER DATABASE postgres RESET ALL")


@pytest.mark.parametrize("engine", ZONED)
def test_the_day_of_an_instant_is_that_in_utc(world: Any, moved: Any, engine: str) -> None:
    world.lay(engine, "a", INSTANTS, types=("zoned", "integer"), key_types={"key": "date"})
    moved()
    assert world.by_key() == DAYS
    assert world.total(filters={"key": "2024-01-31"}) == 14
    between = {"dimension": "key", "op": "between", "value": ["2024-02-01", "2024-02-29"]}
    assert world.total(filters=[between]) == 1


@pytest.mark.parametrize("engine", ZONED)
def test_one_instant_in_two_spellings_is_one_moment(world: Any, moved: Any, engine: str) -> None:
    world.lay(engine, "a", INSTANTS, types=("zoned", "integer"), key_types={"key": "timestamp"})
    moved()
    assert world.by_key() == MOMENTS
    for spelled in ("2024-01-31 23:30:00", "2024-02-01T00:30:00+01:00", "2024-01-31T23:30:00Z"):
        assert world.total(filters={"key": spelled}) == 12


@pytest.mark.parametrize("engine", ["duckdb", "parquet", "frame", *SERVER])
def test_an_instant_without_a_declared_type_is_told_in_utc(world: Any, moved: Any, engine: str) -> None:
    world.lay(engine, "a", INSTANTS, types=("zoned", "integer"))
    world.lay(engine, "p", INSTANTS, types=("zoned", "integer"), formats={"key": "fiscal_period"})
    moved()
    assert world.by_key() == {"2024-02-01": D(1), "2024-01-31 23:00:00+00": D(2), "2024-01-31 23:30:00+00": D(12)}
    assert world.by_key("p") == {"202402": D(1), "202401": D(14)}
    assert world.total("p", filters={"key": "001.2024"}) == 14


@pytest.mark.parametrize("engine", ZONED)
def test_a_time_without_a_zone_is_taken_as_it_stands(world: Any, moved: Any, engine: str) -> None:
    rows = [("2024-01-31 23:30:00", 1), ("2024-02-01 00:00:00", 2), ("2024-02-01 02:00:00", 4)]
    world.lay(engine, "a", rows, types=("timestamp", "integer"), key_types={"key": "timestamp"})
    world.lay(engine, "d", rows, types=("timestamp", "integer"), key_types={"key": "date"})
    moved()
    assert world.by_key() == {datetime.fromisoformat(key): D(value) for key, value in rows}
    assert world.by_key("d") == {date(2024, 1, 31): D(1), date(2024, 2, 1): D(6)}
    assert world.total(filters={"key": "2024-02-01T00:30:00+01:00"}) == 1
    over = {"dimension": "key", "op": ">=", "value": "2024-02-01"}
    assert world.total(filters=[over]) == 6


@pytest.mark.parametrize("engine", ["duckdb", *SERVER])
def test_a_time_with_a_zone_meets_one_without_only_where_that_is_declared(world: Any, moved: Any, engine: str) -> None:
    held = {"columns": ("key", "amount"), "types": ("zoned", "integer")}
    naive = {"columns": ("key", "amount"), "types": ("timestamp", "integer")}
    world.lay(engine, "a", [("2024-01-31 23:30:00+00", 1)], **held)
    world.lay(engine, "b", [("2024-01-31 23:30:00", 1)], **naive)
    moved()
    assert world.confront().summary.matches == 0
    for name, shape, text in (("a", held, "2024-01-31 23:30:00+00"), ("b", naive, "2024-01-31 23:30:00")):
        world.lay(engine, name, [(text, 1)], key_types={"key": "timestamp"}, **shape)
    assert world.confront().summary.matches == 1


@pytest.mark.parametrize("engine", SERVER)
def test_floats_keep_their_digits_whatever_the_server_prints(world: Any, moved: Any, engine: str) -> None:
    world.lay(engine, "a", [("0.30000000000000004", "333333333333333.3")], types=("float", "float"))
    moved()
    assert world.by_key() == {"0.30000000000000004": D("333333333333333.30")}


@pytest.mark.parametrize("engine", ["csv", "sqlite", "json", "duckdb", "postgres"])
@pytest.mark.parametrize("text", ["31.01.2024", "01/02/2024", "20240131", "2024-02-30", "00000000", "31-JAN-24"])
def test_a_day_in_another_spelling_is_refused(world: Any, engine: str, text: str) -> None:
    """01/02/2024 is January for some and February for others."""
    world.lay(engine, "a", [(text, 1)], types=("text", "integer"), key_types={"key": "date"})
    with pytest.raises(AnalystError, match="not what its column is declared to be"):
        world.by_key()


PERIODS = {
    "2024001": "202401", "202401": "202401", "2024.01": "202401", "001.2024": "202401", "01/2024": "202401",
    "2024-01-31": "202401", "2024013": "202413", "2024.16": "202416", "016/2024": "202416", "2024000": "202400",
    "20240131": "20240131", "2024": "2024", "1.2024": "202401", "2024017": "2024017", "FY24": "FY24", "": "", "#": "#",
}  # fmt: skip


@pytest.mark.parametrize("engine", ZONED)
def test_periods(world: Any, engine: str) -> None:
    """What is no period for certain, such as 20240131, stays what it is; periods 13 to 16, and 0, are periods."""
    rows = [(text, 2**at) for at, text in enumerate(PERIODS)]
    world.lay(engine, "a", rows, types=("text", "integer"), formats={"key": "fiscal_period"})
    expected: dict[str, D] = {}
    for text, amount in rows:
        expected[PERIODS[text]] = expected.get(PERIODS[text], D(0)) + amount
    assert world.by_key() == expected
    for period, amount in expected.items():
        assert (period, world.total(filters={"key": period})) == (period, amount)
    between = {"dimension": "key", "op": "between", "value": ["202401", "2024.016"]}
    with pytest.raises(AnalystError, match="cannot be decided"):
        world.total(filters=[between])
    rows = [row for row in rows if len(PERIODS[row[0]]) == 6 or not any(map(str.isdigit, row[0]))]
    world.lay(engine, "a", rows, types=("text", "integer"), formats={"key": "fiscal_period"})
    assert world.total(filters=[between]) == sum(
        amount for key, amount in expected.items() if "202401" <= key <= "202416" and len(key) == 6
    )
