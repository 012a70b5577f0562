"""What one tool offers to choose from may be told to another for what is called the same; a room, or a building, is
called by a plain word."""

from typing import Any

import pytest

from treadle import Agent, tool


@tool(effect="read")
def room_climate(room: str) -> dict[str, Any]:
    """Temperature and humidity of a room."""
    return {"celsius": 17.0, "humidity_percent": 48}


@tool(effect="idempotent")
def dim(room: str, percent: int) -> str:
    """Dims the lamps of a room.

    Args:
        room: "kitchen", "studio" or "hall".
        percent: 0 to 100.
    """
    return "dimmed"


@tool(effect="read")
def weather(city: str) -> dict[str, Any]:
    """Temperature and humidity of a city."""
    return {"celsius": 17.0, "humidity_percent": 48}


@pytest.mark.parametrize("room", ["hall", "attic"])
@pytest.mark.parametrize("lead", ["in the", "of the", "for the"])
def test_a_room_is_asked_about_also_where_another_tool_offers_rooms(lead: str, room: str) -> None:
    result = Agent("offline", tools=[room_climate, dim]).run_sync(f"What is the humidity {lead} {room}?")
    assert [(call.name, call.arguments) for call in result.tool_calls_made] == [("room_climate", {"room": room})]


def test_what_is_offered_for_another_kind_of_thing_is_no_name_here() -> None:
    result = Agent("offline", tools=[weather, dim]).run_sync("What is the humidity in the hall?")
    assert not result.tool_calls_made


def test_no_city_is_called_by_a_plain_word() -> None:
    result = Agent("offline", tools=[weather]).run_sync("What is the humidity of the oven?")
    assert not result.tool_calls_made


@pytest.mark.parametrize("lead", ["in the", "of the"])
def test_rooms_are_asked_about_together(lead: str) -> None:
    """All were refused, as a plain word for a place has to end the question."""
    result = Agent("offline", tools=[room_climate]).run_sync(
        f"What is the humidity {lead} hall, the attic and the bar?"
    )
    assert [call.arguments["room"] for call in result.tool_calls_made] == ["hall", "attic", "bar"]


def test_the_meantime_is_no_room() -> None:
    result = Agent("offline", tools=[room_climate]).run_sync("What is the humidity in the meantime?")
    assert not result.tool_calls_made
