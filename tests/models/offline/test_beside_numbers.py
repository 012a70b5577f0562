"""Words beside numbers, the kind of what is asked for, switches, and follow-ups that order something."""

from datetime import date
from decimal import Decimal
from typing import Any, Literal

import pytest

from treadle import Agent, Conversation, tool

from .asked.judge import DECLINED


@tool
def transfer(source: str, target: str, amount: Decimal) -> str:
    """Transfers money from one account to another.

    Args:
        source: the account that is charged.
        target: the account that gets the money.
        amount: in euros.
    """
    return "done"


@tool
def pay(payee: str, amount: Decimal, reference: str = "") -> str:
    """Pays an amount of euros to a payee."""
    return "paid"


@tool(effect="read")
def vehicles(
    status: Literal["available", "in_use", "in_service"] | None = None,
    kind: Literal["van", "car", "truck"] | None = None,
) -> list[str]:
    """Lists the vehicles of the fleet."""
    return ["B-XY 12"]


@tool(effect="read")
def next_service(plate: str) -> date:
    """Day of the next service of a vehicle.

    Args:
        plate: its number plate.
    """
    return date(2027, 2, 1)


@tool(effect="read")
def find_mails(sender: str | None = None, since: date | None = None) -> list[str]:
    """Finds mails.

    Args:
        sender: who wrote them.
        since: from this day on.
    """
    return ["m1"]


@tool(effect="read")
def address(name: str) -> str:
    """Mail address of a person."""
    return "iris@example.org"


@tool(effect="read")
def search_books(author: str | None = None, title: str | None = None, language: str | None = None) -> list[str]:
    """Searches the catalogue for books.

    Args:
        author: who wrote them.
        title: words of the title.
        language: in which they are written.
    """
    return ["Emma"]


@tool(effect="read")
def sensors(kind: Literal["moisture", "light"] | None = None, battery_below: int | None = None) -> list[str]:
    """Lists the sensors.

    Args:
        kind: what they measure.
        battery_below: only those with less battery, in percent.
    """
    return ["s3"]


@tool(effect="read")
def monthly_consumption(meter: str, month: str) -> float:
    """Consumption of a meter in a month.

    Args:
        meter: its name.
        month: as YYYY-MM.
    """
    return 410.0


@tool(effect="read")
def forecast(city: str) -> str:
    """Weather forecast of a city."""
    return "rain"


@tool(effect="read")
def find_tickets(
    status: Literal["open", "pending", "closed"] = "open",
    assignee: str | None = None,
    priority: Literal["low", "high", "urgent"] | None = None,
) -> list[str]:
    """Finds tickets.

    Args:
        status: their state.
        assignee: who works on them.
        priority: how urgent they are.
    """
    return ["T-4", "T-9"]


@tool
def close_ticket(id: str) -> str:
    """Closes a ticket."""
    return "closed"


@tool(effect="read")
def manager(employee: str) -> str:
    """Name of the manager of an employee."""
    return "Ute"


@tool(effect="read")
def vacation_days(employee: str) -> int:
    """Vacation days that an employee has left."""
    return 11


@tool(effect="read")
def list_employees(location: str | None = None, part_time: bool | None = None) -> list[str]:
    """Lists employees.

    Args:
        location: only those at this place.
        part_time: only those who work part time.
    """
    return ["Ada"]


@tool
def set_light(room: str, on: bool) -> str:
    """Turns the light of a room on or off."""
    return "ok"


@tool(effect="read")
def delay(train: str) -> int:
    """Minutes by which a train is late.

    Args:
        train: its number, such as ICE 71.
    """
    return 12


@tool
def deploy(service: str, version: str, environment: Literal["staging", "production"]) -> str:
    """Deploys a version of a service to an environment."""
    return "deployed"


@tool(effect="read")
def hours(person: str, week: int | None = None) -> float:
    """Hours that a person logged.

    Args:
        person: who.
        week: number of the week.
    """
    return 31.5


@tool(effect="read")
def price_per_night(room: int) -> Decimal:
    """Price of a room per night."""
    return Decimal(95)


@tool(effect="read")
def price(item: str) -> Decimal:
    """Price of one item in euros."""
    return {"bun": Decimal("0.80"), "pretzel": Decimal("1.10")}[item]


@tool(effect="read")
def price_per_kilo(item: str) -> Decimal:
    """Price of an item per kilo."""
    return Decimal(3)


@tool(effect="read")
def multiply(a: float, b: float) -> float:
    """Multiplies two numbers."""
    return a * b


@tool
def place_order(item: str, quantity: int) -> str:
    """Places an order for a customer.

    Args:
        item: what is ordered.
        quantity: how many pieces.
    """
    return "order 17"


@tool
def move_member(member: str, team: str) -> str:
    """Moves a member to another team."""
    return "moved"


@tool(effect="read")
def prime_numbers(start: int, end: int) -> list[int]:
    """Lists the prime numbers between two numbers."""
    return [2, 3, 5, 7]


def asked(tools: list[Any], *questions: str) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """The calls and the text of the last answer of a conversation."""
    agent, conversation = Agent("offline", tools=tools), Conversation()
    result = [agent.run_sync(question, conversation=conversation) for question in questions][-1]
    calls = [(call.name, dict(call.arguments)) for call in result.tool_calls_made]
    return calls, result.text


def test_the_unit_of_an_amount_is_no_account() -> None:
    calls, text = asked([transfer], "Transfer 20 euros to savings.")
    assert calls == []
    assert "source" in text
    calls, _ = asked([transfer], "Transfer 50 euros from checking to savings.")
    assert calls == [("transfer", {"source": "checking", "target": "savings", "amount": 50})]


def test_what_one_tool_offers_as_a_choice_is_no_name_to_another() -> None:
    tools = [next_service, vehicles]
    calls, _ = asked(tools, "How many trucks are in service?")
    assert calls == [("vehicles", {"status": "in_service", "kind": "truck"})]
    assert asked(tools, "Which vans are available?")[0] == [("vehicles", {"status": "available", "kind": "van"})]
    assert DECLINED.search(asked(tools, "Which vans are not available?")[1])


def test_a_mail_address_is_no_mail() -> None:
    assert DECLINED.search(asked([find_mails, address], "Find mails to Iris.")[1])
    assert asked([find_mails, address], "What is Iris's mail address?")[0] == [("address", {"name": "Iris"})]


def test_a_word_for_the_kind_of_things_is_no_title() -> None:
    calls, text = asked([search_books], "Search Polish books by Lem.")
    assert all(arguments == {} for _, arguments in calls)
    assert "“Polish”" in text


def test_below_in_the_name_of_a_bound_leaves_out_the_bound() -> None:
    calls, _ = asked([sensors], "Which light sensors have less than 20 percent battery?")
    assert calls == [("sensors", {"kind": "light", "battery_below": 20})]


def test_the_verb_of_a_question_is_no_name() -> None:
    calls, _ = asked([monthly_consumption], "What did the office meter consume in October 2026?")
    assert calls == [("monthly_consumption", {"meter": "office", "month": "2026-10"})]


def test_a_town_and_its_state_are_not_two_towns() -> None:
    calls, text = asked([forecast], "Weather in Paris, Texas?")
    assert calls == []
    assert "“Texas”" in text
    assert len(asked([forecast], "Weather in Oslo, Porto and Kiel?")[0]) == 3


def test_an_order_is_not_read_into_the_question_before_it() -> None:
    tools = [find_tickets, close_ticket]
    assert asked(tools, "Show open tickets assigned to Milo", "Close them.")[0] == []
    calls, _ = asked(tools, "Show open tickets assigned to Milo", "Only the urgent ones.")
    assert calls == [("find_tickets", {"status": "open", "assignee": "Milo", "priority": "urgent"})]


def test_she_is_the_one_who_was_told_of() -> None:
    calls, text = asked([manager, vacation_days], "Who is the manager of Bo?", "How many vacation days does she have?")
    assert calls == [("vacation_days", {"employee": "Ute"})]
    assert "Ute" in text.splitlines()[0]


def test_a_followup_that_switches_keeps_the_rest() -> None:
    calls, _ = asked([list_employees], "List the employees in Lyon", "Only part-time.")
    assert calls == [("list_employees", {"location": "Lyon", "part_time": True})]


@pytest.mark.parametrize(
    ("question", "room", "on"),
    [
        ("Turn the kitchen light on", "kitchen", True),
        ("Turn on the light in the hall.", "hall", True),
        ("Switch off the bathroom light", "bathroom", False),
        ("Turn the light off in the hall", "hall", False),
    ],
)
def test_what_is_called_on_is_turned(question: str, room: str, on: bool) -> None:
    assert asked([set_light], question)[0] == [("set_light", {"room": room, "on": on})]


@pytest.mark.parametrize(
    "question",
    [
        "Don't turn on the light in the hall",
        "Switch off all the lights.",
        "Turn on the light in the hall on Monday",
        "Turn the hall light off and on",
    ],
)
def test_what_is_called_on_is_not_turned_against_a_word(question: str) -> None:
    assert asked([set_light], question)[0] == []


def test_letters_and_a_number_are_the_name_of_a_train_and_no_amount() -> None:
    assert asked([delay], "How late is ICE 577?")[0] == [("delay", {"train": "ICE 577"})]
    assert asked([pay], "Pay Nordkraft EUR 50")[0] in ([], [("pay", {"payee": "Nordkraft", "amount": 50})])


def test_a_version_is_one_value() -> None:
    calls, _ = asked([deploy], "Deploy billing 2.4.2 to staging.")
    assert calls == [("deploy", {"service": "billing", "version": "2.4.2", "environment": "staging"})]
    assert asked([deploy], "Do not deploy billing 2.4.2 to staging.")[0] == []


def test_an_amount_with_its_cents_stands_behind_whom_it_is_paid_to() -> None:
    assert asked([pay], "Pay Nordkraft 62.40")[0] == [("pay", {"payee": "Nordkraft", "amount": 62.4})]
    assert asked([pay], "Pay Nordkraft 1.250")[0] == []


def test_the_noun_before_a_number_says_what_it_is() -> None:
    assert asked([hours], "How many hours did Sven log in week 46?")[0] == [("hours", {"person": "Sven", "week": 46})]
    assert asked([price_per_night], "What does room 104 cost per night?")[0] == [("price_per_night", {"room": 104})]


def test_the_price_of_one_is_multiplied() -> None:
    calls, text = asked([price, multiply], "What do 12 buns cost?")
    assert calls == [("price", {"item": "bun"}), ("multiply", {"a": 12, "b": 0.8})]
    assert "9.6" in text
    assert "In total: 11.8" in asked([price, multiply], "What do 12 buns and 2 pretzels cost?")[1]
    assert asked([price_per_kilo, multiply], "What do 12 buns cost?")[0] == []


def test_an_order_is_placed_by_its_own_word() -> None:
    assert asked([place_order], "Order 5 pretzels")[0] == [("place_order", {"item": "pretzels", "quantity": 5})]
    assert asked([place_order], "Order 5 pretzels, but not before Monday")[0] == []


def test_a_code_is_no_member_where_a_name_is() -> None:
    assert asked([move_member], "Move U17 to Lina")[0] == []


def test_even_numbers_are_no_primes() -> None:
    assert "even" in asked([prime_numbers], "List the even numbers between 1 and 10")[1]
    assert not asked([prime_numbers], "List the even numbers between 1 and 10")[1].startswith("Left out")


@tool(effect="read")
def contacts(city: str | None = None, vip: bool | None = None) -> list[str]:
    """Lists contacts.

    Args:
        city: where they live.
        vip: only important ones.
    """
    return ["Ida"]


@tool(effect="read")
def phone(contact: str) -> str:
    """Phone number of a contact."""
    return "+49 1"


@tool(effect="read")
def water_temperature(tank: int) -> float:
    """Water temperature of a tank in degrees Celsius."""
    return 24.5


@tool
def add_to_cart(customer: str, product: str, quantity: int = 1) -> str:
    """Adds a product to the cart of a customer."""
    return "ok"


@tool(effect="read")
def departures(airport: str, after: str | None = None) -> list[str]:
    """Lists the departures from an airport.

    Args:
        airport: its name.
        after: not before this time, as HH:MM.
    """
    return ["LH 400"]


def test_only_some_are_some_of_those_before() -> None:
    calls, _ = asked([contacts], "List the contacts in Graz", "Only VIP ones.")
    assert calls == [("contacts", {"city": "Graz", "vip": True})]


def test_her_address_is_nobody() -> None:
    assert asked([phone], "What is Ida's phone number?", "And her address?")[0] == []


@tool(effect="read")
def last_watered(plant: str) -> date:
    """Day on which a plant was last watered."""
    return date(2026, 11, 25)


def test_whether_something_is_so_is_answered_by_no_other_figure() -> None:
    assert not asked([last_watered], "Does the fern need water?")[1].startswith("Left out")
    assert not asked([water_temperature], "Is tank 3 clean?")[1].startswith("Left out")


def test_a_number_before_a_thing_is_how_many_of_it() -> None:
    calls, _ = asked([add_to_cart], "Add 2 lamps to Vera's cart.")
    assert calls == [("add_to_cart", {"customer": "Vera", "product": "lamps", "quantity": 2})]


def test_a_time_behind_the_name_of_its_parameter() -> None:
    calls, _ = asked([departures], "Departures from Oslo after 17:00")
    assert calls == [("departures", {"airport": "Oslo", "after": "17:00"})]


def test_a_condition_is_taken_away() -> None:
    told = "List the contacts in Graz", "Only VIP ones."
    assert asked([contacts], *told, "Now without the city.")[0] == [("contacts", {"vip": True})]
    assert asked([contacts], *told, "Now without the company.")[0] == []


def test_what_was_paid_is_not_paid_again_without_its_reference() -> None:
    first = "Pay Anna 20 euros with the reference rent"
    assert len(asked([pay], first)[0]) == 1
    assert asked([pay], first, "Now without the reference")[0] == []


@tool(effect="read")
def free_bikes(station: str) -> int:
    """Number of free bikes at a station."""
    return 6


@tool
def rent(station: str, rider: str) -> str:
    """Rents a bike at a station to a rider."""
    return "ok"


@tool(effect="read")
def room_price(room_type: Literal["single", "double", "suite"], nights: int = 1, breakfast: bool = False) -> int:
    """Price of a stay."""
    return 90


@tool
def redirect(parcel: str, address: str) -> str:
    """Sends a parcel to another address."""
    return "ok"


@tool
def refer(patient: str, doctor: str) -> str:
    """Refers a patient to a doctor."""
    return "ok"


def test_to_return_what_was_lent_is_no_question() -> None:
    assert asked([free_bikes, rent], "Return the bike of Lotta.")[0] == []


def test_what_is_counted_may_be_said_again() -> None:
    calls, _ = asked([room_price], "What does a double room cost for 3 nights?", "And for 2 nights?", "With breakfast?")
    assert calls == [("room_price", {"room_type": "double", "nights": 2, "breakfast": True})]


def test_my_office_is_no_address() -> None:
    assert asked([redirect], "Redirect PX9914 to my office.")[0] == []
    calls, _ = asked([redirect], 'Redirect PX9914 to "Mill Lane 4".')
    assert calls == [("redirect", {"parcel": "PX9914", "address": "Mill Lane 4"})]


def test_a_doctor_is_not_referred_to_a_patient() -> None:
    assert asked([refer], "Refer Dr. Vogt to Tim Wolf")[0] == []
    assert asked([refer], "Refer Tim Wolf to Dr. Vogt")[0] == [("refer", {"patient": "Tim Wolf", "doctor": "Dr. Vogt"})]
