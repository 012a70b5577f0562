"""A field of a record says whether something is so, and nothing else of it; who "it" is, and which verb is meant."""

from collections.abc import Callable
from typing import Any, Literal

import pytest

from treadle import Agent, Conversation, tool

CALLS: list[str] = []

BOATS = [
    {"name": "Alba", "berth": 4, "sold": True, "sails": 3},
    {"name": "Cora", "berth": 9, "sold": False, "sails": 2},
]


def list_boats() -> list[dict[str, Any]]:
    """Lists all boats."""
    return BOATS


def get_boat(name: str) -> dict[str, Any]:
    """Looks a boat up by its name."""
    return next(boat for boat in BOATS if boat["name"] == name)


STATED = (
    ("Is Alba sold?", "sold yes"),
    ("Is Cora sold?", "sold no"),
    ("Has Alba been sold?", "sold yes"),
    ("Does Cora have sails?", "sails 2"),
    ("What is the berth of Cora?", "berth 9"),
    ("How many sails does Cora have?", "sails 2"),
    ("What is Cora's berth?", "berth 9"),
)
NOT_STATED = (
    "Is Alba sold to Kim?",
    "Is Alba or Cora sold?",
    "Is every boat sold?",
    "Is Alba a sails?",
    "Is Alba not sold?",
    "Will Alba be sold?",
    "Is Alba insured?",
    "Does Alba have an engine?",
    "Has Kim sold Alba?",
)


@pytest.mark.parametrize("tools", [[list_boats], [get_boat], [list_boats, get_boat]], ids=["list", "one", "both"])
@pytest.mark.parametrize(("question", "told"), STATED)
def test_a_field_tells_whether_it_is_so(tools: list[Callable[..., Any]], question: str, told: str) -> None:
    result = Agent("offline", tools=[tool(each) for each in tools]).run_sync(question)

    assert told in result.text, result.text


@pytest.mark.parametrize("tools", [[list_boats], [get_boat], [list_boats, get_boat]], ids=["list", "one", "both"])
@pytest.mark.parametrize("question", NOT_STATED)
def test_more_than_the_field_says_is_told_of_none(tools: list[Callable[..., Any]], question: str) -> None:
    result = Agent("offline", tools=[tool(each) for each in tools]).run_sync(question)

    assert not any(field in result.text for field in ("sold yes", "sold no", "sails 3")), result.text


def check_in(member: str) -> str:
    """Checks a member in."""
    CALLS.append(member)
    return "welcome"


@pytest.mark.parametrize(
    ("question", "done"),
    [("Check in member Ana", ["Ana"]), ("Check Ana in", ["Ana"]), ("Check in with Ana", []), ("Check in on Ana", [])],
)
def test_a_preposition_behind_the_particle_makes_another_verb(question: str, done: list[str]) -> None:
    CALLS.clear()

    Agent("offline", tools=[tool(check_in)]).run_sync(question)

    assert done == CALLS


HIVES = {"Anton": {"frames": 10, "mites": 3}, "Berta": {"frames": 8, "mites": 12}}


def inspect_hive(hive: str) -> dict[str, Any]:
    """Returns what was seen at the last inspection of a hive."""
    return HIVES[hive]


def feed_hive(hive: str, kilograms: float) -> str:
    """Feeds a hive."""
    CALLS.append(hive)
    return "fed"


@pytest.mark.parametrize("between", ["And Berta?", "Is Berta in a good mood?", "Does Berta sting?"])
def test_it_may_be_what_was_named_last_though_nothing_was_called_for_it(between: str) -> None:
    CALLS.clear()
    agent, talk = Agent("offline", tools=[tool(inspect_hive), tool(feed_hive)]), Conversation()

    for said in ("How many mites does Anton have?", between, "Feed her 2 kg"):
        agent.run_sync(said, conversation=talk)

    assert "Anton" not in CALLS


def tank(number: int) -> dict[str, Any]:
    """Status of a tank."""
    return {"tank": number, "temperature": 18.5, "brewer": "Jan Moe", "filled": "2026-03-01", "beer": "stout"}


def kiln(size: Literal["small", "large"]) -> dict[str, Any]:
    """What a kiln is doing."""
    return {"size": size, "temperature": 610}


@pytest.mark.parametrize(
    ("function", "question", "told"),
    [
        (tank, "How warm is tank 1?", "temperature 18.5"),
        (tank, "Is tank 1 stout?", "beer stout"),
        (kiln, "What is the temperature of the large kiln?", "temperature 610"),
        (kiln, "How hot is the small kiln?", "temperature 610"),
    ],
)
def test_a_degree_and_a_choice_are_asked_of_a_record(function: Callable[..., Any], question: str, told: str) -> None:
    result = Agent("offline", tools=[tool(function)]).run_sync(question)

    assert told in result.text, result.text


SHOWS = [
    {"show": "Tosca", "lead": "Jan Moe", "date": "2026-10-09"},
    {"show": "Aida", "lead": "Eva Ros", "date": "2027-01-02"},
]


def list_shows() -> list[dict[str, Any]]:
    """Lists the shows."""
    return SHOWS


def test_somebody_called_like_a_month_is_no_day() -> None:
    assert "2026-10-09" in Agent("offline", tools=[tool(list_shows)]).run_sync("When is Tosca?").text


SITES = [
    {"site": "Elba", "ward": "A", "status": "running", "replicas": 3, "locked": True},
    {"site": "karst", "ward": "B", "status": "stopped", "replicas": 2, "locked": False},
]


def sites(ward: str | None = None) -> list[dict[str, Any]]:
    """Lists the sites of a ward."""
    return [each for each in SITES if ward in (None, each["ward"])]


def get_site(site: str) -> dict[str, Any]:
    """Looks up a site."""
    return next(each for each in SITES if each["site"] == site)


@pytest.mark.parametrize(
    ("question", "told", "untold"),
    [
        ("Is Elba running?", "status running", "replicas"),
        ("Is Elba stopped?", "status running", "replicas"),
        ("Which sites are running?", "Elba", "karst"),
        ("Which ward is Elba in?", "ward A", "No results"),
        ("How many replicas does karst have?", "replicas 2", "status"),
        ("What is the status of karst?", "status stopped", "replicas"),
        ("Is Elba locked?", "locked", "replicas"),
    ],
)
def test_what_is_asked_of_one_is_no_name_of_it(question: str, told: str, untold: str) -> None:
    reading = [tool(each, effect="read") for each in (sites, get_site)]
    text = Agent("offline", tools=reading).run_sync(question).text

    assert told in text, text
    assert untold not in text, text


def lift(name: str) -> dict[str, Any]:
    """State of a lift."""
    return {"name": name, "locked": True, "floor": 3}


def test_a_yes_is_told_without_the_rest_of_the_record() -> None:
    text = Agent("offline", tools=[tool(lift, effect="read")]).run_sync("Is lift North locked?").text

    assert "locked" in text
    assert "floor" not in text


def court(name: str) -> dict[str, Any]:
    """State of a court."""
    return {"name": name, "free": False, "reason": "new nets", "seats": 40}


def get_work(title: str) -> dict[str, Any]:
    """Looks up a work of art."""
    shows = [{"town": "Bonn", "status": "over"}]
    return {"title": title, "on_loan": True, "sold_out": False, "status": "kept", "shows": shows, "note": "at Ute's"}


def health(service: str) -> dict[str, Any]:
    """Health of a service."""
    return {"service": service, "healthy": True, "uptime": 31}


def state() -> dict[str, Any]:
    """State of the mower."""
    return {"state": "docked", "battery": 77, "bin_full": False}


@pytest.mark.parametrize(
    ("function", "question", "told"),
    [
        (court, "Is court North free?", "reason new nets"),
        (get_work, "Is the Red Rose on loan?", "Red Rose: on loan yes, note at Ute's"),
        (get_work, "Is the Red Rose sold out?", "sold out no"),
        (get_work, "What is the status of the Red Rose?", "Red Rose: status kept"),
        (health, "Is web healthy?", "Yes (healthy). web"),
        (health, "Is jobs healthy?", "Yes (healthy). jobs"),
        (health, "Is the service web healthy?", "Yes (healthy). web"),
        (state, "Is the bin full?", "bin full no"),
        (state, "What is the battery?", "battery 77"),
    ],
)
def test_what_is_so_is_told_with_the_reason_for_it(function: Callable[..., Any], question: str, told: str) -> None:
    text = Agent("offline", tools=[tool(function, effect="read")]).run_sync(question).text

    assert told in text, text
    assert "seats" not in text


@pytest.mark.parametrize(
    ("function", "question"),
    [
        (get_work, "Is the Red Rose on loan to Kim?"),
        (get_work, "Is the Red Rose out?"),
        (get_work, "What is the status of the shows of the Red Rose?"),
        (get_work, "What is the town of the Red Rose?"),
        (state, "Is the bin of T1 full?"),
        (state, "Is the bin half full?"),
        (state, "What is the battery of the car?"),
    ],
)
def test_what_a_record_does_not_say_is_not_told(function: Callable[..., Any], question: str) -> None:
    text = Agent("offline", tools=[tool(function, effect="read")]).run_sync(question).text

    assert not any(field in text for field in ("loan yes", "out no", "kept", "Bonn", "full no", "battery 77")), text


def get_lift(name: str) -> dict[str, Any]:
    """Looks up a lift."""
    return {"name": name, "locked": name == "north", "note": f"{name} door"}


@pytest.mark.parametrize(("name", "so"), [("north", "yes"), ("south", "no")])
def test_two_tools_of_which_one_says_why_tell_the_same(name: str, so: str) -> None:
    """Regression: the list told the flag alone, the record with its note, and neither was believed."""

    def list_lifts() -> list[dict[str, Any]]:
        """Lists all lifts."""
        return [{"name": each, "locked": each == "north"} for each in ("north", "south")]

    reading = [tool(each, effect="read") for each in (list_lifts, get_lift)]
    text = Agent("offline", tools=reading).run_sync(f"Is {name} locked?").text

    assert f"locked {so}, note {name} door" in text, text
