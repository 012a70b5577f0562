"""Rows of a ledger as they are meant, and as people have them."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from treadle.analyst import Dimension, Filter, Measure, Source, parse_format
from treadle.analyst.declared.source import Conversion, Mapping, TextFormat

from .conftest import write_csv
from .shelf import DATABASES, Shelf

NAMES = ("company", "account", "period", "currency", "amount")
PERIODS = ("202401", "202402", "202403")
# A year's end: its special periods, and the balance carried forward into the next, none of which is a month.
CLOSING = ("202311", "202312", "202313", "202316", "202400", "202401", "202402", "202403")
RATES = {("USD", "202401"): "0.9", ("USD", "202402"): "0.8512", ("USD", "202403"): "1.05", ("GBP", "202401"): "1.17",
         ("GBP", "202402"): "1.2", ("GBP", "202403"): "1.165"} | {
    (code, period): f"1.{period[3:]}" for code in ("USD", "GBP") for period in CLOSING[:-3]
}  # fmt: skip
MAPPED = {
    "10": [("4100", "1")],
    "20": [("4200", "0.25"), ("4300", "0.75")],
    "30": [("4300", "1")],
    "40": [("8000", "0.5"), ("8100", "0.5")],
    "50": [("8100", "1")],
}
CODES = {"EUR": ("€", "Euro"), "USD": ("US$", "$US"), "GBP": ("£", "Stg")}
KINDS = ("csv", "csv", "csv", "json", "sqlite", "duckdb", "parquet", "xlsx", "pandas", "polars", *DATABASES)


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
    coded: bool
    footed: bool
    noted: bool
    encoding: str
    mixed: bool = False


def rows_of(
    chance: Random, codes: Sequence[str | None], accounts: Sequence[str], periods: Sequence[str] = PERIODS
) -> list[Row]:
    return [
        Row(
            chance.choice(["1001", "1002", "1002", "2001", None]),
            chance.choice(accounts),
            chance.choice(periods),
            chance.choice(codes),
            None if chance.random() < 0.05 else Decimal(chance.randint(-300_000, 900_000)) / 100,
        )
        for _ in range(chance.choice([0, 1, 5, 20, 40]))
    ]


def changed(
    chance: Random, rows: Sequence[Row], accounts: Sequence[str], periods: Sequence[str] = PERIODS
) -> list[Row]:
    found: list[Row] = []
    for row in rows:
        amount = row.amount or Decimal(0)
        match chance.choice(["same"] * 8 + ["gone", "twice", "off", "late", "moved"]):
            case "gone":
                continue
            case "twice":
                found += [row, row]
            case "off":
                found.append(Row(*_but(row, amount=amount + Decimal(chance.choice(["0.01", "7.5", "6000"])))))
            case "late":
                found.append(Row(*_but(row, period=chance.choice(periods))))
            case "moved":
                found.append(Row(*_but(row, account=chance.choice(accounts))))
            case _:
                found.append(row)
    chance.shuffle(found)
    return found


def _but(row: Row, **values: Any) -> list[Any]:
    return list((asdict(row) | values).values())


def dress(chance: Random, mapped: bool, converted: bool, periods: Sequence[str] = PERIODS) -> Dress:
    kind = chance.choice(KINDS)
    # A day stands for its month, and so for no special period; binary fractions are rounded once they are multiplied.
    days = ["days", "dates", "calendar"] if periods == PERIODS else []
    scaled = [] if kind == "xlsx" else ["thousands"]
    return Dress(
        kind=kind,
        mapped=mapped,
        converted=converted,
        padded=chance.random() < 0.4,
        period=chance.choice(["plain", "fiscal", "dotted", "reporting", "planned", "mixed", *days]),
        sign=chance.choice(["plain", "plain", "turned", "debit", "columns", *scaled]),
        german=kind == "csv" and chance.random() < 0.5,
        opened=kind == "csv" and chance.random() < 0.3,
        totals=kind == "csv" and chance.random() < 0.3,
        renamed=chance.random() < 0.3,
        default=Filter(dimension="company", value="1002") if chance.random() < 0.15 else None,
        coded=chance.random() < 0.2,
        footed=kind == "csv" and chance.random() < 0.4,
        noted=kind == "csv" and chance.random() < 0.4,
        encoding=chance.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252"]),
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
    "reporting": lambda period: f"0{period[4:]}.{period[:4]}",
    "planned": lambda period: f" {period[:4]}.{period[4:]}",
    "days": lambda period: f"17.{period[4:]}.{period[:4]}",
    "dates": lambda period: f"{period[:4]}-{period[4:]}-28",
    # A year of its own, whose periods a table has: each in a month that is another period of the usual year.
    "calendar": lambda period: f"17.{int(period[4:]) % len(PERIODS) + 1:02}.{period[:4]}",
}
FORMATS = dict.fromkeys(("fiscal", "dotted", "reporting", "planned", "mixed", "dates"), "fiscal_period") | {
    "plain": "", "days": "date(DD.MM.YYYY), fiscal_period", "calendar": "date(DD.MM.YYYY)",
}  # fmt: skip


WAYS = ("plain", "fiscal", "dotted", "reporting", "planned")
NOTES = ['"two\nlines"', '"a|b"', "", '""', '"say ""so"""', '5" pipe', '"|\n|"', "the Summe"]
"""What stands in a column that no source declares, `|` for what is between fields."""
MORE = {"debit": {"dc": "VARCHAR"}, "columns": {"haben": "DECIMAL(18, 2)"}}
EXPRESSIONS = {
    "debit": 'if(dc = \'H\', -"{0}", "{0}")',
    "columns": 'case when haben is null then "{0}" else -haben end',
    "thousands": '"{0}" * 1000',
}
"""How amounts are made of what a source has of them: with a mark, in two columns, or in thousands."""


def german(amount: Decimal) -> str:
    text = f"{abs(amount):,}".replace(",", " ").replace(".", ",").replace(" ", ".")
    return f"{text}-" if amount < 0 else text


def dressed(shelf: Shelf, name: str, rows: Sequence[Row], how: Dress, measure: Measure) -> Source:
    columns = {one: f"C {one}" if how.renamed else one for one in NAMES}
    listed = [*columns.values(), *MORE.get(how.sign, {})]
    table: list[list[Any]] = []
    for row in rows:
        spelled = how.period if how.period != "mixed" else WAYS[len(table) % len(WAYS)]
        cells: list[Any] = [row.company, row.account, SPELLED[spelled](row.period), row.currency, row.amount]
        if how.padded:
            cells[0] = row.company and row.company.zfill(10)
            cells[1] = row.account.zfill(10)
        if how.coded and row.currency:
            cells[3] = CODES[row.currency][len(table) % 2]
        if how.mixed and len(table) % 2:
            cells[0] = row.company and row.company.zfill(10)
        if how.sign == "turned" and row.amount is not None:
            cells[4] = -row.amount
        if how.sign == "debit":
            cells.append("H" if row.amount is not None and row.amount < 0 else "S")
            cells[4] = None if row.amount is None else abs(row.amount)
        if how.sign == "columns":
            credit = row.amount is not None and row.amount < 0
            cells[4:] = [None, -(row.amount or 0)] if credit else [row.amount, None]
        if how.sign == "thousands" and row.amount is not None:
            cells[4] = row.amount / 1000
        table.append(cells)
    kinds = ["VARCHAR"] * 4 + [f"DECIMAL(18, {5 if how.sign == 'thousands' else 2})", *MORE.get(how.sign, {}).values()]
    place = shelf.put(name, how.kind, dict(zip(listed, kinds, strict=True)), table)
    text = TextFormat()
    if how.kind == "csv":
        _write_csv(shelf.folder / f"{name}.csv", listed, table, how)
        text = TextFormat(
            delimiter=";" if how.german else ",",
            decimal="," if how.german else ".",
            thousands="." if how.german else "",
            skip=2 if how.opened else 0,
            totals=("Summe%", "*** % lines") if how.totals or how.footed else (),
            encoding=how.encoding.removesuffix("-sig"),
        )
    return Source(
        name=name,
        **place,
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
    if how.noted:
        texts = ["note", *(NOTES[at % len(NOTES)].replace("|", between) for at in range(len(rows)))]
        lines = [f"{line}{between}{text}" for line, text in zip(lines, texts, strict=True)]
    if how.footed:
        summed = [None, "Summe:", None, "1", *[None] * (len(columns) - 5)]
        lines.insert(len(lines) // 3 + 1, between.join(map(cell, summed[:4])))
        lines += [f"*** {len(rows)} lines", f"Summe{between}"]
    if how.totals:
        summed = [None, "Summe:", None, None, sum((row[4] or Decimal(0) for row in rows), Decimal(0))]
        lines.insert(len(lines) // 2 + 1, between.join(map(cell, [*summed, *[None] * (len(columns) + how.noted - 5)])))
    if how.opened:
        lines[:0] = ["Balances; as of, today", ""]
    path.write_text("\n".join(lines) + "\n", encoding=how.encoding)


def _dimension(name: str, column: str, how: Dress) -> Dimension:
    spelled = "alpha(10)" if how.padded and name in ("company", "account") else ""
    if name == "period":
        spelled = FORMATS[how.period]
    mapping = None
    if how.mapped and name == "account":
        mapping = Mapping(source="accounts", old="old", new="new", share="share")
    if how.period == "calendar" and name == "period":
        mapping = Mapping(source="calendar", old="day", new="period")
    if how.coded and name == "currency":
        mapping = Mapping(source="codes", old="sign", new="code")
    return Dimension(name=name, column=column, format=parse_format(spelled), mapping=mapping)


def _measure(measure: Measure, column: str, how: Dress) -> Measure:
    values = asdict(measure) | ({"sign": -1} if how.sign == "turned" else {})
    if how.sign in EXPRESSIONS:
        values["expression"] = EXPRESSIONS[how.sign].format(column)
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
    write_csv(place / "calendar.csv", ("day", "period"), [(SPELLED["calendar"](period), period) for period in PERIODS])
    write_csv(place / "codes.csv", ("sign", "code"), [(sign, code) for code in CODES for sign in CODES[code]])
    day = Dimension(name="day", format=parse_format(FORMATS["calendar"]))
    counted = (Measure(name="rows", column="*", aggregation="count"),)
    return [
        Source(name="calendar", kind="csv", path="calendar.csv", dimensions=(day, Dimension(name="period")),
               measures=counted),
        Source(name="codes", kind="csv", path="codes.csv", measures=counted,
               dimensions=(Dimension(name="sign"), Dimension(name="code"))),
        Source(name="accounts", kind="csv", path="accounts.csv",
               dimensions=(Dimension(name="old"), Dimension(name="new")), measures=(Measure(name="share"),)),
        Source(name="rates", kind="csv", path="rates.csv",
               dimensions=(Dimension(name="code"), Dimension(name="period")), measures=(Measure(name="rate"),)),
    ]  # fmt: skip
