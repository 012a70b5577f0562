"""Alignment: the table `aligned` of a comparison, a row a key with both figures, their difference and their class.

Both sides are read in one statement (UNION ALL by name, then one GROUP BY), which aligns keys NULL-safely in one pass;
two sides that surely have each key once are joined instead, which takes less than half. Where one pass does not fit
into memory, each of several takes the keys of one hash partition only.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from treadle.analyst.asking.rows import Side, Statement, build, places_of
from treadle.analyst.asking.spelled import regrouped, worth_it
from treadle.analyst.declared.errors import DiskFull, NotEnoughMemory, NotPlain, OfSeveral
from treadle.analyst.declared.source import Measure, Tolerance
from treadle.analyst.reading.aggregates import aggregates, common_scale, figure, noise, of_one_row
from treadle.analyst.reading.key_values import told_as_it_is
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.row_count import rows_in
from treadle.analyst.reading.session import Row, Session
from treadle.analyst.showing.classify import Thresholds, status, thresholds
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import Proof, proof_of
from treadle.analyst.sql.terms import call, columns, literal, named, table, when


class Pair(Struct, frozen=True):
    """One measure on both sides, once the data are open."""

    at: int
    measures: tuple[Measure, Measure]
    scale: int
    places: int
    limits: Thresholds
    noisy: bool


_DIFFERING = "differing"
# How many passes are tried, one after the other, while the groups of each are too many for memory.
_PASSES = (1, 4, 16, 64)


def align(session: Session, sides: Sequence[Side], asked: Tolerance) -> tuple[list[Pair], tuple[Proof, ...]]:
    """Creates table `aligned`: a row a key, with both figures, the difference and the class of each measure.

    Returns the measures, and the statements that made the table.

    Raises:
        NotEnoughMemory: the groups do not fit into memory and on disk, in however many passes.
    """
    pairs: list[Pair] = []
    allowed = _PASSES if sides[0].keys else (1,)
    once = _once(sides)
    doing = "joining both sides, which have each key once" if once else "adding up both sides"
    spelled = not once and worth_it(session, sides)
    for passes in allowed:
        if passes == 1:
            session.tell(doing, measured=True, rows=_rows_to_read(session, sides))
        else:
            session.tell(f"{doing} in {passes} passes")
        try:
            made = _built(session, sides, partial(_aligning, sides, asked, pairs, passes, spelled and passes == 1))
        except NotEnoughMemory as error:
            if passes == allowed[-1] or isinstance(error, DiskFull):
                raise
            session.run(exp.Drop(tables=[table("aligned")], kind="TABLE", exists=True))
        else:
            return pairs, made
    return pairs, ()


def _rows_to_read(session: Session, sides: Sequence[Side]) -> int | None:
    """About how many rows both sides have, where that is known without reading them and anyone is told."""
    if not session.told:
        return None
    counts = [rows_in(session, side.source) for side in sides]
    return None if None in counts else sum(count or 0 for count in counts)


def _built(session: Session, sides: Sequence[Side], make: Callable[[], Statement]) -> tuple[Proof, ...]:
    """The same as `build`; faster where all text is spelled as programs spell numbers, which most files are."""
    try:
        for side in sides:
            side.take_for_plain(True)
        try:
            return build(session, make)
        except NotPlain:
            for side in sides:
                side.take_for_plain(False)
            session.run(exp.Drop(tables=[table("aligned")], kind="TABLE", exists=True))
            return build(session, make)
    except OfSeveral:
        for side in sides:
            # Text of the other side that is spelled otherwise is no fault.
            side.take_for_plain(False)
            _alone(session, side)
        raise


def _alone(session: Session, side: Side) -> None:
    """Adds up one side for itself, so that what is wrong with it is said of it."""
    parameters = Parameters()
    keys = [f"k{at}" for at in range(len(side.keys))]
    parts = [named(value, name) for name, value in _parts([side]).items()]
    groups = exp.select(*keys, *parts).from_(side.select(parameters).subquery("rows")).group_by(*keys)
    every = [exp.Max(this=exp.column(name)) for name in groups.named_selects]
    session.run(exp.select(*every).from_(groups.subquery("groups")), parameters)


def _aligning(sides: Sequence[Side], asked: Tolerance, pairs: list[Pair], passes: int, spelled: bool) -> Statement:
    """The statements that create table `aligned`, one a pass; fills `pairs`. See `spelled` for what that means."""
    parameters = Parameters()
    pairs[:] = _pairs(sides, asked)
    keys = [f"k{at}" for at in range(len(sides[0].keys))]
    rows = [side.select(parameters, spelled=spelled) for side in sides]
    parts = {f"n{side.letter}": side.counted(exp.column(f"n{side.letter}")) for side in sides} | _parts(sides)
    meet = _joined if _once(sides) else _grouped
    extras = [name for name in parts if "_" in name]
    extras += [f"{side.name(pair.at)}_raw" for side in sides for pair in pairs if _averages(pair)]
    raw = [
        named(exp.column(name.removesuffix("_raw")), name) if name.endswith("_raw") else exp.column(name)
        for name in extras
    ]
    statements: list[exp.Expr] = []
    for number in range(passes):
        conditions = [_in_partition(keys, number, passes)] if passes > 1 else []
        here = rows if passes == 1 else [each.copy() for each in rows]
        groups = meet(here, keys, parts, conditions)
        groups = regrouped(groups, sides[0].keys, parts) if spelled else groups
        told = [named(told_as_it_is(exp.column(k), key.type), k) for k, key in zip(keys, sides[0].keys, strict=True)]
        classed = _classed(exp.select(*told, *columns("na", "nb"), *raw), groups, sides, pairs, keyed=bool(keys))
        aligned = table("aligned")
        statements.append(
            exp.Insert(this=aligned, expression=classed)
            if statements
            else exp.Create(this=aligned, kind="TABLE", expression=classed)
        )
    bad = [(f"{side.name(at)}_bad", side, at) for side in sides for at in range(len(side.measures))]
    return statements, parameters, "aligned", [doubt for doubt in bad if doubt[0] in extras]


def _once(sides: Sequence[Side]) -> bool:
    """Whether surely neither side has a key in more than one row."""
    return all(side.unique for side in sides)


def _grouped(
    rows: "Sequence[exp.Select]", keys: Sequence[str], parts: "Mapping[str, exp.Expr]", conditions: "Sequence[exp.Expr]"
) -> "exp.Select":
    """The aggregates of both sides by key, of the rows that fulfil the conditions."""
    union = exp.Union(this=rows[0], expression=rows[1], distinct=False)
    union.set("by_name", True)
    groups = exp.select(*columns(*keys), *(named(value, name) for name, value in parts.items()), copy=False)
    groups = groups.from_(union.subquery("sides", copy=False), copy=False).where(*conditions, copy=False)
    return groups.group_by(*columns(*keys), copy=False) if keys else groups


def _joined(
    rows: "Sequence[exp.Select]", keys: Sequence[str], parts: "Mapping[str, exp.Expr]", conditions: "Sequence[exp.Expr]"
) -> "exp.Select":
    """The same of sides that have each key once: nothing is added up."""
    chosen = [
        exp.select(exp.Star(), copy=False)
        .from_(side.subquery("rows", copy=False), copy=False)
        .where(*(condition.copy() for condition in conditions), copy=False)
        for side in rows
    ]
    both = [[exp.column(key, table=side) for side in ("a", "b")] for key in keys]
    same = exp.and_(*(exp.NullSafeEQ(this=a, expression=b) for a, b in both), copy=False)
    groups = exp.select(
        *(
            named(exp.Coalesce(this=a.copy(), expressions=[b.copy()]), key)
            for (a, b), key in zip(both, keys, strict=True)
        ),
        *(named(of_one_row(value), name) for name, value in parts.items()),
        copy=False,
    )
    groups = groups.from_(chosen[0].subquery("a", copy=False), copy=False)
    return groups.join(chosen[1].subquery("b", copy=False), on=same, join_type="full", copy=False)


def _in_partition(keys: Sequence[str], number: int, passes: int) -> "exp.Expr":
    """Whether a row's keys, NULL included, belong to partition `number` of `passes`."""
    # The engine groups and joins by bits of the same hash: parts cut by them crowd into few places of its tables.
    bits = call("hash", call("hash", *(exp.column(key) for key in keys)))
    return exp.EQ(this=exp.Mod(this=bits, expression=literal(passes)), expression=literal(number))


def in_passes(session: Session, make: "Callable[[Sequence[exp.Expr]], exp.Select]", column: str) -> list[Row]:
    """Returns the rows of a statement that groups by `column`: of one pass, or of each of several if memory is short.

    What holds over all rows together, such as an order or a limit, then holds for each pass alone.

    Args:
        session: the engine.
        make: returns the statement, given conditions that the rows it groups must fulfil.
        column: what it groups by.
    """
    for passes in _PASSES:
        parts = [[_in_partition([column], number, passes)] for number in range(passes)] if passes > 1 else [[]]
        try:
            return [row for part in parts for row in session.run(make(part))]
        except NotEnoughMemory as error:
            if passes == _PASSES[-1] or isinstance(error, DiskFull):
                raise
    return []


def _averages(pair: Pair) -> bool:
    return any(measure.aggregation == "avg" for measure in pair.measures)


def _pairs(sides: Sequence[Side], asked: Tolerance) -> list[Pair]:
    """What is known of each measure once the data are open."""
    a, b = sides
    pairs = []
    for at, measures in enumerate(zip(a.measures, b.measures, strict=True)):
        places = max(places_of(measure, side, at) for measure, side in zip(measures, sides, strict=True))
        # The finer one decides, also if it says nothing: that one is told in whole numbers makes no cents equal.
        decimals = [measure.decimals for measure in measures]
        finer = None if decimals == [None, None] else max(2 if places is None else places for places in decimals)
        declared = (measures[0].tolerance, measures[1].tolerance, a.source.tolerance, b.source.tolerance)
        limits = thresholds(asked, *declared, decimals=finer)
        scales = [common_scale(measure, side.amount(at)) for measure, side in zip(measures, sides, strict=True)]
        noisy = any(side.amount(at).floating and measures[0].aggregation != "count" for side in sides)
        pairs.append(Pair(at, measures, max(*scales, limits.places), places, limits, noisy))
    return pairs


def _parts(sides: Sequence[Side]) -> "dict[str, exp.Expr]":
    parts: dict[str, exp.Expr] = {}
    for side in sides:
        for at, measure in enumerate(side.measures):
            parts |= aggregates(measure, side.amount(at), side.name(at))
    return parts


def _classed(
    carried: "exp.Select", groups: "exp.Select", sides: Sequence[Side], pairs: Sequence[Pair], *, keyed: bool
) -> "exp.Select":
    """Adds figures a, b, noise z (of floating ones), difference d and class s of each measure to what is carried.

    What is grouped by nothing, not `keyed`, is one group of no rows where there are none, and is left out then.
    """
    valued = carried.from_(groups.subquery("groups", copy=False), copy=False)
    if not keyed:
        rows = exp.GT(this=exp.Add(this=exp.column("na"), expression=exp.column("nb")), expression=literal(0))
        valued = valued.where(rows, copy=False)
    for pair in pairs:
        sizes = []
        for side, measure in zip(sides, pair.measures, strict=True):
            name, amount = side.name(pair.at), side.amount(pair.at)
            value = figure(measure, amount, name, pair.scale)
            if measure.aggregation == "count":
                # A side that has no row has no figure, also where a count of none would be zero.
                value = when(exp.GT(this=exp.column(f"n{side.letter}"), expression=literal(0)), value)
            valued = valued.select(named(value, name), copy=False)
            if pair.noisy:
                sizes.append(noise(measure, amount, name, pair.scale))
        if pair.noisy:
            valued = valued.select(named(exp.Add(this=sizes[0], expression=sizes[1]), f"z{pair.at}"), copy=False)
    differing = exp.select(exp.Star()).from_(valued.subquery("valued", copy=False), copy=False)
    for pair in pairs:
        a, b = (exp.Coalesce(this=exp.column(f"{letter}{pair.at}"), expressions=[literal(0)]) for letter in "ab")
        differing = differing.select(named(exp.Sub(this=a, expression=b), f"d{pair.at}"), copy=False)
    classes = [named(status(pair.limits, pair.at, pair.scale, pair.noisy), f"s{pair.at}") for pair in pairs]
    return exp.select(exp.Star(), *classes).from_(differing.subquery("differing", copy=False), copy=False)


def whole(
    sides: Sequence[Side],
    pair: Pair,
    more: "Mapping[str, exp.Expr]",
    by: Sequence[str] = (),
    rows: "exp.Select | None" = None,
) -> "exp.Select":
    """The figures of all keys together, their difference and their class, and `more` aggregates, from `aligned`.

    It has no row if `aligned` has none, and one for each combination of the columns `by`, last in it, if there are
    such.

    Args:
        sides: A and B.
        pair: the measure.
        more: aggregates, by name.
        by: columns.
        rows: in place of `aligned` what is made of its rows.
    """
    at = pair.at
    outer: dict[str, exp.Expr] = {name: exp.Sum(this=exp.column(name)) for name in ("na", "nb")}
    for side, measure in zip(sides, pair.measures, strict=True):
        name = side.name(at)
        for part, value in aggregates(measure, side.amount(at), name).items():
            column = exp.column(f"{part}_raw" if part == name and _averages(pair) else part)
            outer[part] = type(value)(this=column) if isinstance(value, (exp.Min, exp.Max)) else exp.Sum(this=column)
    groups = exp.select(*(named(value, name) for name, value in (outer | dict(more)).items()))
    groups = groups.from_(table("aligned") if rows is None else rows.subquery("chosen"), copy=False)
    groups = groups.select(*columns(*by), copy=False).group_by(*columns(*by), copy=False) if by else groups
    classed = _classed(exp.select(*columns("na", "nb", *more, *by)), groups, sides, [pair], keyed=bool(by))
    figures = exp.select(*columns(f"a{at}", f"b{at}", f"d{at}", f"s{at}", *more, *by))
    return figures.from_(classed.subquery("classed", copy=False), copy=False)


class Aligned(Struct, frozen=True):
    """The table `aligned` of a comparison and what is needed to read it by one measure.

    Attributes:
        sides: A and B.
        keys: what its rows are, in columns k0, k1 and on.
        at: the number of the measure.
        measure: the measure, as A declares it.
        apart: whether the keys that differ at all stand in a table of their own, too.
    """

    sides: Sequence[Side]
    keys: tuple[Key, ...]
    at: int
    measure: Measure
    apart: bool = False

    @property
    def names(self) -> tuple[str, str]:
        """What A and B are called."""
        return self.sides[0].called, self.sides[1].called

    def column(self, letter: str) -> "exp.Column":
        """Column a, b, d or s of the measure."""
        return exp.column(f"{letter}{self.at}")

    @property
    def differing(self) -> "exp.Expr":
        """What stands after FROM, called `differing`: the keys that do not match, or match but are not equal."""
        if self.apart:
            return exp.Table(this=exp.to_identifier(self._table), alias=exp.TableAlias(this=_DIFFERING))
        return self._differing().subquery(_DIFFERING, copy=False)

    def set_apart(self, session: Session, *, within: bool) -> "Aligned":
        """Copies the keys that differ into a table of their own: most questions are about them, and most keys match.

        Returns this as it is where there is no memory for that.

        Args:
            session: the engine.
            within: whether there are keys that match and are not equal; where there are none, none are looked for.
        """
        rows = self._differing() if within else self._missed()
        try:
            session.run(exp.Create(this=table(self._table), kind="TABLE", expression=rows))
        except NotEnoughMemory:
            return self
        return replace(self, apart=True)

    def forget(self, session: Session) -> None:
        """Drops that table."""
        if self.apart:
            session.run(exp.Drop(tables=[table(self._table)], kind="TABLE"))

    def proof(self, statement: "exp.Expr", parameters: Parameters | None = None) -> Proof:
        """Returns a statement as a proof that does without that table."""

        def without(node: "exp.Expr") -> "exp.Expr":
            copied = isinstance(node, exp.Table) and node.name == self._table
            return self._differing().subquery(_DIFFERING) if copied else node

        if not self.apart:
            return proof_of(statement, parameters)
        return Proof(lambda: proof_of(statement.transform(without), parameters).text)

    @property
    def _table(self) -> str:
        return f"differing{self.at}"

    def _differing(self) -> "exp.Union":
        match = exp.EQ(this=self.column("s"), expression=literal("match"))
        apart = exp.NEQ(this=self.column("d"), expression=literal(0))
        # Two scans with a condition on one column each take less than one with either: such conditions skip columns.
        return exp.Union(this=self._missed(), expression=self._keys_where(match, apart), distinct=False)

    def _missed(self) -> "exp.Select":
        return self._keys_where(exp.NEQ(this=self.column("s"), expression=literal("match")))

    def _keys_where(self, *conditions: "exp.Expr") -> "exp.Select":
        names = [*(f"k{at}" for at in range(len(self.keys))), "na", "nb", *(f"{letter}{self.at}" for letter in "abds")]
        return exp.select(*columns(*names)).from_(table("aligned"), copy=False).where(*conditions, copy=False)
