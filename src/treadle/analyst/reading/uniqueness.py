"""Uniqueness: the sets of columns in which no two rows of a table are alike, as its database holds them to it.

Only what is enforced counts: PRIMARY KEY and UNIQUE of a DuckDB table. To find out by looking would cost as much as it
saves. Reads the engine's catalogue.
"""

from treadle.analyst.reading.session import Session
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import literal

Unique = tuple[frozenset[str], ...]
"""Sets of columns; no two rows have the same values in all columns of one of them, nor NULL in any."""


def unique_columns(session: Session, table: "exp.Table") -> Unique:
    """Returns what is enforced on a table of an attached DuckDB file; nothing for a view."""
    named = [("database_name", table.catalog), ("schema_name", table.db), ("table_name", table.name)]

    def of_table(function: str, *columns: str) -> "exp.Select":
        rows = exp.Table(this=exp.Anonymous(this=function))
        conditions = [exp.EQ(this=exp.column(column), expression=literal(name)) for column, name in named]
        return exp.select(*columns).from_(rows).where(*conditions)

    found = session.run(of_table("duckdb_constraints", "constraint_type", "constraint_column_names"))
    never_null = {column for kind, columns in found if kind in ("NOT NULL", "PRIMARY KEY") for column in columns}
    unique = tuple(frozenset(columns) for kind, columns in found if kind in ("UNIQUE", "PRIMARY KEY"))
    unique = tuple(columns for columns in unique if columns <= never_null)
    # A constraint tells apart what grouping does not where a column has a collation; only the definition says so.
    collated = unique and any("COLLATE" in row[0].upper() for row in session.run(of_table("duckdb_tables", "sql")))
    return () if collated else unique
