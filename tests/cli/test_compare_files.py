"""`treadle compare` writes files, draws bars, shows what it does at a terminal, and can be stopped."""

import csv
import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

MAIN = ("compare", "fi_reporting", "consolidation_mart", "--by", "company,period", "--measure", "amount")


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("compare", "fi_reporting", "consolidation_mart"), "--by"),
        (("query", "fi_reporting"), "--by"),
        (("rows", "fi_reporting", "consolidation_mart"), "--key"),
        (("rows", "fi_reporting", "consolidation_mart", "--key", "account"), "--columns"),
    ],
)
def test_names_may_be_given_one_by_one(treadle: Any, command: tuple[str, ...], option: str) -> None:
    """The last of them won without a word."""
    apart = treadle(*command, option, "company", option, "period, currency", "--json")
    assert (apart.code, apart.out) == (0, treadle(*command, option, "company,period,currency", "--json").out)
    assert apart.out != treadle(*command, option, "period,currency", "--json").out


def test_files_are_written_beside_the_table(treadle: Any) -> None:
    done = treadle(*MAIN, "--json", "o.json", "--csv", "o.csv", "--html", "o.html", "--parquet", "o.parquet")
    assert done.code == 0
    assert "major_diff" in done.out
    sample, *written = done.err.splitlines()
    assert "the sample" in sample
    assert written == [f"written: o.{name}" for name in ("json", "csv", "html", "parquet")]
    whole = json.loads((treadle.folder / "o.json").read_text("utf-8"))
    assert len(whole["rows"]) == whole["summary"]["total_rows"] == 60
    with (treadle.folder / "o.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert (rows[0]["company"], rows[0]["period"], rows[0]["diff"]) == ("1001", "202401", "8000.00")
    assert (treadle.folder / "o.html").read_text("utf-8").startswith("<!doctype html>")
    found = duckdb.sql(f"SELECT currency, sum(diff) FROM '{treadle.folder}/o.parquet' GROUP BY 1 ORDER BY 1").fetchall()
    totals = {one["currency"]: one["diff"] for one in whole["summary"]["by_currency"]}
    assert {currency: str(diff) for currency, diff in found} == totals
    assert whole["summary"]["total_diff"] is None


def test_json_without_a_file_is_printed(treadle: Any) -> None:
    done = treadle(*MAIN, "--csv", "o.csv", "--json")
    assert json.loads(done.out)["summary"]["total_rows"] == 60
    assert (treadle.folder / "o.csv").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--csv", "."], "it is a folder"),
        (["--html", "none/o.html"], "there is no folder"),
        (["--parquet", "script.py"], "does not end in .parquet"),
        (["--csv", ""], "the name of the file is empty"),
        (["--csv", "o.csv", "--json", "o.csv"], "written twice"),
        (["--csv", "/proc/o.csv"], "cannot be written"),
    ],
)
def test_a_file_that_cannot_be_written(treadle: Any, options: list[str], said: str) -> None:
    before = sorted(treadle.folder.iterdir())
    done = treadle(*MAIN, *options)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""
    assert sorted(treadle.folder.iterdir()) == before


def test_a_json_option_that_swallows_a_source_harms_nothing(treadle: Any) -> None:
    (treadle.folder / "fi_reporting").write_text("mine")
    printed = treadle(*MAIN, "--json", "-")
    assert (printed.code, printed.out) == (0, treadle(*MAIN, "--json").out)
    assert not (treadle.folder / "-").exists()
    assert treadle("compare", "--json", "fi_reporting", "consolidation_mart").code == 2
    assert (treadle.folder / "fi_reporting").read_text() == "mine"


def test_bars_show_where_the_differences_are(treadle: Any) -> None:
    out = treadle(*MAIN).out
    assert "██████▎     62.7 %" in out
    plain = treadle(*MAIN, PYTHONIOENCODING="ascii").out
    assert "######      62.7 %" in plain
    assert "?" not in plain


def test_what_is_printed_is_in_order_where_only_ascii_can_be_shown(treadle: Any) -> None:
    """Regression: the table came after what is said below it."""
    with treadle.start(*MAIN, PYTHONIOENCODING="ascii") as process:
        out, _ = process.communicate("", timeout=60)
    assert out.index("\ntotal ") < out.index("\namount is told by currency")


def test_no_digit_is_cut_at_a_narrow_terminal(treadle: Any) -> None:
    for columns in ("200", "100", "30"):
        shown = at_terminal(treadle, [*MAIN], COLUMNS=columns, NO_COLOR="1")
        assert "26,619,414.90" in shown
        assert ("62.7 %" in shown.split("where")[0]) is (columns == "200")
        assert ("██▎" in shown.split("total")[0]) is (columns != "30")
        assert "\x1b[3" not in shown


LONG = """
sources:
  a: {kind: csv, path: a.csv, dimensions: {name: {}}, measures: {amount: {}}}
  b: {kind: csv, path: b.csv, dimensions: {name: {}}, measures: {amount: {}}}
"""


def test_long_names_are_cut_in_the_middle_and_figures_nowhere(treadle: Any) -> None:
    names = [f"Gesellschaft für Beteiligungen und Verwaltungen aller Art Nummer {at}" for at in range(3)]
    for name, factor in (("a", 1), ("b", 2)):
        rows = "".join(f"{key},{factor * 1234567.45 * (at + 1):.2f}\n" for at, key in enumerate(names))
        (treadle.folder / f"{name}.csv").write_text(f"name,amount\n{rows}", encoding="utf-8")
    (treadle.folder / "sources.yaml").write_text(LONG)
    shown = at_terminal(treadle, ["compare", "a", "b", "--sources", "sources.yaml"], COLUMNS="100", NO_COLOR="1")
    table = [line for line in shown.splitlines() if "…" in line]
    assert [line.split()[-4] for line in table] == ["█████", "███▍", "█▋"]
    for at, line in enumerate(reversed(table)):
        assert f" {at} " in line
        for times in (1, 2, -1):
            assert f" {times * 1234567.45 * (at + 1):,.2f} " in line
    assert max(map(len, shown.splitlines())) <= 100
    assert names[2] in treadle("compare", "a", "b", "--sources", "sources.yaml").out


def test_no_name_turns_the_line_round(treadle: Any) -> None:
    for name in "ab":
        (treadle.folder / f"{name}.csv").write_text(f"name,amount\nx\u202ey,{ord(name)}.00\n", encoding="utf-8")
    (treadle.folder / "sources.yaml").write_text(LONG)
    done = treadle("compare", "a", "b", "--sources", "sources.yaml")
    assert "\u202e" not in done.out
    assert r"'x\u202ey'" in done.out


def at_terminal(treadle: Any, arguments: list[str], **environment: str) -> str:
    ours, theirs = pty.openpty()
    with treadle.begun(arguments, treadle.environment | environment | {"TERM": "xterm"}, stdout=theirs):
        os.close(theirs)
        return read_until(ours, None)


def read_until(descriptor: int, word: str | None) -> str:
    """What is printed until a word is, or to the end."""
    text, end = "", time.monotonic() + 60
    while time.monotonic() < end:
        try:
            piece = os.read(descriptor, 4096)
        except OSError:
            break
        if not piece:
            break
        text += piece.decode("utf-8", "replace")
        if word is not None and word in text:
            break
    if word is None:
        os.close(descriptor)
    return text


ENDLESS = """
sources:
  a: {kind: duckdb, path: endless.duckdb, table: t, dimensions: {k: {}}, measures: {amount: {}}}
  b: {kind: duckdb, path: endless.duckdb, table: t, dimensions: {k: {}}, measures: {amount: {}}}
"""


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_what_is_done_is_shown_and_ctrl_c_stops_it(treadle: Any, tmp_path: Path, sent: int, code: int) -> None:
    """So does a scheduler's SIGTERM, which left drafts of files and what had been put aside on the disk."""
    with duckdb.connect(str(treadle.folder / "endless.duckdb")) as database:
        database.execute(
            "CREATE VIEW t AS SELECT '1' AS k, (a.range * b.range % 7)::BIGINT AS amount "
            "FROM range(100000000) AS a, range(100000) AS b"
        )
    (treadle.folder / "sources.yaml").write_text(ENDLESS)
    spill = tmp_path / "spill"
    spill.mkdir()
    before = sorted(treadle.folder.iterdir())
    ours, theirs = pty.openpty()
    environment = treadle.environment | {"TERM": "xterm", "TMPDIR": str(spill), "COLUMNS": "100"}
    command = ["compare", "a", "b", "--sources", "sources.yaml", "--csv", "o.csv"]
    streams: Any = {"stdout": subprocess.PIPE, "stderr": theirs}
    with treadle.begun(command, environment, **streams, start_new_session=True) as process:
        os.close(theirs)
        shown = read_until(ours, "adding up both sides")
        assert "Ctrl-C stops" in shown
        process.send_signal(sent)
        rest = read_until(ours, None)
        assert process.wait(30) == code
        assert process.stdout is not None
        assert process.stdout.read() == b""
    assert ("interrupted" in rest) == (sent == signal.SIGINT)
    assert list(spill.iterdir()) == []
    assert sorted(treadle.folder.iterdir()) == before


def test_the_rows_behind_a_key_of_days_are_on_the_page(treadle: Any) -> None:
    for name, amount in (("a", "5.00"), ("b", "7.00")):
        (treadle.folder / f"{name}.csv").write_text(f"day,amount\n31.01.2024,{amount}\n")
    shape = "dimensions: {day: {format: date(DD.MM.YYYY)}}, measures: {amount: {}}"
    text = "".join(f"  {name}: {{kind: csv, path: {name}.csv, {shape}}}\n" for name in "ab")
    (treadle.folder / "sources.yaml").write_text(f"sources:\n{text}")
    done = treadle("compare", "a", "b", "--sources", "sources.yaml", "--html", "o.html", "--lines", "1")
    assert (done.code, done.err) == (0, "written: o.html\n")
    page = (treadle.folder / "o.html").read_text("utf-8")
    assert "Rows behind the largest differences" in page
    assert "31.01.2024" in page
