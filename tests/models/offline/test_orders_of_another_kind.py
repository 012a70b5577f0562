"""An order that is none to the tools at hand is not taken for one, nor for a question."""

from typing import Any

import pytest

from treadle import Agent, RunResult, tool


@tool
def count_vote(name: str) -> str:
    """Count a vote for a candidate."""
    return "counted"


@tool
def count_visitor(gate: str) -> str:
    """Count one visitor at a gate."""
    return "counted"


@tool
def list_item(name: str, price: float) -> str:
    """List an item for sale at a price."""
    return "listed"


@tool
def report_item(name: str) -> str:
    """Report an item to the moderators."""
    return "reported"


@tool(effect="read")
def item_price(name: str) -> float:
    """Price of an item."""
    return 30.0


@tool
def check_in(guest: str) -> str:
    """Check in a guest."""
    return "checked in"


@tool(effect="read")
def get_order(order_id: int) -> dict[str, Any]:
    """Get an order by its id."""
    return {"order_id": order_id, "status": "open"}


@tool(effect="read")
def stock(item: str) -> int:
    """Number of an item in stock."""
    return 40


@tool(effect="read")
def get_price(item: str) -> float:
    """Price of an item."""
    return 4.5


@tool(effect="read")
def total_price(unit_price: float, quantity: int) -> float:
    """Total for a quantity at a unit price."""
    return unit_price * quantity


@tool(effect="read")
def tip(amount: float, percent: float = 15) -> float:
    """Tip for an amount."""
    return amount * percent / 100


def asked(question: str, *tools: Any) -> RunResult:
    return Agent("offline", tools=list(tools)).run_sync(question)


def calls(result: RunResult) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in result.tool_calls_made]


COUNTERS = (count_vote, count_visitor)
MARKET = (list_item, report_item, item_price)
SHOP = (get_price, stock, total_price)


@pytest.mark.parametrize(
    "question",
    [
        "Count the votes for Ramos",
        "Count votes for Ramos.",
        "Count the visitors at gate North.",
        "Count all visitors at North.",
        "How many visitors were counted at gate North?",
        "How many votes were counted for Ramos?",
    ],
)
def test_to_count_many_is_not_to_count_one_more(question: str) -> None:
    assert calls(asked(question, *COUNTERS)) == []


def test_one_more_is_counted_where_that_is_the_order() -> None:
    assert calls(asked("Count a vote for Ramos.", *COUNTERS)) == [("count_vote", {"name": "Ramos"})]
    assert calls(asked("Count a visitor at gate North.", *COUNTERS)) == [("count_visitor", {"gate": "North"})]


@pytest.mark.parametrize("question", ["List the price of the bike.", "Report on the bike.", "List the items at 200."])
def test_what_asks_to_be_told_puts_nothing_up_for_sale_and_reports_nothing(question: str) -> None:
    assert [call for call in calls(asked(question, *MARKET)) if call[0] != "item_price"] == []


def test_what_is_to_be_listed_for_sale_is() -> None:
    assert calls(asked("List the bike for 200.", *MARKET)) == [("list_item", {"name": "bike", "price": 200})]
    assert calls(asked("Report the bike.", *MARKET)) == [("report_item", {"name": "bike"})]


@pytest.mark.parametrize("question", ["Check whether Pia is in.", "Check if Pia is in.", "Check that Pia is in."])
def test_to_check_whether_somebody_is_in_checks_nobody_in(question: str) -> None:
    assert calls(asked(question, check_in)) == []


@pytest.mark.parametrize(
    "question",
    [
        "Keep order 7.",
        "Hold order 7.",
        "Run order 7.",
        "Use order 7.",
        "Follow order 7.",
        "Let order 7 go.",
        "Work on order 7.",
        "Get order 7 out.",
        "See to order 7.",
    ],
)
def test_an_order_is_not_answered_with_what_there_is(question: str) -> None:
    assert calls(asked(question, get_order)) == []


@pytest.mark.parametrize("question", ["Show order 7.", "Let me see order 7.", "See order 7.", "Order 7?"])
def test_a_plain_verb_still_asks(question: str) -> None:
    assert calls(asked(question, get_order)) == [("get_order", {"order_id": 7})]


def test_what_one_had_is_not_what_there_is() -> None:
    assert calls(asked("How much stock of screws did we have?", stock)) == []


@pytest.mark.parametrize(
    "question", ["How many widgets are in stock at 7?", "How many widgets are in stock at 7 dollars?"]
)
def test_how_many_there_are_is_not_what_they_would_cost(question: str) -> None:
    assert "280" not in asked(question, *SHOP).text


def test_a_second_question_about_the_same_thing_is_answered_where_a_tool_takes_what_two_tell() -> None:
    result = asked("What is the price of a widget and how many are in stock?", *SHOP)
    assert calls(result) == [("get_price", {"item": "widget"}), ("stock", {"item": "widget"})]
    assert "4.5" in result.text
    assert "40" in result.text


def test_an_amount_with_a_tip_is_not_the_tip() -> None:
    assert "I cannot" in asked("How much is 60 with a 20% tip?", tip).text
    assert calls(asked("What is a 20% tip on 50?", tip)) == [("tip", {"amount": 50, "percent": 20})]
