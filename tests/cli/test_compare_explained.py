"""`treadle compare --explain` prints SQL that runs as it stands."""

import json
from typing import Any

import duckdb

MAIN = ("compare", "fi_reporting", "consolidation_mart", "--where", "company=1001", "--where", "period=202401")


def test_what_is_explained_runs_from_the_first_line_to_the_last(treadle: Any) -> None:
    done = treadle(*MAIN, "--explain")
    assert done.code == 0
    said, _, script = done.out.partition("-- What each sentence rests on")
    assert "where company = 1001 and period = 202401, consolidation_mart has no row for account 710300" in said
    assert "--    where company = 1001 and period = 202401" in script
    assert "totals: a = fi_reporting" in script
    with duckdb.connect() as engine:
        assert engine.execute("-- " + script).fetchall() == [("710300",)]


def test_without_explain_there_is_no_sql(treadle: Any) -> None:
    assert "SELECT" not in treadle(*MAIN).out


def test_json_is_explained_too(treadle: Any) -> None:
    told = json.loads(treadle(*MAIN, "--explain", "--json").out)
    assert [claim["kind"] for claim in told["claims"]] == ["totals", "keys", "offset", "largest"]
    assert all(claim["sql"] and claim["filters"] for claim in (*told["claims"], *told["warnings"]))
    assert "claims" not in json.loads(treadle(*MAIN, "--json").out)


def test_totals_stand_by_currency(treadle: Any) -> None:
    out = treadle("compare", "fi_reporting", "consolidation_mart", "--by", "").out
    totals = [line.split()[:2] for line in out.splitlines() if line.startswith("total")]
    assert totals == [["total", "EUR"], ["total", "GBP"], ["total", "USD"]]
