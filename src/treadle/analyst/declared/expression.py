"""Expressions: a measure as a formula over the columns of its source, as a tree of what is safe and exact.

Nothing else can be said in it. Its neighbours: `expression_text` reads one, `formula` writes it in the words of whoever
computes it. Pure.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Literal, assert_never

from msgspec import Struct


class Number(Struct, frozen=True):
    """A number."""

    value: Decimal

    @property
    def scale(self) -> int:
        """Its decimals."""
        return max(0, -int(self.value.as_tuple().exponent))

    @property
    def digits(self) -> int:
        """Its digits, decimals included."""
        return max(len(self.value.as_tuple().digits), self.scale)


class Operand(Struct, frozen=True):
    """The amount that a column holds."""

    column: str


class Arithmetic(Struct, frozen=True):
    """Two terms added, subtracted or multiplied; none if one of them is none."""

    op: Literal["+", "-", "*"]
    left: "Term"
    right: "Term"


class Negative(Struct, frozen=True):
    """A term with its sign turned."""

    value: "Term"


class Absolute(Struct, frozen=True):
    """A term without its sign."""

    value: "Term"


class Rounded(Struct, frozen=True):
    """A term at `places` decimals, halves away from zero."""

    value: "Term"
    places: int


class FirstFilled(Struct, frozen=True):
    """The first term that has a value."""

    values: "tuple[Term, ...]"


class Conditional(Struct, frozen=True):
    """The term of the first condition that holds, else `otherwise`; None is no value."""

    cases: "tuple[tuple[RowCondition, Term | None], ...]"
    otherwise: "Term | None" = None

    @property
    def terms(self) -> "list[Term]":
        """What it chooses from."""
        found = [*(value for _, value in self.cases), self.otherwise]
        return [term for term in found if term is not None]


Term = Number | Operand | Arithmetic | Negative | Absolute | Rounded | FirstFilled | Conditional


class Compared(Struct, frozen=True):
    """A column against constants, all of them numbers or all text; `=` holds for any of several.

    A row without a value fulfils no comparison, and so every negated one, as in filters.
    """

    column: str
    op: Literal["=", "<", "<=", ">", ">="]
    values: tuple[Decimal, ...] | tuple[str, ...]
    negated: bool = False

    @property
    def textual(self) -> bool:
        """Whether the column is compared as text."""
        return isinstance(self.values[0], str)

    @property
    def terms(self) -> list[Term]:
        """The column and the numbers that it is compared with."""
        numbers = [Number(value) for value in self.values if isinstance(value, Decimal)]
        return [Operand(self.column), *numbers]


class Missing(Struct, frozen=True):
    """A column that has no value; or, negated, that has one."""

    column: str
    negated: bool = False


class Joined(Struct, frozen=True):
    """Conditions of which all must hold, or any."""

    op: Literal["and", "or"]
    parts: "tuple[RowCondition, ...]"


RowCondition = Compared | Missing | Joined


class Expression(Struct, frozen=True):
    """A formula that has been checked.

    Attributes:
        term: the formula.
        amounts: the columns that are read as amounts, each once.
        texts: those that are compared as text.
        columns: all of them.
        factors: how many amounts are multiplied with each other, at most.
    """

    term: Term
    amounts: tuple[str, ...]
    texts: tuple[str, ...]
    columns: tuple[str, ...]
    factors: int


def parts_of(part: Term | RowCondition) -> Iterator[Term | RowCondition]:
    """The tree's parts, itself first."""
    yield part
    below: list[Term | RowCondition]
    match part:
        case Number() | Operand() | Compared() | Missing():
            below = []
        case Arithmetic():
            below = [part.left, part.right]
        case Negative() | Absolute() | Rounded():
            below = [part.value]
        case FirstFilled():
            below = list(part.values)
        case Joined():
            below = list(part.parts)
        case Conditional():
            below = [*(condition for condition, _ in part.cases), *part.terms]
        case _:
            assert_never(part)
    for each in below:
        yield from parts_of(each)


def factors_of(term: Term) -> int:
    """How many amounts are multiplied with each other, at most."""
    match term:
        case Number() | Operand():
            return 1
        case Arithmetic():
            left, right = factors_of(term.left), factors_of(term.right)
            return left + right if term.op == "*" else max(left, right)
        case Negative() | Absolute() | Rounded():
            return factors_of(term.value)
        case FirstFilled():
            return max(map(factors_of, term.values))
        case Conditional():
            return max(map(factors_of, term.terms), default=1)
        case _:
            assert_never(term)
