"""Of things that a question compares the figure of each is told, where it is plain which figure and of what."""

from typing import Any

import pytest

from treadle import Agent, RunResult, tool

WEATHER = {"Cairo": 31, "Paris": 18, "Oslo": 7}
STOCK = {"bolts": 40, "nuts": 25}


@tool(effect="read")
def get_weather(city: str) -> dict[str, Any]:
    """Get the current weather in a city: condition and temperature.

    Args:
        city: the city's name.
    """
    return {"city": city, "condition": "sunny", "temperature": WEATHER.get(city, 0)}


@tool(effect="read")
def check_stock(item: str) -> int:
    """Returns how many of an item are in stock.

    Args:
        item: the item's name.
    """
    return STOCK.get(item.lower(), STOCK.get(f"{item.lower()}s", 0))


@tool(effect="read")
def get_price(item: str) -> float:
    """Returns the price of one of an item.

    Args:
        item: the item's name.
    """
    return {"bolt": 0.25, "nut": 0.5}.get(item.lower().removesuffix("s"), 0.0)


@tool(effect="read")
def get_employee(name: str) -> dict[str, Any]:
    """Looks up an employee: salary and manager.

    Args:
        name: the employee's full name.
    """
    return {"name": name, "salary": 52000 if name == "Anna Berg" else 64000, "manager": "Carl Dorn"}


@tool(effect="read")
def patient(id: int) -> dict:  # type: ignore[type-arg]
    """Shows a patient's record.

    Args:
        id: the patient's number.
    """
    return {"id": id, "name": "Eva Roth", "allergies": ["nuts"], "insurance": {"name": "AOK", "number": "X99"}}


def asked(question: str) -> RunResult:
    return Agent("offline", tools=[get_weather, check_stock, get_price, get_employee, patient]).run_sync(question)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Is it warmer in Cairo than in Paris?", ["31", "18"]),
        ("Is Oslo colder than Cairo?", ["7", "31"]),
        ("Which of Oslo, Paris and Cairo is the warmest?", ["7", "18", "31"]),
        ("Which is cheaper, a bolt or a nut?", ["0.25", "0.5"]),
        ("How much cheaper is a bolt than a nut?", ["0.25", "0.5"]),
        ("Is a nut more expensive than a bolt?", ["0.5", "0.25"]),
        ("Does a nut cost more than a bolt?", ["0.5", "0.25"]),
        ("Do we have more bolts than nuts?", ["40", "25"]),
        ("How many more bolts than nuts do we have?", ["40", "25"]),
        ("Are there fewer nuts than bolts?", ["25", "40"]),
        ("How much more does Anna Berg earn than Mei Lin?", ["52000", "64000"]),
        ("Who earns more, Anna Berg or Mei Lin?", ["52000", "64000"]),
        ("What do we have more of, bolts or nuts?", ["40", "25"]),
        ("Does a bolt have more stock than a nut?", ["40", "25"]),
    ],
)
def test_the_figure_of_each_is_told(question: str, told: list[str]) -> None:
    text = asked(question).text
    assert text.startswith("I read that as: “")
    assert all(figure in text for figure in told)


@pytest.mark.parametrize(
    "question",
    [
        "Is Oslo warmer than last year?",
        "Is Oslo warmer than usual?",
        "Is it warmer in Cairo than in Paris tomorrow?",
        "Is Oslo nicer than Paris?",
        "Is Oslo not warmer than Paris?",
        "Do we have more bolts than needed?",
        "Is a bolt cheaper than before?",
        "Is a bolt twice as expensive as a nut?",
        "Does Anna Berg earn more than average?",
        "Does Anna Berg earn more than her manager?",
        "Will Oslo be warmer than Paris?",
        "Is the forecast for Oslo warmer than for Paris?",
        "Is the cheapest bolt cheaper than the nut?",
        "Do we have more bolts than nuts and screws together?",
        "Did we have more bolts than nuts?",
        "Do we need more bolts than nuts?",
    ],
)
def test_what_is_no_thing_or_another_figure_is_not_compared(question: str) -> None:
    text = asked(question).text
    assert "I cannot" in text
    assert "I read that as" not in text


def test_what_only_says_which_of_a_thing_are_meant_is_no_name_of_one() -> None:
    @tool(effect="read")
    def car_park(name: str) -> dict[str, Any]:
        """Tells how many spaces of a car park are free, and what an hour costs.

        Args:
            name: the car park's name.
        """
        return {"name": name, "free": 5, "spaces": 200}

    result = Agent("offline", tools=[car_park]).run_sync("How many free spaces are there in total?")
    assert not result.tool_calls_made
    assert "5" not in result.text


def test_the_name_of_a_thing_is_not_that_of_what_belongs_to_it() -> None:
    assert "AOK" not in asked("What is the name of patient 12?").text


def test_a_number_that_is_of_what_belongs_to_a_thing_says_so() -> None:
    text = asked("What is the number of patient 12?").text
    assert "insurance number X99" in text
    assert "Eva Roth" in text


def test_a_list_in_the_result_may_be_what_is_asked_for() -> None:
    assert "nuts" in asked("What are the allergies of patient 12?").text
