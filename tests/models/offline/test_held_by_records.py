"""What records hold, as people ask for it: "with 3 rooms", "not assigned", "on loan", "joined before 2020"."""

from typing import Any

import pytest

from treadle import Agent, tool


@tool(effect="read")
def patients(ward: str | None = None) -> list[dict[str, Any]]:
    """Patients that are in the hospital."""
    return [
        {"patient": "Ada Brand", "ward": "A", "age": 71, "doctor": "Dr. Klein"},
        {"patient": "Ben Roth", "ward": "B", "age": 34, "doctor": "Dr. Klein"},
        {"patient": "Cleo Voss", "ward": "A", "age": 52, "doctor": "Dr. Sommer"},
    ]


@tool(effect="read")
def employees() -> list[dict[str, Any]]:
    """Employees, their departments and salaries."""
    return [
        {"name": "Lena Fuchs", "department": "Sales", "salary": 52000, "city": "Bonn"},
        {"name": "Paul Wirth", "department": "IT", "salary": 61000, "city": "Kiel"},
        {"name": "Nora Lenz", "department": "IT", "salary": 58000, "city": "Bonn"},
    ]


@tool(effect="read")
def tickets() -> list[dict[str, Any]]:
    """Tickets."""
    return [
        {"id": 11, "title": "Login fails", "status": "open", "assignee": "Kim"},
        {"id": 12, "title": "Slow page", "status": "open", "assignee": None},
    ]


@tool(effect="read")
def members() -> list[dict[str, Any]]:
    """Members of the club."""
    return [
        {"member": "Finn", "team": "U15", "paid": True, "joined": 2021},
        {"member": "Greta", "team": "U15", "paid": False, "joined": 2019},
        {"member": "Hugo", "team": "U17", "paid": False, "joined": 2023},
    ]


@tool(effect="read")
def exhibits() -> list[dict[str, Any]]:
    """Exhibits of the museum."""
    return [{"exhibit": "Blue Vase", "on_loan": True}, {"exhibit": "Iron Mask", "on_loan": False}]


@tool(effect="read")
def classes() -> list[dict[str, Any]]:
    """Classes of the gym."""
    return [
        {"class_id": 3, "name": "Yoga", "trainer": "Bea", "places": 12},
        {"class_id": 4, "name": "Spin", "trainer": "Leo", "places": 20},
    ]


@tool(effect="read")
def flats(city: str) -> list[dict[str, Any]]:
    """Flats to let in a city."""
    return [
        {"flat": "F1", "rooms": 2, "rent": 700, "balcony": True},
        {"flat": "F2", "rooms": 3, "rent": 950, "balcony": False},
        {"flat": "F3", "rooms": 3, "rent": 880, "balcony": True},
    ]


@tool(effect="read")
def list_files(folder: str) -> list[dict[str, Any]]:
    """Files in a folder, with sizes in KB."""
    return [{"file": "a.txt", "kb": 12}, {"file": "b.pdf", "kb": 840}] if folder == "docs" else []


@tool(effect="read")
def search_flights(origin: str, destination: str, max_price: float | None = None) -> list[dict[str, Any]]:
    """Search flights between two cities."""
    return [{"flight": "LX1", "price": 120.0}, {"flight": "LX2", "price": 89.0}]


@tool(effect="read")
def claim(claim_id: str) -> dict[str, Any]:
    """One claim."""
    return {"claim_id": claim_id, "amount": 1850.0, "holder": "Jan Ott"}


@pytest.mark.parametrize(
    ("asked", "question", "said", "unsaid"),
    [
        (patients, "Which patients does Dr. Klein have?", ["Ada", "Ben"], ["Cleo"]),
        (employees, "What is the total of the salaries in IT?", ["119,000"], []),
        (employees, "How many employees are in Bonn?", ["2 of the 3"], []),
        (employees, "Which employees do not work in IT?", ["Lena"], ["Paul", "Nora"]),
        (tickets, "Which open tickets are not assigned?", ["12"], ["11"]),
        (members, "How many members of U15 have paid?", ["1 of the 3", "Finn"], ["Greta"]),
        (members, "Who joined before 2020?", ["Greta"], ["Finn", "Hugo"]),
        (exhibits, "Which exhibits are on loan?", ["Blue Vase"], ["Iron"]),
        (exhibits, "Which exhibits are not on loan?", ["Iron Mask"], ["Blue"]),
        (classes, "Who is the trainer of Spin?", ["Leo"], ["Bea"]),
        (claim, "Who is the holder of claim K-55?", ["Jan Ott"], []),
        (flats, "Which flats in Bonn have three rooms?", ["F2", "F3"], ["F1"]),
        (flats, "What is the cheapest flat with 3 rooms in Bonn?", ["F3"], ["F2"]),
        (flats, "How many flats in Bonn have no balcony?", ["1 of the 3", "F2"], ["F1"]),
        (list_files, "What is the largest file in the folder docs?", ["b.pdf"], ["a.txt"]),
        (list_files, "Which files are in the folder docs?", ["b.pdf", "a.txt"], []),
        (search_flights, "What is the cheapest flight from Ulm to Oslo?", ["LX2"], ["LX1"]),
    ],
)
def test_records_tell_what_they_hold(asked: Any, question: str, said: list[str], unsaid: list[str]) -> None:
    text = Agent("offline", tools=[asked]).run_sync(question).text
    assert all(each in text for each in said), text
    assert not any(each in text for each in unsaid), text
