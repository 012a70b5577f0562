"""Proof: a statement as text that can be run again, with its values in it.

For people to read and to run in DuckDB; the engine itself never sees a value in a statement's text.
"""

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from treadle.analyst.parameters import Parameters
from treadle.analyst.terms import cast, literal

if TYPE_CHECKING:
    from sqlglot import exp


def sql_of(statement: "exp.Expr", parameters: Parameters | None = None, dialect: str = "duckdb") -> str:
    """Returns the statement as text, its parameters' values written out.

    Args:
        statement: the statement.
        parameters: its values.
        dialect: whose SQL, by SQLGlot's name of it.
    """
    from sqlglot import exp

    values = {} if parameters is None else parameters.values

    def filled(node: "exp.Expr") -> "exp.Expr":
        return _written(values[node.name]) if isinstance(node, exp.Placeholder) and node.name in values else node

    return str(statement.transform(filled).sql(dialect=dialect, pretty=True))


def _written(value: object) -> "exp.Expr":
    from sqlglot import exp

    match value:
        case None:
            return exp.null()
        case bool():
            return exp.true() if value else exp.false()
        case int() | Decimal():
            return exp.Literal.number(f"{value:f}" if isinstance(value, Decimal) else str(value))
        case datetime():
            return cast(literal(value.isoformat(" ")), "TIMESTAMP")
        case date():
            return cast(literal(value.isoformat()), "DATE")
        case list() | tuple():
            return exp.Array(expressions=[_written(item) for item in value])
        case _:
            return literal(str(value))
