"""Reading text: arithmetic, periods, stems, likeness."""

from datetime import date

import pytest

from treadle.models.offline.grammar.arithmetic import find_arithmetic
from treadle.models.offline.grammar.periods import find_periods
from treadle.models.offline.grammar.question import split_clauses
from treadle.models.offline.grammar.words import closest, likeness, stem


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("What is 25 * 4 + 10?", "25 * 4 + 10"),
        ("100 divided by 4", "100 / 4"),
        ("what is 2^8", "2 ** 8"),
        ("1,000 x 3", "1000 * 3"),
        ("the sum of 3 and 4", "3 + 4"),
        ("10% of 1,500", "10 / 100 * 1500"),
        ("seven times eight", "7 * 8"),
        ("sqrt(16) + 2", "sqrt(16) + 2"),
        ("the square root of 81", "81 ** 0.5"),
        ("-3 + 5", "-3 + 5"),
        ("((1 + 2) * 3) / 4", "((1 + 2) * 3) / 4"),
        ("on 2024-01-05", None),
        ("ticket ABC-12 and 7 days", None),
        ("company 1001 in period 202401", None),
        ("42", None),
    ],
)
def test_arithmetic(text, expression):
    assert find_arithmetic(text) == expression


@pytest.mark.parametrize(
    ("text", "plain", "digits"),
    [
        ("in January 2024", "2024-01", "202401"),
        ("for 202403", "2024-03", "202403"),
        ("2024-12", "2024-12", "202412"),
        ("on 5 May 2025", "2025-05-05", "20250505"),
        ("March 3, 2026", "2026-03-03", "20260303"),
        ("tomorrow", "2026-01-01", "20260101"),
    ],
)
def test_periods(text, plain, digits):
    (period,) = find_periods(text, today=date(2025, 12, 31))
    assert (period.as_text(False), period.as_text(True)) == (plain, digits)


@pytest.mark.parametrize("text", ["202413", "1001", "2024-02-31", "3.202401", "tomorrow", "no day at all"])
def test_what_is_no_period(text):
    assert find_periods(text) == ()


def test_clauses_are_split_where_another_thing_is_asked():
    assert split_clauses("What's 1 + 1, and also what time is it?") == ("What's 1 + 1", "what time is it?")
    assert split_clauses("Compare a_1 and b_2 for company 7, and list c") == (
        "Compare a_1 and b_2 for company 7",
        "list c",
    )
    assert split_clauses('Create a note "do this, and then what?"') == ('Create a note "do this, and then what?"',)
    assert split_clauses("If I buy 3 pears, how much do I pay?") == ("If I buy 3 pears, how much do I pay?",)


def test_stems_join_the_forms_of_a_word():
    assert stem("widgets") == stem("widget")
    assert stem("companies") == stem("company")
    assert stem("comparing") == stem("compare") == stem("compared")


def test_likeness_knows_short_forms_and_misspellings():
    names = ["bpc_reporting", "consolidation_mart", "fi_reporting"]
    assert closest("fi_reports", names) == "fi_reporting"
    assert closest("bpc", names) == "bpc_reporting"
    assert closest("consolidaton mart", names) == "consolidation_mart"
    assert closest("sales_db", names) is None
    assert closest("reporting", names) is None
    assert likeness("unit price", "unitPrice") == 1.0
