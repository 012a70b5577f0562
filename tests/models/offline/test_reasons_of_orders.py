"""The reason behind an order changes nothing of it: it is passed on where a tool takes one, and else said to be left
out. What could be a condition, a contrast or another order is no reason."""

from typing import Any

import pytest

from treadle import Agent, tool


@tool(effect="write")
def cancel_order(order_id: int, reason: str | None = None) -> str:
    """Cancels an order."""
    return f"order {order_id} cancelled"


@tool(effect="write")
def reject_claim(claim: str, reason: str) -> str:
    """Rejects a claim for a reason."""
    return "rejected"


@tool(effect="write")
def restart(service: str) -> str:
    """Restarts a service."""
    return f"{service} restarted"


TOOLS = [cancel_order, reject_claim, restart]


def asked(question: str) -> tuple[list[dict[str, Any]], str]:
    result = Agent("offline", tools=TOOLS).run_sync(question)
    return [dict(call.arguments) for call in result.tool_calls_made], result.text


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        ("Cancel order 7 because it is late", {"order_id": 7, "reason": "it is late"}),
        ("Please cancel order 7, because it is late.", {"order_id": 7, "reason": "it is late"}),
        ("Could you cancel order 7 because it is late?", {"order_id": 7, "reason": "it is late"}),
        ("I want to cancel order 7 because of the delay", {"order_id": 7, "reason": "the delay"}),
        ("Reject claim K-5 because it came too late", {"claim": "K-5", "reason": "it came too late"}),
    ],
)
def test_a_reason_is_passed_on_as_it_was_written(question: str, arguments: dict[str, Any]) -> None:
    assert asked(question)[0] == [arguments]


def test_a_reason_that_no_tool_takes_is_said_to_be_left_out() -> None:
    calls, text = asked("Restart web because it hangs")
    assert calls == [{"service": "web"}]
    assert "Left out of account: “because it hangs”" in text


@pytest.mark.parametrize(
    "question",
    [
        "Cancel order 7 because it is late, but only if it has not shipped",
        "Cancel order 7 because it is late unless Ida objects",
        "Cancel order 7 because order 8 is late",
        "Cancel order 7 because it is late and restart web",
        "Don't cancel order 7 because it is late",
        "Cancel order 7 because",
        "Cancel order 7 because it is late?",
        "Did I cancel order 7 because it was late?",
        "Cancel order 7 because it is late. No, wait.",
        "Should we cancel order 7 because it is late?",
        "Reject the claim because it came too late",
    ],
)
def test_what_is_more_than_a_reason_makes_it_no_order(question: str) -> None:
    assert asked(question)[0] == []
