"""What a fresh set of questions found: other money, many for one, a part for the whole, a list for a sum, mere words
for a name, and figures chosen by words that were said to be left out."""

from typing import Any, Literal

import pytest

from treadle import Agent, RunResult, tool

Account = Literal["rent", "holiday", "savings"]
HIVES = [
    {"hive": "Rosemary", "site": "orchard", "honey_kg": 14.5},
    {"hive": "Thyme", "site": "roof", "honey_kg": 3.25},
]


@tool
def transfer(source: Account, target: Account, euros: float) -> str:
    """Transfers money from one account to another.

    Args:
        source: the account to take from.
        target: the account to give to.
        euros: how much.
    """
    return f"{euros} EUR moved from {source} to {target}"


@tool
def refund(order: str, amount: float) -> str:
    """Refunds an order.

    Args:
        order: its number, such as "O-12".
        amount: how much, in euros.
    """
    return f"{amount} for {order}"


@tool
def pay(to: str, amount: float, currency: Literal["EUR", "CHF", "USD"] = "EUR") -> str:
    """Pays somebody.

    Args:
        to: who is paid.
        amount: how much.
        currency: to pay in.
    """
    return f"{amount} {currency} to {to}"


@tool
def move_appointment(pet: str, day: str) -> str:
    """Moves the appointment of an animal to another day.

    Args:
        pet: the animal's name.
        day: the new day, such as "2026-10-05".
    """
    return f"{pet} is now on {day}"


@tool(effect="read")
def balance(account: Account) -> float:
    """Tells the balance of an account in euros."""
    return 3200.0


@tool(effect="read")
def pantry(page: int = 1) -> dict[str, Any]:
    """Lists what is in the pantry, two things to a page.

    Args:
        page: which page, from 1.
    """
    return {"items": ["rice", "flour"], "page": page, "pages": 3, "total": 5}


@tool(effect="read")
def hives() -> list[dict[str, Any]]:
    """Lists the bee hives with their site and honey in kilograms."""
    return HIVES


@tool(effect="read")
def votes(district: str, year: int) -> dict[str, Any]:
    """Tells the votes of a district in an election year.

    Args:
        district: its name.
        year: of the election.
    """
    return {"district": district, "greens": 1222, "reds": 900}


@tool(effect="read")
def rehearsals(month: str) -> list[str]:
    """Lists the days on which the choir rehearses in a month.

    Args:
        month: such as "2026-03".
    """
    return [f"{month}-04"]


@tool(effect="read")
def rental_price(instrument: str, months: int) -> dict[str, Any]:
    """Tells what renting an instrument costs.

    Args:
        instrument: such as "cello".
        months: for how long.
    """
    return {"price": 35.0 * months, "deposit": 100.0}


def asked(question: str, *tools: Any) -> RunResult:
    return Agent("offline", tools=list(tools)).run_sync(question)


def calls(result: RunResult) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in result.tool_calls_made]


@pytest.mark.parametrize(
    "question",
    [
        "Transfer 50 dollars from savings to rent.",
        "Transfer $50 from savings to rent.",
        "Refund 20 dollars for O-12.",
        "Refund £20 for O-12.",
        "Pay 50 yen to Ann.",
    ],
)
def test_an_amount_in_other_money_is_not_paid(question: str) -> None:
    assert calls(asked(question, transfer, refund, pay)) == []


@pytest.mark.parametrize(
    ("question", "call"),
    [
        ("Transfer 50 euros from savings to rent.", {"source": "savings", "target": "rent", "euros": 50}),
        ("Refund €20 for O-12.", {"order": "O-12", "amount": 20}),
        ("Pay $50 to Ann.", {"to": "Ann", "amount": 50, "currency": "USD"}),
        ("Pay 50 dollars to Ann.", {"to": "Ann", "amount": 50, "currency": "USD"}),
    ],
)
def test_an_amount_is_paid_in_the_money_that_was_said(question: str, call: dict[str, Any]) -> None:
    assert [arguments for _, arguments in calls(asked(question, transfer, refund, pay))] == [call]


@pytest.mark.parametrize(
    "question",
    [
        "Move all appointments of Dr. Orth to 2026-10-06.",
        "Move the appointments of Mimi to 2026-10-06.",
        "Move every appointment of Mimi to 2026-10-06.",
    ],
)
def test_a_command_about_many_is_none_to_a_tool_that_takes_one(question: str) -> None:
    assert calls(asked(question, move_appointment)) == []


def test_a_page_is_not_told_for_the_whole_list() -> None:
    text = asked("What is in the pantry?", pantry).text
    assert text.startswith("This is only a part of the list (page 1, pages 3, total 5).")


@pytest.mark.parametrize("beside", [{"total": 40}, {"pages": 320}, {"next": "2026-05-01"}, {"remaining": 9}])
def test_a_list_beside_other_figures_is_no_part(beside: dict[str, Any]) -> None:
    @tool(effect="read")
    def order(number: str) -> dict[str, Any]:
        """Shows an order."""
        return {"number": number, "things": ["pen", "ink"], **beside}

    assert "part of the list" not in asked("Show order O-12.", order).text


@pytest.mark.parametrize("question", ["How much honey do we have in total?", "How much honey is there?"])
def test_a_list_is_not_told_for_its_sum(question: str) -> None:
    text = asked(question, hives).text
    assert "I cannot answer that" in text
    assert "14.5" not in text


def test_figures_of_each_day_are_not_told_for_their_sum() -> None:
    @tool(effect="read")
    def workouts() -> dict[str, Any]:
        """Shows this week's runs: kilometres and minutes for each day."""
        return {"Mon": {"run_km": 5.2}, "Sat": {"run_km": 12.4}}

    assert "I cannot answer that" in asked("How many kilometres did I run this week?", workouts).text


def test_a_name_and_no_other_word_is_taken_for_what_a_tool_needs() -> None:
    result = asked("How many votes were cast in Harbour in 2022?", votes)
    assert calls(result) == [("votes", {"district": "Harbour", "year": 2022})]
    assert result.text.startswith("Left out of account: “cast”.")


def test_a_tool_of_months_is_asked_about_no_day() -> None:
    assert calls(asked("Which rehearsals are there on 2026-03-11?", rehearsals)) == []
    assert calls(asked("Which rehearsals are there in March 2026?", rehearsals)) == [
        ("rehearsals", {"month": "2026-03"})
    ]


def test_no_figure_is_chosen_by_a_word_that_was_left_out() -> None:
    text = asked("What does a cello cost for 6 months including the deposit?", rental_price).text
    assert text.startswith("Left out of account: “including”, “deposit”.")
    assert "price 210.0" in text


def test_a_question_without_some_of_its_words_is_not_answered_yes_or_no() -> None:
    text = asked("Should I transfer 20 euros from savings to rent?", balance, transfer).text
    assert "No." not in text
    assert calls(asked("Should I transfer 20 euros from savings to rent?", balance, transfer)) == [
        ("balance", {"account": "savings"})
    ]


STAFF = [
    {"name": "Aya Ito", "team": "design", "left": None, "part_time": False},
    {"name": "Ben Oduya", "team": "design", "left": "2026-03-31", "part_time": True},
    {"name": "Cleo Fox", "team": "sales", "left": None, "part_time": False},
]


@tool(effect="read")
def staff() -> list[dict[str, Any]]:
    """Lists the staff with team (design or sales), the day they left, and whether they work part time."""
    return STAFF


@tool(effect="read")
def duty_hours(pilot: str, week: int) -> float:
    """Tells how many hours a pilot was on duty in a calendar week.

    Args:
        pilot: the pilot's name.
        week: the number of the week.
    """
    return 42.0


@tool
def give_bonus(name: str, euros: int) -> str:
    """Gives a bonus to somebody.

    Args:
        name: who gets it.
        euros: how much.
    """
    return f"{euros} to {name}"


@tool
def play_song(title: str) -> str:
    """Plays a song.

    Args:
        title: the song's title.
    """
    return f"playing {title}"


@tool
def cancel_invoice(invoice: str) -> str:
    """Cancels an invoice.

    Args:
        invoice: its number, such as "R-1".
    """
    return f"cancelled {invoice}"


@pytest.mark.parametrize(
    "question",
    ["Who has left?", "Who left?", "Who works part time?", "How many staff have left?", "Which staff work in sales?"],
)
def test_all_are_not_told_for_those_of_whom_something_is_so(question: str) -> None:
    assert "Cleo" not in asked(question, staff).text


def test_all_are_told_where_they_are_asked_for() -> None:
    for question in ("List the staff.", "List the staff with the day they left.", "Which staff do we have?"):
        assert "Cleo" in asked(question, staff).text


def test_off_duty_is_not_on_duty() -> None:
    assert calls(asked("How many hours was Selma off duty in week 22?", duty_hours)) == []
    assert "42" in asked("How many hours was Selma on duty in week 22?", duty_hours).text


@pytest.mark.parametrize(
    "question",
    [
        "Has Aya Ito got a bonus of 500 euros?",
        "Give everybody in design a bonus of 500 euros.",
        "Give Aya Ito a bonus of 500 euros in design.",
        "Play a song by Nena.",
        "Cancel invoice R-2 and refund it.",
        "Cancel invoice R-2?",
    ],
)
def test_nothing_is_changed_that_was_not_commanded_of_one_thing(question: str) -> None:
    assert calls(asked(question, give_bonus, play_song, cancel_invoice)) == []


@pytest.mark.parametrize(
    ("question", "call"),
    [
        ("Give Aya Ito a bonus of 500 euros.", ("give_bonus", {"name": "Aya Ito", "euros": 500})),
        ("Can you cancel invoice R-2?", ("cancel_invoice", {"invoice": "R-2"})),
        ("Cancel invoice R-2, please?", ("cancel_invoice", {"invoice": "R-2"})),
    ],
)
def test_what_is_commanded_is_done(question: str, call: tuple[str, Any]) -> None:
    assert calls(asked(question, give_bonus, play_song, cancel_invoice)) == [call]


@tool(effect="read")
def guests() -> list[dict[str, Any]]:
    """Lists the wedding guests with diet, table, and whether they bring somebody."""
    return [{"guest": "May", "plus_one": True, "table": 3}, {"guest": "Ben", "plus_one": False, "table": 3}]


@tool(effect="read")
def standings(league: Literal["A", "B"]) -> list[dict[str, Any]]:
    """Shows the table of a league: team, matches played, won, drawn and lost."""
    return [{"team": "Rooks", "won": 4, "drawn": 1, "lost": 0}, {"team": "Pawns", "won": 1, "drawn": 1, "lost": 3}]


@tool(effect="read")
def alarms() -> list[dict[str, Any]]:
    """Lists the alarms with time and whether they are on."""
    return [{"time": "07:30", "on": True}, {"time": "09:00", "on": False}]


@tool(effect="read")
def quote(symbol: str) -> dict[str, Any]:
    """Tells a share's price and its change since yesterday in percent.

    Args:
        symbol: the share's symbol, such as "ACME".
    """
    return {"symbol": symbol, "price": "101.20", "change_percent": "-2.4"}


@tool
def print_file(file: str, copies: int = 1, colour: bool = True) -> str:
    """Prints a file.

    Args:
        file: its name, such as "plan.pdf".
        copies: how many copies.
        colour: in colour rather than black and white.
    """
    return f"{file} x{copies}"


@tool
def change_price(name: str, price: float) -> str:
    """Changes the price of an article.

    Args:
        name: the article's name, such as "mug".
        price: the new price in euros.
    """
    return f"{name}: {price}"


@pytest.mark.parametrize(
    ("question", "tools"),
    [
        ("How many guests bring somebody?", (guests,)),
        ("How many matches were drawn in league A?", (standings,)),
        ("Which alarms are on?", (alarms,)),
        ("Which teams in league A have lost?", (standings,)),
    ],
)
def test_what_is_told_of_each_is_not_told_of_all(question: str, tools: tuple[Any, ...]) -> None:
    assert "I cannot answer that" in asked(question, *tools).text


@pytest.mark.parametrize("question", ["Which alarms are there?", "How many alarms do we have?", "List the alarms."])
def test_all_alarms_are_told(question: str) -> None:
    assert "09:00" in asked(question, alarms).text


def test_a_change_since_yesterday_is_no_price_of_yesterday() -> None:
    assert calls(asked("What was the price of ACME yesterday?", quote)) == []
    assert "101.20" in asked("What is the price of ACME?", quote).text


@pytest.mark.parametrize(
    "question",
    [
        "Print plan.pdf in black and white.",
        "Print plan.pdf on A3.",
        "Did you print plan.pdf?",
        "Change the price of the mug by 1 euro.",
    ],
)
def test_nothing_is_changed_where_a_word_is_left_over(question: str) -> None:
    assert calls(asked(question, print_file, change_price)) == []


@pytest.mark.parametrize(
    ("question", "call"),
    [
        ("Print 3 copies of plan.pdf.", ("print_file", {"copies": 3, "file": "plan.pdf"})),
        ("Change the price of the mug to 10 euros.", ("change_price", {"name": "mug", "price": 10})),
    ],
)
def test_what_is_said_in_full_is_changed(question: str, call: tuple[str, Any]) -> None:
    assert calls(asked(question, print_file, change_price)) == [call]


@pytest.mark.parametrize("question", ["Which staff only work in design?", "Who works both in design and in sales?"])
def test_only_and_both_are_not_passed_over(question: str) -> None:
    assert "Aya" not in asked(question, staff).text


@tool(effect="read")
def budget(department: str) -> dict[str, Any]:
    """Tells the budget of a department, what is spent, and what is left.

    Args:
        department: such as "Marketing".
    """
    return {"department": department, "budget": 500, "spent": 540, "left": -40}


@tool(effect="read")
def postage(country: str, grams: int) -> dict[str, Any]:
    """Tells the postage of a parcel.

    Args:
        country: where the parcel goes.
        grams: its weight in grams.
    """
    return {"postage": 7.9}


@tool(effect="read")
def lessons(form: str, weekday: Literal["Monday", "Tuesday"]) -> list[dict[str, Any]]:
    """Lists the lessons of a form on a day of the week.

    Args:
        form: such as "7b".
        weekday: the day of the week.
    """
    return [{"hour": 1, "subject": "Maths"}, {"hour": 2, "subject": "Art"}]


@tool(effect="read")
def badge(badge_id: str) -> dict[str, Any]:
    """Shows whose badge it is, whether it is active and which doors it opens.

    Args:
        badge_id: such as "B-77".
    """
    return {"badge_id": badge_id, "holder": "Nils Ek", "active": False, "doors": ["main", "lab"]}


def test_the_figure_that_is_named_is_held_against_the_number() -> None:
    assert asked("Is the budget of Marketing above 400?", budget).text.startswith("Yes. Marketing: budget 500")


def test_where_something_goes_is_not_where_it_comes_from() -> None:
    assert calls(asked("What is the postage from Spain for 500 grams?", postage)) == []
    assert "7.9" in asked("What is the postage to Spain for 500 grams?", postage).text


@pytest.mark.parametrize("question", ["Which form has Maths on Monday?", "Which lessons does Ms Frey give on Monday?"])
def test_what_is_called_by_a_number_is_no_other_name(question: str) -> None:
    assert calls(asked(question, lessons)) == []


def test_a_list_beside_what_was_asked_is_not_told_alone() -> None:
    assert "Nils Ek" in asked("Whose badge is B-77?", badge).text
    assert "Nils Ek" not in asked("Which doors does badge B-77 open?", badge).text
