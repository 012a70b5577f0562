"""Amounts: a measure's column as exact decimals.

Every amount is a DECIMAL or an integer in the engine, never a float. Text is read at a scale that holds it whole; text
that does not fit or is no number is counted while the rows are read, so that one pass is enough where all is well, and
nothing is rounded or left out where it is not. Floating-point columns are added up by their shortest decimal spelling
and called approximate. Builds SQLGlot expressions in DuckDB's terms.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, DecimalException
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import UNKNOWN, Measure, Source, TextFormat
from treadle.analyst.reading.number_spelling import grouped_digits, respelled
from treadle.analyst.reading.plain_numbers import plain_number
from treadle.analyst.reading.staged import spells_numbers
from treadle.analyst.reading.table import Table
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, cast, is_null, literal, matches, quoted, try_cast, when
from treadle.analyst.sql.types import INTEGERS, decimals_in

if TYPE_CHECKING:
    from treadle.analyst.reading.database import Partial

EXACT = Context(prec=120, rounding=ROUND_HALF_UP)

BLANKS = " \t\r\n\u00a0"
"""What a text may be made of that holds no value."""
_TEXT_SCALE = 6
_FLOAT_SCALE = 10
# Stands before text whose signs are not those declared, which would read as another number without them.
_NO_NUMBER = "\ue000"


class Scale(Struct, frozen=True):
    """How a column of text is read.

    Attributes:
        places: at how many decimals.
        proven: whether all of its values are known to fit.
        spelled: whether some of its values are spelled as people and programs for people do; see `respelled`.
    """

    places: int
    proven: bool = False
    spelled: bool = False


class Amount(Struct, frozen=True):
    """A measure's value in one row.

    Attributes:
        value: its decimal or whole number; NULL for none.
        scale: its decimals.
        floating: whether the source holds it as a floating-point number.
        text: its text, where it is read from text.
        column: the column that `value` and `bad` expect `text` in, which many steps look at and one makes.
        bad: true where `text` is no number or does not fit `scale`; None where that cannot be.
        not_a_number: true where the source holds NaN, or how many of its rows do; None where that cannot be.
        grouped: whether a row stands for several of the source: its value is their sum, least, greatest or number.
        count: of how many values it is made, where it stands for several.
        size: by how much it may be off in multiples of a floating-point number's relative error, where that is not
            its own size: for one that stands for several the sum of their absolute values.
        operands: the amounts in the columns that it is computed of, where it is of several.
        plain: the same value in a fraction of the time, where all text is spelled as programs spell numbers; for
            other text the engine raises an error that begins with `NOT_PLAIN`. None where there is no such way.
    """

    value: "exp.Expr"
    scale: int
    floating: bool = False
    text: "exp.Expr | None" = None
    column: str = ""
    bad: "exp.Expr | None" = None
    not_a_number: "exp.Expr | None" = None
    grouped: bool = False
    count: "exp.Expr | None" = None
    size: "exp.Expr | None" = None
    operands: "Mapping[str, Amount]" = {}
    plain: "exp.Expr | None" = None

    @property
    def textual(self) -> bool:
        """Whether its number of decimals is how it is read, and not what the data say."""
        return self.text is not None or any(operand.textual for operand in self.operands.values())

    @property
    def texts(self) -> "dict[str, exp.Expr]":
        """What `value` and `bad` expect beside the columns of the rows, by name."""
        every = (self, *self.operands.values())
        return {one.column: one.text for one in every if one.column and one.text is not None}

    def alone(self, part: "exp.Expr") -> "exp.Expr":
        """Returns `value` or `bad` as it is written where there are the columns of the rows and no others."""
        texts = self.texts

        def written(node: "exp.Expr") -> "exp.Expr":
            return texts[node.name].copy() if isinstance(node, exp.Column) and node.name in texts else node

        return part.transform(written) if texts else part.copy()


def decimals_of(value: Decimal) -> int:
    """How many decimals a finite number has, without trailing zeros."""
    exponent = EXACT.normalize(value).as_tuple().exponent
    return max(0, -int(exponent))


def unit_at(places: int) -> Decimal:
    """One in the last of so many decimals: 0.01 for two."""
    return Decimal(1).scaleb(-places, context=EXACT)


def trimmed(value: Any, places: int) -> Decimal | None:
    """The figure without zeros beyond `places` decimals; other digits are never cut off."""
    if value is None:
        return None
    number = value if type(value) is Decimal else EXACT.create_decimal(value)
    # Nearly all figures have no more decimals than are shown: one look at them does.
    found = number.quantize(unit_at(places), context=EXACT)
    if found == number:
        return found
    return number.quantize(unit_at(decimals_of(number)), context=EXACT)


def amount_of(source: Source, measure: Measure, table: Table, scale: Scale | None = None) -> Amount:
    """Returns the amount of `measure` in the rows of `table`.

    Args:
        source: where the measure belongs.
        measure: the measure.
        table: the rows.
        scale: at how many decimals text and floating-point numbers are read, if not at the usual number.

    Raises:
        AnalystError: the column holds something that cannot be added up.
    """

    if measure.name in table.partials:
        return _of_groups(measure, table.partials[measure.name], _named_text(measure, table), scale)
    if measure.source_column == "*":
        return Amount(literal(1), 0)
    column = quoted(measure.source_column)
    kind = table.columns[measure.source_column]
    floating = kind in ("DOUBLE", "FLOAT") or measure.source_column in table.floating
    if measure.aggregation == "count":
        return _counted(column, kind)
    decimals = decimals_in(kind)
    if decimals is not None:
        return Amount(signed(column, measure), decimals)
    if kind == "UHUGEINT":
        return Amount(signed(cast(column, "DECIMAL(38, 0)"), measure), 0)
    if kind in INTEGERS:
        whole = cast(column, "HUGEINT") if measure.sign < 0 else column
        return Amount(signed(whole, measure), 0)
    text = _named_text(measure, table)
    if floating and spells_numbers(source, measure.source_column):
        # There may be text beside the numbers; both stand there with the declared signs.
        usual = Scale(max(_FLOAT_SCALE, (measure.decimals or 0) + 4), proven=True)
        return replace(_from_text(column, text, measure, source.text, scale or usual), floating=True)
    if floating:
        return _floating(column, text, measure, kind, scale)
    if kind == "VARCHAR":
        return _from_text(column, text, measure, source.text, scale)
    raise AnalystError(
        f"source {source.name!r}: measure {measure.name!r} cannot be a {measure.aggregation}, because its "
        f"column {measure.source_column!r} is {kind}; declare 'aggregation: count', or another column",
        argument="measures",
        given=measure.name,
    )


def multiplied(amount: Amount, factor: "exp.Expr", places: int) -> Amount:
    """Returns an amount times a factor of so many decimals, exactly: the engine raises an error where it cannot be."""
    value = exp.Mul(
        this=cast(amount.value.copy(), f"DECIMAL(38, {amount.scale})"),
        expression=cast(factor, f"DECIMAL(38, {places})"),
    )
    size = amount.size
    if size is not None:
        size = exp.Mul(this=exp.paren(size.copy()), expression=cast(factor.copy(), "DOUBLE"))
    return replace(amount, value=exp.paren(value), scale=amount.scale + places, size=size)


def readable(texts: Sequence[str]) -> bool:
    """Returns whether all of the texts, cleaned, are numbers."""
    return all(_number(text) is not None for text in texts)


def floats_refused(where: str, measure: Measure, texts: Sequence[str]) -> AnalystError:
    """Returns the error of a column of floating-point numbers that holds what has no exact sum, or is no number.

    Args:
        where: the source and column.
        measure: the measure.
        texts: what cannot be added up.
    """
    wrong = sorted(text for text in texts if not _floats(text))[:5]
    told = f"has floating-point values that cannot be added up: {', '.join(sorted(texts)[:5])}"
    if wrong:
        listed = ", ".join(repr(text[:40]) for text in wrong)
        told = f"holds floating-point numbers, and beside them text that is none, such as {listed}; correct the data"
    return AnalystError(f"{where} {told}", argument="measures", given=measure.name)


def _floats(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def scale_for(
    source: Source,
    measure: Measure,
    column: str,
    texts: Sequence[str],
    longest: int,
    originals: Callable[[Sequence[str]], Sequence[str]],
    *,
    spelled: bool = False,
) -> Scale:
    """Returns a scale at which all of a column's text is read whole.

    Args:
        source: where the measure belongs.
        measure: the measure.
        column: the column of text.
        texts: the values, cleaned, that the usual scale did not do for.
        longest: the most decimals that any value without an exponent has.
        originals: finds how the source spells such values.
        spelled: whether they have been read as people spell numbers.

    Raises:
        AnalystError: some text is no number, or the numbers need more than 38 digits.
    """
    places, digits, wrong = longest, 1, []
    for text in texts:
        number = _number(text)
        if number is None:
            wrong.append(text)
            continue
        if "e" in text.lower():
            places = max(places, decimals_of(number))
        digits = max(digits, number.adjusted() + 1)
    where = f"source {source.name!r}: column {column!r}"
    if wrong:
        shown = sorted({text[:40] for text in originals(sorted(wrong)[:5])})[:5]
        listed = ", ".join(map(repr, shown))
        told = f"has text that is no number, {len(wrong)} in all, such as {listed}; correct the data, or declare"
        if source.text.decimal == UNKNOWN:
            told = f"has {listed}, and nobody has said yet which sign is the decimal one: declare"
        raise AnalystError(
            f"{where} {told} under 'text' which signs it uses for decimals and thousands, and as the measure's 'unit' "
            f"a currency that stands beside the amounts",
            argument="measures",
            given=measure.name,
            values=shown,
        )
    if digits + places > 38:
        raise AnalystError(
            f"{where} needs {digits} digits before and {places} after the decimal sign; exact amounts have 38 at most",
            argument="measures",
            given=measure.name,
        )
    return Scale(places, proven=True, spelled=spelled)


def _number(text: str) -> Decimal | None:
    """The number that a text is, or None; one that is beyond all bounds is none either."""
    try:
        number = Decimal(text)
        plain = number.is_finite() and text.isascii() and "_" not in text
        return EXACT.normalize(number) if plain else None
    except DecimalException:
        return None


def _named_text(measure: Measure, table: Table) -> str:
    """What the text of a measure's column is called once it is made: as no column of the rows, and as no other text."""
    # Quoted, no two pairs of names make one: 'a of b' of 'c' is not 'a' of 'b of c'.
    name = f"text of {measure.source_column!r} of {measure.name!r}"
    taken = {column.casefold() for column in table.columns}
    while name.casefold() in taken:
        name += "_"
    return name


def _of_groups(measure: Measure, partial: "Partial", text: str, scale: Scale | None) -> Amount:
    """The amount of a row that a database has made of several."""
    value = exp.column(partial.value)
    if measure.aggregation == "count" or measure.source_column == "*":
        nan = cast(exp.column(partial.nan), "BIGINT") if partial.nan else None
        return Amount(cast(value, "HUGEINT"), 0, not_a_number=nan, grouped=True)
    found: Amount
    if partial.column.kind == "floating":
        found = _floating(value, text, measure, "VARCHAR", None)
    else:
        places = partial.column.scale if partial.exact else None
        known = scale or (None if places is None else Scale(places, True))
        found = _from_text(value, text, measure, TextFormat(), known)
    count = cast(exp.column(partial.count), "HUGEINT") if partial.count else None
    size: exp.Expr | None = cast(exp.column(partial.size), "DOUBLE") if partial.size else None
    if size is not None and count is not None and not partial.exact:
        # Added up as floating-point numbers, each addition may be off by half a unit in the last place of the sum.
        half = exp.Add(this=literal(1), expression=exp.Mul(this=count.copy(), expression=literal(0.5)))
        size = exp.Mul(this=size, expression=exp.paren(half))
    return replace(
        found,
        grouped=True,
        count=count,
        size=size,
        not_a_number=cast(exp.column(partial.nan), "BIGINT") if partial.nan else None,
    )


def _counted(column: "exp.Expr", kind: str) -> Amount:
    """What counts as a value: no text of blanks, and not NaN, as in what is added up."""
    if kind == "VARCHAR":
        return Amount(call("nullif", call("trim", column, literal(BLANKS)), literal("")), 0)
    if kind in ("DOUBLE", "FLOAT"):
        not_a_number = call("isnan", column)
        return Amount(when(exp.Not(this=not_a_number.copy()), column), 0, not_a_number=not_a_number)
    return Amount(column, 0)


def _floating(column: "exp.Expr", name: str, measure: Measure, kind: str, chosen: Scale | None) -> Amount:
    scale = chosen.places if chosen else max(_FLOAT_SCALE, (measure.decimals or 0) + 4)
    not_a_number = None
    if kind in ("DOUBLE", "FLOAT"):
        not_a_number = call("isnan", column)
        text = when(exp.Not(this=not_a_number.copy()), cast(column, "VARCHAR"))
    else:
        # SQLite may hold text beside its numbers.
        text = call("nullif", call("trim", column, literal(BLANKS)), literal(""))
    read = quoted(name)
    value = try_cast(read, f"DECIMAL(38, {scale})")
    bad = exp.and_(exp.Not(this=is_null(read)), is_null(value), copy=False)
    return Amount(signed(value, measure), scale, True, text, name, bad, not_a_number)


def _from_text(column: "exp.Expr", name: str, measure: Measure, form: TextFormat, scale: Scale | None) -> Amount:
    chosen = scale or Scale(max(_TEXT_SCALE, measure.decimals or 0))
    trimmed = call("trim", column, literal(BLANKS))
    if chosen.spelled:
        trimmed = respelled(trimmed, form, measure.unit)
    text = _plain_number(call("nullif", trimmed, literal("")), form, chosen.spelled)
    read = quoted(name)
    value = try_cast(read, f"DECIMAL(38, {chosen.places})")
    doubts = [is_null(value), call("contains", read, literal("_"))]
    if not chosen.proven:
        point = call("instr", read, literal("."))
        decimals = exp.Sub(this=call("length", read), expression=point)
        beyond = exp.GT(this=decimals, expression=literal(chosen.places))
        doubts.append(exp.and_(exp.GT(this=point.copy(), expression=literal(0)), beyond, copy=False))
        doubts += [call("contains", read, literal(sign)) for sign in "eE"]
    doubtful = exp.paren(exp.or_(*doubts, copy=False), copy=False)
    bad = exp.and_(exp.Not(this=is_null(read)), doubtful, copy=False)
    plain = None if scale else plain_number(column, form, chosen.places, measure)
    plain = None if plain is None else signed(plain, measure)
    return Amount(signed(value, measure), chosen.places, False, text, name, bad, plain=plain)


def _plain_number(text: "exp.Expr", form: TextFormat, spelled: bool) -> "exp.Expr":
    """The text with a decimal point, without thousands and with its minus in front; marked as none where it is none."""
    plain = text
    wrong: list[exp.Expr] = []
    if form.thousands:
        grouped = matches(text, rf"[-+]?{grouped_digits(form.thousands)}({re.escape(form.decimal)}\d*)?-?")
        wrong.append(exp.and_(call("contains", text, literal(form.thousands)), exp.Not(this=grouped), copy=False))
        plain = call("replace", plain, literal(form.thousands), literal(""))
    if form.decimal == UNKNOWN:
        wrong.append(call("regexp_matches", plain, literal("[.,]")))
    elif form.decimal != ".":
        wrong.append(call("contains", plain, literal(".")))
        plain = call("replace", plain, literal(form.decimal), literal("."))
    if spelled:
        # It is long, and would stand there four times.
        plain = call("regexp_replace", plain, literal(r"^([0-9.]+)-$"), literal(r"-\1"))
    else:
        behind = exp.and_(call("suffix", plain, literal("-")), matches(plain, r"[0-9.]+-"), copy=False)
        before = exp.DPipe(this=literal("-"), expression=call("rtrim", plain, literal("-")))
        plain = when(behind, before, plain)
    if not wrong:
        return plain
    return when(exp.or_(*wrong, copy=False), exp.DPipe(this=literal(_NO_NUMBER), expression=text.copy()), plain)


def signed(value: "exp.Expr", measure: Measure) -> "exp.Expr":
    """The value with the sign that the measure declares."""
    return value if measure.sign > 0 else exp.Neg(this=exp.paren(value))
