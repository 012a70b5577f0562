"""A comparison asks the engine no more than it has to: each statement costs, however few the rows are."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from treadle.analyst import Catalog, CompareRequest, Dimension, Measure, Source, compare
from treadle.analyst.declared.errors import NotEnoughMemory
from treadle.analyst.reading.session import Session

pytestmark = pytest.mark.usefixtures("one_engine")


def catalog(folder: Path) -> Catalog:
    a = [f"{number % 23},{number},{number}.50" for number in range(40)]
    b = [*a[:28], *(f"{number % 23},{number},{number}.75" for number in range(28, 38))]
    for name, rows in (("a", a), ("b", b)):
        (folder / f"{name}.csv").write_text("\n".join(["k,n,v", *rows]) + "\n", encoding="utf-8")
    dimensions = (Dimension(name="k"), Dimension(name="n"))
    return Catalog(
        [
            Source(name=name, kind="csv", path=f"{name}.csv", dimensions=dimensions, measures=(Measure(name="v"),))
            for name in "ab"
        ],
        folder,
    )


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    execute = Session._execute

    def noticed(self: Session, sql: str, values: Any) -> Any:
        found.append(sql)
        return execute(self, sql, values)

    monkeypatch.setattr(Session, "_execute", noticed)
    return found


def test_a_comparison_takes_few_statements(tmp_path: Path, executed: list[str]) -> None:
    found = compare(catalog(tmp_path), CompareRequest(source_a="a", source_b="b"))
    assert found.summary.differences == 12
    assert found.claims
    assert len(executed) <= 5, "\n".join(sql[:90] for sql in executed)


def test_what_cannot_be_is_not_asked_for(tmp_path: Path, executed: list[str]) -> None:
    dimensions = (Dimension(name="k"), Dimension(name="n"))
    a = [f"{number % 5},{number},{number}.50" for number in range(40)]
    for name, rows in (("a", a), ("b", a[:-2]), ("c", [row.replace(".50", ".75") for row in a])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["k,n,v", *rows]) + "\n", encoding="utf-8")
    sources = [
        Source(name=name, kind="csv", path=f"{name}.csv", dimensions=dimensions, measures=(Measure(name="v"),))
        for name in "abc"
    ]

    def asked(b: str) -> set[str]:
        executed.clear()
        found = compare(Catalog(sources, tmp_path), CompareRequest(source_a="a", source_b=b))
        told = {finding.kind for finding in found.warnings}
        looked = "\n".join(executed)
        signs = {"absent": "AS absent", "factor": "a = b * 10", "duplicates": "differing.na > 1"}
        return told | {f"looked for {kind}" for kind, sign in signs.items() if sign in looked}

    # All values that have a difference are listed with all of their keys, and nearly all keys are equal.
    assert asked("b") == {"absent"}
    # No key is equal, and each has one row on either side.
    assert asked("c") == {"looked for factor", "looked for duplicates"}


def test_dimensions_are_looked_at_one_by_one_where_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = compare(catalog(tmp_path), CompareRequest(source_a="a", source_b="b")).to_dict()
    execute, refused = Session._execute, []

    def short(self: Session, sql: str, values: Any) -> Any:
        for sign in ("GROUPING SETS", "AS absent"):
            if sql.count(sign) > (sign == "AS absent"):
                refused.append(sign)
                raise NotEnoughMemory("short")
        return execute(self, sql, values)

    monkeypatch.setattr(Session, "_execute", short)
    assert compare(catalog(tmp_path), CompareRequest(source_a="a", source_b="b")).to_dict() == expected
    assert refused == ["GROUPING SETS", "AS absent"]
    assert "absent" in str(expected["warnings"])


def test_dimensions_of_several_currencies_are_as_they_are_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"{number % 4 or ''},{number % 7},{'EUR' if number % 3 else 'USD'},{number}.50" for number in range(90)]
    changed = [row.replace(".50", ".75") if at % 4 == 0 else row for at, row in enumerate(rows) if at % 13 != 5]
    for name, lines in (("a", rows), ("b", changed)):
        (tmp_path / f"{name}.csv").write_text("\n".join(["k,n,c,v", *lines]) + "\n", encoding="utf-8")
    sources = [
        Source(
            name=name,
            kind="csv",
            path=f"{name}.csv",
            dimensions=(Dimension(name="k"), Dimension(name="n"), Dimension(name="c")),
            measures=(Measure(name="v", currency="c"),),
        )
        for name in "ab"
    ]
    request = CompareRequest(source_a="a", source_b="b", dimensions=["k", "n"])
    together = compare(Catalog(sources, tmp_path), request).to_dict()
    execute = Session._execute

    def short(self: Session, sql: str, values: Any) -> Any:
        if "GROUPING SETS" in sql:
            raise NotEnoughMemory("short")
        return execute(self, sql, values)

    monkeypatch.setattr(Session, "_execute", short)
    assert compare(Catalog(sources, tmp_path), request).to_dict() == together
    assert {part["currency"] for part in together["by_dimension"]["k"]} == {"EUR", "USD"}
    assert None in {part["value"] for part in together["by_dimension"]["k"]}


@pytest.mark.parametrize("values", [3, 17], ids=["few values", "many values"])
def test_dimensions_of_every_type_are_as_they_are_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: int
) -> None:
    """The values that carry the differences are looked for first, and the figures of all their keys then."""
    types = {
        "whole": f"{10**30}::HUGEINT + i % {values}",
        "cents": f"(i % {values} - 1)::DECIMAL(20, 3) / 8",
        "day": f"DATE '0001-01-01' + (i % {values})::INT",
        "moment": f"TIMESTAMP '2024-02-29 23:59:59.999999' + INTERVAL (i % {values}) HOUR",
        "flag": "i % 2 = 0",
        "word": f"'it''s ' || chr(228) || (i % {values})",
        "gap": f"CASE WHEN i % {values} > 1 THEN i % {values} END",
    }
    listed = ", ".join(f"{value} AS {name}" for name, value in types.items())
    for side, amount in (("a", "1"), ("b", "CASE WHEN i % 5 = 0 THEN 1.5 ELSE 1 END")):
        with duckdb.connect(str(tmp_path / f"{side}.duckdb")) as engine:
            amount = f"({amount})::DECIMAL(18, 2)"
            engine.execute(f"CREATE TABLE rows AS SELECT {listed}, i AS n, {amount} AS v FROM range(200) AS t(i)")
    sources = [
        Source(
            name=side,
            kind="duckdb",
            path=f"{side}.duckdb",
            table="rows",
            dimensions=tuple(Dimension(name=name) for name in (*types, "n")),
            measures=(Measure(name="v"),),
        )
        for side in "ab"
    ]
    request = CompareRequest(source_a="a", source_b="b")
    together = compare(Catalog(sources, tmp_path), request).to_dict()
    execute = Session._execute

    def short(self: Session, sql: str, values: Any) -> Any:
        if "GROUPING SETS" in sql:
            raise NotEnoughMemory("short")
        return execute(self, sql, values)

    monkeypatch.setattr(Session, "_execute", short)
    assert compare(Catalog(sources, tmp_path), request).to_dict() == together
    assert {name: len(parts) for name, parts in together["by_dimension"].items()} == {
        **dict.fromkeys(types, min(values, 10)),
        "flag": 2,
        "gap": min(values - 1, 10),
        "n": 10,
    }
    assert None in {part["value"] for part in together["by_dimension"]["gap"]}


@pytest.mark.parametrize("within", [False, True])
def test_keys_that_match_and_are_not_equal_are_copied_where_there_are_any(
    tmp_path: Path, executed: list[str], monkeypatch: pytest.MonkeyPatch, within: bool
) -> None:
    with duckdb.connect() as engine:
        for side, more in (("a", "0"), ("b", "CASE WHEN i % 100 = 0 THEN 0.75 WHEN i % 101 = 0 THEN 5 ELSE 0 END")):
            rows = f"SELECT i AS k, 100 + ({more})::DECIMAL(18, 2) AS v FROM range(21000) AS t(i)"
            engine.execute(f"COPY ({rows}) TO '{tmp_path / side}.parquet'")
    sources = [
        Source(
            name=side,
            kind="parquet",
            path=f"{side}.parquet",
            dimensions=(Dimension(name="k"),),
            measures=(Measure(name="v"),),
        )
        for side in "ab"
    ]
    request = CompareRequest(source_a="a", source_b="b", tolerance=Decimal(1) if within else None, top=500)
    found = compare(Catalog(sources, tmp_path), request)
    copied = next(sql for sql in executed if sql.startswith("CREATE TABLE differing"))
    assert ("UNION ALL" in copied) is within
    assert found.summary.differences == (205 if within else 415)
    execute = Session._execute

    def short(self: Session, sql: str, values: Any) -> Any:
        if sql.startswith("CREATE TABLE differing"):
            raise NotEnoughMemory("short")
        return execute(self, sql, values)

    monkeypatch.setattr(Session, "_execute", short)
    assert compare(Catalog(sources, tmp_path), request).to_dict() == found.to_dict()


@pytest.mark.parametrize(("prefixes", "looks"), [(("X", "Y"), 1), (("É", "Ü"), 3)])
def test_a_spelling_that_changes_nothing_is_not_tried(
    tmp_path: Path, executed: list[str], prefixes: tuple[str, str], looks: int
) -> None:
    """Texts that no format changes: one look where they are plain, else one at each of two lists of formats too, and
    none at keys that would meet."""
    for name, prefix in zip("ab", prefixes, strict=True):
        texts = (f"{prefix}1", f"{prefix}2")
        (tmp_path / f"{name}.csv").write_text("k,v\n" + "".join(f"{text},1\n" for text in texts), encoding="utf-8")
    sources = [
        Source(
            name=name, kind="csv", path=f"{name}.csv", dimensions=(Dimension(name="k"),), measures=(Measure(name="v"),)
        )
        for name in "ab"
    ]
    found = compare(Catalog(sources, tmp_path), CompareRequest(source_a="a", source_b="b"))
    assert found.summary.missing_in_a == found.summary.missing_in_b == 2
    assert sum("BOOL_OR" in sql for sql in executed) == looks
    assert not [sql for sql in executed if "INTERSECT" in sql]
