"""Conditions of which who asked may think that they do more, or less, than they do: it is said what they do."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, Conversation
from treadle.analyst import (
    Catalog,
    CompareRequest,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    analyst_skill,
    compare,
    query,
    sample_catalog,
)

LEFT_OUT = "fi_reporting has no row with account 999999: leaving it out changes nothing"


def warned(**request: Any) -> tuple[str, ...]:
    return query(sample_catalog(), QueryRequest(source="fi_reporting", **request)).warnings


@pytest.mark.parametrize("op", ["!=", "not in"])
def test_what_no_row_has_is_not_left_out_without_a_word(op: str) -> None:
    condition = {"dimension": "account", "op": op, "value": ["999999", "710300"] if op == "not in" else "999999"}
    of_one = {"dimension": "company", "value": "1001"}
    assert LEFT_OUT in warned(filters=[condition])
    assert f"where company = 1001, {LEFT_OUT}" in warned(filters=[condition, of_one])


def test_what_rows_have_but_not_under_the_other_conditions_is_told_with_these(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,j,v\n1,p,1.00\n2,q,7.00\n")
    (tmp_path / "s.yaml").write_text("""\
sources:
  a: {kind: csv, path: a.csv, dimensions: {k: {}, j: {}}, measures: {v: {}}}
""")
    filters = [{"dimension": "k", "value": "1"}, {"dimension": "j", "op": "!=", "value": "q"}]
    found = query(Catalog.load(tmp_path / "s.yaml"), QueryRequest(source="a", filters=filters))
    assert found.warnings == ("where k = 1, a has no row with j q: leaving it out changes nothing",)


def test_two_conditions_that_leave_out_the_same_row_are_both_of_use(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,j,v\n1,p,1.00\n2,q,7.00\n")
    (tmp_path / "s.yaml").write_text("""\
sources:
  a: {kind: csv, path: a.csv, dimensions: {k: {}, j: {}}, measures: {v: {}}}
""")
    filters = [{"dimension": "k", "op": "!=", "value": "2"}, {"dimension": "j", "op": "!=", "value": "q"}]
    assert query(Catalog.load(tmp_path / "s.yaml"), QueryRequest(source="a", filters=filters)).warnings == ()


def test_what_is_left_out_and_there_is_not_told() -> None:
    filters = [{"dimension": "account", "op": "!=", "value": "800200"}, {"dimension": "company", "value": "1001"}]
    assert warned(filters=filters) == ()


def test_one_of_several_values_that_no_row_has_is_told() -> None:
    told = warned(filters={"company": ["1001", "9999"]})
    assert "fi_reporting has no row with company 9999: the others are all there is" in told


def test_a_comparison_tells_what_neither_side_has_and_not_what_one_lacks() -> None:
    def told(account: str) -> list[str]:
        filters = [{"dimension": "account", "op": "!=", "value": account}]
        request = CompareRequest(source_a="fi_reporting", source_b="consolidation_mart", filters=filters)
        return [claim.message for claim in compare(sample_catalog(), request).warnings]

    neither = (
        "neither fi_reporting nor consolidation_mart has a row with account 999999: leaving it out changes nothing"
    )
    assert neither in told("999999")
    assert not any("changes nothing" in message for message in told("710300"))


def test_what_a_source_always_leaves_out_need_not_be_there(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,state,v\nx,open,1.00\n")
    (tmp_path / "s.yaml").write_text("""\
sources:
  a:
    kind: csv
    path: a.csv
    dimensions: {k: {}, state: {}}
    measures: {v: {}}
    default_filters: [{dimension: state, op: "!=", value: cancelled}]
""")
    assert query(Catalog.load(tmp_path / "s.yaml"), QueryRequest(source="a")).warnings == ()


def test_a_database_is_asked_about_values_that_are_left_out(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.executescript("CREATE TABLE t (k TEXT, j TEXT, v TEXT); INSERT INTO t VALUES ('0001', 'p', '1.00')")
    (tmp_path / "s.yaml").write_text("""\
sources:
  a: {kind: sqlite, path: a.db, table: t, dimensions: {k: {format: alpha(4)}, j: {}}, measures: {v: {}}}
""")
    filters = [{"dimension": "k", "op": "not in", "value": ["2", "1"]}, {"dimension": "j", "op": "!=", "value": "q"}]
    found = query(Catalog.load(tmp_path / "s.yaml"), QueryRequest(source="a", filters=filters, dimensions=["j"]))
    assert found.rows == []
    alone = query(Catalog.load(tmp_path / "s.yaml"), QueryRequest(source="a", filters=filters[1:], dimensions=["k"]))
    assert alone.warnings == ("a has no row with j q: leaving it out changes nothing",)


def test_a_database_is_asked_about_mapped_values_that_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was said of a condition on a mapped dimension where the rows came from a database."""
    pytest.importorskip("sqlalchemy")
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.executescript(
            "CREATE TABLE t (k TEXT, j TEXT, v INT); INSERT INTO t VALUES ('1', 'p', 1), ('7', 'q', 2)"
        )
    monkeypatch.setenv("A_URL", f"sqlite:///{tmp_path / 'a.db'}")
    (tmp_path / "m.csv").write_text("old,new\n1,one\n2,two\n7,seven\n")
    (tmp_path / "s.yaml").write_text("""\
sources:
  a:
    kind: sqlalchemy
    table: t
    dsn_env: A_URL
    dimensions: {k: {mapping: {source: m, from: old, to: new}}, j: {}}
    measures: {v: {}}
  m: {kind: csv, path: m.csv, dimensions: {old: {}, new: {}}, measures: {rows: {column: "*", aggregation: count}}}
""")

    def told(*filters: dict[str, Any]) -> tuple[str, ...]:
        return query(Catalog.load(tmp_path / "s.yaml"), QueryRequest(source="a", filters=list(filters))).warnings

    not_two = {"dimension": "k", "op": "!=", "value": "two"}
    not_seven = {"dimension": "k", "op": "!=", "value": "seven"}
    only_p = {"dimension": "j", "value": "p"}
    assert told(not_two) == ("a has no row with k two: leaving it out changes nothing",)
    assert told(not_seven) == ()
    assert told(not_seven, only_p) == ("where j = p, a has no row with k seven: leaving it out changes nothing",)
    one_of = {"dimension": "k", "op": "in", "value": ["one", "two"]}
    assert told(one_of) == ("a has no row with k two: the others are all there is",)
    not_q = {"dimension": "j", "op": "!=", "value": "q"}
    assert told({"dimension": "k", "value": "one"}, not_q) == (
        "where k = one, a has no row with j q: leaving it out changes nothing",
    )


def months(folder: Path) -> Catalog:
    (folder / "hours.csv").write_text("month,hours\n202402,1.00\n202403,7.00\n")
    (folder / "s.yaml").write_text("""\
sources:
  timesheet: {kind: csv, path: hours.csv, dimensions: {month: {format: fiscal_period}}, measures: {hours: {}}}
""")
    return Catalog.load(folder / "s.yaml")


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ({"value": "2024-03-15"}, "2024-03-15 stands for all of 202403"),
        ({"op": "ytd", "value": "2024-03-15"}, "2024-03-15 stands for all of 202403"),
        ({"op": "between", "value": ["2024-02-02", "2024-03-31"]}, "2024-02-02 stands for all of 202402"),
        ({"op": "between", "value": ["2024-02-01", "2024-03-31"]}, None),
        ({"op": "<", "value": "2024-03-01"}, None),
        ({"op": "<=", "value": "2024-02-29"}, None),
        ({"value": "202403"}, None),
    ],
)
def test_a_day_that_stands_for_a_whole_period_is_told(
    tmp_path: Path, condition: dict[str, Any], told: str | None
) -> None:
    found = query(months(tmp_path), QueryRequest(source="timesheet", filters=[{"dimension": "month", **condition}]))
    assert [claim.kind for claim in found.claims] == (["whole_periods"] if told else [])
    assert all(told in message for message in found.warnings if told)


def test_the_offline_planner_tells_what_periods_there_are_where_a_day_finds_nothing() -> None:
    question = "What is the amount in fi_reporting on 2024-03-15?"
    result = Agent("offline", skills=[analyst_skill()]).run_sync(question, conversation=Conversation())
    assert result.text.startswith("Nothing was found for that.")
    assert "its values of period are 202401, 202402, 202403" in result.text


def test_the_offline_planner_tells_that_a_day_stands_for_its_month(tmp_path: Path) -> None:
    agent = Agent("offline", skills=[analyst_skill(months(tmp_path))])
    result = agent.run_sync("What are the total hours in timesheet on 2024-03-15?", conversation=Conversation())
    assert "hours 7.00" in result.text
    assert "2024-03-15 stands for all of 202403" in result.text


def test_rows_in_the_order_of_amounts_of_several_currencies_are_called_so() -> None:
    told = warned(dimensions=["company"], order=["amount desc"], limit=3)
    assert any("in the order of amount as a number, whatever its currency" in message for message in told)
    by_currency = warned(dimensions=["company", "currency"], order=["currency", "amount desc"], limit=3)
    assert not any("in the order of" in message for message in by_currency)


TIMES = ["2024-01-30 08:00:00", "2024-01-31 00:00:00", "2024-01-31 14:30:00", "2024-02-01 00:00:00"]


@pytest.mark.parametrize("kind", ["timestamp", "text", "sqlite", "sqlalchemy"])
@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ({"op": "<=", "value": "2024-01-31"}, "'d <= 2024-01-31' leaves out: 'd < 2024-02-01' has all of that day"),
        ({"op": ">", "value": "2024-01-31"}, "'d > 2024-01-31' takes in: 'd >= 2024-02-01' has none of that day"),
        ({"op": "between", "value": ["2024-01-30", "2024-01-31"]}, "leaves out: 'd < 2024-02-01' has all of that day"),
        ({"op": "between", "value": ["2024-01-31", "2024-02-09"], "inclusive": "neither"}, "' takes in: 'd >= 2024-02"),
        ({"op": "between", "value": ["2024-01-30", "2024-01-31"], "inclusive": "left"}, None),
        ({"op": "ytd", "value": "2024-01-31"}, None),
        ({"op": "<", "value": "2024-02-01"}, None),
        ({"op": ">=", "value": "2024-01-31"}, None),
        ({"op": "<=", "value": "2024-02-03"}, None),
        ({"op": "<=", "value": "2024-01-31 14:30:00"}, None),
        (
            {"op": "=", "value": "2024-01-31"},
            "'d = 2024-01-31' leaves out: 'd >= 2024-01-31' and 'd < 2024-02-01' have all of 2024-01-31",
        ),
        ({"op": "in", "value": ["2024-01-31 00:00:00", "2024-01-31"]}, "have all of 2024-01-31"),
        ({"op": "=", "value": "2024-02-01 00:00:00"}, None),
        ({"op": "!=", "value": "2024-01-31 00:00:00"}, None),
        (
            {"op": "!=", "value": "2024-01-31"},
            "!= 2024-01-31' takes in: 'd < 2024-01-31' has what is before 2024-01-31, 'd >= 2024-02-01' what is behind",
        ),
        ({"op": "not in", "value": ["2024-01-31", "2024-01-30 08:00:00"]}, "' takes in: 'd < 2024-01-31' has what is"),
    ],
)
def test_a_day_that_stands_for_its_beginning_is_told(
    tmp_path: Path, kind: str, condition: dict[str, Any], told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was posted in the afternoon of the last day was left out without a word, and not by `ytd` of that day."""
    rows = [(time, 2**at) for at, time in enumerate(TIMES)]
    if kind.startswith("sql"):
        with closing(sqlite3.connect(tmp_path / "a.db")) as database:
            database.execute("CREATE TABLE t (d TEXT, v INT)")
            database.executemany("INSERT INTO t VALUES (?, ?)", rows)
            database.commit()
        place = {"kind": "sqlite", "path": "a.db", "table": "t"}
        if kind == "sqlalchemy":
            pytest.importorskip("sqlalchemy")
            monkeypatch.setenv("DAYS_URL", f"sqlite:///{tmp_path / 'a.db'}")
            place = {"kind": kind, "dsn_env": "DAYS_URL", "table": "t"}
    else:
        (tmp_path / "a.csv").write_text("d,v\n" + "".join(f"{time},{value}\n" for time, value in rows))
        place = {"kind": "csv", "path": "a.csv"}
    day = Dimension(name="d", type="timestamp" if kind == "timestamp" else None)
    source = Source(name="a", dimensions=(day,), measures=(Measure(name="v"),), **place)
    found = query(Catalog([source], tmp_path), QueryRequest(source="a", filters=[{"dimension": "d", **condition}]))
    claim = next((one for one in found.claims if one.kind not in ("filter_without_rows", "no_rows")), None)
    assert (claim and claim.kind) == ("begun_days" if told else None)
    if claim and told:
        assert claim.message.startswith("a has rows with times of 2024-01-31 that '")
        assert told in claim.message


def test_a_day_of_text_that_is_spelled_as_no_point_in_time_begins_is_asked_for_as_it_stands(tmp_path: Path) -> None:
    """It was refused as a range that cannot be decided, which nobody had asked for."""
    (tmp_path / "a.csv").write_text("d,v\n2024-1-31,1\n2024-1-31 08:00,2\n")
    source = Source(
        name="a", kind="csv", path="a.csv", dimensions=(Dimension(name="d"),), measures=(Measure(name="v"),)
    )
    found = query(Catalog([source], tmp_path), QueryRequest(source="a", filters={"d": "2024-1-31"}))
    assert (str(found.totals["v"]), found.claims) == ("1.00", ())


def test_days_among_the_days_of_a_range_are_no_times(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("d,v\n2024-01-31,1\n2024-02-01,2\n")
    day, value = Dimension(name="d"), Measure(name="v")
    source = Source(name="a", kind="csv", path="a.csv", dimensions=(day,), measures=(value,))
    until = [{"dimension": "d", "op": "<=", "value": "2024-01-31"}]
    assert query(Catalog([source], tmp_path), QueryRequest(source="a", filters=until)).claims == ()
