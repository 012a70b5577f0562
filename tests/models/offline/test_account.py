"""Every word of a question is accounted for: the named cases, what is said of the rest, and hostile words anywhere."""

from decimal import Decimal
from itertools import permutations
from typing import Any, Literal

import pytest
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle import Agent, Conversation, RunResult, Skill, tool
from treadle.analyst import analyst_skill, sample_catalog

from .asked.judge import DECLINED
from .asked.sources import make_catalog
from .asked.toolboxes import PRICES, STOCK, exercise, tools_of

NOTED = "Left out of account"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    return analyst_skill(sample_catalog(tmp_path_factory.mktemp("sample")))


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    return analyst_skill(make_catalog(tmp_path_factory.mktemp("shops")))


def asked(skill: Skill, *questions: str) -> RunResult:
    agent, conversation = Agent("offline", skills=[skill]), Conversation()
    return [agent.run_sync(question, conversation=conversation) for question in questions][-1]


def filters(result: RunResult) -> list[tuple[str, str, Any]]:
    rows = result.tool_calls_made[-1].arguments["filters"]
    return [(row["dimension"], row["op"], row["value"]) for row in rows]


@pytest.mark.parametrize(
    ("question", "held"),
    [
        ("What is the amount of fi_reporting without account 800200?", [("account", "!=", "800200")]),
        ("What is the amount of fi_reporting except account 800200?", [("account", "!=", "800200")]),
        ("What is the amount of fi_reporting excluding company 1001?", [("company", "!=", "1001")]),
        ("What is the amount of fi_reporting for company 1001 or 2001?", [("company", "in", ["1001", "2001"])]),
        ("What is the amount of fi_reporting before 202403?", [("period", "<", "202403")]),
        (
            "What is the amount of fi_reporting year to date as of March 2024?",
            [("period", "between", ["202401", "202403"])],
        ),
        (
            "What is the amount of fi_reporting in the first quarter of 2024?",
            [("period", "between", ["202401", "202403"])],
        ),
        (
            "What is the amount of fi_reporting after January 2024 but before April 2024?",
            [("period", ">", "202401"), ("period", "<", "202404")],
        ),
        (
            "Compare fi_reporting and bpc_reporting for company 1001 without account 800200 in 202401",
            [("company", "=", "1001"), ("account", "!=", "800200"), ("period", "=", "202401")],
        ),
    ],
)
def test_what_a_question_fixes_or_leaves_out_becomes_a_filter(
    sample: Skill, question: str, held: list[tuple[str, str, Any]]
) -> None:
    result = asked(sample, question)
    assert filters(result) == held
    assert DECLINED.search(result.text) is None
    assert NOTED not in result.text


def test_an_answer_repeats_the_filters_it_used(sample: Skill) -> None:
    text = asked(sample, "What is the amount of fi_reporting for company 1001 without account 800200 in Q1 2024?").text
    assert "Asked with: company = 1001; account is not 800200; period from 202401 to 202403." in text


def test_a_change_over_time_is_asked_for_both_times(sample: Skill) -> None:
    question = "How did the amount of fi_reporting for company 1001 grow from 202401 to 202403?"
    result = asked(sample, question)
    assert "1,500,000.00" in result.text
    assert "1,141,188.53" in result.text
    assert result.text.startswith(f"{NOTED}: “grow”")


def test_a_change_over_time_is_worked_out_where_a_tool_calculates(sample: Skill) -> None:
    agent = Agent("offline", skills=[sample], tools=tools_of("calculator"))
    result = agent.run_sync("How did the amount of fi_reporting for company 1001 grow from 202401 to 202403?")
    assert "1141188.53 - 1500000.00 = -358811.47" in result.text
    assert NOTED not in result.text


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_number_is_a_quantity_of_what_it_stands_beside(order: tuple[int, ...]) -> None:
    functions = [exercise()[place] for place in order]
    agent = Agent("offline", tools=[tool(function) for function in functions])
    assert "74.97" in agent.run_sync("What do 3 gadgets cost?").text
    assert "1874.25" in agent.run_sync("What is our whole stock of gadgets worth?").text


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("What do 3 gadgets cost without tax?", "without"),
        ("What did gadgets cost last year?", "last"),
        ("What do 3 gadgets cost with a discount of 10%?", "10"),
    ],
)
def test_a_word_that_makes_it_another_question_forbids_an_answer(question: str, word: str) -> None:
    result = Agent("offline", tools=tools_of("exercise")).run_sync(question)
    assert not result.tool_calls_made
    assert f"“{word}”" in result.text


def test_another_word_that_nothing_accounts_for_forbids_an_answer() -> None:
    result = Agent("offline", tools=tools_of("travel")).run_sync("What is the pleasant temperature in Oslo?")
    assert DECLINED.search(result.text)
    assert "“pleasant”" in result.text
    assert "-2" not in result.text


@pytest.mark.parametrize(
    "question",
    [
        "Cancel order 503 unless it is open",
        "Cancel order 503 carefully",
        "Cancel order 503 and order 504 but not now",
        "Do not cancel order 503",
        "Cancel all orders except 503",
    ],
)
def test_nothing_is_changed_unless_every_word_of_the_order_is_understood(question: str) -> None:
    result = Agent("offline", tools=tools_of("orders")).run_sync(question)
    assert "cancel_order" not in [call.name for call in result.tool_calls_made]


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        (("What is the price of a gadget?", "and of a widget?"), "I read that as: “What is the price of a widget”."),
        (("How many gizmos are in stock?", "and without gizmos?"), "I cannot tell what “without” means"),
        (("What is the price of a gadget?", "not gadgets, widgets"), "I cannot tell what “not”"),
    ],
)
def test_a_follow_up_says_what_it_was_read_as_or_that_it_cannot_be(questions: tuple[str, ...], said: str) -> None:
    agent, conversation = Agent("offline", tools=tools_of("exercise")), Conversation()
    assert said in [agent.run_sync(question, conversation=conversation).text for question in questions][-1]


HOSTILE = st.sampled_from(
    [
        *("not", "without", "except", "excluding", "unless", "never", "no", "nor", "instead", "neither", "or", "if"),
        *("before", "after", "until", "since", "yesterday", "tomorrow", "ago", "last", "next", "almost", "roughly"),
        *("twice", "half", "average", "median", "percent", "difference", "per", "17", "2,5", "1/2", "1e3", "-4"),
        *("ohne", "nicht", "außer", "oder"),
    ]
)
TEMPLATES = st.sampled_from(
    [
        ("exercise", ("what", "do", "3", "gadgets", "cost"), str(3 * Decimal(PRICES["gadgets"]))),
        ("exercise", ("how", "many", "gizmos", "are", "in", "stock"), str(STOCK["gizmos"])),
        ("kiosk", ("what", "is", "the", "price", "of", "a", "gadget"), PRICES["gadgets"]),
        ("travel", ("what", "is", "the", "temperature", "in", "Oslo"), "-2"),
        ("converters", ("convert", "5", "km", "to", "miles"), "3.1069"),
        ("reckoner", ("multiply", "6", "by", "7"), "42"),
        ("staff", ("how", "many", "vacation", "days", "does", "Maria", "have", "left"), "12"),
        ("calculator", ("what", "is", "25", "*", "4"), "100"),
        ("shops", ("what", "is", "the", "revenue", "of", "shop_sales", "in", "2024-03"), ""),
    ]
)


@settings(max_examples=deep(150), deadline=None)
@given(template=TEMPLATES, word=HOSTILE, data=st.data())
def test_a_hostile_word_anywhere_is_used_or_said_or_forbids_the_answer(
    shops: Skill, template: tuple[str, tuple[str, ...], str], word: str, data: st.DataObject
) -> None:
    box, words, plain = template
    place = data.draw(st.integers(min_value=0, max_value=len(words)))
    question = " ".join([*words[:place], word, *words[place:]])
    agent = Agent("offline", skills=[shops]) if box == "shops" else Agent("offline", tools=tools_of(box))
    result = agent.run_sync(question)
    heard = DECLINED.search(result.text) or result.text.startswith(NOTED) or f"“{word}”" in result.text
    used = any(word in str(call.arguments) for call in result.tool_calls_made)
    filtered = [call.arguments.get("filters") for call in result.tool_calls_made if call.name == "query_source"]
    turned = any(row["op"] != "=" for rows in filtered if rows for row in rows)
    assert heard or used or turned, (question, result.text)
    assert plain == "" or used or heard or plain not in result.text, (question, result.text)


@tool(effect="read")
def bank_balance(account: str, currency: Literal["EUR", "USD", "GBP"] = "EUR") -> str:
    """Tells the balance of a bank account, in a currency."""
    return f"{account} has 10 {currency}"


@pytest.mark.parametrize(
    ("question", "currency"),
    [
        ("What is the balance of account 4711 in USD?", "USD"),
        ("What is the balance of account 4711?", None),
        ("What is the balance of account 4711 in CHF?", ""),
        ("What is the balance of account 4711 into JPY?", ""),
    ],
)
def test_a_code_that_a_choice_lacks_is_not_answered_by_the_default(question: str, currency: str | None) -> None:
    result = Agent("offline", tools=[bank_balance]).run_sync(question)
    if currency == "":
        assert not result.tool_calls_made
        assert DECLINED.search(result.text)
    else:
        assert result.tool_calls_made[0].arguments.get("currency") == currency
