"""Exports: every key with every digit, files that are whole or not there, and a page that is safe to open."""

import csv
import json
import os
from collections.abc import Callable
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pytest
from msgspec.structs import replace

from treadle.analyst import (
    AnalystError,
    Cancelled,
    Catalog,
    CompareRequest,
    Comparison,
    Export,
    Interrupt,
    Measure,
    QueryRequest,
    Source,
    compare,
    page,
    query,
)

HOSTILE = [
    '<script>alert("x")</script>',
    "</text></svg><img src=x onerror=alert(1)>",
    "=1+1",
    "@SUM(A1)",
    "+49 89",
    "-5",
    "-2+3",
    "\t=1",
    'a,"b"\nc',
    "'; DROP TABLE aligned; --",
    "NULL",
    "",
    None,
    "ä\u202e\x07",
]
A = [(key, Decimal(f"{n}00.25")) for n, key in enumerate(HOSTILE, 1)]
B = [*[(key, amount + n) for n, (key, amount) in enumerate(A, 1)][:-2], ("only in b", Decimal("7.00"))]

Make = Callable[..., Source]


@pytest.fixture
def catalog(make: Make, tmp_path: Path) -> Catalog:
    return Catalog([make("a", A), make("b", B)], tmp_path)


def written(catalog: Catalog, *exports: Any, **options: Any) -> Comparison:
    asked = CompareRequest(source_a="a", source_b="b", top=50, **options.pop("asked", {}))
    return compare(catalog, asked, exports=exports, **options)


def rows_of(path: Path) -> list[dict[str, Any]]:
    match path.suffix:
        case ".json":
            rows = json.loads(path.read_text("utf-8"))["rows"]
            return [row.pop("key") | row for row in rows]
        case ".csv":
            with path.open(encoding="utf-8", newline="") as lines:
                return list(csv.DictReader(lines))
        case _:
            with duckdb.connect() as connection:
                found = connection.execute(f"SELECT * FROM '{path}'")
                names = [column[0] for column in found.description or ()]
                return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def amount(value: Any) -> Decimal | None:
    return None if value in (None, "") else Decimal(value)


@pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
def test_every_key_is_written_as_it_is_in_the_result(catalog: Catalog, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    found = written(catalog, path)
    rows = rows_of(path)
    assert len(rows) == found.summary.total_rows == len(found.rows)
    for row, known in zip(rows, found.rows, strict=True):
        for name in ("source_a_value", "source_b_value", "diff", "absolute_diff"):
            assert amount(row[name]) == getattr(known, name)
        assert (row["measure"], row["status"]) == ("amount", known.status)
        assert (int(row["rows_a"]), int(row["rows_b"])) == (known.rows_a, known.rows_b)
        percentage = row["percentage_diff"]
        assert (float(percentage) if percentage not in (None, "") else None) == known.percentage_diff
        if ending != "csv":
            assert row["company"] == known.key["company"]


def test_rows_beyond_those_kept_are_written_too(catalog: Catalog, tmp_path: Path) -> None:
    found = compare(
        catalog, CompareRequest(source_a="a", source_b="b", top=1, keep=0), exports=[tmp_path / "out.parquet"]
    )
    assert found.rows == []
    assert len(rows_of(tmp_path / "out.parquet")) == found.summary.total_rows > 10


def test_parquet_holds_exact_decimals(make: Make, tmp_path: Path) -> None:
    big = Decimal("12345678901234567890.1234")
    catalog = Catalog([make("a", [("1", big)]), make("b", [("1", -big)])], tmp_path)
    written(catalog, tmp_path / "out.parquet", tmp_path / "out.csv", tmp_path / "out.json")
    for ending in ("parquet", "csv", "json"):
        (row,) = rows_of(tmp_path / f"out.{ending}")
        assert (Decimal(row["source_a_value"]), Decimal(row["diff"])) == (big, 2 * big)
    with duckdb.connect() as connection:
        kinds = connection.execute(f"DESCRIBE SELECT * FROM '{tmp_path}/out.parquet'").fetchall()
    assert {row[0]: row[1] for row in kinds}["diff"] == "DECIMAL(38,4)"


def test_what_was_crossed_is_said(make: Make, tmp_path: Path) -> None:
    pairs = {
        "none": ("100", "100.01"),
        "absolute": ("100000", "100500"),
        "materiality": ("1000000", "1005000"),
        "relative": ("100", "101"),
        "materiality and relative": ("0", "5000"),
    }
    a = [(key, Decimal(one)) for key, (one, _) in pairs.items()] + [("missing", Decimal(1))]
    b = [(key, Decimal(other)) for key, (_, other) in pairs.items()]
    written(Catalog([make("a", a), make("b", b)], tmp_path), tmp_path / "out.csv")
    assert all(row["crossed"] == row["company"] for row in rows_of(tmp_path / "out.csv"))


def test_a_spreadsheet_finds_no_formula(catalog: Catalog, tmp_path: Path) -> None:
    written(catalog, tmp_path / "out.csv")
    keys = {row["company"] for row in rows_of(tmp_path / "out.csv")}
    assert {"'=1+1", "'@SUM(A1)", "'+49 89", "'-2+3", "'\t=1", "-5", 'a,"b"\nc', "NULL"} <= keys


@pytest.mark.parametrize("text", ["x\r=2+5", "\r=2", "x\n=2+5", 'x"\r\n=2'])
def test_a_line_break_in_a_text_begins_no_line_of_a_query_file(make: Make, tmp_path: Path, text: str) -> None:
    """A carriage return was not quoted: what stood behind it was a line of its own, and a formula."""
    catalog = Catalog([make("a", [(text, 1), ("z", 2)])], tmp_path)
    query(catalog, QueryRequest(source="a", dimensions=["company"]), exports=[tmp_path / "q.csv"])
    held = (tmp_path / "q.csv").read_bytes()
    with (tmp_path / "q.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))
    assert sorted(rows[1:]) == sorted([[("'" if text[0] == "\r" else "") + text, "1.00"], ["z", "2.00"]])
    assert held.count(b"\r") == text.count("\r")


def test_an_empty_text_is_another_key_than_none_in_a_query_file_too(make: Make, tmp_path: Path) -> None:
    """Both were nothing between two commas: read again, they were one key with one figure."""
    rows = [("", 1), (None, 2), ('"', 3), (" ", 4), ("a,b", 5), ("'", 6)]
    request = QueryRequest(source="a", dimensions=["company"])
    found = query(Catalog([make("a", rows)], tmp_path), request, exports=[tmp_path / "q.csv"])
    again = replace(make("a", []), path="q.csv")
    read = query(Catalog([again], tmp_path), request)
    assert read.rows == found.rows
    assert len(found.rows) == len(rows)


def test_a_total_of_zero_beside_several_currencies_stands_in_the_sheet_of_totals(make: Make, tmp_path: Path) -> None:
    rows = [("a", "EUR", "2", "1"), ("b", "USD", "-2", "3")]
    source = make("s", rows, columns=("k", "code", "pieces", "amount"), currency="code")
    pieces = Measure(name="pieces", decimals=2)
    source = replace(source, dimensions=source.dimensions[:2], measures=(*source.measures, pieces))
    query(Catalog([source], tmp_path), QueryRequest(source="s", dimensions=["k"]), exports=[tmp_path / "q.xlsx"])
    calamine = pytest.importorskip("python_calamine")
    sheet = calamine.CalamineWorkbook.from_path(str(tmp_path / "q.xlsx")).get_sheet_by_name("totals")
    assert sheet.to_python() == [["code", "amount", "pieces"], ["EUR", 1, ""], ["USD", 3, ""], ["", "", 0]]


def test_several_measures_and_no_dimensions(make: Make, tmp_path: Path) -> None:
    source = make("s", [("1", 5), ("2", 6)])
    first = source.measures[0]
    from msgspec.structs import replace

    both = (first, replace(first, name="mean", aggregation="avg"), replace(first, name="status", aggregation="count"))
    catalog = Catalog([replace(source, name="a", measures=both), replace(source, name="b", measures=both)], tmp_path)
    written(catalog, tmp_path / "out.parquet", tmp_path / "out.json", asked={"dimensions": []})
    for ending in ("parquet", "json"):
        rows = rows_of(tmp_path / f"out.{ending}")
        found = [(row["measure"], Decimal(row["source_a_value"])) for row in rows]
        assert found == [("amount", Decimal(11)), ("mean", Decimal("5.5")), ("status", Decimal(2))]
    assert len(json.loads((tmp_path / "out.json").read_text())["more"]) == 2


def test_a_dimension_may_have_the_name_of_a_column(make: Make, tmp_path: Path) -> None:
    columns = ("status", "key_status", "=x", "amount")
    catalog = Catalog([make(name, [("s", "k", "x", 1)], columns=columns) for name in "ab"], tmp_path)
    written(catalog, tmp_path / "out.csv", tmp_path / "out.parquet", tmp_path / "out.json")
    (row,) = rows_of(tmp_path / "out.csv")
    assert (row["status"], row["'=x"]) == ("match", "x")
    assert {"s", "k"} <= set(row.values())
    (row,) = rows_of(tmp_path / "out.parquet")
    assert row["=x"] == "x"
    assert json.loads((tmp_path / "out.json").read_text())["rows"][0]["key"] == {
        "status": "s",
        "key_status": "k",
        "=x": "x",
    }


# Files


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("folder.csv", "it is a folder"),
        ("nowhere/out.csv", "there is no folder"),
        ("a.csv", "a file of one of the sources"),
        ("link.csv", "a file of one of the sources"),
        ("out.txt", "must end in one of .json, .csv, .html, .parquet"),
        (Export("csv", Path("notes.json")), "does not end in .csv"),
        ("pipe.csv", "no ordinary file"),
    ],
)
def test_what_cannot_be_written_is_told_first(catalog: Catalog, tmp_path: Path, name: Any, why: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "notes.json").write_text("mine")
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()}
    told: list[str] = []
    export = Export("csv", tmp_path / name.path) if isinstance(name, Export) else tmp_path / name
    with pytest.raises(AnalystError, match=why):
        written(catalog, tmp_path / "fine.json", export, tell=told.append)
    assert told == []
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()} == before


def test_two_exports_need_two_files(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(AnalystError, match="written twice"):
        written(catalog, tmp_path / "out.csv", tmp_path / "x" / ".." / "out.csv")


def test_an_older_file_is_replaced_and_keeps_its_permissions(catalog: Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    real, link = folder / "real.csv", tmp_path / "out.csv"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    written(catalog, link)
    assert link.is_symlink()
    assert real.read_text("utf-8").startswith("measure,")
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("how", ["changed", "cancelled"])
def test_nothing_is_written_unless_all_is_well(catalog: Catalog, tmp_path: Path, how: str) -> None:
    (tmp_path / "out.json").write_text("old")
    interrupt = Interrupt()

    def tell(doing: str) -> None:
        if doing.startswith("writing out.csv"):
            if how == "changed":
                (tmp_path / "a.csv").write_text("company,amount\n1,1\n")
            else:
                interrupt.set()

    before = sorted(tmp_path.iterdir())
    with pytest.raises(Cancelled if how == "cancelled" else AnalystError):
        written(catalog, tmp_path / "out.json", tmp_path / "out.csv", tell=tell, interrupt=interrupt)
    assert (tmp_path / "out.json").read_text() == "old"
    assert sorted(tmp_path.iterdir()) == before


# The page


class Page(HTMLParser):
    """What a browser would find."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_the_page_is_whole_safe_and_readable(catalog: Catalog, tmp_path: Path) -> None:
    found = written(catalog, tmp_path / "out.html")
    text = (tmp_path / "out.html").read_text("utf-8")
    assert text == page(found)
    seen = Page(text)
    tags = {name for name, _ in seen.tags}
    assert not tags & {"script", "img", "link", "iframe", "object", "a", "base", "form"}
    loading = {"src", "href", "xlink:href", "srcset", "data", "action"}
    assert not any(
        loading & attributes.keys() or any(n.startswith("on") for n in attributes) for _, attributes in seen.tags
    )
    assert not any(word in text for word in ("http://", "https://", "url(", "@import"))
    assert {
        "http-equiv": "Content-Security-Policy",
        "content": "default-src 'none'; style-src 'unsafe-inline'",
    } in seen.all("meta")
    assert "prefers-color-scheme: dark" in text
    assert '<script>alert("x")</script>' in seen.texts
    assert "\x07" not in text
    assert len([table for table in seen.all("table") if table["aria-label"]]) == len(seen.all("table")) > 1
    assert all(head.get("scope") in ("col", "row") for head in seen.all("th"))
    ids = [attributes["id"] for _, attributes in seen.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    drawings = [attributes for _, attributes in seen.tags if attributes.get("role") == "img"]
    assert len(drawings) == 2
    for drawing in drawings:
        assert set((drawing["aria-labelledby"] or "").split()) <= set(ids)
    assert len(seen.all("rect")) > len(found.top_differences) / 2
    assert any(f"{found.summary.total_diff:,f}".replace("-", "−") == one for one in seen.texts)


def test_no_value_turns_the_figures_after_it_round(make: Make, tmp_path: Path) -> None:
    """An override of the writing direction would show 123.45 as 54.321, in whatever sentence it stands."""
    marks = "\u202a\u202b\u202d\u202e\u202c\u2066\u2067\u2068\u2069"
    catalog = Catalog([make("a", [(f"x{marks}y", "123.45")]), make("b", [("z", "1.00")])], tmp_path)
    text = page(written(catalog, tmp_path / "out.html"))
    assert not set(marks) & set(text)
    assert r"x\u202a\u202b" in text


def test_the_figures_of_a_page_agree_with_each_other(make: Make, tmp_path: Path) -> None:
    """The rate of matches is the same everywhere, a small share is not shown as none, a zero has its decimals."""
    rows = [(f"{at:03}", "100000.00") for at in range(60)]
    other = [(key, "99999.00" if key in ("007", "008") else amount) for key, amount in rows]
    catalog = Catalog([make("a", rows), make("b", other)], tmp_path)
    found = written(catalog, tmp_path / "out.html")
    seen = Page(page(found)).texts
    assert "96.7" in seen
    assert "96.67" not in seen
    assert "< 0.01" in seen
    zero = compare(catalog, CompareRequest(source_a="a", source_b="a"))
    assert (str(zero.summary.total_diff), str(zero.summary.total_absolute_diff)) == ("0.00", "0.00")
    assert {str(row.diff) for row in zero.rows} == {"0.00"}
    assert "0.00" in Page(page(zero)).texts


def test_a_page_without_rows_can_be_read_too(make: Make, tmp_path: Path) -> None:
    catalog = Catalog([make("a", []), make("b", [])], tmp_path)
    found = written(catalog, tmp_path / "out.html", tmp_path / "out.csv", tmp_path / "out.json", tmp_path / "o.parquet")
    assert "nothing to compare" in "".join(Page(page(found)).texts)
    assert rows_of(tmp_path / "out.csv") == rows_of(tmp_path / "out.json") == rows_of(tmp_path / "o.parquet") == []


def test_what_has_an_apostrophe_before_a_formula_stays_another_text(make: Make, tmp_path: Path) -> None:
    """`=x` and `'=x` were both `'=x` in CSV files."""
    texts = ["=x", "'=x", "''=x", "-5", "'-5", "' =x", " =x", "'x", "x", "'", "\t", "'\t", "'+1+1", "@", "'@"]
    catalog = Catalog([make("a", [(text, at) for at, text in enumerate(texts)]), make("b", [("=x", 1)])], tmp_path)
    written(catalog, tmp_path / "out.csv")
    query(catalog, QueryRequest(source="a", dimensions=["company"]), exports=[tmp_path / "q.csv"])
    plain = ["-5", "'-5", "'x", "x", "'"]
    for name in ("out.csv", "q.csv"):
        keys = [row["company"] for row in rows_of(tmp_path / name)]
        assert sorted(keys) == sorted(text if text in plain else f"'{text}" for text in texts), name
