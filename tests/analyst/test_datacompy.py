"""Where datacompy is exact, on whole cents under unique keys, it finds the same rows equal, different and missing.

`make test-peers` fetches datacompy, which wants older versions of pandas and Polars than ours, into a place of its own.
"""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest

from treadle.analyst import Bounds, Catalog, CompareRequest, Comparison, Dimension, Measure, Source, compare

KEYS = ["company", "account", "period"]
PROGRAM = """
import json, sys
import pandas
from datacompy import PandasCompare

a, b = (pandas.read_json(name, dtype={key: str for key in sys.argv[4:]}) for name in sys.argv[1:3])
found = PandasCompare(a, b, join_columns=sys.argv[4:], abs_tol=float(sys.argv[3]), rel_tol=0)

def keys(frame):
    return sorted(map(list, frame[sys.argv[4:]].astype(str).itertuples(index=False)))

both = found.intersect_rows
same = both["cents_match"]
print(json.dumps({"match": keys(both[same]), "differ": keys(both[~same]), "only_a": keys(found.df1_unq_rows),
                  "only_b": keys(found.df2_unq_rows), "counted": int(found.count_matching_rows())}))
"""


@pytest.fixture(scope="session")
def library() -> Path:
    peers = runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "peers.py"))
    if not peers["LIBRARY"].exists():
        if os.environ.get("TREADLE_PEERS"):
            pytest.fail("datacompy is not there, though `make test-peers` should have fetched it")
        pytest.skip("`make test-peers` fetches datacompy")
    return Path(peers["LIBRARY"])


def sides(seed: int, rows: int) -> list[pandas.DataFrame]:
    """Two tables with unique keys: most rows are equal, some differ by a cent or by much, some are on one side only."""
    random = numpy.random.default_rng(seed)
    index = pandas.MultiIndex.from_product(
        [[f"{at:04}" for at in range(1000, 1000 + rows // 60)], [f"4{at}" for at in range(5)],
         [f"2024{at:02}" for at in range(1, 13)]],
        names=KEYS,
    )  # fmt: skip
    whole = pandas.DataFrame({"cents": random.integers(-(10**12), 10**12, len(index))}, index=index).reset_index()
    other = whole.copy()
    change = random.choice([0, 0, 0, 0, 1, -1, 2, 10**9], len(other))
    other["cents"] += change
    return [
        frame[random.random(len(frame)) > 0.05].sample(frac=1, random_state=seed).reset_index(drop=True)
        for frame in (whole, other)
    ]


def ours(folder: Path, frames: list[pandas.DataFrame], tolerance: int) -> Comparison:
    sources = [
        Source(name=name, kind="json", path=f"{name}.json", dimensions=tuple(Dimension(name=key) for key in KEYS),
               measures=(Measure(name="cents", decimals=0),))
        for name in "ab"
    ]  # fmt: skip
    asked = CompareRequest(source_a="a", source_b="b", tolerance=tolerance)
    return compare(Catalog(sources, folder), asked, bounds=Bounds(threads=1))


def of_status(found: Comparison, test: Callable[[str], bool]) -> list[list[str]]:
    return sorted([row.key[key] for key in KEYS] for row in found.rows if test(row.status))


@pytest.mark.parametrize("tolerance", [0, 1])
@pytest.mark.parametrize(("seed", "rows"), [(1, 600), (2, 6000), (3, 60)])
def test_datacompy_finds_the_same(library: Path, tmp_path: Path, seed: int, rows: int, tolerance: int) -> None:
    frames = sides(seed, rows)
    for name, frame in zip("ab", frames, strict=True):
        frame.to_json(tmp_path / f"{name}.json", orient="records")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "a.json"), str(tmp_path / "b.json"), str(tolerance), *KEYS],
        env=os.environ | {"PYTHONPATH": str(library)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    theirs: dict[str, Any] = json.loads(done.stdout)
    found = ours(tmp_path, frames, tolerance)
    assert theirs == {
        "match": of_status(found, lambda status: status == "match"),
        "differ": of_status(found, lambda status: status.endswith("_diff")),
        "only_a": of_status(found, lambda status: status == "missing_in_b"),
        "only_b": of_status(found, lambda status: status == "missing_in_a"),
        "counted": found.summary.matches,
    }
    assert min(map(len, (theirs["match"], theirs["differ"], theirs["only_a"], theirs["only_b"]))) > 0
