"""What changes something is called when it is commanded, with what was said, and never by a question about it."""

from typing import Literal

import pytest

from treadle import Agent, Conversation, tool

CALLS: list[tuple[str, dict[str, object]]] = []


@tool(effect="write")
def place_order(product: str, quantity: int) -> str:
    """Order a quantity of a product."""
    CALLS.append(("place_order", {"product": product, "quantity": quantity}))
    return "ordered"


@tool(effect="write")
def cancel_order(order_id: str) -> str:
    """Cancel an order."""
    CALLS.append(("cancel_order", {"order_id": order_id}))
    return "cancelled"


@tool(effect="read")
def list_orders(customer: str) -> list[str]:
    """The orders of a customer."""
    CALLS.append(("list_orders", {"customer": customer}))
    return ["O-1"]


@tool(effect="write")
def reset_sensor(sensor: str) -> str:
    """Reset a sensor."""
    CALLS.append(("reset_sensor", {"sensor": sensor}))
    return "reset"


@tool(effect="write")
def transfer(from_account: str, to_account: str, amount: float) -> str:
    """Transfer money from one account to another."""
    CALLS.append(("transfer", {"from": from_account, "to": to_account, "amount": amount}))
    return "transferred"


@tool(effect="write")
def refund(invoice_id: str, amount: float) -> str:
    """Refund an amount of an invoice."""
    CALLS.append(("refund", {"invoice_id": invoice_id, "amount": amount}))
    return "refunded"


@tool(effect="read")
def request_status(order_id: str) -> Literal["open", "sent"]:
    """The status of an order."""
    CALLS.append(("request_status", {"order_id": order_id}))
    return "open"


TOOLS = [place_order, cancel_order, list_orders, reset_sensor, transfer, refund]


def called_for(question: str) -> list[tuple[str, dict[str, object]]]:
    CALLS.clear()
    Agent("offline", tools=TOOLS).run_sync(question)
    return CALLS[:]


@pytest.mark.parametrize(
    "question",
    [
        "Should I order 5 lamps?",
        "Did we order 5 lamps?",
        "Who ordered 5 lamps?",
        "Can I cancel order O-77?",
        "Has sensor T-12 been reset?",
        "When was sensor T-12 reset?",
        "Is it safe to reset sensor T-12?",
        "Reset the threshold of sensor T-12",
        "Order 5 lamps for Meier",
        "Cancel the order of Meier",
        "Refund 50 of invoices R-5 and R-6",
        "Did I transfer 250 from account 4711 to account 4712?",
        "Don't reset sensor T-12",
    ],
)
def test_a_question_about_a_change_makes_none(question: str) -> None:
    assert [name for name, _ in called_for(question) if name != "list_orders"] == []


def test_an_order_that_lacks_something_is_no_question_to_another_tool() -> None:
    assert called_for("Order lamps") == []


def test_a_number_that_no_result_can_be_held_against_is_not_passed_over() -> None:
    CALLS.clear()
    answer = Agent("offline", tools=[list_orders]).run_sync("Did Meier order 5 lamps?").text
    assert "O-1" not in answer


def test_commands_are_still_followed() -> None:
    assert called_for("Order 5 lamps") == [("place_order", {"product": "lamps", "quantity": 5})]
    assert called_for("Please reset sensor T-12") == [("reset_sensor", {"sensor": "T-12"})]
    assert called_for("Cancel order O-77") == [("cancel_order", {"order_id": "O-77"})]
    assert called_for("Refund 50 of invoice R-5") == [("refund", {"invoice_id": "R-5", "amount": 50})]


@pytest.mark.parametrize(
    "question",
    [
        "Transfer 250 from account 4711 to account 4712",
        "Transfer 250 to account 4712 from account 4711",
    ],
)
def test_from_and_to_are_not_swapped(question: str) -> None:
    assert called_for(question) == [("transfer", {"from": "4711", "to": "4712", "amount": 250})]


def test_what_says_that_it_reads_needs_no_command() -> None:
    CALLS.clear()
    Agent("offline", tools=[request_status]).run_sync("What is the status of order O-77?")
    assert CALLS == [("request_status", {"order_id": "O-77"})]


def test_the_command_is_no_part_of_a_name() -> None:
    @tool(effect="write")
    def set_salary(employee: str, amount: float) -> str:
        """Set the salary of an employee."""
        CALLS.append(("set_salary", {"employee": employee, "amount": amount}))
        return "set"

    CALLS.clear()
    Agent("offline", tools=[set_salary]).run_sync("Set Olaf Thun's salary to 50000")
    assert CALLS == [("set_salary", {"employee": "Olaf Thun", "amount": 50000})]


def test_a_question_after_a_change_makes_no_other() -> None:
    CALLS.clear()
    agent, conversation = Agent("offline", tools=TOOLS), Conversation()
    for said in ("Transfer 250 from account 4711 to account 4712", "And to account 4714", "And to 4713?"):
        agent.run_sync(said, conversation=conversation)
    assert [call["to"] for _, call in CALLS] == ["4712", "4714"]


@pytest.mark.parametrize(
    ("question", "made"),
    [
        ("Who reminded Echo?", 0),
        ("How many reminders did Echo get?", 0),
        ("Should we remind Echo?", 0),
        ("Remind Echo", 1),
        ("Please vaccinate Rex", 1),
        ("Was Rex vaccinated?", 0),
    ],
)
def test_a_tool_that_is_called_by_what_it_does_is_called_only_on_command(question: str, made: int) -> None:
    done: list[str] = []

    @tool
    def remind(client: str) -> str:
        """Reminds a client."""
        done.append(client)
        return "reminded"

    @tool
    def vaccinate(animal: str) -> str:
        """Vaccinates an animal."""
        done.append(animal)
        return "vaccinated"

    Agent("offline", tools=[remind, vaccinate]).run_sync(question)
    assert len(done) == made


@pytest.mark.parametrize(
    ("question", "recorded"),
    [
        # Who is the animal, the order of the names does not say.
        ("Record that Eva adopts Mia", []),
        ("Record that Mia adopts Eva", []),
        ("Record that Mia is adopted by Eva", [("Mia", "Eva")]),
        ("Record the adoption of Mia by Eva", [("Mia", "Eva")]),
    ],
)
def test_names_around_a_verb_go_into_no_change_in_their_order(question: str, recorded: list[tuple[str, str]]) -> None:
    """Eva was adopted by Mia."""
    done: list[tuple[str, str]] = []

    @tool(effect="write")
    def record_adoption(animal: str, adopter: str) -> str:
        """Record that somebody adopts an animal."""
        done.append((animal, adopter))
        return "recorded"

    Agent("offline", tools=[record_adoption]).run_sync(question)
    assert done == recorded
