"""Text that is read fast is read as text that is read with care: the same figures, the same refusals."""

from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
from depth import deep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    TextFormat,
    compare,
    parse_format,
    query,
)
from treadle.analyst.asking.loading import fetch
from treadle.analyst.asking.rows import as_it_is
from treadle.analyst.asking.stages import Wanted
from treadle.analyst.declared.errors import NotPlain
from treadle.analyst.reading.progress import Progress, told
from treadle.analyst.reading.row_count import rows_in
from treadle.analyst.reading.session import Session
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters

from .conftest import QUICK

pytestmark = pytest.mark.usefixtures("one_engine")

POINT, GERMAN, COMMA = TextFormat(), TextFormat(decimal=",", thousands="."), TextFormat(decimal=",")
ENGLISH, SWISS = TextFormat(thousands=","), TextFormat(thousands="'")
FRENCH = TextFormat(decimal=",", thousands=" ")
FORMS = {"point": POINT, "german": GERMAN, "comma": COMMA, "english": ENGLISH, "swiss": SWISS, "french": FRENCH}


def source(name: str, form: TextFormat, key: str = "", kind: str = "sum") -> Source:
    return Source(
        name=name,
        kind="csv",
        path=f"{name}.csv",
        text=TextFormat(delimiter="|", decimal=form.decimal, thousands=form.thousands),
        dimensions=(Dimension(name="k", format=parse_format(key)),),
        measures=(Measure(name="v", aggregation=kind),),
    )


def written(folder: Path, name: str, rows: Sequence[tuple[str, str]]) -> None:
    (folder / f"{name}.csv").write_text("k|v\n" + "".join(f"{key}|{value}\n" for key, value in rows), encoding="utf-8")


def with_care(folder: Path, form: TextFormat) -> Decimal | str:
    try:
        rows = query(Catalog([source("a", form)], folder), QueryRequest(source="a", dimensions=[]), bounds=QUICK).rows
    except AnalystError:
        return "refused"
    return rows[0]["v"] or Decimal(0)


def fast(folder: Path, form: TextFormat) -> Decimal | str:
    request = CompareRequest(source_a="a", source_b="b", dimensions=["k"])
    try:
        found = compare(Catalog([source("a", form), source("b", form)], folder), request, bounds=QUICK)
    except AnalystError:
        return "refused"
    return found.summary.total_source_a or Decimal(0)


TRAPS = [
    "1.234", "1,234", "1.234,5", "1.23,4", "12345.678,90", "1234.678", "1_000", "1e5", "1.e5", "1E5.00", "5.", ".5",
    "5-", "-5-", "5.00-", "1.234,56-", " 5 ", "  ", "\t5", "5\t", "\u00a05", "+5", "+-5", "--5", "- 5", "0.1234567",
    "0.1234560", "999999999999.999999", "1000000000000", "-123456789012345678901234567890.12", "1..2", "1.234.567,89",
    ".123", "1.234.", "0.123.456", "(5)", "−5", "1’234", "nan", "inf", "Infinity", "0x10", "٣", "1.234 ,5", "5 -",
    "000.000.005", "0001.234", "-.123,45", ".123,45", "1234.567,89", "1.234.56,78", "-1.234,56-", "1.2_4,56",
    "1.2e1,00", "-", "+", "1,2,3", "1 234", "\u20095", "1E1000000", "1E-1000000", "9" * 60,
]  # fmt: skip


# Of those that are not read fast, some that a whole comparison falls back for.
CAREFUL = ["1,234", "1.23,4", "1_000", "1.e5", "1E5.00", "-5-", "(5)", "0.1234567", "1000000000000", "٣", "000.000.005",
           "1.234.56,78", "1E1000000", "9" * 60]  # fmt: skip


def read_fast(folder: Path, form: TextFormat, texts: Sequence[str]) -> dict[str, Decimal]:
    """The numbers that a look at each text makes of it; without those of which it makes none."""
    written(folder, "a", [(str(at), text) for at, text in enumerate(texts)])
    catalog = Catalog([source("a", form)], folder)
    found: dict[str, Decimal] = {}
    with Session(catalog, [catalog.source("a")], QUICK) as session:
        opened = Wanted(letter="a", index=0, source=catalog.source("a"), declared=catalog.source("a").measures)
        (fetched,), _ = fetch(session, [(one := opened.open(session)).typed([one])])
        side = as_it_is(fetched)
        side.take_for_plain(True)
        for at, text in enumerate(texts):
            row = side.filtered(exp.select(side.amount(0).value), Parameters())
            with suppress(NotPlain):
                value = session.run(row.where(exp.column("k").eq(str(at))))[0][0]
                found[text] = Decimal(0) if value is None else value
    return found


@pytest.mark.parametrize("form", ["point", "german"])
def test_what_is_read_fast_is_read_with_care(tmp_path: Path, form: str) -> None:
    """Each text is looked at by itself: a single one that is not read fast has its whole column read with care."""
    known = read_fast(tmp_path, FORMS[form], TRAPS)
    assert {"1.234", "5-", "+5", " 5 ", "  "} <= known.keys()
    written(tmp_path, "a", [(str(at), text) for at, text in enumerate(known)])
    rows = query(Catalog([source("a", FORMS[form])], tmp_path), QueryRequest(source="a", dimensions=["k"])).rows
    careful = {list(known)[int(row["k"])]: row["v"] or Decimal(0) for row in rows}
    assert careful == known


@pytest.mark.parametrize("form", ["point", "german"])
@pytest.mark.parametrize("text", CAREFUL)
def test_what_is_not_read_fast_is_read_with_care(tmp_path: Path, text: str, form: str) -> None:
    for name in "ab":
        written(tmp_path, name, [("x", "1"), ("y", text)])
    assert fast(tmp_path, FORMS[form]) == with_care(tmp_path, FORMS[form])


@pytest.mark.parametrize("text", ["0.234", "-0.234", "0.234-", "+0.234", " 0.234 ", "0.234,50", "0.234.567", "(0.234)"])
def test_a_zero_that_stands_alone_begins_no_thousands(tmp_path: Path, text: str) -> None:
    for name in "ab":
        written(tmp_path, name, [("x", "1.234"), ("y", text)])
    assert fast(tmp_path, GERMAN) == with_care(tmp_path, GERMAN) == "refused"
    for name in "ab":
        written(tmp_path, name, [("x", "10.234"), ("y", "012.345,67"), ("z", "-10.234,00"), ("w", "0,234"), ("v", "0")])
    assert fast(tmp_path, GERMAN) == with_care(tmp_path, GERMAN) == Decimal("12345.904")


NUMBERS = {
    "1.00": "1", "-12.34": "-12.34", "999.99": "999.99", "1,000.00": "1000", "-999,999.99": "-999999.99",
    "12,345.60-": "-12345.6", "7.89-": "-7.89", "0.00": "0", "-0.00": "0", "1,234,567.89": "1234567.89",
    "-123,456,789.01": "-123456789.01", "999,999,999.99": "999999999.99", "1,234,567.89-": "-1234567.89",
    "123,456,789,012.34": "123456789012.34", "1234.56": "1234.56", "-123456.78": "-123456.78", "0012.34": "12.34",
    "012,345.67": "12345.67", "1,234.5": "1234.5", "1,234.567": "1234.567", "1,234": "1234", "-5": "-5",
    "+1,234.56": "1234.56", " 1,234.56": "1234.56",
}  # fmt: skip


@pytest.mark.parametrize("decimals", [None, 0, 2, 3])
@pytest.mark.parametrize("form", sorted(FORMS))
def test_numbers_of_every_shape_are_read_fast_and_exactly(tmp_path: Path, form: str, decimals: int | None) -> None:
    signs = {",": FORMS[form].thousands, ".": FORMS[form].decimal}
    spelled = ["".join(signs.get(sign, sign) for sign in number) for number in NUMBERS]
    sources = []
    for name in "ab":
        written(tmp_path, name, [(f"k{at}", text) for at, text in enumerate(spelled)])
        sources.append(replace(source(name, FORMS[form]), measures=(Measure(name="v", decimals=decimals),)))
    found = compare(Catalog(sources, tmp_path), CompareRequest(source_a="a", source_b="b", dimensions=["k"]))
    values = {row.key["k"]: row.source_a_value for row in found.rows}
    assert values == {f"k{at}": Decimal(number) for at, number in enumerate(NUMBERS.values())}


@settings(max_examples=deep(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.text("0123456789.,-+ eE_'", min_size=1, max_size=14), min_size=1, max_size=5),
    form=st.sampled_from(sorted(FORMS)),
)
def test_any_text_is_read_fast_as_with_care(tmp_path: Path, texts: list[str], form: str) -> None:
    for name in "ab":
        written(tmp_path, name, [(str(at), text) for at, text in enumerate(texts)])
    assert fast(tmp_path, FORMS[form]) == with_care(tmp_path, FORMS[form])


@pytest.mark.parametrize("kind", ["sum", "avg", "min", "max", "count"])
def test_aggregates_of_text_read_fast_are_exact(tmp_path: Path, kind: str) -> None:
    for name in "ab":
        written(tmp_path, name, [("x", "0.1"), ("x", "0.2"), ("x", ""), ("x", "1000000.123456-")])
    catalog = Catalog([source("a", POINT, kind=kind), source("b", POINT, kind=kind)], tmp_path)
    total = compare(catalog, CompareRequest(source_a="a", source_b="b", dimensions=["k"])).rows[0].source_a_value
    careful = query(catalog, QueryRequest(source="a", dimensions=["k"])).rows[0]["v"]
    assert total == careful
    assert total == {
        "sum": Decimal("-999999.823456"), "avg": total, "min": Decimal("-1000000.123456"), "max": Decimal("0.2"),
        "count": 3,
    }[kind]  # fmt: skip


ALPHA = [("0012", "12"), ("000", "0"), (" 7 ", "7"), ("0A", "0A"), ("1234567", "1234567"), ("00\u00a0", "0"),
         ("-05", "-05"), ("+5", "+5"), ("1.0", "1.0"), ("1_0", "1_0"), ("٣", "٣"), ("0000012", "0000012"),
         ("é ", "é")]  # fmt: skip


@pytest.mark.parametrize("form", ["alpha(6)", "trim, alpha(6)", "trim, upper, alpha(6)"])
@pytest.mark.parametrize(("spelled", "meant"), ALPHA)
def test_alpha_is_the_same_value_as_ever(tmp_path: Path, form: str, spelled: str, meant: str) -> None:
    written(tmp_path, "a", [(spelled, "1")])
    rows = query(Catalog([source("a", POINT, form)], tmp_path), QueryRequest(source="a", dimensions=["k"])).rows
    assert rows[0]["k"] == (meant.upper() if "upper" in form else meant)


@pytest.mark.parametrize(("spelled", "meant"), [
    ("202401", "202401"), ("2024001", "202401"), ("001.2024", "202401"), ("2024012", "202412"), (" 202401 ", "202401"),
    ("1/2024", "202401"), ("2024-01-31", "202401"), ("2024100", "2024100"), ("20240", "20240"),
])  # fmt: skip
def test_periods_are_the_same_value_as_ever(tmp_path: Path, spelled: str, meant: str) -> None:
    written(tmp_path, "a", [(spelled, "1")])
    catalog = Catalog([source("a", POINT, "fiscal_period")], tmp_path)
    assert query(catalog, QueryRequest(source="a", dimensions=["k"])).rows[0]["k"] == meant


def test_how_far_it_is_in_words() -> None:
    assert (
        told("adding up", 25.0, 5.0, 10_123_456)
        == "adding up: 25 %, about 2,530,000 of 10,100,000 rows, about 15 s left"
    )
    assert told("adding up", 50.0, 600.0, None) == "adding up: 50 %, about 10 min left"
    assert told("adding up", 0.0, 5.0, None) == "adding up: 0 %"
    assert told("adding up", -1.0, 5.0, 100) == ""


def test_of_a_long_statement_it_is_told_how_far_it_is() -> None:
    import threading

    heard: list[str] = []
    enough = threading.Event()

    def tell(text: str) -> None:
        heard.append(text)
        if "%" in text:
            enough.set()

    with Progress(tell, lambda: 40.0) as progress:
        progress.begin("reading")
        progress.begin("adding up both sides", measured=True, rows=1000)
        assert enough.wait(60)
    assert heard[:2] == ["reading", "adding up both sides"]
    assert heard[2].startswith("adding up both sides: 40 %, about 400 of 1,000 rows")


def test_rows_are_counted_by_what_files_say(tmp_path: Path) -> None:
    written(tmp_path, "a", [(f"{at:05}", "1.50") for at in range(20_000)])
    catalog = Catalog([source("a", POINT)], tmp_path)
    with Session(catalog, [catalog.source("a")]) as session:
        assert 19_900 <= (rows_in(session, catalog.source("a")) or 0) <= 20_100
