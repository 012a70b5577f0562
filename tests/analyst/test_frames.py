"""Frames in memory: exact, and what they are is recognised without importing where they come from."""

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from treadle.analyst import (
    AnalystError,
    Bounds,
    Catalog,
    CompareRequest,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    compare,
    query,
)

D = Decimal
QUICK = Bounds(threads=1, seconds=60)
pyarrow = pytest.importorskip("pyarrow")
DATA = {"company": ["a", "b", None], "amount": [D("0.10"), D("9007199254740993.25"), None], "date": ["x", "y", "y"]}


def frames() -> dict[str, Any]:
    made = {"arrow": pyarrow.table(DATA)}
    for name in ("pandas", "polars"):
        module = pytest.importorskip(name)
        made[name] = module.DataFrame(DATA)
    return made


def test_all_frames_say_the_same_and_exactly() -> None:
    catalog = Catalog.of(frames())
    for name in catalog.sources:
        found = query(catalog, QueryRequest(source=name, dimensions=["company"]), bounds=QUICK)
        assert found.totals == {"amount": D("9007199254740993.35")}
        assert [row["company"] for row in found.rows] == ["a", "b", None]
        assert not found.warnings
    asked = CompareRequest(source_a="pandas", source_b="polars")
    assert compare(catalog, asked, bounds=QUICK).summary.matches == 3


def test_declared_frames_beside_files(make: Any, tmp_path: Any) -> None:
    frame = pyarrow.table({"BUKRS": ["0000001001"], "v": pyarrow.array([1.5])})
    declared = Source(
        name="f", kind="frame", dimensions=(Dimension(name="company", column="BUKRS"),),
        measures=(Measure(name="amount", column="v"),),
    )  # fmt: skip
    file = make("file", [("1001", "1.50")], formats={"company": "alpha(10)"})
    catalog = Catalog.of({"f": frame}, [declared, file], tmp_path)
    found = compare(catalog, CompareRequest(source_a="f", source_b="file"), bounds=QUICK)
    assert (found.summary.matches, found.summary.total_rows) == (1, 1)
    assert "approximate" in [finding.kind for finding in found.warnings]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"a": 1}, "is a dict; give an Arrow table"),
        ([1], "is a list; give an Arrow table"),
        (pyarrow.table({"a": [1]}).to_reader(), "can be read only once"),
    ],
)
def test_what_is_no_frame_is_refused(frame: Any, message: str) -> None:
    with pytest.raises(AnalystError, match=message):
        Catalog.of({"x": frame})


def test_a_column_of_several_types_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(AnalystError, match="cannot be held exactly"):
        Catalog.of({"x": pandas.DataFrame({"v": [D("1"), 1.5, "x"]})})


def test_python_objects_in_polars_are_refused() -> None:
    """The keys were where the objects are in memory, which is another place each time."""
    polars = pytest.importorskip("polars")
    held = polars.Series("account", [D("1"), "x"], dtype=polars.Object)
    with pytest.raises(AnalystError, match="column 'account' holds Python objects; cast it"):
        Catalog.of({"x": polars.DataFrame([held, polars.Series("amount", [1, 2])])})


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (datetime(2024, 1, 1, 5), "days and times without a zone"),
        (datetime(2024, 1, 1, 5, tzinfo=UTC), "days and times with a zone"),
    ],
)
def test_days_and_times_in_one_column_are_refused(other: datetime, told: str) -> None:
    """Arrow takes the time from each where a day is the first: two keys were one."""
    pandas = pytest.importorskip("pandas")
    days = [date(2024, 1, 1), other]
    with pytest.raises(AnalystError, match=f"column 'at' holds {told}"):
        Catalog.of({"x": pandas.DataFrame({"at": pandas.Series(days, dtype=object), "amount": [1, 2]})})
    zoned = [datetime(2024, 1, 1, 5), datetime(2024, 1, 1, 7, tzinfo=timezone(timedelta(hours=2)))]
    for mixed in (zoned, zoned[::-1]):
        with pytest.raises(AnalystError, match="column 'at' holds times with a zone and times without a zone"):
            Catalog.of({"x": pandas.DataFrame({"at": pandas.Series(mixed, dtype=object), "amount": [1, 2]})})
    held = pandas.DataFrame({"at": pandas.Series([*days[:1], None, pandas.NaT], dtype=object), "amount": [1, 2, 4]})
    found = query(Catalog.of({"x": held}), QueryRequest(source="x", dimensions=["at"], measures=["amount"]))
    assert [(row["at"], row["amount"]) for row in found.rows] == [(days[0], 1), (None, 6)]


def test_what_has_yet_to_be_computed_says_what_to_do() -> None:
    class Lazy:
        def collect(self) -> None: ...

    with pytest.raises(AnalystError, match=r"is a Lazy \(call \.collect\(\) on it\)"):
        Catalog.of({"x": Lazy()})


def test_frames_and_sources_have_the_same_names() -> None:
    source = Source(name="f", kind="frame", measures=(Measure(name="n", column="*", aggregation="count"),))
    with pytest.raises(ValueError, match="must have the same names"):
        Catalog([source])
    with pytest.raises(ValueError, match="must have the same names"):
        Catalog([], frames={"f": 1})


ALONE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "polars"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import pyarrow
from treadle.analyst import Catalog, QueryRequest, query
print(query(Catalog.of({"f": pyarrow.table({"v": [1.5, 2]})}), QueryRequest(source="f")).totals["v"])
"""


def test_an_arrow_frame_needs_neither_pandas_nor_polars() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("3.50\n", "")
