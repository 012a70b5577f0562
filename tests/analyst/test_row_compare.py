"""Two sources row by row, and their columns side by side, held against plain Python."""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle.analyst import AnalystError, Catalog, Dimension, Filter, Measure, Source, parse_format
from treadle.analyst.asking.row_compare import RowComparison, RowsRequest, compare_rows
from treadle.analyst.asking.schemas import compare_schemas
from treadle.analyst.declared.source import Conversion, Mapping

from .conftest import QUICK, write_csv, write_sqlite, write_table, written

Rows = Sequence[tuple[Any, ...]]
COLUMNS = ("id", "name", "city")
VALUES = st.sampled_from(["x", "y", None, "", "]]><b>'\"", "0"])
TABLES = st.lists(st.tuples(st.sampled_from(["1", "2", "3", None, "'; --"]), VALUES, VALUES), max_size=8)


def source(place: Path, name: str, rows: Rows, kind: str = "csv", columns: Sequence[str] = COLUMNS) -> Source:
    path = place / f"{name}.{kind}"
    path.unlink(missing_ok=True)
    if kind == "csv":
        write_csv(path, columns, rows)
    elif kind == "sqlite":
        write_sqlite(path, columns, rows)
    else:
        write_table(path, columns, ["VARCHAR"] * len(columns), rows, parquet=kind == "parquet")
    return Source(
        name=name, kind=kind, path=path.name, table="t" if kind in ("sqlite", "duckdb") else "",  # type: ignore[arg-type]
        dimensions=tuple(Dimension(name=column) for column in columns),
        measures=(Measure(name="rows", column="*", aggregation="count"),),
    )  # fmt: skip


def compared(place: Path, *sources: Source, **request: Any) -> RowComparison:
    asked = RowsRequest(**({"source_a": "a", "source_b": "b", "key": ["id"], "limit": 1000} | request))
    return compare_rows(Catalog(sources, place), asked, bounds=QUICK)


@settings(max_examples=deep(10), deadline=None)
@given(TABLES, TABLES, st.sampled_from(["csv", "sqlite", "duckdb", "parquet"]))
def test_rows_are_compared_as_plain_python_does(a: Rows, b: Rows, kind: str) -> None:
    with TemporaryDirectory() as name:
        place = Path(name)
        found = compared(place, source(place, "a", a, kind), source(place, "b", b))
    here, there = ({key: [row for row in rows if row[0] == key] for key in {row[0] for row in rows}} for rows in (a, b))
    both = here.keys() & there.keys()
    single = {key for key in both if len(here[key]) == len(there[key]) == 1}
    differing = {key for key in single if here[key] != there[key]}
    assert (found.keys, found.missing_in_a, found.missing_in_b, found.repeated) == (
        len(here.keys() | there.keys()), len(there.keys() - here), len(here.keys() - there), len(both - single),
    )  # fmt: skip
    assert (found.equal, found.differing) == (len(single - differing), len(differing))
    for at, column in enumerate(found.columns, 1):
        expected = {
            (key, here[key][0][at], there[key][0][at]) for key in single if here[key][0][at] != there[key][0][at]
        }
        assert column.rows == len(expected)
        assert {(one.key["id"], one.a, one.b) for one in column.examples} == expected


def test_examples_are_bounded_and_columns_chosen(tmp_path: Path) -> None:
    a = source(tmp_path, "a", [(str(at), "x", "y") for at in range(50)])
    b = source(tmp_path, "b", [(str(at), "z", "q") for at in range(50)])
    found = compared(tmp_path, a, b, columns=["name"], limit=3)
    assert [(column.column, column.rows, len(column.examples)) for column in found.columns] == [("name", 50, 3)]
    assert found.to_dict()["columns"][0]["examples"][0] == {"key": {"id": "0"}, "a": "x", "b": "z"}
    for wrong, says in [
        ({"columns": ["id"]}, "no dimension in common besides"),
        ({"columns": ["nam"]}, "did you mean 'name'"),
        ({"key": ["ident"]}, "there is no dimension"),
    ]:
        with pytest.raises(AnalystError, match=says):
            compared(tmp_path, a, b, **wrong)
    with pytest.raises(ValueError, match="key"):
        RowsRequest(source_a="a", source_b="b", key=[])


def test_formats_and_names_hold_for_both(tmp_path: Path) -> None:
    a = source(tmp_path, "a", [("0001", "x ", "Bonn")])
    b = source(tmp_path, "b", [("1", "X", "Bonn")], columns=("ident", "name", "city"))
    alpha, name = (
        Dimension(name=one, format=parse_format(form)) for one, form in (("id", "alpha(4)"), ("name", "trim, upper"))
    )
    a = Source(name="a", kind="csv", path="a.csv", dimensions=(alpha, name, a.dimensions[2]), measures=a.measures)
    found = compared(tmp_path, a, b, names={"id": "ident"})
    assert (found.equal, found.keys) == (1, 1)


def test_what_was_not_compared_and_what_was_left_out_is_told(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_csv(
            tmp_path / f"{name}.csv",
            ("id", "city", "note", "amount"),
            [("1", "x", "n", name == "a"), ("2", "y", "n", 1)],
        )
    city = Dimension(name="City", column="city")
    amount = Measure(name="Amount", column="amount")
    a = Source(
        name="a", kind="csv", path="a.csv", dimensions=(Dimension(name="id"), city, Dimension(name="note")),
        measures=(amount, Measure(name="n", column="*", aggregation="count")),
        default_filters=(Filter(dimension="id", op="!=", value="2"),),
    )  # fmt: skip
    b = Source(
        name="b", kind="csv", path="b.csv", measures=(replace(amount, name="value", synonyms=("amount",)),),
        dimensions=(
            Dimension(name="id"), replace(city, name="town", synonyms=("city",)), Dimension(name="more", column="note"),
        ),
    )  # fmt: skip
    found = compared(tmp_path, a, b)
    assert (found.equal, found.missing_in_a, found.not_compared) == (1, 1, ("note", "more", "Amount"))
    assert (found.filters, found.filters_a, found.filters_b) == ((), ("id != 2",), ())
    both = compared(tmp_path, a, b, filters=[{"dimension": "id", "op": "=", "value": "1"}], columns=["city"])
    assert (both.filters, both.keys) == (("id = 1",), 1)


def test_schemas_side_by_side(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", ("id", "betrag", "note"), [("1", "5", "x")])
    types = ("VARCHAR", "DECIMAL(18,2)", "VARCHAR", "DATE")
    rows = [("1", Decimal(5), "x", None)]
    write_table(tmp_path / "b.parquet", ("Id", "amount", "NOTE", "new"), types, rows, parquet=True)
    a = Source(name="a", kind="csv", path="a.csv", dimensions=(Dimension(name="id", type="integer"),),
               measures=(Measure(name="amount", column="betrag"),))  # fmt: skip
    b = Source(name="b", kind="parquet", path="b.parquet", dimensions=(Dimension(name="id", column="Id"),),
               measures=(Measure(name="amount", unit="EUR"),))  # fmt: skip
    found = compare_schemas(Catalog([a, b], tmp_path), "a", "b", bounds=QUICK)
    assert [(one.kind, one.name, one.a, one.b, one.fate) for one in found.members] == [
        ("dimension", "id", "integer", "string", "differs"),
        ("measure", "amount", "sum of varchar", "sum of decimal(18,2), EUR", "differs"),
        ("column", "note", "VARCHAR", "VARCHAR", "same"),
        ("column", "new", "", "DATE", "only_b"),
    ]
    same = compare_schemas(Catalog([a], tmp_path), "a", "a", bounds=QUICK)
    assert {one.fate for one in same.members} == {"same"}


def test_a_measure_that_is_stored_otherwise_and_declared_alike_is_the_same(tmp_path: Path) -> None:
    columns = ("id", "amount")
    write_csv(tmp_path / "a.csv", columns, [("x", "5.00")])
    write_table(tmp_path / "b.parquet", columns, ["VARCHAR", "DECIMAL(18,2)"], [("x", "5.00")], parquet=True)
    made = [
        Source(name=name, kind=kind, path=f"{name}.{kind}", dimensions=(Dimension(name="id"),), measures=measures)  # type: ignore[arg-type]
        for name, kind, measures in (
            ("a", "csv", (Measure(name="amount"), Measure(name="n", column="*", aggregation="count"))),
            ("b", "parquet", (Measure(name="amount"), Measure(name="n", column="amount", aggregation="count"))),
        )
    ]
    found = compare_schemas(Catalog(made, tmp_path), "a", "b", bounds=QUICK)
    assert [(one.name, one.a, one.b, one.fate) for one in found.members if one.kind == "measure"] == [
        ("amount", "sum of varchar", "sum of decimal(18,2)", "same"),
        ("n", "count of rows", "count of decimal(18,2)", "differs"),
    ]


def test_a_measure_of_what_cannot_be_added_up_is_not_the_same_as_one_of_figures(tmp_path: Path) -> None:
    columns = ("id", "amount", "day")
    write_csv(tmp_path / "a.csv", columns, [("x", "5.00", "2026-01-01")])
    write_table(
        tmp_path / "b.parquet", columns, ["VARCHAR", "DATE", "DATE"], [("x", *["2026-01-01"] * 2)], parquet=True
    )
    measures = Measure(name="amount"), Measure(name="days", column="day", aggregation="count")
    made = [
        Source(name=name, kind=kind, path=f"{name}.{kind}", dimensions=(Dimension(name="id"),), measures=measures)  # type: ignore[arg-type]
        for name, kind in (("a", "csv"), ("b", "parquet"))
    ]
    found = compare_schemas(Catalog(made, tmp_path), "a", "b", bounds=QUICK)
    assert [(one.name, one.b, one.fate) for one in found.members if one.kind == "measure"] == [
        ("amount", "sum of date", "differs"),
        ("days", "count of date", "same"),
    ]


@pytest.mark.parametrize("kind", ["json", "sqlite", "duckdb", "parquet"])
def test_what_is_declared_as_the_data_have_it_and_columns_that_nobody_declares_are_the_same(
    tmp_path: Path, kind: str
) -> None:
    """A type that was declared was another than that of the data, and a JSON or SQLite file had no other columns."""
    columns, rows = ("id", "day", "amount", "text"), [("1", "2024-01-31", 5, "x")]
    types = ("VARCHAR", "DATE", "BIGINT", "VARCHAR")
    place = written(tmp_path, "a", kind, columns, rows, types)
    made = [
        Source(**(place | {"name": name}), dimensions=dimensions, measures=(Measure(name="amount"),))
        for name, dimensions in (
            ("a", (Dimension(name="id", type="string"), Dimension(name="day", type="date"))),
            (
                "b",
                (Dimension(name="id"), Dimension(name="day", type=None if kind in ("duckdb", "parquet") else "date")),
            ),
        )
    ]
    found = compare_schemas(Catalog(made, tmp_path), "a", "b", bounds=QUICK)
    assert [(one.kind, one.name, one.fate) for one in found.members] == [
        ("dimension", "id", "same"), ("dimension", "day", "same"), ("measure", "amount", "same"),
        ("column", "text", "same"),
    ]  # fmt: skip


def test_columns_that_differ_in_case_alone_are_each_listed(tmp_path: Path) -> None:
    """One of the two was not there, or was said to differ from the other."""
    (tmp_path / "a.json").write_text('[{"id": 1, "Text": 5, "text": "x", "Note": 1}]')
    (tmp_path / "b.json").write_text('[{"id": 1, "text": "x", "NOTE": 1, "TEXT": "y"}]')
    made = [Source(name=name, kind="json", path=f"{name}.json", dimensions=(Dimension(name="id"),)) for name in "ab"]
    found = compare_schemas(Catalog(made, tmp_path), "a", "b", bounds=QUICK)
    kinds = {one.name: (one.a, one.b) for one in found.members if one.kind == "column"}
    assert kinds == {name: ("VARCHAR", "VARCHAR") for name in ("Text", "text", "Note")}


def test_a_column_that_only_one_side_declares_is_a_column_of_both(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", ("id", "amount", "text", "own"), [("1", "5", "x", "y")])
    write_csv(tmp_path / "b.csv", ("id", "betrag", "TEXT", "amount"), [("1", "5", "x", "4")])
    id_, text = Dimension(name="id"), Dimension(name="text", column="TEXT")
    a = Source(name="a", kind="csv", path="a.csv", dimensions=(id_,), measures=(Measure(name="amount"),))
    b = Source(name="b", kind="csv", path="b.csv", dimensions=(id_, text),
               measures=(Measure(name="amount", column="betrag"), Measure(name="n", expression="betrag")))  # fmt: skip
    found = compare_schemas(Catalog([a, b], tmp_path), "a", "b", bounds=QUICK)
    assert [(one.name, one.a, one.b, one.fate) for one in found.members if one.kind == "column"] == [
        ("amount", "VARCHAR, declared as amount", "VARCHAR", "differs"),
        ("text", "VARCHAR", "VARCHAR, declared as text", "differs"),
        ("own", "VARCHAR", "", "only_a"),
    ]


def test_what_is_declared_to_mean_another_thing_is_not_the_same(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", ("id", "amount", "cur"), [("1", "5", "EUR")])
    id_, cur = Dimension(name="id"), Dimension(name="cur")
    plain = Measure(name="m", column="amount", currency="cur")
    tables = (
        Source(name="old_new", kind="csv", path="t.csv", dimensions=(id_, cur), measures=(plain,)),
        Source(name="rates", kind="csv", path="t.csv", dimensions=(id_, cur), measures=(plain,)),
    )

    def fates(one: Any, other: Any) -> list[tuple[str, str, str]]:
        a, b = (
            Source(name=name, kind="csv", path="t.csv", **{"dimensions": (id_, cur), "measures": (plain,)} | given)
            for name, given in (("a", one), ("b", other))
        )
        found = compare_schemas(Catalog([a, b, *tables], tmp_path), "a", "b", bounds=QUICK)
        return [(one.kind, one.name, one.fate) for one in found.members if one.fate != "same"]

    assert fates({}, {}) == []
    for measure in (
        replace(plain, sign=-1),
        replace(plain, column="", expression="amount * 2"),
        replace(plain, conversion=Conversion(to="EUR", source="rates", currency="cur", rate="m")),
    ):
        assert fates({}, {"measures": (measure,)}) == [("measure", "m", "differs")]
    mapped = replace(id_, mapping=Mapping(source="old_new", old="id", new="cur"))
    assert fates({"dimensions": (mapped, cur)}, {}) == [("dimension", "id", "differs")]
    assert fates(
        {"dimensions": (mapped, cur)},
        {"dimensions": (replace(mapped, mapping=replace(mapped.mapping, otherwise="keep")), cur)},
    )
    ones = [Filter(dimension=name, op="!=", value="2") for name in ("id", "key")]
    called = replace(id_, name="key", column="id", synonyms=("id",))
    assert fates({"default_filters": ones[:1]}, {"default_filters": ones[1:], "dimensions": (called, cur)}) == []
    other = Filter(dimension="id", op="!=", value="3")
    assert fates({"default_filters": ones[:1]}, {}) == [("filter", "id", "only_a")]
    assert fates({"default_filters": ones[:1]}, {"default_filters": (other,)}) == [("filter", "id", "differs")]
