"""Frames: data that the application already holds, as Arrow tables.

pandas and Polars are never imported here: what they make is recognised by its own methods. Needs pyarrow, which is
imported when the first frame is read.
"""

from datetime import date, datetime, time
from importlib import import_module
from typing import Any

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.reading.headings import each_named

_PERIOD = "pandas.period"


def arrow_table(name: str, frame: object) -> Any:
    """Returns the frame as an Arrow table, decimals exact.

    Raises:
        AnalystError: it is no frame, or has a column of several types.
    """
    if not hasattr(frame, "__arrow_c_stream__"):
        collect = " (call .collect() on it)" if hasattr(frame, "collect") else ""
        raise AnalystError(
            f"source {name!r} is a {type(frame).__name__}{collect}; give an Arrow table, or a pandas or Polars frame",
            argument="source",
            given=name,
        )
    try:
        pyarrow = import_module("pyarrow")
    except ImportError as error:
        raise AnalystError(f"source {name!r} is a frame, which needs pyarrow: pip install 'treadle[frames]'") from error
    if isinstance(frame, pyarrow.RecordBatchReader):
        raise AnalystError(f"source {name!r} can be read only once; give what .read_all() returns", given=name)
    _refuse_objects(name, frame)
    if getattr(getattr(frame, "columns", None), "has_duplicates", False):
        # Of pandas, whose columns of one name Arrow does not take.
        frame = _each_named(frame, name)
    try:
        table = pyarrow.table(frame)
        _refuse_mixed_times(name, frame, [one.name for one in table.schema if pyarrow.types.is_temporal(one.type)])
        return _readable(pyarrow, table, name)
    except (pyarrow.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise AnalystError(f"source {name!r}: the frame cannot be held exactly: {error}", given=name) from error


def _refuse_objects(name: str, frame: Any) -> None:
    """Raises AnalystError for a column of Python objects in Polars, of which Arrow gets where these are in memory."""
    kinds: Any = frame.schema if hasattr(frame, "get_columns") else {}
    column = next((column for column, kind in kinds.items() if str(kind) == "Object"), None)
    if column is not None:
        raise AnalystError(
            f"source {name!r}: column {column!r} holds Python objects; cast it to text or to a number, or leave it out",
            given=name,
        )


def _each_named(frame: Any, name: str) -> Any:
    return frame.set_axis(each_named([str(label) for label in frame.columns], f"source {name!r}: the frame"), axis=1)


def _refuse_mixed_times(name: str, frame: Any, columns: list[str]) -> None:
    """Raises AnalystError for a column of days and times, or of times with a zone and without one.

    Arrow makes all of them what the first one is: it takes the time from the others, or the zone, or takes it for UTC.
    """
    kinds: Any = getattr(frame, "dtypes", None)
    for column in columns if hasattr(kinds, "get") else []:
        if str(kinds.get(column)) != "object":
            continue
        found = sorted({_time_of(value) for value in frame[column]} - {""})
        if len(found) > 1:
            raise AnalystError(
                f"source {name!r}: column {column!r} holds {' and '.join(found)}; have all of one kind, as by "
                "pandas.to_datetime",
                given=name,
            )


def _time_of(value: Any) -> str:
    # What is no time at all, NaT, is an instance of the class too, and is unlike itself.
    if not isinstance(value, (date, time)) or value != value:
        return ""
    if not isinstance(value, (datetime, time)):
        return "days"
    return "times without a zone" if value.tzinfo is None else "times with a zone"


def _readable(pyarrow: Any, table: Any, name: str) -> Any:
    """The table with columns that the engine has no type for in the next wider or narrower that holds their values;
    pandas' periods as text, such as 2024-01."""
    for at, field in enumerate(table.schema):
        if getattr(field.type, "extension_name", "") == _PERIOD:
            # What is stored is a number of months, or of days, since 1970.
            periods = table.column(at).to_pandas()
            texts = periods.astype(str).where(periods.notna(), None)
            table = table.set_column(at, field.name, pyarrow.array(texts, pyarrow.string(), from_pandas=True))
            continue
        kind = None
        if pyarrow.types.is_float16(field.type):
            kind = pyarrow.float32()
        elif pyarrow.types.is_decimal256(field.type):
            kind = pyarrow.decimal128(38, field.type.scale)
        if kind is not None:
            table = table.set_column(at, field.name, table.column(at).cast(kind))
    return table.rename_columns(each_named(table.column_names, f"source {name!r}: the frame"))
