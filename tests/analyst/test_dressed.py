"""One comparison, dressed in everything that sources may declare, is the comparison of the same rows as they are.

Each side of a generated pair is written twice: as it stands, and as people have it, in any kind of file, with the old
accounts and a mapping, foreign amounts and rates, an opening text, lines of totals, other spellings, signs, names and
default filters, all at once. Figures, classes, subtotals and claims must be the same. The undressed comparison is held
against plain Python elsewhere (`test_claims`, `test_oracle`).

`make dressed PAIRS=2000 SEED=1` tries more pairs.
"""

import os
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import asdict

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Comparison,
    Difference,
    Dimension,
    DrillRequest,
    Filter,
    Hierarchy,
    Measure,
    QueryRequest,
    Source,
    compare,
    drill,
    parse_format,
    query,
)
from treadle.analyst.declared.source import Conversion, Mapping, TextFormat

from .conftest import QUICK, write_csv, write_json, write_sqlite, write_table

PAIRS = int(os.environ.get("TREADLE_DRESSED", "12"))
FIRST = int(os.environ.get("TREADLE_DRESSED_SEED", "0"))
NAMES = ("company", "account", "period", "currency", "amount")
PERIODS = ("202401", "202402", "202403")
RATES = {("USD", "202401"): "0.9", ("USD", "202402"): "0.8512", ("USD", "202403"): "1.05", ("GBP", "202401"): "1.17",
         ("GBP", "202402"): "1.2", ("GBP", "202403"): "1.165"}  # fmt: skip
MAPPED = {
    "10": [("4100", "1")],
    "20": [("4200", "0.25"), ("4300", "0.75")],
    "30": [("4300", "1")],
    "40": [("8000", "0.5"), ("8100", "0.5")],
    "50": [("8100", "1")],
}
GROUPS = {"Result": ("Revenue", "Costs"), "Revenue": ("8000..8999",), "Costs": ("4100", "4200..4299"), "Odd": ("4300",)}


class Row(Struct, frozen=True):
    """A row as it is meant."""

    company: str | None
    account: str
    period: str
    currency: str | None
    amount: Decimal | None


class Dress(Struct):
    """How one side is written and declared."""

    kind: str
    mapped: bool
    converted: bool
    padded: bool
    period: str
    sign: str
    german: bool
    opened: bool
    totals: bool
    renamed: bool
    default: Filter | None
    mixed: bool = False


def rows_of(chance: Random, codes: Sequence[str | None], accounts: Sequence[str]) -> list[Row]:
    return [
        Row(
            chance.choice(["1001", "1002", "1002", "2001", None]),
            chance.choice(accounts),
            chance.choice(PERIODS),
            chance.choice(codes),
            None if chance.random() < 0.05 else Decimal(chance.randint(-300_000, 900_000)) / 100,
        )
        for _ in range(chance.choice([0, 1, 5, 20, 40]))
    ]


def changed(chance: Random, rows: Sequence[Row], accounts: Sequence[str]) -> list[Row]:
    found = []
    for row in rows:
        amount = row.amount or Decimal(0)
        match chance.choice(["same"] * 8 + ["gone", "twice", "off", "late", "moved"]):
            case "gone":
                continue
            case "twice":
                found += [row, row]
            case "off":
                found.append(Row(*_but(row, amount=amount + chance.choice([Decimal("0.01"), Decimal("7.5"), 6000]))))
            case "late":
                found.append(Row(*_but(row, period=chance.choice(PERIODS))))
            case "moved":
                found.append(Row(*_but(row, account=chance.choice(accounts))))
            case _:
                found.append(row)
    chance.shuffle(found)
    return found


def _but(row: Row, **values: Any) -> list[Any]:
    return list((asdict(row) | values).values())


def dress(chance: Random, mapped: bool, converted: bool) -> Dress:
    kind = chance.choice(["csv", "csv", "csv", "json", "sqlite", "duckdb", "parquet"])
    return Dress(
        kind=kind,
        mapped=mapped,
        converted=converted,
        padded=chance.random() < 0.4,
        period=chance.choice(["plain", "fiscal", "dotted", "days", "dates"]),
        sign=chance.choice(["plain", "plain", "turned", "debit"]),
        german=kind == "csv" and chance.random() < 0.5,
        opened=kind == "csv" and chance.random() < 0.3,
        totals=kind == "csv" and chance.random() < 0.3,
        renamed=chance.random() < 0.3,
        default=Filter(dimension="company", value="1002") if chance.random() < 0.15 else None,
    )


def meant(rows: Sequence[Row], how: Dress) -> list[list[Any]]:
    """The rows as a comparison must take them: in new accounts, and converted."""
    found = []
    for row in rows:
        for account, share in MAPPED[row.account] if how.mapped else [(row.account, "1")]:
            amount = row.amount
            if amount is not None:
                amount *= Decimal(share)
                if how.converted and row.currency != "EUR":
                    amount *= Decimal(RATES[str(row.currency), row.period])
            found.append([row.company, account, row.period, row.currency, amount])
    return found


def plain(place: Path, name: str, rows: Sequence[Row], how: Dress, measure: Measure) -> Source:
    write_csv(place / f"{name}.csv", NAMES, meant(rows, how))
    return Source(
        name=name,
        kind="csv",
        path=f"{name}.csv",
        dimensions=tuple(Dimension(name=one) for one in NAMES[:-1]),
        measures=(measure,),
        default_filters=() if how.default is None else (how.default,),
    )


SPELLED: dict[str, Callable[[str], str]] = {
    "plain": lambda period: period,
    "fiscal": lambda period: f"{period[:4]}0{period[4:]}",
    "dotted": lambda period: f"{period[4:]}/{period[:4]}",
    "days": lambda period: f"17.{period[4:]}.{period[:4]}",
    "dates": lambda period: f"{period[:4]}-{period[4:]}-28",
}
FORMATS = {"plain": "", "fiscal": "fiscal_period", "dotted": "fiscal_period",
           "days": "date(DD.MM.YYYY), fiscal_period", "dates": "fiscal_period"}  # fmt: skip


def german(amount: Decimal) -> str:
    text = f"{abs(amount):,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")
    return f"{text}-" if amount < 0 else text


def dressed(place: Path, name: str, rows: Sequence[Row], how: Dress, measure: Measure) -> Source:
    columns = {one: f"C {one}" if how.renamed else one for one in NAMES}
    listed = [*columns.values(), *(["dc"] if how.sign == "debit" else [])]
    table = []
    for row in rows:
        cells: list[Any] = [row.company, row.account, SPELLED[how.period](row.period), row.currency, row.amount]
        if how.padded:
            cells[0] = row.company and row.company.zfill(10)
            cells[1] = row.account.zfill(10)
        if how.mixed and len(table) % 2:
            cells[0] = row.company and row.company.zfill(10)
        if how.sign == "turned" and row.amount is not None:
            cells[4] = -row.amount
        if how.sign == "debit":
            cells.append("H" if row.amount is not None and row.amount < 0 else "S")
            cells[4] = None if row.amount is None else abs(row.amount)
        table.append(cells)
    path = place / f"{name}.{how.kind}"
    if how.kind == "csv":
        _write_csv(path, listed, table, how)
    elif how.kind == "json":
        write_json(path, listed, table)
    elif how.kind == "sqlite":
        write_sqlite(path, listed, [tuple(one) for one in table])
    else:
        kinds = ["VARCHAR"] * 4 + ["DECIMAL(18, 2)"] + ["VARCHAR"] * (len(listed) - 5)
        write_table(path, listed, kinds, [tuple(one) for one in table], parquet=how.kind == "parquet")
    text = TextFormat()
    if how.kind == "csv":
        text = TextFormat(
            delimiter=";" if how.german else ",",
            decimal="," if how.german else ".",
            thousands="." if how.german else "",
            skip=2 if how.opened else 0,
            totals=("Summe%",) if how.totals else (),
        )
    return Source(
        name=name,
        kind=how.kind,  # type: ignore[arg-type]
        path=path.name,
        table="t" if how.kind in ("duckdb", "sqlite") else "",
        text=text,
        dimensions=tuple(_dimension(one, columns[one], how) for one in NAMES[:-1]),
        measures=(_measure(measure, columns["amount"], how),),
        default_filters=() if how.default is None else (how.default,),
    )


def _write_csv(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]], how: Dress) -> None:
    between = ";" if how.german else ","

    def cell(value: Any) -> str:
        if isinstance(value, Decimal):
            return german(value) if how.german else str(value)
        return "" if value is None else f'"{value}"'

    lines = [between.join(f'"{one}"' for one in columns), *(between.join(map(cell, row)) for row in rows)]
    if how.totals:
        summed = [None, "Summe:", None, None, sum((row[4] or Decimal(0) for row in rows), Decimal(0))]
        lines.insert(len(lines) // 2 + 1, between.join(map(cell, [*summed, *[None] * (len(columns) - 5)])))
    if how.opened:
        lines[:0] = ["Balances; as of, today", ""]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _dimension(name: str, column: str, how: Dress) -> Dimension:
    spelled = "alpha(10)" if how.padded and name in ("company", "account") else ""
    if name == "period":
        spelled = FORMATS[how.period]
    mapping = Mapping(source="accounts", old="old", new="new", share="share")
    return Dimension(
        name=name,
        column=column,
        format=parse_format(spelled),
        mapping=mapping if how.mapped and name == "account" else None,
    )


def _measure(measure: Measure, column: str, how: Dress) -> Measure:
    values = asdict(measure) | ({"sign": -1} if how.sign == "turned" else {})
    if how.sign == "debit":
        values["expression"] = f'if(dc = \'H\', -"{column}", "{column}")'
    else:
        values["column"] = column
    if how.converted and measure.aggregation != "count":
        values |= {
            "unit": "",
            "currency": "currency",
            "conversion": Conversion(to="EUR", source="rates", currency="code", rate="rate", on=("period",)),
        }
    return Measure(**values)


def tables(place: Path) -> list[Source]:
    write_csv(place / "accounts.csv", ("old", "new", "share"), [(old, *one) for old in MAPPED for one in MAPPED[old]])
    write_csv(place / "rates.csv", ("code", "period", "rate"), [(*key, rate) for key, rate in RATES.items()])
    return [
        Source(name="accounts", kind="csv", path="accounts.csv",
               dimensions=(Dimension(name="old"), Dimension(name="new")), measures=(Measure(name="share"),)),
        Source(name="rates", kind="csv", path="rates.csv",
               dimensions=(Dimension(name="code"), Dimension(name="period")), measures=(Measure(name="rate"),)),
    ]  # fmt: skip


FILTERS: list[dict[str, Any]] = [
    {"dimension": "company", "value": "1002"},
    {"dimension": "company", "op": "!=", "value": "1001"},
    {"dimension": "company", "op": "in", "value": ["1001", "2001"]},
    {"dimension": "company", "op": "is null"},
    {"dimension": "company", "op": "not in", "value": ["1002"]},
    {"dimension": "company", "op": "between", "value": ["1001", "1500"]},
    {"dimension": "company", "op": "like", "value": "10%"},
    {"dimension": "period", "value": "202402"},
    {"dimension": "period", "op": "between", "value": ["202401", "202402"]},
    {"dimension": "period", "op": "ytd", "value": "202402"},
    {"dimension": "period", "op": "rolling", "value": ["202403", 2]},
    {"dimension": "period", "op": ">", "value": "202401"},
    {"dimension": "account", "op": "under", "value": "Revenue"},
    {"dimension": "account", "op": "under", "value": "Result"},
    {"dimension": "account", "op": ">=", "value": "4300"},
    {"dimension": "account", "value": "4300"},
    {"dimension": "account", "op": "like", "value": "8%"},
    {"dimension": "currency", "value": "EUR"},
    {"dimension": "currency", "op": "!=", "value": "USD"},
]


def filters(chance: Random, count: int) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for one in chance.sample(FILTERS, len(FILTERS)):
        if len(found) < count:
            found.setdefault(one["dimension"], one)
    return list(found.values())


def asked(chance: Random, money: bool) -> dict[str, Any]:
    request: dict[str, Any] = {
        "dimensions": chance.choice(
            [["account"], ["company", "account"], ["period", "account"], ["company"], ["period"], [], list(NAMES[:3])]
        ),
        "filters": filters(chance, chance.choice([0, 0, 1, 1, 2])),
        "filters_a": filters(chance, chance.choice([0, 0, 0, 1])),
        "filters_b": filters(chance, chance.choice([0, 0, 0, 1])),
    }
    if "account" in request["dimensions"]:
        request["subtotals"] = chance.choice([[], ["tree"]])
    if chance.random() < 0.3:
        request["tolerance"] = chance.choice(["0", "10", "1000"])
    if chance.random() < 0.2:
        request["materiality"] = chance.choice(["1", "100000"])
    return request


def told(found: Comparison, looked_up: bool) -> dict[str, Any]:
    """What must be the same; of rows that are split among accounts, not how many there are, nor which are alike."""
    skip, left = ({"rows_a", "rows_b"}, {"duplicates", "filter_without_rows"}) if looked_up else (set(), set())
    claims = [
        (one.kind, one.filters, {name: value for name, value in one.facts.items() if name not in skip})
        for one in [*found.claims, *found.warnings]
        if one.kind not in left
    ]
    return {
        "dimensions": found.dimensions,
        "filters": (found.filters, found.filters_a, found.filters_b),
        "units": (found.unit, found.unit_a, found.unit_b),
        "tolerance": found.tolerance,
        "summary": found.summary,
        "parts": found.by_dimension,
        "subtotals": found.subtotals,
        "rows": sorted(
            str({name: value for name, value in asdict(row).items() if name not in skip}) for row in found.rows
        ),
        "claims": claims,
    }


def answer(catalog: Catalog, request: dict[str, Any], looked_up: bool) -> Any:
    try:
        found = compare(catalog, CompareRequest(source_a="a", source_b="b", **request), bounds=QUICK)
    except AnalystError as error:
        return f"refused: {error}", None
    return told(found, looked_up), found


@pytest.mark.parametrize("number", range(FIRST, FIRST + PAIRS))
def test_a_comparison_is_the_same_however_its_sides_are_written(tmp_path: Path, number: int) -> None:
    chance = Random(number)
    mapped = [chance.random() < 0.4 for _ in "ab"]
    converted = chance.random() < 0.3
    codes: list[str | None] = chance.choice([["EUR"], ["EUR"], ["EUR", "USD"], ["EUR", "USD", "GBP"]])
    if not converted and chance.random() < 0.1:
        codes = [*codes, None]
    old, new = sorted(MAPPED), ["4100", "4200", "4300", "8000", "8100"]
    first = rows_of(chance, codes, old if mapped[0] else new)
    if mapped[0] == mapped[1]:
        second = changed(chance, first, old if mapped[1] else new)
    else:
        second = rows_of(chance, codes, old if mapped[1] else new)
    hows = [dress(chance, one, converted) for one in mapped]
    for own, other in (hows, hows[::-1]):
        # The format of the other side holds for what this one spells in several ways.
        own.mixed = other.padded and not own.padded
    figure = "sum" if any(mapped) else chance.choice(["sum", "sum", "min", "max", "count"])
    measure = Measure(
        name="amount",
        decimals=None if figure == "count" else 2,
        aggregation=figure,  # type: ignore[arg-type]
        unit="EUR" if converted and figure != "count" else "",
        currency="" if converted else "currency",
    )
    tree = Hierarchy(name="tree", of="account", groups=GROUPS)
    sides = list(zip("ab", (first, second), hows, strict=True))
    tidy, worn = tmp_path / "tidy", tmp_path / "worn"
    tidy.mkdir()
    worn.mkdir()
    catalogs = [
        Catalog([plain(tidy, *side, measure) for side in sides], tidy, hierarchies=[tree]),
        Catalog([*(dressed(worn, *side, measure) for side in sides), *tables(worn)], worn, hierarchies=[tree]),
    ]
    request = asked(chance, converted)
    looked_up = any(mapped) or converted or any(how.mixed for how in hows)
    (expected, _), (got, made) = (answer(catalog, request, looked_up) for catalog in catalogs)
    if isinstance(expected, str) or isinstance(got, str):
        assert type(got) is type(expected), (hows, request, expected, got)
        return
    for name in expected:
        assert got[name] == expected[name], (name, hows, request)
    single = QueryRequest(
        source="b" if hows[0].mixed else "a",
        dimensions=request["dimensions"],
        filters=[*request["filters"]],
        subtotals=request.get("subtotals", []),
    )
    other, one = (query(catalog, single, bounds=QUICK) for catalog in catalogs)
    assert (one.rows, one.totals, one.subtotals) == (other.rows, other.totals, other.subtotals), (hows, request)
    for row in [] if figure != "sum" else chance.sample(made.rows, min(2, len(made.rows))):
        _is_made_of_its_lines(catalogs[1], request, row)


def _is_made_of_its_lines(catalog: Catalog, request: dict[str, Any], row: Difference) -> None:
    """The lines behind a key add up to its figures, on both sides."""
    conditions = {name: request[name] for name in ("filters", "filters_a", "filters_b")}
    behind = drill(catalog, DrillRequest(source_a="a", source_b="b", key=row.key, **conditions), bounds=QUICK)
    assert (behind.a.total, behind.b.total) == (row.source_a_value, row.source_b_value), (request, row)
    assert (behind.a.total_rows, behind.b.total_rows) == (row.rows_a, row.rows_b), (request, row)
    for side in (behind.a, behind.b):
        amounts = [line.amount * line.times for line in side.rows if line.amount is not None]
        assert (sum(amounts, Decimal(0)) if amounts else None) == side.total
