"""What a change is made to, and how much of it, is said by the question, or nothing is changed."""

from typing import Any, Literal

import pytest

from treadle import Agent, RunResult, tool

LEFT = {"rye": 6, "spelt": 0}
ROOMS = [{"room": 101, "occupied": False}, {"room": 102, "occupied": True}]


@tool(effect="read")
def loaves_left(bread: Literal["rye", "spelt"]) -> int:
    """How many loaves of a bread are left."""
    return LEFT[bread]


@tool(effect="write")
def bake(bread: Literal["rye", "spelt"], loaves: int) -> str:
    """Bakes loaves of a bread."""
    return f"baking {loaves} {bread}"


@tool(effect="write")
def add_song(playlist: str, song: str) -> str:
    """Adds a song to a playlist."""
    return f"added {song} to {playlist}"


@tool(effect="write")
def discard_sample(sample_id: str) -> str:
    """Discards a sample."""
    return f"discarded {sample_id}"


@tool(effect="read")
def search_rooms() -> dict[str, Any]:
    """Searches rooms; returns them with whether they are occupied, and the number found."""
    return {"rooms": ROOMS, "found": len(ROOMS)}


@tool(effect="read")
def distance_km(origin: str, destination: str) -> float:
    """Distance in kilometres from an origin to a destination."""
    return 18.0


@tool(effect="read")
def taxi_fare(kilometres: float, night: bool = False) -> float:
    """Taxi fare in euros for a distance."""
    return 4 + (2.6 if night else 2.0) * kilometres


@tool(effect="read")
def free_taxis() -> list[int]:
    """Numbers of the taxis that are free."""
    return [14]


def asked(question: str, *tools: Any) -> RunResult:
    return Agent("offline", tools=list(tools)).run_sync(question)


def calls(result: RunResult) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in result.tool_calls_made]


@pytest.mark.parametrize(
    ("question", "tools"),
    [
        ("Bake rye.", (loaves_left, bake)),
        ("Add Nova's songs to Gym.", (add_song,)),
        ("Discard the contaminated sample.", (discard_sample,)),
    ],
)
def test_what_was_not_said_is_changed_in_nothing(question: str, tools: tuple[Any, ...]) -> None:
    made = {name for name, _ in calls(asked(question, *tools))}
    assert not made & {"bake", "add_song", "discard_sample"}


@pytest.mark.parametrize(
    ("question", "tools", "call"),
    [
        ("Bake 20 loaves of rye.", (loaves_left, bake), ("bake", {"bread": "rye", "loaves": 20})),
        ("Discard sample S-2.", (discard_sample,), ("discard_sample", {"sample_id": "S-2"})),
    ],
)
def test_what_was_said_is_changed(question: str, tools: tuple[Any, ...], call: tuple[str, Any]) -> None:
    assert calls(asked(question, *tools)) == [call]


@pytest.mark.parametrize("question", ["Which rooms are occupied?", "How many rooms are occupied?"])
def test_a_list_of_all_with_its_length_is_not_told_of_some(question: str) -> None:
    text = asked(question, search_rooms).text
    assert "102" in text
    assert "101" not in text


def test_how_far_asks_for_no_fare() -> None:
    result = asked("How far is it from the airport to the station?", distance_km, taxi_fare, free_taxis)
    assert [name for name, _ in calls(result)] == ["distance_km"]
    assert "taxi fare" not in result.text
