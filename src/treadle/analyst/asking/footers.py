"""Footers: what lines of a CSV file with other fields than there are names may be, where one is proposed.

`Total Energies;000` may be a row that was cut off: only what no row begins with says that it is none.
"""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from treadle.analyst.asking.doubts import asked_short
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Source
from treadle.analyst.reading.footers import Line, first_text, leave_out
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Demand
from treadle.analyst.reading.tables import head_of
from treadle.analyst.reading.totals import USUAL, marks, says_so
from treadle.analyst.remote.opening import open_table
from treadle.analyst.sql.lazy import exp

_MOST_ASKED = 5


def without_short_lines(session: Session, source: Source) -> list[Line]:
    """Has a session read a CSV file without its lines with fewer fields than there are names, and returns these.

    Among them are those with more that say that they are no rows.
    """
    try:
        _count(session, source)
    except AnalystError:
        session.check()
        file = session.files[source.name][0]
        short = [] if source.text.ruled else leave_out(session, source, file, head_of(file, source), says_so)
        if any("\0" in line.text for line in short):
            # What was left behind where a machine went down.
            raise
        return short
    return []


def footers_of(session: Session, source: Source, short: Sequence[Line]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns what surely marks lines with other fields than there are names as no rows, and questions about others.

    They are those that say so, unless a row has the same text.
    """
    surely: list[str] = []
    questions: list[str] = []
    for line in short:
        text = first_text(line.fields)
        is_none = says_so(text)
        mark = text if text in USUAL else re.sub(r"\d[\d.,]*", "%", text)
        shared = (not any(map(str.isalpha, text)) and not is_none) or _is_of_a_row(session, source, mark)
        if is_none and not shared:
            surely.append(mark)
        else:
            questions.append(asked_short(mark, line.text.strip(), shared=shared))
    asked = list(dict.fromkeys(questions))
    more = [f"there are {len(asked) - _MOST_ASKED} more lines like these"] if len(asked) > _MOST_ASKED else []
    return tuple(dict.fromkeys(surely)), (*asked[:_MOST_ASKED], *more)


def _is_of_a_row(session: Session, source: Source, mark: str) -> bool:
    """Whether a line with as many fields as there are names is marked as well."""
    table = open_table(session, source, Demand((), ()))
    (marked,) = marks(replace(source, text=replace(source.text, totals=(mark,))), list(table.columns))
    return bool(session.run(exp.select("1").from_(table.relation.copy()).where(marked).limit(1)))


def _count(session: Session, source: Source) -> None:
    rows = open_table(session, source, Demand((), ())).relation
    session.run(exp.select(exp.Count(this=exp.Star())).from_(rows.copy()))
