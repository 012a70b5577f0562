"""Questions over toolboxes that nobody tuned the planner for: no step beyond the answer, no figure for two things."""

from typing import Any, Literal

import pytest

from treadle import Agent, Conversation, RunResult, tool

MACHINES = {1: ("washer", 12), 2: ("washer", 0), 3: ("dryer", 0), 4: ("dryer", 7)}
RATINGS = {"Ana Petrova": 2110, "Bo Larsen": 1845}
SALARIES = {"Ulla": 5200}


@tool(effect="read")
def minutes_left(machine: int) -> int:
    """Minutes until a machine is done."""
    return MACHINES[machine][1]


@tool(effect="read")
def free_machines(kind: Literal["washer", "dryer"]) -> list[int]:
    """Numbers of the machines of a kind that are free now."""
    return [number for number, (of, left) in MACHINES.items() if of == kind and not left]


@tool(effect="read")
def get_rating(player: str) -> int:
    """Gets the current rating of a club player."""
    return RATINGS[player]


@tool(effect="read")
def expected_score(rating: int, opponent_rating: int) -> float:
    """Computes the expected score of a player against an opponent from both ratings."""
    return round(1 / (1 + 10 ** ((opponent_rating - rating) / 400)), 3)


@tool(effect="read")
def gross_salary(employee: str) -> int:
    """Gross monthly salary of an employee in euros."""
    return SALARIES[employee]


@tool(effect="read")
def income_tax(gross: float) -> float:
    """Income tax in euros on a gross monthly salary."""
    return gross * 0.3


@tool(effect="read")
def hours_worked(employee: str, week: int) -> float:
    """Hours that an employee worked in a calendar week."""
    return 40.0


@tool(effect="read")
def upcoming_concerts() -> list[dict[str, Any]]:
    """The upcoming concerts with venue and seats left."""
    return [
        {"concert": "C1", "venue": "Town Hall", "seats_left": 120},
        {"concert": "C2", "venue": "Dome", "seats_left": 0},
    ]


@tool(effect="read")
def list_members() -> list[dict[str, Any]]:
    """Lists the members of the club, and whether they are active."""
    return [{"name": "Ana", "active": True}, {"name": "Bo", "active": False}]


@tool(effect="read")
def dry_zones() -> list[int]:
    """Numbers of the zones that are dry."""
    return [1]


@tool(effect="write")
def water_zone(zone: int, minutes: int) -> str:
    """Waters a zone for a number of minutes."""
    return f"watering zone {zone} for {minutes} minutes"


@tool(effect="write")
def stop_watering(zone: int) -> str:
    """Stops the watering of a zone."""
    return f"stopped zone {zone}"


def asked(*questions: str, tools: list[Any]) -> RunResult:
    agent, conversation = Agent("offline", tools=tools), Conversation()
    return [agent.run_sync(question, conversation=conversation) for question in questions][-1]


def calls(result: RunResult) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in result.tool_calls_made]


@pytest.mark.parametrize(
    ("question", "kind", "said"),
    [
        ("Which washers are free?", "washer", "- 2"),
        ("Which dryers are free now?", "dryer", "- 3"),
        ("How many dryers are free?", "dryer", "1 listed"),
    ],
)
def test_a_list_that_answers_is_not_taken_one_step_further(question: str, kind: str, said: str) -> None:
    result = asked(question, tools=[minutes_left, free_machines])
    assert calls(result) == [("free_machines", {"kind": kind})]
    assert said in result.text
    assert "minutes" not in result.text


def test_a_step_that_is_asked_for_is_still_made() -> None:
    result = asked("How many minutes are left on the free washers?", tools=[minutes_left, free_machines])
    assert [name for name, _ in calls(result)] == ["free_machines", "minutes_left"]


@pytest.mark.parametrize("question", ["Are both dryers free?", "Are all dryers free?"])
def test_a_list_of_some_does_not_tell_whether_it_is_so_of_all(question: str) -> None:
    result = asked(question, tools=[minutes_left, free_machines])
    assert "I cannot answer that" in result.text
    assert "- 3" not in result.text


@pytest.mark.parametrize(
    "question",
    [
        "What is the expected score of Ana Petrova?",
        "Expected score of Ana Petrova against Bo Larsen",
        "What score can Ana Petrova expect against Bo Larsen?",
    ],
)
def test_one_figure_is_not_taken_for_two_things(question: str) -> None:
    result = asked(question, tools=[get_rating, expected_score])
    assert "expected_score" not in [name for name, _ in calls(result)]
    said = ("cannot be the rating and the opponent rating at once", "I do not know what to do with")
    assert any(each in result.text for each in said)


def test_what_went_into_an_earlier_step_asks_for_no_step_more() -> None:
    result = asked("How much tax does Ulla pay?", tools=[gross_salary, income_tax, hours_worked])
    assert calls(result) == [("gross_salary", {"employee": "Ulla"}), ("income_tax", {"gross": 5200})]
    assert "1560" in result.text


@pytest.mark.parametrize(
    ("question", "listing"),
    [
        ("Which concerts have seats left?", upcoming_concerts),
        ("How many concerts have seats left?", upcoming_concerts),
        ("Are there concerts with seats left?", upcoming_concerts),
    ],
)
def test_a_list_of_all_is_not_told_of_those_that_have_something(question: str, listing: Any) -> None:
    result = asked(question, tools=[listing])
    assert "I cannot answer that" in result.text
    assert not any(name in result.text for name in ("C2", "Bo", "listed"))


@pytest.mark.parametrize("question", ["Which members are active?", "How many members are active?"])
def test_those_of_which_a_list_says_that_it_is_so_are_told(question: str) -> None:
    text = asked(question, tools=[list_members]).text
    assert text.startswith("1 of the 2")
    assert "Ana" in text
    assert "Bo" not in text


@pytest.mark.parametrize(("question", "listing"), [("Which concerts are there?", upcoming_concerts)])
def test_all_of_a_list_is_still_told(question: str, listing: Any) -> None:
    assert "C2" in asked(question, tools=[listing]).text


@pytest.mark.parametrize(
    "questions",
    [("Stop the watering.",), ("Water for 10 minutes.",), ("Water zone 2 for 15 minutes", "stop it")],
)
def test_the_only_one_of_a_list_that_was_not_spoken_of_is_changed_in_nothing(questions: tuple[str, ...]) -> None:
    result = asked(*questions, tools=[dry_zones, water_zone, stop_watering])
    assert not {"water_zone", "stop_watering"} & {name for name, _ in calls(result)}


def test_the_only_one_of_a_list_that_was_spoken_of_is_changed() -> None:
    result = asked("Water the dry zones for 10 minutes.", tools=[dry_zones, water_zone, stop_watering])
    assert calls(result)[-1] == ("water_zone", {"zone": 1, "minutes": 10})


@pytest.mark.parametrize("zones", [[], [1, 2, 3], [{"zone": 4, "moisture": 20}, {"zone": 5, "moisture": 21}]])
@pytest.mark.parametrize("question", ["Water the dry zones for 10 minutes.", "Water for 10 minutes."])
def test_how_many_are_on_a_list_is_none_of_those_on_it(zones: list[Any], question: str) -> None:
    @tool(effect="read")
    def find_zones() -> dict[str, Any]:
        """Numbers of the zones that are dry."""
        return {"zones": zones, "count": len(zones)}

    result = asked(question, tools=[find_zones, water_zone])
    assert "water_zone" not in [name for name, _ in calls(result)]
