"""Other databases: the same aggregate, really run on SQLite through SQLAlchemy, and its text for others."""

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from msgspec.structs import replace

from treadle.analyst import (
    AnalystError,
    Bounds,
    Catalog,
    CompareRequest,
    Dimension,
    Filter,
    Measure,
    QueryRequest,
    Source,
    compare,
    parse_format,
    query,
)  # fmt: skip
from treadle.analyst.reading.dialect import Column, Dialect
from treadle.analyst.reading.keys import Key
from treadle.analyst.remote.narrowing import narrowing
from treadle.analyst.remote.pushdown import grouped, side_by_side
from treadle.analyst.remote.sqlalchemy_source import statement_text, stored_name
from treadle.analyst.sql.parameters import Parameters

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
QUICK = Bounds(threads=1, seconds=60)
URL = "TREADLE_TEST_URL"

LEDGER = Source(
    name="ledger", kind="sqlalchemy", table="fin.ACDOCA", dsn_env=URL,
    dimensions=(
        Dimension(name="company", column="RBUKRS", format=parse_format("alpha(10)")),
        Dimension(name="day", column="BUDAT"),
    ),
    measures=(
        Measure(name="amount", column="HSL"), Measure(name="mean", column="HSL", aggregation="avg", synonyms=("avg",)),
        Measure(name="rows", column="*", aggregation="count"), Measure(name="quantity", column="QTY"),
        Measure(name="net", expression="if(DRCRK = 'H', -HSL, HSL) * 0.01"),
    ),
)  # fmt: skip
COLUMNS = {
    "RBUKRS": Column("text"), "BUDAT": Column("date"), "HSL": Column("decimal", 2, digits=15),
    "QTY": Column("integer", 0), "DRCRK": Column("text"),
}  # fmt: skip

NET = """(CASE WHEN "DRCRK" = :p3 THEN (-"HSL") ELSE "HSL" END * CAST('0.01' AS DECIMAL(2, 2)))"""
QTY = 'CAST("QTY" AS DECIMAL(20, 0))'
SELECT = (
    'SELECT "RBUKRS" AS d0, COUNT(*) AS w, SUM("HSL") AS m0, COUNT("HSL") AS m0_count, SUM("HSL") AS m1, COUNT("HSL") '
    f"AS m1_count, COUNT(*) AS m2, SUM({QTY}) AS m3, COUNT({QTY}) AS m3_count, SUM({NET}) AS m4, COUNT({NET}) AS "
    'm4_count FROM "fin"."ACDOCA" WHERE ("RBUKRS" LIKE :p0) AND "BUDAT" BETWEEN :p1 AND :p2 GROUP BY "RBUKRS"'
)
TEXTS = dict.fromkeys(["trino", "snowflake"], SELECT)
TEXTS["oracle"] = SELECT.replace("AS DECIMAL", "AS NUMBER")
TEXTS["bigquery"] = (
    SELECT.replace('"', "`").replace("DECIMAL(20, 0)", "BIGNUMERIC").replace("DECIMAL(2, 2)", "BIGNUMERIC")
    .replace("-`HSL`", "-CAST(`HSL` AS BIGNUMERIC)").replace("ELSE `HSL` END", "ELSE CAST(`HSL` AS BIGNUMERIC) END")
)  # fmt: skip
TEXTS["spark"] = TEXTS["databricks"] = SELECT.replace('"', "`")
TEXTS["mysql"] = (
    TEXTS["spark"].replace("`RBUKRS` AS", "(`RBUKRS`) COLLATE utf8mb4_bin AS")
    .replace("GROUP BY `RBUKRS`", "GROUP BY (`RBUKRS`) COLLATE utf8mb4_bin")
    .replace("`DRCRK`", "(`DRCRK`) COLLATE utf8mb4_bin").replace("CAST(`QTY` AS DECIMAL(20, 0))", "`QTY`")
)  # fmt: skip
TEXTS["tsql"] = (
    TEXTS["mysql"].replace("utf8mb4_bin", "Latin1_General_BIN2").replace("AS DECIMAL", "AS NUMERIC")
    .replace("(`QTY`)", "(CAST(`QTY` AS NUMERIC(20, 0)))")
)  # fmt: skip
TEXTS["tsql"] = re.sub("`(.*?)`", r"[\1]", TEXTS["tsql"])


@pytest.mark.parametrize("dialect", TEXTS)
def test_the_aggregate_in_the_words_of_each_database(dialect: str) -> None:
    spoken, parameters = Dialect(dialect), Parameters()
    asked = [
        (
            Key("company", LEDGER.dimensions[:1], "string", parse_format("alpha(10)")),
            Filter(dimension="company", value="1001"),
        ),
        (
            Key("day", LEDGER.dimensions[1:], "date"),
            Filter(dimension="day", op="between", value=["2024-01-01", "2024-01-31"]),
        ),
    ]
    found = [
        narrowing(spoken, key, key.members[0].column, COLUMNS[key.members[0].column], condition, parameters)
        for key, condition in asked
    ]
    conditions = [each.condition for each in found if each is not None]
    groups = grouped(spoken, LEDGER, COLUMNS, LEDGER.dimensions[:1], LEDGER.measures, conditions, parameters)
    sql, names = statement_text(groups.statement, spoken)
    assert sql == TEXTS[dialect]
    assert set(names) == {"p0", "p1", "p2", "p3"}
    assert (parameters.values["p0"], parameters.values["p3"]) == ("%1001%", "H")


UNKNOWN = Dialect("")


def test_a_database_of_unknown_ways_says_how_large_the_values_are() -> None:
    """SAP HANA, and what else speaks standard SQL: should it send floating-point numbers, their noise is known."""
    groups = grouped(UNKNOWN, LEDGER, COLUMNS, [], LEDGER.measures[:1])
    sql, _ = statement_text(groups.statement, UNKNOWN)
    assert sql.startswith(
        'SELECT COUNT(*) AS w, SUM("HSL") AS m0, COUNT("HSL") AS m0_count, SUM(ABS("HSL")) AS m0_size'
    )


@pytest.mark.parametrize("dialect", [*TEXTS, "", "postgres", "sqlite"])
def test_a_database_reads_what_it_is_sent(dialect: str) -> None:
    """SQLGlot's reader of each dialect makes the same of the text; any name is only a name, in SQLAlchemy too."""
    from sqlalchemy import text

    name = 'x:y `q` "r" [s] \\\\ :p0 \''
    spoken, parameters = Dialect(dialect), Parameters()
    odd = replace(
        LEDGER, dimensions=(Dimension(name="odd", column=name),),
        measures=(Measure(name="net", expression="round(if(DRCRK = 'H', coalesce(QTY, 0), abs(HSL)) - 1.5, 2)"),),
    )  # fmt: skip
    columns = COLUMNS | {name: Column("text")}
    key, condition = Key("odd", odd.dimensions), Filter(dimension="odd", op="in", value=["a:b", None])
    narrowed = narrowing(spoken, key, name, columns[name], condition, parameters)
    assert narrowed is not None
    groups = [
        grouped(spoken, odd, columns, odd.dimensions, measures, [narrowed.condition], parameters)
        for measures in (odd.measures, ())
    ]
    statement = side_by_side(groups)
    plain = statement.sql(dialect=dialect)
    read = sqlglot.parse_one(plain, dialect=dialect)
    assert read.sql(dialect=dialect) == plain
    assert name in {column.name for column in read.find_all(sqlglot.exp.Column)}
    for placeholder in list(statement.find_all(sqlglot.exp.Placeholder)):
        placeholder.replace(sqlglot.exp.Var(this=f":{placeholder.this}"))
    sent = statement_text(side_by_side(groups), spoken)[0]
    assert str(text(sent).compile()) == statement.sql(dialect=dialect)


ROUNDING = [
    # database, expression, types of a and b, whether it is computed
    ("spark", "a * b", (18, 2), (18, 2), True),
    ("spark", "a * b", (38, 10), (18, 2), False),
    ("spark", "a * b", (19, 4), (19, 4), False),
    ("spark", "a + b", (38, 2), (18, 2), True),
    ("spark", "a + b", (38, 10), (38, 2), False),
    ("spark", "coalesce(a, b)", (38, 10), (38, 2), False),
    ("spark", "if(a = 0.001, a, null)", (38, 0), (1, 0), False),
    ("tsql", "a * b", (38, 10), (18, 2), False),
    ("", "a * b", (None, None), (18, 2), False),
    ("oracle", "a * b", (None, None), (18, 2), False),
    ("snowflake", "a * b", (38, 6), (38, 6), True),
    ("snowflake", "a * b", (38, 8), (38, 6), False),
    ("snowflake", "a * b", (38, 18), (38, 0), True),
    ("trino", "a * b", (38, 10), (38, 10), True),
    ("trino", "a * b", (38, 20), (38, 20), False),
    ("bigquery", "a * b", (None, None), (None, None), True),
    ("mysql", "a * b", (65, 15), (65, 15), True),
    ("mysql", "a * b", (65, 16), (65, 15), False),
]


@pytest.mark.parametrize(("dialect", "expression", "a", "b", "computed"), ROUNDING)
def test_what_a_database_would_round_is_refused(dialect: str, expression: str, a: Any, b: Any, computed: bool) -> None:
    columns = {name: Column("decimal", scale, digits=digits) for name, (digits, scale) in (("a", a), ("b", b))}
    measures = [Measure(name="net", expression=expression)]
    if computed:
        grouped(Dialect(dialect), LEDGER, columns, [], measures)
    else:
        with pytest.raises(AnalystError, match="would round or lose what the expression of measure 'net' computes"):
            grouped(Dialect(dialect), LEDGER, columns, [], measures)


def test_names_in_upper_case_are_told_as_the_database_has_them() -> None:
    from sqlalchemy.dialects.oracle.base import OracleDialect
    from sqlalchemy.dialects.sqlite.base import SQLiteDialect

    oracle, sqlite = OracleDialect(), SQLiteDialect()
    for stored in ("COMPANY", "Company", "company", "ORDER", "a b"):
        assert stored_name(oracle, oracle.normalize_name(stored)) == stored
        assert stored_name(sqlite, stored) == stored


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Source]:
    pytest.importorskip("sqlalchemy")
    file = tmp_path / "held.db"
    monkeypatch.setenv(URL, f"sqlite:///{file}")

    def made(name: str, rows: Any, *, types: tuple[str, ...] = ("TEXT", "INTEGER"), **measure: Any) -> Source:
        columns = ["company", *(f"c{at}" for at in range(len(types) - 2)), "amount"]
        with closing(sqlite3.connect(file)) as database:
            listed = ", ".join(f'"{column}" {kind}' for column, kind in zip(columns, types, strict=True))
            database.execute(f'CREATE TABLE "{name}" ({listed})')
            database.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(types))})', rows)
            database.commit()
        return Source(
            name=name, kind="sqlalchemy", table=name, dsn_env=URL,
            dimensions=tuple(Dimension(name=column) for column in columns[:-1]),
            measures=(Measure(name="amount", **measure),),
        )  # fmt: skip

    return made


ROWS = [("a", 1), ("A", 2), (None, 4), ("", 8), ("10", 16), ("a", None)]


FILTERS = [
    ("=", "a", 1), ("!=", "a", 30), ("in", ["a", None], 5), ("in", [None], 4), ("in", [], 0), ("not in", ["a"], 30),
    ("not in", ["a", None], 26), ("not in", [], 31), ("<", "a", 26), ("<=", "a", 27), (">", "A", 1), (">=", "A", 3),
    ("between", ["", "A"], 26), ("like", "1%", 16), ("like", "_", 3), ("is null", None, 4), ("is not null", None, 27),
    ("=", 10, 16), ("=", "' OR 1=1 --", 0),
]  # fmt: skip


@pytest.mark.parametrize(("op", "value", "expected"), FILTERS)
def test_filters(held: Any, op: str, value: Any, expected: int) -> None:
    source = held("t", ROWS, types=("TEXT COLLATE NOCASE", "INTEGER"))
    condition = {"dimension": "company", "op": op, "value": value}
    found = query(Catalog([source]), QueryRequest(source="t", filters=[condition]), bounds=QUICK)
    assert (found.totals["amount"] or 0) == expected


@pytest.mark.parametrize("pattern", ["ab%cd", "ab_cd", "%cd", "ab%", "%"])
def test_what_a_text_has_behind_a_nul_is_not_left_out_by_like(held: Any, pattern: str) -> None:
    source = held("t", [("ab\0cd", 1), ("x", 2), (None, 4)])
    condition = {"dimension": "company", "op": "like", "value": pattern}
    found = query(Catalog([source]), QueryRequest(source="t", filters=[condition]), bounds=QUICK)
    assert found.totals["amount"] == (3 if pattern == "%" else 1)


@pytest.mark.parametrize(("inclusive", "expected"), [("both", 27), ("left", 26), ("right", 19), ("neither", 18)])
def test_the_ends_of_a_range(held: Any, inclusive: str, expected: int) -> None:
    source = held("t", ROWS, types=("TEXT COLLATE NOCASE", "INTEGER"))
    condition = {"dimension": "company", "op": "between", "value": ["", "a"], "inclusive": inclusive}
    found = query(Catalog([source]), QueryRequest(source="t", filters=[condition]), bounds=QUICK)
    assert found.totals["amount"] == expected


def test_keys_that_the_database_would_merge_stay_apart(held: Any) -> None:
    source = held("t", ROWS, types=("TEXT COLLATE NOCASE", "INTEGER"))
    found = query(Catalog([source]), QueryRequest(source="t", dimensions=["company"]), bounds=QUICK)
    assert {row["company"]: row["amount"] for row in found.rows} == {"a": 1, "A": 2, None: 4, "": 8, "10": 16}
    assert found.source_rows == 6


def test_floats_are_called_approximate_and_text_is_refused(held: Any) -> None:
    floats = held("floats", [("a", 0.1), ("a", 0.2)], types=("TEXT", "DECIMAL(18,2)"))
    found = query(Catalog([floats]), QueryRequest(source="floats"), bounds=QUICK)
    assert abs(found.totals["amount"] - D("0.3")) < D("1e-9")
    assert "approximate" in found.warnings[0]
    text = held("texts", [("a", "0.1x")], types=("TEXT", "DECIMAL(18,2)"))
    with pytest.raises(AnalystError, match="1 rows hold text where an amount should be"):
        query(Catalog([text]), QueryRequest(source="texts"), bounds=QUICK)
    big = held("big", [("a", 2**63 - 1), ("a", 1)])
    with pytest.raises(AnalystError, match="could not do it"):
        query(Catalog([big]), QueryRequest(source="big"), bounds=QUICK)


def test_the_same_as_a_file(held: Any, make: Any, tmp_path: Path) -> None:
    rows, others = [("1", 10), ("2", 20), (None, 5)], [("1", 10), ("2", 21), ("3", 1)]
    files = [make("a", rows, kind="sqlite", decimals=None), make("b", others, kind="sqlite", decimals=None)]
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").unlink(missing_ok=True)
    bases = [held("a", rows), held("b", others)]
    found = []
    for a, b in (files, bases, (files[0], bases[1])):
        told = compare(Catalog([a, b], tmp_path), CompareRequest(source_a="a", source_b="b"), bounds=QUICK)
        found.append([(row.key, row.status, row.diff, row.rows_a, row.rows_b) for row in told.rows])
    assert found[1:] == [found[0]] * 2


@pytest.fixture
def asked() -> Iterator[list[str]]:
    """What SQLAlchemy sends that reads a table's rows."""
    from sqlalchemy import Engine, event

    found: list[str] = []

    def heard(connection: Any, cursor: Any, statement: str, *more: Any) -> None:
        if "COUNT(" in statement:
            found.append(statement)

    event.listen(Engine, "before_cursor_execute", heard)
    yield found
    event.remove(Engine, "before_cursor_execute", heard)


def test_two_sources_in_one_database_are_read_by_one_statement(
    held: Any, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    a = held("a", [("1", "x", 10), ("2", "y", 20)], types=("TEXT", "TEXT", "INTEGER"))
    b = held("b", [(1, 10), (3, 1)], types=("INTEGER", "INTEGER"))
    # The same value under another name is the same database.
    monkeypatch.setenv("TREADLE_OTHER_URL", os.environ[URL])
    b = replace(b, dsn_env="TREADLE_OTHER_URL")
    request = CompareRequest(source_a="a", source_b="b", filters={"company": ["1", "2", "3"]})
    found = compare(Catalog([a, b]), request, bounds=QUICK)
    assert {row.key["company"]: row.status for row in found.rows} == {
        "1": "match", "2": "missing_in_b", "3": "missing_in_a",
    }  # fmt: skip
    assert len(asked) == 1
    assert asked[0].count("UNION ALL") == 1


def test_two_databases_are_asked_one_by_one(
    held: Any, asked: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a, b = held("a", [("1", 10)]), held("b", [("1", 10)])
    (tmp_path / "other.db").write_bytes((tmp_path / "held.db").read_bytes())
    monkeypatch.setenv("TREADLE_OTHER_URL", f"sqlite:///{tmp_path / 'other.db'}")
    catalog = Catalog([a, replace(b, dsn_env="TREADLE_OTHER_URL")])
    assert compare(catalog, CompareRequest(source_a="a", source_b="b"), bounds=QUICK).summary.matches == 1
    assert len(asked) == 2


def test_a_sqlite_connection_writes_nothing(held: Any) -> None:
    from treadle.analyst.reading.session import Session
    from treadle.analyst.remote.sqlalchemy_source import connect

    source = held("t", ROWS)
    with Session(Catalog([source]), [source]) as session:
        database = connect(session, source)
        with pytest.raises(Exception, match="readonly database"):
            database._connection.exec_driver_sql("DELETE FROM t")
        database.close()


def test_names_that_are_special_to_the_driver(held: Any, tmp_path: Path) -> None:
    name = 'x:y "q" %s'
    with closing(sqlite3.connect(tmp_path / "held.db")) as database:
        database.execute('CREATE TABLE odd ("x:y ""q"" %s" TEXT, v INTEGER)')
        database.execute("INSERT INTO odd VALUES ('k:1', 7)")
        database.commit()
    source = Source(name="odd", kind="sqlalchemy", table="odd", dsn_env=URL,
                    dimensions=(Dimension(name="k", column=name),), measures=(Measure(name="v"),))  # fmt: skip
    found = query(Catalog([source]), QueryRequest(source="odd", dimensions=["k"], filters={"k": "k:1"}), bounds=QUICK)
    assert found.rows == [{"k": "k:1", "v": 7}]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense hunter2", "does not hold a SQLAlchemy URL"),
        ("hana://bob:hunter2@x/y", "no driver for the database"),
        ("sqlite:////nowhere/hunter2/x.db", "cannot be reached"),
        ("", "is not set"),
    ],
)
def test_errors_tell_no_secret(held: Any, monkeypatch: pytest.MonkeyPatch, url: str, message: str) -> None:
    source = held("t", ROWS)
    monkeypatch.setenv(URL, url)
    with pytest.raises(AnalystError, match=message) as caught:
        query(Catalog([source]), QueryRequest(source="t"), bounds=QUICK)
    assert "hunter2" not in str(caught.value) + str(caught.value.hints)


def test_what_is_not_there_is_told(held: Any) -> None:
    source = held("t", ROWS)
    with pytest.raises(AnalystError, match="has no table 'nowhere'"):
        query(Catalog([replace(source, table="nowhere")]), QueryRequest(source="t"))
    odd = replace(source, dimensions=(Dimension(name="compny"),))
    with pytest.raises(AnalystError, match="has no column 'compny' in its data; did you mean 'company'"):
        query(Catalog([odd]), QueryRequest(source="t", dimensions=["compny"]))


def test_a_statement_is_stopped_when_its_time_is_over(held: Any, tmp_path: Path) -> None:
    source = held("t", ROWS)
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'a' AS company, i AS amount FROM n"
    )
    with closing(sqlite3.connect(tmp_path / "held.db")) as database:
        database.execute(f"CREATE VIEW endless AS {endless}")
    source = replace(source, table="endless", measures=(Measure(name="n", column="*", aggregation="count"),))
    with pytest.raises(AnalystError, match="longer than 1 seconds"):
        query(Catalog([source]), QueryRequest(source="t"), bounds=Bounds(threads=1, seconds=1))
