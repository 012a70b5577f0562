"""Table: rows in a session, with what is known of them; and what is wanted of a source. Pure data."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.analyst.declared.source import Dimension, Measure
from treadle.analyst.reading.uniqueness import Unique
from treadle.analyst.sql.lazy import exp

if TYPE_CHECKING:
    from treadle.analyst.reading.database import Partial, Remote


class Demand(Struct, frozen=True):
    """What is wanted of a source: the dimensions and measures that a question touches."""

    dimensions: tuple[Dimension, ...]
    measures: tuple[Measure, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in the data, each once."""
        measured = [column for item in self.measures for column in item.columns]
        return tuple(dict.fromkeys([*(item.source_column for item in self.dimensions), *measured]))


class Table(Struct, frozen=True):
    """Rows in a session.

    Attributes:
        relation: what stands after FROM.
        columns: the engine's type of each column, by name.
        floating: columns of text whose values were floating-point numbers in the source.
        whole: whether all columns of the source are there, not only those that were wanted.
        weight: the column that says how many rows of the source a row stands for; empty where that is one.
        partials: for rows that stand for several, the columns that hold what is known of each measure, by its name.
        remote: the database that the rows come from, where they are in one.
        unique: sets of columns in which no two rows are alike.
    """

    relation: "exp.Expr"
    columns: dict[str, str]
    floating: frozenset[str] = frozenset()
    whole: bool = True
    weight: str = ""
    partials: "Mapping[str, Partial]" = {}
    remote: "Remote | None" = None
    unique: Unique = ()
