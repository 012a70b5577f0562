"""Questions that a tool's result nearly fits, and that it answers for something or somebody else."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from treadle import Agent, Conversation, RunResult, tool

PARCELS = [
    {"id": "P100", "recipient": "Jo Hart", "weight_kg": 2.5, "status": "in transit", "destination": "Lyon"},
    {"id": "P102", "recipient": "Jo Hart", "weight_kg": 11.0, "status": "lost", "destination": "Lyon"},
]


@tool(effect="read")
def list_parcels(status: Literal["in transit", "lost"] | None = None) -> list[dict[str, Any]]:
    """Lists parcels.

    Args:
        status: only those in this state.
    """
    return [parcel for parcel in PARCELS if status in (None, parcel["status"])]


@tool(effect="read")
def shipping_cost(weight_kg: float, country: str) -> float:
    """What it costs to ship a parcel, in euros.

    Args:
        weight_kg: its weight in kilograms.
        country: where to.
    """
    return 4 + weight_kg * 2.5


@dataclass
class Plot:
    number: int
    tenant: str
    crop: str
    paid: bool


@tool(effect="read")
def list_plots(paid: bool | None = None) -> list[Plot]:
    """Lists the plots of the garden: number, tenant, crop, and whether the rent is paid.

    Args:
        paid: whether the rent is paid.
    """
    plots = [Plot(1, "Hope", "beans", True), Plot(2, "Basil", "kale", False), Plot(3, "Rose", "beans", True)]
    return [plot for plot in plots if paid in (None, plot.paid)]


@tool(effect="read")
def get_employee(name: str) -> dict[str, Any]:
    """An employee: department, manager, email and hire date.

    Args:
        name: their name.
    """
    manager = {"Ann": "Bob", "Bob": "Cy"}.get(name)
    return {"name": name, "department": "Sales", "manager": manager, "email": f"{name}@x.org", "hired": "2020-01-02"}


@tool(effect="read")
def list_wines(colour: Literal["red", "white"] | None = None, country: str | None = None) -> list[dict[str, Any]]:
    """Lists the wines in the cellar: name, country and colour.

    Args:
        colour: only of this colour.
        country: only from this country.
    """
    wines = [{"name": "Clos Petit", "country": "France", "colour": "white"}]
    return [wine for wine in wines if country in (None, wine["country"]) and colour in (None, wine["colour"])]


@tool(effect="read")
def count_stock(item: str) -> int:
    """How many of an item are in stock.

    Args:
        item: its name.
    """
    return 900


def asked(*questions: str, tools: list[Any]) -> RunResult:
    agent, conversation = Agent("offline", tools=tools), Conversation()
    return [agent.run_sync(question, conversation=conversation) for question in questions][-1]


@pytest.mark.parametrize(
    "question", ["Which of Jo Hart's parcels are lost?", "Jo Hart's lost parcels", "Lost parcels to Lyon"]
)
def test_what_is_listed_is_not_answered_by_a_figure_worked_out_of_it(question: str) -> None:
    assert "31.5" not in asked(question, tools=[list_parcels, shipping_cost]).text


def test_a_figure_that_is_asked_for_is_told() -> None:
    answer = asked("What does shipping 3 kg to France cost?", tools=[list_parcels, shipping_cost])
    assert "11.5" in answer.text


@pytest.mark.parametrize("question", ["How many of them are paid?", "Which of those are paid?"])
def test_of_them_is_of_nothing_where_nothing_was_told(question: str) -> None:
    assert "Hope" not in asked(question, tools=[list_plots]).text
    assert "Hope" not in asked("Which plots grow beans?", question, tools=[list_plots]).text
    assert "Hope" in asked(question.replace("of them", "plots").replace("of those", "plots"), tools=[list_plots]).text


@pytest.mark.parametrize("question", ["Who is the tenant?", "What is the crop?"])
def test_the_one_is_not_answered_by_each_on_a_list(question: str) -> None:
    assert "Basil" not in asked(question, tools=[list_plots]).text


def test_a_list_that_is_asked_for_is_told() -> None:
    assert "Basil" in asked("Show the plots with tenant and crop", tools=[list_plots]).text


@pytest.mark.parametrize("question", ["Who hired Ann?", "Who emailed Ann?"])
def test_who_did_it_is_not_answered_by_whom_it_was_done_to(question: str) -> None:
    assert "Bob" not in asked(question, tools=[get_employee]).text
    assert "@" not in asked(question, tools=[get_employee]).text


def test_what_is_asked_for_and_is_not_there_is_told_as_such() -> None:
    assert "manager (none)" in asked("Who is Cy's manager?", tools=[get_employee]).text
    assert "Bob" in asked("Who is Ann's manager?", tools=[get_employee]).text


def test_no_wines_are_found_of_a_country_that_is_called_otherwise() -> None:
    adjective = asked("How many French wines are there?", tools=[list_wines]).text
    assert "may not be what the country is called" in adjective
    assert "No results were found" in asked("wines from Portugal", tools=[list_wines]).text


@pytest.mark.parametrize("question", ["Do we have enough nuts?", "Are there too many nuts?"])
def test_whether_it_is_enough_is_not_answered_by_how_many_there_are(question: str) -> None:
    assert "900" not in asked(question, tools=[count_stock]).text
    assert "Yes" in asked("Do we have enough nuts for 50?", tools=[count_stock]).text


@tool(effect="read")
def search_documents(query: str, year: int | None = None) -> list[dict[str, Any]]:
    """Searches documents."""
    return [{"document": "A-77", "title": "Harbour plan", "year": 1904}]


@pytest.mark.parametrize(
    "question", ["Is document A-77 out?", "Is document A-77 in?", "Check whether document A-77 is out"]
)
def test_whether_something_is_out_is_not_told_by_what_it_is(question: str) -> None:
    """Regression: what a document is was told, where it was asked whether it is out."""
    assert "Harbour" not in Agent("offline", tools=[search_documents]).run_sync(question).text


def test_the_word_that_leads_a_condition_is_not_searched_for() -> None:
    result = Agent("offline", tools=[search_documents]).run_sync("Find documents about harbour from 1904")
    assert [dict(call.arguments) for call in result.tool_calls_made] == [{"query": "harbour", "year": 1904}]
