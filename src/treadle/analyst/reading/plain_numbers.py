"""Plain numbers: text of a measure as a decimal at one look, where it is spelled as programs spell numbers.

Most files are, and telling so takes a fraction of what reading any text with care does. Text of any other spelling
makes the engine raise an error, and its column is read with care then. Builds SQLGlot expressions in DuckDB's terms.
Neighbours: `amounts` (reading with care), `number_spelling` (how people spell).
"""

import re
from collections.abc import Iterator

from treadle.analyst.declared.errors import NOT_PLAIN
from treadle.analyst.declared.packages import engine_version
from treadle.analyst.declared.source import UNKNOWN, Measure, TextFormat
from treadle.analyst.reading.number_spelling import APART, grouped_digits, words_for
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, cast, is_null, literal, matches, try_cast

# The digits of a number that the engine reads in 64 bits, and the most of them after the point.
_DIGITS, _MOST_PLACES = 18, 9
# What stands beside an amount and cannot stand within it, so that it can be taken away wherever it is.
_WORD = re.compile(r"[^\W\d_]+\.?|[€$£¥₹]")
# How many decimals most amounts have.
_USUAL = 2
# The version of the engine that changes a text at a place, which takes less than to look for what is changed.
_OVERLAYS = 2
# Signs that mean themselves in the engine's shortest kind of pattern and are one byte long.
_SIGNS = (".", ",", "'", " ")
# How most numbers are spelled, the most frequent first: how many signs between thousands, and the minus behind or not.
_SHAPES = ((1, False), (0, False), (1, True), (0, True), (2, False))


def plain_number(column: "exp.Expr", form: TextFormat, places: int, measure: Measure) -> "exp.Expr | None":
    """Returns the number that a text is, where one look at it says that it is read whole; else an error.

    Args:
        column: the text.
        form: its signs for decimals and thousands.
        places: at how many decimals it is read.
        measure: what it is an amount of: says what may stand beside it, and how many decimals most numbers have.
    """
    if form.decimal == UNKNOWN or places > _MOST_PLACES:
        return None
    point, most = re.escape(form.decimal), _DIGITS - places
    whole = rf"\d{{1,{most}}}"
    if form.thousands:
        whole = rf"({grouped_digits(form.thousands, str(most // 3 - 1))}|{whole})"
    number = rf"{whole}({point}\d{{0,{places}}})?"
    blank = exp.or_(is_null(column), matches(column, r"[ \t\r\n\x{a0}]*"), copy=False)
    kind = f"DECIMAL({_DIGITS}, {places})"
    decimals = min(places, _USUAL if measure.decimals is None else measure.decimals)
    cases = exp.Case()
    for same, found in _quick(column, form, most, decimals, kind):
        cases = cases.when(same, found, copy=False)
    cases = cases.when(matches(column, rf" *[-+]?{number} *"), cast(_pointed(column, form), kind), copy=False).when(
        matches(column, rf" *{number}- *"),
        exp.Neg(this=cast(_pointed(_unsigned(column), form), kind)),
        copy=False,
    )
    cases = cases.when(blank, exp.null(), copy=False)
    for word in words_for(measure.unit):
        if not _WORD.fullmatch(word):
            continue
        beside = rf" *([-+]?{number}{APART}*{re.escape(word)}|{re.escape(word)}{APART}*[-+]?{number}) *"
        bare = call("replace", call("replace", column, literal(word), literal("")), literal("\u00a0"), literal(""))
        cases = cases.when(matches(column, beside), cast(_pointed(bare, form), kind), copy=False)
    refused = call("error", exp.DPipe(this=literal(NOT_PLAIN), expression=column.copy()))
    return cases.else_(cast(refused, kind), copy=False)


def _quick(
    column: "exp.Expr", form: TextFormat, whole: int, decimals: int, kind: str
) -> "Iterator[tuple[exp.Expr, exp.Expr]]":
    """Looks that take less than those that tell all plain numbers: what holds of a text, and the number it is then.

    Args:
        column: the text.
        form: its signs for decimals and thousands.
        whole: how many digits a number has before the decimal sign at most.
        decimals: how many decimals most numbers have.
        kind: the type that the number takes.
    """
    if form.thousands in _SIGNS and form.decimal in _SIGNS:
        for groups, behind in _SHAPES:
            if 3 * (groups + 1) <= whole:
                shaped = _shaped(column, form, groups, decimals, behind)
                yield shaped, _grouped(column, form, groups, decimals, behind, kind)
    elif form.decimal == ".":
        # As the engine spells it itself.
        found = try_cast(column, f"DECIMAL({whole + decimals}, {decimals})")
        yield exp.EQ(this=cast(found, "VARCHAR"), expression=column.copy()), cast(found.copy(), kind)
    elif not form.thousands and decimals:
        spelled = rf"-?\d{{1,{whole}}}{re.escape(form.decimal)}\d{{{decimals}}}"
        yield matches(column.copy(), spelled), cast(_pointed(column.copy(), form), kind)


def _shaped(column: "exp.Expr", form: TextFormat, groups: int, decimals: int, behind: bool) -> "exp.Expr":
    """Whether a text is a number with so many signs between thousands and so many decimals.

    Such a text is of few lengths, and of each length it has one shape, whose digits the engine finds at their places
    sooner than by a regular expression.
    """
    digit = "[0-9]"
    alone = "[1-9]" if groups else digit
    rest = f"{form.thousands}{digit * 3}" * groups + (f"{form.decimal}{digit * decimals}" if decimals else "")
    signed = [[alone], [digit * 2, f"-{alone}"], [f"[-0-9]{digit * 2}"], [f"-{digit * 3}"]]
    starts = [[alone], [digit * 2], [digit * 3]] if behind else signed
    rest += "-" * behind
    first = 1 + len(rest.replace(digit, "0"))
    found = exp.Case(this=call("strlen", column.copy()))
    for length, shapes in enumerate(starts, first):
        globs = [exp.Glob(this=column.copy(), expression=literal(f"{start}{rest}")) for start in shapes]
        found = found.when(literal(length), exp.or_(*globs, copy=False), copy=False)
    return found


def _grouped(column: "exp.Expr", form: TextFormat, groups: int, decimals: int, behind: bool, kind: str) -> "exp.Expr":
    """The number that such a text is, of type `kind`."""
    # A point between thousands is read as that of decimals, and the number taken a thousand times: one change less.
    thousandth = groups == 1 and form.thousands == "."
    if engine_version() >= _OVERLAYS:
        text = _overlaid(column, form, 0 if thousandth else groups, decimals, behind, "" if thousandth else ".")
    else:
        text = _unsigned(column.copy()) if behind else column.copy()
        if not thousandth:
            text = _pointed(text, form if groups else TextFormat(decimal=form.decimal))
        elif decimals:
            text = call("replace", text, literal(form.decimal), literal(""))
    if thousandth:
        read = cast(text, f"DECIMAL({decimals + 6}, {decimals + 3})")
        found = cast(exp.Mul(this=read, expression=cast(literal(1000), "DECIMAL(4, 0)")), kind)
    else:
        found = cast(text, kind)
    return exp.Neg(this=found) if behind else found


def _overlaid(column: "exp.Expr", form: TextFormat, groups: int, decimals: int, behind: bool, point: str) -> "exp.Expr":
    """Such a text with `point` for the sign of its decimals, without its minus behind and signs between thousands.

    It is known where they stand, counted from the end. They are changed from the last to the first: what is changed
    moves nothing before it.
    """
    text = column.copy()

    def put(back: int, sign: str) -> None:
        nonlocal text
        place = exp.Sub(this=call("strlen", column.copy()), expression=literal(back))
        text = call("overlay", text, literal(sign), place, literal(1))

    if behind:
        put(0, "")
    if decimals and form.decimal != point:
        put(decimals + behind, point)
    whole = (decimals + 1 if decimals else 0) + behind
    for group in range(groups):
        put(whole + 3 + 4 * group, "")
    return text


def _unsigned(text: "exp.Expr") -> "exp.Expr":
    return call("replace", text, literal("-"), literal(""))


def _pointed(text: "exp.Expr", form: TextFormat) -> "exp.Expr":
    """The text with a decimal point, without thousands."""
    if form.thousands:
        text = call("replace", text, literal(form.thousands), literal(""))
    return text if form.decimal == "." else call("replace", text, literal(form.decimal), literal("."))
