"""More groups than fit into memory: passes give the same figures, and a full disk is told as such."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from treadle.analyst import (
    AnalystError,
    Bounds,
    Catalog,
    CompareRequest,
    Comparison,
    Dimension,
    Measure,
    Source,
    compare,
)

GROUPS = 150_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("large")
    for name, amount in (("a", "i % 1000"), ("b", "i % 1000 + CASE WHEN i % 30000 = 0 THEN 7000 ELSE 0 END")):
        with duckdb.connect() as connection:
            key = f"CASE WHEN i % {GROUPS} = 5 THEN NULL ELSE printf('%032d', i % {GROUPS}) END"
            connection.execute(
                f"COPY (SELECT {key} AS k, ({amount})::DECIMAL(18, 2) AS amount FROM range({GROUPS + 1000}) AS t(i)) "
                f"TO '{folder / name}.parquet' (FORMAT parquet)"
            )
    return Catalog(
        [
            Source(
                name=name,
                kind="parquet",
                path=f"{name}.parquet",
                dimensions=(Dimension(name="k"),),
                measures=(Measure(name="amount"), Measure(name="mean", column="amount", aggregation="avg")),
            )
            for name in "ab"
        ],
        folder,
    )


def compared(catalog: Catalog, bounds: Bounds, **options: Any) -> Comparison:
    request = CompareRequest(source_a="a", source_b="b", dimensions=["k"], keep=50)
    return compare(catalog, request, bounds=bounds, **options)


def replaced(found: Comparison) -> list[dict[str, Any]]:
    """What was found, without the warnings: there may be too little memory for one of their questions."""
    data = found.to_dict(rows=True)
    assert all("not enough memory" in one["message"] for one in data.pop("warnings") if one["kind"] == "not_examined")
    return [data, *({**more, "warnings": None} for more in data.pop("more"))]


def test_passes_find_the_same(large: Catalog) -> None:
    told: list[str] = []
    tight = compared(large, Bounds(memory="20MB", threads=1), tell=told.append)
    assert any("passes" in one for one in told)
    free = compared(large, Bounds(threads=1))
    assert replaced(tight) == replaced(free)
    assert free.summary.total_rows == GROUPS
    assert free.summary.major_differences == 5


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """The same rows twice: in tables with a primary key, and in tables without."""
    folder = tmp_path_factory.mktemp("keyed")
    sources = []
    for name, amount in (("a", "i % 1000"), ("b", "i % 1000 + CASE WHEN i % 30000 = 0 THEN 7000 ELSE 0 END")):
        with duckdb.connect(str(folder / f"{name}.duckdb")) as connection:
            connection.execute("CREATE TABLE keyed (k VARCHAR PRIMARY KEY, amount DECIMAL(18, 2))")
            connection.execute(
                f"INSERT INTO keyed SELECT printf('%032d', i), {amount} FROM range({GROUPS}) AS t(i) "
                f"WHERE i % 1000 <> {ord(name)}"
            )
            connection.execute("CREATE TABLE plain AS FROM keyed")
        for table in ("keyed", "plain"):
            kept = {"kind": "duckdb", "path": f"{name}.duckdb", "dimensions": (Dimension(name="k"),)}
            sources.append(Source(name=f"{table}_{name}", table=table, measures=(Measure(name="amount"),), **kept))
    return Catalog(sources, folder)


def test_passes_of_a_join_find_the_same(keyed: Catalog) -> None:
    def found(table: str, bounds: Bounds, told: list[str]) -> dict[str, Any]:
        request = CompareRequest(source_a=f"{table}_a", source_b=f"{table}_b", dimensions=["k"], keep=50)
        text = compare(keyed, request, bounds=bounds, tell=told.append).to_dict(rows=True)
        return json.loads(json.dumps(text).replace(f"{table}_", "")) | {"warnings": None}

    told: list[str] = []
    tight = found("keyed", Bounds(memory="20MB", threads=1), told)
    assert any("passes" in one for one in told)
    assert tight == found("keyed", Bounds(threads=1), []) == found("plain", Bounds(threads=1), [])
    assert (tight["summary"]["missing_in_a"], tight["summary"]["major_differences"]) == (150, 5)


def test_a_limit_on_spilling_is_told(large: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(AnalystError, match="20MB, and more than 1MB to spill to disk"):
        compared(large, Bounds(memory="20MB", spill="1MB", threads=1))
    assert list(tmp_path.iterdir()) == []


FULL = """
import resource, signal, sys
from pathlib import Path
from treadle.analyst import *

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
sources = [Source(name=name, kind="parquet", path=f"{name}.parquet", dimensions=(Dimension(name="k"),),
                  measures=(Measure(name="amount"),)) for name in "ab"]
request = CompareRequest(source_a="a", source_b="b", dimensions=["k"], keep=0)
try:
    compare(Catalog(sources, sys.argv[1]), request, bounds=Bounds(memory="20MB", threads=1))
except AnalystError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit on the size of files")
def test_a_disk_that_takes_no_more_is_told(large: Catalog, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(large.folder)],
        env={"TMPDIR": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith(f"the disk that holds {tmp_path}"), done.stdout + done.stderr
    assert "set TMPDIR" in done.stdout
    assert list(tmp_path.iterdir()) == []


COPIED = """
import resource, sys
from treadle.analyst import AnalystError, Catalog, Dimension, Measure, QueryRequest, Source, query
from treadle.analyst.declared.source import TextFormat

resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
texts = {"cp1252": TextFormat(encoding="cp1252"), "footer": TextFormat(totals=("summe",)),
         "ruled": TextFormat(delimiter="|", ruled=True)}
source = Source(name="a", kind="csv", path=f"{sys.argv[2]}.csv", text=texts[sys.argv[2]],
                dimensions=(Dimension(name="k"),), measures=(Measure(name="amount"),))
try:
    query(Catalog([source], sys.argv[1]), QueryRequest(source="a"))
except AnalystError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit on the size of files")
@pytest.mark.parametrize("name", ["cp1252", "footer", "ruled"])
def test_a_disk_that_takes_no_copy_of_a_file_is_told(tmp_path: Path, name: str) -> None:
    """It came out as an error of the system, or as a fault of a line that was declared to be left out."""
    rows = [f"{at},{at},{'x' * 40}" for at in range(40_000)]
    lines = ["k,amount,text", *rows, *(["Summe,1"] if name == "footer" else [])]
    if name == "ruled":
        lines = ["-" * 20, *("|" + line.replace(",", "|") + "|" for line in lines)]
    (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", COPIED, str(tmp_path), name],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith(f"the disk that holds {tmp_path}"), done.stdout + done.stderr
    assert [one.name for one in tmp_path.iterdir()] == [f"{name}.csv"]
