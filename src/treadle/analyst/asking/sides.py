"""Sides: the sources of a question, from what is wanted of them to rows that can be added up.

    sides, made = read(session, catalog, [wanted.open(session) for wanted in (a, b)])

It takes all steps between in their order; `stages` has them.
"""

from collections.abc import Sequence

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.asking.groups import decided
from treadle.analyst.asking.loading import fetch
from treadle.analyst.asking.lookups import look_up
from treadle.analyst.asking.rows import Side
from treadle.analyst.asking.stages import Opened
from treadle.analyst.reading.session import Session
from treadle.analyst.sql.proof import Proof


def read(session: Session, catalog: Catalog, opened: Sequence[Opened]) -> tuple[list[Side], tuple[Proof, ...]]:
    """Returns the sides of a question, and the statements that made their rows.

    Args:
        session: may read the sources, and those that they are looked up in.
        catalog: knows these.
        opened: the sources.

    Raises:
        AnalystError: a database could not be read, a filter cannot be decided, a table says more than one thing of a
            value, or lacks what a row needs.
    """
    typed = decided(session, catalog, [one.typed(opened) for one in opened])
    fetched, asked = fetch(session, typed)
    sides, made = look_up(session, catalog, fetched)
    return sides, (*session.attached, *asked, *made)
