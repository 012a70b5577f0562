"""Proof: a statement as text that can be run again, with its values in it.

For people to read and to run in DuckDB; the engine itself never sees a value in a statement's text.
"""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from itertools import groupby

from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.terms import cast, literal


class Proof:
    """A statement that proves something; it is written out when somebody asks for it, which few do.

    Args:
        make: returns the text.
    """

    __slots__ = ("_make", "_text")

    def __init__(self, make: Callable[[], str]) -> None:
        self._make, self._text = make, ""

    @property
    def text(self) -> str:
        """The statement; empty if there is none."""
        self._text = self._text or self._make()
        return self._text

    def __reduce__(self) -> "tuple[Callable[[str], Proof], tuple[str]]":
        # How it is written out hangs on the statement and all that made it, which cannot be pickled.
        return _written_out, (self.text,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Proof) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Proof({self.text!r})"


def _written_out(text: str) -> Proof:
    return Proof(lambda: text)


NOTHING = Proof(lambda: "")
"""The proof of what is said of the question alone."""


def proof_of(
    statement: "exp.Expr", parameters: Parameters | None = None, dialect: str = "duckdb", about: str = ""
) -> Proof:
    """Returns the statement as a proof, its parameters' values written out.

    Args:
        statement: the statement, which is not changed from now on.
        parameters: its values.
        dialect: whose SQL, by SQLGlot's name of it.
        about: what is said of it, as a comment before it.
    """
    comment = f"-- {about}\n" if about else ""
    return Proof(lambda: comment + _text(statement, parameters, dialect))


def together(*proofs: Proof) -> Proof:
    """Returns several statements, one after the other."""
    return Proof(lambda: ";\n".join(proof.text for proof in proofs))


def _text(statement: "exp.Expr", parameters: Parameters | None, dialect: str) -> str:
    values = {} if parameters is None else parameters.values

    def filled(node: "exp.Expr") -> "exp.Expr":
        if isinstance(node, exp.Placeholder) and node.name in values:
            node = _written(values[node.name])
        return _seen(node.this) if isinstance(node, exp.Literal) and node.is_string else node

    return str(statement.transform(filled).sql(dialect=dialect, pretty=True))


def _seen(text: str) -> "exp.Expr":
    """A text with the signs that nobody could see or copy as calls of chr()."""
    whole: exp.Expr | None = None
    for told, signs in groupby(text, key=str.isprintable):
        run = "".join(signs)
        for piece in [literal(run)] if told else [exp.func("chr", literal(ord(sign))) for sign in run]:
            whole = piece if whole is None else exp.DPipe(this=whole, expression=piece)
    found = literal(text) if whole is None else whole
    return exp.paren(found) if isinstance(found, exp.DPipe) else found


def _written(value: object) -> "exp.Expr":
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
