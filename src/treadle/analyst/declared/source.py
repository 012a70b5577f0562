"""Source: a named table with dimensions and measures, as plain frozen data, checked when it is made.

Every name that reaches an engine comes from here. Neighbours: `catalog` holds sources, `place` says where their data
are.
"""

import re
from decimal import MAX_PREC, Context, Decimal
from typing import Literal, get_args

from msgspec import Struct

from treadle.analyst.declared.errors import declared_at, unknown
from treadle.analyst.declared.expression import Expression
from treadle.analyst.declared.expression_text import parse_expression
from treadle.analyst.declared.filters import Filter
from treadle.analyst.declared.formats import Format

Kind = Literal["csv", "parquet", "json", "xlsx", "duckdb", "sqlite", "postgres", "sqlalchemy", "frame"]
KINDS: tuple[str, ...] = get_args(Kind)
DATABASES = ("postgres", "sqlalchemy")
_EXACT = Context(prec=MAX_PREC, Emax=999_999, Emin=-999_999)
_WITH_TABLE = ("duckdb", "sqlite", *DATABASES)
KeyType = Literal["string", "integer", "decimal", "date", "timestamp", "boolean"]
KEY_TYPES: tuple[str, ...] = get_args(KeyType)
Aggregation = Literal["sum", "min", "max", "avg", "count"]
AGGREGATIONS: tuple[str, ...] = get_args(Aggregation)


class Tolerance(Struct, frozen=True, omit_defaults=True):
    """From where a difference counts. What is None is taken from the next wider place, at last from the defaults.

    Attributes:
        absolute: two values match if they differ by no more than this, in the measure's unit. Default 0.01, or half of
            the measure's last decimal if it declares another number of decimals than two.
        relative: a difference is minor only if it is below this share of A. Default 0.01 (1 %).
        materiality: and only if it is below this amount, in the measure's unit. Default 5,000.
    """

    absolute: Decimal | None = None
    relative: Decimal | None = None
    materiality: Decimal | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and (not value.is_finite() or value < 0 or value.adjusted() > 15):
                raise ValueError(f"tolerance {name} must be a number from 0 to 1e15, not {value}")
            if value is not None and -value.as_tuple().exponent > 12:
                raise ValueError(f"tolerance {name} has more than 12 decimals: {value}")

    def over(self, wider: "Tolerance | None") -> "Tolerance":
        """Returns this tolerance with its gaps filled from `wider`."""
        if wider is None:
            return self
        return Tolerance(
            *(
                own if own is not None else other
                for own, other in ((getattr(self, name), getattr(wider, name)) for name in self.__struct_fields__)
            )
        )


def share_in(text: str) -> Decimal:
    """Returns the share of A that is written in a text, with a percent sign or as a number below 1.

    Raises:
        ArithmeticError: it is no number.
        ValueError: it is 1 or more, without that sign: a bare 5 may be meant as 5 % or as 500 %.
    """
    written = text.strip()
    share = Decimal(written.removesuffix("%"))
    if written.endswith("%"):
        return share.scaleb(-2, context=_EXACT)
    if share.is_finite() and share >= 1 and share.adjusted() <= 15:
        percent = share.scaleb(2, context=_EXACT)
        raise ValueError(f"{text!r} may be {share:f}% or {percent:f}%: write which of them, with the percent sign")
    return share


class Member(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What dimensions and measures have in common.

    Attributes:
        name: what people and models call it.
        column: the column in the data, where that has another name.
        description: what it means.
        synonyms: other names, by which it may be asked for and meets its like in another source.
    """

    name: str
    column: str = ""
    description: str = ""
    synonyms: tuple[str, ...] = ()

    @property
    def names(self) -> set[str]:
        """Every name that it answers to, in lower case, without the blanks that none is asked with."""
        return {name.strip().casefold() for name in (self.name, *self.synonyms)}

    @property
    def source_column(self) -> str:
        """Its column in the data."""
        return self.column or self.name


class Mapping(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A table that says by which values those of a dimension are replaced, such as old accounts by new ones.

    Attributes:
        source: the source that is that table: a row for each old value and each new one.
        old: its dimension with the values as they are.
        new: its dimension with the values that take their place.
        share: its measure with the part of a row's amounts that goes to the new value; the parts of an old value must
            add up to exactly one. Empty where each old value has one new one.
        otherwise: what becomes of values that the table lacks: `refuse` to compute, or `keep` them as they are.
    """

    source: str
    old: str
    new: str
    share: str = ""
    otherwise: Literal["refuse", "keep"] = "refuse"


class Conversion(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A table of rates by which amounts become those of another currency, exactly: nothing is rounded.

    Attributes:
        to: the currency that they become; amounts in it stay as they are.
        source: the source that is that table: a row for each currency and each value of `on`.
        currency: its dimension with the currency that a rate is of.
        rate: its measure: what one unit of that currency is in the currency `to`.
        on: dimensions of both, such as the period or the day, whose values say which rate holds for a row.
    """

    to: str
    source: str
    currency: str
    rate: str
    on: tuple[str, ...] = ()


class Dimension(Member, frozen=True, omit_defaults=True, kw_only=True):
    """A column by which rows are told apart.

    Attributes:
        type: what its values are; None means as the data say (text, in a CSV or JSON file).
        format: what makes two spellings the same value.
        mapping: by what its values are replaced, wherever it is grouped or filtered by.
    """

    type: KeyType | None = None
    format: Format = Format()
    mapping: Mapping | None = None


class Measure(Member, frozen=True, omit_defaults=True, kw_only=True):
    """A figure that is added up, counted or averaged over rows; for a count, the column "*" counts rows.

    Attributes:
        expression: what is added up, in place of a column: a formula over columns such as `quantity * unit_price`
            (`treadle.analyst.declared.expression_text` lists what it may have).
        aggregation: how rows become one figure. `count` counts the rows that have a value.
        unit: what it is measured in, such as "EUR" or "pieces".
        currency: the dimension that holds the currency of each row; figures of several are told apart.
        sign: -1 for data whose sign is the wrong way round.
        decimals: how many decimals its figures have, at least; more are never cut off. None means as the data have.
        tolerance: from where its differences count.
        conversion: into which currency its amounts are turned, and by which rates.
    """

    expression: str = ""
    aggregation: Aggregation = "sum"
    unit: str = ""
    currency: str = ""
    sign: Literal[1, -1] = 1
    decimals: int | None = None
    tolerance: Tolerance | None = None
    conversion: Conversion | None = None

    def __post_init__(self) -> None:
        if self.conversion is not None and (not self.currency or self.aggregation == "count"):
            raise ValueError(f"measure {self.name!r} can be converted only if it has a currency and is no count")
        if self.expression and self.column:
            raise ValueError(f"measure {self.name!r} has both a column and an expression; it takes one of them")
        formula = self.formula
        if "*" in ((self.source_column,) if formula is None else formula.columns) and (
            formula is not None or self.aggregation != "count"
        ):
            raise ValueError(
                f"measure {self.name!r}: the column '*' stands for whole rows, which can be counted and not added up; "
                f"declare 'aggregation: count', or rename a column that is called so"
            )

    @property
    def formula(self) -> Expression | None:
        """Its expression, read and checked; None if it is a column."""
        return parse_expression(self.expression) if self.expression else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in the data that it is made of; none if it counts rows."""
        if formula := self.formula:
            return formula.columns
        return () if self.source_column == "*" else (self.source_column,)

    @property
    def additive(self) -> bool:
        """Whether figures of groups add up to the figure of the whole."""
        return self.aggregation in ("sum", "count")


UNKNOWN = "?"
"""The decimal sign of numbers where nobody has said yet which it is: numbers that have either are refused."""


class TextFormat(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How the text of a CSV file is to be read.

    Attributes:
        delimiter: the character between fields.
        decimal: the decimal sign of numbers; "?" if that is still to be said.
        thousands: the sign between thousands, empty for none; an apostrophe or a blank stands for all of its kind.
        encoding: a Python codec name.
        quotes: whether a field may stand in double quotes, which are none of its text; if not, they are like any other
            sign. None says that it may, and nobody has said so: what stands in quotes and may be rows is refused.
        ruled: whether the table is drawn, with `|` around every field and lines of dashes, as SAP writes its lists; the
            delimiter and `skip` do not count then.
        skip: how many lines stand before the one with the names of the columns.
        totals: what marks a line of totals, which is no row: the whole text of one of its fields, without regard to
            case, blanks around it and a colon behind it, `%` standing for any text; an empty one marks the lines
            whose dimensions, but for the currency of a measure, are all empty.
    """

    delimiter: str = ","
    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"
    quotes: bool | None = None
    ruled: bool = False
    skip: int = 0
    totals: tuple[str, ...] = ()

    @property
    def has_quotes(self) -> bool:
        """Whether a field may stand in double quotes."""
        return self.quotes is not False


class Source(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A named table with dimensions and measures.

    Attributes:
        name: what people and models call it.
        kind: what holds the data.
        path: the file, relative to the catalogue's folder; for CSV, Parquet and JSON a pattern such as "fi/*.csv" too.
            Empty for databases and frames.
        table: the table or view, for DuckDB and SQLite files and databases; `schema.table` where it is in a schema.
            For an Excel file the sheet, if it has several.
        dsn_env: the environment variable that says where a database is: a connection string for PostgreSQL (left out,
            libpq's own variables such as PGHOST hold), a URL for SQLAlchemy.
        description: what it is, for people and models.
        dimensions: the columns by which rows are told apart.
        measures: the figures.
        default_filters: hold unless a request filters the same dimension itself.
        tolerance: from where differences count, for all measures.
        text: how the text of a CSV file is to be read; its signs hold for text in other kinds too.
        questions: what is still to be said of a source that was proposed from its data; each result warns of it.
    """

    name: str
    kind: Kind
    path: str = ""
    table: str = ""
    dsn_env: str = ""
    description: str = ""
    dimensions: tuple[Dimension, ...] = ()
    measures: tuple[Measure, ...] = ()
    default_filters: tuple[Filter, ...] = ()
    tolerance: Tolerance | None = None
    text: TextFormat = TextFormat()
    questions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        taken: dict[str, str] = {}
        members: tuple[Member, ...] = (*self.dimensions, *self.measures)
        for member in members:
            for name in sorted(member.names):
                if not name.strip():
                    raise ValueError(f"source {self.name!r} has a dimension or measure with an empty name")
                if name in taken:
                    raise ValueError(f"source {self.name!r}: {name!r} names both {taken[name]!r} and {member.name!r}")
                taken[name] = member.name
        self._check_place()
        for measure in self.measures:
            with declared_at("measures", measure.name, "currency"):
                if measure.currency:
                    self.dimension(measure.currency, "currency")
            with declared_at("measures", measure.name, "conversion", "on"):
                for name in measure.conversion.on if measure.conversion else ():
                    self.dimension(name, "on")
        with declared_at("default_filters"):
            for condition in self.default_filters:
                self.dimension(condition.dimension, "default_filters")

    def _check_place(self) -> None:
        """Raises ValueError unless it is said where the data are, in the way of its kind."""
        told = f"source {self.name!r}: kind {self.kind}"
        if self.kind != "xlsx" and (self.kind in _WITH_TABLE) != bool(self.table):
            raise ValueError(f"{told} {'takes no table; its rows are all' if self.table else 'needs a table'}")
        if (self.kind in DATABASES or self.kind == "frame") == bool(self.path):
            raise ValueError(f"{told} {'is in no file, and takes no path' if self.path else 'needs a path'}")
        if (self.text.skip or self.text.totals) and self.kind not in ("csv", "xlsx"):
            raise ValueError(f"{told} has no lines that could be left out, and takes neither text.skip nor text.totals")
        if self.text.ruled and self.kind != "csv":
            raise ValueError(f"{told} is no text whose table could be drawn, and takes no text.ruled")
        if not self.text.has_quotes and self.kind != "csv":
            raise ValueError(f"{told} has no fields that could stand in quotes, and takes no text.quotes")
        if self.dsn_env and self.kind not in DATABASES:
            raise ValueError(f"{told} is in no database, and takes no dsn_env")
        if self.kind == "sqlalchemy" and not self.dsn_env:
            raise ValueError(f"{told} needs dsn_env, the name of the environment variable that holds its URL")
        if self.dsn_env and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.dsn_env):
            raise ValueError(
                f"{told}: dsn_env must be the name of an environment variable, not the connection string itself"
            )

    def find_dimension(self, name: str) -> Dimension | None:
        """Returns the dimension that answers to `name`, in any case, or None."""
        return next((item for item in self.dimensions if name.strip().casefold() in item.names), None)

    def dimension(self, name: str, argument: str = "dimensions") -> Dimension:
        """Returns the dimension that answers to `name`. Raises AnalystError, with the nearest, if there is none."""
        found = self.find_dimension(name)
        if found is None:
            raise unknown("dimension", argument, name, (d.name for d in self.dimensions), f"in source {self.name!r}")
        return found

    def measure(self, name: str, argument: str = "measures") -> Measure:
        """Returns the measure that answers to `name`. Raises AnalystError, with the nearest, if there is none."""
        found = next((item for item in self.measures if name.strip().casefold() in item.names), None)
        if found is None:
            raise unknown("measure", argument, name, (m.name for m in self.measures), f"in source {self.name!r}")
        return found
