"""Remote sources: their groups, made by the database that holds them, as rows of a session.

A database is connected to once a session, read-only and for no longer than the session may take. Its sources are read
together where it can do so in one statement. What comes back are groups, staged as text with every digit; from there on
they are rows like any other, each standing for as many as it was made of. Neighbours: `pushdown` (the statement),
`narrowing` (its filters), `postgres` and `sqlalchemy_source` (the connections).
"""

from collections.abc import Iterator, Sequence
from contextlib import closing

from msgspec import Struct
from msgspec.structs import asdict, replace

from treadle.analyst.asking.rows import Side
from treadle.analyst.asking.stages import Condition, Fetched, Typed
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filter
from treadle.analyst.declared.source import Dimension
from treadle.analyst.reading.database import Groups, Partial, Remote, Texts
from treadle.analyst.reading.dialect import Column
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Table
from treadle.analyst.remote.narrowing import narrowing
from treadle.analyst.remote.pushdown import grouped
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import Proof, proof_of
from treadle.analyst.sql.terms import cast, literal, named

# How PostgreSQL spells what is no finite number. NaN itself is in no figure: whatever is it was made of infinities.
_ENDLESS = frozenset(("Infinity", "-Infinity", "NaN"))


def fetch(session: Session, typed: Sequence[Typed]) -> tuple[list[Fetched], tuple[Proof, ...]]:
    """Returns the rows of the sources of a question, in their order, and what each database was asked for.

    Those that are remote are fetched as groups, in one statement a database where it can do that. All are then looked
    at for values that their filters cannot decide.

    Args:
        session: takes the groups.
        typed: the sources.

    Raises:
        AnalystError: a database could not be read, or a filter cannot be decided.
    """
    sides = [Fetched(**asdict(one)) for one in typed]
    found: dict[int, list[tuple[int, Remote]]] = {}
    asked: list[Proof] = []
    for at, side in enumerate(sides):
        if (remote := side.table.remote) is not None:
            found.setdefault(id(remote.database), []).append((at, remote))
    for together in found.values():
        session.tell(f"asking the database of {' and '.join(sides[at].source.name for at, _ in together)}")
        parameters = Parameters()
        wanted = [_Wanted.of(sides[at], remote, parameters) for at, remote in together]
        for (at, _), each, table in zip(together, wanted, _staged(session, wanted, parameters), strict=True):
            sides[at] = replace(sides[at], table=table, pushed=each.pushed)
            dialect, about = each.remote.database.dialect.name, f"asked of the database of {sides[at].source.name}"
            asked.append(proof_of(each.groups.statement, parameters, dialect, about))
    for side in sides:
        side.examine(session)
    return sides, tuple(asked)


def unfiltered(session: Session, side: Fetched, key: Key) -> Table:
    """Returns the rows of a side whatever its filters, as far as the values of `key` go."""
    remote = side.table.remote
    if remote is None:
        return side.table
    dimension = key.members[side.index]
    groups = grouped(remote.database.dialect, remote.source, remote.columns, [dimension], [])
    return next(_staged(session, [_Wanted(remote, groups, ())], Parameters()))


def narrowed(session: Session, side: Side, key: Key, conditions: Sequence[Condition]) -> Side:
    """Returns the rows of a side under other conditions than its own, as far as the values of `key` go.

    Those of a database have their values as it has them, before they are looked up.
    """
    wanted = replace(side, keys=(), declared=(), conditions=tuple(conditions), pushed=())
    remote = side.table.remote
    if remote is None:
        return wanted
    wanted = replace(wanted, replaced={})
    parameters = Parameters()
    asked = _Wanted.of(replace(wanted, keys=(key,)), remote, parameters)
    return replace(wanted, table=next(_staged(session, [asked], parameters)), pushed=asked.pushed)


def repeated(session: Session, side: Fetched) -> tuple[Table, Sequence[Filter]]:
    """Returns the rows of a remote side of which another is alike in every column, each once with their number.

    Also returned are the filters that the database has applied.
    """
    remote = side.table.remote
    if remote is None:
        raise ValueError(f"{side.source.name} is not in a database")
    parameters = Parameters()
    wanted = _Wanted.of(side, remote, parameters)
    columns = [Dimension(name=name) for name in remote.columns]
    alike = [remote.database.dialect.key(item, remote.columns[item.name]) for item in columns]
    several = exp.GT(this=exp.Count(this=exp.Star()), expression=literal(1))
    statement = wanted.groups.statement.group_by(*alike, append=False).having(several)
    wanted = replace(wanted, groups=replace(wanted.groups, statement=statement))
    return next(_staged(session, [wanted], parameters)), wanted.pushed


class _Wanted(Struct, frozen=True):
    """What is asked of a database for one side, and the filters that it decides."""

    remote: Remote
    groups: Groups
    pushed: tuple[Filter, ...]

    @classmethod
    def of(cls, side: Fetched, remote: Remote, parameters: Parameters) -> "_Wanted":
        dialect = remote.database.dialect
        conditions: list[exp.Expr] = []
        pushed: list[Filter] = []
        dimensions = [key.members[side.index] for key in side.keys]
        dimensions += side.besides
        for key, condition in side.conditions:
            member = key.members[side.index]
            name = member.source_column
            # What a filter says of a mapped dimension is said of values that the database does not have.
            found = (
                None if member.mapping else narrowing(dialect, key, name, remote.columns[name], condition, parameters)
            )
            if found is not None:
                conditions.append(found.condition)
            if found is not None and found.exact:
                pushed.append(condition)
            else:
                dimensions.append(member)
        distinct = list({item.source_column: item for item in dimensions}.values())
        groups = grouped(dialect, side.source, remote.columns, distinct, side.measures, conditions, parameters)
        return cls(remote, groups, tuple(pushed))


def _staged(session: Session, wanted: Sequence[_Wanted], parameters: Parameters) -> Iterator[Table]:
    """The groups of each, once they are all in the session."""
    database = wanted[0].remote.database
    floating: set[tuple[int, str]] = set()
    groups = [each.groups for each in wanted]
    width = max(len(each.names) for each in groups)
    weights = {str(at): each.names.index("w") + 1 for at, each in enumerate(groups)}
    found = dict.fromkeys(each.remote.source.name for each in wanted)
    with closing(database.rows([each.remote.source for each in wanted], groups, parameters, floating)) as rows:
        # A total over no rows at all comes back as one row, which stands for none.
        kept = (row for row in _finite(rows, wanted) if row[weights[row[0] or ""]] != "0")
        table = session.stage(["part", *(f"t{at}" for at in range(width))], kept, list(found))
    for at, each in enumerate(wanted):
        yield _table(table, at, each, {name for part, name in floating if part == at})


def _finite(rows: Iterator[Texts], wanted: Sequence[_Wanted]) -> Iterator[Texts]:
    """The rows. Raises AnalystError for a figure that is endless: infinities of both signs add up to NaN."""
    for row in rows:
        if not _ENDLESS.isdisjoint(row):
            each = wanted[int(row[0] or 0)]
            for name, partial in each.groups.partials.items():
                if row[each.groups.names.index(partial.value) + 1] in _ENDLESS:
                    raise AnalystError(
                        f"source {each.remote.source.name!r}: the column of measure {name!r} holds infinity, which "
                        f"cannot be added up",
                        argument="measures",
                        given=name,
                    )
        yield row


def _table(staged: str, part: int, wanted: _Wanted, floating: set[str]) -> Table:
    remote, groups = wanted.remote, wanted.groups
    prefix = "_"
    while any(item.source_column.startswith(prefix) for item in groups.dimensions):
        prefix += "_"
    chosen: list[exp.Expr] = []
    types: dict[str, str] = {}
    for at, name in enumerate(groups.names):
        value: exp.Expr = exp.column(f"t{at}")
        if at < len(groups.dimensions):
            column = groups.dimensions[at].source_column
            types[column] = remote.columns[column].engine_type
            value = exp.Alias(this=cast(value, types[column]), alias=exp.to_identifier(column, quoted=True))
        else:
            value = named(cast(value, "HUGEINT") if name == "w" else value, prefix + name)
        chosen.append(value)
    rows = exp.select(*chosen, copy=False).from_(exp.table_(staged), copy=False)
    rows = rows.where(exp.EQ(this=exp.column("part"), expression=literal(str(part))), copy=False)
    return Table(
        rows.subquery("groups_of_it", copy=False),
        types,
        whole=False,
        weight=f"{prefix}w",
        partials={name: _prefixed(partial, prefix, floating) for name, partial in groups.partials.items()},
        remote=remote,
    )


def _prefixed(partial: Partial, prefix: str, floating: set[str]) -> Partial:
    names = {
        field: prefix + getattr(partial, field)
        for field in ("value", "count", "size", "nan", "guard")
        if getattr(partial, field)
    }
    column = Column("floating") if partial.value in floating else partial.column
    return replace(partial, column=column, **names)
