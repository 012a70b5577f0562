"""Keys meet when they are the same value, however they are spelled, and never when they are not."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from treadle.analyst import AnalystError, Catalog, Comparison, Dimension, Filter, Measure, QueryRequest, Source, query

from .conftest import write_table

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
CONFRONT = Callable[..., Comparison]


def keys(found: Comparison) -> dict[Any, str]:
    return {row.key["company"]: row.status for row in found.rows}


def test_null_keys_meet_and_are_not_empty_text(make: Any, confront: CONFRONT) -> None:
    left = make("left", [(None, "1.00"), ("", "2.00")])
    right = make("right", [("", "2.00"), (None, "1.00")], kind="parquet")
    assert keys(confront(left, right)) == {None: "match", "": "match"}


def test_blank_as_null(make: Any, confront: CONFRONT) -> None:
    left = make("left", [(None, "1.00"), ("  ", "2.00"), (" a", "5.00")], formats={"company": "blank_as_null"})
    right = make("right", [("", "3.00"), (" a", "5.00")])
    assert keys(confront(left, right)) == {None: "match", " a": "match"}


@pytest.mark.parametrize("kind", ["BIGINT", "DECIMAL(10, 0)", "DECIMAL(10, 2)", "DOUBLE", "VARCHAR"])
def test_numbers_meet_text(make: Any, confront: CONFRONT, kind: str) -> None:
    left = make("left", [("1001", "1.00"), ("90", "2.00")])
    right = make("right", [(1001, "1.00"), (90, "2.00")], kind="duckdb", types=(kind, "DECIMAL(18, 2)"))
    assert keys(confront(left, right)) == {"1001": "match", "90": "match"}


@pytest.mark.parametrize("kind", ["DOUBLE", "REAL", "sqlite", "json", "xlsx"])
def test_large_and_small_floating_point_numbers_meet_their_digits(
    make: Any, confront: CONFRONT, tmp_path: Path, kind: str
) -> None:
    """From 1e16 on they were told as 1e+16, which meets no digits, and was refused as a number."""
    texts = {"30000000000000000": 3e16, "-100000000000000000000": -1e20, "1000000": 1e6, "0.00005": 5e-5, "0": -0.0}
    left = make("left", [(text, "1.00") for text in texts])
    rows = [(number, "1.00") for number in texts.values()]
    match kind:
        case "sqlite":
            right = make("right", rows, kind="sqlite")
        case "json":
            right = make("right", rows, kind="json")
        case "xlsx":
            book = pytest.importorskip("xlsxwriter").Workbook(str(tmp_path / "right.xlsx"))
            sheet = book.add_worksheet("t")
            for at, row in enumerate([("company", "amount"), *((number, 1) for number in texts.values())]):
                sheet.write_row(at, 0, row)
            book.close()
            right = replace(left, name="right", kind="xlsx", path="right.xlsx")
        case _:
            right = make("right", rows, kind="duckdb", types=(kind, "DECIMAL(18, 2)"))
    assert keys(confront(left, right)) == dict.fromkeys(texts, "match")
    for text, number in texts.items():
        asked = QueryRequest(
            source="right", dimensions=["company"], filters=[Filter(dimension="company", value=number)]
        )
        assert [row["company"] for row in query(Catalog([right], tmp_path), asked).rows] == [text]
    typed = [replace(one, dimensions=(replace(one.dimensions[0], type="decimal"),)) for one in (left, right)]
    assert set(keys(confront(*typed)).values()) == {"match"}


@pytest.mark.parametrize("number", ["1e40", "1e99999999999999999999", "0e-99999999", "1e-21", "2E3", "-0E5"])
def test_numbers_of_json_with_an_exponent(make: Any, tmp_path: Path, number: str) -> None:
    source = make("a", [("x", "1.00")], kind="json")
    (tmp_path / "a.json").write_text(f'[{{"company": {number}, "amount": 1}}]')
    found = query(Catalog([source], tmp_path), QueryRequest(source="a", dimensions=["company"]))
    told = {"2E3": "2000", "0e-99999999": "0", "-0E5": "0"}.get(number, number)
    assert [row["company"] for row in found.rows] == [told]


def test_keys_of_one_type_keep_it(make: Any, confront: CONFRONT) -> None:
    types = ("DATE", "DECIMAL(18, 2)")
    left, right = (make(name, [(date(2024, 1, 31), "1.00")], kind="parquet", types=types) for name in ("left", "right"))
    found = confront(left, right)
    assert found.rows[0].key == {"company": date(2024, 1, 31)}
    assert found.to_dict()["top_differences"] == []
    assert found.to_dict(rows=True)["rows"][0]["key"] == {"company": "2024-01-31"}


def test_midnight_meets_its_day(make: Any, confront: CONFRONT) -> None:
    left = make("left", [("2024-01-31", "1.00")])
    right = make("right", [("2024-01-31 00:00:00", "1.00")], kind="parquet", types=("TIMESTAMP", "DECIMAL(18, 2)"))
    assert keys(confront(left, right)) == {"2024-01-31": "match"}


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("1001", "1001"),
        ("0000001001", "1001"),
        (" 0000001001 ", "1001"),
        ("00000000001001", "00000000001001"),  # longer than the field: another value
        ("A1001", "A1001"),
        ("00A1", "00A1"),
        ("0000000000", "0"),
        ("", ""),
        ("12-34", "12-34"),
    ],
)
def test_alpha(make: Any, confront: CONFRONT, spelling: str, canonical: str) -> None:
    left = make("left", [(spelling, "1.00")], formats={"company": "alpha(10)"})
    assert keys(confront(left, make("right", [(canonical, "1.00")]))) == {canonical: "match"}


@pytest.mark.parametrize(
    "spelling", ["202401", "2024001", "2024.01", "2024-01", "2024/001", "001.2024", "01/2024", "2024-01-31"]
)
def test_fiscal_periods(make: Any, confront: CONFRONT, spelling: str) -> None:
    left = make("left", [(spelling, "1.00")], formats={"company": "fiscal_period"})
    assert keys(confront(left, make("right", [("202401", "1.00")]))) == {"202401": "match"}


def test_special_periods_and_other_text_stay_apart(make: Any, confront: CONFRONT) -> None:
    form = {"company": "fiscal_period"}
    left = make("left", [("2024013", "1.00"), ("2024.16", "2.00"), ("FY24", "3.00")], formats=form)
    right = make("right", [("202413", "1.00"), ("016.2024", "2.00"), ("FY24", "3.00")], formats=form)
    assert keys(confront(left, right)) == {"202413": "match", "202416": "match", "FY24": "match"}


@pytest.mark.parametrize(
    ("form", "a", "b"),
    [
        ("trim", "x\u00a0 ", "x"),
        ("upper", "straße", "STRAßE"),
        ("lower", "ABC", "abc"),
        ("nfc", "e\u0301", "\u00e9"),
        ("trim, upper", " ab", "AB"),
    ],
)
def test_formats_make_spellings_meet(make: Any, confront: CONFRONT, form: str, a: str, b: str) -> None:
    rows_a, rows_b = [(a, "1.00"), ("other", "1.00")], [(b, "1.00"), ("other", "1.00")]
    apart = confront(make("left", rows_a), make("right", rows_b))
    assert (apart.summary.missing_in_a, apart.summary.missing_in_b) == (1, 1)
    (finding,) = [finding for finding in apart.warnings if finding.kind == "spelling"]
    proposed = finding.message.split("'format: ")[1].split("'")[0]
    for declared in (form, proposed):
        found = confront(make("left", rows_a, formats={"company": declared}), make("right", rows_b))
        assert found.summary.matches == 2


def test_composite_keys_do_not_run_together(make: Any, confront: CONFRONT) -> None:
    columns = ("company", "account", "amount")
    left = make("left", [("a|b", "c", "1.00"), ("a", "b|c", "2.00"), ("a,b", '"', "4.00")], columns=columns)
    right = make("right", [("a|b", "c", "1.00"), ("a", "b|c", "2.00"), ("a,b", '"', "4.00")], columns=columns)
    assert confront(left, right).summary.matches == 3


def test_dimensions_meet_by_synonyms(make: Any, confront: CONFRONT) -> None:
    left = make("left", [("1", "1.00")], columns=("company", "amount"), synonyms={"company": ("bukrs",)})
    right = make("right", [("1", "1.00"), ("2", "9.00")], columns=("BUKRS", "value"), synonyms={"BUKRS": ("x",)})
    for name in ("company", "bukrs", "Company", "X"):
        found = confront(left, right, dimensions=[name], filters={name: "1"})
        assert [(row.key, row.status) for row in found.rows] == [({"company": "1"}, "match")]
    assert confront(left, right).dimensions == ("company",)


def test_default_dimensions_leave_out_what_a_filter_fixes(make: Any, confront: CONFRONT) -> None:
    columns = ("company", "period", "account", "amount")
    left, right = (make(name, [("1", "01", "x", "1.00")], columns=columns) for name in ("left", "right"))
    assert confront(left, right, filters={"company": "1", "period": ["01"]}).dimensions == ("account",)
    assert confront(left, right, filters={"company": ["1", "2"]}).dimensions == ("company", "period", "account")


def test_duplicate_rows_are_added_up(make: Any, confront: CONFRONT) -> None:
    left = make("left", [("1", "1.00")] * 3)
    found = confront(left, make("right", [("1", "3.00")]))
    assert keys(found) == {"1": "match"}
    assert (found.rows[0].rows_a, found.rows[0].rows_b) == (3, 1)


def test_embedded_newlines_and_unicode(make: Any, confront: CONFRONT) -> None:
    rows = [("line\nbreak", "1.00"), ("ünï", "2.00"), ("tab\t", "3.00"), ('quo"te', "4.00")]
    assert confront(make("left", rows), make("right", rows, kind="sqlite")).summary.matches == 4


def test_order_of_alpha_keys_is_by_size(make: Any, tmp_path: Any) -> None:
    source = make("s", [("999", "1.00"), ("0000001001", "1.00"), ("A", "1.00")], formats={"company": "alpha(10)"})
    catalog = Catalog([source], tmp_path)
    found = query(catalog, QueryRequest(source="s", dimensions=["company"]))
    assert [row["company"] for row in found.rows] == ["999", "1001", "A"]
    between = {"dimension": "company", "op": "between", "value": ["0000000999", 1001]}
    assert query(catalog, QueryRequest(source="s", filters=[between])).totals == {"amount": D("2.00")}


@pytest.mark.parametrize("kind", ["duckdb", "parquet"])
def test_decimals_of_many_digits_are_told_apart_as_text(tmp_path: Path, kind: Any) -> None:
    """As numbers they are refused: no type of the engine has so many digits before the point, and ten after it."""
    long = [D("123456789012345678901234567890.50"), D("123456789012345678901234567890.51")]
    rows = [(long[0], 1), (long[1], 2), (D("7.00"), 4)]
    path = tmp_path / f"s.{kind}"
    write_table(path, ("number", "amount"), ("DECIMAL(36, 2)", "INTEGER"), rows, parquet=kind == "parquet")
    for declared in (None, "string"):
        source = Source(
            name="s", kind=kind, path=path.name, table="t" * (kind == "duckdb"),
            dimensions=(Dimension(name="number", type=declared),), measures=(Measure(name="amount"),),  # type: ignore[arg-type]
        )  # fmt: skip
        ask = QueryRequest(source="s", dimensions=["number"])
        if declared is None:
            with pytest.raises(AnalystError, match="has too many digits for a decimal"):
                query(Catalog([source], tmp_path), ask)
        else:
            found = {row["number"]: row["amount"] for row in query(Catalog([source], tmp_path), ask).rows}
            assert found == {"123456789012345678901234567890.5": 1, "123456789012345678901234567890.51": 2, "7": 4}


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
def test_decimals_below_one_are_texts_as_others_are(make: Any, confront: Any, kind: str) -> None:
    """The engine writes .50 and .00 in a type without digits before the point: nought was an empty text."""
    types = ("DECIMAL(2, 2)", "DECIMAL(18, 2)")
    a = make("a", [(Decimal(text), 1) for text in ("0.50", "-0.05", "0.00")], kind=kind, types=types)
    b = make("b", [("0.5", 1), ("-0.05", 1), ("0", 1)])
    found = confront(a, b)
    assert (found.summary.matches, found.summary.total_rows) == (3, 3)
    assert {row.key["company"] for row in found.rows} == {"0.5", "-0.05", "0"}
