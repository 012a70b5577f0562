"""Database: a connection that makes groups of its sources, what is asked of it, and what it says of each measure.

Neighbours: `pushdown` writes the statements, `postgres` and `sqlalchemy_source` are the databases, `connections` opens
them.
"""

import os
from collections.abc import Generator, Sequence
from typing import Protocol

from msgspec import Struct

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Dimension, Source
from treadle.analyst.reading.dialect import Column, Dialect
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters

Texts = Sequence[str | None]


class Partial(Struct, frozen=True):
    """Which columns of the groups hold what is known of a measure; empty where there is nothing to know.

    Attributes:
        column: what the database says of it.
        value: the sum, minimum, maximum or count.
        count: how many values it is made of.
        size: the sum of their absolute values, for floating-point numbers.
        nan: how many rows hold NaN.
        guard: how many rows hold something else than a number.
        exact: whether the value surely has no more decimals than the column.
    """

    column: Column
    value: str
    count: str = ""
    size: str = ""
    nan: str = ""
    guard: str = ""
    exact: bool = False


class Groups(Struct, frozen=True):
    """The aggregate of one source.

    Attributes:
        statement: the SELECT, its columns in the order of `names`.
        names: the columns: d0, d1 and on for the dimensions, w for the rows of a group, then those of the measures.
        dimensions: what it is grouped by.
        partials: the columns of each measure, by its name.
    """

    statement: "exp.Select"
    names: tuple[str, ...]
    dimensions: tuple[Dimension, ...]
    partials: dict[str, Partial]


class Database(Protocol):
    """A connection to a database; one thread at a time."""

    @property
    def dialect(self) -> Dialect:
        """How it is spoken to."""

    def columns(self, source: Source) -> dict[str, Column]:
        """Returns the columns of the source's table. Raises AnalystError if there is no such table."""

    def rows(
        self,
        sources: Sequence[Source],
        groups: Sequence[Groups],
        parameters: Parameters,
        floating: set[tuple[int, str]],
    ) -> Generator[Texts, None, None]:
        """Yields the rows of all aggregates, the number of each's aggregate first.

        Args:
            sources: what each aggregate is of.
            groups: the aggregates.
            parameters: their values.
            floating: takes the number and column of what turned out to be floating-point numbers.

        Raises:
            AnalystError: the database could not do it, took too long, or went away.
        """

    def close(self) -> None:
        """Ends the connection."""


class Remote(Struct, frozen=True):
    """Where the groups of a table come from."""

    database: Database
    source: Source
    columns: dict[str, Column]


def address_of(source: Source) -> tuple[str, str]:
    """What makes two sources of one database: the kind and where it is. Not to be shown: it may hold a password."""
    return source.kind, os.environ.get(source.dsn_env, "") if source.dsn_env else ""


def connection_string(source: Source) -> str:
    """The value of the environment variable that says where the source is. Raises AnalystError if it is not set."""
    if not source.dsn_env:
        return ""
    value = os.environ.get(source.dsn_env, "")
    if not value:
        raise AnalystError(
            f"source {source.name!r}: the environment variable {source.dsn_env}, which says where its database is, is "
            f"not set",
            argument="source",
            given=source.name,
            variable=source.dsn_env,
        )
    return value
