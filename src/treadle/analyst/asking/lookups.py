"""Lookups: the tables that replace values of a dimension, and that convert amounts, joined to the rows of a side.

Such a table is a source like any other, read in the same session. It must say one thing only: the shares of an old
value add up to exactly one, there is one rate for each currency and day, and whatever a row needs is there; else
nothing is computed. Neighbours: `source` (how they are declared), `rows` (what they are joined to).
"""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.asking.loading import fetch
from treadle.analyst.asking.rows import Lookup, Mapped, Side, Spelling, Statement, as_it_is, build
from treadle.analyst.asking.stages import Fetched, Wanted
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Conversion, Dimension, Mapping, Measure, Source
from treadle.analyst.reading.aggregates import aggregates
from treadle.analyst.reading.keys import Key, conditions_of
from treadle.analyst.reading.session import Row, Session
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import Proof
from treadle.analyst.sql.terms import call, columns, is_null, literal, named, table, when
from treadle.visible import seen

_MOST_NAMED = 5
_ROWS = "rows_of_it"


def look_up(session: Session, catalog: Catalog, fetched: Sequence[Fetched]) -> tuple[list[Side], tuple[Proof, ...]]:
    """Joins to the rows of each side what its dimensions are mapped by and its amounts are converted by.

    Returns the sides, and the statements that made the tables.

    Args:
        session: may read the sources of these tables.
        catalog: knows them.
        fetched: the rows.

    Raises:
        AnalystError: a table says more than one thing of a value, or lacks what a row needs.
    """
    found: list[Side] = []
    made: list[Proof] = []
    for side in fetched:
        mapped = [(item, item.mapping) for item in side.mapped if item.mapping]
        rated = [(at, item, item.conversion) for at, item in side.conversions.items() if item.conversion]
        if not mapped and not rated:
            found.append(as_it_is(side))
            continue
        maps = [
            (item, declared, _mapping(session, catalog, side, item, declared, f"map_{side.letter}{at}"))
            for at, (item, declared) in enumerate(mapped)
        ]
        joined = _joined(session, as_it_is(side), maps, ())
        # A rate is of the values that the dimensions have then, such as fiscal periods that days were replaced by.
        rates = [
            (at, item, declared, _rates(session, catalog, joined, item, declared, f"rate_{side.letter}{at}"))
            for at, item, declared in rated
        ]
        found.append(_joined(session, joined, (), rates))
        made += [proof for lookup in (*(one[-1] for one in maps), *(one[-1] for one in rates)) for proof in lookup.made]
    return found, tuple(made)


def _mapping(
    session: Session, catalog: Catalog, side: Fetched, dimension: Dimension, declared: Mapping, name: str
) -> Lookup:
    source = catalog.source(declared.source)
    share = source.measure(declared.share) if declared.share else None
    old, value = _met(side, dimension, source.dimension(declared.old))
    new = source.dimension(declared.new)
    what = f"the mapping {source.name!r} of {dimension.name}"
    places, made = table_of(
        session, source, [old, Key(new.name, (new,), "string", new.format.shared)], share, name, what
    )
    _refuse(session, name, 2, "k0 IS NULL OR k1 IS NULL", f"{what} has a row without an old or a new value")
    _refuse(session, name, 2, "n > 1", f"{what} has a row more than once")
    _refuse(session, name, 2, "m0 IS NULL OR m0 <= 0", f"{what} has a share that is missing or not above zero")
    _refuse_shares(session, name, what, share is not None)
    if share is not None and any(item.aggregation != "sum" for item in side.measures):
        raise AnalystError(f"{what} splits amounts by shares, which only measures that are sums can be")
    return Lookup(name, [value], places, what, made)


def _rates(
    session: Session, catalog: Catalog, side: Fetched, measure: Measure, declared: Conversion, name: str
) -> Lookup:
    source = catalog.source(declared.source)
    names = [(measure.currency, declared.currency), *((item, item) for item in declared.on)]
    met = [_met(side, side.source.dimension(own), source.dimension(theirs)) for own, theirs in names]
    what = f"the rates {source.name!r}"
    places, made = table_of(session, source, [key for key, _ in met], source.measure(declared.rate), name, what)
    several = f"; where they are of several kinds, choose one by 'default_filters' of {source.name!r}"
    _refuse(session, name, len(met), "n > 1", f"{what} have more than one rate for the same", several)
    _refuse(session, name, len(met), "m0 IS NULL OR m0 <= 0", f"{what} have one that is missing or not above zero")
    return Lookup(name, [value for _, value in met], places, what, made)


def _met(side: Fetched, own: Dimension, theirs: Dimension) -> "tuple[Key, exp.Expr]":
    """A dimension of a table that is looked up, and the value in a row that it meets: both as text, in one format."""
    form = own.format.shared | theirs.format.shared
    value = side.value_of(Key(own.name, (own,) * (side.index + 1), "string", form))
    return Key(theirs.name, (theirs,), "string", form), value


def table_of(
    session: Session, source: Source, keys: Sequence[Key], measure: Measure | None, name: str, what: str
) -> tuple[int, tuple[Proof, ...]]:
    """Creates table `name` of a source by key, n being how many rows; returns the decimals of m0, and how."""
    wanted = Wanted(
        letter="m",
        index=0,
        source=source,
        keys=tuple(keys),
        declared=() if measure is None else (measure,),
        conditions=tuple(conditions_of(source, 0, [source], [])),
    )
    opened = wanted.open(session)
    (fetched,), asked = fetch(session, [opened.typed([opened])])
    # Its keys are text in the format of what meets them, whatever the table itself says.
    side = as_it_is(fetched).by(keys)
    if measure is not None and side.amount(0).floating:
        raise AnalystError(f"{what} holds floating-point numbers, which are not exact; store them as decimals or text")
    made = build(session, lambda: _statement(side, name))
    return 0 if measure is None else side.amount(0).scale, (*asked, *made)


def _statement(side: Side, name: str) -> Statement:
    parameters = Parameters()
    keys = [f"k{at}" for at in range(len(side.keys))]
    parts: dict[str, exp.Expr] = {"m0": call("any_value", literal(1))}
    if side.measures:
        parts = aggregates(side.measures[0], side.amount(0), "m0")
    sums = [named(value, name) for name, value in ({"n": side.counted(exp.column("nm"))} | parts).items()]
    grouped = exp.select(*columns(*keys), *sums, copy=False)
    grouped = grouped.from_(side.select(parameters).subquery("side", copy=False), copy=False)
    grouped = grouped.group_by(*columns(*keys), copy=False)
    doubts = [("m0_bad", side, 0)] if "m0_bad" in parts else []
    return [exp.Create(this=table(name), kind="TABLE", expression=grouped)], parameters, name, doubts


def _refuse(session: Session, name: str, keys: int, condition: str, why: str, advice: str = "") -> None:
    """Raises AnalystError if there are rows of which the condition holds."""
    each = [f"k{at}" for at in range(keys)]
    wrong = exp.select(*columns(*each)).from_(table(name)).where(condition).order_by(*columns(*each))
    rows = session.run(wrong.limit(literal(_MOST_NAMED + 1)))
    if rows:
        raise AnalystError(f"{why}: {_listed(rows)}{advice}")


def _refuse_shares(session: Session, name: str, what: str, declared: bool) -> None:
    """Raises AnalystError if the shares of an old value do not add up to exactly one."""
    total = exp.Sum(this=exp.column("m0"))
    statement = exp.select(exp.column("k0"), named(total, "total")).from_(table(name)).group_by(exp.column("k0"))
    statement = statement.having("total <> 1").order_by(exp.column("k0"))
    rows = session.run(statement.limit(literal(_MOST_NAMED)))
    if not rows:
        return
    if not declared:
        raise AnalystError(
            f"{what} has more than one new value for {_listed([row[:1] for row in rows])}: declare a 'share' of each"
        )
    told = ", ".join(f"{value} ({total:f})" for value, total in rows)
    raise AnalystError(f"{what} has shares that do not add up to exactly 1: {told}")


def _joined(
    session: Session,
    side: Side,
    maps: Sequence[Mapped],
    rates: Sequence[tuple[int, Measure, Conversion, Lookup]],
) -> Side:
    """Returns the side with new values and factors; refuses what was not found."""
    if not maps and not rates:
        return side
    looked_up, prefix = _with_values(side, maps, rates)
    looked_up.examine(session)
    for n, lookup in enumerate([*(lookup for *_, lookup in maps), *(lookup for *_, lookup in rates)]):
        # Once no new value is missing, conditions on these say which rows need a rate.
        besides = looked_up.replaced if n < len(maps) else {}
        _refuse_missing(session, looked_up, lookup, [f"{prefix}{n}_{at}" for at in range(len(lookup.keys))],
                        f"{prefix}{n}_missing", besides)  # fmt: skip
    return looked_up


def again(side: Side, rows: Side) -> Side:
    """Joins other rows of a side, which its database was asked for, to what its values are looked up in.

    Values that are not in there stay as they are: nothing is computed of these rows.
    """
    maps = [one for one in side.maps if one[0].source_column in rows.table.columns]
    return _with_values(rows, maps, ())[0] if maps else rows


def _with_values(
    side: Side,
    maps: Sequence[Mapped],
    rates: Sequence[tuple[int, Measure, Conversion, Lookup]],
) -> tuple[Side, str]:
    """The side with new values, factors and marks of what was not found, and what its new columns begin with."""
    prefix = "_"
    while any(name.casefold().startswith(prefix) for name in (*side.table.columns, *side.replaced.values())):
        prefix += "_"
    lookups = [*(lookup for *_, lookup in maps), *(lookup for *_, lookup in rates)]
    values = [named(value, f"{prefix}{n}_{at}") for n, one in enumerate(lookups) for at, value in enumerate(one.keys)]
    rows = exp.select(exp.Star(), *values, copy=False).from_(side.table.relation.copy(), copy=False)
    every = exp.Column(this=exp.Star(), table=exp.to_identifier(_ROWS))
    joined = exp.select(every, copy=False).from_(rows.subquery(_ROWS, copy=False), copy=False)
    replaced = dict(side.replaced)
    factors = {at: list(side.factors.get(at, ())) for at in range(len(side.measures))}
    for n, lookup in enumerate(lookups):
        keys = [exp.column(f"{prefix}{n}_{at}", table=_ROWS) for at in range(len(lookup.keys))]
        found = [exp.column(f"k{at}", table=lookup.table) for at in range(len(keys))]
        same = [exp.EQ(this=key, expression=one) for key, one in zip(keys, found, strict=True)]
        joined = joined.join(table(lookup.table), on=exp.and_(*same), join_type="left", copy=False)
        factor: exp.Expr = exp.column("m0", table=lookup.table)
        missing = is_null(exp.column("n", table=lookup.table))
        if n < len(maps):
            dimension, declared, _ = maps[n]
            new = exp.Coalesce(this=exp.column("k1", table=lookup.table), expressions=[keys[0].copy()])
            replaced[dimension.name] = f"{prefix}{n}_new"
            joined = joined.select(named(new, replaced[dimension.name]), copy=False)
            given = exp.Not(this=is_null(keys[0].copy()))
            missing = exp.and_(given, missing) if declared.otherwise == "refuse" else exp.false()
            factor = call("coalesce", factor, literal(1))
            touched = list(factors) if declared.share else []
        else:
            at, _, conversion, _ = rates[n - len(maps)]
            as_is = call("coalesce", exp.EQ(this=keys[0].copy(), expression=literal(conversion.to)), exp.false())
            factor = when(as_is, literal(1), factor)
            missing = exp.and_(exp.Not(this=as_is.copy()), missing)
            touched = [at]
        added = [named(factor, f"{prefix}{n}_factor"), named(missing, f"{prefix}{n}_missing")]
        joined = joined.select(*added, copy=False)
        for at in touched:
            factors[at].append((f"{prefix}{n}_factor", lookup.places))
    found_in = replace(side.table, relation=joined.subquery("looked_up", copy=False), unique=())
    known = {"table": found_in, "replaced": replaced, "factors": factors, "maps": tuple(maps) or side.maps}
    return replace(side, spelling=Spelling(), **known), prefix


def _refuse_missing(
    session: Session, side: Side, lookup: Lookup, columns: Sequence[str], mark: str, besides: Collection[str]
) -> None:
    """Raises AnalystError if a row needs what is not in the table; conditions on `besides` rule no row out."""
    parameters = Parameters()
    statement = side.filtered(exp.select(*columns).distinct(), parameters, besides=besides).where(exp.column(mark))
    rows = session.run(statement.order_by(*columns).limit(_MOST_NAMED + 1), parameters)
    if rows:
        raise AnalystError(
            f"{lookup.what}: there is nothing for {_listed(rows)}, which {side.source.name!r} has; add it there, "
            f"declare a 'format' if it stands there in another spelling, or leave these rows out by a condition",
            argument="source",
            given=side.source.name,
        )


def _listed(rows: Sequence[Row]) -> str:
    shown = [" ".join(map(seen, row)) for row in rows[:_MOST_NAMED]]
    return ", ".join(shown) + (", …" if len(rows) > _MOST_NAMED else "")
