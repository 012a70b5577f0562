"""Small words that make a question another one: who does what, what may be, what is counted, from when, per what."""

from pathlib import Path
from typing import Any, Literal

import pytest

from treadle import Agent, RunResult, tool
from treadle.analyst import Catalog, analyst_skill
from treadle.tools.builtin import calculator

from .asked.judge import DECLINED

TICKETS = [("Login", "open", "Dana"), ("Typo", "closed", "Eli"), ("Crash", "open", "Eli")]
BOOKS = [("Emma", 1815), ("Persuasion", 1817), ("The Trial", 1925), ("Solaris", 1961)]


@tool
def manager_of(employee: str) -> str:
    """Tells who the manager of an employee is."""
    return {"Sara": "Omar", "Omar": "Greta"}.get(employee, "nobody")


@tool
def headcount(department: str) -> int:
    """Tells how many people work in a department."""
    return 4


@tool
def salary_of(employee: str) -> dict[str, Any]:
    """Tells the monthly salary of an employee in EUR."""
    return {"employee": employee, "salary": 7900}


@tool
def find_tickets(status: Literal["open", "closed"] | None = None, assignee: str | None = None) -> list[dict[str, str]]:
    """Finds tickets by status and assignee."""
    rows = [{"title": title, "status": state, "assignee": who} for title, state, who in TICKETS]
    return [row for row in rows if status in (None, row["status"]) and assignee in (None, row["assignee"])]


@tool
def count_tickets(status: Literal["open", "closed"] | None = None, assignee: str | None = None) -> int:
    """Counts tickets."""
    return sum(status in (None, state) and assignee in (None, who) for _, state, who in TICKETS)


@tool
def loans_of(member: str) -> list[str]:
    """Lists the books that a member has borrowed."""
    return ["Emma", "Solaris"]


@tool
def copies_of(title: str) -> int:
    """Tells how many copies of a book the library owns."""
    return 2


@tool
def absences(pupil: str) -> dict[str, Any]:
    """Tells how many days a pupil was absent."""
    return {"pupil": pupil, "days": 3}


@tool
def guest_in(room: int) -> str:
    """Tells who stays in a room."""
    return "Ms Monday"


@tool
def current_weather(city: str) -> dict[str, Any]:
    """Tells the weather in a city right now."""
    return {"city": city, "temperature": 17.5}


@tool
def search_flights(origin: str, destination: str) -> list[dict[str, Any]]:
    """Searches flights."""
    return [{"flight": "LX 318", "origin": origin, "destination": destination}]


@tool
def find_recipes(ingredient: str) -> list[str]:
    """Finds recipes that use an ingredient."""
    return ["omelette"]


@tool
def find_books(author: str | None = None) -> list[dict[str, Any]]:
    """Finds books in the catalogue."""
    return [{"title": title, "year": year} for title, year in BOOKS]


@tool
def check_stock(item_name: str) -> int:
    """Check how many units of an item are in stock."""
    return 75


@tool
def get_price(item_name: str) -> float:
    """Get the unit price of an item."""
    return 24.99


@tool
def calculate_total(quantity: int, unit_price: float) -> float:
    """Calculate the total cost of a quantity at a unit price."""
    return round(quantity * unit_price, 2)


SHOP = (check_stock, get_price, calculate_total)
STAFF = (manager_of, headcount, salary_of)


def asked(question: str, *tools: Any) -> RunResult:
    return Agent("offline", tools=list(tools)).run_sync(question)


def left_out(question: str, *tools: Any) -> str:
    """What a refusal says that it would leave out."""
    first = asked(question, *tools).text.splitlines()[0]
    return first if first.startswith("I cannot answer that as it was asked") else ""


def refused(question: str, *tools: Any) -> bool:
    return DECLINED.search(asked(question, *tools).text) is not None


@pytest.mark.parametrize(
    "question",
    [
        "Who is managed by Omar?",
        "Which people are managed by Omar?",
        "Who has Omar as a manager?",
        "Which employees has Omar as manager?",
        "Omar is the manager of whom?",
        "Who is Omar a manager of?",
        "Who does Omar manage?",
        "Name the people Omar manages",
        "Paul is whose manager?",
        "manager Omar",
        "Omar's employees",
        "Employees of Omar",
    ],
)
def test_who_is_managed_is_not_asked_of_a_tool_that_tells_the_manager(question: str) -> None:
    assert refused(question, *STAFF)


@pytest.mark.parametrize("question", ["Who manages Sara?", "Who is Sara managed by?", "Who is Sara's manager?"])
def test_the_manager_of_somebody_is_told_however_he_is_asked_for(question: str) -> None:
    assert asked(question, *STAFF).text.startswith("manager of (Sara): Omar")


def test_a_relation_of_a_relation_is_not_one_of_them() -> None:
    assert refused("Who is the manager of Sara's manager?", manager_of)


@pytest.mark.parametrize(
    ("question", "word", "about"),
    [
        ("Which books may Rita borrow?", "may", loans_of),
        ("Which books should Rita borrow?", "should", loans_of),
        ("Which books can Rita borrow?", "can", loans_of),
        ("How many people will work in Finance?", "will", headcount),
        ("How many gadgets do we need?", "need", check_stock),
        ("How many people like working in Finance?", "like", headcount),
        ("How warm was Lisbon?", "was", current_weather),
        ("How many days was Will present?", "present", absences),
        ("What was the price of a gadget?", "was", get_price),
        ("How do I buy a gadget?", "How", get_price),
    ],
)
def test_what_may_or_should_be_or_is_wanted_is_not_what_is(question: str, word: str, about: Any) -> None:
    assert f"“{word}”" in left_out(question, about)


@pytest.mark.parametrize("question", ["Could you tell me the price of a gadget?", "Can I see the price of a gadget?"])
def test_asking_politely_leaves_nothing_out(question: str) -> None:
    assert asked(question, *SHOP).text.startswith("get price (gadget): 24.99")


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("How many employees has Omar?", manager_of),
        ("How many salaries does Omar get?", salary_of),
        ("How many members has Rita?", loans_of),
        ("How many guests are in room 14?", guest_in),
    ],
)
def test_how_many_of_what_a_tool_does_not_count_is_not_answered(question: str, about: Any) -> None:
    assert refused(question, about)


@pytest.mark.parametrize(
    ("question", "about"), [("When was Anna absent?", absences), ("On which days was Anna absent?", absences)]
)
def test_a_question_for_a_time_is_not_answered_with_a_number(question: str, about: Any) -> None:
    assert refused(question, about)


def test_who_is_not_answered_with_a_number() -> None:
    assert refused("Who has gadgets in stock?", *SHOP)


def test_who_stays_somewhere_is_answered_without_more_ado() -> None:
    assert asked("Who stays in room 21?", guest_in).text.startswith("guest in (21): Ms Monday")


@pytest.mark.parametrize("question", ["How many tickets did Eli close?", "How many tickets were closed by Eli?"])
def test_closed_by_somebody_is_not_closed_and_assigned_to_him(question: str) -> None:
    assert refused(question, count_tickets)


@pytest.mark.parametrize("question", ["Which tickets did Eli assign?", "Which tickets were assigned by Eli?"])
def test_assigned_by_somebody_is_not_assigned_to_him(question: str) -> None:
    assert refused(question, find_tickets)


def test_closed_tickets_of_somebody_are_listed() -> None:
    assert "Typo" in asked("Which closed tickets does Eli have?", find_tickets).text


@pytest.mark.parametrize("question", ["How many tickets does each assignee have?", "Are all tickets closed?"])
def test_each_and_all_are_not_passed_over(question: str) -> None:
    assert refused(question, count_tickets)


def test_a_breakdown_that_no_tool_makes_is_said() -> None:
    assert "“by assignee”" in left_out("Tickets by assignee", find_tickets)


@pytest.mark.parametrize(
    "question",
    ["What do 3 gadgets cost to ship?", "How much does it cost to ship 3 gadgets?", "How many gadgets were sold?"],
)
def test_what_it_costs_to_ship_is_not_the_price(question: str) -> None:
    assert refused(question, *SHOP)


def test_numbers_to_be_added_are_no_quantity_and_price() -> None:
    assert refused("What is the sum of 4 and 5?", *SHOP)
    assert refused("What is the total of 4 and 5?", *SHOP)


def test_a_rounding_that_is_not_done_is_not_passed_over() -> None:
    assert refused("What is 10 divided by 3 rounded?", calculator)


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("Return flights from Zurich to London", search_flights),
        ("Which is the fastest flight from Zurich to London?", search_flights),
        ("Which recipe is the quickest?", find_recipes),
        ("How many copies of Emma are available?", copies_of),
    ],
)
def test_a_word_that_says_which_is_no_ingredient_and_not_idle(question: str, about: Any) -> None:
    answer = asked(question, about)
    assert DECLINED.search(answer.text)
    assert "Asked with" not in answer.text


@pytest.mark.parametrize("question", ["Which parcels were sent by Lima?", "Whose parcel is P-11?"])
def test_what_was_done_is_nobody(question: str) -> None:
    @tool
    def parcels_to(receiver: str) -> list[str]:
        """Lists the parcels that go to a receiver."""
        return []

    answer = asked(question, parcels_to).text
    assert "receiver sent" not in answer
    assert DECLINED.match(answer)


def test_a_person_is_no_town() -> None:
    @tool
    def find_homes(town: str | None = None) -> list[dict[str, Any]]:
        """Finds homes to rent."""
        return []

    for question in (
        "Which homes were let by Mr Cash?",
        "Which homes does Mrs Bell own?",
        "Homes between Bath and York",
    ):
        assert "Asked with" not in asked(question, find_homes).text


def test_an_argument_that_is_repeated_is_not_the_answer() -> None:
    @tool
    def ticket_price(kind: Literal["adult", "child"], tickets: int = 1) -> dict[str, Any]:
        """Tells what tickets cost in EUR."""
        return {"kind": kind, "tickets": tickets, "price": 5 * tickets}

    assert asked("What does a child ticket cost?", ticket_price).text.startswith("child: price 5")


def test_a_language_is_no_author() -> None:
    assert "Asked with: author" not in asked("Which books are in German?", find_books).text


def test_a_list_of_many_is_not_asked_for_one_by_one() -> None:
    @tool
    def list_orders(status: Literal["open", "shipped"] | None = None) -> list[dict[str, Any]]:
        """Lists orders, newest last."""
        return [{"order_id": number, "status": "open"} for number in (7, 8)]

    @tool
    def get_order(order_id: int) -> dict[str, Any]:
        """Gets one order by its number."""
        return {"order_id": order_id, "status": "open"}

    result = asked("Which orders are open?", list_orders, get_order)
    assert "order id 7" in result.text
    assert "order id 8" in result.text


def test_a_list_of_one_says_how_many_it_has() -> None:
    assert asked("How many tickets are closed?", find_tickets).text.startswith("1 listed:")


def test_a_field_that_is_called_like_a_figure_is_broken_down_by(tmp_path: Path) -> None:
    tmp_path.joinpath("costs.csv").write_text("site,expense,cost\nBerlin,rent,5\nBerlin,wages,7\nPorto,rent,3\n")
    tmp_path.joinpath("sources.yaml").write_text(
        "sources:\n  costs:\n    kind: csv\n    path: costs.csv\n    dimensions: {site: {}, expense: {}}\n"
        "    measures:\n      cost: {aggregation: sum, unit: EUR, decimals: 2, synonyms: [expenses]}\n"
    )
    skill = analyst_skill(Catalog.load(tmp_path / "sources.yaml"))
    result = Agent("offline", skills=[skill]).run_sync("Cost of costs by site and expense")
    assert "site Berlin, expense wages, cost 7.00" in result.text
