"""Functions of which nothing says what they do to the world: named by what they tell they only tell, and what looks a
thing up is asked for what the question names."""

from typing import Any

import pytest

from treadle import Agent

CALLS: list[str] = []


def soil_moisture(bed: int) -> float:
    """Soil moisture of a bed in percent."""
    return {1: 31.5, 2: 18.0}[bed]


def current_weather(city: str) -> dict[str, Any]:
    """Current weather of a city."""
    return {"city": city, "temperature_c": 9.5, "wind_kmh": 30}


def shipping_cost(weight_kg: float) -> float:
    """Shipping cost in EUR for a weight."""
    return 4.5 + weight_kg


def outstanding_balance(customer: str) -> float:
    """Outstanding balance of a customer."""
    return 310.4


def order_total(order_id: int) -> float:
    """Total of an order in USD."""
    return 99.5


def get_employee(name: str) -> dict[str, Any]:
    """Look up an employee by name."""
    return {"name": name, "salary": 4200.0}


def get_ticket(ticket_id: int) -> dict[str, Any]:
    """Get a ticket."""
    return {"id": ticket_id, "status": "open"}


def harvest_log(crop: str) -> list[dict[str, Any]]:
    """What was harvested of a crop."""
    return [{"date": "2026-08-01", "kg": 12.5}] if crop == "tomatoes" else []


def comment(ticket_id: int, text: str) -> str:
    """Adds a comment to a ticket."""
    CALLS.append(f"comment {ticket_id} {text}")
    return "added"


def set_salary(employee: str, salary: float) -> str:
    """Set the salary of an employee."""
    CALLS.append(f"set_salary {employee} {salary}")
    return "set"


def water_bed(bed: int, litres: float) -> float:
    """Waters a bed with some litres of water."""
    CALLS.append(f"water_bed {bed} {litres}")
    return litres


def get_account(company: str) -> dict[str, Any]:
    """Get the account of a company."""
    return {"id": 71, "company": company, "owner": "Bea"}


def change_owner(company: str, owner: str) -> str:
    """Change the owner of an account."""
    CALLS.append(f"change_owner {company} {owner}")
    return "changed"


def cancel_booking(reference: str) -> str:
    """Cancels a booking."""
    CALLS.append(f"cancel_booking {reference}")
    return "cancelled"


def retire_vehicle(plate: str) -> str:
    """Retire a vehicle from the fleet."""
    CALLS.append(f"retire_vehicle {plate}")
    return "retired"


def fuel_price() -> float:
    """Current fuel price per litre in EUR."""
    return 1.75


def log_refuel(plate: str, litres: float) -> str:
    """Log a refuel of a vehicle."""
    CALLS.append(f"log_refuel {plate} {litres}")
    return "logged"


def word_count(text: str) -> int:
    """Number of words in a text."""
    return len(text.split())


def reading_time(words: int) -> float:
    """Reading time in minutes for a number of words."""
    return words / 200


def hours_to_minutes(hours: float) -> float:
    """Convert hours to minutes."""
    return hours * 60


FLEET = [retire_vehicle, fuel_price, log_refuel]
READING = [word_count, reading_time, hours_to_minutes]
ACCOUNTS = [get_account, change_owner]
TOOLS = [
    soil_moisture,
    current_weather,
    shipping_cost,
    outstanding_balance,
    order_total,
    get_employee,
    get_ticket,
    harvest_log,
    comment,
    set_salary,
    water_bed,
    cancel_booking,
]


def asked(question: str, tools: list[Any] = TOOLS) -> str:
    CALLS.clear()
    return Agent("offline", tools=tools).run_sync(question).text


@pytest.mark.parametrize(
    ("question", "figure"),
    [
        ("What is the soil moisture of bed 2?", "18.0"),
        ("What is the current weather in Bergen?", "9.5"),
        ("What is the shipping cost for 3 kg?", "7.5"),
        ("What is the outstanding balance of Halden?", "310.4"),
        ("What is the total of order 502?", "99.5"),
        ("What is Lena's salary?", "4200.0"),
        ("What is the salary of Lena?", "4200.0"),
        ("What is the status of ticket 7?", "open"),
        ("What was harvested of tomatoes?", "12.5"),
    ],
)
def test_answers_from_what_only_tells(question: str, figure: str) -> None:
    assert figure in asked(question)
    assert CALLS == []


@pytest.mark.parametrize(
    "question",
    [
        "What is Lena's age?",
        "What is Lena's wife's salary?",
        "What is Lena's highest salary?",
        "Is it raining in Bergen?",
        "Will it snow in Bergen?",
        "What did the shipping cost for 3 kg in 2019?",
    ],
)
def test_tells_nothing_that_no_result_has(question: str) -> None:
    answer = asked(question)
    assert not {"4200.0", "9.5", "30", "7.5"} & {*answer.replace(",", " ").split()}


@pytest.mark.parametrize(
    "question",
    [
        "Could ticket 310 be a duplicate?",
        "Cancel Nora's booking",
        "Cancel the booking of Nora Quist",
        "cancel nora quist's booking",
        "Cancel booking HB-1 when it is paid",
    ],
)
def test_changes_nothing_that_is_asked_or_told_by_another(question: str) -> None:
    asked(question)
    assert CALLS == []


def test_sets_nothing_to_what_it_is() -> None:
    asked("Change the owner of Nordlys", ACCOUNTS)
    assert CALLS == []
    asked("Change the owner of Nordlys to Gus", ACCOUNTS)
    assert CALLS == ["change_owner Nordlys Gus"]


@pytest.mark.parametrize("question", ["Retire Noor's vehicle", "Retire the Crafter", "Log a refuel for KB-204"])
def test_takes_no_owner_for_a_plate_and_no_price_for_an_amount(question: str) -> None:
    asked(question, FLEET)
    assert CALLS == []


def test_converts_no_other_unit() -> None:
    assert "hours to minutes (" not in asked("Convert 90 minutes to hours", READING)
    assert "150" in asked("Convert 2.5 hours to minutes", READING)


def test_the_days_of_a_log_are_no_number_of_things() -> None:
    assert "listed" not in asked("How many tomatoes were harvested in total?")


@pytest.mark.parametrize(
    ("question", "call"),
    [
        ('Comment "when it is done" on ticket 311', "comment 311 when it is done"),
        ("Cancel booking HB-203", "cancel_booking HB-203"),
        ("Water bed 2 with 10 litres", "water_bed 2 10.0"),
    ],
)
def test_does_what_is_commanded(question: str, call: str) -> None:
    asked(question)
    assert [call] == CALLS
