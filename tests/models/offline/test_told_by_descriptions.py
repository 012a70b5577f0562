"""What only descriptions tell: values without an `enum`, what a `name` is the name of, days of the week, changes.

Each was answered wrongly by the planner, for everyday tools whose schema says no more than a type.
"""

from typing import Any, Literal

import pytest

from treadle import Agent, RunResult, tool

from .asked.judge import DECLINED

STAFF = [
    {"name": "Ann", "department": "Sales", "vacation_left": 12},
    {"name": "Bo", "department": "Sales", "vacation_left": 4},
    {"name": "Cat", "department": "IT", "vacation_left": 21},
]
SHOWN = [
    {"film": "Metropolis", "hall": "A", "seats_left": 14},
    {"film": "Alien", "hall": "B", "seats_left": 0},
    {"film": "Alien", "hall": "A", "seats_left": 33},
]


@tool(effect="read")
def employees(department: str | None = None) -> list[dict[str, Any]]:
    """Lists employees with the vacation days that they have left.

    Args:
        department: Sales, IT or Office.
    """
    return [each for each in STAFF if department in (None, each["department"])]


@tool(effect="read")
def screenings(hall: str | None = None) -> list[dict[str, Any]]:
    """Lists tonight's screenings with the seats that are left.

    Args:
        hall: "A", "B" or "C".
    """
    return [each for each in SHOWN if hall in (None, each["hall"])]


@tool(effect="read")
def current_weather(city: str, unit: str = "celsius") -> dict[str, Any]:
    """The weather in a city now.

    Args:
        city: the city's name.
        unit: celsius or fahrenheit.
    """
    return {"city": city, "temperature": 50 if unit == "fahrenheit" else 10}


@tool(effect="read")
def transactions(account: str, category: str | None = None) -> list[dict[str, Any]]:
    """Lists an account's transactions.

    Args:
        account: giro, savings or travel.
        category: housing, income or food.
    """
    rows = [{"text": "rent", "category": "housing"}, {"text": "groceries", "category": "food"}]
    return [row for row in rows if account == "giro" and category in (None, row["category"])]


@tool(effect="read")
def opening_hours(weekday: str) -> dict[str, str]:
    """Tells when the clinic opens and closes on a day of the week."""
    return {"opens": "08:00", "closes": "12:00" if weekday.lower() == "wednesday" else "17:30"}


@tool(effect="read")
def recipe(item: str) -> dict[str, Any]:
    """Tells for how many minutes, and at what temperature, an item is baked."""
    return {"item": item, "minutes": 18, "temperature_c": 220}


@tool(effect="read")
def forecast() -> list[dict[str, Any]]:
    """The weather forecast of the next days: sun and rain."""
    return [{"day": "Monday", "sky": "rain"}, {"day": "Tuesday", "sky": "sun"}, {"day": "Wednesday", "sky": "rain"}]


@tool(effect="read")
def meals(meal: str) -> dict[str, str]:
    """Tells when a meal is served.

    Args:
        meal: breakfast, lunch or dinner.
    """
    return {"meal": meal, "from": "07:00", "to": "10:30"}


@tool(effect="read")
def grades(pupil: str) -> list[dict[str, Any]]:
    """Lists a pupil's grades.

    Args:
        pupil: who.
    """
    return [{"pupil": pupil, "subject": "maths", "grade": 2}]


def asked(question: str, *tools: Any) -> RunResult:
    return Agent("offline", tools=tools).run_sync(question)


def calls(result: RunResult) -> list[dict[str, Any]]:
    return [dict(call.arguments) for call in result.tool_calls_made]


@pytest.mark.parametrize(
    ("question", "read", "arguments"),
    [
        ("How many employees are in Sales?", employees, {"department": "Sales"}),
        ("How many employees are in the IT department?", employees, {"department": "IT"}),
        ("How many screenings are there in hall A?", screenings, {"hall": "A"}),
        ("What is the temperature in Bonn in fahrenheit?", current_weather, {"unit": "fahrenheit", "city": "Bonn"}),
        (
            "How many food transactions are there in giro?",
            transactions,
            {"account": "giro", "category": "food"},
        ),
    ],
)
def test_a_value_that_a_description_lists_is_given(question: str, read: Any, arguments: dict[str, Any]) -> None:
    assert calls(asked(question, read)) == [arguments]


def test_a_word_of_an_option_that_is_not_given_is_not_passed_over() -> None:
    @tool(effect="read")
    def tickets(priority: str | None = None) -> list[dict[str, str]]:
        """Lists the tickets.

        Args:
            priority: how urgent they have to be at least.
        """
        return [{"ticket": "T-1", "priority": "low"}, {"ticket": "T-2", "priority": "urgent"}]

    assert "2 listed" not in asked("How many urgent tickets are there?", tickets).text


def test_kinds_of_what_is_taken_are_no_values() -> None:
    @tool(effect="read")
    def find_book(query: str) -> str:
        """Finds a book.

        Args:
            query: title or author.
        """
        return f"found by {query}"

    assert "found by Emma" in asked('Find the book "Emma".', find_book).text


def test_a_transfer_to_an_account_that_is_none_of_those_listed_is_not_made() -> None:
    made: list[tuple[int, str, str]] = []

    @tool
    def transfer(amount: int, from_account: str, to_account: str) -> str:
        """Transfers money between my accounts.

        Args:
            amount: in EUR.
            from_account: giro or savings.
            to_account: giro or savings.
        """
        made.append((amount, from_account, to_account))
        return "done"

    asked("Transfer 100 from giro to Ada.", transfer)
    assert made == []
    asked("Transfer 100 from giro to savings.", transfer)
    assert made == [(100, "giro", "savings")]


@pytest.mark.parametrize("question", ["When does the clinic close on Wednesday?", "When does it close on wednesdays?"])
def test_a_day_of_the_week_goes_where_one_is_taken(question: str) -> None:
    result = asked(question, opening_hours)
    assert [call["weekday"].lower() for call in calls(result)] == ["wednesday"]
    assert "12:00" in result.text


def test_nothing_but_a_day_of_the_week_goes_where_one_is_taken() -> None:
    assert calls(asked("When does the clinic open?", opening_hours)) == []


def test_how_long_is_no_name_and_neither_is_what_is_done_with_it() -> None:
    assert calls(asked("How long is a croissant baked?", recipe)) == [{"item": "croissant"}]
    assert calls(asked("At what temperature is a pretzel baked?", recipe)) == [{"item": "pretzel"}]


def test_a_name_goes_to_the_person_and_not_what_stands_behind_it() -> None:
    assert calls(asked("What grade does Finn have?", grades)) == [{"pupil": "Finn"}]
    result = asked("What grade does Finn have in maths?", grades)
    assert calls(result) == [{"pupil": "Finn"}]
    assert "(subject maths)" in result.text


@pytest.mark.parametrize(
    ("question", "read"),
    [
        ("How many seats are left?", screenings),
        ("How many vacation days does Cat have left?", employees),
    ],
)
def test_what_is_listed_is_not_the_number_of_something_else(question: str, read: Any) -> None:
    text = asked(question, read).text
    assert "listed" not in text
    assert DECLINED.search(text)


@pytest.mark.parametrize(
    "question", ["How many days of rain are in the forecast?", "How many rain days are in the forecast?"]
)
def test_those_of_a_list_that_are_meant_are_counted(question: str) -> None:
    text = asked(question, forecast).text
    assert text.startswith("2 of the 3")
    assert "Tuesday" not in text


def test_all_that_is_listed_is_counted() -> None:
    assert "3 listed" in asked("How many days are in the forecast?", forecast).text
    assert "3 listed" in asked("How many screenings are there tonight?", screenings).text


def test_hours_do_not_tell_what_is_served() -> None:
    assert "07:00" not in asked("What is served at breakfast?", meals).text
    assert "07:00" in asked("When is breakfast served?", meals).text


def test_a_tool_that_is_described_by_a_change_is_only_called_when_commanded() -> None:
    made: list[tuple[str, str]] = []

    @tool
    def join(name: str, sport: str) -> str:
        """Enrols a member in a sport."""
        made.append((name, sport))
        return f"{name} joined {sport}"

    for question in ("Should Pia join judo?", "Did Pia join judo?", "May Pia join judo?"):
        asked(question, join)
    assert made == []
    asked("Join Pia to judo.", join)
    assert made == [("Pia", "judo")]


def test_a_title_keeps_its_dot_and_ends_no_sentence() -> None:
    made: list[str] = []

    @tool(effect="write")
    def book_appointment(patient: str, doctor: str) -> str:
        """Books an appointment for a patient."""
        made.append(f"{patient} with {doctor}")
        return "booked"

    asked("Book Ty Fox with Dr. Moss.", book_appointment)
    assert made == ["Ty Fox with Dr. Moss"]


def test_a_name_whose_description_says_whose_it_is_takes_a_person() -> None:
    made: list[str] = []

    @tool(effect="write")
    def request_vacation(name: str, first_day: str) -> str:
        """Requests vacation for an employee.

        Args:
            name: the employee's name.
            first_day: as YYYY-MM-DD.
        """
        made.append(f"{name} from {first_day}")
        return "requested"

    asked("Request vacation for Dan Falk from 2026-12-21.", request_vacation)
    assert made == ["Dan Falk from 2026-12-21"]


def test_a_list_that_does_not_settle_which_is_meant_is_not_said_to_give_none() -> None:
    @tool(effect="read")
    def rooms() -> list[dict[str, Any]]:
        """Lists the rooms."""
        return [{"room": 101}, {"room": 102}]

    @tool(effect="read")
    def minibar(room: int) -> dict[str, int]:
        """Tells how many bottles of a room's minibar are free."""
        return {"free": 3}

    text = asked("How many bottles are free?", rooms, minibar).text
    assert "gave no" not in text


def test_a_choice_is_not_which_of_many_nor_the_unit_of_a_number() -> None:
    @tool(effect="read")
    def flights(cabin: Literal["economy", "business", "first"] | None = None) -> list[dict[str, str]]:
        """Lists flights."""
        rows = [{"flight": "LH1", "cabin": "economy"}, {"flight": "LH3", "cabin": "first"}]
        return [row for row in rows if cabin in (None, row["cabin"])]

    @tool(effect="read")
    def convert_length(value: float, to: str) -> dict[str, Any]:
        """Converts a length in metres.

        Args:
            value: in metres.
            to: feet, inches or yards.
        """
        return {"value": value * 3.28, "unit": to}

    assert "LH3" not in asked("Which is the first flight?", flights).text
    assert calls(asked("Which flights are in first class?", flights)) == [{"cabin": "first"}]
    assert calls(asked("How much is 3 feet in metres?", convert_length)) == []
    assert calls(asked("How much is 3 metres in feet?", convert_length)) == [{"to": "feet", "value": 3}]


def test_what_is_not_found_in_a_question_is_not_said_to_be_missing_there() -> None:
    @tool(effect="write")
    def raise_salary(name: str, percent: float) -> str:
        """Raises an employee's salary by a percentage."""
        return "raised"

    text = asked("Raise the salary by 3%.", raise_salary).text
    assert "does not say" not in text
    assert "`name`, which I do not find in the question" in text


def test_a_description_that_says_what_is_done_to_a_thing_is_that_of_a_change() -> None:
    made: list[tuple[str, str]] = []

    @tool
    def adopt(pet: str, adopter: str) -> str:
        """Records an adoption."""
        made.append((pet, adopter))
        return f"{adopter} adopted {pet}"

    for question in ("Did Eva adopt Mia?", "Has Mia been adopted by Eva?", "Should Eva adopt Mia?"):
        asked(question, adopt)
    assert made == []
    asked("Adopt Mia for Eva.", adopt)
    assert made == [("Mia", "Eva")]
