"""A calculator that reads expressions with `ast` and never evaluates code.

Arithmetic is exact: numbers are fractions, so 0.1 + 0.2 is 0.3 and 1/3*3 is 1. What cannot be written exactly (1/3,
sqrt(2), sin(1)) is rounded to 15 significant digits and marked `exact: false`. `round` rounds halves away from zero, as
in commerce. Everything is bounded before it is computed: the length of the text, the depth of nesting, the size of
every number.
"""

import ast
import decimal
import math
import re
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Annotated, NamedTuple, NoReturn

from pydantic import WithJsonSchema
from typing_extensions import TypedDict

from treadle.tools.errors import ToolError, nearest
from treadle.tools.function import tool

_MOST_CHARACTERS = 1_000
_MOST_DEPTH = 60
_MOST_BITS = 4_096
_MOST_EXPONENT = 400
_DIGITS = 15

_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**", "\u00a0": " ", "\u202f": " "})
_ALLOWED = re.compile(r"[0-9A-Za-z_.,+\-*/%()\s]*")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_TIMES = re.compile(r"(?<=[\d)])(?<!\b0)\s*[xX]\s*(?=[\d(.])|(?<=[\d)])\s+[xX]\s+(?=[\d(.])")
_GLUED = re.compile(r"\d(?![eE][+-]?\d|_\d)[A-Za-z_]")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+))?")


class Calculation(TypedDict):
    """A result: the expression as it was read, its value, and whether the value is exact or rounded to 15 digits."""

    expression: str
    result: int | float | Annotated[Decimal, WithJsonSchema({"type": "string", "format": "decimal"})]
    exact: bool


class _Value(NamedTuple):
    number: Fraction
    exact: bool


@tool(effect="read", timeout=10.0)
async def calculator(expression: str) -> Calculation:
    """Calculates an arithmetic expression exactly.

    Knows + - * / // % ** and parentheses; the functions sqrt, abs, round, min, max, sum, floor, ceil, log, ln, log10,
    exp, sin, cos, tan (angles in radians); the constants pi and e.

    Args:
        expression: the expression, such as "25 * 4 + 10" or "round(1234.5 * 0.19, 2)".
    """
    text = read(expression)
    value = _evaluate(text)
    number, exact = _shown(value)
    return {"expression": text, "result": number, "exact": exact}


def read(expression: str) -> str:
    """The expression in Python's notation: ×, ÷, ^, "x" between numbers and thousands separators are understood.

    Commas are thousands separators only where no function is called, as there they separate arguments.
    """
    if len(expression) > _MOST_CHARACTERS:
        raise ToolError(
            f"the expression has {len(expression):,} characters; at most {_MOST_CHARACTERS:,} are allowed: split it",
            argument="expression",
        )
    text = " ".join(expression.translate(_SIGNS).split()).strip("=? ")
    text = _TIMES.sub(" * ", text)
    if not re.search(r"[A-Za-z]\s*\(", text):
        text = _THOUSANDS.sub(lambda found: found.group().replace(",", ""), text)
    if not text:
        _refuse("the expression is empty", expression)
    if not _ALLOWED.fullmatch(text):
        strange = "".join(dict.fromkeys(letter for letter in text if not _ALLOWED.fullmatch(letter)))
        _refuse(
            f"{strange[:20]!r} cannot be used in an expression; write numbers, + - * / // % **, and functions",
            expression,
        )
    if glued := _GLUED.search(text):
        _refuse(f"{glued.group()!r} is not clear; write an operator between numbers and names", expression)
    return text


def _evaluate(text: str) -> _Value:
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        place = f" at character {error.offset}" if error.offset else ""
        _refuse(f"the expression cannot be read{place}: {error.msg}", text)
    except (ValueError, MemoryError, RecursionError):
        _refuse("the expression is nested too deeply", text)
    try:
        return _value(tree, text, 0)
    except ZeroDivisionError:
        _refuse("division by zero", text)
    except OverflowError:
        _too_large(text)


def _value(node: ast.AST, text: str, depth: int) -> _Value:
    if depth > _MOST_DEPTH:
        _refuse(f"the expression is nested more than {_MOST_DEPTH} levels deep", text)
    match node:
        case ast.Constant():
            return _literal(ast.get_source_segment(text, node) or "", text)
        case ast.UnaryOp(op=ast.USub()):
            value = _value(node.operand, text, depth + 1)
            return _Value(-value.number, value.exact)
        case ast.UnaryOp(op=ast.UAdd()):
            return _value(node.operand, text, depth + 1)
        case ast.BinOp():
            return _chain(node, text, depth)
        case ast.Call(func=ast.Name(id=name), keywords=[]):
            values = [_value(argument, text, depth + 1) for argument in node.args]
            return _bounded(_apply(name, values, text), text)
        case ast.Name(id=name):
            if name.lower() in _CONSTANTS:
                return _CONSTANTS[name.lower()]
            _unknown("name", name, list(_CONSTANTS))
        case ast.Call():
            _refuse("only named functions can be called; write an operator, such as *, before a parenthesis", text)
        case ast.Tuple():
            _refuse("a comma separates the arguments of a function only", text)
        case _:
            part = ast.get_source_segment(text, node) or text
            _refuse(f"{part[:50]!r} is not arithmetic", text)


def _chain(node: ast.BinOp, text: str, depth: int) -> _Value:
    """A chain such as 1 + 2 + 3, however long, from its left end; a tree of it is as deep as the chain is long."""
    rest: list[ast.BinOp] = []
    first: ast.expr = node
    while isinstance(first, ast.BinOp):
        rest.append(first)
        first = first.left
    value = _value(first, text, depth + 1)
    for link in reversed(rest):
        value = _bounded(_combine(link.op, value, _value(link.right, text, depth + 1), text), text)
    return value


def _literal(written: str, text: str) -> _Value:
    number = _NUMBER.fullmatch(written.replace("_", ""))
    if number is None:
        _refuse(f"{written[:50]!r} is not a number", text)
    if number.group(2) is not None and (len(number.group(2)) > 5 or abs(int(number.group(2))) > _MOST_EXPONENT):
        _too_large(text)
    return _bounded(_Value(Fraction(number.group()), True), text)


def _combine(operator: ast.operator, left: _Value, right: _Value, text: str) -> _Value:
    exact = left.exact and right.exact
    a, b = left.number, right.number
    match operator:
        case ast.Add():
            return _Value(a + b, exact)
        case ast.Sub():
            return _Value(a - b, exact)
        case ast.Mult():
            return _Value(a * b, exact)
        case ast.Div():
            return _Value(a / b, exact)
        case ast.FloorDiv():
            return _Value(Fraction(a // b), exact)
        case ast.Mod():
            return _Value(a % b, exact)
        case ast.Pow():
            return _power(left, right, text)
        case _:
            _refuse("only + - * / // % ** can be calculated", text)


def _power(left: _Value, right: _Value, text: str) -> _Value:
    exact = left.exact and right.exact
    a, b = left.number, right.number
    if b.denominator == 1:
        if a in (0, 1, -1):
            return _Value(a ** int(b % 2 if a == -1 else b), exact)
        if _bits(a) * abs(b.numerator) > _MOST_BITS:
            return _long_power(a, b.numerator, text)
        return _Value(Fraction(a ** int(b)), exact)
    if a < 0:
        _refuse("a negative number has no real power with a fraction", text)
    if b == Fraction(1, 2):
        return _square_root([left], text)
    return _rounded(float(a) ** float(b))


def _long_power(a: Fraction, exponent: int, text: str) -> _Value:
    """A power with too many digits to be exact, as of compound interest: to 40 digits, of which 9 may be lost."""
    if abs(exponent) > 10**9:
        _too_large(text)
    lost = [decimal.Overflow, decimal.Underflow]
    context = Context(prec=40, Emax=_MOST_EXPONENT, Emin=-_MOST_EXPONENT, traps=lost)
    try:
        number = context.divide(Decimal(a.numerator), Decimal(a.denominator))
        return _Value(Fraction(context.power(number, exponent)), False)
    except tuple(lost):
        _too_large(text)


def _apply(name: str, values: list[_Value], text: str) -> _Value:
    known = name.lower()
    if known not in _FUNCTIONS:
        _unknown("function", name, list(_FUNCTIONS))
    fewest, most, function = _FUNCTIONS[known]
    if not fewest <= len(values) <= most:
        takes = f"{fewest}" if fewest == most else f"{fewest} or more" if most > 2 else f"{fewest} or {most}"
        _refuse(f"{known} takes {takes} numbers, not {len(values)}", text)
    return function(values, text)


def _square_root(values: list[_Value], text: str) -> _Value:
    number, exact = values[0]
    if number < 0:
        _refuse("a negative number has no real square root", text)
    top, bottom = math.isqrt(number.numerator), math.isqrt(number.denominator)
    if top * top == number.numerator and bottom * bottom == number.denominator:
        return _Value(Fraction(top, bottom), exact)
    return _rounded(math.sqrt(number))


def _round(values: list[_Value], text: str) -> _Value:
    places = values[1].number if len(values) > 1 else Fraction(0)
    if places.denominator != 1 or abs(places) > 100:
        _refuse("round takes a whole number of places from -100 to 100", text)
    number, exact = values[0]
    scale = Fraction(10) ** int(places)
    whole = math.floor(abs(number) * scale + Fraction(1, 2))
    return _Value((whole if number >= 0 else -whole) / scale, exact)


def _logarithm(values: list[_Value], text: str) -> _Value:
    parts = []
    for number, _ in values:
        if number <= 0:
            _refuse("only numbers above 0 have a logarithm", text)
        parts.append(math.log(number.numerator) - math.log(number.denominator))
    if len(parts) == 1:
        return _rounded(parts[0])
    return _nearly_whole(parts[0] / parts[1], values[1].number, values[0].number)


def _logarithm_to_ten(values: list[_Value], text: str) -> _Value:
    return _logarithm([values[0], _Value(Fraction(10), True)], text)


def _nearly_whole(result: float, root: Fraction, number: Fraction) -> _Value:
    """log(1000, 10) is 3, not 2.9999999999999996."""
    whole = round(result)
    if abs(result - whole) < 1e-9 and abs(whole) * _bits(root) <= _MOST_BITS and root**whole == number:
        return _Value(Fraction(whole), True)
    return _rounded(result)


def _least(values: list[_Value], text: str) -> _Value:
    return _Value(min(value.number for value in values), all(value.exact for value in values))


def _greatest(values: list[_Value], text: str) -> _Value:
    return _Value(max(value.number for value in values), all(value.exact for value in values))


def _sum(values: list[_Value], text: str) -> _Value:
    total = Fraction(0)
    for value in values:
        total = _bounded(_Value(total + value.number, True), text).number
    return _Value(total, all(value.exact for value in values))


def _absolute(values: list[_Value], text: str) -> _Value:
    return _Value(abs(values[0].number), values[0].exact)


def _floor(values: list[_Value], text: str) -> _Value:
    return _Value(Fraction(math.floor(values[0].number)), values[0].exact)


def _ceil(values: list[_Value], text: str) -> _Value:
    return _Value(Fraction(math.ceil(values[0].number)), values[0].exact)


def _by_float(function: Callable[[float], float]) -> Callable[[list[_Value], str], _Value]:
    def apply(values: list[_Value], text: str) -> _Value:
        result = function(float(values[0].number))
        return _rounded(0.0 if abs(result) < 1e-15 and function is not math.exp else result)

    return apply


_FUNCTIONS: dict[str, tuple[int, int, Callable[[list[_Value], str], _Value]]] = {
    "sqrt": (1, 1, _square_root),
    "abs": (1, 1, _absolute),
    "round": (1, 2, _round),
    "min": (1, 1_000, _least),
    "max": (1, 1_000, _greatest),
    "sum": (1, 1_000, _sum),
    "floor": (1, 1, _floor),
    "ceil": (1, 1, _ceil),
    "log": (1, 2, _logarithm),
    "ln": (1, 1, _logarithm),
    "log10": (1, 1, _logarithm_to_ten),
    "exp": (1, 1, _by_float(math.exp)),
    "sin": (1, 1, _by_float(math.sin)),
    "cos": (1, 1, _by_float(math.cos)),
    "tan": (1, 1, _by_float(math.tan)),
}
_CONSTANTS = {"pi": _Value(Fraction(math.pi), False), "e": _Value(Fraction(math.e), False)}


def _rounded(number: float) -> _Value:
    if not math.isfinite(number):
        raise OverflowError
    return _Value(Fraction(number), False)


def _bits(number: Fraction) -> int:
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def _bounded(value: _Value, text: str) -> _Value:
    if _bits(value.number) > _MOST_BITS:
        _too_large(text)
    return value


def _shown(value: _Value) -> tuple[int | float | Decimal, bool]:
    """The number as JSON writes it without loss; a decimal (a JSON string) where a float would lose digits."""
    number, exact = value
    if exact and number.denominator == 1:
        return number.numerator, True
    if exact and (places := _places(number.denominator)) is not None:
        scaled = number * 10**places
        decimal = Decimal(f"{scaled.numerator}E-{places}")
        written = float(decimal)
        return (written if Fraction(repr(written)) == number else Decimal(f"{decimal:f}")), True
    context = Context(prec=_DIGITS)
    decimal = context.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize(context)
    written = float(decimal)
    if not math.isfinite(written) or Fraction(repr(written)) != Fraction(decimal):
        return decimal, False
    return (int(written) if written.is_integer() and abs(written) < 1e15 else written), False


def _places(denominator: int) -> int | None:
    """How many decimal places 1/denominator has; None if it never ends, or has more than 100."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0 and fives <= 100:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    return places if rest == 1 and places <= 100 else None


def _refuse(message: str, text: str) -> NoReturn:
    raise ToolError(message, argument="expression", given=text[:200])


def _too_large(text: str) -> NoReturn:
    _refuse(f"a number in it would be too large: at most {_MOST_BITS:,} bits (about 1,200 digits) are calculated", text)


def _unknown(kind: str, name: str, known: list[str]) -> NoReturn:
    like = nearest(name, known)
    raise ToolError(
        f"there is no {kind} {name[:50]!r} (there are: {', '.join(known)})",
        argument="expression",
        given=name[:50],
        nearest=like,
        available=known,
    )
