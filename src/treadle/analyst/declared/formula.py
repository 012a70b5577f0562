"""Formula: an expression in the words of an engine, how many digits it needs, and how far it may be off.

The two engines that compute one are the embedded one (`computed`) and a database (`remote_amounts`). Pure.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, Protocol, assert_never

from msgspec import Struct

from treadle.analyst.declared.expression import (
    Absolute,
    Arithmetic,
    Compared,
    Conditional,
    FirstFilled,
    Joined,
    Missing,
    Negative,
    Number,
    Operand,
    Rounded,
    RowCondition,
    Term,
)
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import compared


class Words(Protocol):
    """How an engine spells what a formula is made of."""

    def amount(self, column: str) -> "exp.Expr":
        """The amount in a column, NULL for none."""

    def text(self, column: str) -> "exp.Expr":
        """The text in a column, to be compared byte by byte."""

    def value(self, column: str) -> "exp.Expr":
        """What is in a column, only to see whether there is anything."""

    def number(self, number: Number) -> "exp.Expr":
        """A number, exact."""

    def constant(self, text: str) -> "exp.Expr":
        """A text, as a bound value or safely quoted."""

    def rounded(self, value: "exp.Expr", places: int) -> "exp.Expr":
        """A value at so many decimals."""

    def scale(self, term: Term) -> int | None:
        """How many decimals a term has, for an engine that must be told to keep them all; None for others."""

    def level(self, value: "exp.Expr", scale: int) -> "exp.Expr":
        """A value with more decimals."""

    def rough(self, value: "exp.Expr") -> "exp.Expr":
        """A value as a floating-point number, if it is to be one before it is multiplied for an estimate."""


def formula(term: Term, words: Words) -> "exp.Expr":
    """Returns the formula in the words of an engine."""
    match term:
        case Number():
            return words.number(term)
        case Operand():
            return words.amount(term.column)
        case Arithmetic():
            kinds: dict[str, type[exp.Expr]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}
            parts = [term.left, term.right]
            left, right = [formula(part, words) for part in parts] if term.op == "*" else _level(parts, words)
            return exp.paren(kinds[term.op](this=left, expression=right), copy=False)
        case Negative():
            return exp.paren(exp.Neg(this=formula(term.value, words)), copy=False)
        case Absolute():
            return exp.Abs(this=formula(term.value, words))
        case Rounded():
            return words.rounded(formula(term.value, words), term.places)
        case FirstFilled():
            first, *rest = _level(term.values, words)
            return exp.Coalesce(this=first, expressions=rest)
        case Conditional():
            terms = term.terms
            level = dict(zip(terms, _level(terms, words), strict=True))
            return chosen(term, words, lambda value: level[value].copy())
        case _:
            assert_never(term)


def chosen(choice: Conditional, words: Words, spelled: "Callable[[Term], exp.Expr | None]") -> "exp.Expr":
    """Returns a choice in the words of an engine, each of its terms as `spelled` has it."""

    def branch(value: Term | None) -> exp.Expr:
        return (None if value is None else spelled(value)) or exp.null()

    ifs = [exp.If(this=_condition(condition, words), true=branch(value)) for condition, value in choice.cases]
    return exp.Case(ifs=ifs, default=None if choice.otherwise is None else branch(choice.otherwise))


def _condition(condition: RowCondition, words: Words) -> "exp.Expr":
    match condition:
        case Compared():
            return _comparison(condition, words)
        case Missing():
            missing = exp.Is(this=words.value(condition.column), expression=exp.null())
            return exp.Not(this=missing) if condition.negated else missing
        case Joined():
            join = exp.and_ if condition.op == "and" else exp.or_
            return exp.paren(join(*(_condition(part, words) for part in condition.parts), copy=False), copy=False)
        case _:
            assert_never(condition)


def _comparison(found: Compared, words: Words) -> "exp.Expr":
    column, *values = (
        [words.text(found.column), *(words.constant(str(item)) for item in found.values)]
        if found.textual
        else _level(found.terms, words)
    )
    holds: exp.Expr
    if len(values) > 1:
        holds = exp.In(this=column, expressions=values)
    else:
        holds = compared(found.op, column, values[0])
    if not found.negated:
        return holds
    missing = exp.Is(this=column.copy(), expression=exp.null())
    return exp.paren(exp.or_(missing, exp.Not(this=exp.paren(holds, copy=False)), copy=False), copy=False)


def _level(terms: Sequence[Term], words: Words) -> "list[exp.Expr]":
    """Terms that are added up, compared or chosen from, all with the decimals of the one that has the most."""
    scales = [words.scale(term) for term in terms]
    most = max(scale or 0 for scale in scales)
    values = [formula(term, words) for term in terms]
    return [
        value if scale is None or scale == most else words.level(value, most)
        for value, scale in zip(values, scales, strict=True)
    ]


class Shape(Struct, frozen=True):
    """How many digits a decimal has at most, and how many of them are decimals; None where that is not known."""

    digits: int | None
    scale: int | None

    @property
    def whole(self) -> int | None:
        """The digits before the decimal sign."""
        return None if self.digits is None or self.scale is None else self.digits - self.scale


Operation = Literal["+", "*", "|"]
"""What is made of several values: their sum or difference, their product, or one of them."""

Fits = Callable[[Operation, Sequence[Shape], Shape], None]
"""Raises an error if an engine does not make this shape of others exactly, or say that it cannot."""


def shape(term: Term, columns: Callable[[str], Shape], fits: Fits) -> Shape:
    """Returns the shape of a term whose every digit is kept.

    Args:
        term: the term.
        columns: says the shape of a column.
        fits: is asked for every operation.
    """

    def one_of(terms: Sequence[Term]) -> Shape:
        shapes = [shape(value, columns, fits) for value in terms]
        found = _widest(shapes)
        fits("|", shapes, found)
        return found

    match term:
        case Number():
            return Shape(term.digits, term.scale)
        case Operand():
            return columns(term.column)
        case Arithmetic():
            left, right = shape(term.left, columns, fits), shape(term.right, columns, fits)
            found = _product(left, right) if term.op == "*" else _widest([left, right], 1)
            fits("*" if term.op == "*" else "+", (left, right), found)
            return found
        case Negative() | Absolute():
            return shape(term.value, columns, fits)
        case Rounded():
            value = shape(term.value, columns, fits)
            scale = term.places if value.scale is None else min(value.scale, term.places)
            return Shape(None if value.whole is None else value.whole + 1 + scale, scale)
        case FirstFilled():
            return one_of(term.values)
        case Conditional():
            for comparison in _comparisons(condition for condition, _ in term.cases):
                one_of(comparison.terms)
            return one_of(term.terms)
        case _:
            assert_never(term)


def _comparisons(conditions: Iterable[RowCondition]) -> Iterator[Compared]:
    """Those that compare amounts."""
    for condition in conditions:
        if isinstance(condition, Joined):
            yield from _comparisons(condition.parts)
        elif isinstance(condition, Compared) and not condition.textual:
            yield condition


def _product(left: Shape, right: Shape) -> Shape:
    return Shape(
        None if left.digits is None or right.digits is None else left.digits + right.digits,
        None if left.scale is None or right.scale is None else left.scale + right.scale,
    )


def _widest(shapes: list[Shape], carried: int = 0) -> Shape:
    scales = [each.scale for each in shapes if each.scale is not None]
    wholes = [each.whole for each in shapes if each.whole is not None]
    scale = max(scales, default=0) if len(scales) == len(shapes) else None
    digits = None if scale is None or len(wholes) < len(shapes) else max(wholes, default=0) + scale + carried
    return Shape(digits, scale)


class Doubts(Protocol):
    """How far an engine's values may be off, as a multiple of the relative error of a floating-point number."""

    def of_amount(self, column: str) -> "exp.Expr | None":
        """That of an amount; None if it is exact."""

    def of_number(self, number: Number) -> "exp.Expr | None":
        """That of a number."""


def doubt(term: Term, words: Words, doubts: Doubts) -> "exp.Expr | None":
    """Returns how far a term may be off, or None if it is exact: the doubts of sums add up, those of a product are
    those of each factor times the other. What rounding and conditions make of a value that is off is left out."""
    match term:
        case Number():
            return doubts.of_number(term)
        case Operand():
            return doubts.of_amount(term.column)
        case Arithmetic():
            parts = [doubt(term.left, words, doubts), doubt(term.right, words, doubts)]
            if term.op == "*":
                others = [formula(term.right, words), formula(term.left, words)]
                parts = [
                    None if part is None else exp.Mul(this=exp.Abs(this=words.rough(other)), expression=part)
                    for part, other in zip(parts, others, strict=True)
                ]
            return _total(parts)
        case Negative() | Absolute() | Rounded():
            return doubt(term.value, words, doubts)
        case FirstFilled():
            found = [doubt(value, words, doubts) for value in term.values]
            return _total([part and exp.Coalesce(this=part, expressions=[exp.Literal.number(0)]) for part in found])
        case Conditional():
            each = {value: doubt(value, words, doubts) for value in term.terms}
            if all(found is None for found in each.values()):
                return None
            return chosen(term, words, lambda value: (each[value] or exp.Literal.number(0)).copy())
        case _:
            assert_never(term)


def _total(parts: "list[exp.Expr | None]") -> "exp.Expr | None":
    found = [part for part in parts if part is not None]
    if len(found) < 2:
        return found[0] if found else None
    total = found[0]
    for more in found[1:]:
        total = exp.paren(exp.Add(this=total, expression=more), copy=False)
    return total
