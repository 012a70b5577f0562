"""What a tool tells of each thing on a list, of a change or of a switch is told of nothing else."""

from typing import Any, Literal

import pytest

from treadle import Agent, Conversation, RunResult, tool

from .asked.judge import DECLINED


def asked(question: str, *tools: Any) -> RunResult:
    return Agent("offline", tools=list(tools)).run_sync(question)


def calls(result: RunResult) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in result.tool_calls_made]


@tool(effect="read")
def guests() -> list[dict[str, Any]]:
    """Lists the wedding guests with diet, table, and whether they bring somebody."""
    return [{"guest": "May", "plus_one": True, "table": 3}, {"guest": "Ben", "plus_one": False, "table": 3}]


@tool(effect="read")
def standings(league: Literal["A", "B"]) -> list[dict[str, Any]]:
    """Shows the table of a league: team, matches played, won, drawn and lost."""
    return [{"team": "Rooks", "won": 4, "drawn": 1, "lost": 0}, {"team": "Pawns", "won": 1, "drawn": 1, "lost": 3}]


@tool(effect="read")
def alarms() -> list[dict[str, Any]]:
    """Lists the alarms with time and whether they are on."""
    return [{"time": "07:30", "on": True}, {"time": "09:00", "on": False}]


@tool(effect="read")
def quote(symbol: str) -> dict[str, Any]:
    """Tells a share's price and its change since yesterday in percent.

    Args:
        symbol: the share's symbol, such as "ACME".
    """
    return {"symbol": symbol, "price": "101.20", "change_percent": "-2.4"}


@tool
def print_file(file: str, copies: int = 1, colour: bool = True) -> str:
    """Prints a file.

    Args:
        file: its name, such as "plan.pdf".
        copies: how many copies.
        colour: in colour rather than black and white.
    """
    return f"{file} x{copies}"


@tool
def change_price(name: str, price: float) -> str:
    """Changes the price of an article.

    Args:
        name: the article's name, such as "mug".
        price: the new price in euros.
    """
    return f"{name}: {price}"


@pytest.mark.parametrize(
    ("question", "tools"),
    [
        ("How many guests bring somebody?", (guests,)),
        ("How many matches were drawn in league A?", (standings,)),
        ("Which teams in league A have lost?", (standings,)),
    ],
)
def test_what_is_told_of_each_is_not_told_of_all(question: str, tools: tuple[Any, ...]) -> None:
    assert "I cannot answer that" in asked(question, *tools).text


def test_what_is_on_is_told_of_those_that_are() -> None:
    text = asked("Which alarms are on?", alarms).text
    assert "07:30" in text
    assert "09:00" not in text


@pytest.mark.parametrize("question", ["Which alarms are there?", "How many alarms do we have?", "List the alarms."])
def test_all_alarms_are_told(question: str) -> None:
    assert "09:00" in asked(question, alarms).text


def test_a_change_since_yesterday_is_no_price_of_yesterday() -> None:
    assert "101.20" not in asked("What was the price of ACME yesterday?", quote).text
    assert "101.20" in asked("What is the price of ACME?", quote).text


@pytest.mark.parametrize(
    "question",
    [
        "Print plan.pdf in black and white.",
        "Print plan.pdf on A3.",
        "Did you print plan.pdf?",
        "Change the price of the mug by 1 euro.",
    ],
)
def test_nothing_is_changed_where_a_word_is_left_over(question: str) -> None:
    assert calls(asked(question, print_file, change_price)) == []


@pytest.mark.parametrize(
    ("question", "call"),
    [
        ("Print 3 copies of plan.pdf.", ("print_file", {"copies": 3, "file": "plan.pdf"})),
        ("Change the price of the mug to 10 euros.", ("change_price", {"name": "mug", "price": 10})),
    ],
)
def test_what_is_said_in_full_is_changed(question: str, call: tuple[str, Any]) -> None:
    assert calls(asked(question, print_file, change_price)) == [call]


@tool(effect="read")
def budget(department: str) -> dict[str, Any]:
    """Tells the budget of a department, what is spent, and what is left.

    Args:
        department: such as "Marketing".
    """
    return {"department": department, "budget": 500, "spent": 540, "left": -40}


@tool(effect="read")
def postage(country: str, grams: int) -> dict[str, Any]:
    """Tells the postage of a parcel.

    Args:
        country: where the parcel goes.
        grams: its weight in grams.
    """
    return {"postage": 7.9}


@tool(effect="read")
def lessons(form: str, weekday: Literal["Monday", "Tuesday"]) -> list[dict[str, Any]]:
    """Lists the lessons of a form on a day of the week.

    Args:
        form: such as "7b".
        weekday: the day of the week.
    """
    return [{"hour": 1, "subject": "Maths"}, {"hour": 2, "subject": "Art"}]


@tool(effect="read")
def badge(badge_id: str) -> dict[str, Any]:
    """Shows whose badge it is, whether it is active and which doors it opens.

    Args:
        badge_id: such as "B-77".
    """
    return {"badge_id": badge_id, "holder": "Nils Ek", "active": False, "doors": ["main", "lab"]}


def test_the_figure_that_is_named_is_held_against_the_number() -> None:
    assert asked("Is the budget of Marketing above 400?", budget).text.startswith("Yes. Marketing: budget 500")


def test_where_something_goes_is_not_where_it_comes_from() -> None:
    assert calls(asked("What is the postage from Spain for 500 grams?", postage)) == []
    assert "7.9" in asked("What is the postage to Spain for 500 grams?", postage).text


@pytest.mark.parametrize("question", ["Which form has Maths on Monday?", "Which lessons does Ms Frey give on Monday?"])
def test_what_is_called_by_a_number_is_no_other_name(question: str) -> None:
    assert calls(asked(question, lessons)) == []


def test_a_list_beside_what_was_asked_is_not_told_alone() -> None:
    assert "Nils Ek" in asked("Whose badge is B-77?", badge).text
    assert "Nils Ek" not in asked("Which doors does badge B-77 open?", badge).text


@tool(effect="read")
def contracts(signed_after: str | None = None) -> list[dict[str, Any]]:
    """Lists contracts with day of signature and day on which they expire.

    Args:
        signed_after: only those signed after this day, such as "2025-01-01".
    """
    return [{"contract": "K-2", "signed": "2025-05-05", "expires": "2026-05-05"}]


@tool
def terminate(contract: str, day: str) -> str:
    """Terminates a contract.

    Args:
        contract: its number, such as "K-1".
        day: the last day, such as "2026-12-31".
    """
    return f"{contract} ends {day}"


@tool
def book_court(member: str, court: int, start: str) -> str:
    """Books a tennis court for a member for one hour.

    Args:
        member: the member's name.
        court: the court's number.
        start: such as "18:00".
    """
    return f"court {court} at {start} for {member}"


def test_what_expires_after_a_day_is_not_what_is_signed_after_it() -> None:
    assert calls(asked("Which contracts expire after 2025-01-01?", contracts)) == [("contracts", {})]
    assert calls(asked("Which contracts were signed after 2025-01-01?", contracts)) == [
        ("contracts", {"signed_after": "2025-01-01"})
    ]


@pytest.mark.parametrize(
    "question", ["Terminate the contract with Orbis on 2026-12-31.", "Book court 3 for my brother at 18:00."]
)
def test_a_command_takes_no_word_for_a_number_or_a_name(question: str) -> None:
    assert calls(asked(question, terminate, book_court)) == []


def test_a_time_goes_where_the_example_is_one() -> None:
    assert calls(asked("Book court 3 for Ola at 6pm.", book_court)) == [
        ("book_court", {"member": "Ola", "court": 3, "start": "18:00"})
    ]


@tool(effect="read")
def find_tools() -> list[dict[str, Any]]:
    """Finds tools that can be borrowed."""
    return [{"tool": "D1", "deposit": 20}, {"tool": "D2", "deposit": 25}]


@tool
def borrow_tool(tool: str, days: int) -> str:
    """Borrows a tool.

    Args:
        tool: its code, such as "D1".
        days: for how many days.
    """
    return f"{tool} for {days} days"


@tool(effect="read")
def city(name: str) -> dict[str, Any]:
    """Tells a city's population, mayor and twin towns.

    Args:
        name: the city's name, such as "Graz".
    """
    return {"name": name, "population": 291000, "mayor": "Ida Kern", "twin_towns": ["Trieste", "Pecs"]}


@tool(effect="read")
def prescriptions(patient: str) -> list[dict[str, Any]]:
    """Lists a patient's prescriptions.

    Args:
        patient: the patient's name.
    """
    return [{"drug": "Metol"}]


@tool
def refill(patient: str, drug: str) -> str:
    """Refills a prescription of a patient.

    Args:
        patient: the patient's name.
        drug: which drug.
    """
    return f"{drug} for {patient}"


@tool
def mark_done(task: str) -> str:
    """Marks a chore as done.

    Args:
        task: which chore.
    """
    return f"{task} done"


@tool
def give_chore(task: str, person: str) -> str:
    """Gives a chore to a person.

    Args:
        task: which chore.
        person: who does it from now on.
    """
    return f"{task} -> {person}"


def test_what_can_be_done_is_not_what_is_done() -> None:
    assert "D1" not in asked("Which tools are borrowed?", find_tools).text
    assert "D1" in asked("Which tools can be borrowed?", find_tools).text


@pytest.mark.parametrize("question", ["Which city has Pecs as a twin town?", "Of which city is Ida Kern the mayor?"])
def test_what_is_asked_for_is_not_what_was_said(question: str) -> None:
    assert DECLINED.search(asked(question, city).text)


@pytest.mark.parametrize("correction", ["Actually, 5 days.", "5 days.", "No, for 5 days.", "I meant 5 days."])
def test_what_may_correct_a_change_makes_no_other(correction: str) -> None:
    agent, conversation = Agent("offline", tools=[borrow_tool]), Conversation()
    first = agent.run_sync("Borrow D1 for 3 days.", conversation=conversation)
    assert calls(first) == [("borrow_tool", {"tool": "D1", "days": 3})]
    assert calls(agent.run_sync(correction, conversation=conversation)) == []


def test_what_is_added_to_a_change_is_made() -> None:
    agent, conversation = Agent("offline", tools=[borrow_tool]), Conversation()
    agent.run_sync("Borrow D1 for 3 days.", conversation=conversation)
    added = agent.run_sync("And D2", conversation=conversation)
    assert calls(added) == [("borrow_tool", {"tool": "D2", "days": 3})]


def test_a_command_is_no_question_to_a_tool_that_lists() -> None:
    assert calls(asked("Refill all prescriptions of Tom Hale.", prescriptions, refill)) == []
    polite = "Hi! Could you please refill Metol for Tom Hale? Thanks a lot."
    assert calls(asked(polite, prescriptions, refill)) == [("refill", {"patient": "Tom Hale", "drug": "Metol"})]


@pytest.mark.parametrize("question", ["Mark Mo's chores as done.", "Give the bins back to Lu."])
def test_whose_it_is_and_back_are_no_names(question: str) -> None:
    assert calls(asked(question, mark_done, give_chore)) == []
