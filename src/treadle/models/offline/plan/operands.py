"""Tools that are one operation on two numbers, such as `subtract(a, b)`: which one, and which number goes where."""

import re

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.words import parts
from treadle.models.offline.plan.toolbox import KnownTool

_OPERANDS = word_set(
    "a b x y n m p q first second left right num num1 num2 number number1 number2 value value1 value2 operand operand1 "
    "operand2 dividend divisor numerator denominator base exponent minuend subtrahend addend augend summand factor"
)
_SIGNS = {
    "+": word_set("add adds addition plus sum"),
    "-": word_set("subtract subtracts subtraction minus difference"),
    "*": word_set("multiply multiplies multiplication times product mul"),
    "/": word_set("divide divides division quotient div"),
    "**": word_set("power pow exponent exponentiate"),
    "%": word_set("mod modulo modulus remainder"),
}
_BINARY = re.compile(r"^\(?\s*(-?[\d.]+)\s*(\*\*|[-+*/%])\s*(-?[\d.]+)\s*\)?$")


def operation_of(tool: KnownTool) -> str | None:
    """The sign of the operation that a tool carries out on two numbers; None if it is no such tool."""
    plain = all(param.shape == "number" and set(parts(param.name)) <= _OPERANDS for param in tool.params)
    if len(tool.params) != 2 or not plain:
        return None
    named = {*parts(tool.name)}
    return next((sign for sign, words in _SIGNS.items() if named & words), None)


def operands(tool: KnownTool, expression: str | None) -> tuple[str, str] | None:
    """The numbers for a tool's two parameters, in their order; None unless `expression` is that one operation."""
    match = _BINARY.match(expression or "")
    if match is None or match[2] != operation_of(tool):
        return None
    first, second = (param.name for param in tool.params)
    turned = re.search(r"(?:from|by)\s+`?(\w+)", tool.spec.description)
    named = re.search(
        rf"(?:subtracts?|divides?)\s+(?:the\s+)?`?(\w+)`?\s+(from|by)\s+`?{re.escape(first)}\b",
        tool.spec.description,
        re.I,
    )
    backwards = named is not None and named[1] == second and named[2] == "by"
    if (
        turned is not None
        and turned[1] == second
        and re.search(rf"subtracts?\s+`?{re.escape(first)}\b", tool.spec.description, re.I)
    ):
        backwards = True
    return (match[3], match[1]) if backwards else (match[1], match[3])
