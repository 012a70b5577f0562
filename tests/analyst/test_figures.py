"""A figure in an answer is either in a tool's result, exactly or as correctly rounded, or it is told."""

import json
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from treadle import Agent
from treadle.analyst import analyst_skill, check_figures, figures_from_results
from treadle.testing import ScriptedModel

RESULT = {
    "total_source_a": "1500000.00",
    "total_source_b": "1492000.00",
    "total_diff": "8000.00",
    "other_diff": "-4750.02",
    "total_percentage_diff": 0.5333,
    "match_rate": 85.0,
    "share": 0.625,
    "count": 17,
    "tie": "2.5",
    "key": {"company": "0000001001", "account": "800200"},
    "rows": [1, 2, 3, 4, 5, 6],
    "interpretation": "fi has 1,500,000.00 EUR; without their signs they add up to 12,750.02 EUR",
}


def missing(text: str, *results: Any) -> list[str]:
    return [figure.text for figure in figures_from_results(text, results or [json.dumps(RESULT)])]


@pytest.mark.parametrize(
    "text",
    [
        "A has 1,500,000.00 EUR.",
        "A has 1500000.",
        "A has 1.500.000,00 €",
        "A has 1 500 000,00 EUR",
        "A has 1\u202f500\u202f000,00 EUR",
        "A has 1'500'000.00 CHF",
        "A has 15,00,000.00 INR",
        "A has $1,500,000",
        "A has EUR 1,500,000.00 and B EUR 1,492,000.00.",
        "A has 1.5 million and B 1.49 million",
        "A has 1,500k and B 1,492k; or 1500 thousand",
        "A has 1.5M",
        "A has 1.5e6",
        "It is lower by 4,750.02",
        "The difference is -4,750.02",
        "The difference is \u22124,750.02",
        "The difference is 4,750.02- in the ledger",
        "The difference is (4,750.02)",
        "The difference is -$4,750.02 or $-4,750.02, about 4,750",
        "0.53 % of A, or 0.5 percent, or 0.5333%",
        "62.5 % carried by it",
        "85% match",
        "17 of the keys; 6 rows",
        "12,750.02 in all",
        "2.5, or 3, or 2",
        "company 1001, companies 4711 and 4712, account 999999",
        "in 2024, in period 202413, on 2024-01-31 at 10:45, on 31.01.2024, in 01/2024, in FY2023 and Q3",
        "1. first\n2. second\n  3) third\n## 4. fourth",
        "see https://example.com/9876?x=5432, section 12, the 23rd, version 1.2.3, A-4711, fi_2019, x86",
        "0000004711 is an account",
        "TEUR 1,500, or 1,500 TEUR, 1,500 kEUR, k\u20ac 1,492, MEUR 1.5, 1,5 Mio. EUR, Mio. EUR 1,5",
        "53 basis points, or 53 bps, of A",
        "8.000,- \u20ac, 8,000.- CHF, ~8,000, \u2248 8,000, **8,000.00** and |8,000.00|",
        "on 31 January 2024, Jan 31, 2024, am 31. Dezember 2023, in 2024-Q1, 2024Q4, 2024/H1 and fiscal year 2024/25",
        "period 2024.01, periods 001.2024 and 016.2024",
        "No figures at all.",
        "",
    ],
)
def test_what_is_in_the_results_is_found(text: str) -> None:
    assert missing(text) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("A has 1,500,001.00 EUR", ["1,500,001.00 EUR"]),
        ("A has 1,499,999", ["1,499,999"]),
        ("about 1.4 million", ["1.4 million"]),
        ("B is $ 1,492,000.01 exactly", ["$ 1,492,000.01"]),
        ("the difference is +4,750.02 or 4,750.03", ["4,750.03"]),
        ("the difference is -8,000.00", ["-8,000.00"]),
        ("0.54 % of A", ["0.54 %"]),
        ("0.533 % or 0.534 %", ["0.534 %"]),
        ("84 % match, not 85 %", ["84 %"]),
        ("18 keys", ["18"]),
        ("1,2,9 are there", ["1,2,9"]),
        ("(9,999.00)", ["(9,999.00)"]),
        ("together 2992000", ["2992000"]),
        ("between 5-77 of them", ["77"]),
        ("99 bottles (77 green)", ["99", "77"]),
        ("1,500,000.00 thousand, or 8,000.00 million", ["1,500,000.00 thousand", "8,000.00 million"]),
        ("TEUR 1,500,000.00 or 8,100 TEUR", ["TEUR 1,500,000.00", "8,100 TEUR"]),
        ("54 basis points, 0.53 bps", ["54 basis points", "0.53 bps"]),
        ("8,000.01, 8.0001k, 80,000.00 and 800.00", ["8,000.01", "8.0001k", "80,000.00", "800.00"]),
        ("it may 31 times, and 2024.01 EUR", ["31", "2024.01 EUR"]),
    ],
)
def test_what_is_not_is_told(text: str, told: list[str]) -> None:
    assert missing(text) == told


def test_where_a_figure_stands_is_told() -> None:
    text = "We have -1,234.50 EUR"
    (figure,) = figures_from_results(text, [])
    assert figure.text == "-1,234.50 EUR"
    assert text[figure.start :].startswith(figure.text)


@pytest.mark.parametrize(
    "result",
    [
        {"a": 42.5},
        {"a": "42.50"},
        '{"a": 42.5}',
        "the total is 42.50 EUR",
        [["x", {"deep": [Decimal("42.5")]}]],
        {"42.5": None},
    ],
)
def test_results_come_in_many_forms(result: Any) -> None:
    assert missing("It is 42.50.", result) == []
    assert missing("It is 42.51.", result) == ["42.51"]


def test_what_the_question_said_may_be_repeated() -> None:
    assert figures_from_results("below 750 as you said", [], given=["What is below 750?"]) == []
    assert [one.text for one in figures_from_results("below 750", [], given=["What is below 75?"])] == ["750"]


AMOUNTS = st.decimals(min_value=Decimal(-(10**12)), max_value=Decimal(10**12), places=4)


def spelled(value: Decimal, thousands: str, point: str) -> str:
    return f"{value:,f}".replace(",", "\0").replace(".", point).replace("\0", thousands)


@given(AMOUNTS, st.integers(0, 4), st.sampled_from([",.", ".,", "'.", "\u202f,", " ,"]), st.booleans())
def test_every_correct_rounding_is_found_in_every_spelling(
    value: Decimal, places: int, signs: str, half_up: bool
) -> None:
    rounded = value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP if half_up else ROUND_HALF_EVEN)
    text = f"It comes to {spelled(rounded.copy_abs(), *signs)} EUR in all."
    assert missing(text, {"value": str(value)}) == []


@given(AMOUNTS, st.integers(1, 10**6))
def test_a_figure_that_is_off_by_a_unit_or_more_is_told(value: Decimal, off: int) -> None:
    wrong = value.copy_abs().quantize(Decimal("0.01"), ROUND_HALF_UP) + Decimal(off) / 100
    assert len(missing(f"It comes to {wrong:,f} EUR.", {"value": str(value)})) == 1


@given(st.text(max_size=200), st.text(max_size=50))
@example("1E001", "")
@example("10000000000000000000000000001", "")
@example("-10000000000000000000000000001.05", "")
@example("(10000000000000000000000000001)", "")
def test_any_text_can_be_looked_at(text: str, result: str) -> None:
    for figure in figures_from_results(text, [result]):
        assert figure.text in text
    assert figures_from_results(text, [text]) == []


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("fi has 1,500,000.00 EUR, 8,000.00 more than the mart (0.53 %).", []),
        ("Together they have 2,992,000.00 EUR in company 1001.", ["2,992,000.00 EUR"]),
        ("Of the 75 that you said, none.", []),
    ],
)
async def test_the_answer_of_a_run_is_checked(answer: str, told: list[str]) -> None:
    compare = {
        "source_a": "fi_reporting",
        "source_b": "consolidation_mart",
        "dimensions": [],
        "filters": {"company": "1001", "period": "202401"},
    }
    model = ScriptedModel([[("compare_sources", compare)], answer])
    result = await Agent(model, skills=[analyst_skill()]).run("Compare them; is any of the 75 wrong?")
    assert [figure.text for figure in check_figures(result)] == told


@pytest.mark.parametrize(
    "result",
    [
        {"percentage_diff": 0.5333},
        {"summary": {"total_percentage": "0.5333"}},
        {"percentages": [{"account": "x", "value": 0.5333}]},
        "it is higher by 0.53 % of A",
    ],
)
def test_what_says_that_it_is_a_percentage_is_no_share(result: Any) -> None:
    assert missing("0.53 % of A, or 53 basis points", result) == []
    assert missing("53 % of A", result) == ["53 %"]
    assert missing("a share of 53 %, which is 5300 basis points", {"share": 0.53}) == []
    assert missing("50 %, 5000 %", "of all 50 %") == ["5000 %"]
