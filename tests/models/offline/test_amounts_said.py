"""A number that may be read in two ways, or that its tool does not take, changes nothing and answers nothing."""

from decimal import Decimal
from typing import Any

import pytest

from treadle import Agent, tool

CALLS: list[tuple[str, dict[str, object]]] = []


@tool
def pay(payee: str, amount: float) -> str:
    """Pays somebody an amount."""
    CALLS.append(("pay", {"payee": payee, "amount": amount}))
    return "paid"


@tool
def record_payment(number: str, amount: Decimal) -> str:
    """Records a payment for an invoice."""
    CALLS.append(("record_payment", {"number": number, "amount": float(amount)}))
    return "recorded"


@tool(effect="read")
def get_invoice(number: str) -> dict[str, str]:
    """Looks up an invoice by its number."""
    return {"number": number, "amount": "1250.00"}


@tool
def extend_lease(flat: str, months: int = 1) -> str:
    """Extends the lease of a flat by some months."""
    CALLS.append(("extend_lease", {"flat": flat, "months": months}))
    return "extended"


@tool
def set_temperature(cellar: str, celsius: float) -> str:
    """Sets the temperature of a cellar."""
    CALLS.append(("set_temperature", {"cellar": cellar, "celsius": celsius}))
    return "set"


@tool
def water(bed: str, litres: float) -> str:
    """Waters a bed."""
    CALLS.append(("water", {"bed": bed, "litres": litres}))
    return "watered"


@tool
def mute(channel: str, hours: int = 1) -> str:
    """Mutes a channel.

    Args:
        channel: which.
        hours: for how many hours.
    """
    CALLS.append(("mute", {"channel": channel, "hours": hours}))
    return "muted"


@tool
def remind(text: str, minutes: int) -> str:
    """Reminds the user of something.

    Args:
        text: what of.
        minutes: in how many minutes.
    """
    CALLS.append(("remind", {"text": text, "minutes": minutes}))
    return "set"


@tool
def delay(train: str, minutes: int) -> str:
    """Delays a train.

    Args:
        train: which.
        minutes: by how many minutes.
    """
    CALLS.append(("delay", {"train": train, "minutes": minutes}))
    return "delayed"


@tool
def drain(basin: int, to_cm: int) -> str:
    """Drains a basin.

    Args:
        basin: its number.
        to_cm: down to this level.
    """
    CALLS.append(("drain", {"basin": basin, "to_cm": to_cm}))
    return "drained"


@tool
def irrigate(zone: str, minutes: int) -> str:
    """Irrigates a zone."""
    CALLS.append(("irrigate", {"zone": zone, "minutes": minutes}))
    return "irrigated"


@tool
def discount(item: str, percent: int) -> str:
    """Discounts an item."""
    CALLS.append(("discount", {"item": item, "percent": percent}))
    return "discounted"


@tool
def load_furnace(furnace: str, tonnes: float) -> str:
    """Loads ore into a furnace."""
    CALLS.append(("load_furnace", {"furnace": furnace, "tonnes": tonnes}))
    return "loaded"


@tool(effect="read")
def km_to_miles(kilometers: float) -> float:
    """Converts kilometers to miles."""
    return kilometers * 0.621371


@tool(effect="read")
def convert_currency(amount: float, source: str, target: str) -> float:
    """Converts an amount of money from the source currency to the target currency."""
    return amount * 2


TOOLS: list[Any] = [
    pay, record_payment, get_invoice, extend_lease, set_temperature, water, mute, remind, delay, drain, irrigate,
    discount, load_furnace, km_to_miles, convert_currency
]  # fmt: skip


def asked(question: str) -> str:
    CALLS.clear()
    return Agent("offline", tools=TOOLS).run_sync(question).text


@pytest.mark.parametrize(
    "question",
    [
        "Pay -50 to Dana",
        "Pay 1.500 to Dana",
        "Pay 20.000 to Dana",
        "Pay 1.234 to Dana",
        "Pay .50 to Dana",
        "Pay ~50 to Dana",
        "Pay <50 to Dana",
        "Pay 50+ to Dana",
        "Pay (50) to Dana",
        "Pay fifty-ish to Dana",
        "Pay 50-ish to Dana",
        "Pay Dana's 50",
        "Pay 50 for Dana",
        "Extend the lease of flat F-3 by -2 months",
        "Extend the lease of flat F-3 when it is paid",
        "Record a payment of 1.250 for R-1001",
        "Maybe pay 50 to Dana",
        "Pay 50 to Dana perhaps",
        "Extend the lease of flat F-3 by 2 fewer months",
        "Water bed A with 500 mg",
        "Water bed A with 500 ml per hour",
        "Water bed A with 500 ml or 1 litre",
        "Mute #ops for 90 minutes",
        "Mute #ops for 1 hour and 30 minutes",
        "Mute #ops in 2 hours",
        "Mute #ops 2 hours later",
        "Extend the lease of flat F-3 by 2 average months",
        "Delay train T-7 to 25 minutes",
        "Drain basin 2 by 60 cm",
        "Irrigate zone B by 20 minutes",
        "Irrigate zone B at 20 minutes",
        "Irrigate zone B from 20 minutes",
        "Irrigate zone B for 20 short minutes",
        "Discount rye bread to 20 %",
        "Load 3 short tons into furnace F-2",
        "Load 3 long tons into furnace F-2",
    ],
)
def test_changes_nothing_by_a_number_that_may_be_another_one(question: str) -> None:
    asked(question)
    assert CALLS == []


@pytest.mark.parametrize(
    ("question", "call"),
    [
        ("Pay 50 to Dana", ("pay", {"payee": "Dana", "amount": 50})),
        ("Pay 0.5 to Dana", ("pay", {"payee": "Dana", "amount": 0.5})),
        ("Pay 1,500 to Dana", ("pay", {"payee": "Dana", "amount": 1500})),
        ("Pay 1,234.56 to Dana.", ("pay", {"payee": "Dana", "amount": 1234.56})),
        ("Record a payment of 310.40 for R-1002", ("record_payment", {"number": "R-1002", "amount": 310.4})),
        ("record payment of 1,100.00 for R-1001", ("record_payment", {"number": "R-1001", "amount": 1100.0})),
        ("Extend the lease of flat F-3 by 2 months", ("extend_lease", {"flat": "F-3", "months": 2})),
        ("Set the temperature of cellar K-1 to -4", ("set_temperature", {"cellar": "K-1", "celsius": -4})),
        ("Water bed A with 500 ml", ("water", {"bed": "A", "litres": 0.5})),
        ("Water bed A with 2 litres", ("water", {"bed": "A", "litres": 2})),
        ("Mute #ops for 120 minutes", ("mute", {"channel": "#ops", "hours": 2})),
        ("Mute #ops for 2 hours", ("mute", {"channel": "#ops", "hours": 2})),
        ("Delay train T-7 by 25 minutes", ("delay", {"train": "T-7", "minutes": 25})),
        ("Drain basin 2 to 60 cm", ("drain", {"basin": 2, "to_cm": 60})),
        ("Irrigate zone B for 20 minutes", ("irrigate", {"zone": "B", "minutes": 20})),
        ("Discount rye bread by 20 %", ("discount", {"item": "rye bread", "percent": 20})),
        ("Load 3 tonnes into furnace F-2", ("load_furnace", {"furnace": "F-2", "tonnes": 3})),
        ("Remind me in 2 hours of 'tea'", ("remind", {"text": "tea", "minutes": 120})),
    ],
)
def test_takes_a_plain_amount_as_it_is_written(question: str, call: tuple[str, dict[str, object]]) -> None:
    asked(question)
    assert [call] == CALLS


def test_says_between_which_two_numbers_it_cannot_choose() -> None:
    assert "'20.000' is 20 or 20,000" in asked("Pay 20.000 to Dana")
    assert "below zero" in asked("Pay -50 to Dana")


@pytest.mark.parametrize(
    "question",
    ["Convert 1.000 EUR to USD", "Convert 1.234 EUR to USD", "Convert 10.000 km to miles", "Convert 500 m to miles"],
)
def test_converts_no_number_that_may_be_another_one(question: str) -> None:
    run = Agent("offline", tools=TOOLS).run_sync(question)
    assert run.tool_calls_made == ()


def test_converts_decimals_that_nobody_takes_for_thousands() -> None:
    assert "26.2" in asked("Convert 42.195 km to miles")


@tool
def sell(crop: str, tonnes: float) -> str:
    """Sells a crop."""
    CALLS.append(("sell", {"crop": crop, "tonnes": tonnes}))
    return "sold"


@tool
def hold(title: str, days: int = 7) -> str:
    """Holds a book for some days."""
    CALLS.append(("hold", {"title": title, "days": days}))
    return "held"


@tool
def set_output(site: str, kilowatts: int) -> str:
    """Sets the output of a site."""
    CALLS.append(("set_output", {"site": site, "kilowatts": kilowatts}))
    return "set"


@pytest.mark.parametrize(
    ("question", "call"),
    [
        ("Sell 5 t of wheat", ("sell", {"crop": "wheat", "tonnes": 5})),
        ("Sell 800 kg of wheat", ("sell", {"crop": "wheat", "tonnes": 0.8})),
        ("Hold Emma for 2 weeks", ("hold", {"title": "Emma", "days": 14})),
        ("Hold Emma for 48 hours", ("hold", {"title": "Emma", "days": 2})),
        ("Set the output of Mole to 5 MW", ("set_output", {"site": "Mole", "kilowatts": 5000})),
        ("Set the output of Mole to 5 mW", None),
        ("Set the output of Mole to 5 MWh", None),
        ("Hold Emma for 20 hours", None),
        ("Hold Emma for 2 working weeks", None),
        ("Hold Emma in 2 weeks", None),
        ("Hold Emma every 2 weeks", None),
        ("Hold Emma for 1 month", None),
    ],
)
def test_converts_only_what_is_exact(question: str, call: tuple[str, dict[str, object]] | None) -> None:
    CALLS.clear()
    Agent("offline", tools=[sell, hold, set_output]).run_sync(question)
    assert ([call] if call else []) == CALLS
