"""Asked how many rows there are, it says so and nothing else, or that it cannot: groups and keys are no rows."""

from pathlib import Path

import pytest

from treadle import Agent
from treadle.analyst import Catalog, Dimension, Filter, Measure, Source, analyst_skill

ROWS = [("1001", "202401", 5), ("1001", "202401", 7), ("1001", "202402", 11), ("1002", "202401", 13)]


@pytest.fixture
def ask(tmp_path: Path):
    text = "company,period,amount\n" + "".join(f"{c},{p},{a}\n" for c, p, a in ROWS)
    (tmp_path / "ledger.csv").write_text(text)
    dimensions = (Dimension(name="company"), Dimension(name="period"))
    amount = Measure(name="amount")
    plain = Source(name="ledger", kind="csv", path="ledger.csv", dimensions=dimensions, measures=(amount,))
    mart = Source(name="mart", kind="csv", path="ledger.csv", dimensions=dimensions, measures=(amount,))
    held = Source(
        name="january",
        kind="csv",
        path="ledger.csv",
        dimensions=dimensions,
        measures=(amount,),
        default_filters=(Filter(dimension="period", value="202401"),),
    )
    counted = Source(
        name="counted",
        kind="csv",
        path="ledger.csv",
        dimensions=dimensions,
        measures=(Measure(name="rows", column="*", aggregation="count"),),
    )
    catalog = Catalog([plain, mart, held, counted], tmp_path)

    def asked(question: str) -> list[str]:
        text = Agent("offline", skills=[analyst_skill(catalog)]).run_sync(question).text
        return text.removesuffix("(offline planner, not a language model)").strip().splitlines()

    return asked


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("How many rows are in ledger?", ["ledger: source rows 4."]),
        (
            "How many rows does ledger have for company 1001?",
            ["ledger: source rows 3.", "Asked with: company = 1001."],
        ),
        (
            "How many rows does ledger have by company?",
            [
                "ledger: source rows 4, all together; query_source does not tell how many each has.",
                "Asked with: dimensions company.",
            ],
        ),
        (
            "How many rows are in january?",
            ["january: source rows 3.", "Under conditions of its own: period = 202401."],
        ),
    ],
)
def test_how_many_rows_is_answered_with_their_number_alone(ask, question: str, told: list[str]) -> None:
    assert ask(question) == told


def test_a_measure_that_counts_rows_tells_those_of_each(ask) -> None:
    lines = ask("How many rows does counted have by company?")
    assert "- company 1001, rows 3" in lines
    assert "- company 1002, rows 1" in lines


@pytest.mark.parametrize(
    ("question", "opening"),
    [
        ("Does ledger have more than 2 rows for company 1001?", "Yes. ledger: source rows 3, which is more than the 2"),
        ("Does ledger have more than 3 rows for company 1001?", "No. ledger: source rows 3, which is not more than"),
    ],
)
def test_a_number_in_the_question_is_held_against_rows_and_not_groups(ask, question: str, opening: str) -> None:
    assert ask(question)[0].startswith(opening)


@pytest.mark.parametrize(
    "question",
    [
        "Which company has the most rows in ledger?",
        "Does ledger have more rows than mart?",
        "How many rows are there in ledger and in mart?",
    ],
)
def test_what_the_tools_do_not_tell_of_rows_is_not_answered_with_amounts(ask, question: str) -> None:
    lines = ask(question)
    assert lines[0].startswith("I cannot tell that: ")
    assert not any("amount" in line for line in lines if not line.startswith("Asked with"))


def test_rows_that_differ_are_told_as_keys(ask) -> None:
    (line,) = ask("How many rows differ between ledger and mart?")
    assert "all 3 keys match" in line
