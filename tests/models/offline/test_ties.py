"""Which value goes to which parameter has to be said by words, and no word by which it would be another goes unsaid."""

import inspect
from datetime import date
from typing import Any, Literal

import pytest

from treadle import Agent, tool


def change(name: str, told: str, /, **takes: Any) -> Any:
    """A tool of that name that nothing says is one that only reads."""
    return _made(name, told, "done", takes)


def look_up(name: str, told: str, answer: Any, /, **takes: Any) -> Any:
    """A tool that only reads."""
    return _made(name, told, answer, takes, effect="read")


def _made(name: str, told: str, answer: Any, takes: dict[str, Any], **options: Any) -> Any:
    def function(**given: Any) -> Any:
        return answer

    kind = inspect.Parameter.KEYWORD_ONLY
    given = [inspect.Parameter(each, kind, annotation=types) for each, types in takes.items()]
    function.__name__, function.__doc__ = name, told
    function.__annotations__ = {**takes, "return": type(answer)}
    function.__signature__ = inspect.Signature(given, return_annotation=type(answer))  # type: ignore[attr-defined]
    return tool(**options)(function) if options else tool(function)


def made(question: str, *tools: Any) -> list[tuple[str, dict[str, Any]]]:
    calls = Agent("offline", tools=list(tools)).run_sync(question).tool_calls_made
    return [(call.name, dict(call.arguments)) for call in calls]


CANCEL = change("cancel_membership", "Cancel a membership.", member=str, reason=str)
ENROLL = change("enroll_student", "Enroll a student in a course.", student=str, course=str)
FEED = change("feed", "Feed an animal with a food.", animal=str, food=str)
UNLOAD = change("unload", "Unload cargo from a ship.", cargo=str, ship=str)
MOVE = change("move_stock", "Move stock between bins.", sku=str, from_bin=str, to_bin=str, quantity=int)
RESERVE = change("reserve_seats", "Reserve seats for a show under a name.", show=str, seats=int, name=str)
SET_MAYOR = change("set_mayor", "Set the mayor of a town.", town=str, mayor=str)
DEPARTMENT = change("change_department", "Change the department of an employee.", employee=str, department=str)
GRANT = change("grant_access", "Grant a person access to a door.", person=str, door=str)
DISPENSE = change("dispense", "Dispense packs of a medicine to a patient.", medicine=str, patient=str, packs=int)
GIVE = change("assign_car", "Give a car to a driver.", plate=str, driver=str)
LABEL = change("label_sample", "Give a sample a label.", sample=str, label=str)
HEIR = change("name_heir", "Name an heir for a member.", member=str, heir=str)
PICK_UP = change("pick_up", "Record that an adult picks up a child.", child=str, adult=str)
LYRICS = change("get_song_lyrics", "Retrieve the lyrics of a song.", song_title=str, artist_name=str)


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Cancel Ruth's pilates", CANCEL),
        ("Enroll Mia Chemistry", ENROLL),
        ("Feed seeds to the parrot", FEED),
        ("Unload coal onto the Aurora", UNLOAD),
        ("Move 10 A-100 C3 D4", MOVE),
        ('Reserve 4 seats for "Hamlet" for Zorn', RESERVE),
        ("Change Sales to Ute Brandt", DEPARTMENT),
        ("Grant the lab access to Jette", GRANT),
        ("Name Inge Holt and Bernd Holt", HEIR),
        ("Lea is picked up by Mrs Roth", PICK_UP),
    ],
)
def test_no_change_is_made_with_a_value_that_no_word_ties_to_its_parameter(question: str, asked: Any) -> None:
    assert made(question, asked) == []


@pytest.mark.parametrize(
    ("question", "asked", "given"),
    [
        ("Enroll Mia in Chemistry", ENROLL, {"student": "Mia", "course": "Chemistry"}),
        ("Feed the parrot with seeds", FEED, {"animal": "parrot", "food": "seeds"}),
        ("Unload coal from the Aurora", UNLOAD, {"cargo": "coal", "ship": "Aurora"}),
        ("Reserve 4 seats for Hamlet under Zorn", RESERVE, {"show": "Hamlet", "seats": 4, "name": "Zorn"}),
        ("Set the mayor of Husum to Ida Krog", SET_MAYOR, {"town": "Husum", "mayor": "Ida Krog"}),
        ("Change Ute Brandt's department to Sales", DEPARTMENT, {"employee": "Ute Brandt", "department": "Sales"}),
        ("Grant Jette access to the lab", GRANT, {"person": "Jette", "door": "lab"}),
        ("Dispense 2 packs of Panadol to Mrs Oduya", DISPENSE, {"medicine": "Panadol", "patient": "Mrs Oduya"}),
        ("Give M-AB 77 to Lutz", GIVE, {"plate": "M-AB 77", "driver": "Lutz"}),
        ('Label S-14 as "toxic"', LABEL, {"sample": "S-14", "label": "toxic"}),
        ('Get the lyrics of "Hello" by Adele', LYRICS, {"song_title": "Hello", "artist_name": "Adele"}),
    ],
)
def test_the_words_beside_a_value_say_which_parameter_is_its(question: str, asked: Any, given: dict[str, Any]) -> None:
    ((_, arguments),) = made(question, asked)
    assert given.items() <= arguments.items()


def test_a_stop_that_a_bus_goes_to_is_none_that_it_leaves_from() -> None:
    bus = look_up("next_bus", "When the next bus of a line leaves from a stop.", "14:32", line=int, stop=str)
    assert made("When is the next bus to Market Square on line 7?", bus) == []
    wanted = [("next_bus", {"line": 7, "stop": "Market Square"})]
    assert made("When does the next bus 7 leave from Market Square?", bus) == wanted


@pytest.mark.parametrize("question", ["What did Frank Herbert write?", "Which book did Frank Herbert write?"])
def test_who_does_it_is_not_what_it_is_done_to(question: str) -> None:
    author = look_up("author_of", "Who wrote a book.", "Frank Herbert", title=str)
    assert made(question, author) == []
    assert made("Who wrote Dune?", author) == [("author_of", {"title": "Dune"})]
    assert made("What does Ravi host?", look_up("host", "The host of a show.", "Ravi", show=str)) == []


def test_a_thing_to_be_changed_is_passed_as_it_was_written() -> None:
    sell = change("sell", "Sell animals of a kind.", animal=str, count=int)
    assert made("Sell 2 guppies", sell) == [("sell", {"animal": "guppies", "count": 2})]


def test_a_word_for_what_is_called_so_behind_it_is_no_value() -> None:
    track = look_up("track", "Track a parcel.", "Hanover", tracking_number=str)
    channel = change("create_channel", "Create a channel.", name=str)
    assert made("Track parcel 1Z-884-22", track) == [("track", {"tracking_number": "1Z-884-22"})]
    assert made("Create a channel called budget", channel) == [("create_channel", {"name": "budget"})]


@pytest.mark.parametrize(
    "question",
    [
        "How many issues does treadle have?",
        "How many closed issues does treadle have?",
        "How many issues in treadle were rejected?",
        "Mark all issues of treadle as done",
    ],
)
def test_a_tool_of_things_in_one_state_tells_nothing_of_the_others(question: str) -> None:
    issues = look_up("open_issues", "Number of open issues of a repo.", 31, repo=str)
    assert made(question, issues) == []
    assert made("How many open issues does treadle have?", issues) == [("open_issues", {"repo": "treadle"})]


@pytest.mark.parametrize(
    "question",
    [
        "How many days does Jo get?",
        "What is the salary of Jo?",
        "Salary of Jo?",
        "How many days of leave did Jo take?",
        "How many days of leave does the intern Jo have left?",
        "How many days of leave from March does Jo have left?",
    ],
)
def test_what_the_question_cannot_do_without_is_not_left_out(question: str) -> None:
    leave = look_up("leave_left", "How many days of leave an employee has left.", 12, employee=str)
    text = Agent("offline", tools=[leave]).run_sync(question).text
    assert "12" not in text
    assert made("How many days of leave does Jo have left?", leave) == [("leave_left", {"employee": "Jo"})]


@pytest.mark.parametrize(
    "question",
    ["Open valve V7. Wait, no: close it.", "Open valve V7 and tell Max that I'm late", "Open valve V7. Then dance."],
)
def test_no_change_is_made_for_a_question_of_which_a_part_is_not_understood(question: str) -> None:
    valve = change("open_valve", "Open a valve.", valve=str)
    assert made(question, valve) == []
    assert made("Open valve V7", valve) == [("open_valve", {"valve": "V7"})]


def test_by_how_much_is_not_to_how_much() -> None:
    heal = change("heal", "Heal a hero by some points.", hero=str, points=int)
    assert made("Heal Thor to 100 points", heal) == []
    assert made("Heal Thor by 20 points", heal) == [("heal", {"hero": "Thor", "points": 20})]


def test_a_weight_in_another_unit_or_a_sum_of_money_is_no_number_of_pieces() -> None:
    load = change("load", "Load tons of cargo.", cargo=str, tons=float)
    total = look_up("total_cost", "Total cost of a quantity at a unit cost.", 147.0, quantity=int, unit_cost=float)
    cost = look_up("unit_cost", "Cost of one unit of an item in dollars.", 3.5, item=str)
    assert made("Load 40000 kg of coal", load) == []
    assert "147" not in Agent("offline", tools=[total, cost]).run_sync("How many screws can I get for 20 dollars?").text


def test_two_of_three_numbers_are_not_all() -> None:
    assert (
        made("gcd of 12, 18 and 30", look_up("gcd", "Greatest common divisor of two numbers.", 6, a=int, b=int)) == []
    )


def test_a_task_that_is_named_is_completed_and_an_answer_is_not() -> None:
    complete = change("complete_task", "Mark a task as done.", title=str)
    assert made("Mark the bins as done", complete) == [("complete_task", {"title": "bins"})]


def test_a_yes_is_not_said_to_what_was_left_out() -> None:
    sun = look_up("needs_sun", "Whether a plant needs sun.", True, plant=str)
    assert "Yes" not in Agent("offline", tools=[sun]).run_sync("Does the fern need water?").text
    assert "Yes" in Agent("offline", tools=[sun]).run_sync("Does the fern need sun?").text


def test_a_house_has_its_number_and_a_case_its_letters() -> None:
    rent = look_up("rent", "Rent of a flat at an address.", 900, address=str)
    judge = look_up("judge_of", "The judge of a case.", "Rask", case=str)
    booking = change("book_service", "Book a service for a car.", plate=str, when=date)
    door = change("lock", "Lock a door.", door=str, state=Literal["open", "shut"])
    assert made("What is the rent at 12 Mill Lane?", rent) == [("rent", {"address": "12 Mill Lane"})]
    assert made("Who is the judge of case 12-C-88?", judge) == [("judge_of", {"case": "12-C-88"})]
    assert made("Book a service for M-AB 77 on 2026-12-10", booking) == [
        ("book_service", {"plate": "M-AB 77", "when": "2026-12-10"})
    ]
    assert made("Lock every door", door) == []


def test_how_many_there_are_is_not_which_one_to_cancel() -> None:
    bookings = look_up("bookings", "Number of bookings of a studio.", 14, studio=str)
    cancel = change("cancel_studio", "Cancel a booking.", booking_id=int)
    assert "cancel_studio" not in [name for name, _ in made("Cancel the booking of Foxes", bookings, cancel)]
    assert made("Cancel booking 812", bookings, cancel) == [("cancel_studio", {"booking_id": 812})]


def test_what_belongs_to_a_thing_is_not_the_thing() -> None:
    queen = look_up("queen_age", "Age of the queen of a hive in years.", 2, hive=str)
    assert made("What is the age of hive H3?", queen) == []
    assert made("What is the age of the queen of H3?", queen) == [("queen_age", {"hive": "H3"})]


def test_a_price_per_day_is_told_per_day_and_not_per_hour() -> None:
    price = look_up("studio_price", "Price of a studio per day in euros.", 250, studio=str)
    assert made("What does studio B cost per day?", price) == [("studio_price", {"studio": "B"})]
    assert made("What does studio B cost per hour?", price) == []


PRESCRIBE = change("prescribe", "Prescribe a drug.", patient=str, drug=str, dose_mg=int)
GIVE_ITEM = change("give_item", "Give an item to a player.", player=str, item=str, count=int)
SEATS = change("book_seats", "Book seats in a show for a customer.", show=str, seats=int, customer=str)
VIEWING = change("schedule_viewing", "Schedule a viewing.", listing=str, person=str)
LEAVE = change("request_leave", "Request leave from a first to a last day.", employee=str, first_day=str, last_day=str)
LEND = change("lend_book", "Lend a book to a member.", title=str, member=str)
BERTH = change("assign_berth", "Assign a berth to a ship.", ship=str, berth=str)
RETIRE = change("retire", "Retire a car.", plate=str)
ADD_NAME = change("add_guest", "Add a guest.", first_name=str, last_name=str)


@pytest.mark.parametrize(
    ("question", "asked", "given"),
    [
        (
            "Prescribe Ida Berg 500 mg ibuprofen",
            PRESCRIBE,
            {"patient": "Ida Berg", "drug": "ibuprofen", "dose_mg": 500},
        ),
        ("Give Bob 3 potions", GIVE_ITEM, {"player": "Bob", "item": "potions", "count": 3}),
        ("Book 2 seats for Hamlet for Ms Voss", SEATS, {"show": "Hamlet", "seats": 2, "customer": "Ms Voss"}),
        ("Schedule a viewing of L7 for Nora", VIEWING, {"listing": "L7", "person": "Nora"}),
        (
            "Request leave for Lena Roth from 2026-12-21 to 2026-12-31",
            LEAVE,
            {"employee": "Lena Roth", "first_day": "2026-12-21", "last_day": "2026-12-31"},
        ),
        ("Lend Emma to Kim", LEND, {"title": "Emma", "member": "Kim"}),
    ],
)
def test_what_looks_like_somebody_goes_to_who_it_is_for(question: str, asked: Any, given: dict[str, Any]) -> None:
    assert made(question, asked) == [(asked.name, given)]


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Lend the rest of Emma", LEND),
        ("Lend the copy of Emma", LEND),
        ("Lend Emma's owner", LEND),
        ("Lend the moon to Kim", LEND),
        ("Assign B2 to the ship that carries grain", BERTH),
        ("Retire the car with the grain", RETIRE),
        ("Add guest from Ann to Bo", ADD_NAME),
    ],
)
def test_what_only_says_which_one_is_meant_is_no_name(question: str, asked: Any) -> None:
    assert made(question, asked) == []


BONUS = change("pay_bonus", "Pay a bonus to an employee.", employee=str, amount=float)
DRAIN = change("drain", "Drain a tank.", tank=str, percent=int)
BARRIER = change("barrier", "The barrier.", state=Literal["open", "closed"])


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Pay Rosa Lind 500", BONUS),
        ("Drain T1 to 20 percent", DRAIN),
        ("Is the barrier open?", BARRIER),
    ],
)
def test_an_order_says_of_what_and_how_far(question: str, asked: Any) -> None:
    assert made(question, asked) == []


def test_a_bonus_that_is_named_is_paid() -> None:
    given = {"employee": "Rosa Lind", "amount": 500.0}

    assert made("Pay Rosa Lind a bonus of 500", BONUS) == [("pay_bonus", given)]


@pytest.mark.parametrize("name", ["credit_account", "credit_wallet", "credit_balance"])
def test_an_account_is_where_an_amount_goes_and_not_what_is_given(name: str) -> None:
    """Regression: "account" was missed in the order, as the bonus of `pay_bonus` would be."""
    credit = change(name, "Credits a customer.", customer=str, amount=float)

    assert made("Credit 500 to Rosa", credit) == [(name, {"customer": "Rosa", "amount": 500.0})]


def test_what_is_sold_to_somebody_may_have_another_name_than_the_tool() -> None:
    sell = change("sell_grain", "Sell grain to a buyer.", crop=str, tonnes=float, buyer=str)
    given = {"crop": "barley", "tonnes": 0.8, "buyer": "Otto"}

    assert made("Sell 800 kg barley to Otto", sell) == [("sell_grain", given)]


@pytest.mark.parametrize("told", ["Sell tickets.", "Sell tickets for an event.", "Sell tickets to a customer.", ""])
@pytest.mark.parametrize(
    "question",
    ["Sell Uwe 2 tickets for Gala", "Sell Uwe 2 tickets of Gala", "Sell 2 tickets of Gala for Uwe"],
)
def test_who_stands_before_an_amount_gets_it(question: str, told: str) -> None:
    sell = change("sell_tickets", told, event=str, count=int, buyer=str)
    given = {"event": "Gala", "count": 2, "buyer": "Uwe"}

    assert made(question, sell) in ([], [("sell_tickets", given)])


def test_an_amount_is_given_to_who_stands_before_it() -> None:
    sell = change("sell_tickets", "Sell tickets.", event=str, count=int, buyer=str)
    given = {"event": "Gala", "count": 2, "buyer": "Uwe"}

    assert made("Sell Uwe 2 tickets for Gala", sell) == [("sell_tickets", given)]


ROLE = change("change_role", "Change the role of a user.", user=str, role=str)
BERTH = change("assign_berth", "Assigns a ship to a berth.", ship=str, berth=str)
PHOTOGRAPH = change("take_picture", "Take a picture of a place with a satellite.", satellite=str, place=str)
RELEASE = change("release_berth", "Release a berth.", berth=str)
BURN = change("burn", "Fire the engine of a satellite for some seconds.", satellite=str, seconds=int)
REJECT = change("reject_claim", "Reject a claim for a reason.", claim=str, reason=str)
PRICE = change("set_price", "Set the price of an item.", item=str, price=float)
BUY = change("bestelle", "Bestellt einen Artikel.", artikel=str, anzahl=int)
PLAY = change("play_song", "Plays a song.", title=str)
MOVE_AXIS = change("move_axis", "Move an axis of the arm by some millimetres.", axis=str, millimetres=float)
PUMP = change("stop_pump", "Stop a pump.", pump=str)
DILUTE = change("dilute", "Dilute a sample by a factor.", sample=str, factor=float)
DEDUCT = change("deduct", "Deduct an item from the taxable income, in euros.", item=str, euros=float)
HANG = change("hang", "Hang a painting in a room.", painting=str, room=str)


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("Change the role of admin to user 7", ROLE),
        ("Change the role of admin to Kim", ROLE),
        ("Assign B4 to Orion", BERTH),
        ("Assign Orion to B4", BERTH),
        ("Take a picture of satellite S1 with Paris", PHOTOGRAPH),
        ("Release the berth to Orion", RELEASE),
        ("We have to release berth B4", RELEASE),
        ("I have to release berth B4", RELEASE),
        ("Fire the second engine of satellite S1 for 30 seconds", BURN),
        ("Reject claim C-9 for now", REJECT),
        ("Reject claim C-9 for the time being", REJECT),
        ("Set the price of the lamp broken to 24.90", PRICE),
        ("Bestelle 20 Kilo Eier", BUY),
        ("Bestelle 20 Pfund Mehl", BUY),
        ("Play dead", PLAY),
        ("Stop pumping W1", PUMP),
        ("Hang Dusk in time", HANG),
        ("Dilute sample L3 to a factor of 10", DILUTE),
    ],
)
def test_what_stands_where_the_tool_does_not_have_it_is_passed_to_nothing(question: str, tool: Any) -> None:
    assert made(question, tool) == []


@pytest.mark.parametrize(
    ("question", "tool", "passed"),
    [
        ("Change the role of Kim to admin", ROLE, {"user": "Kim", "role": "admin"}),
        ("Assign Orion to berth B4", BERTH, {"ship": "Orion", "berth": "B4"}),
        ("Take a picture of Paris with satellite S1", PHOTOGRAPH, {"satellite": "S1", "place": "Paris"}),
        ("We need you to release berth B4", RELEASE, {"berth": "B4"}),
        ("Would you kindly release berth B4?", RELEASE, {"berth": "B4"}),
        ("Go ahead and release berth B4", RELEASE, {"berth": "B4"}),
        ("Hi! Be so kind as to release berth B4. Thanks!", RELEASE, {"berth": "B4"}),
        ("Fire the engine of satellite S1 for 30 seconds", BURN, {"satellite": "S1", "seconds": 30}),
        ("Reject claim C-9 for fraud", REJECT, {"claim": "C-9", "reason": "fraud"}),
        ("Set the price of the broken lamp to 24.90", PRICE, {"item": "broken lamp", "price": 24.9}),
        ("Bestelle 20 Eier", BUY, {"artikel": "Eier", "anzahl": 20}),
        ("Dilute sample L3 by a factor of 10", DILUTE, {"sample": "L3", "factor": 10}),
        ('Label sample L4 "toxic"', LABEL, {"sample": "L4", "label": "toxic"}),
        ('Deduct the item "laptop" at 900 euros', DEDUCT, {"item": "laptop", "euros": 900}),
        ("Play the song dead", PLAY, {"title": "dead"}),
        ("Play Yesterday", PLAY, {"title": "Yesterday"}),
        ("Move axis Y by 3.5 mm", MOVE_AXIS, {"axis": "Y", "millimetres": 3.5}),
    ],
)
def test_what_stands_where_the_tool_has_it_is_passed(question: str, tool: Any, passed: dict[str, Any]) -> None:
    assert [given for _, given in made(question, tool)] == [passed]


def test_a_courtesy_that_is_to_be_told_is_told_as_it_was_written() -> None:
    send = change("send_message", "Send a message to somebody.", to=str, text=str)
    question = 'Would you kindly send Ann "Would you kindly call me? Go ahead and eat"?'

    assert [given["text"] for _, given in made(question, send)] == ["Would you kindly call me? Go ahead and eat"]
