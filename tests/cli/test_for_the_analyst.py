"""A question for the data analyst that nobody answers says who would."""

from typing import Any


def test_a_question_about_sources_says_who_answers_it(treadle: Any) -> None:
    for question in ("Compare the totals between fi_reporting and consolidation_mart", "Which sources are there?"):
        done = treadle("ask", question)
        assert "for the data analyst: --skill analyst (sample data) or --sources FILE" in done.err
        assert "pip install" not in done.err
    assert "data analyst" not in treadle("ask", "Tell me a joke").err
    assert "data analyst" not in treadle("ask", "Compare the totals", "--quiet").err
    said = treadle("chat", "--model", "offline", input="Compare the two sources\n")
    assert "for the data analyst" in said.err


def test_with_the_command_line_alone_it_says_which_extra_to_install(treadle: Any) -> None:
    (treadle.folder / "sitecustomize.py").write_text(
        "import importlib.util as u\nfound = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'duckdb' else found(name, *more)\n", "utf-8",
    )  # fmt: skip
    treadle.environment["PYTHONPATH"] += f":{treadle.folder}"
    done = treadle("ask", "Compare fi_reporting with consolidation_mart")
    assert "it needs: pip install 'treadle[analyst]'" in done.err
