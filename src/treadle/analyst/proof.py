"""Proof: a statement as text that can be run again, with its values in it.

For people to read and to run in DuckDB; the engine itself never sees a value in a statement's text.
"""

from datetime import date, datetime
from decimal import Decimal
from itertools import groupby
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
        if isinstance(node, exp.Placeholder) and node.name in values:
            node = _written(values[node.name])
        return _seen(node.this) if isinstance(node, exp.Literal) and node.is_string else node

    return str(statement.transform(filled).sql(dialect=dialect, pretty=True))


def _seen(text: str) -> "exp.Expr":
    """A text with the signs that nobody could see or copy as calls of chr()."""
    from sqlglot import exp

    whole: exp.Expr | None = None
    for told, signs in groupby(text, key=str.isprintable):
        run = "".join(signs)
        for piece in [literal(run)] if told else [exp.func("chr", literal(ord(sign))) for sign in run]:
            whole = piece if whole is None else exp.DPipe(this=whole, expression=piece)
    found = literal(text) if whole is None else whole
    return exp.paren(found) if isinstance(found, exp.DPipe) else found


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
