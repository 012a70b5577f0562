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


@tool(effect="write")
def create_issue(repo: str, title: str, labels: list[str] | None = None) -> str:
    """Create an issue in a repository."""
    return "created"


@tool(effect="read")
def open_pull_requests(repo: str) -> list[int]:
    """Open pull requests of a repository."""
    return [4, 9]


@tool(effect="read")
def price_of(fruit: str) -> float:
    """Price of a fruit."""
    return 2.0


@tool(effect="read")
def mileage(car: str) -> int:
    """Mileage of a car in kilometers."""
    return 45_000


@tool(effect="write")
def set_temperature(room: str, celsius: float) -> str:
    """Set the temperature in a room."""
    return "set"


@pytest.mark.parametrize("option", ["with label bug", "labelled bug", "with a label", "with labels bug and ui"])
def test_an_option_that_is_named_is_not_left_out(option: str) -> None:
    made = calls(asked(f'Create an issue "Crash at start" in acme/site {option}.', create_issue))
    assert [call for call in made if not call[1].get("labels")] == []


def test_an_option_that_is_given_is_passed() -> None:
    made = calls(asked('Create an issue "Crash" in acme/site with label urgent.', create_issue))
    assert made == [("create_issue", {"title": "Crash", "repo": "acme/site", "labels": ["urgent"]})]


def test_a_repository_is_one_name_and_two_fruits_with_a_slash_are_none() -> None:
    made = calls(asked("List the open pull requests of acme/site.", open_pull_requests))
    assert made == [("open_pull_requests", {"repo": "acme/site"})]
    assert calls(asked("What is the price of apples/pears?", price_of)) == []


@pytest.mark.parametrize(
    ("question", "cars"),
    [
        ("What is the mileage of Van 2?", ["Van 2"]),
        ("What is the mileage of Van 2 and Van 3?", ["Van 2", "Van 3"]),
        ("What is the mileage of Van 2 in 5 days?", []),
        ("What is the mileage of Van 2 hours ago?", []),
    ],
)
def test_a_name_with_a_number_is_one_name(question: str, cars: list[str]) -> None:
    assert calls(asked(question, mileage)) == [("mileage", {"car": car}) for car in cars]


@pytest.mark.parametrize(
    ("question", "made"),
    [
        ("Set the temperature in the study to 21 degrees.", [21]),
        ("Set the temperature in the study to 70 degrees Fahrenheit.", []),
        ("Set the temperature in the study to 2 degrees colder.", []),
        ("Raise the temperature in the study by 2 degrees.", []),
        ("Set the temperature in the study 2 degrees higher.", []),
    ],
)
def test_degrees_are_those_of_the_only_scale_that_there_is(question: str, made: list[int]) -> None:
    expected = [("set_temperature", {"room": "study", "celsius": celsius}) for celsius in made]
    assert calls(asked(question, set_temperature)) == expected


@tool
def order_drink(drink: str, size: str = "medium") -> str:
    """Order a drink."""
    return "ordered"


def test_a_size_is_no_part_of_a_name_where_there_is_a_size_to_be_told() -> None:
    assert [call for call in calls(asked("Order a large tea.", order_drink)) if "size" not in call[1]] == []
    assert calls(asked("Order a green tea.", order_drink)) == [("order_drink", {"drink": "green tea"})]
