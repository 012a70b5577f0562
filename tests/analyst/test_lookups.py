"""Mapped keys and converted amounts, held against plain Python: exact, dated, and refused where anything is missing."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Comparison,
    Dimension,
    Measure,
    QueryRequest,
    QueryResult,
    Source,
    compare,
    parse_format,
    query,
)
from treadle.analyst.declared.source import Conversion, Mapping

from .conftest import QUICK, write_csv, written

pytestmark = pytest.mark.usefixtures("one_engine")

Rows = Sequence[tuple[Any, ...]]
write = partial(written, figure="DECIMAL(18, 4)")
OLD = ["100", "200", "0300", "]]><b>'", "ü"]
NEW = ["A", "B", "'; DROP", ""]
SHARES = [[Decimal(1)], [Decimal("0.3"), Decimal("0.7")], [Decimal("0.125"), Decimal("0.25"), Decimal("0.625")]]
AMOUNTS = st.one_of(st.none(), st.decimals(-(10**9), 10**9, places=2))


@st.composite
def mappings(draw: Any) -> dict[str, list[tuple[str, Decimal]]]:
    found = {}
    for old in OLD:
        shares = draw(st.sampled_from(SHARES))
        found[old] = list(zip(draw(st.permutations(NEW))[: len(shares)], shares, strict=True))
    return found


def mapped(place: Path, rows: Rows, table: Rows, kind: str = "csv", **mapping: Any) -> Catalog:
    """Sources `books`, whose accounts are mapped by `map`, and `plain`, the same rows as they are."""
    declared = Mapping(**({"source": "map", "old": "old", "new": "new", "share": "share"} | mapping))
    amount = (Measure(name="amount", decimals=2),)
    books = Source(
        **write(place, "books", kind, ("account", "amount"), rows),
        dimensions=(Dimension(name="account", mapping=declared),),
        measures=amount,
    )
    plain = Source(
        **write(place, "plain", "csv", ("account", "amount"), rows),
        dimensions=(Dimension(name="account"),),
        measures=amount,
    )
    tables = Source(
        **write(place, "map", kind, ("old", "new", "share"), table),
        dimensions=(Dimension(name="old"), Dimension(name="new")),
        measures=(Measure(name="share"),),
    )
    return Catalog([books, plain, tables], place)


def ask(catalog: Catalog, source: str = "books", **request: Any) -> QueryResult:
    return query(catalog, QueryRequest(source=source, **request), bounds=QUICK)


def by_key(found: QueryResult) -> dict[Any, Fraction | None]:
    name = found.dimensions[0]
    return {row[name]: None if row["amount"] is None else Fraction(row["amount"]) for row in found.rows}


def expected(rows: Rows, mapping: dict[str, list[tuple[str, Decimal]]]) -> dict[Any, Fraction | None]:
    sums: dict[Any, list[Fraction]] = {}
    for account, amount in rows:
        for new, share in [(None, Decimal(1))] if account is None else mapping[account]:
            kept = sums.setdefault(new, [])
            if amount is not None:
                kept.append(Fraction(amount) * Fraction(share))
    return {key: sum(values, Fraction(0)) if values else None for key, values in sums.items()}


@settings(max_examples=deep(6), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([*OLD, None]), AMOUNTS), max_size=10),
    mappings(),
    st.sampled_from(["csv", "json", "sqlite", "duckdb", "parquet"]),
)
def test_mapped_figures_are_those_of_plain_python(rows: Rows, mapping: Any, kind: str) -> None:
    table = [(old, new, share) for old, parts in mapping.items() for new, share in parts]
    with TemporaryDirectory() as place:
        catalog = mapped(Path(place), rows, table, kind)
        found = ask(catalog, dimensions=["account"])
        assert by_key(found) == expected(rows, mapping)
        total = ask(catalog).totals["amount"]
        assert found.totals["amount"] == total
        for new in ("A", "'; DROP"):
            one = ask(catalog, dimensions=["account"], filters={"account": new})
            assert by_key(one) == {key: value for key, value in expected(rows, mapping).items() if key == new}


@settings(max_examples=deep(4), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(OLD), AMOUNTS), min_size=1, max_size=8), mappings())
def test_a_comparison_meets_in_the_new_keys(rows: Rows, mapping: Any) -> None:
    """What is mapped by hand and what is mapped by the table are equal in every key, whichever is A."""
    table = [(old, new, share) for old, parts in mapping.items() for new, share in parts]
    by_hand = [
        (new, None if amount is None else str(amount * share))
        for account, amount in rows
        for new, share in mapping[account]
    ]
    with TemporaryDirectory() as name:
        place = Path(name)
        catalog = mapped(place, rows, table)
        write_csv(place / "plain.csv", ("account", "amount"), by_hand)
        for a, b in (("books", "plain"), ("plain", "books")):
            found = compare(
                catalog,
                CompareRequest(source_a=a, source_b=b, dimensions=["account"], tolerance=Decimal(0)),
                bounds=QUICK,
            )
            assert found.summary.matches == found.summary.total_rows, found.interpretation


ROWS = [("100", "10.00"), ("200", "5.00")]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ([("100", "A", "1")], "there is nothing for 200, which 'books' has"),
        ([("100", "A", "0.5"), ("100", "B", "0.4"), ("200", "A", "1")], "do not add up to exactly 1: 100 (0.9"),
        ([("100", "A", "0.5"), ("100", "B", "0.5000001"), ("200", "A", "1")], "100 (1.0000001"),
        ([("100", "A", "0.5"), ("100", "A", "0.5"), ("200", "A", "1")], "has a row more than once: 100 A"),
        ([("100", "A", "1.5"), ("100", "B", "-0.5"), ("200", "A", "1")], "not above zero"),
        ([("100", "A", None), ("200", "A", "1")], "missing or not above zero"),
        ([("100", None, "1"), ("200", "A", "1")], "without an old or a new value"),
        ([(None, "A", "1"), ("100", "A", "1"), ("200", "A", "1")], "without an old or a new value"),
        ([("100", "A", "x"), ("200", "A", "1")], "no number"),
        ([], "there is nothing for 100, 200"),
    ],
)
def test_a_mapping_that_says_more_or_less_than_one_thing_is_refused(tmp_path: Path, table: Rows, says: str) -> None:
    catalog = mapped(tmp_path, ROWS, table)
    with pytest.raises(AnalystError) as refused:
        ask(catalog, dimensions=["account"])
    assert says in str(refused.value)
    with pytest.raises(AnalystError):
        ask(catalog, filters={"account": "A"})


def test_what_the_mapping_lacks_may_be_kept(tmp_path: Path) -> None:
    catalog = mapped(tmp_path, ROWS, [("100", "A", "1")], otherwise="keep")
    assert by_key(ask(catalog, dimensions=["account"])) == {"A": 10, "200": 5}


def test_without_shares_every_old_value_has_one_new_one(tmp_path: Path) -> None:
    catalog = mapped(tmp_path, ROWS, [("100", "A", "9"), ("200", "A", "9")], share="")
    assert by_key(ask(catalog, dimensions=["account"])) == {"A": 15}
    catalog = mapped(tmp_path, ROWS, [("100", "A", "9"), ("100", "B", "9"), ("200", "A", "9")], share="")
    with pytest.raises(AnalystError, match="more than one new value for 100: declare a 'share'"):
        ask(catalog, dimensions=["account"])


def test_two_spellings_of_an_old_value_are_one(tmp_path: Path) -> None:
    """ALPHA on one of the two is enough, and two rows of the table that mean one value are found out."""
    catalog = mapped(tmp_path, [("0000000100", "10.00")], [("100", "A", "1")])
    books = catalog.sources["books"]
    dimension = Dimension(name="account", mapping=books.dimensions[0].mapping, format=parse_format("alpha(10)"))
    sources = [Source(name="books", kind="csv", path="books.csv", dimensions=(dimension,), measures=books.measures)]
    alpha = Catalog([*sources, catalog.sources["map"]], tmp_path)
    assert by_key(ask(alpha, dimensions=["account"])) == {"A": 10}
    write_csv(tmp_path / "map.csv", ("old", "new", "share"), [("100", "A", "1"), ("0100", "B", "1")])
    with pytest.raises(AnalystError, match="do not add up"):
        ask(alpha, dimensions=["account"])


def test_a_dimension_that_nobody_asks_of_needs_no_mapping(tmp_path: Path) -> None:
    assert ask(mapped(tmp_path, ROWS, [])).totals == {"amount": Decimal("15.00")}


def test_shares_are_of_sums_only(tmp_path: Path) -> None:
    catalog = mapped(tmp_path, ROWS, [("100", "A", "1"), ("200", "A", "1")])
    books = catalog.sources["books"]
    count = (Measure(name="amount", aggregation="count"),)
    other = Source(name="books", kind="csv", path="books.csv", dimensions=books.dimensions, measures=count)
    with pytest.raises(AnalystError, match="splits amounts by shares"):
        ask(catalog.having(other), dimensions=["account"])


def test_a_source_has_columns_of_any_name(tmp_path: Path) -> None:
    write_csv(tmp_path / "odd.csv", ("k0", "m0", "_n", "n"), [("100", "5.00", "x", "y")])
    catalog = mapped(tmp_path, ROWS, [("100", "A", "0.5"), ("100", "B", "0.5")])
    odd = Source(
        name="odd", kind="csv", path="odd.csv",
        dimensions=(Dimension(name="k0", mapping=Mapping(source="map", old="old", new="new", share="share")),),
        measures=(Measure(name="amount", column="m0"),),
    )  # fmt: skip
    odd_catalog = Catalog([odd, catalog.sources["map"]], tmp_path)
    assert by_key(ask(odd_catalog, "odd", dimensions=["k0"])) == {"A": Fraction(5, 2), "B": Fraction(5, 2)}


def test_tables_of_tables_and_unknown_tables_are_refused(tmp_path: Path) -> None:
    catalog = mapped(tmp_path, ROWS, [])
    for change, says in [({"source": "none"}, "there is no source 'none'"), ({"old": "older"}, "older"),
                         ({"share": "part"}, "part"), ({"source": "books"}, "must not look up others")]:  # fmt: skip
        with pytest.raises((AnalystError, ValueError), match=says):
            mapped(tmp_path, ROWS, [], **change)
    assert set(catalog.sources) == {"books", "plain", "map"}


def test_a_database_that_sqlalchemy_reaches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sqlalchemy")
    catalog = mapped(tmp_path, [], [])
    for name, columns, rows in [
        ("books", "account TEXT, amount INTEGER", "('100', 10), ('200', 5)"),
        ("map", "old TEXT, new TEXT, share INTEGER", "('100', 'A', 1), ('200', 'A', 1)"),
    ]:
        with closing(sqlite3.connect(tmp_path / f"{name}.sqlite")) as database:
            database.execute(f"CREATE TABLE t ({columns})")
            database.execute(f"INSERT INTO t VALUES {rows}")
            database.commit()
    monkeypatch.setenv("BOOKS", f"sqlite:///{tmp_path / 'books.sqlite'}")
    monkeypatch.setenv("MAP", f"sqlite:///{tmp_path / 'map.sqlite'}")
    books, table = (
        Source(name=name, kind="sqlalchemy", table="t", dsn_env=name.upper(), dimensions=one.dimensions,
               measures=one.measures)
        for name, one in (("books", catalog.sources["books"]), ("map", catalog.sources["map"]))
    )  # fmt: skip
    remote = Catalog([books, table], tmp_path)
    assert by_key(ask(remote, dimensions=["account"])) == {"A": 15}
    assert by_key(ask(remote, dimensions=["account"], filters={"account": "100"})) == {}


# Rates.

CURRENCIES = ["EUR", "USD", "GBP"]
PERIODS = ["202401", "202402"]
RATES = st.dictionaries(
    st.tuples(st.sampled_from(["USD", "GBP"]), st.sampled_from(PERIODS)),
    st.decimals("0.0001", "9", places=4),
    min_size=4,
)


def rated(place: Path, rows: Rows, rates: Rows, *, kind: str = "csv", **measure: Any) -> Catalog:
    conversion = Conversion(to="EUR", source="rates", currency="currency", rate="rate", on=("period",))
    books = Source(
        **write(place, "books", kind, ("company", "period", "currency", "amount"), rows),
        dimensions=tuple(
            Dimension(name=name, format=parse_format("fiscal_period" if name == "period" else ""))
            for name in ("company", "period", "currency")
        ),
        measures=(Measure(**({"name": "amount", "currency": "currency", "conversion": conversion} | measure)),),
    )
    table = Source(
        **write(place, "rates", kind, ("currency", "period", "rate"), rates),
        dimensions=(Dimension(name="currency"), Dimension(name="period", format=parse_format("fiscal_period"))),
        measures=(Measure(name="rate"),),
    )
    group = Source(
        **write(place, "books_eur", "csv", ("company", "amount"), []),
        dimensions=(Dimension(name="company"),),
        measures=(Measure(name="amount", unit="EUR"),),
    )
    return Catalog([books, table, group], place)


@settings(max_examples=deep(6), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["1", "2", None]),
            st.sampled_from(PERIODS),
            st.sampled_from(CURRENCIES),
            st.one_of(st.none(), st.decimals(-(10**6), 10**6, places=2)),
        ),
        max_size=10,
    ),
    RATES,
    st.sampled_from(["csv", "sqlite", "parquet"]),
)
def test_converted_figures_are_those_of_plain_python(
    rows: Rows, rates: dict[tuple[str, str], Decimal], kind: str
) -> None:
    sums: dict[Any, list[Fraction]] = {}
    for company, period, currency, amount in rows:
        kept = sums.setdefault(company, [])
        if amount is not None:
            kept.append(Fraction(amount) * (1 if currency == "EUR" else Fraction(rates[currency, period])))
    with TemporaryDirectory() as place:
        catalog = rated(Path(place), rows, [(*key, rate) for key, rate in rates.items()], kind=kind)
        found = ask(catalog, dimensions=["company"])
    assert by_key(found) == {key: sum(values, Fraction(0)) if values else None for key, values in sums.items()}
    assert not found.warnings or not rows


EUROS = [("1", "202401", "EUR", "5.00")]
DOLLARS = [("1", "202401", "USD", "5.00"), ("1", "2024002", "USD", "7.00")]
TABLE = [("USD", "202401", "0.9"), ("USD", "2024.02", "0.85")]


@pytest.mark.parametrize("kind", ["csv", "duckdb", "json", "sqlite"])
def test_a_rate_is_of_the_period_and_the_currency_that_a_mapping_says(tmp_path: Path, kind: str) -> None:
    """The rates of a year from April on were those of the calendar months of the days: 700 in place of 90."""
    rows = [("15.04.2024", "US$", Decimal("100.00")), ("15.07.2024", "US$", Decimal("100.00"))]
    table = [("USD", "202501", Decimal("0.9")), ("USD", "202504", Decimal("0.5")), ("US$", "202404", Decimal(7)),
             ("USD", "202404", Decimal(7)), ("USD", "202407", Decimal(8))]  # fmt: skip
    write_csv(tmp_path / "calendar.csv", ("day", "period"), [("2024-04-15", "001.2025"), ("2024-07-15", "004.2025")])
    write_csv(tmp_path / "codes.csv", ("sign", "code"), [("US$", "USD")])
    rows_of_it = (Measure(name="rows", column="*", aggregation="count"),)
    period = Dimension(name="period", format=parse_format("fiscal_period"))
    deals = Source(
        **write(tmp_path, "deals", kind, ("posted", "currency", "amount"), rows),
        dimensions=(
            Dimension(name="period", column="posted", format=parse_format("date(DD.MM.YYYY)"),
                      mapping=Mapping(source="calendar", old="day", new="period")),
            Dimension(name="currency", mapping=Mapping(source="codes", old="sign", new="code")),
        ),
        measures=(Measure(name="amount", currency="currency", conversion=Conversion(
            to="EUR", source="rates", currency="code", rate="rate", on=("period",))),),
    )  # fmt: skip
    rates = Source(
        **write(tmp_path, "rates", kind, ("code", "period", "rate"), table),
        dimensions=(Dimension(name="code"), period), measures=(Measure(name="rate"),),
    )  # fmt: skip
    calendar = Source(name="calendar", kind="csv", path="calendar.csv", dimensions=(Dimension(name="day"), period),
                      measures=rows_of_it)  # fmt: skip
    codes = Source(name="codes", kind="csv", path="codes.csv", measures=rows_of_it,
                   dimensions=(Dimension(name="sign"), Dimension(name="code")))  # fmt: skip
    catalog = Catalog([deals, rates, calendar, codes], tmp_path)
    found = ask(catalog, "deals", dimensions=["period"])
    assert {row["period"]: row["amount"] for row in found.rows} == {"202501": 90, "202504": 50}
    assert ask(catalog, "deals").totals == {"amount": 140}
    april = [{"dimension": "period", "value": "202501"}]
    assert ask(catalog, "deals", filters=april, dimensions=["currency"]).rows == [{"currency": "USD", "amount": 90}]


def test_a_rate_is_of_its_day_and_never_another_ones(tmp_path: Path) -> None:
    assert ask(rated(tmp_path, DOLLARS, TABLE)).totals == {"amount": Decimal("10.45")}
    with pytest.raises(AnalystError, match="the rates 'rates': there is nothing for USD 202402"):
        ask(rated(tmp_path, DOLLARS, TABLE[:1]))
    assert ask(rated(tmp_path, DOLLARS, TABLE[:1]), filters={"period": "202401"}).totals == {"amount": Decimal("4.50")}


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_a_row_that_a_condition_on_a_mapped_value_leaves_out_needs_no_rate(tmp_path: Path, kind: str) -> None:
    catalog = rated(tmp_path, [*DOLLARS, ("2", "2024002", "GBP", "1.00")], TABLE, kind=kind)
    companies = Source(
        **write(tmp_path, "companies", kind, ("old", "new", "rows"), [("1", "A", Decimal(1)), ("2", "B", Decimal(1))]),
        dimensions=(Dimension(name="old"), Dimension(name="new")),
        measures=(Measure(name="rows"),),
    )
    books = catalog.sources["books"]
    company, *others = books.dimensions
    company = replace(company, mapping=Mapping(source="companies", old="old", new="new"))
    books = replace(books, dimensions=(company, *others))
    catalog = Catalog([books, companies, catalog.sources["rates"]], tmp_path)
    with pytest.raises(AnalystError, match="there is nothing for GBP 202402"):
        ask(catalog)
    for filters in ({"company": "A"}, [{"dimension": "company", "op": "!=", "value": "B"}]):
        assert ask(catalog, filters=filters).totals == {"amount": Decimal("10.45")}
    with pytest.raises(AnalystError, match="there is nothing for GBP 202402"):
        ask(catalog, filters={"company": "B"})


@pytest.mark.parametrize(
    ("rows", "table", "says"),
    [
        (DOLLARS, [*TABLE, ("USD", "001.2024", "0.91")], "same: USD 202401; where they are of several kinds"),
        (DOLLARS, [("USD", "202401", "0"), TABLE[1]], "not above zero"),
        (DOLLARS, [("USD", "202401", "-1"), TABLE[1]], "not above zero"),
        (DOLLARS, [("USD", "202401", None), TABLE[1]], "missing or not above zero"),
        (DOLLARS, [("USD", "202401", "a"), TABLE[1]], "no number"),
        ([("1", "202401", None, "5.00")], TABLE, "there is nothing for (none) 202401"),
        ([("1", None, "USD", "5.00")], TABLE, "there is nothing for USD (none)"),
        ([("1", "202401", "usd", "5.00")], TABLE, "there is nothing for usd 202401"),
    ],
)
def test_a_missing_or_doubtful_rate_is_refused(tmp_path: Path, rows: Rows, table: Rows, says: str) -> None:
    with pytest.raises(AnalystError) as refused:
        ask(rated(tmp_path, rows, table))
    assert says in str(refused.value)


def test_converted_amounts_are_compared_in_the_currency_that_they_have_become(tmp_path: Path) -> None:
    catalog = rated(tmp_path, [*EUROS, *DOLLARS], TABLE)
    write_csv(tmp_path / "books_eur.csv", ("company", "amount"), [("1", "15.45")])
    for a, b in (("books", "books_eur"), ("books_eur", "books")):
        found: Comparison = compare(catalog, CompareRequest(source_a=a, source_b=b), bounds=QUICK)
        assert (found.dimensions, found.unit, found.summary.matches) == (("company",), "EUR", 1), found.interpretation
        assert not found.warnings


def test_a_conversion_needs_a_currency_and_is_of_no_count(tmp_path: Path) -> None:
    for measure in ({"currency": ""}, {"aggregation": "count"}):
        with pytest.raises(ValueError, match="can be converted only if"):
            rated(tmp_path, DOLLARS, TABLE, **measure)


def test_the_largest_amount_is_the_largest_converted_one(tmp_path: Path) -> None:
    catalog = rated(tmp_path, [*EUROS, *DOLLARS], TABLE, aggregation="max")
    assert ask(catalog).totals == {"amount": Decimal("5.95")}


def test_what_is_declared_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_text("""\
sources:
  books:
    kind: csv
    path: books.csv
    dimensions:
      account: {mapping: {source: map, from: old, to: new, share: share, otherwise: keep}}
      period: {}
      currency: {}
    measures:
      amount:
        currency: currency
        conversion: {to: EUR, source: rates, currency: currency, rate: rate, on: [period]}
  map: {kind: csv, path: map.csv, dimensions: {old: {}, new: {}}, measures: {share: {}}}
  rates: {kind: csv, path: rates.csv, dimensions: {currency: {}, period: {}}, measures: {rate: {}}}
""")
    write_csv(tmp_path / "books.csv", ("account", "period", "currency", "amount"), [("100", "202401", "USD", "10")])
    write_csv(tmp_path / "map.csv", ("old", "new", "share"), [("100", "A", "0.25"), ("100", "B", "0.75")])
    write_csv(tmp_path / "rates.csv", ("currency", "period", "rate"), [("USD", "202401", "0.9")])
    found = ask(Catalog.load(tmp_path / "sources.yaml"), dimensions=["account"])
    assert by_key(found) == {"A": Fraction(9, 4), "B": Fraction(27, 4)}
    for wrong, says in [("from: old", "'from' is missing"), ("keep", "'drop' is not supported"),
                        ("on: [period]", "there is no dimension 'day'")]:  # fmt: skip
        new = {"from: old": "form: old", "keep": "drop", "on: [period]": "on: [day]"}[wrong]
        text = (tmp_path / "sources.yaml").read_text().replace(wrong, new, 1)
        (tmp_path / "wrong.yaml").write_text(text)
        with pytest.raises(AnalystError) as refused:
            Catalog.load(tmp_path / "wrong.yaml")
        assert says in str(refused.value) or "did you mean 'from'?" in str(refused.value)


# What the second source calls them.


def test_columns_of_other_names_meet(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", ("account", "amount"), [("1", "5")])
    write_csv(tmp_path / "b.csv", ("konto", "betrag", "company"), [("1", "5", "9")])
    a = Source(name="a", kind="csv", path="a.csv", dimensions=(Dimension(name="account"),),
               measures=(Measure(name="amount"),))  # fmt: skip
    b = Source(name="b", kind="csv", path="b.csv", dimensions=(Dimension(name="konto"), Dimension(name="company")),
               measures=(Measure(name="betrag"),))  # fmt: skip
    catalog = Catalog([a, b], tmp_path)
    names = {"account": "Konto", "amount": "betrag"}
    found = compare(catalog, CompareRequest(source_a="a", source_b="b", names=names), bounds=QUICK)
    assert (found.dimensions, found.measure, found.summary.matches) == (("account",), "amount", 1)
    for wrong, says in [
        ({"acount": "konto"}, "did you mean 'account'"),
        ({"account": "conto"}, "did you mean 'konto'"),
        ({"account": "betrag"}, "one is a dimension, the other a measure"),
    ]:
        with pytest.raises(AnalystError, match=says):
            compare(catalog, CompareRequest(source_a="a", source_b="b", names=wrong), bounds=QUICK)
    twice = Source(name="b", kind="csv", path="b.csv", dimensions=(Dimension(name="konto"), Dimension(name="account")),
                   measures=(Measure(name="betrag"),))  # fmt: skip
    with pytest.raises(AnalystError, match="has account of that name already"):
        compare(catalog.having(twice), CompareRequest(source_a="a", source_b="b", names=names), bounds=QUICK)


def test_a_currency_that_is_converted_is_not_compared_by(tmp_path: Path) -> None:
    catalog = rated(tmp_path, [*EUROS, *DOLLARS], TABLE)
    write_csv(tmp_path / "books_eur.csv", ("company", "currency", "amount"), [("1", "EUR", "15.45")])
    group = Source(name="books_eur", kind="csv", path="books_eur.csv",
                   dimensions=(Dimension(name="company"), Dimension(name="currency")),
                   measures=(Measure(name="amount", currency="currency"),))  # fmt: skip
    for a, b in (("books", "books_eur"), ("books_eur", "books")):
        found = compare(catalog.having(group), CompareRequest(source_a=a, source_b=b), bounds=QUICK)
        assert (found.dimensions, found.unit, found.summary.matches) == (("company",), "EUR", 1)


def test_a_source_that_is_tried_says_what_its_tables_lack(tmp_path: Path) -> None:
    from treadle.analyst import check

    catalog = mapped(tmp_path, ROWS, [("100", "A", "1")])
    found = check(catalog, catalog.sources["books"], bounds=QUICK)
    (told,) = found.problems
    assert told.startswith("account: the mapping 'map' of account: there is nothing for 200, which 'books' has; add it")
    catalog = mapped(tmp_path, ROWS, [("100", "A", "0.5"), ("100", "B", "0.5"), ("200", "A", "1")])
    assert check(catalog, catalog.sources["books"], bounds=QUICK).rows == 2
    catalog = rated(tmp_path, DOLLARS, TABLE[:1])
    assert "there is nothing for USD 202402" in check(catalog, catalog.sources["books"], bounds=QUICK).problems[0]


DECLARED = """\
sources:
  books:
    kind: csv
    path: books.csv
    dimensions:
      account:
        mapping:
          source: accounts
          from: old
          to: new
          share: share
      currency: {}
      period: {}
    measures:
      amount:
        currency: currency
        conversion:
          to: EUR
          source: rates
          currency: code
          rate: rate
          on: [period]
  accounts: {kind: csv, path: a.csv, dimensions: {old: {}, new: {}}, measures: {share: {}}}
  rates: {kind: csv, path: r.csv, dimensions: {code: {}, period: {}}, measures: {rate: {}}}
hierarchies:
  tree:
    of: account
    source: accounts
    group: old
    member: new
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "says"),
    [
        ("source: accounts\n          from", "source: acounts\n          from", 8, "dimensions.account.mapping.source",
         "there is no source 'acounts'; did you mean 'accounts'?"),
        ("from: old", "from: ald", 9, "dimensions.account.mapping.from", "there is no dimension 'ald'"),
        ("share: share", "share: shares", 11, "dimensions.account.mapping.share", "there is no measure 'shares'"),
        ("currency: currency", "currency: curency", 16, "measures.amount.currency", "there is no dimension 'curency'"),
        ("source: rates", "source: books", 19, "measures.amount.conversion.source", "must not look up others"),
        ("currency: code", "currency: kode", 20, "measures.amount.conversion.currency", "there is no dimension 'kode'"),
        ("on: [period]", "on: [code]", 22, "measures.amount.conversion.on", "there is no dimension 'code'"),
        ("of: account", "of: acount", 27, "hierarchies.tree.of", "which no source has as a dimension"),
        ("source: accounts\n    group", "source: x\n    group", 28, "hierarchies.tree.source", "there is no source"),
        ("member: new", "member: neu", 30, "hierarchies.tree.member", "there is no dimension 'neu'"),
    ],
)  # fmt: skip
def test_a_table_that_is_not_there_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, field: str, says: str
) -> None:
    path = tmp_path / "sources.yaml"
    assert DECLARED.count(old) == 1
    path.write_text(DECLARED)
    Catalog.load(path)
    path.write_text(DECLARED.replace(old, new))
    with pytest.raises(AnalystError) as caught:
        Catalog.load(path)
    place = field if field.startswith("hierarchies") else f"sources.books.{field}"
    assert str(caught.value).startswith(f"{path}, line {line}: {place}: ")
    assert says in str(caught.value)
    assert (caught.value.hints["line"], caught.value.hints["field"]) == (line, place)
