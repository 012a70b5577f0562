"""Things called like words of the question, figures in several units, and whose it is that is handed on."""

from typing import Any

import pytest

from treadle import Agent, RunResult, tool

from .asked.judge import DECLINED

CHANGED: list[tuple[Any, ...]] = []


def loans() -> list[dict[str, Any]]:
    """The loans: who lends which book to whom."""
    return [
        {"id": 1, "book": "When", "lender": "Anna", "borrower": "Paul"},
        {"id": 2, "book": "It", "lender": "Paul", "borrower": "Anna"},
    ]


def cities() -> list[dict[str, Any]]:
    """Budgets of the cities."""
    return [
        {"city": "Most", "budget": 250000, "currency": "CZK", "people": 66000, "mayor": "Jan"},
        {"city": "Split", "budget": 80000, "currency": "EUR", "people": 160000, "mayor": "Ante"},
        {"city": "Bonn", "budget": None, "currency": "EUR", "people": 330000, "mayor": "Will"},
    ]


def rooms() -> list[dict[str, Any]]:
    """Rooms of the hostel."""
    return [{"room": "Rose", "price": 40, "guest": None}, {"room": "May", "price": 70, "guest": "Ann"}]


def staff() -> list[dict[str, Any]]:
    """All staff with their manager."""
    return [{"name": "Rose", "manager": None}, {"name": "Ann", "manager": "Rose"}]


def courses() -> dict[str, Any]:
    """The courses, and the students of each."""
    return {"school": "Hill", "courses": [{"title": "Art", "students": ["Ida"]}, {"title": "Latin", "students": []}]}


def recipes() -> list[dict[str, Any]]:
    """Recipes with cook and ingredients."""
    return [
        {"recipe": "Plain Rice", "cook": "Basil", "ingredients": ["rice"]},
        {"recipe": "Soup", "cook": "Rosemary", "ingredients": ["basil"]},
    ]


def tasks(project: str, status: str = "open") -> list[dict[str, Any]]:
    """Tasks of a project with a status."""
    return [{"task": "Paint", "project": project, "status": status}]


@tool(effect="write")
def assign_driver(van: str, driver: str) -> str:
    """Assign a driver to a van."""
    CHANGED.append((van, driver))
    return "assigned"


@tool(effect="write")
def assign_task(task: str, worker: str) -> str:
    """Assign a task to a worker."""
    CHANGED.append((task, worker))
    return "assigned"


@tool(effect="write")
def change_owner(patient: str, owner: str) -> str:
    """Give a patient another owner."""
    CHANGED.append((patient, owner))
    return "changed"


@tool(effect="write")
def set_price(item: str, price: float) -> str:
    """Set the price of an item in EUR."""
    CHANGED.append((item, price))
    return "set"


@tool(effect="write")
def pay_invoice(invoice: str) -> str:
    """Pay an invoice."""
    CHANGED.append((invoice,))
    return "paid"


@tool(effect="write")
def remove_song(title: str) -> str:
    """Remove a song from the playlist."""
    CHANGED.append((title,))
    return "removed"


@tool(effect="write")
def bill(member: str, amount: float) -> str:
    """Bills a member.

    Args:
        member: who.
        amount: how much in euros.
    """
    CHANGED.append((member, amount))
    return "billed"


@tool(effect="write")
def cancel_booking(code: str) -> str:
    """Cancels a booking.

    Args:
        code: the booking's code.
    """
    CHANGED.append((code,))
    return "cancelled"


@tool(effect="write")
def remind(number: str) -> str:
    """Sends a reminder of an invoice.

    Args:
        number: the invoice's number.
    """
    CHANGED.append((number,))
    return "sent"


@tool(effect="write")
def make_private(bucket: str) -> str:
    """Makes a bucket private."""
    CHANGED.append((bucket,))
    return "made"


@tool(effect="write")
def send_home(driver: str) -> str:
    """Sends a driver home."""
    CHANGED.append((driver,))
    return "sent"


@tool(effect="write")
def turn_left(degrees: int) -> str:
    """Turns left by some degrees."""
    CHANGED.append((degrees,))
    return "turned"


def members() -> list[dict[str, Any]]:
    """The members."""
    return [{"name": "Bill", "level": "gold"}, {"name": "Ann", "level": "silver"}]


def cellar() -> list[dict[str, Any]]:
    """The bottles in the cellar."""
    return [
        {"wine": "Barolo", "colour": "red", "bottles": 6},
        {"wine": "Chablis", "colour": "white", "bottles": 2},
        {"wine": "Rioja", "colour": "red", "bottles": 11},
    ]


def asked(question: str, *functions: Any) -> RunResult:
    CHANGED.clear()
    tools = [each if hasattr(each, "spec") else tool(each, effect="read") for each in functions]
    return Agent("offline", tools=tools).run_sync(question)


@pytest.mark.parametrize(
    ("question", "function"),
    [
        ("Who borrowed When?", loans),
        ("Who borrowed It?", loans),
        ("What is the budget of Most in EUR?", cities),
        ("Who is the mayor of Will?", cities),
        ("What does a room cost in May?", rooms),
        ("Staff who are managers", staff),
        ("Which courses have students?", courses),
        ("Which recipes are with Basil?", recipes),
        ("Which cities have a budget over 90000?", cities),
        ("How many cities have a budget between 60000 and 90000?", cities),
        ("How many tasks has Home and who says so?", tasks),
        ("How many tasks has Home, and how?", tasks),
    ],
)
def test_what_is_called_like_another_word_is_not_passed_over(question: str, function: Any) -> None:
    assert DECLINED.search(asked(question, function).text)


@pytest.mark.parametrize(
    ("question", "function", "told"),
    [
        ("Cities in EUR with a budget over 70000", cities, "1 of the 3"),
        ("Which city has the lowest people?", cities, "Most"),
        ("Who is the mayor of Split?", cities, "Ante"),
        ("What does May cost?", rooms, "70"),
        ("Which cities have no budget?", cities, "1 of the 3"),
        ("Which room has no guest?", rooms, "1 of the 2"),
        ("How many tasks has Home?", tasks, "1 listed (status open):"),
        ("Hi, how are you? How many tasks has Home?", tasks, "1 listed (status open):"),
        ("How many bottles of red wine are there?", cellar, "Sum of bottles: 17"),
        ("What is the number of bottles?", cellar, "Sum of bottles: 19"),
        ("How many wines are red?", cellar, "2 of the 3"),
    ],
)
def test_what_is_asked_plainly_is_told(question: str, function: Any, told: str) -> None:
    assert told in asked(question, function).text


@pytest.mark.parametrize(
    ("question", "function"),
    [
        ("Assign Olga's van to Pete", assign_driver),
        ("Give Olga's van over to Pete", assign_driver),
        ("Give Olga's own van to Pete", assign_driver),
        ("Assign Tom's to Ida", assign_task),
        ("Assign Paint to Tom's", assign_task),
        ("Assign the task Tom has to Ida", assign_task),
        ("Assign the task Tom called to Ida", assign_task),
        ("Assign Paint and its task to Ida", assign_task),
        ("Assign Pete and his driver to V1", assign_driver),
        ("Change Pepper's owner's name to Kim", change_owner),
        ("Set the price of Mug up 5", set_price),
        ("Pay Hall", pay_invoice),
        ("Remove All", remove_song),
        ("Remove Everything", remove_song),
        ("Bill 20 euros", bill),
        ("Bill and 20", bill),
        ("Bill joined for 20 euros", bill),
        ("Bill won 20 euros", bill),
        ("Cancel Hamlet", cancel_booking),
        ("Remind me of invoice 7", remind),
        ("Make web public", make_private),
        ("Send Abe", send_home),
        ("Turn right 90 degrees", turn_left),
    ],
)
def test_nothing_is_changed_by_whose_it_is_or_by_a_word_for_all(question: str, function: Any) -> None:
    asked(question, function, members)
    assert CHANGED == []


@pytest.mark.parametrize(
    ("question", "function", "changed"),
    [
        ("Assign Pete to V1", assign_driver, ("V1", "Pete")),
        ("Assign Paint to Ida", assign_task, ("Paint", "Ida")),
        ("Change Pepper's owner to Kim", change_owner, ("Pepper", "Kim")),
        ("Set the price of Mug to 5", set_price, ("Mug", 5)),
        ("Pay invoice 7", pay_invoice, ("7",)),
        ("Remove the song All", remove_song, ("All",)),
        ('Remove "All"', remove_song, ("All",)),
        ("Bill Ann 20 euros", bill, ("Ann", 20)),
        ("Bill Bill 20 euros", bill, ("Bill", 20)),
        ("Cancel booking H7", cancel_booking, ("H7",)),
        ("Send a reminder of invoice 7", remind, ("7",)),
        ("Make web private", make_private, ("web",)),
        ("Send Abe home", send_home, ("Abe",)),
        ("Turn left 90 degrees", turn_left, (90,)),
    ],
)
def test_what_is_named_is_changed(question: str, function: Any, changed: tuple[Any, ...]) -> None:
    asked(question, function)
    assert [changed] == CHANGED
