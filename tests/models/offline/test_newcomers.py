"""What newcomers asked of small toolboxes: nothing is done to, or told of, another thing than the one asked for."""

from typing import Any

import pytest

from treadle import Agent, RunResult, Tool, tool


@tool(effect="write")
def raise_salary(employee: str, percent: float) -> str:
    """Raise the salary of an employee by a percentage."""
    return f"raised {employee} by {percent}"


@tool(effect="write")
def cancel_order(order: str) -> str:
    """Cancel an order."""
    return f"cancelled {order}"


@tool(effect="write")
def move_stock(sku: str, from_bin: str, to_bin: str, quantity: int) -> str:
    """Move stock from one bin to another."""
    return f"moved {quantity} {sku}: {from_bin} -> {to_bin}"


def asked(question: str, *tools: Tool) -> RunResult:
    return Agent("offline", tools=list(tools)).run_sync(question)


def calls(result: RunResult) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in result.tool_calls_made]


@pytest.mark.parametrize(
    ("question", "does"),
    [
        ("Raise Tom's salary by 3%", raise_salary),
        ("Raise Tom's salary by 3 percent", raise_salary),
        ("Cancel order A-18", cancel_order),
        ("Cancel the order A-18", cancel_order),
    ],
)
def test_a_command_that_names_the_thing_is_carried_out(question: str, does: Tool) -> None:
    assert [name for name, _ in calls(asked(question, does))] == [does.name]


@pytest.mark.parametrize(
    ("question", "does"),
    [
        ("Raise Tom's salary to 50000", raise_salary),
        ("Raise the salary of Tom to 50,000", raise_salary),
        ("Cancel the orders of Nils", cancel_order),
        ("Cancel the order of Nils", cancel_order),
        ("Cancel the order from Nils", cancel_order),
        ("Cancel the order for Nils", cancel_order),
        ("Cancel Nils's orders", cancel_order),
        ("Cancel all orders by Nils", cancel_order),
    ],
)
def test_whose_a_thing_is_and_what_a_figure_is_to_become_are_no_arguments(question: str, does: Tool) -> None:
    assert not calls(asked(question, does))


@pytest.mark.parametrize(
    "question",
    [
        "Move 20 M8-BOLT from A1 to B2",
        "Move 20 M8-BOLT to B2 from A1",
        "Move from A1 to B2 20 M8-BOLT",
    ],
)
def test_what_is_moved_is_not_where_it_comes_from(question: str) -> None:
    moved = {"sku": "M8-BOLT", "from_bin": "A1", "to_bin": "B2", "quantity": 20}
    assert calls(asked(question, move_stock)) in ([("move_stock", moved)], [])
