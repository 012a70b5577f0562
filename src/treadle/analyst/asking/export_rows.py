"""Export of every key: written by the engine itself, so that millions of them never become objects here.

One row a key and measure, the largest difference of each measure first: `measure`, the dimensions, `source_a_value`,
`source_b_value`, `diff`, `absolute_diff`, `percentage_diff`, `status`, `crossed` (which thresholds the difference
crossed), `rows_a`, `rows_b`. Amounts are DECIMAL(38, s) in Parquet, with the fewest decimals that hold all of them, and
the same digits in CSV and, as text, in JSON. Touches the session's folder and the draft that it is given.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from treadle.analyst.asking.alignment import Pair
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.session import Row, Session
from treadle.analyst.showing.classify import crossed
from treadle.analyst.showing.comparison import Comparison, Total
from treadle.analyst.showing.export import Export
from treadle.analyst.showing.export_page import page
from treadle.analyst.showing.spreadsheet import MOST_ROWS, write_xlsx
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, cast, is_null, literal, named, when

_AMOUNTS = ("source_a_value", "source_b_value", "diff", "absolute_diff")
_TRAILING = ("percentage_diff", "status", "crossed", "rows_a", "rows_b")
_PIECE = 1 << 20


def write(
    session: Session, export: Export, draft: Path, found: Comparison, keys: Sequence[Key], pairs: Sequence[Pair]
) -> None:
    """Writes one export of a comparison whose table `aligned` is in the session.

    Args:
        session: the engine.
        export: what to write.
        draft: where to, for now.
        found: the result.
        keys: what the keys are made of.
        pairs: the measures.
    """
    session.tell(f"writing {export.path.name}")
    if export.format == "html":
        draft.write_text(page(found), encoding="utf-8")
        return
    rows = _Rows(session, keys, pairs)
    if export.format == "xlsx":
        write_xlsx(draft, _sheets(session, found, rows))
        return
    file = session.folder / f"export{len(list(session.folder.glob('export*')))}.{export.format}"
    match export.format:
        case "parquet":
            rows.copy(rows.plain(), file, {"FORMAT": "parquet", "COMPRESSION": "zstd"})
        case "csv":
            rows.copy(rows.guarded(), file, {"FORMAT": "csv", "HEADER": "true"})
        case "json":
            rows.copy(rows.nested(), file, {"FORMAT": "json"})
    with file.open("rb") as source, draft.open("wb") as out:
        if export.format == "json":
            _object(session, found, source, out)
        else:
            _moved(session, source, out)
    file.unlink()


def _sheets(session: Session, found: Comparison, rows: "_Rows") -> dict[str, tuple[Sequence[str], Sequence[Row]]]:
    """The whole in figures, what is said of it, and every key that a sheet can hold and one more."""
    told: list[tuple[str, object]] = []
    for one in (found, *found.more):
        told += [("measure", one.measure), ("A", one.source_a), ("B", one.source_b), ("unit", one.unit)]
        told += [("filter", condition) for condition in one.filters]
        told += [("filter of A", item) for item in one.filters_a] + [("filter of B", item) for item in one.filters_b]
        told += [(f"tolerance: {name}", getattr(one.tolerance, name)) for name in one.tolerance.__struct_fields__]
        told += [(name, getattr(one.summary, name)) for name in one.summary.__struct_fields__ if name != "by_currency"]
        told += [("interpretation", one.interpretation), *(("warning", item.message) for item in one.warnings)]
        told.append(("", None))
    columns = ["measure", *rows.names, *_AMOUNTS, *_TRAILING]
    keys = session.run(rows.plain().limit(MOST_ROWS))
    sheets: dict[str, tuple[Sequence[str], Sequence[Row]]] = {
        "summary": (("", ""), told),
        "differences": (columns, keys),
    }
    if any(one.summary.by_currency for one in (found, *found.more)):
        sheets["totals by currency"] = _currencies(found)
    if found.subtotals:
        sheets["subtotals"] = _subtotals(found)
    return sheets


def _currencies(found: Comparison) -> tuple[Sequence[str], Sequence[Row]]:
    """A row for each measure and currency."""
    rows = [
        (one.measure, *(getattr(total, name) for name in Total.__struct_fields__))
        for one in (found, *found.more)
        for total in one.summary.by_currency
    ]
    return ("measure", *Total.__struct_fields__), rows


def _subtotals(found: Comparison) -> tuple[Sequence[str], Sequence[Row]]:
    """A row for each group, measure and currency."""
    names = ("level", "group", "parent", "currency", "source_a_value", "source_b_value", "diff", "absolute_diff",
             "percentage_diff", "status", "reason", "rows", "differences")  # fmt: skip
    rows = [
        (one.measure, hierarchy, *(getattr(group, name) for name in names))
        for one in (found, *found.more)
        for hierarchy, groups in one.subtotals.items()
        for group in groups
    ]
    return ("measure", "hierarchy", *names), rows


class _Rows:
    """The rows of a comparison as a SELECT, in the shapes that the formats want."""

    def __init__(self, session: Session, keys: Sequence[Key], pairs: Sequence[Pair]) -> None:
        self.session, self.keys, self.pairs = session, keys, pairs
        self.scale = max(_needed(session, pair) for pair in pairs)
        fixed = {"measure", *_AMOUNTS, *_TRAILING}
        self.names: list[str] = []
        for key in keys:
            name = key.name
            while name.casefold() in fixed:
                name = f"key_{name}"
            fixed.add(name.casefold())
            self.names.append(name)

    def copy(self, select: "exp.Select", file: Path, options: dict[str, str]) -> None:
        """Has the engine write a SELECT to a file of the session's folder."""
        statement = exp.Copy(
            this=select.subquery(),
            kind=False,
            files=[literal(str(file))],
            params=[exp.CopyParameter(this=exp.var(name), expression=exp.var(word)) for name, word in options.items()],
        )
        self.session.run(statement)

    def plain(self) -> "exp.Select":
        """Every column with its own type."""
        return self._select(
            [named(_column("measure"), "measure")],
            [named(_column(f"k{at}"), name) for at, name in enumerate(self.names)],
            [named(_column(name), name) for name in _AMOUNTS],
        )

    def guarded(self) -> "exp.Select":
        """Text that a spreadsheet would take for a formula is marked as text with an apostrophe."""
        shapes = {"string": _guarded, "timestamp": _moment}
        keys = [
            named(shapes.get(key.type, exp.Expression.copy)(_column(f"k{at}")), _guarded_name(name))
            for at, (key, name) in enumerate(zip(self.keys, self.names, strict=True))
        ]
        return self._select(
            [named(_guarded(_column("measure")), "measure")], keys, [named(_column(name), name) for name in _AMOUNTS]
        )

    def nested(self) -> "exp.Select":
        """The keys as one object, amounts as text."""
        values = [
            exp.PropertyEQ(this=exp.to_identifier(key.name, quoted=True), expression=_json_value(key, f"k{at}"))
            for at, key in enumerate(self.keys)
        ]
        whole: exp.Expr = exp.Struct(expressions=values) if values else cast(literal("{}"), "JSON")
        amounts = [named(cast(_column(name), "VARCHAR"), name) for name in _AMOUNTS]
        return self._select([named(_column("measure"), "measure")], [named(whole, "key")], amounts)

    def _select(self, *groups: "Sequence[exp.Expr]") -> "exp.Select":
        columns = [column for group in groups for column in group]
        rest = [named(_column(name), name) for name in _TRAILING]
        inner: exp.Expr = self._measure(self.pairs[0])
        for pair in self.pairs[1:]:
            inner = exp.Union(this=inner, expression=self._measure(pair), distinct=False)
        select = exp.select(*columns, *rest).from_(exp.Subquery(this=inner, alias=exp.to_identifier("r")))
        matching = exp.EQ(this=_column("status"), expression=literal("match"))
        return select.order_by(
            exp.Ordered(this=_column("at"), desc=False),
            exp.Ordered(this=matching, desc=False),
            exp.Ordered(this=_column("absolute_diff"), desc=True),
            *(
                exp.Ordered(this=key.format.sortable(_column(f"k{at}")), desc=False, nulls_first=False)
                for at, key in enumerate(self.keys)
            ),
        )

    def _measure(self, pair: Pair) -> "exp.Select":
        """The rows of one measure."""
        at = pair.at
        gap, a, b = exp.column(f"d{at}"), exp.column(f"a{at}"), exp.column(f"b{at}")
        base = call("nullif", exp.Abs(this=cast(a, "DOUBLE")), literal(0))
        hundredfold = exp.Mul(this=exp.Abs(this=cast(gap, "DOUBLE")), expression=literal(100))
        percent = call("round", exp.Div(this=exp.paren(hundredfold), expression=base), literal(4))
        kind = f"DECIMAL(38, {self.scale})"
        return exp.select(
            named(literal(at), "at"),
            named(literal(pair.measures[0].name), "measure"),
            *(exp.column(f"k{number}") for number in range(len(self.keys))),
            *(
                named(cast(value, kind), name)
                for name, value in zip(_AMOUNTS, (a, b, gap, exp.Abs(this=gap.copy())), strict=True)
            ),
            named(percent, "percentage_diff"),
            named(cast(exp.column(f"s{at}"), "VARCHAR"), "status"),
            named(crossed(pair.limits, at, pair.scale), "crossed"),
            named(exp.column("na"), "rows_a"),
            named(exp.column("nb"), "rows_b"),
        ).from_("aligned")


def _needed(session: Session, pair: Pair) -> int:
    """The fewest decimals, but not fewer than are shown anyway, that hold all figures of a measure."""
    tried = range(min(pair.places, pair.scale), pair.scale)
    if not tried:
        return pair.scale

    def holds(places: int, name: str) -> exp.Expr:
        column = exp.column(f"{name}{pair.at}")
        cut = cast(cast(column, f"DECIMAL(38, {places})"), f"DECIMAL(38, {pair.scale})")
        return call("bool_and", exp.EQ(this=cut, expression=column.copy()))

    tests = [holds(places, name) for places in tried for name in "ab"]
    row = session.run(exp.select(*tests).from_("aligned"))[0]
    for number, places in enumerate(tried):
        if all(value is not False for value in row[2 * number : 2 * number + 2]):
            return places
    return pair.scale


def _column(name: str) -> "exp.Column":
    return exp.column(name, table="r")


def _json_value(key: Key, column: str) -> "exp.Expr":
    match key.type:
        case "decimal":
            return cast(_column(column), "VARCHAR")
        case "timestamp":
            return _moment(_column(column))
        case _:
            return _column(column)


def _moment(column: "exp.Expr") -> "exp.Expr":
    """A time as results tell it: with a T, and with six decimals of a second or none."""
    text = call("replace", cast(column, "VARCHAR"), literal(" "), literal("T"))
    whole = literal(len("2024-01-31T10:00:00.000000"))
    return when(call("contains", text.copy(), literal(".")), call("rpad", text.copy(), whole, literal("0")), text)


_FORMULA = "^'*([\t\r\n]| *[=+\\-@\uff1d\uff0b\uff0d\uff20])"
_PLAIN_NUMBER = r"'*[-+]?[0-9]+([.,][0-9]+)*"


def _guarded(text: "exp.Expr") -> "exp.Expr":
    """The text, with an apostrophe before it if a spreadsheet would compute it; plain numbers stay as they are.

    What has one there already gets another: it would be read as the text without it.
    """
    number = call("regexp_full_match", text.copy(), literal(_PLAIN_NUMBER))
    formula = exp.and_(call("regexp_matches", text.copy(), literal(_FORMULA)), exp.Not(this=number))
    marked = exp.DPipe(this=literal("'"), expression=text.copy())
    return when(is_null(text), exp.null(), when(formula, marked, text.copy()))


def _guarded_name(name: str) -> str:
    return f"'{name}" if name.lstrip("'").lstrip(" ")[:1] in tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20") else name


def _object(session: Session, found: Comparison, lines: IO[bytes], out: IO[bytes]) -> None:
    """One JSON object: the result, with the engine's lines as its `rows`."""
    head = json.dumps(found.to_dict(), ensure_ascii=False, indent=2)
    out.write(head.removesuffix("\n}").encode() + b',\n  "rows": [')
    for number, line in enumerate(lines):
        if number % 10_000 == 0:
            session.check()
        out.write((b",\n    " if number else b"\n    ") + line.rstrip(b"\n"))
    out.write(b"\n  ]\n}\n")


def _moved(session: Session, source: IO[bytes], out: IO[bytes]) -> None:
    while piece := source.read(_PIECE):
        session.check()
        out.write(piece)
