"""Push-down: the aggregate of one source as one SELECT for the database that holds it, so that only groups travel.

Rows are grouped by the values as they are stored, compared byte by byte; what makes two spellings the same value is
applied to the groups afterwards, by the one definition of it in `formats`. Filters that a database surely understands
as treadle does go into its WHERE (`narrowing`). Pure: builds SQLGlot expressions out of the catalogue's names, with
every value behind a placeholder. Neighbours: `remote` runs the statements and keeps the groups.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, assert_never

from msgspec import Struct

from treadle.analyst.catalog import Dimension, Measure, Source
from treadle.analyst.errors import AnalystError

if TYPE_CHECKING:
    from sqlglot import exp

ColumnKind = Literal["integer", "decimal", "floating", "text", "date", "timestamp", "zoned", "boolean", "other"]

# How databases other than PostgreSQL are told to compare text byte by byte, where they do not do so anyway.
_BINARY_COLLATIONS = {"postgres": "C", "sqlite": "BINARY", "mysql": "utf8mb4_bin", "tsql": "Latin1_General_BIN2"}
_KEY_DECIMALS = 10


class Column(Struct, frozen=True):
    """A column of a table in a database.

    Attributes:
        kind: what its values are.
        scale: the decimals of a `decimal`; None if it has no fixed number of them.
        name: what the database calls its type.
    """

    kind: ColumnKind
    scale: int | None = None
    name: str = ""

    @property
    def engine_type(self) -> str:
        """The type that its values take in a session, by DuckDB's name."""
        match self.kind:
            case "integer":
                return "HUGEINT"
            case "decimal":
                fixed = self.scale is not None and self.scale <= _KEY_DECIMALS
                return f"DECIMAL(38, {self.scale})" if fixed else "VARCHAR"
            case "floating":
                return "DOUBLE"
            case "date":
                return "DATE"
            case "timestamp":
                return "TIMESTAMP"
            case "zoned":
                return "TIMESTAMP WITH TIME ZONE"
            case "boolean":
                return "BOOLEAN"
            case "text" | "other":
                return "VARCHAR"
            case _:
                assert_never(self.kind)


class Dialect(Struct, frozen=True):
    """How a database is spoken to.

    Attributes:
        name: the name that SQLGlot has for it; empty for standard SQL.
    """

    name: str

    @property
    def postgres(self) -> bool:
        """Whether it is PostgreSQL, whose exact numerics and text forms are used."""
        return self.name == "postgres"

    @property
    def typed(self) -> bool:
        """Whether a column holds values of its declared type only."""
        return self.name != "sqlite"

    def binary(self, value: "exp.Expr") -> "exp.Expr":
        """The text, to be compared byte by byte."""
        from sqlglot import exp

        collation = _BINARY_COLLATIONS.get(self.name)
        if collation is None:
            return value
        quoted = self.postgres
        return exp.Collate(this=exp.paren(value), expression=exp.to_identifier(collation, quoted=quoted))

    def key(self, dimension: Dimension, column: Column) -> "exp.Expr":
        """What rows are grouped by for a dimension."""
        from sqlglot import exp

        value = quoted_column(dimension.source_column)
        if column.kind not in ("text", "other"):
            return value
        return self.binary(exp.cast(value, "TEXT") if self.postgres else value)

    def told(self, value: "exp.Expr", *, plain: bool = False) -> "exp.Expr":
        """The value as it travels: PostgreSQL's as text, with every digit; `plain` for numbers without a scale."""
        from sqlglot import exp

        if not self.postgres:
            return value
        return exp.cast(exp.Anonymous(this="TRIM_SCALE", expressions=[value]) if plain else value, "TEXT")


class Partial(Struct, frozen=True):
    """Which columns of the groups hold what is known of a measure; empty where there is nothing to know.

    Attributes:
        column: what the database says of it.
        value: the sum, minimum, maximum or count.
        count: how many values it is made of.
        size: the sum of their absolute values, for floating-point numbers.
        nan: how many rows hold NaN.
        guard: how many rows hold something else than a number.
        exact: whether the value surely has no more decimals than the column.
    """

    column: Column
    value: str
    count: str = ""
    size: str = ""
    nan: str = ""
    guard: str = ""
    exact: bool = False


class Groups(Struct, frozen=True):
    """The aggregate of one source.

    Attributes:
        statement: the SELECT, its columns in the order of `names`.
        names: the columns: d0, d1 and on for the dimensions, w for the rows of a group, then those of the measures.
        dimensions: what it is grouped by.
        partials: the columns of each measure, by its name.
    """

    statement: "exp.Select"
    names: tuple[str, ...]
    dimensions: tuple[Dimension, ...]
    partials: dict[str, Partial]


def grouped(
    dialect: Dialect,
    source: Source,
    columns: Mapping[str, Column],
    dimensions: Sequence[Dimension],
    measures: Sequence[Measure],
    conditions: Sequence["exp.Expr"] = (),
) -> Groups:
    """Returns the aggregate of `measures` by `dimensions` over the rows that fulfil all conditions.

    Args:
        dialect: of the database.
        source: whose table is read.
        columns: the table's columns, by name.
        dimensions: what to group by.
        measures: what to aggregate.
        conditions: hold for the rows that are read.

    Raises:
        AnalystError: a measure's column holds something that cannot be added up.
    """
    from sqlglot import exp

    keys = [dialect.key(item, columns[item.source_column]) for item in dimensions]
    chosen: dict[str, exp.Expr] = {}
    for at, (item, key) in enumerate(zip(dimensions, keys, strict=True)):
        column = columns[item.source_column]
        plain = column.kind == "decimal" and column.scale is None
        chosen[f"d{at}"] = dialect.told(key.copy(), plain=plain)
    chosen["w"] = dialect.told(exp.Count(this=exp.Star()))
    partials = {}
    for at, measure in enumerate(measures):
        column = columns.get(measure.source_column, Column("integer", 0))
        found = _aggregates(dialect, source, measure, column, f"m{at}")
        more = {part: f"m{at}_{part}" for part in _MORE if part in found}
        partials[measure.name] = Partial(column, f"m{at}", **more, exact=dialect.postgres)
        chosen |= {f"m{at}_{part}" if part else f"m{at}": dialect.told(value) for part, value in found.items()}
    statement = exp.select(*(exp.alias_(value, name) for name, value in chosen.items()))
    statement = statement.from_(table_of(source))
    statement = statement.where(*conditions) if conditions else statement
    statement = statement.group_by(*keys) if keys else statement
    return Groups(statement, tuple(chosen), tuple(dimensions), partials)


def together(groups: Sequence[Groups]) -> "exp.Expr":
    """Returns one PostgreSQL statement for several aggregates: its rows are text, the number of their aggregate first,
    shorter ones filled up with NULL."""
    from sqlglot import exp

    width = max(len(each.names) for each in groups)
    selects: list[exp.Select] = []
    for at, each in enumerate(groups):
        filled = [exp.cast(exp.null(), "TEXT") for _ in range(width - len(each.names))]
        rows = each.statement.copy()
        mark = exp.cast(exp.Literal.string(str(at)), "TEXT")
        rows.set("expressions", [exp.alias_(mark, "part"), *rows.expressions, *filled])
        selects.append(rows)
    whole: exp.Expr = selects[0]
    for more in selects[1:]:
        whole = exp.Union(this=whole, expression=more, distinct=False)
    return whole


def table_of(source: Source) -> "exp.Table":
    """The table of a source; a declaration may put a schema, and a database, before its name."""
    from sqlglot import exp

    parts = [exp.to_identifier(part, quoted=True) for part in source.table.split(".")]
    names = dict(zip(("this", "db", "catalog"), reversed(parts), strict=False))
    return exp.Table(**names)


def quoted_column(name: str) -> "exp.Column":
    """A column, by its exact name."""
    from sqlglot import exp

    return exp.column(exp.to_identifier(name, quoted=True))


_MORE = ("count", "size", "nan", "guard")


def _aggregates(dialect: Dialect, source: Source, measure: Measure, column: Column, name: str) -> "dict[str, exp.Expr]":
    """The aggregates of one measure: its value under "", and what else must be known of it."""
    from sqlglot import exp

    if measure.source_column == "*":
        if measure.aggregation not in ("count", "sum"):
            raise AnalystError(f"source {source.name!r}: measure {measure.name!r} has no column; declare one")
        return {"": exp.Count(this=exp.Star())}
    value: exp.Expr = quoted_column(measure.source_column)
    if measure.aggregation == "count":
        return {"": exp.Count(this=value)}
    if column.kind not in ("integer", "decimal", "floating"):
        raise AnalystError(
            f"source {source.name!r}: measure {measure.name!r} cannot be a {measure.aggregation}, because its column "
            f"{measure.source_column!r} is {column.name or column.kind}; declare 'aggregation: count', another column, "
            f"or a view that casts it to a number",
            argument="measures",
            given=measure.name,
        )
    found: dict[str, exp.Expr] = {}
    if dialect.postgres:
        value, more = _postgres_value(value, column)
        found |= more
    elif not dialect.typed:
        kind = exp.Anonymous(this="TYPEOF", expressions=[value.copy()])
        words = [exp.Literal.string(word) for word in ("text", "blob")]
        found["guard"] = exp.Count(this=_when(exp.In(this=kind, expressions=words), exp.Literal.number(1)))
    # A sum of turned signs is the turned sum, but the least of them is the greatest that was turned.
    aggregation = measure.aggregation
    if measure.sign < 0 and aggregation in ("min", "max"):
        aggregation = "max" if aggregation == "min" else "min"
    makes = {"sum": exp.Sum, "avg": exp.Sum, "min": exp.Min, "max": exp.Max}
    found[""] = makes[aggregation](this=value)
    floating = column.kind == "floating" or not dialect.postgres
    if measure.aggregation == "avg" or floating:
        found["count"] = exp.Count(this=value.copy())
    if floating:
        found["size"] = exp.Sum(this=exp.Abs(this=value.copy()))
    return found


def _postgres_value(value: "exp.Expr", column: Column) -> "tuple[exp.Expr, dict[str, exp.Expr]]":
    """The amount without NaN, exact: floating-point numbers by the shortest decimals that they print as."""
    from sqlglot import exp

    if column.name == "money":
        return exp.cast(value, "DECIMAL"), {}
    if column.kind == "integer":
        return value, {}
    kind = "DOUBLE" if column.kind == "floating" else "DECIMAL"
    nan = exp.cast(exp.Literal.string("NaN"), kind)
    counted = exp.Count(this=_when(exp.EQ(this=value.copy(), expression=nan), exp.Literal.number(1)))
    number: exp.Expr = value.copy()
    if column.kind == "floating":
        number = exp.cast(exp.cast(number, "TEXT"), "DECIMAL")
    return _when(exp.NEQ(this=value, expression=nan.copy()), number), {"nan": counted}


def _when(condition: "exp.Expr", then: "exp.Expr") -> "exp.Expr":
    from sqlglot import exp

    return exp.Case(ifs=[exp.If(this=condition, true=then)])
