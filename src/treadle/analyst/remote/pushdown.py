"""Push-down: the aggregate of one source as one SELECT for the database that holds it, so that only groups travel.

Rows are grouped by the values as they are stored, compared byte by byte; what makes two spellings the same value is
applied to the groups afterwards, by the one definition of it in `formats`. Filters that a database surely understands
as treadle does go into its WHERE (`narrowing`). Pure: builds SQLGlot expressions out of the catalogue's names, with
every value behind a placeholder. Neighbours: `asking.loading` runs the statements and keeps the groups.
"""

from collections.abc import Mapping, Sequence

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Dimension, Measure, Source
from treadle.analyst.reading.database import Groups, Partial
from treadle.analyst.reading.dialect import Column, Dialect, quoted_column
from treadle.analyst.remote.remote_amounts import remote_amount, remote_count
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters


def grouped(
    dialect: Dialect,
    source: Source,
    columns: Mapping[str, Column],
    dimensions: Sequence[Dimension],
    measures: Sequence[Measure],
    conditions: Sequence["exp.Expr"] = (),
    parameters: Parameters | None = None,
) -> Groups:
    """Returns the aggregate of `measures` by `dimensions` over the rows that fulfil all conditions.

    Args:
        dialect: of the database.
        source: whose table is read.
        columns: the table's columns, by name.
        dimensions: what to group by.
        measures: what to aggregate.
        conditions: hold for the rows that are read.
        parameters: those of the conditions; takes the texts of expressions.

    Raises:
        AnalystError: a measure's column holds something that cannot be added up.
    """
    parameters = parameters or Parameters()
    keys = [dialect.key(item, columns[item.source_column]) for item in dimensions]
    chosen: dict[str, exp.Expr] = {}
    for at, (item, key) in enumerate(zip(dimensions, keys, strict=True)):
        column = columns[item.source_column]
        # What is no decimal in the session is text there, one for each number.
        plain = column.kind == "decimal" and column.engine_type == "VARCHAR"
        chosen[f"d{at}"] = dialect.told(key.copy(), plain=plain)
    chosen["w"] = dialect.told(exp.Count(this=exp.Star()))
    partials = {}
    for at, measure in enumerate(measures):
        found, column = _aggregates(dialect, source, measure, columns, parameters)
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
    width = max(len(each.names) for each in groups)
    parts = []
    for at, each in enumerate(groups):
        filled = [exp.cast(exp.null(), "TEXT") for _ in range(width - len(each.names))]
        mark = exp.cast(exp.Literal.string(str(at)), "TEXT")
        parts.append([exp.alias_(mark, "part"), *each.statement.expressions, *filled])
    return _union(groups, parts)


def side_by_side(groups: Sequence[Groups]) -> "exp.Expr":
    """Returns one statement for several aggregates in any database: its rows have the number of their aggregate first,
    then columns for each aggregate, those of the others NULL, so that values of different types never share one."""
    parts = []
    for at, each in enumerate(groups):
        chosen: list[exp.Expr] = [exp.alias_(exp.Literal.number(at), "part")]
        for other, theirs in enumerate(groups):
            nothing = (exp.alias_(exp.null(), f"p{other}_{name}") for name in theirs.names)
            chosen += each.statement.expressions if other == at else nothing
        parts.append(chosen)
    return _union(groups, parts)


def _union(groups: Sequence[Groups], parts: "Sequence[list[exp.Expr]]") -> "exp.Expr":
    whole: exp.Expr | None = None
    for each, chosen in zip(groups, parts, strict=True):
        rows = each.statement.copy()
        rows.set("expressions", [item.copy() for item in chosen])
        whole = rows if whole is None else exp.Union(this=whole, expression=rows, distinct=False)
    return whole or exp.null()


def table_of(source: Source) -> "exp.Table":
    """The table of a source; a declaration may put a schema, and a database, before its name."""
    parts = [exp.to_identifier(part, quoted=True) for part in source.table.split(".")]
    names = dict(zip(("this", "db", "catalog"), reversed(parts), strict=False))
    return exp.Table(**names)


_MORE = ("count", "size", "nan", "guard")


def _aggregates(
    dialect: Dialect, source: Source, measure: Measure, columns: Mapping[str, Column], parameters: Parameters
) -> "tuple[dict[str, exp.Expr], Column]":
    """The aggregates of one measure: its value under "", and what else must be known of it; and what it is made of."""
    if not measure.columns:
        if measure.aggregation not in ("count", "sum"):
            raise AnalystError(f"source {source.name!r}: measure {measure.name!r} has no column; declare one")
        return {"": exp.Count(this=exp.Star())}, Column("integer", 0)
    if measure.aggregation == "count" and not measure.formula:
        value, nan = remote_count(dialect, measure.source_column, columns[measure.source_column])
        more: dict[str, exp.Expr] = {} if nan is None else {"nan": _number(nan)}
        return {"": exp.Count(this=value), **more}, Column("integer", 0)
    amount = remote_amount(dialect, source, measure, columns, parameters)
    if measure.aggregation == "count":
        return {"": exp.Count(this=amount.value)}, amount.column
    found: dict[str, exp.Expr] = {}
    if amount.nan is not None:
        found["nan"] = _number(amount.nan)
    if amount.untyped:
        words = [exp.Literal.string(word) for word in ("text", "blob")]
        kinds = [exp.Anonymous(this="TYPEOF", expressions=[quoted_column(name)]) for name in amount.untyped]
        texts = exp.or_(*(exp.In(this=kind, expressions=words) for kind in kinds))
        found["guard"] = _number(texts)
    # A sum of turned signs is the turned sum, but the least of them is the greatest that was turned.
    aggregation = measure.aggregation
    if measure.sign < 0 and aggregation in ("min", "max"):
        aggregation = "max" if aggregation == "min" else "min"
    makes = {"sum": exp.Sum, "avg": exp.Sum, "min": exp.Min, "max": exp.Max}
    found[""] = makes[aggregation](this=amount.value)
    floating = amount.column.kind == "floating" or not dialect.decimals
    if measure.aggregation == "avg" or floating or not dialect.postgres:
        found["count"] = exp.Count(this=amount.value.copy())
    if floating:
        found["size"] = exp.Sum(this=amount.size)
    return found, amount.column


def _number(condition: "exp.Expr") -> "exp.Expr":
    """In how many rows a condition holds."""
    return exp.Count(this=exp.Case(ifs=[exp.If(this=condition, true=exp.Literal.number(1))]))
