"""Stages: what a question wants of a source, step by step, until its rows can be looked at.

    Wanted      what is asked: keys, measures, conditions         .open(session)
    Opened      and what the source has                           .typed(opened)
    Typed       and the types of its keys                         fetch(session, typed)         `loading`
    Fetched     and its rows, if a database had them              look_up(session, …, fetched)  `lookups`
    Side        and what its values and amounts are replaced by                                 `rows`

Each stage is made of the one before it, and only the last can be grouped and added up, so that none is left out.
`sides.read` takes all of them at once.
"""

from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import asdict, replace

from treadle.analyst.declared.days import iso_day
from treadle.analyst.declared.filters import Filter
from treadle.analyst.declared.source import Dimension, Measure, Source
from treadle.analyst.reading.conditions import holds, orders_in
from treadle.analyst.reading.key_values import text_of_column, typed_column
from treadle.analyst.reading.keys import Key, natural_type
from treadle.analyst.reading.number_spelling import plain_number
from treadle.analyst.reading.ranges import refused
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Demand, Table
from treadle.analyst.remote.opening import open_table
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.terms import literal, named, quoted

Condition = tuple[Key, Filter]
"""A filter, and the key that it is on."""


class Wanted(Struct, frozen=True, kw_only=True):
    """What a question wants of a source.

    Attributes:
        letter: what the names of its columns begin with.
        index: its place among the sources of the question.
        source: the source.
        keys: what its rows are grouped by.
        declared: its measures as they are declared, in the question's order.
        conditions: the filters.
        apart: whether the question is of two sides of this source, which only their letters tell apart.
    """

    letter: str
    index: int
    source: Source
    keys: tuple[Key, ...] = ()
    declared: tuple[Measure, ...] = ()
    conditions: tuple[Condition, ...] = ()
    apart: bool = False

    @property
    def called(self) -> str:
        """What it is called in sentences."""
        return f"{self.source.name} ({self.letter.upper()})" if self.apart else self.source.name

    def open(self, session: Session) -> "Opened":
        """Makes the source readable. Raises AnalystError if it cannot be read, or lacks what is wanted of it."""
        dimensions = [key.members[self.index] for key in (*self.keys, *(key for key, _ in self.conditions))]
        dimensions += self.besides
        demand = Demand(tuple({item.name: item for item in dimensions}.values()), tuple(self.measures))
        return Opened(**asdict(self), table=open_table(session, self.source, demand))

    @property
    def measures(self) -> list[Measure]:
        """Its measures as they are once their amounts are converted."""
        return [converted(item) for item in self.declared]

    @property
    def conversions(self) -> dict[int, Measure]:
        """The measures whose amounts are converted, as they are declared, by their number."""
        return {at: item for at, item in enumerate(self.declared) if item.conversion}

    @property
    def besides(self) -> list[Dimension]:
        """The dimensions that are looked at besides keys and conditions: those of currencies, and of rates."""
        names = [item.currency for item in self.declared if item.currency]
        names += [name for item in self.declared if item.conversion for name in item.conversion.on]
        return [self.source.dimension(name) for name in names]

    @property
    def mapped(self) -> list[Dimension]:
        """The dimensions that are grouped or filtered by and have their values replaced."""
        members = [key.members[self.index] for key in (*self.keys, *(key for key, _ in self.conditions))]
        members += self.besides
        return list({item.name: item for item in members if item.mapping}.values())


class Opened(Wanted, frozen=True, kw_only=True):
    """A source that is readable.

    Attributes:
        table: its rows, or what is known of them while a database has them.
    """

    table: Table

    def typed(self, together: "Sequence[Opened]") -> "Typed":
        """Returns it with the types of keys and conditions that all sources of the question share."""
        conditions = tuple((typed_keys(together, [key])[0], condition) for key, condition in self.conditions)
        known = asdict(self) | {"keys": tuple(typed_keys(together, self.keys)), "conditions": conditions}
        return Typed(**known)


class Typed(Opened, frozen=True, kw_only=True):
    """A source whose keys and conditions have their types."""


class Fetched(Typed, frozen=True, kw_only=True):
    """Rows in the session, whose keys have their types.

    Attributes:
        pushed: the filters that the database which the rows come from has applied to them.
        replaced: the column that the values of a dimension stand in once they are looked up, by the dimension's name.
    """

    pushed: tuple[Filter, ...] = ()
    replaced: dict[str, str] = {}

    def value_of(self, key: Key) -> "exp.Expr":
        """The canonical value of `key` in a row."""
        return key.format.apply(self.spelled(key)) if key.type == "string" else self.spelled(key)

    def spelled(self, key: Key) -> "exp.Expr":
        """The value of `key` in a row, as text before its format is applied, or of the key's type."""
        dimension = key.members[self.index]
        if dimension.mapping is not None and dimension.name in self.replaced:
            found = quoted(self.replaced[dimension.name])
            return found if key.type == "string" else typed_column(found, "VARCHAR", key.type)
        column: exp.Expr = quoted(dimension.source_column)
        kind = self.table.columns[dimension.source_column]
        if dimension.format.day:
            column, kind = iso_day(text_of_column(column, kind), dimension.format.day), "VARCHAR"
        if key.type == "string":
            return text_of_column(column, kind)
        if kind == "VARCHAR" and key.type in ("integer", "decimal"):
            column = plain_number(column, self.source.text)
        return typed_column(column, kind, key.type)

    def filtered(self, select: "exp.Select", parameters: Parameters, besides: Collection[str] = ()) -> "exp.Select":
        """Returns `select` from these rows where the filters hold, except those on the dimensions `besides`."""
        conditions = [
            one
            for one in self.conditions
            if one[1] not in self.pushed and one[0].members[self.index].name not in besides
        ]
        rows, texts = self._with_texts([key for key, _ in conditions])
        tests = [
            holds(key, item, key.format.apply(text) if text is not None else self.value_of(key), parameters)
            for (key, item), text in zip(conditions, texts, strict=True)
        ]
        select = select.from_(rows, copy=False)
        return select.where(*tests, copy=False) if tests else select

    def _with_texts(self, keys: Sequence[Key]) -> "tuple[exp.Expr, list[exp.Expr | None]]":
        """These rows, with columns of what takes steps to make and is looked at many times, and those columns."""
        rows = self.table.relation.copy()
        prefix = "_text"
        while any(name.casefold().startswith(prefix) for name in self.table.columns):
            prefix = f"_{prefix}"
        made: dict[str, exp.Expr] = {}
        texts: list[exp.Expr | None] = []
        for at, key in enumerate(keys):
            text = self.spelled(key) if key.type == "string" and key.format.steps else None
            if text is None or isinstance(text, exp.Column):
                texts.append(None)
                continue
            made[f"{prefix}{at}"] = text
            texts.append(quoted(f"{prefix}{at}"))
        if not made:
            return rows, texts
        columns = [named(text, name, quoted=True) for name, text in made.items()]
        every = exp.select(exp.Star(), *columns, copy=False).from_(rows, copy=False)
        return every.subquery("spelled", copy=False), texts

    def examine(self, session: Session) -> None:
        """Looks for values that a range cannot place, among the rows that pass the other filters.

        Raises:
            AnalystError: there are any.
        """
        # What is said of new values waits until these have been looked up.
        here = [one for one in self.conditions if not self._awaited(one[0]) and one[1] not in self.pushed]
        for key, condition in here:
            for order, span in orders_in(key, condition):
                if order is None or not order.pattern:
                    continue
                parameters = Parameters()
                value = self.value_of(key)
                others = [self._may_hold(other, parameters) for other in here if other != (key, condition)]
                rows = exp.select(value).distinct().from_(self.table.relation.copy(), copy=False)
                rows = rows.where(order.doubtful(value), *others).limit(literal(3), copy=False)
                found = session.run(rows, parameters)
                if found:
                    shown = ", ".join(repr(str(row[0])[:40]) for row in sorted(found))
                    raise refused(key, span, f"{self.source.name} has {shown} there, and not {order.like}")

    def _may_hold(self, condition: Condition, parameters: Parameters) -> "exp.Expr":
        """Whether a filter holds, or cannot be decided: what two ranges cannot place, neither hides from the other."""
        key, item = condition
        value = self.value_of(key)
        orders = [order for order, _ in orders_in(key, item) if order is not None and order.pattern]
        return exp.or_(holds(key, item, value.copy(), parameters), *(order.doubtful(value.copy()) for order in orders))

    def _awaited(self, key: Key) -> bool:
        """Whether the values of a key are still to be replaced."""
        member = key.members[self.index]
        return member.mapping is not None and member.name not in self.replaced


def converted(measure: Measure) -> Measure:
    """Returns a measure as it is once its amounts are converted; itself if they are not."""
    if measure.conversion is None:
        return measure
    return replace(measure, conversion=None, currency="", unit=measure.conversion.to)


def typed_keys(together: Sequence[Opened], keys: Sequence[Key]) -> list[Key]:
    """Returns the keys with the type and format that all sources share: text, unless they agree on another type."""
    found = []
    for key in keys:
        formats = key.format
        for member in key.members:
            formats |= member.format.shared
        types = {
            ("string" if member.mapping else member.type)
            or ("date" if member.format.day else natural_type(one.table.columns[member.source_column]))
            for one, member in zip(together, key.members, strict=True)
            if key.own in (None, one.index)
        }
        kind = next(iter(types)) if len(types) == 1 and not formats.steps else "string"
        found.append(replace(key, type=kind, format=formats))
    return found
