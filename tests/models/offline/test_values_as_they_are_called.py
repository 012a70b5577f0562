"""Values as the words around them say what they are: "SKU A-100", "in the kitchen", "between two days"."""

from typing import Any, Literal

import pytest

from treadle import Agent, tool


@tool(effect="read")
def stock_of(sku: str, site: str | None = None) -> dict[str, Any]:
    """Stock level of an SKU, at a site or in all."""
    return {"sku": sku, "pieces": 40 if site else 110}


@tool(effect="write")
def turn_on(device: str, room: str | None = None) -> str:
    """Turns a device on."""
    return "on"


@tool(effect="write")
def update_phone(customer: str, phone: str) -> str:
    """Updates the phone number of a customer."""
    return "updated"


@tool(effect="write")
def book_hotel(city: str, nights: int, breakfast: bool = False) -> str:
    """Books a hotel room in a city for some nights."""
    return "booked"


@tool(effect="write")
def vote(motion: str, choice: Literal["yes", "no", "abstain"]) -> str:
    """Votes on a motion."""
    return "voted"


@tool(effect="read")
def votes(motion: str) -> dict[str, Any]:
    """Votes on a motion."""
    return {"motion": motion, "yes": 12, "no": 5}


@tool(effect="read")
def consumption(meter: str, start: str, end: str) -> dict[str, Any]:
    """Consumption of a meter in kWh between two days (YYYY-MM-DD)."""
    return {"meter": meter, "kwh": 312.4}


TOOLS = [stock_of, turn_on, update_phone, book_hotel, vote, votes, consumption]


def made(question: str) -> list[dict[str, Any]]:
    return [dict(call.arguments) for call in Agent("offline", tools=TOOLS).run_sync(question).tool_calls_made]


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        ("How many pieces of SKU A-100 do we have?", {"sku": "A-100"}),
        ("Turn on the lamp in the kitchen", {"device": "lamp", "room": "kitchen"}),
        ("Update the phone number of Alpha to +49 228 1234", {"customer": "Alpha", "phone": "+49 228 1234"}),
        (
            "Book a hotel room in Oslo for two nights without breakfast",
            {"city": "Oslo", "nights": 2, "breakfast": False},
        ),
        ("Vote yes on motion M4", {"motion": "M4", "choice": "yes"}),
        ("Vote no on motion M4", {"motion": "M4", "choice": "no"}),
        ("Go ahead and vote no on motion M4", {"motion": "M4", "choice": "no"}),
        (
            "What was the consumption of meter M-8 between 2026-10-01 and 2026-10-31?",
            {"meter": "M-8", "start": "2026-10-01", "end": "2026-10-31"},
        ),
    ],
)
def test_they_are_read_so(question: str, arguments: dict[str, Any]) -> None:
    assert made(question) == [arguments]


@pytest.mark.parametrize(
    "question",
    [
        "Turn on the lamp in the dark",
        "Turn on the lamp in the morning",
        "Update the phone number of Alpha to +49 228 1234 or +49 228 9999",
        "Vote yes or no on motion M4",
        "No on motion M4",
    ],
)
def test_what_is_none_is_not(question: str) -> None:
    assert made(question) == []


def test_what_we_did_is_not_told_by_what_there_is_of_it() -> None:
    text = Agent("offline", tools=TOOLS).run_sync("Did I vote yes on motion M4?").text
    assert "12" not in text


@tool
def place_bid(lot: int, amount: float) -> str:
    """Places a bid on a lot."""
    return "placed"


@tool
def top_up(phone: int, credit: float) -> str:
    """Tops up."""
    return "done"


def test_of_two_numbers_each_is_what_it_stands_beside() -> None:
    """Regression: 101 was bid on lot 1300, as "lot" counted as a small word."""
    result = Agent("offline", tools=[place_bid]).run_sync("Place a bid of 1300 on lot 101")
    assert [dict(call.arguments) for call in result.tool_calls_made] == [{"lot": 101, "amount": 1300}]


@pytest.mark.parametrize("question", ["Place a bid of 1300 on 101", "Top up 30 on 5551", "Top 5551 up by 30"])
def test_of_two_numbers_that_nothing_tells_apart_none_is_changed_by(question: str) -> None:
    assert not Agent("offline", tools=[place_bid, top_up]).run_sync(question).tool_calls_made


@tool(effect="write")
def set_limit(account: int, limit: float, days: int = 30) -> str:
    """Sets the limit of an account."""
    return "set"


@tool(effect="write")
def change_price(item: int, price: float) -> str:
    """Changes the price of an item."""
    return "changed"


@pytest.mark.parametrize(
    ("order", "arguments"),
    [
        ("Set the limit of account 4711 to 500", {"account": 4711, "limit": 500}),
        ("Set the limit of 4711 to 500", {"account": 4711, "limit": 500}),
        ("Set the limit of account 4711 to 500 for 10 days", {"account": 4711, "limit": 500, "days": 10}),
        ("Change the price of item 12 to 40", {"item": 12, "price": 40}),
        ("Change the price of 12 to 40", {"item": 12, "price": 40}),
    ],
)
def test_what_is_set_to_a_number_is_what_stands_before_of(order: str, arguments: dict[str, Any]) -> None:
    """Regression: the limit of account 500 was set to 4711."""
    result = Agent("offline", tools=[set_limit, change_price]).run_sync(order)
    assert [dict(call.arguments) for call in result.tool_calls_made] == [arguments], result.text
