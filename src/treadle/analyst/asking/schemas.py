"""Schemas: the columns of two sources side by side, as they are declared and as the data have them."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct, to_builtins

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.declared.source import Dimension, Measure, Source
from treadle.analyst.reading.bounds import Bounds
from treadle.analyst.reading.dialect import Column
from treadle.analyst.reading.interrupt import Interrupt
from treadle.analyst.reading.keys import natural_type
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Demand
from treadle.analyst.remote.opening import open_table
from treadle.analyst.sql.types import INTEGERS, decimals_in

Fate = Literal["same", "differs", "only_a", "only_b"]

_FIGURES = frozenset(("DECIMAL", "DOUBLE", "FLOAT", "VARCHAR"))
"""Beside whole numbers and those of fixed decimals; a text is read as a number."""


class Member(Struct, frozen=True, kw_only=True):
    """A dimension, a measure, the default filters of a dimension, or a column that is not declared, on both sides.

    Attributes:
        kind: which of them it is.
        name: what A calls it, or B if A lacks it.
        a: what it is in A, in words; empty if A lacks it.
        b: what it is in B.
        fate: whether both have it, and alike.
    """

    kind: Literal["dimension", "measure", "filter", "column"]
    name: str
    a: str
    b: str
    fate: Fate


class Schemas(Struct, frozen=True):
    """Two sources side by side: what both have first, in the order of A."""

    source_a: str
    source_b: str
    members: tuple[Member, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        data: dict[str, Any] = to_builtins(self)
        return data


def compare_schemas(
    catalog: Catalog, source_a: str, source_b: str, *, bounds: Bounds | None = None, interrupt: Interrupt | None = None
) -> Schemas:
    """Compares the dimensions, measures, default filters and columns of two sources.

    Dimensions and measures meet by name or synonym, and are the same where they are declared to mean the same.

    Raises:
        AnalystError: a source is not known, or its data cannot be read or lack a column that is declared.
    """
    a, b = catalog.source(source_a, "source_a"), catalog.source(source_b, "source_b")
    sources = list({source.name: source for source in (a, b)}.values())
    with Session(catalog, sources, bounds, interrupt) as session:
        types = [_columns_of(session, one) for one in (a, b)]
    found: list[Member] = []
    found += _met("dimension", a.dimensions, b.dimensions, types)
    found += _met("measure", a.measures, b.measures, types)
    found += _filters(a, b)
    found += _columns(a, b, types)
    return Schemas(a.name, b.name, tuple(sorted(found, key=lambda one: one.fate.startswith("only"))))


def _columns_of(session: Session, source: Source) -> dict[str, str]:
    """The types of all columns of a source, by the engine's names of them, by name."""
    table = open_table(session, source, Demand(source.dimensions, source.measures))
    if table.remote is not None:
        return {name: _stored(column) for name, column in table.remote.columns.items()}
    # Of some kinds only what is asked for is read; what else there is, is told where nothing is.
    every = {} if table.whole else open_table(session, source, Demand((), ())).columns
    return {name: kind.replace(", ", ",") for name, kind in (every | table.columns).items()}


def _stored(column: Column) -> str:
    """The type of a database's column, which may take another in a session."""
    match column.kind:
        case "decimal":
            return "DECIMAL" if column.digits is None else f"DECIMAL({column.digits},{column.scale or 0})"
        case "integer" if column.name.upper() in INTEGERS:
            return column.name.upper()
        case _:
            return column.engine_type


def _met(
    kind: str, ours: Sequence[Dimension | Measure], theirs: Sequence[Dimension | Measure], types: list[dict[str, str]]
) -> Iterator[Member]:
    """The dimensions, or the measures, of both: each of A with the one of B that answers to a name of its own."""
    left = list(theirs)
    for own in ours:
        other = next((item for item in left if item.names & own.names), None)
        if other is not None:
            left.remove(other)
        told = _words(own, types[0]), "" if other is None else _words(other, types[1])
        meant = None if other is None else (_meant(own, types[0]), _meant(other, types[1]))
        yield _member(kind, own.name, *told, meant)
    for item in left:
        yield _member(kind, item.name, "", _words(item, types[1]))


def _columns(a: Source, b: Source, types: list[dict[str, str]]) -> Iterator[Member]:
    """The columns that a side has and does not declare, beside the same one of the other, declared there or not."""
    declared = [_declared(a), _declared(b)]
    for pair in _alike(*types):
        told = [
            f"{of[name]}{_as(known.get(name))}" if name else ""
            for name, of, known in zip(pair, types, declared, strict=True)
        ]
        if any(name and name not in known for name, known in zip(pair, declared, strict=True)):
            yield _member("column", pair[0] or pair[1], told[0], told[1])


def _alike(a: Collection[str], b: Collection[str]) -> Iterator[tuple[str, str]]:
    """The columns of A, each with that of B that has its name, or has it in another case and is the like of no other;
    then those of B alone. An empty text stands for none."""
    left = [name for name in b if name not in a]
    for name in a:
        other = name if name in b else next((one for one in left if one.casefold() == name.casefold()), "")
        if other in left:
            left.remove(other)
        yield name, other
    yield from (("", name) for name in left)


def _as(members: str | None) -> str:
    return f", declared as {members}" if members else ""


def _filters(a: Source, b: Source) -> Iterator[Member]:
    """What holds unless a question says otherwise: each dimension that has such conditions on either side."""
    held: list[dict[str, str]] = [{}, {}]
    for source, told in zip((a, b), held, strict=True):
        for one in source.default_filters:
            names = source.dimension(one.dimension).names
            name = next((own.name for own in a.dimensions if own.names & names), one.dimension)
            text = str(one.model_copy(update={"dimension": name}))
            told[name] = f"{told[name]} and {text}" if name in told else text
    for name in dict.fromkeys([*held[0], *held[1]]):
        yield _member("filter", name, held[0].get(name, ""), held[1].get(name, ""))


def _member(kind: Any, name: str, a: str, b: str, meant: tuple[str, str] | None = None) -> Member:
    """A member in the words of both sides; `meant` is what of them counts, if not all of it does."""
    own, other = meant or (a, b)
    fate: Fate = "only_b" if not a else "only_a" if not b else "same" if own == other else "differs"
    return Member(kind=kind, name=name, a=a, b=b, fate=fate)


def _declared(source: Source) -> dict[str, str]:
    """The columns that members are made of, each with the names of these."""
    found: dict[str, str] = {}
    made: list[tuple[str, tuple[str, ...]]] = [(item.name, (item.source_column,)) for item in source.dimensions]
    made += [(item.name, tuple(dict.fromkeys(item.columns))) for item in source.measures]
    for name, columns in made:
        for column in columns:
            found[column] = f"{found[column]}, {name}" if column in found else name
    return found


def _words(item: Dimension | Measure, types: dict[str, str]) -> str:
    """What a dimension or a measure is: how it is declared, and of what columns."""
    if isinstance(item, Dimension):
        parts = [item.type or _type_of(types[item.source_column]), str(item.format), _mapped(item)]
    else:
        of = ", ".join(dict.fromkeys(types[column].lower() for column in item.columns)) or "rows"
        what = f"{item.expression} ({of})" if item.expression else of
        unit = item.conversion.to if item.conversion else item.unit
        parts = [
            f"{item.aggregation} of {what}",
            "its sign turned" if item.sign < 0 else "",
            unit,
            f"by {item.currency}" if item.currency else "",
            _converted(item),
        ]
    return ", ".join(part for part in parts if part)


def _meant(item: Dimension | Measure, types: dict[str, str]) -> str:
    """`_words` without how the figures are stored, which is another way in each kind of source: they add up alike.

    What does not add up, such as days, is no figure, but can be counted.
    """
    if isinstance(item, Dimension):
        return _words(item, types)
    counted = item.aggregation == "count"
    return _words(item, {name: "stored" if counted or _adds_up(kind) else kind for name, kind in types.items()})


def _adds_up(kind: str) -> bool:
    return kind in INTEGERS or kind in _FIGURES or decimals_in(kind) is not None


def _type_of(kind: str) -> str:
    """The type of a dimension that declares none, by the name that it would be declared by, where it has one."""
    natural = natural_type(kind)
    return natural if natural != "string" or kind == "VARCHAR" else kind.lower()


def _mapped(item: Dimension) -> str:
    by = item.mapping
    if by is None:
        return ""
    share = f" by {by.share}" if by.share else ""
    return f"mapped by {by.source} ({by.old} to {by.new}{share}, others {by.otherwise})"


def _converted(item: Measure) -> str:
    by = item.conversion
    return "" if by is None else f"at the {by.rate} of {by.source}{''.join(f', {name}' for name in by.on)}"
