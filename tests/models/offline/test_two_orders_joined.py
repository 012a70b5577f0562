"""Two orders that an "and" joins are two, whatever their verbs; what makes one of them no order makes neither one."""

from itertools import permutations, product

import pytest

from treadle import Agent, tool


@tool(effect="write")
def discharge(animal: str) -> str:
    """Discharges an animal from the clinic."""
    return "discharged"


@tool(effect="write")
def move_to_cage(animal: str, cage: int) -> str:
    """Moves an animal to another cage."""
    return "moved"


@tool(effect="write")
def message(person: str, text: str) -> str:
    """Sends a message to a person."""
    return "sent"


ORDERS = {
    "discharge Coco": ("discharge", {"animal": "Coco"}),
    "move Mitzi to cage 8": ("move_to_cage", {"animal": "Mitzi", "cage": 8}),
    "discharge Rex": ("discharge", {"animal": "Rex"}),
}
JOINTS = (" and ", ", and ", ", then ", " and then ")
TURNED = (
    "Don't {}",
    "Should I {}",
    "If Ann agrees, {}",
    "{} unless Ann objects",
    "{} tomorrow",
    "{}, no wait",
    "{}?",
    "Before you {}, ask",
    "{} is what I did",
    "{}, just kidding",
    '"{}"',
    "Tell Ann to {}",
    "Message Ann to {}",
)


def made(question: str) -> list[tuple[str, dict[str, object]]]:
    result = Agent("offline", tools=[discharge, move_to_cage, message]).run_sync(question)
    return [(call.name, dict(call.arguments)) for call in result.tool_calls_made if call.name != "message"]


@pytest.mark.parametrize("joint", JOINTS)
def test_both_of_two_orders_are_carried_out(joint: str) -> None:
    for one, other in permutations(ORDERS, 2):
        question = one[0].upper() + one[1:] + joint + other
        assert made(question) == [ORDERS[one], ORDERS[other]], question


@pytest.mark.parametrize("turned", TURNED)
def test_what_turns_one_of_them_turns_both(turned: str) -> None:
    for (one, other), joint in product(permutations(ORDERS, 2), JOINTS):
        question = turned.format(one + joint + other)
        question = question[0].upper() + question[1:]
        assert made(question) == [], question


@pytest.mark.parametrize(
    "question",
    ["Discharge Coco and move to cage 8", "Move Mitzi and discharge Coco", "Discharge and move Mitzi to cage 8"],
)
def test_an_order_that_lacks_something_holds_the_other_back(question: str) -> None:
    assert made(question) == []
