"""`treadle sources init` and `treadle sources check`, beside the listing that was there before."""

import json
from pathlib import Path
from typing import Any

import pytest

CSV = "company,period,amount\n0000001001,2024001,10.50\n0000001002,2024001,-3.25\n"


@pytest.fixture
def ledger(treadle: Any) -> Path:
    file = Path(treadle.folder) / "ledger.csv"
    file.write_text(CSV)
    return file


def test_init_prints_and_writes_what_check_finds_good(treadle: Any, ledger: Path) -> None:
    printed = treadle("sources", "init", "ledger.csv")
    assert (printed.code, "format: alpha(10)" in printed.out) == (0, True)
    written = treadle("sources", "init", "ledger.csv", "-o", "sources.yaml")
    assert (written.code, written.out) == (0, "")
    assert (ledger.parent / "sources.yaml").read_text() == printed.out
    again = treadle("sources", "init", "ledger.csv", "-o", "sources.yaml")
    assert (again.code, "exists already" in again.err) == (2, True)
    checked = treadle("sources", "check", "--sources", "sources.yaml")
    assert (checked.code, checked.out) == (0, "ledger: good, 2 rows\n")
    listed = treadle("sources", "--sources", "sources.yaml", "ledger")
    assert (listed.code, "company" in listed.out) == (0, True)


def test_check_says_under_which_conditions_it_counts(treadle: Any, ledger: Path) -> None:
    (ledger.parent / "own.csv").write_text("company,amount\n1,5\n2,6\n")
    (ledger.parent / "s.yaml").write_text(
        "sources:\n  own: {kind: csv, path: own.csv, dimensions: {company: {}}, measures: {amount: {}}, "
        "default_filters: {company: [1, 3]}}\n"
    )
    assert treadle("sources", "check", "--sources", "s.yaml").out.startswith("own: good, 1 row where company in ")


def test_check_says_what_is_wrong(treadle: Any, ledger: Path) -> None:
    (ledger.parent / "s.yaml").write_text(
        "sources:\n  ledger: {kind: csv, path: ledger.csv, measures: {amount: {column: amuont}}}\n"
        "  mart: {kind: postgres, table: t, dsn_env: NO_SUCH_VARIABLE, measures: {amount: }}\n"
    )
    found = treadle("sources", "check", "--sources", "s.yaml")
    assert found.code == 2
    assert "ledger: wrong" in found.out
    assert "did you mean 'amount'?" in found.out
    assert "mart: wrong" in found.out
    told = json.loads(treadle("sources", "check", "ledger", "--sources", "s.yaml", "--json").out)
    assert [one["source"] for one in told] == ["ledger"]


def test_a_connection_string_in_the_file_is_refused(treadle: Any, ledger: Path) -> None:
    (ledger.parent / "s.yaml").write_text(
        "sources:\n  mart:\n    kind: postgres\n    table: t\n    dsn_env: postgresql://bob:hunter2@h/x\n"
        "    measures: {amount: }\n"
    )
    found = treadle("sources", "check", "--sources", "s.yaml")
    assert found.code != 0
    assert "must be the name of an environment variable" in found.err
    assert "hunter2" not in found.err + found.out


def test_the_question_that_a_person_is_asked_is_that_of_the_decimal_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was whatever was asked first of the file."""
    from treadle.cli.commands import sources

    asked: list[str] = []
    monkeypatch.setattr(sources.sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr(sources.click, "prompt", lambda text, **_: asked.append(text) or ",")
    (tmp_path / "f.csv").write_text("Artikel;Betrag;\n1;1.500;x\n2;2.500;\n")
    (found,) = sources._proposed(tmp_path / "f.csv", None)
    assert asked[0].startswith("f.csv: Betrag has 1.500: if that is 1500")
    assert (found.source.text.decimal, found.source.text.thousands) == (",", ".")
