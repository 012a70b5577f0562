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


@tool
def email_singer(name: str, subject: str) -> str:
    """Emails a singer."""
    DONE.append((name, subject))
    return "sent"


@tool
def give_bonus(name: str, amount: float) -> str:
    """Gives an employee a bonus."""
    DONE.append((name, amount))
    return "given"


@tool
def block_user(user: str) -> str:
    """Blocks a user."""
    DONE.append((user,))
    return "blocked"


@tool
def book_night(date: str, observer: str) -> str:
    """Books a night for an observer."""
    DONE.append((date, observer))
    return "booked"


@tool
def reject_claim(claim: str, reason: str) -> str:
    """Rejects a claim for a reason."""
    DONE.append((claim, reason))
    return "rejected"


def test_what_is_only_called_by_its_kind_is_not_said() -> None:
    assert not done("Book 2026-06-01 for the students.", book_night)
    assert not done("Reject claims C-1 and C-3 for the same reason.", reject_claim)
    assert not done("Reject claim C-1 for a good reason.", reject_claim)
    assert done("Reject claim C-1 for fraud.", reject_claim) == [("C-1", "fraud")]


@pytest.mark.parametrize(
    "order",
    [
        "Email the altos about the rehearsal.",
        "Email the tall alto about the rehearsal.",
        "Give the engineers a bonus of 300.",
        "Give engineers a bonus of 300.",
        "Block the spammer.",
        "Block spammers.",
    ],
)
def test_those_who_are_something_are_nobody(order: str) -> None:
    assert not done(order, email_singer, give_bonus, block_user)


def test_a_name_without_a_capital_is_one() -> None:
    assert done("give bo a bonus of 300", give_bonus) == [("bo", 300)]
    assert done("block user spammer", block_user) == [("spammer",)]
    assert done("Block mallory.", block_user) == [("mallory",)]
    assert done("Email Bas the subject 'Rehearsal'.", email_singer) == [("Bas", "Rehearsal")]
