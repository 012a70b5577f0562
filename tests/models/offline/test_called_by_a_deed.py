"""A function that is called by a verb for what is done to things is called by no question, whatever heading stands in
its docstring: "Seal of a case file" of `seal` does not say that it tells one."""

from itertools import product
from typing import Any

import pytest

from treadle import Agent, tool

MADE: list[tuple[str, dict[str, Any]]] = []


def made_by(name: str, description: str, takes: str = "case: str") -> Any:
    source = (
        f"def {name}({takes}):\n    {description!r}\n    MADE.append(({name!r}, dict(locals())))\n    return 'done'\n"
    )
    space: dict[str, Any] = {"MADE": MADE}
    exec(source, space)
    return space[name]


def docket() -> list[dict[str, Any]]:
    """Today's docket."""
    return [{"case": "C-101", "judge": "Ruiz", "room": 4}, {"case": "C-102", "judge": "Baum", "room": 1}]


def asked(question: str, *tools: Any) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    MADE.clear()
    return Agent("offline", tools=[*tools]).run_sync(question).text, [*MADE]


DEEDS = ["seal", "harvest", "merge", "forget", "recall", "report", "expunge", "load"]
HEADINGS = [
    "",
    "{} of a case",
    "{} of a case file",
    "Case to {}",
    "Case {} by id",
    "{} details",
    "For {}ing a case",
    "Case",
]
QUESTIONS = [
    "Who is the judge in C-102?",
    "Which room is C-101 in?",
    "{} of C-101",
    "the {} of C-101",
    "What is the {} of C-101?",
    "Is C-101 {}ed?",
    "Is there a {} of C-101?",
    "{} details of C-101",
    "We {}ed C-101",
]


@pytest.mark.parametrize(("deed", "heading"), [*product(DEEDS, HEADINGS)])
def test_no_question_calls_what_is_called_by_a_deed(deed: str, heading: str) -> None:
    said = heading.format(deed)
    tool = made_by(f"{deed}_case", said[:1].upper() + said[1:])
    for question in QUESTIONS:
        assert asked(question.format(deed), docket, tool)[1] == [], (said, question)


@pytest.mark.parametrize(
    ("name", "heading", "takes", "question"),
    [
        ("seal", "Seal of a case file", "case: str", "Which cases does Ruiz judge?"),
        ("seal", "Seal of a case file", "case: str", "I'd like to know the seal of C-101"),
        ("drain", "", "tank: int", "the drain of tank 3"),
        ("record", "", "minutes: int", "What is the record of 30 minutes?"),
        (
            "report_lost",
            "Report of a lost item on a line",
            "item: str, line: int",
            "Was an umbrella reported lost on line 7?",
        ),
        ("forget_term", "Terms to forget", "term: str", "Terms to forget: loom"),
        ("merge_terms", "Merge of one term into another", "source: str, target: str", "Merge of loom into weft"),
        ("spray_field", "Spraying record for a field", "field: str, product: str", "What grows on the south field?"),
        ("expunge", "Expunge details", "name: str", "Expunge details of Alba"),
        ("feed", "Feed of a hive", "hive: int", "What is the feed of hive 3?"),
        ("chase", "Filter", "name: str", "Chase of X7"),
    ],
)
def test_no_heading_makes_a_deed_tell(name: str, heading: str, takes: str, question: str) -> None:
    assert asked(question, docket, made_by(name, heading, takes))[1] == []


@pytest.mark.parametrize(
    ("name", "heading", "takes", "question", "given"),
    [
        ("seal", "Seal of a case file", "case: str", "Seal C-101", {"case": "C-101"}),
        ("harvest", "Harvest of a field", "field: str", "Harvest field B7", {"field": "B7"}),
        ("forget_term", "Terms to forget", "term: str", "Forget the term loom", {"term": "loom"}),
        ("drain", "", "tank: int", "Drain tank 3", {"tank": 3}),
        (
            "report_lost",
            "Report of a lost item on a line",
            "item: str, line: int",
            "Report a lost umbrella on line 7",
            {"item": "umbrella", "line": 7},
        ),
        ("dispose_bottle", "Dispose of a bottle", "bottle: int", "Dispose of bottle 3", {"bottle": 3}),
    ],
)
def test_its_own_verb_orders_it(name: str, heading: str, takes: str, question: str, given: dict[str, Any]) -> None:
    assert asked(question, made_by(name, heading, takes))[1] == [(name, given)]


@pytest.mark.parametrize(
    ("name", "heading", "takes", "question"),
    [
        ("water_level", "Water level of a tank", "tank: int", "What is the water level of tank 2?"),
        (
            "train_departures",
            "Departures from a station",
            "station: str",
            "Which train departures are there from Basel?",
        ),
        ("salary", "Salary of a person", "person: str", "What is the salary of Ann?"),
        ("capital", "Capital of a country", "country: str", "What is the capital of Peru?"),
        ("weather", "", "city: str", "the weather in Oslo"),
    ],
)
def test_a_thing_is_told(name: str, heading: str, takes: str, question: str) -> None:
    assert len(asked(question, made_by(name, heading, takes))[1]) == 1


@pytest.mark.parametrize(
    ("name", "heading", "question"),
    [
        ("free_slots", "Frees all slots", "Which slots are free?"),
        ("open_doors", "Opens doors", "How many doors are open?"),
        ("crates", "Ships the crates", "Which crates are there?"),
        ("launches", "Launches all probes", "How many launches are there?"),
        ("refunds", "Refunds all orders", "Show me the refunds"),
        ("lights", "Turns on lights", "Which lights are on?"),
        ("backups", "Backs up everything", "Show me the backups"),
    ],
)
def test_no_list_is_what_a_description_says_is_done(name: str, heading: str, question: str) -> None:
    def done() -> list[str]:
        MADE.append((name, {}))
        return ["a"]

    done.__name__, done.__doc__ = name, heading
    assert asked(question, done)[1] == []


@pytest.mark.parametrize(
    "described",
    [
        "Look up the seat price for a flight.",
        "Looks up a seat price",
        "This tool returns the seat price.",
        "Tells you the price of a seat.",
        "Give me the price of a seat.",
        "The current price of the seat.",
        "Current seat price.",
    ],
)
@pytest.mark.parametrize("question", ["Show the seat price for 12A", "Seat price of 12A"])
def test_what_is_said_to_tell_something_does(described: str, question: str) -> None:
    def seat_price(seat: str) -> float:
        return 9.5

    seat_price.__doc__ = described

    assert "9.5" in Agent("offline", tools=[tool(seat_price)]).run_sync(question).text


@pytest.mark.parametrize(
    "described", ["The crate to ship.", "This tool ships crates.", "The current shipping of crates, by name."]
)
def test_an_article_before_a_thing_does_not_make_its_deed_tell(described: str) -> None:
    made: list[str] = []

    def ship_crate(crate: str) -> str:
        made.append(crate)
        return "ok"

    ship_crate.__doc__ = described
    for question in ("Is crate C7 shipped?", "What is the crate of C7?", "Who ships C7?", "Where is crate C7?"):
        Agent("offline", tools=[tool(ship_crate)]).run_sync(question)

    assert made == []
