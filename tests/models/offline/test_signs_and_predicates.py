"""Names that only a sign tells apart, verbs that say what some are, and questions with many blanks."""

from typing import Any, Literal

import pytest

from treadle import Agent, Conversation, tool

STORE = {"A+": 42, "A-": 9, "AB+": 18, "AB-": 1, "O+": 55, "O-": 12}


@tool(effect="read")
def units_in_store(group: Literal["A+", "A-", "AB+", "AB-", "O+", "O-"]) -> int:
    """How many units of blood of a group are in store."""
    return STORE[group]


@tool(effect="read")
def units_of(group: str) -> int:
    """How many units of blood of a group are in store."""
    return STORE[group]


@tool(effect="write")
def discard_units(group: Literal["A+", "A-", "O+"]) -> str:
    """Discards the units of a group."""
    return "discarded"


@tool(effect="write")
def uninstall(language: Literal["C", "C++", "C#", "F#"]) -> str:
    """Uninstalls a language."""
    return "gone"


@tool(effect="write")
def set_plan(customer: str, plan: Literal["Basic", "Gold", "Gold+", "A*", "A", "B"]) -> str:
    """Sets the plan of a customer."""
    return "set"


@tool(effect="read")
def flats() -> list[dict[str, Any]]:
    """Flats of the house."""
    return [{"flat": "1A", "tenant": "Kowalski"}, {"flat": "2A", "tenant": None}]


@tool(effect="read")
def guests() -> list[str]:
    """Guests of the hotel."""
    return ["Ann", "Bob"]


@pytest.mark.parametrize("group", sorted(STORE))
@pytest.mark.parametrize("asked", [units_in_store, units_of])
def test_a_sign_tells_names_apart(group: str, asked: Any) -> None:
    result = Agent("offline", tools=[asked]).run_sync(f"How many units of {group} are in store?")
    assert [call.arguments for call in result.tool_calls_made] == [{"group": group}]
    assert f"({group}): {STORE[group]}" in result.text


def test_yes_and_no_are_told_of_the_sign_that_was_asked() -> None:
    result = Agent("offline", tools=[units_in_store]).run_sync("Do we have at least ten units of AB+?")
    assert result.text.startswith("Yes. AB+: ")


@pytest.mark.parametrize("question", ["How many units of AB are in store?", "How many units of B- are in store?"])
def test_a_name_without_its_sign_or_with_one_that_is_not_offered_is_none(question: str) -> None:
    assert not Agent("offline", tools=[units_in_store]).run_sync(question).tool_calls_made


def test_nothing_is_changed_for_a_sign_that_is_not_offered() -> None:
    assert not Agent("offline", tools=[discard_units]).run_sync("Discard the units of O-").tool_calls_made


@pytest.mark.parametrize(
    ("written", "meant"), [("C", "C"), ("C++", "C++"), ("c++", "C++"), ("C#", "C#"), ("c#", "C#"), ("F#", "F#")]
)
def test_what_is_changed_is_what_the_sign_says(written: str, meant: str) -> None:
    result = Agent("offline", tools=[uninstall]).run_sync(f"Uninstall {written}")
    assert [call.arguments for call in result.tool_calls_made] == [{"language": meant}]


@pytest.mark.parametrize("plan", ["Basic", "Gold", "Gold+", "A*", "A", "B"])
def test_a_plan_with_a_sign_is_not_the_one_without(plan: str) -> None:
    result = Agent("offline", tools=[set_plan]).run_sync(f"Set the plan of Ann to {plan}")
    assert [call.arguments for call in result.tool_calls_made] == [{"customer": "Ann", "plan": plan}]


@pytest.mark.parametrize("plan", ["Basic+", "B-", "b-", "B−", "B*", "B +", "B -", "B plus", "gold#"])
def test_a_sign_that_no_name_has_is_not_left_out(plan: str) -> None:
    assert not Agent("offline", tools=[set_plan]).run_sync(f"Set the plan of Ann to {plan}").tool_calls_made


@pytest.mark.parametrize("language", ["C+", "c+", "C-", "F", "F+"])
def test_nothing_is_uninstalled_by_half_a_name(language: str) -> None:
    result = Agent("offline", tools=[uninstall]).run_sync(f"Uninstall {language}")
    assert not result.tool_calls_made


@pytest.mark.parametrize(
    "question",
    [
        "How many flats are let?",
        "Which flats are to let?",
        "How many flats are still let now?",
        "How many guests work?",
        "How many guests are going?",
        "Which guests are asked?",
        "Which guests stand?",
    ],
)
def test_what_only_some_are_or_do_is_not_told_of_all(question: str) -> None:
    result = Agent("offline", tools=[flats, guests]).run_sync(question)
    assert "I cannot" in result.text
    assert "listed" not in result.text


@pytest.mark.parametrize(
    "question", ["Let me know how many flats there are", "How many flats do we own?", "How many flats are there now?"]
)
def test_the_same_verbs_change_nothing_elsewhere(question: str) -> None:
    assert "2 listed" in Agent("offline", tools=[flats]).run_sync(question).text


@pytest.mark.parametrize("question", ["How many flats{}are there?", "{}How many flats are there?", "{} and what?"])
def test_blanks_change_no_answer(question: str) -> None:
    agent = Agent("offline", tools=[flats])
    few, many = agent.run_sync(question.format(" " * 3)), agent.run_sync(question.format(" " * 900))
    assert few.text == many.text


@tool(effect="read")
def list_plots(paid: bool | None = None) -> list[dict[str, Any]]:
    """Plots of the garden, all or those that are paid or not."""
    rows = [{"plot": 1, "paid": True}, {"plot": 2, "paid": False}, {"plot": 4, "paid": False}]
    return [row for row in rows if paid is None or row["paid"] == paid]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("Which plots have not paid?", "Which of them are paid?"),
        ("Which plots are unpaid?", "How many of those are paid?"),
        ("Which plots are paid?", "And which of them are not paid?"),
        ("Which plots are paid?", "And which of them are unpaid?"),
    ],
)
def test_of_those_that_have_not_none_is_told_that_has(first: str, then: str) -> None:
    agent, talk = Agent("offline", tools=[list_plots]), Conversation()
    assert "- plot" in agent.run_sync(first, conversation=talk).text
    result = agent.run_sync(then, conversation=talk)
    assert not result.tool_calls_made
    assert "- plot" not in result.text


def test_of_those_that_have_not_as_many_are_told_again() -> None:
    agent, talk = Agent("offline", tools=[list_plots]), Conversation()
    agent.run_sync("Which plots are not paid?", conversation=talk)
    assert "2 listed" in agent.run_sync("How many of them are not paid?", conversation=talk).text
