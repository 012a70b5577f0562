"""Worlds in which the same figures are told in many ways: two sources of rows as people have them, and what is asked.

What should be told of them is computed here in plain Python, of the rows as they are meant.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.analyst import Catalog, Dimension, Filter, Measure, Source, Tolerance, parse_format
from treadle.analyst.declared.source import TextFormat

from .shelf import DATABASES, Shelf

D = Decimal
EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
KINDS = ("csv", "csv", "csv", "json", "sqlite", "duckdb", "parquet", "xlsx", "pandas", "polars", *DATABASES)
NAMES = ("company", "account", "day", "currency")
TEXTS = (
    "#", "Not assigned", "a", "A", "ä", "a ", "0001", "1", "=1+1", "x;y", 'q"q', "'x", "1e5", "NULL", "2024-01-31",
    "nan", "-5", "@x", "true", "x,y", "'=1", "%", "a_b", "100%",
)  # fmt: skip
DAYS = [date(2024, 1, 1) + timedelta(days=at) for at in (-1, 0, 30, 31, 59, 60, 365, 366)]
SPELLED: dict[str, Callable[[date], str]] = {
    "date(DD.MM.YYYY)": lambda day: f"{day:%d.%m.%Y}",
    "date(MM/DD/YYYY)": lambda day: f"{day.month}/{day.day}/{day.year}",
    "date(YYYYMMDD)": lambda day: f"{day:%Y%m%d}",
    "": lambda day: day.isoformat(),
}
Told = tuple[str | None, ...]
"""A key as text."""


class Row(Struct, frozen=True):
    """A row as it is meant."""

    company: str | None
    account: str | None
    day: date | None
    currency: str | None
    amount: D | None
    pieces: D | None


Condition = tuple[dict[str, Any], Callable[[Row], bool]]


class Dress(Struct):
    """How a source has its rows."""

    kind: str
    day: str
    padded: bool
    signs: str
    encoding: str
    typed: bool
    sign: int
    decimals: int | None
    renamed: bool
    default: dict[str, Any] | None
    usual: Tolerance | None
    footer: bool


CONDITIONS: list[Condition] = [
    ({"dimension": "company", "value": "1001"}, lambda r: r.company == "1001"),
    ({"dimension": "company", "op": "!=", "value": "1001"}, lambda r: r.company != "1001"),
    ({"dimension": "company", "op": "not in", "value": ["1", "10"]}, lambda r: r.company not in ("1", "10")),
    ({"dimension": "company", "op": "is not null"}, lambda r: r.company is not None),
    ({"dimension": "account", "op": "like", "value": "a%"}, lambda r: (r.account or "").startswith("a")),
    ({"dimension": "account", "op": "in", "value": ["#", "a", "A", "1"]}, lambda r: r.account in ("#", "a", "A", "1")),
    ({"dimension": "account", "op": "!=", "value": "Not assigned"}, lambda r: r.account != "Not assigned"),
    ({"dimension": "account", "op": "is null"}, lambda r: r.account is None),
    ({"dimension": "day", "value": "2024-01-31"}, lambda r: r.day == date(2024, 1, 31)),
    (
        {"dimension": "day", "op": "between", "value": ["2024-01-01", "2024-01-31"]},
        lambda r: r.day is not None and date(2024, 1, 1) <= r.day <= date(2024, 1, 31),
    ),
    (
        {"dimension": "day", "op": "between", "value": ["2024-01-01", "2024-01-31"], "inclusive": "left"},
        lambda r: r.day is not None and date(2024, 1, 1) <= r.day < date(2024, 1, 31),
    ),
    ({"dimension": "day", "op": "<", "value": "2024-01-01"}, lambda r: r.day is not None and r.day < date(2024, 1, 1)),
    (
        {"dimension": "day", "op": "ytd", "value": "2024-02-01"},
        lambda r: r.day is not None and date(2024, 1, 1) <= r.day <= date(2024, 2, 1),
    ),
    ({"dimension": "currency", "value": "JPY"}, lambda r: r.currency == "JPY"),
    ({"dimension": "currency", "op": "in", "value": ["EUR", "KWD"]}, lambda r: r.currency in ("EUR", "KWD")),
]


class World(Struct):
    """Two sources, what is asked of them, and the rows that pass.

    Attributes:
        catalog: the sources, `a` and `b`.
        rows: their rows.
        hows: how they have them.
        pieces: how the second measure is aggregated.
        by: the dimensions that are asked for.
        asked: the request, but for the names of the sources.
        conditions: those of both.
        passed: the rows of each that pass.
        dimensions: what rows are told apart by in the answer.
        groups: the rows of each key on each side.
        limits: of each measure the absolute and the relative tolerance, and what is material.
    """

    catalog: Catalog
    rows: tuple[list[Row], list[Row]]
    hows: list[Dress]
    pieces: str
    by: list[str]
    asked: dict[str, Any]
    conditions: list[Condition]
    passed: list[list[Row]]
    dimensions: list[str]
    groups: list[dict[Told, list[Row]]]
    limits: dict[str, tuple[D, D, D]]

    @property
    def keys(self) -> list[Told]:
        """Every key, once."""
        return list(dict.fromkeys([*self.groups[0], *self.groups[1]]))

    def aggregation(self, measure: str) -> str:
        """How a measure is aggregated."""
        return "sum" if measure == "amount" else self.pieces

    def figures(self, measure: str) -> dict[Told, tuple[D | None, D | None]]:
        """The figure of each key on each side."""
        how = self.aggregation(measure)
        a, b = self.groups
        return {key: (figure(how, measure, a.get(key, [])), figure(how, measure, b.get(key, []))) for key in self.keys}


def key_of(row: Row, names: Sequence[str]) -> Told:
    """A row's key as text."""
    return tuple(as_text(getattr(row, name)) for name in names)


def as_text(value: Any) -> str | None:
    """A key's value as text."""
    return None if value is None else str(value)


def grouped(rows: Sequence[Row], names: Sequence[str]) -> dict[Told, list[Row]]:
    """The rows of each key."""
    found: dict[Told, list[Row]] = defaultdict(list)
    for row in rows:
        found[key_of(row, names)].append(row)
    return dict(found)


def figure(how: str, measure: str, rows: Sequence[Row]) -> D | None:
    """The figure of rows, None of none."""
    known = [value for row in rows if (value := getattr(row, measure)) is not None]
    if how == "count":
        return D(len(known)) if rows else None
    if not known:
        return None
    if how == "avg":
        return EXACT.divide(sum(known, D(0)), D(len(known))).quantize(D(1).scaleb(-10), context=EXACT)
    return {"sum": lambda: sum(known, D(0)), "min": lambda: min(known), "max": lambda: max(known)}[how]()


def classed(na: int, nb: int, a: D | None, b: D | None, limits: tuple[D, D, D]) -> tuple[str, str]:
    """The class of a difference, and which thresholds it crossed."""
    if not nb or not na:
        return ("missing_in_b" if not nb else "missing_in_a"), "missing"
    gap = abs((a or D(0)) - (b or D(0)))
    if gap <= limits[0]:
        return "match", "none"
    material, large = gap >= limits[2], Fraction(gap) >= Fraction(limits[1]) * abs(Fraction(a or D(0)))
    words = [word for word, holds in (("materiality", material), ("relative", large)) if holds]
    return ("major_diff" if words else "minor_diff"), " and ".join(words) or "absolute"


def currency_is_added(rows: Sequence[Sequence[Row]], by: Sequence[str]) -> list[str]:
    """What rows are told apart by: also by the currency where there are several."""
    several = len({row.currency for side in rows for row in side}) > 1
    return [*by, *(["currency"] if several and "currency" not in by else [])]


def passing(rows: Sequence[Row], conditions: Sequence[Condition], how: Dress) -> list[Row]:
    """The rows that pass conditions, and the default filter that none of them replaces."""
    if how.default and not any(asked["dimension"] == "company" for asked, _ in conditions):
        conditions = [*conditions, CONDITIONS[0]]
    return [row for row in rows if all(test(row) for _, test in conditions)]


def world(chance: Random, folder: Path, shelve: Callable[[Sequence[str]], Shelf]) -> World:
    """A world by chance."""
    code, places = chance.choice([("JPY", 0), ("EUR", 2), ("EUR", 2), ("KWD", 3), ("XAU", 8)])
    codes: list[str | None] = chance.choice([[code], [code], [code, "EUR"], [code, "JPY", None]])
    pieces = chance.choice(["sum", "avg", "min", "max", "count"])
    hows = [_dress(chance, places) for _ in "ab"]
    sheets = any(how.kind == "xlsx" for how in hows)
    size = 6 if sheets else chance.choice([4, 7, 12, 25])
    first = _rows(chance, codes, places, size, empty=not sheets)
    alike = chance.random() < 0.8
    second = _changed(chance, first, places) if alike else _rows(chance, codes, places, size, empty=not sheets)
    for how in hows:
        if how.encoding == "cp1253" and any("ä" in (row.account or "") for row in [*first, *second]):
            how.encoding = "utf-16-le"
    shelf = shelve([how.kind for how in hows])
    both = zip("ab", (first, second), hows, strict=True)
    sources = [_put(shelf, name, rows, how, places, pieces) for name, rows, how in both]
    shared, own_a, own_b = (_conditions(chance, chance.choice(m)) for m in ([0, 0, 1, 2], [0, 0, 0, 1], [0, 0, 0, 1]))
    by = chance.sample(NAMES, chance.choice([0, 1, 1, 2, 3]))
    asked: dict[str, Any] = {"dimensions": by}
    for name, conditions in (("filters", shared), ("filters_a", own_a), ("filters_b", own_b)):
        asked[name] = [condition for condition, _ in conditions]
    passed = [passing(first, [*shared, *own_a], hows[0]), passing(second, [*shared, *own_b], hows[1])]
    dimensions = currency_is_added(passed, by)
    made = World(
        catalog=Catalog(sources, shelf.folder, frames=shelf.frames), rows=(first, second), hows=hows, pieces=pieces,
        by=by, asked=asked, conditions=shared, passed=passed, dimensions=dimensions,
        groups=[grouped(rows, dimensions) for rows in passed], limits={},
    )  # fmt: skip
    made.limits = _limits(chance, made)
    return made


def _limits(chance: Random, made: World) -> dict[str, tuple[D, D, D]]:
    """The thresholds, some of which differences hit exactly."""
    finest = max(2 if how.decimals is None else how.decimals for how in made.hows)
    usual = made.hows[0].usual or made.hows[1].usual
    absolute = usual.absolute if usual else D("0.01") if finest == 2 else D(5).scaleb(-finest - 1)
    gaps = [abs((a or D(0)) - (b or D(0))) for a, b in made.figures("amount").values()]
    of_both: dict[str, D] = {}
    if chance.random() < 0.4 and gaps:
        of_both["tolerance"] = chance.choice([D(0), *gaps])
    if chance.random() < 0.3:
        of_both["relative_tolerance"] = D(chance.choice(["0", "0.005", "0.5", "1.5", "0.333"]))
    if chance.random() < 0.3 and gaps:
        of_both["materiality"] = chance.choice([D(1), *gaps])
    made.asked |= {name: str(value) for name, value in of_both.items()}

    def told(first: D) -> tuple[D, D, D]:
        relative, material = of_both.get("relative_tolerance", D("0.01")), of_both.get("materiality", D(5000))
        return of_both.get("tolerance", first), relative, material

    return {"amount": told(absolute), "pieces": told(D("0.01"))}


def _amount(chance: Random, places: int, size: int) -> D | None:
    if chance.random() < 0.07:
        return None
    large = [10 ** chance.randint(0, size) + chance.randint(0, 9), chance.randint(0, 10**size)]
    return D(chance.choice([1, 1, -1]) * chance.choice([0, 1, 5, *large])).scaleb(-places)


def _rows(chance: Random, codes: Sequence[str | None], places: int, size: int, *, empty: bool) -> list[Row]:
    texts = [*chance.sample(TEXTS, 5), None, *([""] if empty else [])]
    return [
        Row(
            company=chance.choice(["1", "1001", "10", "A1", None]),
            account=chance.choice(texts),
            day=chance.choice([*DAYS[:5], None]),
            currency=chance.choice(codes),
            amount=_amount(chance, places, size),
            pieces=_amount(chance, chance.choice([0, 3]), 4),
        )
        for _ in range(chance.choice([0, 1, 3, 10, 30]))
    ]


def _changed(chance: Random, rows: Sequence[Row], places: int) -> list[Row]:
    found: list[Row] = []
    unit = D(1).scaleb(-places)
    for row in rows:
        amount = row.amount or D(0)
        match chance.choice(["same"] * 8 + ["gone", "twice", "off", "late", "far", "none", "share"]):
            case "gone":
                continue
            case "twice":
                found += [row, row]
            case "off":
                found.append(replace(row, amount=amount + unit * chance.choice([1, -1, 2, 50, -500])))
            case "far":
                found.append(replace(row, amount=-amount, pieces=(row.pieces or D(0)) + 1))
            case "share":
                found.append(replace(row, amount=EXACT.quantize(amount * D("1.005"), unit)))
            case "late":
                found.append(replace(row, day=chance.choice(DAYS)))
            case "none":
                found.append(replace(row, amount=None))
            case _:
                found.append(row)
    chance.shuffle(found)
    return found


def _dress(chance: Random, places: int) -> Dress:
    kind = chance.choice(KINDS)
    encodings = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1253"]
    return Dress(
        kind=kind,
        day=chance.choice(list(SPELLED)),
        padded=chance.random() < 0.4,
        signs=chance.choice([".", ".,", ",.", ",", ", ", ".'"]) if kind in ("csv", "json", "sqlite") else ".",
        encoding=chance.choice(encodings) if kind == "csv" else "",
        typed=chance.random() < 0.5 and kind in ("duckdb", "parquet", *DATABASES),
        sign=chance.choice([1, 1, -1]),
        decimals=chance.choice([None, 2, places, places]),
        renamed=chance.random() < 0.4,
        default={"dimension": "company", "value": "1001"} if chance.random() < 0.1 else None,
        usual=Tolerance(absolute=D(chance.choice(["0", "0.5", "3"]))) if chance.random() < 0.2 else None,
        footer=kind == "csv" and chance.random() < 0.3,
    )


def _conditions(chance: Random, count: int) -> list[Condition]:
    found: dict[str, Condition] = {}
    for one in chance.sample(CONDITIONS, len(CONDITIONS)):
        if len(found) < count:
            found.setdefault(one[0]["dimension"], one)
    return list(found.values())


def _number(value: D | None, how: Dress) -> str | None:
    if value is None:
        return None
    decimal, thousands = how.signs[0], how.signs[1:]
    text = f"{abs(value):,f}" if thousands else f"{abs(value):f}"
    text = text.replace(",", "\0").replace(".", decimal).replace("\0", thousands)
    return f"{text}-" if value < 0 else text


def _cells(row: Row, how: Dress) -> list[Any]:
    company = row.company.zfill(10) if how.padded and row.company and row.company.isdigit() else row.company
    day: Any = None if row.day is None else row.day if how.typed else SPELLED[how.day](row.day)
    amount = None if row.amount is None else row.amount * how.sign
    figures = [amount, row.pieces] if how.signs == "." else [_number(one, how) for one in (amount, row.pieces)]
    return [company, row.account, day, row.currency, *figures]


def _put(shelf: Shelf, name: str, rows: Sequence[Row], how: Dress, places: int, pieces: str) -> Source:
    columns = {one: f"Z {one}" if how.renamed else one for one in (*NAMES, "amount", "pieces")}
    table = [_cells(row, how) for row in rows]
    kinds = ["VARCHAR", "VARCHAR", "DATE" if how.typed else "VARCHAR", "VARCHAR", f"DECIMAL(38, {places})"]
    types = dict(zip(columns.values(), [*kinds, "DECIMAL(18, 3)"], strict=True))
    place = shelf.put(name, how.kind, types, table)
    text = TextFormat() if how.kind == "xlsx" else TextFormat(decimal=how.signs[0], thousands=how.signs[1:])
    if how.kind == "csv":
        (shelf.folder / place["path"]).write_bytes(_csv(list(columns.values()), table, how))
        totals = ("number of %",) if how.footer else ()
        text = replace(text, delimiter=";", encoding=how.encoding.removesuffix("-sig"), totals=totals)
    form = {"company": "alpha(10)" if how.padded else "", "day": "" if how.typed else how.day}
    amount = Measure(
        name="amount", column=columns["amount"], currency="currency", decimals=how.decimals, sign=how.sign,
        tolerance=how.usual,
    )  # fmt: skip
    return Source(
        name=name,
        **place,
        text=text,
        dimensions=tuple(
            Dimension(name=one, column=columns[one], format=parse_format(form.get(one, ""))) for one in NAMES
        ),
        measures=(amount, Measure(name="pieces", column=columns["pieces"], aggregation=pieces)),  # type: ignore[arg-type]
        default_filters=() if how.default is None else (Filter(**how.default),),
    )


def _csv(names: Sequence[str], table: Sequence[Sequence[Any]], how: Dress) -> bytes:
    def cell(value: Any) -> str:
        return "" if value is None else '"{}"'.format(str(value).replace('"', '""'))

    lines = [";".join(map(cell, row)) for row in [names, *table]]
    if how.footer:
        lines.append('"Number of entries";;;;' + f'"{len(table)}";')
    return ("\n".join(lines) + "\n").encode(how.encoding)
