""" "When did Cleo join?" is told by the day in `joined`; who joined whom, or what else one did, is not."""

from typing import Any

import pytest

from treadle import Agent


def members() -> list[dict[str, Any]]:
    """All members."""
    return [
        {"name": "Ada", "plan": "gold", "joined": "2023-04-01", "paid": True, "visits": 3},
        {"name": "Cleo", "plan": "gold", "joined": "2022-11-30", "paid": True, "visits": 4},
    ]


def asked(question: str) -> str:
    return Agent("offline", tools=[members]).run_sync(question).text


@pytest.mark.parametrize(("name", "day"), [("Ada", "2023-04-01"), ("Cleo", "2022-11-30")])
def test_the_day_of_a_deed_is_told(name: str, day: str) -> None:
    assert f"{name}: joined {day}" in asked(f"When did {name} join?")


@pytest.mark.parametrize(
    "question",
    [
        "When did Cleo pay?",
        "When did Cleo visit?",
        "When did Cleo not join?",
        "When did Cleo join Ada?",
        "When did we join Cleo?",
        "When did Cleo join the band?",
        "When did Cleo rejoin?",
        "When did Cleo's brother join?",
        "Why did Cleo join?",
    ],
)
def test_no_other_deed_is(question: str) -> None:
    assert "2022" not in asked(question)
