"""Functions without a word of what they do, and ones that are described by a heading: a question or a statement carries
out nothing, and what is called by a thing is asked for it."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from treadle import Agent, tool

CALLS: list[str] = []


def _function(name: str, param: str, told: str, returns: type = str) -> Callable[..., Any]:
    """A function of one text, as a newcomer writes it."""

    def function(**given: str) -> Any:
        CALLS.append(f"{name} {given[param]}")
        return "ok" if returns is str else {"ok": True}

    function.__name__, function.__doc__ = name, told
    function.__annotations__ = {param: str, "return": returns}
    taken = inspect.Parameter(param, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str)
    vars(function)["__signature__"] = inspect.Signature([taken], return_annotation=returns)
    return function


VERBS = (
    ("groom", "groomed", "grooming", "grooms"),
    ("tow", "towed", "towing", "tows"),
    ("recall", "recalled", "recalling", "recalls"),
    ("collect", "collected", "collecting", "collects"),
    ("scan", "scanned", "scanning", "scans"),
)
NO_ORDERS = (
    "Is Rex {ed}?",
    "Has Rex been {ed}?",
    "Is Rex being {ing}?",
    "Do you {verb} Rex?",
    "I {verb} Rex",
    "We {ed} Rex",
    "Rex is {ed}",
    "What did Rex {verb}?",
    "Who {s} Rex?",
    "Show {ed} Rex",
    "How is Rex {ed}?",
    "{verb} Rex?",
    "Don't {verb} Rex",
)


@pytest.mark.parametrize("question", NO_ORDERS)
@pytest.mark.parametrize(("verb", "ed", "ing", "s"), VERBS)
@pytest.mark.parametrize(("name", "param"), [("{}", "goat"), ("{}_goat", "goat"), ("{}_goat", "name"), ("{}", "name")])
def test_what_is_not_described_is_done_by_an_order_alone(
    question: str, verb: str, ed: str, ing: str, s: str, name: str, param: str
) -> None:
    CALLS.clear()
    said = question.format(verb=verb, ed=ed, ing=ing, s=s)
    agent = Agent("offline", tools=[tool(_function(name.format(verb), param, ""))])

    agent.run_sync(said[0].upper() + said[1:])

    assert CALLS == []


@pytest.mark.parametrize(("verb", "ed", "ing", "s"), VERBS)
@pytest.mark.parametrize(("name", "param"), [("{}", "goat"), ("{}_goat", "goat")])
def test_it_is_done_by_its_verb(verb: str, ed: str, ing: str, s: str, name: str, param: str) -> None:
    CALLS.clear()

    Agent("offline", tools=[tool(_function(name.format(verb), param, ""))]).run_sync(f"{verb.capitalize()} Rex")

    assert [f"{name.format(verb)} Rex"] == CALLS


def get_order(order_id: int) -> dict[str, Any]:
    """Order details"""
    return {"id": order_id, "status": "shipped", "total": 20.5, "paid": order_id == 5}


def get_member(member_id: int) -> dict[str, Any]:
    """Member details."""
    return {"id": member_id, "name": "Ana Ruiz", "plan": "gold"}


def player_info(name: str) -> dict[str, Any]:
    """Player information"""
    return {"name": name, "rating": 1820, "club": "Rook"}


def phone_number(name: str) -> str:
    """Phone number of a person."""
    return "555-0101"


def ticket_status(ticket: str) -> str:
    """Ticket status"""
    return "waiting"


def honey_yield(year: int) -> float:
    """Honey harvested in a year, in kg."""
    return {2024: 35.5}[year]


def open_incidents() -> list[dict[str, Any]]:
    return [{"id": 7, "kind": "fire"}, {"id": 8, "kind": "flood"}]


def weather(city: str) -> str:
    return "mild"


HEADINGS = (
    (get_order, "What is the total of order 5?", "20.5"),
    (get_order, "Show order 5", "shipped"),
    (get_member, "What plan does member 12 have?", "gold"),
    (player_info, "What is Ivan's rating?", "1820"),
    (player_info, "Show player info for Ivan", "1820"),
    (phone_number, "What is Ann's phone number?", "555-0101"),
    (ticket_status, "What is the status of ticket T-5?", "waiting"),
    (honey_yield, "How much honey did we harvest in 2024?", "35.5"),
    (open_incidents, "How many open incidents are there?", "2 "),
    (open_incidents, "Which incidents are open?", "flood"),
    (weather, "What is the weather in Oslo?", "mild"),
)


@pytest.mark.parametrize(("function", "question", "told"), HEADINGS)
def test_what_is_called_by_a_thing_tells_it(function: Callable[..., Any], question: str, told: str) -> None:
    result = Agent("offline", tools=[tool(function)]).run_sync(question)

    assert told in result.text, result.text
    assert len(result.tool_calls_made) == 1


def wipe_status(name: str) -> str:
    """Wipe status"""
    CALLS.append(name)
    return "ok"


@pytest.mark.parametrize("question", ["What is the status of Rex?", "Is Rex's status wiped?", "Show the status of Rex"])
def test_a_heading_is_no_leave_to_change_something(question: str) -> None:
    CALLS.clear()

    Agent("offline", tools=[tool(wipe_status)]).run_sync(question)

    assert CALLS == []


def empty(bin: str) -> str:
    CALLS.append(bin)
    return "emptied"


def weigh(truck: str) -> float:
    CALLS.append(truck)
    return 7.5


@pytest.mark.parametrize(
    "question",
    ["Show me the empty bin B1", "Is B1 empty?", "Was T7 tipped?", "How full is B1?", "Is there an empty bin?"],
)
def test_a_word_of_its_name_that_says_how_something_is_carries_nothing_out(question: str) -> None:
    CALLS.clear()

    Agent("offline", tools=[tool(empty), tool(weigh)]).run_sync(question)

    assert CALLS == []


def course(name: str) -> dict[str, Any]:
    """Course details"""
    return {"name": name, "teacher": "Ms Ito", "room": "R4"}


def movie(title: str) -> dict[str, Any]:
    """Movie by title"""
    return {"title": title, "rating": 8.1}


def free_beds(ward: str) -> int:
    """Free beds in a ward"""
    return 3


def runners() -> list[dict[str, Any]]:
    """All runners"""
    return [{"name": "Edda", "finished": True}, {"name": "Raj", "finished": True}, {"name": "Sue", "finished": False}]


@pytest.mark.parametrize(
    ("function", "question", "told"),
    [
        (course, "Who is the teacher of Welsh?", "Ms Ito"),
        (movie, "What is the rating of Solaris?", "8.1"),
        (free_beds, "How many free beds are in West?", "3"),
        (runners, "How many runners finished?", "2 of the 3"),
    ],
)
def test_a_heading_of_one_word_tells_it_too(function: Callable[..., Any], question: str, told: str) -> None:
    result = Agent("offline", tools=[tool(function)]).run_sync(question)

    assert told in result.text, result.text


ORDERS_LIKE_HEADINGS = (
    ("wipe_details", "name", "Wipe details"),
    ("print_record", "name", "Print record"),
    ("burn", "disc", "Burn data"),
    ("toggle_status", "name", "Toggle status"),
    ("vote", "candidate", "Vote for a candidate"),
    ("ship", "parcel", "Ship by parcel"),
    ("dispose", "parcel", "Dispose of a parcel"),
    ("groom2", "goat", "Groom goats"),
    ("water_plants", "bed", "Water plants of a bed"),
)


@pytest.mark.parametrize(("name", "param", "described"), ORDERS_LIKE_HEADINGS)
def test_an_order_without_an_article_is_no_heading(name: str, param: str, described: str) -> None:
    CALLS.clear()
    agent = Agent("offline", tools=[tool(_function(name, param, described, dict))])

    for question in (
        "What is the status of R1?",
        "Has R1 been burned?",
        "Who is R1?",
        "Is R1 ready?",
        "Show sealed R1",
    ):
        agent.run_sync(question)

    assert CALLS == []


def _written(heading: str, answer: str) -> Callable[..., Any]:
    """A function without a word of what it does, as `heading` has it."""
    scope: dict[str, Any] = {"CALLS": CALLS}
    exec(f"def {heading}:\n    CALLS.append({heading!r})\n    return {answer}\n", scope)
    return scope[heading.partition("(")[0]]  # type: ignore[no-any-return]


THINGS = (
    ("weather(city: str) -> str", "'mild'", ("weather in Tokyo", "Paris weather?", "Is it cold in Oslo?"), "mild"),
    ("temperature(city: str) -> float", "21.5", ("Temperature in Rome", "How warm is it in Rome?"), "21.5"),
    ("population(country: str) -> int", "47", ("Population of Spain",), "47"),
    ("distance(a: str, b: str) -> int", "280", ("How far is it from Berlin to Prague?",), "280"),
    ("stock_price(symbol: str) -> float", "187.3", ("How much is AAPL?", "price of AAPL"), "187.3"),
    ("account_balance(account: str) -> float", "5.5", ("How much is in account 12?",), "5.5"),
    ("calculator(expression: str) -> float", "42.0", ("What is 6*7?", "Calculate 6*7"), "42"),
    ("celsius_to_fahrenheit(celsius: float) -> float", "212.0", ("How much is 100 celsius in fahrenheit?",), "212"),
    ("factorial(n: int) -> int", "120", ("Factorial of 5",), "120"),
    ("flights(origin: str, destination: str) -> list[str]", "['L1']", ("Show me flights from Oslo to Rome",), "L1"),
    ("events(day: str) -> list[str]", "['Gig']", ("Events on 2024-05-01", "Which events are on 2024-05-01?"), "Gig"),
    ("web_search(query: str) -> list[str]", "['Loops']", ("Search for 'agent loops'",), "Loops"),
    ("movie(title: str) -> dict", "{'title': title, 'director': 'Nolan'}", ("Who directed Inception?",), "Nolan"),
    ("country_info(country: str) -> dict", "{'capital': 'Paris'}", ("What is the capital of France?",), "Paris"),
)


@pytest.mark.parametrize(("heading", "answer", "questions", "told"), THINGS)
def test_what_is_called_by_things_alone_is_asked(
    heading: str, answer: str, questions: tuple[str, ...], told: str
) -> None:
    for question in questions:
        result = Agent("offline", tools=[tool(_written(heading, answer))]).run_sync(question)

        assert told in result.text, (question, result.text)


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        ("account_transfer(account: str) -> str", "Is account A1 transferred?"),
        ("temperature(room: str, degrees: float) -> float", "Is the temperature in the hall 20?"),
        ("user_delete(name: str) -> str", "Who is Ann?"),
        ("users_groom(name: str) -> list[str]", "Is Ann groomed?"),
        ("lights(room: str) -> list[str]", "Is the hall light?"),
        ("orders(item: str) -> list[str]", "Is the lamp ordered?"),
        ("copy_to_disk(number: int) -> int", "How much is 7?"),
        ("presses(button: str) -> list[str]", "Is B1 pressed?"),
    ],
)
def test_what_is_called_by_a_deed_too_is_not(heading: str, question: str) -> None:
    CALLS.clear()

    Agent("offline", tools=[tool(_written(heading, "1"))]).run_sync(question)

    assert CALLS == []
