"""Dialect: how a database is spoken to, and what it does to amounts and text.

Pure: builds SQLGlot expressions. Its neighbours: `pushdown` (the aggregate), `remote_amounts` (what is added up).
"""

from collections.abc import Sequence
from typing import Literal, assert_never

from msgspec import Struct

from treadle.analyst.declared.formula import Operation, Shape
from treadle.analyst.declared.source import Dimension
from treadle.analyst.sql.lazy import exp

ColumnKind = Literal["integer", "decimal", "floating", "text", "date", "timestamp", "zoned", "boolean", "other"]

# How databases other than PostgreSQL are told to compare text byte by byte, where they do not do so anyway.
_BINARY_COLLATIONS = {"postgres": "C", "sqlite": "BINARY", "mysql": "utf8mb4_bin", "tsql": "Latin1_General_BIN2"}
_KEY_DECIMALS = 10
_INTEGER_DIGITS = 20
_MOST_DIGITS = 38
_MYSQL_SCALE = 30
_SNOWFLAKE_SCALE = 12
_KEPT_SCALE = 6


class Column(Struct, frozen=True):
    """A column of a table in a database.

    Attributes:
        kind: what its values are.
        scale: the decimals of a `decimal`; None if it has no fixed number of them.
        name: what the database calls its type.
        digits: how many digits a number has at most, decimals included; None if that is not known.
    """

    kind: ColumnKind
    scale: int | None = None
    name: str = ""
    digits: int | None = None

    @property
    def shape(self) -> Shape:
        """How many digits a number has."""
        return Shape(_INTEGER_DIGITS, 0) if self.kind == "integer" else Shape(self.digits, self.scale)

    @property
    def engine_type(self) -> str:
        """The type that its values take in a session, by DuckDB's name."""
        match self.kind:
            case "integer":
                return "HUGEINT"
            case "decimal":
                fixed = self.scale is not None and self.scale <= _KEY_DECIMALS
                return f"DECIMAL(38, {self.scale})" if fixed else "VARCHAR"
            case "floating":
                return "DOUBLE"
            case "date":
                return "DATE"
            case "timestamp":
                return "TIMESTAMP"
            case "zoned":
                return "TIMESTAMP WITH TIME ZONE"
            case "boolean":
                return "BOOLEAN"
            case "text" | "other":
                return "VARCHAR"
            case _:
                assert_never(self.kind)


class Dialect(Struct, frozen=True):
    """How a database is spoken to.

    Attributes:
        name: the name that SQLGlot has for it; empty for standard SQL.
    """

    name: str

    @property
    def postgres(self) -> bool:
        """Whether it is PostgreSQL, whose exact numerics and text forms are used."""
        return self.name == "postgres"

    @property
    def typed(self) -> bool:
        """Whether a column holds values of its declared type only."""
        return self.name != "sqlite"

    @property
    def decimals(self) -> bool:
        """Whether it surely adds its decimals up as decimals."""
        return self.name not in ("", "sqlite")

    def binary(self, value: "exp.Expr") -> "exp.Expr":
        """The text, to be compared byte by byte."""
        collation = _BINARY_COLLATIONS.get(self.name)
        if collation is None:
            return value
        quoted = self.postgres
        return exp.Collate(this=exp.paren(value), expression=exp.to_identifier(collation, quoted=quoted))

    def key(self, dimension: Dimension, column: Column) -> "exp.Expr":
        """What rows are grouped by for a dimension."""
        value = quoted_column(dimension.source_column)
        if self.postgres and column.name == "money":
            return exp.cast(value, "DECIMAL")
        if column.kind not in ("text", "other"):
            return value
        return self.binary(exp.cast(value, "TEXT") if self.postgres else value)

    def decimal(self, value: "exp.Expr", shape: Shape) -> "exp.Expr":
        """A number as a decimal in which the database adds up and multiplies exactly, or says that it cannot."""
        if self.name == "sqlite":
            return value  # it has whole numbers and floating-point ones, whatever they are declared to be
        if self.name == "bigquery":
            return exp.cast(value, exp.DataType.build("BIGNUMERIC", dialect="bigquery"))
        return exp.cast(value, "DECIMAL" if self.postgres else f"DECIMAL({shape.digits}, {shape.scale})")

    def whole(self, value: "exp.Expr") -> "exp.Expr":
        """A whole number, to be added up: some databases let the sum of them overflow unseen, or too early."""
        widens = self.name in ("postgres", "sqlite", "mysql")
        return value if widens else self.decimal(value, Shape(_INTEGER_DIGITS, 0))

    def keeps(self, op: Operation, parts: Sequence[Shape], found: Shape) -> bool:
        """Whether it makes one decimal of others with every digit, or raises an error.

        The rules are those of each database's manual. Those that are not named cut decimals off, or lose the value,
        once a result's type would need more than 38 digits, as Spark and SQL Server do.
        """
        match self.name:
            case "postgres" | "sqlite":
                return True
            case "bigquery" | "trino" | "presto" | "athena" | "duckdb":
                return found.scale is None or found.scale <= _MOST_DIGITS
            case "mysql":
                return found.scale is not None and found.scale <= _MYSQL_SCALE
            case "snowflake":
                kept = max(_SNOWFLAKE_SCALE, *(part.scale or 0 for part in parts))
                return op != "*" or (found.scale is not None and found.scale <= kept)
            case _:
                if found.scale is None or found.digits is None:
                    return False
                # Of six decimals they cut none off, only digits before them, which a sum of amounts does not reach and
                # a product has one less of than its type; of one value out of several they may cut any.
                few = found.scale <= _KEPT_SCALE and op != "|"
                return found.digits + (op == "*") <= _MOST_DIGITS + few

    def told(self, value: "exp.Expr", *, plain: bool = False) -> "exp.Expr":
        """The value as it travels: PostgreSQL's as text, every digit of it; no nought at the end of `plain` ones."""
        if not self.postgres:
            return value
        return exp.cast(exp.Anonymous(this="TRIM_SCALE", expressions=[value]) if plain else value, "TEXT")


def quoted_column(name: str) -> "exp.Column":
    """A column, by its exact name."""
    return exp.column(exp.to_identifier(name, quoted=True))
