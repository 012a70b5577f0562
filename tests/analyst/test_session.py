"""The engine reads what it was opened for and nothing else, within bounds, and can be stopped."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlglot import parse_one

from treadle.analyst import (
    AnalystError,
    Bounds,
    Cancelled,
    Catalog,
    CompareRequest,
    Dimension,
    Interrupt,
    Measure,
    QueryRequest,
    Source,
    compare,
    query,
)
from treadle.analyst.reading.session import Session

SLOW = "SELECT COUNT(*) FROM range(100000000) AS a, range(100000) AS b WHERE a.range * b.range % 7 = 3"


@pytest.fixture
def source(make: Any) -> Source:
    return make("s", [("1", 2)])


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('{folder}/other.csv')",
        "SELECT * FROM '{folder}/other.csv'",
        "SELECT * FROM glob('{folder}/*')",
        "COPY (SELECT 1) TO '{folder}/s.csv'",
        "COPY (SELECT 1) TO '{folder}/made.csv'",
        "ATTACH '{folder}/made.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '1TB'",
        "SELECT * FROM read_csv('https://127.0.0.1:1/x.csv')",
        "SELECT * FROM source",
    ],
)
def test_nothing_but_the_sources_can_be_read_or_written(source: Source, tmp_path: Path, statement: str) -> None:
    (tmp_path / "other.csv").write_text("a\n1\n")
    before = sorted(tmp_path.iterdir())
    with Session(Catalog([source], tmp_path), [source]) as session, pytest.raises(AnalystError):
        session._execute(statement.format(folder=tmp_path), None)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "s.csv").read_text() == '"company","amount"\n"1","2"\n'


def test_its_settings_hold(source: Source, tmp_path: Path) -> None:
    with Session(Catalog([source], tmp_path), [source], Bounds(memory="300MB", spill="1GB", threads=1)) as session:
        settings = dict(session._execute("SELECT name, value FROM duckdb_settings()", None))
        assert Path(settings["temp_directory"]) == session.folder
    expected = {
        "memory_limit": "286.1 MiB", "max_temp_directory_size": "953.6 MiB", "threads": "1", "TimeZone": "UTC",
        "autoload_known_extensions": "false", "autoinstall_known_extensions": "false",
        "python_enable_replacements": "false", "preserve_insertion_order": "false",
        "disable_parquet_prefetching": "true", "enable_external_access": "false", "lock_configuration": "true",
    }  # fmt: skip
    assert {name: settings[name] for name in expected} == expected
    assert settings.get("async_threads", "0") == "0"


def test_a_limit_that_is_none_is_told_and_leaves_nothing_behind(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    session = Session(Catalog([source], tmp_path), [source], Bounds(memory="much"))
    with pytest.raises(AnalystError, match="Memory must have a number"), session:
        pass
    assert not list((tmp_path / "temporary").iterdir())


def test_databases_are_attached_read_only(make: Any, tmp_path: Path) -> None:
    source = make("s", [("1", 2)], kind="duckdb")
    with Session(Catalog([source], tmp_path), [source]) as session, pytest.raises(AnalystError, match="read-only"):
        session._execute("INSERT INTO db0.t VALUES ('2', 3)", None)


def test_time_is_bounded(source: Source, tmp_path: Path) -> None:
    bounds = Bounds(seconds=0.2)
    with (
        pytest.raises(AnalystError, match=r"longer than 0\.2 seconds"),
        Session(Catalog([source], tmp_path), [source], bounds) as session,
    ):
        session.run(parse_one(SLOW, dialect="duckdb"))


def test_memory_is_bounded(tmp_path: Path, make: Any) -> None:
    source = make("s", [(f"{n:064}", 1) for n in range(60_000)])
    bounds = Bounds(memory="4MB", threads=1, spill="1MB")
    with pytest.raises(AnalystError, match=r"needs more memory than 4MB|could not"):
        query(Catalog([source], tmp_path), QueryRequest(source="s", dimensions=["company"]), bounds=bounds)


def test_an_interrupt_stops_a_statement_under_way(source: Source, tmp_path: Path) -> None:
    interrupt = Interrupt()
    with Session(Catalog([source], tmp_path), [source], interrupt=interrupt) as session:
        threading.Timer(0.1, interrupt.set).start()
        with pytest.raises(Cancelled):
            session.run(parse_one(SLOW, dialect="duckdb"))


def test_an_interrupt_that_is_set_lets_nothing_start(source: Source, tmp_path: Path) -> None:
    interrupt = Interrupt()
    interrupt.set()
    for ask in (
        lambda catalog: query(catalog, QueryRequest(source="s"), interrupt=interrupt),
        lambda catalog: compare(catalog, CompareRequest(source_a="s", source_b="s"), interrupt=interrupt),
    ):
        with pytest.raises(Cancelled):
            ask(Catalog([source], tmp_path))


def test_a_file_that_changes_while_it_is_read_is_told(source: Source, tmp_path: Path) -> None:
    with (
        pytest.raises(AnalystError, match="changed while it was read"),
        Session(Catalog([source], tmp_path), [source]),
    ):
        (tmp_path / "s.csv").write_text("company,amount\n1,3\n")


def test_a_file_that_takes_the_place_of_another_of_its_size_and_date_is_told(source: Source, tmp_path: Path) -> None:
    file, other = tmp_path / "s.csv", tmp_path / "other.csv"
    before = file.stat()
    other.write_bytes(file.read_bytes().replace(b"1", b"9"))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    with (
        pytest.raises(AnalystError, match="changed while it was read"),
        Session(Catalog([source], tmp_path), [source]),
    ):
        other.replace(file)


def test_nothing_is_left_behind(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    threads = threading.active_count()
    query(Catalog([source], tmp_path), QueryRequest(source="s"))
    with pytest.raises(AnalystError):
        query(Catalog([source], tmp_path), QueryRequest(source="s", filters={"company": "1"}, measures=["x"]))
    broken = Source(
        name="b", kind="csv", path="s.csv", dimensions=(Dimension(name="none"),), measures=(Measure(name="v"),)
    )
    with pytest.raises(AnalystError):
        query(Catalog([broken], tmp_path), QueryRequest(source="b"))
    assert list(scratch.iterdir()) == []
    assert threading.active_count() <= threads + 1
