"""The reason behind an order changes nothing of it: it is passed on where a tool takes one, and else said to be left
out. What could be a condition, a contrast or another order is no reason."""

from typing import Any, Literal

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
        ("Cancel order 7 because it is late. Thank you!", {"order_id": 7, "reason": "it is late"}),
        ("Hi! Can you cancel order 7 because of fraud for me? Thanks", {"order_id": 7, "reason": "fraud"}),
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


@tool(effect="write")
def return_order(order_id: int, reason: Literal["late", "other"] = "other") -> str:
    """Returns an order."""
    return f"order {order_id} returned"


@tool(effect="write")
def archive_order(order_id: int, reason_code: int = 0) -> str:
    """Archives an order."""
    return f"order {order_id} archived"


@pytest.mark.parametrize("verb", ["Return", "Archive"])
@pytest.mark.parametrize("which", ["order 7", "orders 7 and 8"])
def test_a_reason_that_is_no_choice_or_number_is_said_to_be_left_out(verb: str, which: str) -> None:
    """A tool that takes one of some reasons was given none, and nothing was said."""
    agent = Agent("offline", tools=[return_order, archive_order])
    result = agent.run_sync(f"{verb} {which} because it came too late")
    assert [call.arguments["order_id"] for call in result.tool_calls_made] == ([7] if which == "order 7" else [7, 8])
    assert result.text.count("Left out of account: “because it came too late”") == 1


def test_a_reason_is_that_of_each_of_several() -> None:
    """It was passed with none of them, and nothing was said."""
    calls, text = asked("Cancel orders 7 and 8 because they are late")
    assert calls == [{"order_id": each, "reason": "they are late"} for each in (7, 8)]
    assert "Left out" not in text


@pytest.mark.parametrize(
    "reason",
    [
        "the customer moved away",
        "it's broken",
        "they're late",
        "the printer is out of paper",
        "it is no longer needed",
        "it doesn't work",
        "Nordwind is bankrupt",
        "the reader lost it",
        "Ann Lee waits for it",
        "the delivery date is wrong",
        "the guests complained about the noise",
        "my plans changed",
        "I found a better price",
    ],
)
def test_a_plain_sentence_is_a_reason(reason: str) -> None:
    assert asked(f"Cancel order 7 because {reason}.")[0] == [{"order_id": 7, "reason": reason}]


@pytest.mark.parametrize(
    "question",
    [
        "Cancel order 7 because it is late, but only if it has not shipped",
        "Cancel order 7 because it is late unless Ida objects",
        "Cancel order 7 because order 8 is late",
        "Cancel order 7 because it is late and restart web",
        "Restart web because they complain and cancel order 8",
        "Restart web because they stop and then cancel order 8",
        "Restart web because they stop, cancel order 8",
        "Don't cancel order 7 because it is late",
        "Cancel order 7 because",
        "Cancel order 7 because it is late?",
        "Did I cancel order 7 because it was late?",
        "Cancel order 7 because it is late. No, wait.",
        "Should we cancel order 7 because it is late?",
        "Reject the claim because it came too late",
        "Cancel order 7 because it is late sounds wrong",
        "Cancel order 7 because it is late is what he said",
        "Cancel order 7 because it is late forget it",
        "Cancel order 7 because it is late provided that Ann agrees",
        "Cancel order 7 because it is late in case Ann agrees",
        "Cancel order 7 because it is late on Monday",
        "Cancel order 7 because it is late although paid",
        "Cancel order 7 because it is late I guess",
        "Cancel order 7 because it is late, just kidding",
        "Cancel order 7 because the customer moved away is not an option",
        "Cancel order 7 because the boiler hangs pending approval",
        "Cancel order 7 because of the rain makes no sense",
        "Cancel order 7 because it might be late",
        "Cancel order 7 because why not",
        "Cancel order 7 because I am joking",
        "Cancel order 7 just because it is late",
    ],
)
def test_what_is_more_than_a_reason_makes_it_no_order(question: str) -> None:
    assert asked(question)[0] == []
