"""Sample data answer when they are asked for, and are called what they are."""

import json
from typing import Any


def test_the_sample_inventory_answers_nobody_who_did_not_ask_for_it(treadle: Any) -> None:
    asked = "How many gadgets do we have in stock?"
    alone = treadle("ask", asked)
    assert "75" not in alone.out
    assert "check_stock" not in alone.out
    assert "75" in treadle("ask", asked, "--skill", "inventory").out
    (run, *_) = json.loads(treadle("runs", "--json", "--limit", "1").out)
    shown = treadle("show", run["run_id"]).out
    assert "75" in shown
    assert treadle("chat", input=f"{asked}\n").out.count("75") == 0


def test_a_run_that_asked_for_it_goes_on_without_naming_it_again(treadle: Any) -> None:
    asked = "What is the total value of our gadget inventory?"
    stopped = treadle("ask", asked, "--skill", "inventory", "--max-steps", "1", "--on-limit", "stop")
    assert stopped.code == 3
    assert "1874.25" in treadle("resume", "last", "--max-steps", "9").out


def test_the_sample_sources_are_called_so_where_no_file_is_named(treadle: Any) -> None:
    told = "sources: the sample, which comes with treadle; --sources FILE reads your own"
    assert told in treadle("sources").err
    assert told in treadle("query", "fi_reporting").err
    assert told in treadle("ask", "What sources are there?", "--skill", "analyst").err
    (treadle.folder / "s.yaml").write_text("sources:\n  mine: {kind: csv, path: mine.csv, measures: {amount: }}\n")
    (treadle.folder / "mine.csv").write_text("amount\n12.50\n")
    assert "sample" not in treadle("sources", "--sources", "s.yaml").err
    assert "sample" not in treadle("sources", TREADLE_SOURCES="s.yaml").err
    assert treadle("tools").err == ""
