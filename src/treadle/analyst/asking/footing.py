"""Footing: whether the lines that look like totals really add up the others.

Only those that do are proposed to be left out; the rest is a question. Reads the whole of a file once or twice.
"""

from decimal import Decimal

from msgspec.structs import replace

from treadle.analyst.asking.loading import fetch
from treadle.analyst.asking.rows import Side, Statement, as_it_is, build
from treadle.analyst.asking.stages import Wanted
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Source
from treadle.analyst.reading.aggregates import aggregates
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Table
from treadle.analyst.reading.totals import has_text, is_mark, marks, may_be_marked, said_in
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.terms import cast, matches, named, quoted

# How many rows add up to one of them by chance in no file that anybody has.
_ENOUGH = 5
_FIELD = "field"


def usual_marks(session: Session, table: Table, among: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the texts in a table that usually mark a line of totals, as `totals.USUAL` spells them."""
    # Which text it is, is asked of the few lines that have any: as many looks at each field take minutes.
    lines = exp.select(exp.Star()).from_(table.relation.copy(), copy=False)
    lines = lines.where(exp.or_(*(may_be_marked(column, among) for column in table.columns)), copy=False)
    texts = exp.func("unnest", exp.Array(expressions=[said_in(column) for column in table.columns]))
    fields = exp.select(named(texts, _FIELD)).from_(lines.subquery("lines", copy=False), copy=False)
    counts = [exp.func("count_if", is_mark(exp.column(_FIELD), mark)) for mark in among]
    found = session.run(exp.select(*counts).from_(fields.subquery("fields", copy=False), copy=False))[0]
    return tuple(mark for mark, count in zip(among, found, strict=True) if count)


def adds_up(session: Session, source: Source) -> bool:
    """Returns whether each figure that the lines of totals change is a multiple of what it is without them."""
    sums = [measure for measure in source.measures if measure.aggregation == "sum"]
    own = replace(source, measures=tuple(sums))
    try:
        whole, rows = _sums(session, replace(own, text=replace(own.text, totals=()))), _sums(session, own)
    except AnalystError:
        session.check()
        return False
    changed = [(more, less) for more, less in zip(whole, rows, strict=True) if more != less]
    # What balances to zero does so with and without its totals.
    return all(less and more % less == 0 and 2 <= more / less <= 4 for more, less in changed) and (
        bool(changed) or Decimal(0) in rows
    )


def told_apart(session: Session, source: Source, *, sure: bool) -> bool:
    """Returns whether lines that are marked as totals, and add up, surely are no rows that happen to do so.

    A total has nothing beside it but its currency, is a word among codes, or adds up so many rows that it is no
    coincidence. Where all comes to zero it adds up whatever is left out.

    Args:
        session: may read the source.
        source: with the marks of its lines of totals.
        sure: whether the marks are whole texts, such as `Summe`; a text that only begins so may be that of a posting.
    """
    plain = replace(source, text=replace(source.text, totals=()))
    relation = _side(session, plain).table.relation
    columns = [item.source_column for item in source.dimensions]
    codes = {item.name for one in source.measures if one.currency and (item := source.find_dimension(one.currency))}
    keys = [item.source_column for item in source.dimensions if item.name not in codes]
    others = {column: [other for other in keys if other != column] for column in columns}
    here = {column: exp.paren(exp.or_(*marks(source, [column]))) for column in columns}
    row = exp.Not(this=exp.paren(exp.or_(*here.values())))
    counts: list[exp.Expr] = [row]
    for column in columns:
        worded = exp.and_(row.copy(), matches(quoted(column), r".*\p{L}.*"))
        beside = exp.and_(here[column], exp.paren(exp.or_(*map(has_text, others[column] or [column]))))
        counts += [here[column], worded, beside]
    rows, *each = session.run(exp.select(*(exp.func("count_if", one) for one in counts)).from_(relation.copy()))[0]
    found = [(column, *each[at * 3 + 1 : at * 3 + 3]) for at, column in enumerate(columns) if each[at * 3]]
    if all(others[column] and not beside for column, _, beside in found):
        return True
    among_codes = rows > 1 and not any(worded for _, worded, _ in found)
    whole = rows >= _ENOUGH and (sure or not any(others[column] for column, _, _ in found))
    return (among_codes or whole) and all(_sums(session, source))


def has_unmarked(session: Session, source: Source) -> bool:
    """Returns whether there are lines whose dimensions, but for a currency, are all empty."""
    side = _side(session, source)
    (marked,) = marks(replace(source, text=replace(source.text, totals=("",))), [])
    return bool(session.run(exp.select("1").from_(side.table.relation.copy()).where(marked).limit(1)))


def has_nothing(session: Session, source: Source) -> bool:
    """Returns whether there are lines in which nothing stands but what parts their fields."""
    table = _side(session, source).table
    empty = exp.Not(this=exp.paren(exp.or_(*map(has_text, table.columns))))
    return bool(session.run(exp.select("1").from_(table.relation.copy()).where(empty).limit(1)))


def no_coincidence(session: Session, source: Source) -> bool:
    """Returns whether lines without any key, which add up the others, surely are totals.

    That of a single row may be another row of the same amount, and where all comes to zero any lines that do add it up.
    """
    rows = session.run(exp.select(exp.Count(this=exp.Star())).from_(_side(session, source).table.relation.copy()))
    return bool(rows[0][0] > 1 and all(_sums(session, source)))


def _sums(session: Session, source: Source) -> list[Decimal]:
    side = _side(session, source)

    def make() -> Statement:
        parameters = Parameters()
        parts: dict[str, exp.Expr] = {}
        for at, measure in enumerate(side.measures):
            parts |= aggregates(measure, side.amount(at), side.name(at))
        rows = side.select(parameters).subquery("side", copy=False)
        sums = exp.select(*(named(value, name) for name, value in parts.items())).from_(rows, copy=False)
        # One that could not be finished has left its table behind.
        create = exp.Create(this=exp.to_table("sums"), kind="TABLE", expression=sums, replace=True)
        doubts = [(f"{side.name(at)}_bad", side, at) for at in range(len(side.measures))]
        return [create], parameters, "sums", [doubt for doubt in doubts if doubt[0] in parts]

    build(session, make)
    columns = [cast(exp.column(side.name(at)), "VARCHAR") for at in range(len(side.measures))]
    found = session.run(exp.select(*columns).from_("sums"))[0]
    session.run(exp.Drop(tables=[exp.to_table("sums")], kind="TABLE"))
    return [Decimal(text or 0) for text in found]


def _side(session: Session, source: Source) -> Side:
    wanted = Wanted(letter="a", index=0, source=source, declared=source.measures)
    opened = wanted.open(session)
    (fetched,), _ = fetch(session, [opened.typed([opened])])
    return as_it_is(fetched)
