"""Questions that ask for each of some, for what one side lacks, or for the largest: answered as asked, or refused."""

import re
from typing import Any

import pytest

from treadle import Agent, Conversation, RunResult, Skill, tool
from treadle.analyst import Catalog, Dimension, Measure, Source, analyst_skill
from treadle.models.offline.grammar.question import split_clauses

ANALYST = analyst_skill()


def asked(question: str) -> RunResult:
    return Agent("offline", skills=[ANALYST]).run_sync(question, conversation=Conversation())


def held(arguments: dict[str, Any]) -> list[tuple[str, str, Any]]:
    return [(row["dimension"], row["op"], row.get("value")) for row in arguments.get("filters", ())]


@pytest.mark.parametrize(
    ("limits", "told", "condition"),
    [
        ("by period except 202401", ["period"], ("period", "!=", "202401")),
        ("for each period except 202401", ["period"], ("period", "!=", "202401")),
        ("for every period but 202401", ["period"], ("period", "!=", "202401")),
        ("by period from 202401 to 202403", ["period"], ("period", "between", ["202401", "202403"])),
        ("per month from January to March 2024", ["period"], ("period", "between", ["202401", "202403"])),
        ("for each month in 2024", ["period"], ("period", "between", ["202401", "202412"])),
        ("by account and period from 202401 to 202403", ["account", "period"],
         ("period", "between", ["202401", "202403"])),
        ("for each account except 800100", ["account"], ("account", "!=", "800100")),
        ("by account without 800100", ["account"], ("account", "!=", "800100")),
        ("for each of the periods except 202401", ["period"], ("period", "!=", "202401")),
        ("for each of period 202401 and 202402", ["period"], ("period", "in", ["202401", "202402"])),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "question",
    [
        "Show the amount of fi_reporting for company 1001 {}",
        "Compare fi_reporting and consolidation_mart for company 1001 {}",
    ],
)
def test_what_is_asked_for_each_is_told_for_each_also_where_some_are_left_out(
    question: str, limits: str, told: list[str], condition: tuple[str, str, Any]
) -> None:
    call = asked(question.format(limits)).tool_calls_made[-1]
    assert call.arguments["dimensions"] == told
    assert held(call.arguments) == [("company", "=", "1001"), condition]


@pytest.mark.parametrize(
    ("limits", "condition"),
    [
        ("by company excluding USD", ("currency", "!=", "USD")),
        ("by company and period without USD", ("currency", "!=", "USD")),
        ("for each account except EUR and USD", ("currency", "not in", ["EUR", "USD"])),
        ("by currency except USD", ("currency", "!=", "USD")),
        ("for all companies except USD", ("currency", "!=", "USD")),
    ],
)
@pytest.mark.parametrize(
    "question", ["Show the amount of fi_reporting {}", "Compare fi_reporting and bpc_reporting {}"]
)
def test_a_currency_that_is_left_out_is_no_value_of_what_is_told_for_each(
    question: str, limits: str, condition: tuple[str, str, Any]
) -> None:
    """It was asked for with "company is not USD", which leaves out nothing."""
    assert held(asked(question.format(limits)).tool_calls_made[-1].arguments) == [condition]


@pytest.mark.parametrize("limits", ["Exclude account 800100.", "Without account 800100.", "Not for account 800100."])
def test_what_a_second_sentence_leaves_out_is_left_out(limits: str) -> None:
    """The word "Exclude" was a company, and the account was all that was told."""
    call = asked(f"Show the amount of fi_reporting for company 1001. {limits}").tool_calls_made[-1]
    assert held(call.arguments) == [("company", "=", "1001"), ("account", "!=", "800100")]


@pytest.mark.parametrize(
    ("question", "limits", "told"),
    [
        ("Compare fi_reporting and bpc_reporting; company 1001; period 202401", ["company", "period"], None),
        ("Compare fi_reporting with bpc_reporting for company: 1001; period: 202401", ["company", "period"], None),
        ("Compare fi_reporting and bpc_reporting. Company 1001, period 202401.", ["company", "period"], None),
        ("Compare fi_reporting and bpc_reporting; for company 1001 and 1002", ["company"], None),
        ("Compare fi_reporting and bpc_reporting for company 1001. By account.", ["company"], ["account"]),
        ("Compare fi_reporting and bpc_reporting. Group by account and period.", [], ["account", "period"]),
    ],
)
def test_what_only_limits_a_sentence_before_asks_for_nothing_itself(
    question: str, limits: list[str], told: list[str] | None
) -> None:
    """All was compared, and one of the two sources asked for what the limits let pass."""
    calls = [call for call in asked(question).tool_calls_made if call.name != "list_sources"]
    (call,) = calls
    assert ([name for name, _, _ in held(call.arguments)], call.arguments.get("dimensions")) == (limits, told)


@pytest.mark.parametrize(
    "question",
    ["Compare fi_reporting and bpc_reporting for company 1001. Company 1002?", "Is fi_reporting good? By whom?"],
)
def test_what_asks_for_more_of_the_same_is_no_limit(question: str) -> None:
    assert len(split_clauses(question)) == 2


@pytest.mark.parametrize("limits", ["Ignore account 800100.", "Leave out account 800100.", "Skip account 800100."])
def test_what_a_second_sentence_leaves_out_is_never_all_that_is_told(limits: str) -> None:
    found = asked(f"Show the amount of fi_reporting for company 1001. {limits}")
    assert not any(("account", "=", "800100") in held(call.arguments) for call in found.tool_calls_made)


@pytest.mark.parametrize("question", [
    "Which accounts are missing in consolidation_mart for company 1001 in 202401?",
    "Which accounts are missing from consolidation_mart?",
    "Which accounts are missing for company 1001 in consolidation_mart?",
    "Which periods are missing in fi_reporting for company 1001?",
    "How many accounts are missing in consolidation_mart for company 1001?",
])  # fmt: skip
def test_what_a_source_lacks_is_not_looked_for_in_it(question: str) -> None:
    """Account 710300 of company 1001 is missing; rows without an account, of which there are none, are not meant."""
    found = asked(question)
    assert "Nothing was found" not in found.text
    assert not any(op == "is null" for call in found.tool_calls_made for _, op, _ in held(call.arguments))


@pytest.mark.parametrize("question", [
    "What is the amount of fi_reporting for company 1001 where the account is missing?",
    "What is the amount of fi_reporting for company 1001 with account missing?",
])  # fmt: skip
def test_rows_whose_value_is_missing_are_asked_for_as_such(question: str) -> None:
    assert held(asked(question).tool_calls_made[-1].arguments) == [
        ("company", "=", "1001"),
        ("account", "is null", None),
    ]


@pytest.mark.parametrize("question", [
    "Compare the largest amount of fi_reporting and consolidation_mart for company 1001",
    "Compare the biggest amounts in fi_reporting and consolidation_mart for company 1001",
])  # fmt: skip
def test_the_largest_amounts_are_not_all_amounts(question: str) -> None:
    found = asked(question)
    assert not found.tool_calls_made or found.tool_calls_made[-1].name != "compare_sources", found.text


@pytest.mark.parametrize("question", [
    "What is the largest difference between fi_reporting and consolidation_mart for company 1001?",
    "Where are the differences between fi_reporting and consolidation_mart biggest for company 1001?",
    "Which accounts differ the most between fi_reporting and consolidation_mart?",
    "Is consolidation_mart larger than fi_reporting for company 1001?",
    "By how much is fi_reporting higher than consolidation_mart for company 1001?",
])  # fmt: skip
def test_the_largest_difference_is_told(question: str) -> None:
    assert asked(question).tool_calls_made[-1].name == "compare_sources"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "orders.csv").write_text("region,revenue,cost\nNorth,10.00,4.00\nNorth,20.00,5.00\nSouth,30.00,6.00\n")
    measures = (
        Measure(name="revenue", decimals=2),
        Measure(name="mean_cost", column="cost", aggregation="avg", decimals=2),
        Measure(name="largest_cost", column="cost", aggregation="max", decimals=2),
    )
    source = Source(
        name="shop_sales", kind="csv", path="orders.csv", dimensions=(Dimension(name="region"),), measures=measures
    )
    return analyst_skill(Catalog([source], folder))


@pytest.mark.parametrize(
    "question", ["What is the mean revenue of shop_sales?", "What is the largest revenue of shop_sales?"]
)
def test_a_word_that_a_measure_begins_with_is_not_accounted_for_by_it(shop: Skill, question: str) -> None:
    """The mean revenue is 20.00 and the largest 30.00; those of the cost and the sum of the revenue are no answer."""
    found = Agent("offline", skills=[shop]).run_sync(question)
    assert not [call for call in found.tool_calls_made if call.name != "list_sources"], found.text


def test_the_largest_revenue_by_region_puts_the_regions_in_order(shop: Skill) -> None:
    call = (
        Agent("offline", skills=[shop])
        .run_sync("What is the largest revenue of shop_sales by region?")
        .tool_calls_made[-1]
    )
    assert (call.arguments["measures"], call.arguments["dimensions"]) == (["revenue"], ["region"])
    assert call.arguments["order"] == ["revenue desc"]


@pytest.mark.parametrize(("question", "measure"), [
    ("What is the mean cost of shop_sales?", "mean_cost"),
    ("What is the largest cost of shop_sales?", "largest_cost"),
    ("What is the revenue of shop_sales?", "revenue"),
])  # fmt: skip
def test_a_measure_is_known_by_its_whole_name(shop: Skill, question: str, measure: str) -> None:
    call = Agent("offline", skills=[shop]).run_sync(question).tool_calls_made[-1]
    assert call.arguments["measures"] == [measure]


@pytest.mark.parametrize("question", [
    "What is the mean amount of fi_reporting for company 1001?",
    "What is the mean of the amount of fi_reporting for company 1001?",
    "What is the mean amount by account of fi_reporting for company 1001?",
    "What is the mean difference between fi_reporting and consolidation_mart for company 1001?",
])  # fmt: skip
def test_a_mean_is_no_sum(question: str) -> None:
    assert not [call for call in asked(question).tool_calls_made if call.name != "list_sources"]


def test_what_somebody_means_is_no_computation() -> None:
    found = asked("I mean the amount of fi_reporting for company 1001 in period 202401")
    assert "1,500,000.00" in found.text


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        ("at the account level", ["account"]),
        ("on account level", ["account"]),
        ("at account level", ["account"]),
        ("on account and period level", ["account", "period"]),
    ],
)
@pytest.mark.parametrize(
    "question",
    [
        "Show the amount of fi_reporting for company 1001 {}",
        "Compare fi_reporting and consolidation_mart for company 1001 {}",
    ],
)
def test_a_level_is_what_is_broken_down_by_and_no_value(question: str, asks: str, told: list[str]) -> None:
    call = asked(question.format(asks)).tool_calls_made[-1]
    assert call.arguments["dimensions"] == told
    assert held(call.arguments) == [("company", "=", "1001")]


@pytest.mark.parametrize("question", [
    "Compare account data of fi_reporting and consolidation_mart for company 1001",
    "Compare fi_reporting and consolidation_mart in account detail for company 1001",
    "Compare fi_reporting and consolidation_mart on account basis for company 1001",
    "Show account details in fi_reporting for company 1001",
    "Amount by account group in fi_reporting for company 1001",
    "Compare fi_reporting and consolidation_mart by account hierarchy for company 1001",
])  # fmt: skip
def test_a_word_for_the_grain_is_no_value_and_a_group_is_not_its_members(question: str) -> None:
    result = asked(question)
    assert [call.name for call in result.tool_calls_made if call.name != "list_sources"] == []
    assert re.search(r"cannot (plan an answer to that|answer that as it was asked)", result.text)


def test_totals_beside_the_first_few_are_said_to_be_over_all() -> None:
    result = asked("Top 2 accounts by amount in fi_reporting for company 1001 in period 202401")
    assert "totals amount 1,500,000.00" in result.text
    assert "Note: 2 of 20 rows are shown; totals are of all 20" in result.text


@pytest.mark.parametrize("question", [
    "Top 3 accounts per company by amount in fi_reporting",
    "Top 2 accounts in each company by amount in fi_reporting",
    "Top 3 accounts by company in fi_reporting",
    "Top 1 company by amount per account in fi_reporting",
    "The 2 smallest accounts by amount for each period in fi_reporting",
    "The top account per company in fi_reporting",
])  # fmt: skip
def test_so_many_of_each_are_no_largest_of_all(question: str) -> None:
    """The three largest pairs of account and company were told, of which one company has all."""
    found = asked(question)
    assert "query_source" not in [call.name for call in found.tool_calls_made]
    assert "cannot answer" in found.text


@pytest.mark.parametrize("question", [
    "Top 3 amounts by company and account in fi_reporting",
    "Top 3 accounts by amount in fi_reporting for company 1001",
    "The 3 largest companies by amount in fi_reporting",
])  # fmt: skip
def test_so_many_of_all_are_told(question: str) -> None:
    assert asked(question).tool_calls_made[-1].arguments["limit"] == 3


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What is the weather?", False),
        ("Show me the weather", False),
        ("What are the weather warnings?", True),
        ("List the warnings", True),
        ("Are there weather warnings?", True),
    ],
)
def test_a_thing_is_not_asked_for_by_what_it_is_of(question: str, told: bool) -> None:
    """Asked for the weather, the warnings were listed."""

    @tool(effect="read")
    def weather_warnings(region: str = "") -> list[str]:
        """List the weather warnings in force."""
        return ["storm", "frost"]

    assert ("storm" in Agent("offline", tools=[weather_warnings]).run_sync(question).text) == told


def test_a_total_is_told_with_its_currency() -> None:
    """Of "total" the figure was told, and what it is in was not."""
    told = asked("what is the total amount of fi_reporting for company 1001 in 202401?").text.splitlines()
    assert told[0] == "fi_reporting: totals amount 1,500,000.00 EUR"
    told = asked("show the 3 largest accounts of fi_reporting for company 1001 in 202401").text.splitlines()
    assert told[:2] == ["fi_reporting (amount in EUR):", "- account 800100, amount 3,664,102.38"]
    told = asked("is the amount of fi_reporting for company 1001 in 202401 more than 1 million?").text.splitlines()
    assert told[0].startswith("Yes. fi_reporting: totals amount 1,500,000.00 EUR, which is more than")


def test_the_largest_differences_are_listed_where_there_are_several_currencies() -> None:
    """The totals of each currency stood in their place, and "top 5" was said of them."""
    told = asked("show the five largest differences between fi_reporting and consolidation_mart by account").text
    assert "Top differences:\n- account 710300, currency EUR" in told
    assert "By currency" not in told
