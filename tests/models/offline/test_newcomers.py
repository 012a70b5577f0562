"""What newcomers asked of small toolboxes: nothing is done to, or told of, another thing than the one asked for."""

from datetime import date
from typing import Any, Literal, TypedDict

import pytest

from treadle import Agent, RunResult, Tool, tool

from .asked.judge import DECLINED


class Ticket(TypedDict):
    """A ticket."""

    ticket_id: int
    priority: str


@tool(effect="write")
def raise_salary(employee: str, percent: float) -> str:
    """Raise the salary of an employee by a percentage."""
    return f"raised {employee} by {percent}"


@tool(effect="write")
def cancel_order(order: str) -> str:
    """Cancel an order."""
    return f"cancelled {order}"


@tool(effect="write")
def move_stock(sku: str, from_bin: str, to_bin: str, quantity: int) -> str:
    """Move stock from one bin to another."""
    return f"moved {quantity} {sku}: {from_bin} -> {to_bin}"


def asked(question: str, *tools: Tool) -> RunResult:
    return Agent("offline", tools=list(tools)).run_sync(question)


def calls(result: RunResult) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in result.tool_calls_made]


@pytest.mark.parametrize(
    ("question", "does"),
    [
        ("Raise Tom's salary by 3%", raise_salary),
        ("Raise Tom's salary by 3 percent", raise_salary),
        ("Cancel order A-18", cancel_order),
        ("Cancel the order A-18", cancel_order),
    ],
)
def test_a_command_that_names_the_thing_is_carried_out(question: str, does: Tool) -> None:
    assert [name for name, _ in calls(asked(question, does))] == [does.name]


@pytest.mark.parametrize(
    ("question", "does"),
    [
        ("Raise Tom's salary to 50000", raise_salary),
        ("Raise the salary of Tom to 50,000", raise_salary),
        ("Cancel the orders of Nils", cancel_order),
        ("Cancel the order of Nils", cancel_order),
        ("Cancel the order from Nils", cancel_order),
        ("Cancel the order for Nils", cancel_order),
        ("Cancel Nils's orders", cancel_order),
        ("Cancel all orders by Nils", cancel_order),
    ],
)
def test_whose_a_thing_is_and_what_a_figure_is_to_become_are_no_arguments(question: str, does: Tool) -> None:
    assert not calls(asked(question, does))


@pytest.mark.parametrize(
    "question",
    [
        "Move 20 M8-BOLT from A1 to B2",
        "Move 20 M8-BOLT to B2 from A1",
        "Move from A1 to B2 20 M8-BOLT",
    ],
)
def test_what_is_moved_is_not_where_it_comes_from(question: str) -> None:
    moved = {"sku": "M8-BOLT", "from_bin": "A1", "to_bin": "B2", "quantity": 20}
    assert calls(asked(question, move_stock)) in ([("move_stock", moved)], [])


@tool(effect="read")
def find_accounts(country: str | None = None, owner: str | None = None) -> list[dict[str, str]]:
    """Find CRM accounts.

    Args:
        country: only of this country.
        owner: only of this account owner.
    """
    held = [("Norsk Fisk", "Norway", "Lena"), ("Alpine Tools", "Austria", "Jonas")]
    rows = [{"name": name, "country": land, "owner": who} for name, land, who in held]
    return [
        row for row in rows if row["country"] == (country or row["country"]) and row["owner"] == (owner or row["owner"])
    ]


@tool(effect="read")
def list_contacts(account_name: str) -> list[dict[str, str]]:
    """Contacts of an account."""
    return [{"name": "Ida Berg"}] if account_name == "Baltic Wood" else []


@tool(effect="read")
def orders(customer: str | None = None) -> list[dict[str, str]]:
    """Orders of the shop."""
    return [{"order": "A-17", "customer": "Nils"}] if customer in (None, "Nils") else []


@tool(effect="read")
def fees(reader: str) -> dict[str, Any]:
    """Open fees of a reader in euros."""
    return {"reader": reader, "fees": {"Ben": 3.5}[reader]}


@tool(effect="read")
def scale_recipe(title: str, servings: int) -> dict[str, Any]:
    """Ingredients of a recipe for a number of servings."""
    return {"title": title, "eggs": 2 * servings}


@tool(effect="read")
def find_recipes(ingredients: list[str]) -> list[str]:
    """Find recipes with some ingredients.

    Args:
        ingredients: what to cook with.
    """
    return [f"soup of {', '.join(ingredients)}"]


@tool(effect="read")
def list_tickets(status: Literal["open", "closed", "in_progress"] | None = None) -> list[dict[str, Any]]:
    """List tickets.

    Args:
        status: only with this status.
    """
    held = [(101, "open"), (102, "closed"), (103, "in_progress")]
    return [{"id": number, "status": state} for number, state in held if state == (status or state)]


@pytest.mark.parametrize(
    ("question", "of", "given"),
    [
        ("Orders of Nils", orders, {"customer": "Nils"}),
        ("Contacts of Baltic Wood", list_contacts, {"account_name": "Baltic Wood"}),
        ("Fees of Ben", fees, {"reader": "Ben"}),
        ("Scale Gratin to 6 servings", scale_recipe, {"title": "Gratin", "servings": 6}),
        ("tickets in progress", list_tickets, {"status": "in_progress"}),
        ("Which tickets are in progress?", list_tickets, {"status": "in_progress"}),
        ("in-progress tickets", list_tickets, {"status": "in_progress"}),
        ("recipes with potatoes", find_recipes, {"ingredients": ["potato"]}),
        ("recipes with tomatoes and shoes", find_recipes, {"ingredients": ["tomato", "shoe"]}),
    ],
)
def test_a_call_takes_what_was_named_and_no_more(question: str, of: Tool, given: dict[str, Any]) -> None:
    assert calls(asked(question, of)) == [(of.name, given)]


def test_what_and_joins_is_not_torn_apart_between_two_arguments() -> None:
    result = asked("accounts in Norway and Austria", find_accounts)
    assert calls(result) == [("find_accounts", {"country": "Norway"}), ("find_accounts", {"country": "Austria"})]
    assert "Norsk Fisk" in result.text
    assert "Alpine Tools" in result.text


MAILS = [("Budget", "2026-11-19"), ("Lunch", "2026-11-21"), ("Minutes", "2026-11-22")]


@tool(effect="read")
def search_mails(since: date | None = None, until: date | None = None) -> list[dict[str, str]]:
    """Search mails.

    Args:
        since: earliest day.
        until: latest day.
    """
    return [
        {"subject": subject, "date": day}
        for subject, day in MAILS
        if day >= str(since or day) and day <= str(until or day)
    ]


@tool(effect="read")
def parcels(date_from: date | None = None, date_to: date | None = None) -> list[dict[str, str]]:
    """Parcels of the shop."""
    return [{"parcel": "P-1"}]


@pytest.mark.parametrize(
    ("question", "given"),
    [
        ("mails since 2026-11-21", {"since": "2026-11-21"}),
        ("mails from 2026-11-21 on", {"since": "2026-11-21"}),
        ("mails from 2026-11-21 onwards", {"since": "2026-11-21"}),
        ("Mails after 2026-11-21", {"since": "2026-11-22"}),
        ("Mails before 2026-11-21", {"until": "2026-11-20"}),
        ("mails until 2026-11-21", {"until": "2026-11-21"}),
        ("mails of 2026-11-21", {"since": "2026-11-21", "until": "2026-11-21"}),
        ("Which mails did I get on 2026-11-21?", {"since": "2026-11-21", "until": "2026-11-21"}),
        ("mails from 2026-11-19 to 2026-11-21", {"since": "2026-11-19", "until": "2026-11-21"}),
        ("mails from 2026-11-19 until 2026-11-21", {"since": "2026-11-19", "until": "2026-11-21"}),
    ],
)
def test_a_day_opens_a_time_only_where_that_is_said(question: str, given: dict[str, Any]) -> None:
    assert calls(asked(question, search_mails)) == [("search_mails", given)]


@pytest.mark.parametrize(
    "about", ["mails from 2026-11-21", "Show the mails from 2026-11-21", "parcels from 2026-11-21"]
)
def test_from_a_day_may_be_on_it_or_since_it_and_is_neither(about: str) -> None:
    assert not calls(asked(about, search_mails, parcels))


@tool(effect="read")
def project_hours(project: str, member: str | None = None) -> dict[str, Any]:
    """Hours booked on a project, of one member or of all."""
    return {"project": project, "hours": 340 if member is None else 40}


@tool(effect="read")
def list_projects() -> list[str]:
    """Names of all projects."""
    return ["Apollo", "Hermes"]


@tool(effect="read")
def search_flights(origin: str, destination: str, nonstop: bool = False) -> list[str]:
    """Search flights.

    Args:
        origin: city of departure.
        destination: city of arrival.
        nonstop: only flights without a stop.
    """
    return ["LH123"]


@tool(effect="read")
def manager_of(employee: str) -> str:
    """Who is the manager of an employee."""
    return {"Sara": "Olga", "Tom": "Sara"}[employee]


@tool(effect="read")
def track(order: str) -> dict[str, str]:
    """Where the parcel of an order is."""
    return {"order": order, "place": "Hamburg"}


@tool(effect="read")
def read_file(path: str) -> str:
    """Read a text file."""
    return f"contents of {path}"


@tool(effect="read")
def due_date(title: str) -> str:
    """When a borrowed book is due."""
    return "2026-12-04"


@pytest.mark.parametrize(
    ("question", "of"),
    [
        ("How many members does Apollo have?", project_hours),
        ("How many members work on Apollo?", project_hours),
        ("Who are the members of Apollo?", project_hours),
        ("Who does Sara manage?", manager_of),
        ("Whom does Sara manage?", manager_of),
        ("Whose manager is Sara?", manager_of),
        ("Which employees does Sara manage?", manager_of),
        ("unpaid orders", track),
        ("Show me the unpaid orders", track),
        ("Which pdf files are there?", read_file),
        ("How many fines are there for the reader Ben?", fees),
        ("Is there a flight with a stop from Berlin to Rome?", search_flights),
    ],
)
def test_what_a_tool_does_not_tell_is_not_told_by_it(question: str, of: Tool) -> None:
    assert DECLINED.search(asked(question, of, list_projects).text)


@pytest.mark.parametrize(
    ("question", "of", "given"),
    [
        ("How many hours did Nina book on Apollo?", project_hours, {"project": "Apollo", "member": "Nina"}),
        ("How many hours are booked on Apollo?", project_hours, {"project": "Apollo"}),
        ("Who manages Tom?", manager_of, {"employee": "Tom"}),
        ("Who is Tom's manager?", manager_of, {"employee": "Tom"}),
        ("Who does manage Tom?", manager_of, {"employee": "Tom"}),
    ],
)
def test_what_a_tool_tells_is_asked_of_it(question: str, of: Tool, given: dict[str, Any]) -> None:
    assert calls(asked(question, of)) == [(of.name, given)]


@tool(effect="read")
def count_words(path: str) -> int:
    """Number of words in a text file."""
    return 321


@tool(effect="read")
def find_tickets(priority: Literal["low", "high"] | None = None) -> list[Ticket]:
    """List tickets.

    Args:
        priority: only with this priority.
    """
    return [{"ticket_id": 101, "priority": "high"}]


@tool(effect="read")
def get_ticket(ticket_id: int) -> Ticket:
    """One ticket by its number."""
    return {"ticket_id": ticket_id, "priority": "high"}


@pytest.mark.parametrize(
    ("question", "of"),
    [
        ("Which pdf files are there?", count_words),
        ("Show all contacts", list_contacts),
        ("Show all leads", list_contacts),
        ("How many high priority tickets are there?", get_ticket),
    ],
)
def test_one_of_many_is_not_made_up(question: str, of: Tool) -> None:
    assert of.name not in [name for name, _ in calls(asked(question, of, find_tickets))]


@tool(effect="read")
def lakes(country: str) -> dict[str, Any]:
    """Lakes of a country."""
    return {"country": country, "lakes": []}


@pytest.mark.parametrize("question", ["lakes of Norway", "Which lakes are in Norway?"])
def test_that_a_list_is_empty_is_said(question: str) -> None:
    assert "No lakes were found." in asked(question, lakes).text


@tool
def list_members(team: str) -> list[dict[str, str]]:
    """List the members of a team."""
    return [{"name": name, "role": "developer"} for name in ("Ann", "Bob", "Cy")]


def test_how_many_is_answered_with_how_many_are_listed() -> None:
    assert asked("How many members does Apollo have?", list_members).text.startswith("3 listed:\n- Ann: ")
    assert "listed" not in asked("List the members of Apollo.", list_members).text


def test_to_count_is_to_do_something_and_no_name() -> None:
    assert not calls(asked("Count the members of Apollo.", list_members))
