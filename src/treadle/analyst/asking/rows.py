"""Rows: one side of a question as a SELECT with canonical keys, amounts and filters.

A query has one side, a comparison two that share their keys. Everything in the statement is an identifier from the
catalogue or a bound value.
"""

from collections.abc import Callable, Collection, Sequence

from msgspec.structs import replace

from treadle.analyst.declared.days import iso_day
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filter, Scalar
from treadle.analyst.declared.formats import Format
from treadle.analyst.declared.source import Dimension, Measure, Source
from treadle.analyst.reading.amounts import Amount, Scale, amount_of, multiplied, readable, scale_for
from treadle.analyst.reading.computed import computed
from treadle.analyst.reading.filter_values import spelled_out, typed_value
from treadle.analyst.reading.key_values import ENGINE_TYPES, tells_apart, text_of_column, typed_column
from treadle.analyst.reading.keys import Key, natural_type
from treadle.analyst.reading.number_spelling import plain_number
from treadle.analyst.reading.ranges import Order, order_of, refused
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Demand, Table
from treadle.analyst.remote.opening import open_table
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import Proof, proof_of
from treadle.analyst.sql.terms import call, cast, compared, literal, named, quoted, within

Doubts = list[tuple[str, "Side", int]]
"""Columns that count what could not be read, each with the side and measure that it is of."""

Statement = tuple["Sequence[exp.Expr]", Parameters, str, Doubts]
"""Statements that create and fill a table, their values, the table's name and what may be doubtful in it."""


class Side:
    """The rows of one source that a question looks at.

    Args:
        letter: what its columns' names begin with.
        index: its place among the sides.
        source: the source.
        keys: what its rows are grouped by.
        measures: its measures, in the question's order.
        conditions: the filters, each with the key that it is on.
    """

    def __init__(
        self,
        letter: str,
        index: int,
        source: Source,
        keys: Sequence[Key],
        measures: Sequence[Measure],
        conditions: Sequence[tuple[Key, Filter]],
    ) -> None:
        self.letter, self.index, self.source = letter, index, source
        self.keys, self.measures, self.conditions = list(keys), list(measures), list(conditions)
        self.scales: dict[tuple[int, str], Scale] = {}
        self._amounts: dict[int, Amount] = {}
        self._plain = False
        self.table: Table
        self.pushed: Sequence[Filter] = ()
        self.conversions = {at: item for at, item in enumerate(self.measures) if item.conversion}
        self.measures = [converted(item) for item in self.measures]
        self._replaced: dict[str, str] = {}
        self._factors: dict[int, list[tuple[str, int]]] = {}

    def open(self, session: Session) -> None:
        """Makes the source readable."""
        dimensions = [key.members[self.index] for key in (*self.keys, *(key for key, _ in self.conditions))]
        dimensions += self.besides
        demand = Demand(tuple({item.name: item for item in dimensions}.values()), tuple(self.measures))
        self.table = open_table(session, self.source, demand)

    @property
    def besides(self) -> list[Dimension]:
        """The dimensions that are looked at besides keys and conditions: those of currencies, and of rates."""
        names = [item.currency for item in (*self.measures, *self.conversions.values()) if item.currency]
        names += [name for item in self.conversions.values() if item.conversion for name in item.conversion.on]
        return [self.source.dimension(name) for name in names]

    @property
    def mapped(self) -> list[Dimension]:
        """The dimensions that are grouped or filtered by and have their values replaced."""
        members = [key.members[self.index] for key in (*self.keys, *(key for key, _ in self.conditions))]
        members += self.besides
        return list({item.name: item for item in members if item.mapping}.values())

    def look_up(
        self, relation: "exp.Expr", replaced: dict[str, str], factors: dict[int, list[tuple[str, int]]]
    ) -> None:
        """Takes rows to which what was looked up has been joined.

        Args:
            relation: what stands after FROM.
            replaced: the column that a dimension's values stand in, by the dimension's name.
            factors: the columns by which the amounts of each measure are multiplied, with their decimals.
        """
        self.table = replace(self.table, relation=relation, unique=())
        self._replaced, self._factors = replaced, factors
        self._amounts.clear()

    def settle(self, keys: Sequence[Key], conditions: Sequence[tuple[Key, Filter]]) -> None:
        """Takes the keys once their types are known."""
        self.keys, self.conditions = list(keys), list(conditions)

    def take(self, table: Table, pushed: Sequence[Filter]) -> None:
        """Takes the rows that a database has made, and which filters it has applied to them."""
        self.table, self.pushed = table, pushed
        self._amounts.clear()

    def counted(self, mark: "exp.Column | None" = None) -> "exp.Expr":
        """Returns how many rows of the source there are, in rows of which those of this side have a `mark`."""
        if not self.table.weight:
            return exp.Count(this=mark or exp.Star())
        marked = mark or exp.column(f"n{self.letter}")
        return cast(exp.Coalesce(this=exp.Sum(this=marked), expressions=[literal(0)]), "BIGINT")

    @property
    def unique(self) -> bool:
        """Whether surely no two rows have the same key."""
        own = {
            member.source_column
            for key in self.keys
            for member in [key.members[self.index]]
            if not member.format.day and tells_apart(key, self.table.columns[member.source_column])
        }
        return any(columns <= own for columns in self.table.unique)

    def name(self, at: int) -> str:
        """The column of measure number `at`."""
        return f"{self.letter}{at}"

    def amount(self, at: int) -> Amount:
        """The amount of measure number `at`."""
        if at not in self._amounts:
            measure = self.measures[at]
            if measure.formula and measure.name not in self.table.partials:
                scales = {column: self.scales.get((at, column)) for column in measure.columns}
                self._amounts[at] = computed(self.source, measure, measure.formula, self.table, scales)
            else:
                scale = self.scales.get((at, measure.source_column))
                self._amounts[at] = amount_of(self.source, measure, self.table, scale)
            if self._plain and (plain := self._amounts[at].plain) is not None:
                self._amounts[at] = replace(self._amounts[at], value=plain, bad=None)
            for column, places in self._factors.get(at, ()):
                self._amounts[at] = multiplied(self._amounts[at], quoted(column), places)
        return self._amounts[at]

    def take_for_plain(self, plain: bool) -> None:
        """Takes text for numbers as programs spell them, or not; the engine raises `NotPlain` where they are not."""
        self._plain = plain
        self._amounts.clear()

    def value_of(self, key: Key) -> "exp.Expr":
        """The canonical value of `key` in a row."""
        dimension = key.members[self.index]
        if dimension.mapping is not None and dimension.name in self._replaced:
            found = quoted(self._replaced[dimension.name])
            return key.format.apply(found) if key.type == "string" else typed_column(found, "VARCHAR", key.type)
        column: exp.Expr = quoted(dimension.source_column)
        kind = self.table.columns[dimension.source_column]
        if dimension.format.day:
            column, kind = iso_day(text_of_column(column, kind), dimension.format.day), "VARCHAR"
        if key.type == "string":
            return key.format.apply(text_of_column(column, kind))
        if kind == "VARCHAR" and key.type in ("integer", "decimal"):
            column = plain_number(column, self.source.text)
        return typed_column(column, kind, key.type)

    def select(self, parameters: Parameters) -> "exp.Select":
        """Returns the rows: keys k0, k1 and on, a mark that the row is of this side, and the amounts."""
        columns = [named(self.value_of(key), f"k{at}") for at, key in enumerate(self.keys)]
        weight: exp.Expr = exp.column(self.table.weight) if self.table.weight else literal(1)
        columns.append(named(weight, f"n{self.letter}"))
        for at in range(len(self.measures)):
            amount = self.amount(at)
            columns.append(named(amount.value.copy(), self.name(at)))
            if amount.bad is not None:
                columns.append(named(cast(amount.bad.copy(), "INT"), f"{self.name(at)}_bad"))
            if amount.not_a_number is not None:
                columns.append(named(cast(amount.not_a_number.copy(), "INT"), f"{self.name(at)}_nan"))
            if amount.count is not None:
                columns.append(named(amount.count.copy(), f"{self.name(at)}_n"))
            if amount.size is not None:
                columns.append(named(amount.size.copy(), f"{self.name(at)}_size"))
        return self.filtered(exp.select(*columns), parameters)

    def filtered(self, select: "exp.Select", parameters: Parameters, besides: Collection[str] = ()) -> "exp.Select":
        """Returns `select` from this side's table where its filters hold, except those on the dimensions `besides`."""
        select = select.from_(self.table.relation.copy())
        conditions = [
            self._condition(key, condition, parameters)
            for key, condition in self.conditions
            if condition not in self.pushed and key.members[self.index].name not in besides
        ]
        return select.where(*conditions) if conditions else select

    def examine(self, session: Session) -> None:
        """Looks for values that a range cannot place, among the rows that pass the other filters.

        Raises:
            AnalystError: there are any.
        """
        # What is said of new values waits until these have been looked up.
        here = [(key, one) for key, one in self.conditions if not self._awaited(key) and one not in self.pushed]
        for key, condition in here:
            order = self._order(key, condition)
            if order is None or not order.pattern:
                continue
            parameters = Parameters()
            value = self.value_of(key)
            others = [self._condition(*other, parameters) for other in here if other != (key, condition)]
            rows = exp.select(value).distinct().from_(self.table.relation.copy())
            found = session.run(rows.where(order.doubtful(value), *others).limit(3), parameters)
            if found:
                shown = ", ".join(repr(str(row[0])[:40]) for row in sorted(found))
                raise refused(key, condition, f"{self.source.name} has {shown} there, and not {order.like}")

    def _awaited(self, key: Key) -> bool:
        """Whether the values of a key are still to be replaced."""
        member = key.members[self.index]
        return member.mapping is not None and member.name not in self._replaced

    def rescale(self, session: Session, at: int) -> None:
        """Finds the scale that holds all text of measure number `at`. Raises AnalystError if there is none."""
        amount = self.amount(at)
        for column, read in (amount.operands or {self.measures[at].source_column: amount}).items():
            self._rescale(session, at, column, read)
        del self._amounts[at]

    def _rescale(self, session: Session, at: int, column: str, amount: Amount) -> None:
        measure = self.measures[at]
        where = f"source {self.source.name!r}: column {column!r}"
        texts = self._doubtful(session, amount)
        if amount.text is None or not texts:
            return
        if amount.floating:
            raise AnalystError(
                f"{where} has floating-point values that cannot be added up: {', '.join(sorted(texts)[:5])}",
                argument="measures",
                given=measure.name,
            )
        if self.scales.get((at, column)):
            raise AnalystError(f"{where} holds amounts of more than 38 digits", argument="measures", given=measure.name)
        spelled = not readable(texts)
        text = amount.text
        if spelled:
            self.scales[at, column] = Scale(amount.scale, spelled=True)
            del self._amounts[at]
            read = self.amount(at)
            read = read.operands.get(column, read)
            text, texts = read.text or text, self._doubtful(session, read)
        point = call("instr", text.copy(), literal("."))
        length = exp.Sub(this=call("length", text.copy()), expression=point)
        plain = call("regexp_full_match", text.copy(), literal(r"[-+]?\d*\.\d*"))
        parameters = Parameters()
        longest = self.filtered(exp.select(exp.Max(this=length)), parameters).where(plain)
        decimals = session.run(longest, parameters)[0][0] or 0
        self.scales[at, column] = scale_for(self.source, measure, column, texts, decimals, spelled=spelled)

    def _doubtful(self, session: Session, amount: Amount) -> list[str]:
        """The texts that are no number, or do not fit as they are read."""
        if amount.text is None or amount.bad is None:
            return []
        parameters = Parameters()
        doubtful = self.filtered(exp.select(amount.text.copy()).distinct(), parameters).where(amount.bad.copy())
        return [str(row[0]) for row in session.run(doubtful, parameters)]

    def _condition(self, key: Key, condition: Filter, parameters: Parameters) -> "exp.Expr":
        column = self.value_of(key)
        if condition.op == "like":
            text = column if key.type == "string" else cast(column, "VARCHAR")
            return exp.Like(this=text, expression=cast(parameters.add(str(condition.value)), "VARCHAR"))
        values = [self._bound(key, value, parameters) for value in condition.values if value is not None]
        missing = exp.Is(this=column.copy(), expression=exp.null())
        match condition.op:
            case "is null":
                return missing
            case "is not null":
                return exp.Not(this=missing)
            case "=":
                return exp.EQ(this=column, expression=values[0])
            case "!=":
                return exp.NullSafeNEQ(this=column, expression=values[0])
            case "in" | "not in":
                wanted = [exp.In(this=column, expressions=values)] if values else []
                # A comparison with NULL is neither true nor false: a row without a value is decided on its own.
                known = exp.and_(exp.Not(this=missing.copy()), exp.paren(exp.or_(*wanted))) if wanted else exp.false()
                found = exp.paren(exp.or_(known, missing) if None in condition.values else known)
                return found if condition.op == "in" else exp.Not(this=found)
            case _:
                order = self._order(key, condition)
                value, *ends = ((order.operand if order else key.format.sortable)(each) for each in (column, *values))
                if condition.op == "between":
                    return within(condition.ends, value, *ends)
                return compared(condition.op, value, *ends)

    def _order(self, key: Key, condition: Filter) -> Order | None:
        return order_of(key, condition, [spelled_out(key, value) for value in condition.values if value is not None])

    def _bound(self, key: Key, value: Scalar, parameters: Parameters) -> "exp.Expr":
        if key.type == "string":
            return key.format.apply(cast(parameters.add(spelled_out(key, value)), "VARCHAR"))
        return cast(parameters.add(typed_value(key, value)), ENGINE_TYPES[key.type])


def converted(measure: Measure) -> Measure:
    """Returns a measure as it is once its amounts are converted; itself if they are not."""
    if measure.conversion is None:
        return measure
    return replace(measure, conversion=None, currency="", unit=measure.conversion.to)


def typed_keys(sides: Sequence[Side], keys: Sequence[Key]) -> list[Key]:
    """Returns the keys with the type and format that all sides share: text, unless they agree on another type."""
    found = []
    for key in keys:
        formats = Format()
        for member in key.members:
            formats |= member.format.shared
        types = {
            ("string" if member.mapping else member.type)
            or ("date" if member.format.day else natural_type(side.table.columns[member.source_column]))
            for side, member in zip(sides, key.members, strict=True)
            if key.own in (None, side.index)
        }
        kind = next(iter(types)) if len(types) == 1 and not formats.steps else "string"
        found.append(replace(key, type=kind, format=formats))
    return found


def settle(sides: Sequence[Side], keys: Sequence[Key]) -> list[Key]:
    """Gives keys and conditions of all sides their shared type, now that the data are open; returns the keys."""
    typed = typed_keys(sides, keys)
    for side in sides:
        side.settle(typed, [(typed_keys(sides, [key])[0], condition) for key, condition in side.conditions])
    return typed


def places_of(measure: Measure, side: Side, at: int) -> int:
    """How many decimals a figure is shown with at least."""
    if measure.aggregation == "count":
        return 0
    if measure.decimals is not None:
        return measure.decimals
    amount = side.amount(at)
    return min(amount.scale, 2) if amount.textual else amount.scale


def build(session: Session, make: Callable[[], Statement]) -> tuple[Proof, ...]:
    """Creates a table with `make()`; again, where a column of text needs another scale, until all amounts are whole.

    Returns the statements that made it.
    """
    for _ in range(2):
        statements, parameters, name, doubts = make()
        for statement in statements:
            session.run(statement, parameters)
        if not doubts:
            return _told(statements, parameters)
        columns = [
            exp.Coalesce(this=exp.Sum(this=exp.column(column)), expressions=[literal(0)]) for column, _, _ in doubts
        ]
        counts = session.run(exp.select(*columns).from_(name))[0]
        wrong = [doubt for doubt, count in zip(doubts, counts, strict=True) if count]
        if not wrong:
            return _told(statements, parameters)
        for _, side, at in wrong:
            side.rescale(session, at)
        session.run(exp.Drop(tables=[exp.to_table(name)], kind="TABLE"))
    raise AnalystError("the amounts could not be read exactly")


def _told(statements: "Sequence[exp.Expr]", parameters: Parameters) -> tuple[Proof, ...]:
    return tuple(proof_of(statement, parameters) for statement in statements)
