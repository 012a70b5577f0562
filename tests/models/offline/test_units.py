"""Of two units the one at the number is what there is, and each is written as the tool lists it."""

import pytest

from treadle import Agent, tool

from .asked.judge import DECLINED

ASKED: list[tuple[float, str, str]] = []


@tool(effect="read")
def convert_units(value: float, from_unit: str, to_unit: str) -> float:
    """Convert a value between units: km, m, mile, kg, lb, celsius, fahrenheit."""
    ASKED.append((value, from_unit, to_unit))
    return 7.5


@tool(effect="read")
def unit_converter(quantity: float, source_unit: str, target_unit: str) -> float:
    """Converts a quantity.

    Args:
        quantity: how much.
        source_unit: the unit that it is in.
        target_unit: the unit that it is to be in.
    """
    ASKED.append((quantity, source_unit, target_unit))
    return 7.5


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Convert 5 km to miles", (5, "km", "mile")),
        ("How many miles are 10 km?", (10, "km", "mile")),
        ("How many m is 2 km?", (2, "km", "m")),
        ("What is 20 celsius in fahrenheit?", (20, "celsius", "fahrenheit")),
        ("Convert 70 kilograms to pounds", (70, "kg", "lb")),
        ("Convert 3 kg into lb.", (3, "kg", "lb")),
    ],
)
def test_units_are_written_as_the_tool_lists_them(question: str, asked: tuple[float, str, str]) -> None:
    ASKED.clear()
    text = Agent("offline", tools=[convert_units]).run_sync(question).text
    assert [asked] == ASKED
    assert "7.5" in text


@pytest.mark.parametrize("question", ["Convert 5 km", "Convert km to miles", "Convert 5 gallons to km"])
def test_a_unit_that_is_not_said_or_not_listed_is_not_made_up(question: str) -> None:
    ASKED.clear()
    text = Agent("offline", tools=[convert_units]).run_sync(question).text
    assert ASKED == []
    assert DECLINED.search(text)


def test_where_no_unit_is_listed_it_goes_as_it_was_written() -> None:
    ASKED.clear()
    Agent("offline", tools=[unit_converter]).run_sync("Convert 10 inches to cm")
    assert ASKED == [(10, "inches", "cm")]
