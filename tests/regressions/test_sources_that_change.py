"""Sources that others write to while they are read: what is told is of one state of them, or it is not told.

Nor does a question write over what it reads.
"""

import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import duckdb
import pytest

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    compare,
    query,
)
from treadle.cli.app import run

ROWS = "CREATE TABLE t (k TEXT, j TEXT, v INT); INSERT INTO t VALUES ('1', 'p', 10), ('7', 'q', 2)"
SOURCES = """\
sources:
  a: {kind: sqlalchemy, table: t, dsn_env: CHANGING, dimensions: {k: {}, j: {}}, measures: {v: {}}}
  b: {kind: csv, path: b.csv, dimensions: {k: {}, j: {}}, measures: {v: {}}}
"""


def written(place: Path, sql: str) -> None:
    with closing(sqlite3.connect(place / "a.db")) as database:
        database.executescript(sql)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("sqlalchemy")
    monkeypatch.setenv("CHANGING", f"sqlite:///{tmp_path / 'a.db'}")
    written(tmp_path, ROWS)
    (tmp_path / "b.csv").write_text("k,j,v\n1,p,10\n")
    (tmp_path / "s.yaml").write_text(SOURCES)
    return tmp_path


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_warnings_are_not_of_another_state_of_a_sqlite_database_than_the_figures(place: Path, mode: str) -> None:
    """Each statement saw what was there by then: what was told of a value to leave out was of later rows."""
    written(place, f"PRAGMA journal_mode = {mode}")

    def tell(doing: str) -> None:
        if doing == "looking at the differences":
            written(place, "DELETE FROM t WHERE k = '7'")

    leave_out = [{"dimension": "k", "op": "!=", "value": "7"}]
    request = CompareRequest(source_a="a", source_b="b", dimensions=["k"], filters=leave_out)
    with pytest.raises(AnalystError, match=r"the database of 'a' was written to while it was read.*ask again"):
        compare(Catalog.load(place / "s.yaml"), request, tell=tell)
    found = compare(Catalog.load(place / "s.yaml"), request)
    assert "leaving it out changes nothing" in found.warnings[0].message


@pytest.mark.parametrize(("mode", "meanwhile"), [("WAL", "write"), ("WAL", "replace"), ("DELETE", "write")])
def test_a_sqlite_file_with_a_log_is_read_in_one_state_while_others_write(
    tmp_path: Path, mode: str, meanwhile: str
) -> None:
    """Each question was refused of a file to which an application wrote all the time."""
    names, live = ("a", "b"), tmp_path / "live.db"
    with closing(sqlite3.connect(live)) as application:
        application.execute(f"PRAGMA journal_mode = {mode}")
        for name in names:
            application.execute(f"CREATE TABLE {name} (k TEXT, v TEXT)")
            application.execute(f"INSERT INTO {name} VALUES ('1', '1.00'), ('2', '5.00')")
        application.commit()

        def tell(doing: str) -> None:
            # Between the reading of one table and that of the other, and once both are read.
            if meanwhile == "write":
                for name in names:
                    application.execute(f"UPDATE {name} SET v = CAST(v + 1 AS TEXT)")
                application.commit()
            elif doing == "looking at the differences":
                (tmp_path / "copy.db").write_bytes(live.read_bytes())
                (tmp_path / "copy.db").replace(live)

        shape = {"dimensions": (Dimension(name="k"),), "measures": (Measure(name="v"),)}
        sources = [Source(name=name, kind="sqlite", path="live.db", table=name, **shape) for name in names]  # type: ignore[arg-type]
        catalog, request = Catalog(sources, tmp_path), CompareRequest(source_a="a", source_b="b")
        if (mode, meanwhile) == ("WAL", "write"):
            found = compare(catalog, request, tell=tell)
            assert found.summary.matches == found.summary.total_rows == 2
        else:
            with pytest.raises(AnalystError, match=r"changed while it was read.*or ask a copy"):
                compare(catalog, request, tell=tell)


def test_what_others_write_after_the_only_statement_is_no_fault(place: Path) -> None:
    def tell(doing: str) -> None:
        if doing == "looking at the differences":
            written(place, "DELETE FROM t WHERE k = '7'")

    request = CompareRequest(source_a="a", source_b="b", dimensions=["k"])
    assert str(compare(Catalog.load(place / "s.yaml"), request, tell=tell).summary.total_source_a) == "12.00"


def test_a_page_has_no_other_rows_behind_a_difference_than_those_that_made_it(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rows are looked up after the comparison, here of a view that is another each time."""
    written(place, "CREATE VIEW other AS SELECT '1' AS k, 'p' AS j, abs(random() % 1000000000) AS v")
    live = "  a: {kind: sqlite, path: a.db, table: other, dimensions: {k: {}, j: {}}, measures: {v: {}}}\n"
    (place / "s.yaml").write_text(SOURCES.replace(SOURCES.splitlines(keepends=True)[1], live))
    page, table = place / "page.html", place / "table.csv"
    table.write_text("as it was")
    given = ["compare", "a", "b", "--by", "k", "--sources", str(place / "s.yaml"), "--html", str(page), "--lines", "3"]
    assert run([*given, "--csv", str(table)]) != 0
    assert "'a' changed after it was compared" in " ".join(capsys.readouterr().err.split())
    assert (page.exists(), table.read_text()) == (False, "as it was")
    assert not [*place.glob(".*.part")]


MAPPED = """\
sources:
  a: {kind: csv, path: b.csv, dimensions: {k: {mapping: {source: m, from: old, to: new}}, j: {}}, measures: {v: {}}}
  m: {kind: csv, path: m.csv, dimensions: {old: {}, new: {}}, measures: {rows: {column: "*", aggregation: count}}}
"""


@pytest.mark.parametrize(
    "question",
    [
        ["query", "a", "--by", "k"],
        ["compare", "a", "a", "--by", "k"],
        ["compare", "a", "a", "--by", "k", "--html", "p.html", "--lines", "2"],
    ],
)
def test_a_table_that_values_are_looked_up_in_is_not_written_over(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, question: list[str]
) -> None:
    """A query wrote its rows over the table of its mapping."""
    monkeypatch.chdir(place)
    (place / "s.yaml").write_text(MAPPED)
    (place / "m.csv").write_text("old,new\n1,one\n")
    assert run([*question, "--sources", "s.yaml", "--csv", "m.csv"]) == 2
    assert "it is a file of one of the sources" in " ".join(capsys.readouterr().err.split())
    assert (place / "m.csv").read_text() == "old,new\n1,one\n"


@pytest.mark.parametrize(
    "target", ["other.csv", "link.csv", "all/one.csv", "all/new.csv", "all/deep/new.csv", "gone.csv"]
)
@pytest.mark.parametrize(
    "question",
    [["query", "a"], ["compare", "a", "b"], ["compare", "a", "b", "--html", "p.html", "--lines", "2"]],
    ids=["query", "compare", "lines"],
)
def test_a_source_that_is_not_asked_is_not_written_over_nor_given_a_file(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, question: list[str], target: str
) -> None:
    """A slip in a file's name lost a source, or gave one rows of which nobody knew."""
    monkeypatch.chdir(place)
    shape = "dimensions: {k: {}}, measures: {v: {}}"
    places = {"a": "a.csv", "b": "b.csv", "c": "other.csv", "d": "all/**/*.csv", "e": "gone.csv"}
    lines = [f"  {name}: {{kind: csv, path: '{path}', {shape}}}" for name, path in places.items()]
    (place / "s.yaml").write_text("\n".join(["sources:", *lines]))
    (place / "all" / "deep").mkdir(parents=True)
    for name in ("a.csv", "b.csv", "other.csv", "all/one.csv"):
        (place / name).write_text("k,v\n1,2.00\n")
    (place / "link.csv").symlink_to("other.csv")
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert run([*question, "--sources", "s.yaml", "--csv", target]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "it is a file of one of the sources" in told or "would read it" in told
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


WRITER = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_duckdb_file_that_is_being_written_to_is_told_as_that(tmp_path: Path, elsewhere: bool) -> None:
    """It was to be looked whether all of the file is there, and of the declared kind."""
    file = tmp_path / "a.duckdb"
    with duckdb.connect(file) as made:
        made.execute("CREATE TABLE t AS SELECT 'x' AS k, 1 AS v")
    source = Source(
        name="a",
        kind="duckdb",
        path=file.name,
        table="t",
        dimensions=(Dimension(name="k"),),
        measures=(Measure(name="v"),),
    )
    catalog = Catalog([source], tmp_path)
    with ExitStack() as held:
        if elsewhere:
            writer = held.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WRITER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            )
            assert writer.stdout is not None
            writer.stdout.readline()
        else:
            held.enter_context(duckdb.connect(file))
        with pytest.raises(
            AnalystError, match=r"source 'a': its DuckDB file is open for writing elsewhere.*or read a copy"
        ):
            query(catalog, QueryRequest(source="a"))
    assert str(query(catalog, QueryRequest(source="a")).totals["v"]) == "1"
