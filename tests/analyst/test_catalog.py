"""Sources are declared in a file that is checked; their data are found only where they may be."""

import gzip
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from treadle import Misuse
from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    analyst_skill,
    compare,
    propose,
    query,
)

GOOD = """\
sources:
  ledger:
    description: The ledger.
    kind: csv
    path: ledger.csv
    text: {delimiter: ";", decimal: ",", thousands: ".", encoding: cp1252}
    dimensions:
      company: {column: BUKRS, format: [trim, alpha(10)], synonyms: bukrs code}
      period:
    measures:
      amount: {column: DMBTR, sign: -1, decimals: 2, unit: EUR, tolerance: {absolute: 0.05, relative: 2 %}}
      rows: {column: "*", aggregation: count}
    default_filters:
      - {dimension: period, op: "!=", value: 000000}
      - {dimension: company, op: in, value: [0100, 0200]}
    tolerance: 1
"""


def declared(folder: Path, text: str) -> Path:
    path = folder / "sources.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_declaration_is_read_as_written(tmp_path: Path) -> None:
    ledger = Catalog.load(declared(tmp_path, GOOD)).source("LEDGER")
    assert ledger.tolerance is not None
    assert ledger.tolerance.absolute == 1
    company, period = ledger.dimensions
    assert (company.source_column, str(company.format), company.synonyms) == (
        "BUKRS",
        "trim, alpha(10)",
        ("bukrs code",),
    )
    assert period == Dimension(name="period")
    amount = ledger.measure("amount")
    assert amount.sign == -1
    assert amount.tolerance is not None
    assert (amount.tolerance.absolute, amount.tolerance.relative) == (Decimal("0.05"), Decimal("0.02"))
    assert [str(item) for item in ledger.default_filters] == ["period != 000000", "company in ['0100', '0200']"]
    assert ledger.text.encoding == "cp1252"


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "message"),
    [
        ("kind: csv", "kind: cvs", 4, "sources.ledger.kind", "'cvs' is not supported"),
        ("kind: csv", "kind: postgresql", 4, "sources.ledger.kind", "'postgresql' is not supported"),
        ("path: ledger.csv", "paht: ledger.csv", 5, "sources.ledger.paht", "did you mean 'path'?"),
        ("    kind: csv\n", "", 2, "sources.ledger", "'kind' is missing"),
        ("kind: csv", "kind: csv\n    kind: csv", 5, "sources.ledger.kind", "stands here twice"),
        ("alpha(10)", "alhpa(10)", 8, "sources.ledger.dimensions.company.format", "is not a format"),
        ("sign: -1", "sign: 2", 11, "sources.ledger.measures.amount.sign", "'2' is not supported"),
        (
            "aggregation: count",
            "aggregation: median",
            12,
            "sources.ledger.measures.rows.aggregation",
            "'median' is not",
        ),
        ("relative: 2 %", "relative: two", 11, "sources.ledger.measures.amount.tolerance.relative", "is not a number"),
        (
            "relative: 2 %",
            "relative: 5",
            11,
            "sources.ledger.measures.amount.tolerance.relative",
            "'5' may be 5% or 500%",
        ),
        ("relative: 2 %", "relative: nan", 11, "sources.ledger.measures.amount.tolerance", "from 0 to 1e15, not NaN"),
        ("relative: 2 %", "relative: 1e400", 11, "sources.ledger.measures.amount.tolerance", "not 1E+400"),
        (
            "relative: 2 %",
            "relative: 1e9999999 %",
            11,
            "sources.ledger.measures.amount.tolerance.relative",
            "is not a number",
        ),
        ("relative: 2 %", "relative: -2 %", 11, "sources.ledger.measures.amount.tolerance", "from 0 to 1e15"),
        ("synonyms: bukrs code", "synonyms: period", 2, "sources.ledger", "names both"),
        ("op: in,", "op: between,", 15, "sources.ledger.default_filters[1]", None),
        ("op: in,", "op: =,", 15, "sources.ledger.default_filters[1]", "needs a single value"),
        ("dimension: period", "dimension: perod", 13, "sources.ledger.default_filters", "did you mean 'period'?"),
        ("unit: EUR", "currency: curr", 11, "sources.ledger.measures.amount.currency", "there is no dimension 'curr'"),
        ("encoding: cp1252", "encoding: klingon", 6, "sources.ledger.text.encoding", "not an encoding"),
        ('thousands: "."', 'thousands: ","', 6, "sources.ledger.text", "the same sign"),
        ("    measures:", "    measures: 5\n    x:", 10, "sources.ledger.measures", "must be a mapping"),
        ("kind: csv", "kind: csv\n    table: t", 2, "sources.ledger", "takes no table"),
        ("kind: csv", "kind: sqlite", 2, "sources.ledger", "needs a table"),
    ],
)
def test_mistakes_are_told_with_file_line_and_field(
    tmp_path: Path, old: str, new: str, line: int, field: str, message: str | None
) -> None:
    path = declared(tmp_path, GOOD.replace(old, new, 1))
    if message is None:
        Catalog.load(path)
        return
    with pytest.raises(AnalystError) as caught:
        Catalog.load(path)
    told = str(caught.value)
    assert (told.split(": ")[0], caught.value.hints["field"]) == (
        f"{path}, line {line}",
        field,
    )
    assert message in told


@pytest.mark.parametrize(
    "text", ["", "a: [", "sources:", "sources: {}", "- x", "sources: {a: &b {kind: *b}}", "\x00", "? [a]\n: b"]
)
def test_what_is_no_declaration_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(AnalystError, match=r"sources\.yaml"):
        Catalog.load(declared(tmp_path, text))


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(AnalystError, match="cannot be read"):
        Catalog.load(tmp_path / "none.yaml")
    with pytest.raises(AnalystError, match="cannot be read"):
        Catalog.load(tmp_path)
    (tmp_path / "latin.yaml").write_bytes("a: é".encode("latin-1"))
    with pytest.raises(AnalystError, match="not UTF-8"):
        Catalog.load(tmp_path / "latin.yaml")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device that never ends")
def test_a_file_that_never_ends_is_not_read_for_ever() -> None:
    with pytest.raises(AnalystError, match="/dev/zero cannot be read: it has more than 16,000,000 bytes"):
        Catalog.load("/dev/zero")


def source(path: str, kind: Any = "csv", **more: Any) -> Source:
    return Source(
        name="s", kind=kind, path=path, dimensions=(Dimension(name="k"),), measures=(Measure(name="v"),), **more
    )


def ask(catalog: Catalog) -> Decimal | None:
    return query(catalog, QueryRequest(source="s")).totals["v"]


def test_files_outside_the_folders_are_refused(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "outside.csv").write_text("k,v\n1,2\n")
    (inside / "link.csv").symlink_to(tmp_path / "outside.csv")
    for path in ("../outside.csv", str(tmp_path / "outside.csv"), "link.csv", "../*.csv"):
        with pytest.raises(AnalystError, match="outside the folders"):
            ask(Catalog([source(path)], inside))
        assert ask(Catalog([source(path)], inside, roots=[tmp_path])) == 2


def test_missing_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path, message in (("none.csv", "does not exist"), ("none*.csv", "no file matches"), ("folder", "is a folder")):
        with pytest.raises(AnalystError, match=message):
            ask(Catalog([source(path)], tmp_path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_told_as_what_it_is(tmp_path: Path) -> None:
    """It was said that there is no such file; and nobody who writes into it is waited for."""
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(AnalystError, match="is no regular file"):
        ask(Catalog([source("pipe.csv")], tmp_path))
    with pytest.raises(AnalystError, match="is no regular file"):
        propose(tmp_path / "pipe.csv")


def test_several_files_and_hostile_file_names(tmp_path: Path) -> None:
    (tmp_path / "we'ird [1]; --.csv").write_text("k,v\n1,2\n")
    (tmp_path / "we'ird 1; --.csv").write_text("k,v\n1,4\n")
    assert ask(Catalog([source("we'ird [1]; --.csv")], tmp_path)) == 2
    assert ask(Catalog([source("we*.csv")], tmp_path)) == 6
    with gzip.open(tmp_path / "we.csv.gz", "wt") as out:
        out.write("k,v\n1,8\n")
    assert ask(Catalog([source("we.csv.gz")], tmp_path)) == 8
    (tmp_path / "we'z.csv").write_text("v,k\n1,2\n")
    with pytest.raises(AnalystError, match="not those of the other files"):
        ask(Catalog([source("we*.csv")], tmp_path))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "no line of column names"),
        ("k,k,k (1),v\n1,2,3,4\n", r"two columns called 'k \(1\)'; rename one of them there"),
        ("k,w\n1,2\n", "no column 'v'"),
        (
            "k,v\n1,2,3\n",
            r"^source 's': s\.csv, line 2, cannot be read, because it has 3 fields and the line "
            r"of names 2 fields: 1,2,3; if it is no row, such as one of totals, or one that says how many",
        ),
        ("k,v\n1,2\nNumber of entries: 1\n", "line 3, .* it has 1 field and .* 2 fields: Number of entries: 1; if"),
        ('k,v\n1,"2\n', r"^source 's': s\.csv, line 2, cannot be read: .*unterminated quote"),
    ],
)
def test_damaged_csv_is_refused(tmp_path: Path, data: str, message: str) -> None:
    (tmp_path / "s.csv").write_text(data)
    with pytest.raises(AnalystError, match=message):
        ask(Catalog([source("s.csv")], tmp_path))


@pytest.mark.parametrize("data", ["k,v\n", "k,v"])
def test_a_header_alone_has_no_rows(tmp_path: Path, data: str) -> None:
    (tmp_path / "s.csv").write_text(data)
    assert ask(Catalog([source("s.csv")], tmp_path)) is None


@pytest.mark.parametrize(
    ("data", "message"),
    [("{", "not valid JSON"), ("[1]", "something other than objects"), ('[{"k": 1}]', "no column 'v'")],
)
def test_damaged_json_is_refused(tmp_path: Path, data: str, message: str) -> None:
    (tmp_path / "s.json").write_text(data)
    with pytest.raises(AnalystError, match=message):
        ask(Catalog([source("s.json", "json")], tmp_path))


def test_json_lines(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"k": 1, "v": 0.10}\n\n{"k": null, "v": 12345678901234567890.12}\n')
    assert ask(Catalog([source("s.json", "json")], tmp_path)) == Decimal("12345678901234567890.22")
    (tmp_path / "s.json").write_text("[]")
    assert ask(Catalog([source("s.json", "json")], tmp_path)) is None


@pytest.mark.parametrize("kind", ["parquet", "duckdb", "sqlite"])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "s.bin").write_text("this is neither of them, but long enough to have a header of some length" * 100)
    with pytest.raises(AnalystError, match=r"could not read|cannot be read"):
        ask(Catalog([source("s.bin", kind, table="" if kind == "parquet" else "t")], tmp_path))


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_missing_table_is_told(make: Any, tmp_path: Path, kind: str) -> None:
    make("s", [("1", 2)], kind=kind)
    with pytest.raises(AnalystError, match="nowhere"):
        ask(Catalog([source(f"s.{kind}", kind, table="nowhere")], tmp_path))


@pytest.mark.parametrize(
    ("request_", "argument", "given", "nearest"),
    [
        ({"source_a": "fi_reports"}, "source_a", "fi_reports", "fi_reporting"),
        ({"source_b": "bpc"}, "source_b", "bpc", "bpc_reporting"),
        ({"measures": ["amout"]}, "measures", "amout", "amount"),
        ({"dimensions": ["compny"]}, "dimensions", "compny", "company"),
        ({"filters": {"perod": "1"}}, "filters", "perod", "period"),
        ({"source_a": "zzz"}, "source_a", "zzz", None),
    ],
)
def test_unknown_names_come_back_with_the_nearest(
    sample: Catalog, request_: dict[str, Any], argument: str, given: str, nearest: str | None
) -> None:
    asked = {"source_a": "fi_reporting", "source_b": "consolidation_mart"} | request_
    with pytest.raises(AnalystError) as caught:
        compare(sample, CompareRequest(**asked))
    hints = caught.value.hints
    assert (hints["argument"], hints["given"], hints.get("nearest")) == (argument, given, nearest)
    assert nearest is None or nearest in hints["available"]
    assert repr(nearest or given) in str(caught.value)


def test_names_that_clash_are_refused() -> None:
    with pytest.raises(ValueError, match="names both"):
        Source(name="s", kind="csv", path="x", dimensions=(Dimension(name="a"),), measures=(Measure(name="A"),))
    with pytest.raises(ValueError, match="two sources called 's'"):
        Catalog([source("x"), source("x")])


def test_relative_paths_start_from_the_declaration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text("k,v\n1,2\n")
    text = "sources: {s: {kind: csv, path: data/x.csv, dimensions: {k: }, measures: {v: }}}"
    catalog = Catalog.load(declared(tmp_path, text))
    monkeypatch.chdir(os.sep)
    assert ask(catalog) == 2


@pytest.mark.parametrize("ask", [analyst_skill, lambda given: query(given, None), lambda given: compare(given, None)])
def test_the_path_of_a_declaration_in_place_of_a_catalog_is_told_how_to_load_it(ask: Any) -> None:
    with pytest.raises(Misuse, match=r"Catalog\.load\('sources\.yaml'\)"):
        ask("sources.yaml")


def test_a_file_to_look_at_may_be_named_by_a_text(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("region,amount\nnorth,1\n")
    assert propose(str(tmp_path / "sales.csv")) == propose(tmp_path / "sales.csv")
