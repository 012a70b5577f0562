"""Expressions as text: what an analyst writes in a declaration, such as `quantity * unit_price`.

SQLGlot reads it; what is not on the list is refused by name, and what remains is the tree of `expression`, so that
nothing of the text itself reaches an engine. Pure.
"""

from decimal import Decimal
from functools import lru_cache
from typing import Literal, NoReturn

from treadle.analyst.declared.expression import (
    Absolute,
    Arithmetic,
    Compared,
    Conditional,
    Expression,
    FirstFilled,
    Joined,
    Missing,
    Negative,
    Number,
    Operand,
    Rounded,
    RowCondition,
    Term,
    factors_of,
    parts_of,
)
from treadle.analyst.sql.lazy import exp

ALLOWED = (
    "numbers, columns (in double quotes where the name is not a plain word), + - * and parentheses, abs(x), "
    "round(x, places), coalesce(x, y), if(condition, x, y) and case when … then … else … end, where a condition "
    "compares a column with a number or a 'text' by =, !=, <, <=, >, >=, in or is null, joined by and, or, not"
)
_LONGEST = 1000
_DEEPEST = 60
_MOST_DIGITS = 30
MOST_PLACES = 12


@lru_cache(maxsize=256)
def parse_expression(text: str) -> Expression:
    """Reads an expression such as `quantity * unit_price`. Raises ValueError, which says what is allowed."""
    term = _term(_parsed(text), 0)
    parts = list(parts_of(term))
    amounts = [part.column for part in parts if isinstance(part, Operand)]
    compared = [part for part in parts if isinstance(part, Compared)]
    amounts += [part.column for part in compared if not part.textual]
    texts = [part.column for part in compared if part.textual]
    named = [part.column for part in parts if isinstance(part, Operand | Compared | Missing)]
    if not named:
        raise ValueError(f"the expression {text[:80]!r} names no column")
    read, compared_as_text, every = (tuple(dict.fromkeys(names)) for names in (amounts, texts, named))
    return Expression(term, read, compared_as_text, every, factors_of(term))


def _parsed(text: str) -> "exp.Expr":
    from sqlglot import parse
    from sqlglot.errors import SqlglotError

    if len(text) > _LONGEST or "\0" in text:
        raise ValueError(f"an expression has {_LONGEST:,} characters at most, all of them printable")
    try:
        found = parse(text, dialect="duckdb")
    except SqlglotError as error:
        raise ValueError(f"{text[:80]!r} is not an expression; it may have {ALLOWED}") from error
    except RecursionError as error:
        raise ValueError(f"the expression {text[:40]!r}… is nested too deeply") from error
    if len(found) != 1 or found[0] is None:
        raise ValueError(f"{text[:80]!r} is not one expression; it may have {ALLOWED}")
    return found[0]


def _term(node: "exp.Expr", depth: int) -> Term:
    if depth > _DEEPEST:
        raise ValueError("the expression is nested too deeply")
    below = depth + 1
    match node:
        case exp.Paren():
            return _term(_only(node, "this"), below)
        case exp.Literal() if not node.is_string:
            return Number(_number(node))
        case exp.Column():
            return Operand(_column(node))
        case exp.Add() | exp.Sub() | exp.Mul():
            _only(node, "this", "expression")
            op: Literal["+", "-", "*"] = "+" if isinstance(node, exp.Add) else "-" if isinstance(node, exp.Sub) else "*"
            return Arithmetic(op, _term(node.this, below), _term(node.expression, below))
        case exp.Neg():
            return Negative(_term(_only(node, "this"), below))
        case exp.Abs():
            return Absolute(_term(_only(node, "this"), below))
        case exp.Round():
            return _rounded(node, below)
        case exp.Coalesce():
            _only(node, "this", "expressions")
            return FirstFilled(tuple(_term(item, below) for item in (node.this, *node.expressions)))
        case exp.If():
            _only(node, "this", "true", "false")
            return Conditional(
                ((_holds(node.this, below), _branch(node.args["true"], below)),),
                _branch(node.args.get("false"), below),
            )
        case exp.Case():
            return _case(node, below)
        case _:
            _refuse(node)


def _rounded(node: "exp.Round", depth: int) -> Rounded:
    _only(node, "this", "decimals")
    places = node.args.get("decimals") or exp.Literal.number(0)
    if not (isinstance(places, exp.Literal) and not places.is_string and str(places.this) in _PLACES):
        raise ValueError(f"round takes a number of decimals from 0 to {MOST_PLACES}, not {places.sql('duckdb')}")
    return Rounded(_term(node.this, depth), int(places.this))


_PLACES = tuple(str(places) for places in range(MOST_PLACES + 1))


def _case(node: "exp.Case", depth: int) -> Conditional:
    _only(node, "this", "ifs", "default")
    cases = []
    for each in node.args["ifs"]:
        _only(each, "this", "true")
        wanted = each.this if node.this is None else exp.EQ(this=node.this.copy(), expression=each.this.copy())
        cases.append((_holds(wanted, depth), _branch(each.args["true"], depth)))
    return Conditional(tuple(cases), _branch(node.args.get("default"), depth))


def _branch(node: "exp.Expr | None", depth: int) -> Term | None:
    return None if node is None or isinstance(node, exp.Null) else _term(node, depth)


def _holds(node: "exp.Expr", depth: int, negated: bool = False) -> RowCondition:
    """A condition, every `not` moved inwards."""
    if depth > _DEEPEST:
        raise ValueError("the expression is nested too deeply")
    below = depth + 1
    match node:
        case exp.Paren():
            return _holds(_only(node, "this"), below, negated)
        case exp.Not():
            return _holds(_only(node, "this"), below, not negated)
        case exp.And() | exp.Or():
            _only(node, "this", "expression")
            op: Literal["and", "or"] = "and" if isinstance(node, exp.And) != negated else "or"
            return Joined(op, (_holds(node.this, below, negated), _holds(node.expression, below, negated)))
        case exp.Is() if isinstance(node.expression, exp.Null):
            _only(node, "this", "expression")
            return Missing(_column(node.this), negated)
        case exp.In():
            _only(node, "this", "expressions")
            return _compared(node.this, "=", node.expressions, negated)
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            _only(node, "this", "expression")
            return _ordered(node, negated)
        case exp.Column():
            raise ValueError(f"{node.sql('duckdb')!r} stands where a condition belongs, such as {node.name} = 'H'")
        case _:
            _refuse(node)


Op = Literal["=", "<", "<=", ">", ">="]


def _ordered(node: "exp.Expr", negated: bool) -> Compared:
    ops: dict[type[exp.Expr], Op] = {exp.EQ: "=", exp.NEQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
    turned: dict[Op, Op] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
    op, column, value = ops[type(node)], node.this, node.expression
    if not isinstance(column, exp.Column):
        op, column, value = turned[op], value, column
    return _compared(column, op, [value], negated != isinstance(node, exp.NEQ))


def _compared(column: "exp.Expr", op: Op, values: "list[exp.Expr]", negated: bool) -> Compared:
    name = _column(column)
    found = [_constant(value, name) for value in values]
    numbers = tuple(value for value in found if isinstance(value, Decimal))
    texts = tuple(value for value in found if isinstance(value, str))
    if not found or (numbers and texts):
        raise ValueError(f"{name!r} must be compared with numbers or with texts, at least one of them, not with both")
    return Compared(name, op, numbers or texts, negated)


def _constant(node: "exp.Expr", column: str) -> Decimal | str:
    if isinstance(node, exp.Column):
        told = node.sql("duckdb")
        raise ValueError(
            f"{column!r} is compared with {told}, which is a column; a text stands in single quotes: '{node.name}'"
        )
    if isinstance(node, exp.Null):
        raise ValueError(f"nothing is equal to null; write '{column} is null'")
    if isinstance(node, exp.Neg):
        return -_number(_only(node, "this"))
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else _number(node)
    _refuse(node)


def _number(node: "exp.Expr") -> Decimal:
    if not isinstance(node, exp.Literal) or node.is_string:
        _refuse(node)
    number = Decimal(str(node.this))
    if abs(number.adjusted()) < _MOST_DIGITS:
        plain = Decimal(format(number, "f"))
        if Number(plain).digits <= _MOST_DIGITS:
            return plain
    raise ValueError(f"the number {node.this[:40]} has more than {_MOST_DIGITS} digits")


def _column(node: "exp.Expr") -> str:
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        _refuse(node)
    _only(node, "this")
    return str(node.name)


def _only(node: "exp.Expr", *names: str) -> "exp.Expr":
    """The node's first part. Raises ValueError if it has more than those named: an option that would be lost."""
    told = {name for name, value in node.args.items() if value not in (None, False, [])}
    if told - set(names):
        _refuse(node)
    found: exp.Expr = node.args[names[0]]
    return found


def _refuse(node: "exp.Expr") -> NoReturn:
    told = node.sql("duckdb")
    if isinstance(node, exp.Div | exp.IntDiv):
        raise ValueError(
            f"{told[:80]!r} divides, which is not exact; multiply instead, by 0.01 for a division by 100, or take the "
            f"quotient of two measures where it is shown"
        )
    raise ValueError(f"{told[:80]!r} is not allowed in an expression; it may have {ALLOWED}")
