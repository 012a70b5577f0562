"""Nobody is called "my brother", and nobody's name is a phone number: no change is made to either."""

from typing import Any

import pytest

from treadle import Agent, tool

DONE: list[tuple[Any, ...]] = []


@tool
def reserve_spot(spot: str, plate: str) -> str:
    """Reserves a parking spot for a number plate."""
    DONE.append((spot, plate))
    return "reserved"


@tool
def reserve_flat(flat: str, name: str) -> str:
    """Reserves a flat for somebody."""
    DONE.append((flat, name))
    return "reserved"


@tool
def transfer(account: str, amount: float) -> str:
    """Transfers money to an account."""
    DONE.append((account, amount))
    return "transferred"


@tool
def pay_out(to: str, amount: float) -> str:
    """Pays money out to an IBAN."""
    DONE.append((to, amount))
    return "paid"


@tool
def send_sms(to: str, text: str) -> str:
    """Sends a text message to a phone number."""
    DONE.append((to, text))
    return "sent"


@tool
def ring(phone: str, text: str) -> str:
    """Rings somebody and says a text."""
    DONE.append((phone, text))
    return "rung"


@tool
def call_number(number: str) -> str:
    """Calls a phone number."""
    DONE.append((number,))
    return "called"


@tool
def post_hook(url: str, message: str) -> str:
    """Posts a message to a webhook."""
    DONE.append((url, message))
    return "posted"


@tool
def add_person(name: str, role: str) -> str:
    """Adds a person with a role."""
    DONE.append((name, role))
    return "added"


@tool
def create_group(name: str) -> str:
    """Creates a group."""
    DONE.append((name,))
    return "created"


def done(order: str, *tools: Any) -> list[tuple[Any, ...]]:
    DONE.clear()
    answer = Agent("offline", tools=tools).run_sync(order).text
    assert DONE or "cannot" in answer or "could not" in answer
    return [*DONE]


@pytest.mark.parametrize("who", ["my brother", "our landlord", "the neighbour", "his older sister"])
def test_nobody_is_called_by_what_he_is(who: str) -> None:
    assert not done(f"Reserve P4 for {who}.", reserve_spot)
    assert not done(f"Reserve B1 for {who}.", reserve_flat)
    assert not done(f"Transfer 50 to {who}.", transfer)
    assert not done(f"Pay out 50 to {who}.", pay_out)
    assert not done(f"Send {who} the text 'On my way'.", send_sms)


@pytest.mark.parametrize("what", ["my van", "the van"])
def test_a_thing_is_no_plate_and_no_name(what: str) -> None:
    assert not done(f"Reserve P4 for {what}.", reserve_spot)
    assert not done(f"Reserve B1 for {what}.", reserve_flat)


def test_a_name_is_no_number_and_no_site() -> None:
    assert not done("Text Al 'On my way'.", send_sms)
    assert not done("Ring Al 'On my way'.", ring)
    assert not done("Call Al.", call_number)
    assert not done("Pay out 50 to Al.", pay_out)
    assert not done("Post 'hi' to Al.", post_hook)


def test_who_is_named_is_still_meant() -> None:
    assert done("Reserve P4 for AB-123.", reserve_spot) == [("P4", "AB-123")]
    assert done("Reserve B1 for Lou.", reserve_flat) == [("B1", "Lou")]
    assert done("Transfer 50 to my savings.", transfer) == [("savings", 50)]
    assert done("Pay out 50 to DE89370400440532013000.", pay_out) == [("DE89370400440532013000", 50)]
    assert done("Add the person Al, role trainer.", add_person) == [("Al", "trainer")]
    assert done("Create the group family.", create_group) == [("family",)]
