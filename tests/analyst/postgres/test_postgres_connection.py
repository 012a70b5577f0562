"""What a connection may do, how it ends, and what is told when it cannot be had."""

import json
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import duckdb
import pytest

from treadle.analyst import (
    AnalystError,
    Bounds,
    Cancelled,
    Catalog,
    CompareRequest,
    Interrupt,
    QueryRequest,
    Source,
    analyst_skill,
    compare,
    compare_schemas,
    query,
)

Table = Callable[..., Source]
Through = Callable[[Source], Source]
QUICK = Bounds(threads=1, seconds=60)
DSN = "TREADLE_TEST_DSN"


def ask(source: Source, bounds: Bounds = QUICK, **more: Any) -> Any:
    return query(Catalog([source]), QueryRequest(source=source.name), bounds=bounds, **more)


def slow(server: Any, table: Table) -> Source:
    """A source whose view takes a minute a row."""
    import msgspec

    source = table("t", [("a", 1)], types=("text", "integer"))
    schema = source.table.split(".")[0]
    server.execute(
        f"CREATE VIEW {schema}.slow AS SELECT company, amount FROM {schema}.t WHERE pg_sleep(60) IS NOT NULL"
    )
    return msgspec.structs.replace(source, table=f"{schema}.slow")


def under_way(server: Any) -> int:
    return server.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'treadle' AND state = 'active'"
    )[0][0]


def wait_for(server: Any, count: int) -> None:
    for _ in range(500):
        if under_way(server) == count:
            return
        time.sleep(0.02)
    pytest.fail(f"there were never {count} queries under way")


def test_both_sides_come_in_one_statement(server: Any, table: Table, through: Through) -> None:
    a, b = through(table("a", [("1", 1)])), through(table("b", [("1", 2)]))
    server.execute("ALTER SYSTEM SET log_statement = 'all'")
    server.execute("SELECT pg_reload_conf()")
    log = server.folder / "log"
    try:
        time.sleep(0.3)
        before = len(log.read_text())
        found = compare(Catalog([a, b]), CompareRequest(source_a="a", source_b="b"), bounds=QUICK)
        text = log.read_text()[before:]
    finally:
        server.execute("ALTER SYSTEM RESET log_statement")
        server.execute("SELECT pg_reload_conf()")
    assert found.summary.total_rows == 1
    assert text.count("SUM(") == 2
    (asked,) = [line for line in text.splitlines() if "SUM(" in line]
    assert asked.count("UNION ALL") == 1
    assert re.search(r"ISOLATION LEVEL REPEATABLE READ,? READ ONLY", text)


def test_only_groups_travel(server: Any, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    from treadle.analyst.reading.session import Session

    source = table("t", [(str(at % 7), at) for at in range(5_000)], types=("text", "integer"))
    staged: list[int] = []
    stage = Session.stage

    def counted(self: Session, columns: Any, rows: Any, of: Any = ()) -> str:
        kept = list(rows)
        staged.append(len(kept))
        return stage(self, columns, kept, of)

    monkeypatch.setattr(Session, "stage", counted)
    found = query(Catalog([source]), QueryRequest(source="t", dimensions=["company"]), bounds=QUICK)
    assert (found.source_rows, staged) == (5_000, [7])


def test_nothing_can_be_written(server: Any, table: Table, through: Through) -> None:
    """A view whose function writes is stopped by the database itself."""
    import msgspec

    source = table("t", [("a", 1)])
    schema = source.table.split(".")[0]
    server.execute(
        f"CREATE FUNCTION {schema}.sly() RETURNS boolean LANGUAGE sql AS "
        f"'INSERT INTO {schema}.t VALUES (''x'', 9); SELECT true'"
    )
    server.execute(f"CREATE VIEW {schema}.sly AS SELECT company, amount FROM {schema}.t WHERE {schema}.sly()")
    with pytest.raises(AnalystError, match=r"read-only transaction|ReadOnlySqlTransaction"):
        ask(through(msgspec.structs.replace(source, table=f"{schema}.sly")))
    assert server.execute(f"SELECT count(*) FROM {schema}.t") == [(1,)]


def test_it_takes_no_longer_than_it_may(server: Any, table: Table, through: Through) -> None:
    with pytest.raises(AnalystError, match="longer than 1 seconds"):
        ask(through(slow(server, table)), Bounds(threads=1, seconds=1))
    wait_for(server, 0)


def test_an_interrupt_cancels_the_query_in_the_server(server: Any, table: Table, through: Through) -> None:
    source, interrupt, outcome = through(slow(server, table)), Interrupt(), []

    def run() -> None:
        with pytest.raises(Cancelled) as caught:
            ask(source, interrupt=interrupt)
        outcome.append(caught.value)

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(server, 1)
    interrupt.set()
    thread.join(30)
    assert outcome
    wait_for(server, 0)


class BetweenStatements(Interrupt):
    """Is set right after it was last looked at before the slow statement: the server has nothing to cancel then."""

    @property
    def is_set(self) -> bool:
        was = super().is_set
        if sys._getframe(2).f_code.co_name == "rows":
            self.set()
        return was


def test_an_interrupt_between_two_statements_cancels_the_next(server: Any, table: Table, through: Through) -> None:
    """The server was told to cancel when there was nothing to, and the query went on to its end."""
    source, outcome = through(slow(server, table)), []

    def run() -> None:
        with pytest.raises(Cancelled) as caught:
            ask(source, interrupt=BetweenStatements())
        outcome.append(caught.value)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    assert outcome
    wait_for(server, 0)


@pytest.mark.anyio
async def test_a_cancelled_tool_cancels_the_query(server: Any, table: Table, through: Through) -> None:
    source = through(slow(server, table))
    (tool,) = [each for each in analyst_skill(Catalog([source])).tools if each.name == "query_source"]
    async with anyio.create_task_group() as group:
        group.start_soon(tool.function, source.name)
        await anyio.to_thread.run_sync(wait_for, server, 1)
        group.cancel_scope.cancel()
    await anyio.to_thread.run_sync(wait_for, server, 0)


def test_a_database_that_goes_away_is_told(server: Any, table: Table) -> None:
    source, outcome = slow(server, table), []

    def run() -> None:
        with pytest.raises(AnalystError) as caught:
            ask(source)
        outcome.append(str(caught.value))

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(server, 1)
    server.stop()
    thread.join(30)
    server.start()
    assert len(outcome) == 1
    assert "connection to the database was lost" in outcome[0] or "terminating" in outcome[0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, f"the environment variable {DSN}, which says where its database is, is not set"),
        ("wrong password", "it refused the user or the password"),
        ("postgresql://bob:hunter2@127.0.0.1:1/x", "nothing answers there"),
        ("host=127.0.0.1 hunter2", "is not a PostgreSQL connection string"),
        ("postgresql://bob:hunter2@no-such-host.invalid/x", "its host is not known"),
    ],
)
def test_a_connection_that_cannot_be_had(
    server: Any, table: Table, monkeypatch: pytest.MonkeyPatch, value: str | None, message: str
) -> None:
    source = table("t", [("a", 1)])
    if value is None:
        monkeypatch.delenv(DSN)
    else:
        monkeypatch.setenv(DSN, server.dsn("hunter2") if value == "wrong password" else value)
    with pytest.raises(AnalystError) as caught:
        ask(source)
    told = str(caught.value) + json.dumps(caught.value.hints) + repr(caught.value.__cause__)
    assert message in told
    assert "hunter2" not in told
    assert "bob" not in told


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql+psycopg://bob:hunter2@127.0.0.1:{port}/postgres", "cannot be reached (OperationalError)"),
        ("postgresql+psycopg://bob:hunter2@127.0.0.1:1/x", "cannot be reached (OperationalError)"),
        ("postgresql+psycopg://bob:hunter2@no-such-host.invalid/x", "cannot be reached (OperationalError)"),
        ("postgresql+nothing://bob:hunter2@127.0.0.1/x", "no driver for the database"),
        ("postgresql+psycopg://bob:hunter2@127.0.0.1:hunter2/x", "does not hold a SQLAlchemy URL"),
        ("postgresql+psycopg://bob:hunter2@127.0.0.1/x?sslmode=hunter2", "cannot be reached"),
    ],
)
def test_a_connection_through_sqlalchemy_that_cannot_be_had(
    server: Any, table: Table, monkeypatch: pytest.MonkeyPatch, url: str, message: str
) -> None:
    import traceback

    import msgspec

    pytest.importorskip("sqlalchemy")
    monkeypatch.setenv("TREADLE_TEST_URL", url.format(port=server.port))
    source = msgspec.structs.replace(table("t", [("a", 1)]), kind="sqlalchemy", dsn_env="TREADLE_TEST_URL")
    with pytest.raises(AnalystError) as caught:
        ask(source)
    assert message in str(caught.value)
    told = "".join(traceback.format_exception(caught.value)) + json.dumps(caught.value.hints)
    assert "hunter2" not in told
    assert "bob" not in told


def test_libpq_variables_say_where_it_is(server: Any, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    import msgspec

    for name, value in (("HOST", "127.0.0.1"), ("PORT", server.port), ("USER", "owner"), ("PASSWORD", server.password),
                        ("DATABASE", "postgres")):  # fmt: skip
        monkeypatch.setenv(f"PG{name}", str(value))
    source = msgspec.structs.replace(table("t", [("a", 1)]), dsn_env="")
    assert ask(source).source_rows == 1


def test_a_column_or_table_that_is_not_there(table: Table) -> None:
    import msgspec

    source = table("t", [("a", 1)])
    dimension = msgspec.structs.replace(source.dimensions[0], column="compny")
    with pytest.raises(AnalystError, match="has no column 'compny'") as caught:
        query(
            Catalog([msgspec.structs.replace(source, dimensions=(dimension,))]),
            QueryRequest(source="t", dimensions=["company"]),
        )
    assert caught.value.hints["nearest"] == "company"
    with pytest.raises(AnalystError, match="has no table"):
        ask(msgspec.structs.replace(source, table="nowhere.t; drop table x"))


def test_no_secret_is_in_a_result(server: Any, table: Table) -> None:
    source = table("t", [("a", 1)])
    catalog = Catalog([source])
    found = query(catalog, QueryRequest(source="t"), bounds=QUICK)
    assert server.password not in json.dumps(found.to_dict()) + repr(catalog) + repr(source) + repr(found)


def test_through_sqlalchemy_it_says_the_same(server: Any, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    import msgspec

    rows = [("a", "1.10"), ("A", "2.20"), (None, "0.70")]
    source = table("t", rows)
    other = msgspec.structs.replace(source, name="u", kind="sqlalchemy", dsn_env="TREADLE_TEST_URL")
    monkeypatch.setenv("TREADLE_TEST_URL", server.url())
    found = compare(Catalog([source, other]), CompareRequest(source_a="t", source_b="u"), bounds=QUICK)
    assert (found.summary.matches, found.summary.total_rows) == (3, 3)


def test_schemas_tell_the_types_that_the_database_has(table: Table, through: Through, tmp_path: Path) -> None:
    """All decimals had 38 digits, and were the same; one without a number of decimals was text."""
    columns, rows = ("k", "n", "free", "amount"), [("x", 1, 1, 1)]
    kinds = [("text", "bigint", "numeric", digits) for digits in ("numeric(10,2)", "numeric(18,2)")]
    a, b = (through(table(name, rows, columns=columns, types=types)) for name, types in zip("ab", kinds, strict=True))
    with duckdb.connect(str(tmp_path / "c.duckdb")) as made:
        made.execute("CREATE TABLE t AS SELECT 'x' k, 1::BIGINT n, 1::DECIMAL(9, 1) free, 1::DECIMAL(18, 2) amount")
    members = {"dimensions": b.dimensions, "measures": b.measures}
    c = Source(name="c", kind="duckdb", path="c.duckdb", table="t", **members)
    catalog = Catalog([a, b, c], tmp_path)

    def told_otherwise(one: str, other: str) -> list[tuple[str, str, str, str]]:
        found = compare_schemas(catalog, one, other, bounds=QUICK).members
        return [(member.name, member.a, member.b, member.fate) for member in found if member.a != member.b]

    assert told_otherwise("a", "b") == [("amount", "sum of decimal(10,2)", "sum of decimal(18,2)", "same")]
    assert told_otherwise("b", "c") == []
