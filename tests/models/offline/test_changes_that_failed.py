"""A change that failed is made under no other name, and a name is passed with the small word that it opens with."""

from typing import Any

import pytest

from treadle import Agent, ToolError, tool

CALLED: list[str] = []
_FAILURES = {
    "Cats": TimeoutError("timed out"),
    "Weber": ValueError("no such player"),
    "Webber": ToolError("no player Webber", argument="name", given="Webber", nearest="Weber", available=["Weber"]),
}


@tool(effect="write")
def cancel_show(show: str) -> str:
    """Cancel a show."""
    CALLED.append(show)
    if show in _FAILURES:
        raise _FAILURES[show]
    return "cancelled"


@tool
def fire_player(name: str) -> str:
    """Fire a player."""
    CALLED.append(name)
    if name in _FAILURES:
        raise _FAILURES[name]
    return "fired"


@tool
def list_players() -> list[dict[str, Any]]:
    """List the players."""
    return [{"name": "Jonas Weber", "instrument": "cello"}, {"name": "Yuki Mori", "instrument": "oboe"}]


@pytest.mark.parametrize(
    ("order", "called"),
    [
        ("Cancel Cats.", ["Cats"]),
        ("Fire Weber.", ["Weber"]),
        ("Fire Webber.", ["Webber"]),
        ("Cancel The Tempest.", ["The Tempest"]),
        ("Please cancel A Star.", []),
    ],
)
def test_a_change_is_made_to_what_was_ordered_only(order: str, called: list[str]) -> None:
    CALLED.clear()
    Agent("offline", tools=[cancel_show, fire_player, list_players]).run_sync(order)
    assert called == CALLED


@pytest.mark.parametrize("order", ["Cancel a taxi.", "Please cancel a taxi."])
def test_one_of_a_kind_is_no_name(order: str) -> None:
    """Regression: a show called "taxi" was cancelled, where somebody had a taxi in mind."""
    CALLED.clear()
    Agent("offline", tools=[cancel_show, fire_player, list_players]).run_sync(order)
    assert CALLED == []


@tool(effect="read")
def get_account_id(customer: str) -> dict[str, str]:
    """Tells the account ID of a customer."""
    return {"account_id": "A-17"}


@tool(effect="write")
def close_account(account_id: str) -> str:
    """Closes an account by its account ID."""
    CALLED.append(account_id)
    return "closed"


def test_an_order_that_is_left_because_the_one_before_it_failed_is_told() -> None:
    """Regression: the second of two orders was left without a word."""
    CALLED.clear()
    tools = [cancel_show, get_account_id, close_account]
    result = Agent("offline", tools=tools).run_sync("Cancel Cats and close the account of Ann Lee")
    assert CALLED == ["Cats"], result.text
    assert "timed out" in result.text
    assert "did not call close_account" in result.text
