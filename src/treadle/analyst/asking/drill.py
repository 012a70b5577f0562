"""Drill: the rows behind one key on both sides of a comparison, and which of them belong together.

    found = drill(catalog, DrillRequest(source_a="ledger", source_b="mart", key={"account": "800200"}))

Bounded: the largest amounts come first, and only so many rows leave the engine. A row of A and one of B are paired
where nothing else has their amount. Neighbour: `compare`, whose keys these are.
"""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.asking.currencies import currency_of
from treadle.analyst.asking.groups import tables_of_groups
from treadle.analyst.asking.in_common import called, measure_pairs
from treadle.analyst.asking.rows import Side, Statement, build, places_of
from treadle.analyst.asking.sides import read
from treadle.analyst.asking.stages import Opened, Wanted
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filter, Filters, KeyValue, Scalar
from treadle.analyst.declared.source import Aggregation, Dimension, Source
from treadle.analyst.reading.amounts import EXACT, trimmed
from treadle.analyst.reading.bounds import Bounds
from treadle.analyst.reading.interrupt import Interrupt
from treadle.analyst.reading.keys import MOST_KEY_DECIMALS, Key, conditions_of, decimal_keys
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Demand
from treadle.analyst.remote.opening import open_table
from treadle.analyst.showing.plain import plain
from treadle.analyst.showing.units import unit_of
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.terms import call, is_null, literal, named, table, when
from treadle.analyst.sql.types import decimals_in
from treadle.visible import seen

MOST_LINES = 1000
"""How many rows of a side can be asked for."""

_MOST_FETCHED = 100_000
_NOT_ADDED_UP = {"avg": "the average", "min": "the least", "max": "the largest"}
_NONE = "no amount"
_Half = tuple[Decimal, str | None]


class DrillRequest(BaseModel):
    """Which rows to show."""

    model_config = ConfigDict(extra="forbid")

    source_a: str
    source_b: str
    key: dict[str, KeyValue] = Field(description="the value of each dimension; null for rows without one")
    measure: str | None = Field(default=None, description="the figure; the first that both have if left out")
    filters: Filters = Field(default_factory=list, description="conditions on both sides, as of the comparison")
    filters_a: Filters = Field(default_factory=list, description="further conditions on the first source only")
    filters_b: Filters = Field(default_factory=list, description="further conditions on the second source only")
    names: dict[str, str] = Field(
        default_factory=dict,
        description="what the second source calls a dimension or measure, by its name in the first",
    )
    limit: int = Field(default=50, ge=1, le=MOST_LINES, description="most rows of each side")


class Line(Struct, frozen=True, kw_only=True):
    """A row of a source.

    Attributes:
        values: its columns as text, decimals that are compared by as keys are told; None for no value.
        amount: its part of the figure, that of each where it stands for several; None for none. Of a number of values
            it is 1.
        times: how many rows of a database are alike in all columns, which stand here as one.
        pair: the number of the pair that it is half of; None if it belongs to no one row of the other side.
        currency: what the amount is in, where a column says that; None for no value, and without such a column.
    """

    values: dict[str, str | None]
    amount: Decimal | None
    times: int = 1
    pair: int | None = None
    currency: str | None = None


class CurrencyTotal(Struct, frozen=True):
    """The amounts in one currency, added up; None for rows without a currency, and for a total of no amount."""

    currency: str | None
    total: Decimal | None

    def __str__(self) -> str:
        unit = self.currency or "without a currency"
        return f"no amount in {self.currency}" if self.total is None and self.currency else (
            f"no amount {unit}" if self.total is None else f"{self.total:,f} {unit}")  # fmt: skip


class Lines(Struct, frozen=True, kw_only=True):
    """The rows of one side.

    Attributes:
        source: the source.
        measure: what their amounts are of, as this source calls it.
        aggregation: how they become its figure: that of an "avg", "min" or "max" is not `total`.
        filters: the conditions that held, the key's among them.
        rows: the rows, the largest amount first, cut to the number asked for.
        total_rows: how many there are.
        total: their amounts added up, those that are not shown among them; None if none has an amount, or if they are
            in several currencies.
        totals_by_currency: the total of each currency of the rows, in order; empty without a column of them.
        unit: what the amounts are measured in, as it is declared or as the rows say, if all of them say the same; empty
            if neither does.
    """

    source: str
    measure: str
    filters: tuple[str, ...]
    rows: tuple[Line, ...]
    total_rows: int
    total: Decimal | None
    totals_by_currency: tuple[CurrencyTotal, ...] = ()
    aggregation: Aggregation = "sum"
    unit: str = ""

    @property
    def currencies(self) -> tuple[str | None, ...]:
        """The currencies of the rows, in order, None for rows without one; empty without a column of them."""
        return tuple(one.currency for one in self.totals_by_currency)

    @property
    def told(self) -> str:
        """The measure and the total, in words; of an average, say, that this is not the total."""
        figure = self.figure
        if figure == _NONE:
            return f"no {self.measure}"
        if self.aggregation in _NOT_ADDED_UP:
            return f"{self.measure}, {_NOT_ADDED_UP[self.aggregation]} of amounts that add up to {figure}"
        return f"{self.measure} {figure}"

    @property
    def figure(self) -> str:
        """The total in words; one of each currency where there are several."""
        if len(self.totals_by_currency) > 1:
            each = " and ".join(map(str, self.totals_by_currency))
            # Such as thousands, of whatever currency.
            return f"{each}, each in {self.unit}" if self.unit else each
        if self.total is None and self.aggregation != "count":
            return _NONE
        return f"{Decimal(0) if self.total is None else self.total:,f} {self.unit}".rstrip()


class Drilled(Struct, frozen=True, kw_only=True):
    """The rows behind one key.

    Attributes:
        key: the key.
        a: the rows of A.
        b: the rows of B.
        pairs: how many rows of A are paired with one of B.
        note: why none are paired, where they could not be; that of two sides without any row for one.
    """

    key: dict[str, Any]
    a: Lines
    b: Lines
    pairs: int
    note: str = ""

    def to_dict(self, *, numbers: bool = False) -> dict[str, Any]:
        """Returns JSON values, decimals as text so that no digit is lost.

        Args:
            numbers: amounts as floats, with their exact text beside them, such as `total_exact`.
        """
        data: dict[str, Any] = plain(self, numbers=numbers)
        return data


def drill(
    catalog: Catalog, request: DrillRequest, *, bounds: Bounds | None = None, interrupt: Interrupt | None = None
) -> Drilled:
    """Returns the rows behind one key of a comparison.

    Args:
        catalog: the sources.
        request: which rows.
        bounds: memory, threads and time that it may use.
        interrupt: stops it from another thread.

    Raises:
        AnalystError: a name or value is not valid, the data cannot be read exactly, or a database has more than 100,000
            rows behind the key.
    """
    a = catalog.source(request.source_a, "source_a")
    b = called(a, catalog.source(request.source_b, "source_b"), request.names)
    (pair, *_) = measure_pairs(a, b, None if request.measure is None else [request.measure])
    behind = [_being(name, value) for name, value in request.key.items()]
    tables = [table for source in (a, b) for table in catalog.tables(source)]
    tables += tables_of_groups(catalog, [a, b], [*request.filters, *request.filters_a, *request.filters_b])
    sources = list({source.name: source for source in (a, b, *tables)}.values())
    with Session(catalog, sources, bounds, interrupt) as session:
        opened = [
            Wanted(
                letter="ab"[index],
                index=index,
                source=source,
                keys=tuple(_columns(session, source, index)),
                declared=(pair[index],),
                conditions=tuple(conditions_of(source, index, [a, b], request.filters, alone, behind)),
            ).open(session)
            for index, (source, alone) in enumerate(((a, request.filters_a), (b, request.filters_b)))
        ]
        _refuse_many(session, catalog, opened)
        sides, _ = read(session, catalog, opened)
        first, second = (_lines(session, side, request.limit) for side in sides)
    return _paired(dict(request.key), first, second)


def _being(dimension: str, value: Scalar | None) -> Filter:
    return Filter(dimension=dimension, op="is null") if value is None else Filter(dimension=dimension, value=value)


def _columns(session: Session, source: Source, index: int) -> list[Key]:
    """Every column of a source as it stands there; of JSON and SQLite files those that are declared."""
    rows = open_table(session, source, Demand(source.dimensions, source.measures))
    found = []
    for name, kind in rows.columns.items():
        # A decimal that is compared by has fewer digits before its point than one that is an amount.
        member = Dimension(name=name, type="string" if decimals_in(kind) is not None else None)
        found.append(Key(name, (member, member), own=index))
    return found


def _refuse_many(session: Session, catalog: Catalog, opened: Sequence[Opened]) -> None:
    """Raises AnalystError if a database has too many rows behind the key to fetch them all."""
    if all(one.table.remote is None for one in opened):
        return
    # What is looked up for them stands in tables of its own, which are named by the letter.
    counting = [replace(one, letter=f"c{one.letter}", keys=(), declared=()) for one in opened]
    counted, _ = read(session, catalog, counting)
    for side in counted:
        if side.table.remote is None:
            continue
        parameters = Parameters()
        rows = side.filtered(exp.select(side.counted(exp.column(side.table.weight))), parameters)
        count = session.run(rows, parameters)[0][0]
        if count > _MOST_FETCHED:
            raise AnalystError(
                f"{side.source.name!r} has {count:,} rows behind this key, and {_MOST_FETCHED:,} is the most that are "
                f"fetched; name more dimensions in the key"
            )


def _lines(session: Session, side: Side, limit: int) -> Lines:
    """The rows of one side, those with the largest amounts first."""
    lines, columns = f"lines_{side.letter}", [key.name for key in side.keys]
    currency = currency_of(side, side.measures[0])
    at = columns.index(currency.source_column) if currency and currency.source_column in columns else None
    if currency and currency.mapping:
        side, at = side.by([*side.keys, Key(currency.name, (currency, currency), own=side.index)]), len(columns)
    build(session, lambda: _statement(side, lines))
    # What a database has made of rows that are alike is their sum, or the least or greatest of them: any one.
    summed = side.measures[0].aggregation in ("sum", "avg", "count")
    amount: exp.Expr = exp.column("amount")
    every = amount if summed else exp.Mul(this=amount, expression=exp.column("n"))
    counted = [call("coalesce", exp.Sum(this=exp.column("n")), literal(0)), exp.Sum(this=every)]
    count, total = session.run(exp.select(*counted, copy=False).from_(table(lines), copy=False))[0]
    size = exp.Ordered(this=exp.Abs(this=exp.column("amount")), desc=True, nulls_first=False)
    keys = [exp.column(f"k{number}") for number in range(len(side.keys))]
    orders = [size, *(exp.Ordered(this=key.copy(), nulls_first=False) for key in keys)]
    statement = exp.select(*keys, exp.column("n"), exp.column("amount"), copy=False)
    statement = statement.from_(table(lines), copy=False).order_by(*orders, copy=False)
    places = places_of(side.measures[0], side, 0)
    totals = () if at is None else _by_currency(session, lines, at, every, places)
    decimals = decimal_keys(side.source, side.table.columns)
    rows = [
        Line(
            values={name: _told(value, name in decimals) for name, value in zip(columns, row, strict=False)},
            amount=trimmed(_each(row[-1], row[-2] if summed else 1), places),
            times=row[-2],
            currency=None if at is None else _code(row[at]),
        )
        for row in session.run(statement.limit(literal(limit), copy=False))
    ]
    codes = tuple([one.currency for one in totals])
    # What the rows say is no guess, also where it is not what was declared.
    unit = unit_of(side.measures[0], codes).text or (codes[0] if len(codes) == 1 else None)
    return Lines(
        source=side.source.name,
        measure=side.measures[0].name,
        filters=tuple(str(condition) for _, condition in side.conditions),
        rows=tuple(rows),
        total_rows=count,
        total=trimmed(total, places) if len(totals) < 2 else None,
        totals_by_currency=totals,
        aggregation=side.measures[0].aggregation,
        unit=unit or "",
    )


def _by_currency(session: Session, lines: str, at: int, amount: "exp.Expr", places: int) -> tuple[CurrencyTotal, ...]:
    """The total of each currency, which column number `at` holds."""
    code = exp.column(f"k{at}")
    sums = exp.select(code, exp.Sum(this=amount.copy())).from_(table(lines)).group_by(code.copy())
    found: dict[str | None, list[Decimal]] = {}
    for text, total in session.run(sums.order_by(exp.Ordered(this=code.copy(), nulls_first=False))):
        found.setdefault(_code(text), []).extend([] if total is None else [EXACT.create_decimal(total)])
    # One currency may be spelled in several ways; rows without one come last.
    order = sorted(found, key=lambda code: code is None)
    return tuple(
        CurrencyTotal(code, trimmed(reduce(EXACT.add, found[code]), places) if found[code] else None) for code in order
    )


def _code(value: Any) -> str | None:
    """A currency, in the one spelling that they have; a blank one is none."""
    return (_told(value) or "").strip().upper() or None


def _statement(side: Side, name: str) -> Statement:
    """The statement that creates table `name`: every row with its columns k0, k1 and on, n, and its amount."""
    parameters = Parameters()
    keys = [exp.column(f"k{at}") for at in range(len(side.keys))]
    amount = named(_part(side, exp.column(side.name(0))), "amount")
    mark = exp.Alias(this=exp.column(f"n{side.letter}"), alias=exp.to_identifier("n"))
    bad = side.amount(0).bad is not None
    doubtful = [exp.column(f"{side.name(0)}_bad")] if bad else []
    rows = exp.select(*keys, mark, amount, *doubtful, copy=False).from_(
        side.select(parameters).subquery("side", copy=False), copy=False
    )
    doubts = [(f"{side.name(0)}_bad", side, 0)] if bad else []
    return [exp.Create(this=table(name), kind="TABLE", expression=rows)], parameters, name, doubts


def _part(side: Side, value: "exp.Expr") -> "exp.Expr":
    """A row's part of the figure: of a number of values it is one, or none, whatever the value is."""
    if side.measures[0].aggregation != "count":
        return value
    return (
        call("nullif", value, literal(0)) if side.amount(0).grouped else when(exp.Not(this=is_null(value)), literal(1))
    )


def _paired(key: dict[str, Any], a: Lines, b: Lines) -> Drilled:
    """Pairs rows that alone have their amount on each side; none where a row that is not shown could have it too."""
    if not a.total_rows and not b.total_rows:
        where = " under these conditions" if len(a.filters) > len(key) or len(b.filters) > len(key) else ""
        told = ", ".join(f"{name} {seen(value)}" for name, value in key.items())
        both = f"neither {a.source} nor {b.source} has a row"
        note = f"{both}{f' with {told}' if told else ''}{where}: is each value one that a comparison tells?"
        return Drilled(key=key, a=a, b=b, pairs=0, note=note)
    cut = [one.source for one in (a, b) if sum(line.times for line in one.rows) < one.total_rows]
    if cut:
        note = f"no rows are paired, because not all of {' and '.join(dict.fromkeys(cut))} are shown"
        return Drilled(key=key, a=a, b=b, pairs=0, note=note)
    if a.unit and b.unit and a.unit != b.unit:
        note = f"no rows are paired, because the amounts of A are in {seen(a.unit)} and those of B in {seen(b.unit)}"
        return Drilled(key=key, a=a, b=b, pairs=0, note=note)
    # An amount in one currency is not that in another; where only one side tells its own, the amount has to do.
    coded = bool(a.currencies and b.currencies)
    known: list[list[_Half | None]] = [[_half(line, coded) for line in side.rows] for side in (a, b)]
    counts = [Counter[_Half | None]() for _ in (a, b)]
    for count, halves, side in zip(counts, known, (a, b), strict=True):
        for half, line in zip(halves, side.rows, strict=True):
            count[half] += line.times
    alone = [half for half in known[0] if half is not None and counts[0][half] == counts[1][half] == 1]
    numbers = {half: number for number, half in enumerate(alone, 1)}
    a, b = (
        replace(side, rows=tuple(
            replace(line, pair=None if half is None else numbers.get(half))
            for line, half in zip(side.rows, halves, strict=True)
        ))
        for side, halves in zip((a, b), known, strict=True)
    )  # fmt: skip
    return Drilled(key=key, a=a, b=b, pairs=len(numbers))


def _half(line: Line, coded: bool) -> _Half | None:
    """What a row must have in common with the one that it belongs to; None if it has no amount."""
    return None if line.amount is None else (line.amount, line.currency if coded else None)


def _each(amount: Any, rows: int) -> Decimal | None:
    """The amount of one row out of that of several that are alike."""
    return None if amount is None else EXACT.divide(EXACT.create_decimal(amount), Decimal(rows))


def _told(value: Any, decimal: bool = False) -> str | None:
    """A value as text; a decimal that is compared by as the key is told."""
    if value is not None and decimal:
        return f"{trimmed(value, MOST_KEY_DECIMALS):f}"
    return None if value is None else f"{trimmed(value, 0):f}" if isinstance(value, Decimal) else str(value)
