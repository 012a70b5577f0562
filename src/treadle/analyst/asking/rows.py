"""Rows: one side of a question as a SELECT with canonical keys, amounts and filters.

A query has one side, a comparison two that share their keys. Everything in the statement is an identifier from the
catalogue or a bound value. Neighbour: `stages` (what a side is made of, step by step).
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import asdict, replace

from treadle.analyst.asking.stages import Fetched
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Dimension, Measure
from treadle.analyst.declared.source import Mapping as DeclaredMapping
from treadle.analyst.reading.amounts import (
    BLANKS,
    Amount,
    Scale,
    amount_of,
    floats_refused,
    multiplied,
    readable,
    scale_for,
)
from treadle.analyst.reading.computed import computed
from treadle.analyst.reading.key_values import tells_apart
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.meant import meant
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.staged import spells_numbers
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import Proof, proof_of
from treadle.analyst.sql.terms import call, cast, literal, named, quoted, table

Doubts = list[tuple[str, "Side", int]]
"""Columns that count what could not be read, each with the side and measure that it is of."""


class Lookup(Struct, frozen=True):
    """A table in the session that is joined to the rows of a side.

    Attributes:
        table: its name; columns k0, k1 and on, and m0, the factor.
        keys: the values of a row by which it is looked up in the first columns.
        places: the decimals of the factor.
        what: what it is, for errors.
        made: the statements that made it.
    """

    table: str
    keys: "Sequence[exp.Expr]"
    places: int
    what: str
    made: tuple[Proof, ...]


Mapped = tuple[Dimension, DeclaredMapping, Lookup]
"""A dimension, how it is mapped, and the table that has its new values."""

Statement = tuple["Sequence[exp.Expr]", Parameters, str, Doubts]
"""Statements that create and fill a table, their values, the table's name and what may be doubtful in it."""


_TEXT = "read_text"
# How many decimals a figure is shown with where neither its measure nor the type of its column says.
_USUAL = 2


class Spelling:
    """How the text of a side's amounts is read; what its rows have taught of it so far.

    Args:
        scales: at how many decimals columns of text are read, by measure and column, where that is not the usual.
    """

    def __init__(self, scales: Mapping[tuple[int, str], Scale] | None = None) -> None:
        self.scales = dict(scales or {})
        self.plain = False
        self.amounts: dict[int, Amount] = {}


class Side(Fetched, frozen=True, kw_only=True):
    """The rows of one source that a question looks at.

    Attributes:
        factors: the columns by which the amounts of a measure are multiplied, with their decimals, by its number.
        spelling: how its amounts are read.
        maps: what the values of its dimensions are looked up in.
    """

    factors: Mapping[int, Sequence[tuple[str, int]]]
    spelling: Spelling
    maps: Sequence[Mapped] = ()

    def by(self, keys: Sequence[Key]) -> "Side":
        """Returns the same rows by other keys, whose types are known."""
        return replace(self, keys=tuple(keys))

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
        known = self.spelling
        if at not in known.amounts:
            measure = self.measures[at]
            if measure.formula and measure.name not in self.table.partials:
                scales = {column: known.scales.get((at, column)) for column in measure.columns}
                found = computed(self.source, measure, measure.formula, self.table, scales)
            else:
                found = amount_of(self.source, measure, self.table, known.scales.get((at, measure.source_column)))
            if known.plain and found.plain is not None:
                found = replace(found, value=found.plain, bad=None, column="")
            for column, places in self.factors.get(at, ()):
                found = multiplied(found, quoted(column), places)
            known.amounts[at] = found
        return known.amounts[at]

    def take_for_plain(self, plain: bool) -> None:
        """Takes text for numbers as programs spell them, or not; the engine raises `NotPlain` where they are not."""
        self.spelling.plain = plain
        self.spelling.amounts.clear()

    def select(self, parameters: Parameters, *, spelled: bool = False) -> "exp.Select":
        """Returns the rows: keys k0, k1 and on, a mark that the row is of this side, and the amounts.

        Args:
            parameters: takes the values of the conditions.
            spelled: whether the keys stay as they are spelled, before their formats are applied.
        """
        columns = [named(self.spelled(key), f"k{at}") for at, key in enumerate(self.keys)]
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
        rows = self._read(exp.select(*columns, copy=False), parameters)
        return rows if spelled else meant(rows, self.keys)

    def _read(self, select: "exp.Select", parameters: Parameters) -> "exp.Select":
        """The same as `filtered`, of rows in which the texts stand that amounts are read from."""
        texts = {name: text for at in range(len(self.measures)) for name, text in self.amount(at).texts.items()}
        if not texts:
            return self.filtered(select, parameters)
        made = [named(text, name, quoted=True) for name, text in texts.items()]
        rows = self.filtered(exp.select(exp.Star(), *made, copy=False), parameters)
        return select.from_(rows.subquery("read", copy=False), copy=False)

    def rescale(self, session: Session, at: int) -> None:
        """Finds the scale that holds all text of measure number `at`. Raises AnalystError if there is none."""
        amount = self.amount(at)
        for column, read in (amount.operands or {self.measures[at].source_column: amount}).items():
            self._rescale(session, at, column, read)
        del self.spelling.amounts[at]

    def _rescale(self, session: Session, at: int, column: str, amount: Amount) -> None:
        measure = self.measures[at]
        where = f"source {self.source.name!r}: column {column!r}"
        texts = self._doubtful(session, amount)
        if amount.text is None or not texts:
            return
        if amount.floating and (not spells_numbers(self.source, column) or readable(texts)):
            raise floats_refused(where, measure, texts)
        if self.spelling.scales.get((at, column)):
            raise AnalystError(f"{where} holds amounts of more than 38 digits", argument="measures", given=measure.name)
        spelled = not readable(texts)
        text = amount.text
        if spelled:
            self.spelling.scales[at, column] = Scale(amount.scale, spelled=True)
            del self.spelling.amounts[at]
            read = self.amount(at)
            read = read.operands.get(column, read)
            text, texts = read.text or text, self._doubtful(session, read)
        # Text that people spell takes many steps to read: they are taken once a row, in a query of their own.
        read_text = exp.column(_TEXT)
        point = call("instr", read_text, literal("."))
        length = exp.Sub(this=call("length", read_text.copy()), expression=point)
        plain = call("regexp_full_match", read_text.copy(), literal(r"[-+]?\d*\.\d*"))
        parameters = Parameters()
        rows = self.filtered(exp.select(named(text.copy(), _TEXT)), parameters).subquery("read")
        longest = exp.select(exp.Max(this=length)).from_(rows).where(plain)
        decimals = session.run(longest, parameters)[0][0] or 0

        def originals(wrong: Sequence[str]) -> list[str]:
            return self._originals(session, quoted(column), text, wrong)

        self.spelling.scales[at, column] = scale_for(
            self.source, measure, column, texts, decimals, originals, spelled=spelled
        )

    def _originals(self, session: Session, column: "exp.Expr", text: "exp.Expr", wrong: Sequence[str]) -> list[str]:
        """How the source spells texts of a column: for reading them, their signs were put as the engine has them."""
        if column.name not in self.table.columns:
            return list(wrong)
        parameters = Parameters()
        among = exp.In(this=text.copy(), expressions=[literal(one) for one in wrong])
        rows = self.filtered(exp.select(column).distinct(), parameters).where(among)
        return [str(row[0]).strip(BLANKS) for row in session.run(rows, parameters)]

    def _doubtful(self, session: Session, amount: Amount) -> list[str]:
        """The texts that are no number, or do not fit as they are read."""
        if amount.text is None or amount.bad is None:
            return []
        parameters = Parameters()
        text = exp.select(named(amount.text, amount.column, quoted=True)).distinct(copy=False)
        rows = self.filtered(text, parameters).subquery("read", copy=False)
        doubtful = exp.select(quoted(amount.column)).from_(rows, copy=False).where(amount.bad)
        return [str(row[0]) for row in session.run(doubtful, parameters)]


def as_it_is(rows: Fetched) -> Side:
    """Returns rows of which nothing has to be looked up."""
    return Side(**asdict(rows), factors={}, spelling=Spelling())


def places_of(measure: Measure, side: Side, at: int) -> int:
    """How many decimals a figure is shown with at least."""
    if measure.aggregation == "count":
        return 0
    if measure.decimals is not None:
        return measure.decimals
    if measure.aggregation == "avg":
        return _USUAL
    amount = side.amount(at)
    return min(amount.scale, _USUAL) if amount.textual else amount.scale


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
        counts = session.run(exp.select(*columns, copy=False).from_(table(name), copy=False))[0]
        wrong = [doubt for doubt, count in zip(doubts, counts, strict=True) if count]
        if not wrong:
            return _told(statements, parameters)
        for _, side, at in wrong:
            side.rescale(session, at)
        session.run(exp.Drop(tables=[table(name)], kind="TABLE"))
    raise AnalystError("the amounts could not be read exactly")


def _told(statements: "Sequence[exp.Expr]", parameters: Parameters) -> tuple[Proof, ...]:
    return tuple(proof_of(statement, parameters) for statement in statements)
