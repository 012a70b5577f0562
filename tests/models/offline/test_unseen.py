"""Questions that nobody had asked before, over tools that the planner had not seen: none is answered as another one."""

from pathlib import Path
from typing import Any, Literal

import pytest

from treadle import Agent, RunResult, Skill, tool
from treadle.analyst import Catalog, analyst_skill, sample_catalog

from .asked.judge import DECLINED
from .asked.sources import Row, ledger, make_catalog, sales

TOTAL = "What is the revenue of shop_sales"


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    return analyst_skill(make_catalog(tmp_path_factory.mktemp("shops")))


def asked(question: str, *functions: Any, skills: tuple[Skill, ...] = ()) -> RunResult:
    return Agent("offline", skills=list(skills), tools=[tool(each) for each in functions]).run_sync(question)


def last(result: RunResult) -> tuple[str, dict[str, Any]]:
    call = result.tool_calls_made[-1]
    return call.name, dict(call.arguments)


def declined(result: RunResult, *names: str) -> bool:
    """Whether nothing was answered, and none of the tools named was called."""
    called = {call.name for call in result.tool_calls_made}
    return not called & set(names) and (DECLINED.search(result.text) is not None or "What I can do" in result.text)


def told(figure: str) -> str:
    whole, _, rest = figure.partition(".")
    return f"{int(whole):,}.{rest}"


def north(row: Row) -> bool:
    return row["region"] == "North"


@pytest.mark.parametrize(
    ("question", "figure"),
    [
        (f"{TOTAL}? Only region North.", sales("revenue", north)),
        (f"{TOTAL}? Not region North.", sales("revenue", lambda row: not north(row))),
        (f"Excluding region North, {TOTAL.lower()}?", sales("revenue", lambda row: not north(row))),
        (f"Please exclude region North. {TOTAL}?", sales("revenue", lambda row: not north(row))),
        (f"Since October 2024, {TOTAL.lower()}?", sales("revenue", lambda row: str(row["month"]) >= "2024-10")),
        (f"Throughout 2023, {TOTAL.lower()}?", sales("revenue", lambda row: str(row["month"]) < "2024")),
        (f"{TOTAL} throughout 2023?", sales("revenue", lambda row: str(row["month"]) < "2024")),
    ],
)
def test_a_condition_in_a_sentence_of_its_own_holds_for_the_question_beside_it(
    shops: Skill, question: str, figure: str
) -> None:
    text = asked(question, skills=(shops,)).text
    assert told(figure) in text
    assert told(sales("revenue")) not in text


@pytest.mark.parametrize(
    "question",
    [
        f"{TOTAL}. Don't include region North.",
        f"{TOTAL}? Ignore region North.",
        f"During 2023. {TOTAL}?",
        f"Without tea. {TOTAL}?",
        f"{TOTAL} for region North and the rest?",
        f"{TOTAL} for region North or elsewhere?",
        f"{TOTAL} without region North and product is tea?",
        f"{TOTAL} where region is not North and product is tea?",
        f"{TOTAL} without region North, product tea?",
        f"{TOTAL} in every month but May 2024 and region North?",
        "What is the amount of general_ledger for account 400100 and above?",
        "What is the amount of general_ledger for company 1001 and others?",
        "Are revenue and quantity of shop_sales more than 10000?",
        "Is the revenue of shop_sales by region more than 100000?",
        "Is the revenue of shop_sales more than 3 for each region?",
    ],
)
def test_a_condition_that_may_mean_two_things_is_not_guessed(shops: Skill, question: str) -> None:
    result = asked(question, skills=(shops,))
    assert declined(result)
    assert "Nothing was found" not in result.text
    assert not any(figure in result.text for figure in (told(sales("revenue")), told(ledger())))


@pytest.mark.parametrize(
    ("question", "dimensions"),
    [
        (f"{TOTAL} for each region?", ["region"]),
        (f"{TOTAL} for every region?", ["region"]),
        (f"{TOTAL} for each product and channel?", ["product", "channel"]),
        (f"{TOTAL} in each month of 2024?", ["month"]),
        (f"{TOTAL} by region and the total?", ["region"]),
    ],
)
def test_each_of_a_dimension_is_a_group(shops: Skill, question: str, dimensions: list[str]) -> None:
    name, arguments = last(asked(question, skills=(shops,)))
    assert name == "query_source"
    assert arguments["dimensions"] == dimensions
    months = {"dimension": "month", "op": "between", "value": ["2024-01", "2024-12"]}
    assert arguments.get("filters", []) == ([months] if "2024" in question else [])


def test_a_field_called_a_year_by_its_synonym_takes_years(tmp_path: Path) -> None:
    (tmp_path / "budget_plan.csv").write_text("gjahr,amount\n2023,5\n2024,7\n", encoding="utf-8")
    (tmp_path / "sources.yaml").write_text(
        "sources:\n  budget_plan:\n    description: The plan.\n    kind: csv\n    path: budget_plan.csv\n"
        "    dimensions:\n      gjahr: {synonyms: [fiscal year]}\n    measures:\n      amount: {aggregation: sum}\n",
        encoding="utf-8",
    )
    skill = analyst_skill(Catalog.load(tmp_path / "sources.yaml"))
    assert last(asked("What is the amount of budget_plan in 2024?", skills=(skill,)))[1]["filters"] == [
        {"dimension": "gjahr", "op": "=", "value": "2024"}
    ]
    assert declined(asked("What is the amount of budget_plan in March 2024?", skills=(skill,)), "query_source")


def weather_on(city: str, day: str | None = None, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Tells the highest temperature in a city on a day.

    Args:
        city: the city.
        day: the day, as YYYY-MM-DD; today without it.
        unit: the unit of the temperature.
    """
    return f"{city} {day} {unit}"


def rain_forecast(city: str, days: int = 3) -> str:
    """Tells the millimetres of rain that are expected in a city, day by day.

    Args:
        city: the city.
        days: for how many days ahead.
    """
    return f"rain {city} {days}"


def test_a_choice_of_units_makes_no_city_doubtful() -> None:
    assert last(asked("What is the temperature in Wien?", weather_on, rain_forecast)) == (
        "weather_on",
        {"city": "Wien"},
    )


@pytest.mark.parametrize("when", ["on Tuesday", "in March"])
def test_a_day_of_the_week_and_a_month_are_no_city(when: str) -> None:
    assert not asked(f"What is the temperature {when}?", weather_on, rain_forecast).tool_calls_made


def test_the_second_day_is_not_two_days() -> None:
    assert last(asked("How much rain is expected in Wien for 2 days?", rain_forecast))[1] == {"city": "Wien", "days": 2}
    assert declined(asked("How much rain is expected in Wien on day 2?", rain_forecast), "rain_forecast")


def test_the_day_before_is_a_day() -> None:
    question = "What is the temperature in Wien on the day before 2024-03-01?"
    assert last(asked(question, weather_on))[1] == {"city": "Wien", "day": "2024-02-29"}


def list_events(date_from: str | None = None, date_to: str | None = None, attendee: str | None = None) -> list[str]:
    """Lists calendar events.

    Args:
        date_from: only events from this day on, as YYYY-MM-DD.
        date_to: only events up to this day, as YYYY-MM-DD.
        attendee: only events that this person attends.
    """
    return [f"{date_from} {date_to} {attendee}"]


def test_the_day_after_is_no_bound() -> None:
    wanted = {"date_from": "2026-11-24", "date_to": "2026-11-24"}
    assert last(asked("List events of the day after 2026-11-23", list_events))[1] == wanted


@pytest.mark.parametrize("name", ["May", "Will"])
def test_a_name_that_is_a_verb_elsewhere_is_not_passed_over(name: str) -> None:
    result = asked(f"What events does {name} attend?", list_events)
    assert f"“{name}”" in result.text or last(result)[1] == {"attendee": name}


def list_products(category: str | None = None, in_stock_only: bool = False) -> list[str]:
    """Lists products.

    Args:
        category: only products of this category.
        in_stock_only: only products that are in stock.
    """
    return [f"{category} {in_stock_only}"]


def test_out_of_stock_is_not_in_stock() -> None:
    assert last(asked("List the products that are in stock", list_products))[1] == {"in_stock_only": True}
    result = asked("List the products that are out of stock", list_products)
    assert DECLINED.search(result.text)
    assert all(not call.arguments.get("in_stock_only") for call in result.tool_calls_made)


def list_mails(unread_only: bool = False) -> list[str]:
    """Lists the mails in the inbox.

    Args:
        unread_only: only mails that are unread.
    """
    return [f"mail {unread_only}"]


def count_mails() -> dict[str, int]:
    """Counts the mails in the inbox."""
    return {"count": 3}


def read_mail(mail_id: int) -> str:
    """Reads one mail."""
    return f"mail {mail_id}"


def test_how_many_there_are_is_the_identifier_of_none() -> None:
    result = asked("List read mails", list_mails, count_mails, read_mail)
    assert "read_mail" not in [call.name for call in result.tool_calls_made]
    assert last(asked("List unread mails", list_mails, count_mails, read_mail))[1] == {"unread_only": True}


def population(country: str) -> dict[str, Any]:
    """Tells the population of a country in millions."""
    return {"country": country, "population_millions": 68}


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        ("Is the population of France over 50 million?", "Yes."),
        ("Is the population of France over 70 million?", "No."),
        ("Is the population of France over 50000000?", "France: population millions 68"),
    ],
)
def test_a_figure_told_in_millions_is_compared_as_such(question: str, verdict: str) -> None:
    assert asked(question, population).text.startswith(verdict)


def kilometers_between(origin: str, destination: str) -> dict[str, Any]:
    """Tells the distance from an origin to a destination in kilometers."""
    return {"kilometers": 344}


def test_a_figure_in_one_unit_is_not_compared_with_a_number_in_another() -> None:
    assert asked("Is the distance from Paris to London more than 300 km?", kilometers_between).text.startswith("Yes.")
    result = asked("Is the distance from Paris to London more than 300 miles?", kilometers_between)
    assert DECLINED.search(result.text)


def convert_temperature(degrees: float, to: Literal["celsius", "fahrenheit", "kelvin"]) -> str:
    """Converts a temperature given in degrees Celsius.

    Args:
        degrees: the temperature in degrees Celsius.
        to: the scale to convert to.
    """
    return f"{degrees} {to}"


def test_what_is_converted_to_is_what_stands_behind_to() -> None:
    wanted = {"degrees": 20, "to": "fahrenheit"}
    assert last(asked("Convert 20 degrees celsius to fahrenheit", convert_temperature))[1] == wanted
    assert declined(asked("Convert 20 degrees fahrenheit to celsius", convert_temperature), "convert_temperature")


def convert(amount: float, from_currency: str, to_currency: str) -> str:
    """Converts an amount of money from one currency to another."""
    return f"{amount} {from_currency} {to_currency}"


def test_what_stands_behind_from_is_not_converted_to() -> None:
    wanted = {"amount": 100, "from_currency": "USD", "to_currency": "EUR"}
    assert last(asked("Convert 100 dollars to euros", convert))[1] == wanted
    assert declined(asked("Convert 100 dollars from euros", convert), "convert")


def salary(person: str) -> dict[str, int]:
    """Tells what a person earns in a year."""
    return {"salary": 52000}


def give_raise(person: str, percent: float) -> str:
    """Raises the salary of a person by a percentage."""
    return f"raised {percent}"


def test_a_raise_is_given_to_nobody_unless_it_is_ordered() -> None:
    result = asked("What would Anna Schmidt earn with a raise of 10 percent?", salary, give_raise)
    assert "give_raise" not in [call.name for call in result.tool_calls_made]
    wanted = ("give_raise", {"person": "Anna Schmidt", "percent": 5})
    assert last(asked("Give Anna Schmidt a raise of 5 percent", salary, give_raise)) == wanted


def search_tickets(query: str, limit: int = 10) -> str:
    """Searches tickets by text."""
    return f"{query} {limit}"


def test_how_many_to_find_is_not_searched_for() -> None:
    for question in ("Search tickets about printers, top 5", "Search tickets about printers limit 5"):
        assert last(asked(question, search_tickets))[1] == {"query": "printers", "limit": 5}
    assert declined(asked("Search tickets about printers from last week", search_tickets), "search_tickets")


def test_a_list_is_not_a_count() -> None:
    assert declined(asked("List the mails I have read", list_mails, count_mails, read_mail), "read_mail")


@pytest.mark.parametrize("when", ["2026-10-05", "the day after 2026-10-04"])
def test_a_day_right_behind_a_noun_is_that_day_alone(when: str) -> None:
    wanted = {"date_from": "2026-10-05", "date_to": "2026-10-05"}
    assert last(asked(f"List the calendar events {when}", list_events))[1] == wanted


def list_people(hired_after: str | None = None, hired_before: str | None = None) -> list[str]:
    """Lists people.

    Args:
        hired_after: only people hired after this day, as YYYY-MM-DD.
        hired_before: only people hired before this day, as YYYY-MM-DD.
    """
    return [f"{hired_after} {hired_before}"]


@pytest.mark.parametrize(
    ("when", "after", "before"),
    [
        ("on 2021-01-10", "2021-01-09", "2021-01-11"),
        ("in January 2021", "2020-12-31", "2021-02-01"),
        ("between 2015-06-30 and 2019-04-01", "2015-06-29", "2019-04-02"),
    ],
)
def test_a_day_is_neither_after_nor_before_itself(when: str, after: str, before: str) -> None:
    wanted = {"hired_after": after, "hired_before": before}
    assert last(asked(f"List people hired {when}", list_people))[1] == wanted


def test_today_is_not_the_days_ahead() -> None:
    assert declined(asked("How much rain is expected in Wien today?", rain_forecast), "rain_forecast")


def convert_volume(value: float, source: Literal["l", "ml", "gal"], target: Literal["l", "ml", "gal"]) -> str:
    """Converts a volume from a source unit to a target unit."""
    return f"{value} {source} {target}"


@pytest.mark.parametrize("order", ["5 l to gal", "to gal 5 l", "5 to gal from l"])
def test_the_unit_behind_to_is_the_target_wherever_it_stands(order: str) -> None:
    wanted = {"value": 5, "source": "l", "target": "gal"}
    assert last(asked(f"Convert {order}", convert_volume))[1] == wanted


def find_project(name: str) -> dict[str, int]:
    """Finds a project by its name."""
    return {"project_id": 7}


def hours_booked(project_id: int, member: str | None = None) -> dict[str, int]:
    """Tells how many hours were booked on a project.

    Args:
        project_id: the project.
        member: only the hours of this member.
    """
    return {"hours": 65 if member is None else 0}


def project_members(project_id: int, role: Literal["developer", "designer"] | None = None) -> list[str]:
    """Lists the members of a project."""
    return ["Ana", "Uwe"]


def test_one_name_is_not_two_things() -> None:
    tools = (find_project, project_members, hours_booked)
    assert last(asked("How many hours were booked on Apollo?", *tools)) == ("hours_booked", {"project_id": 7})
    result = asked("How many members does Apollo have?", *tools)
    assert "hours_booked" not in [call.name for call in result.tool_calls_made]


def test_a_second_question_is_not_added_to_the_first(shops: Skill) -> None:
    text = asked(f"{TOTAL} for region North? And South?", skills=(shops,)).text
    assert told(sales("revenue", north)) in text
    assert "“And South”" in text


def test_a_limit_in_a_sentence_of_its_own_holds_for_a_comparison(tmp_path: Path) -> None:
    skill = analyst_skill(sample_catalog(tmp_path))
    question = "Compare fi_reporting and bpc_reporting. Only company 2001. Not account 800200."
    result = asked(question, skills=(skill,))
    assert [call.name for call in result.tool_calls_made] == ["list_sources", "compare_sources"]
    held = [(row["dimension"], row["op"], row["value"]) for row in last(result)[1]["filters"]]
    assert held == [("company", "=", "2001"), ("account", "!=", "800200")]
