"""Every word of a question is accounted for, or there is no call: what a last look at a finished plan does not let
through, and the sums of what one tool tells of several things."""

import inspect
from datetime import date
from typing import Any, Literal

import pytest

from treadle import Agent, Conversation, RunResult, tool


def change(name: str, told: str, /, **takes: Any) -> Any:
    """A tool of that name that nothing says is one that only reads."""
    return _made(name, told, "done", takes)


def look_up(name: str, told: str, answer: Any, /, **takes: Any) -> Any:
    """A tool that only reads; a function answers from its arguments."""
    return _made(name, told, answer, takes, effect="read")


def _made(name: str, told: str, answer: Any, takes: dict[str, Any], **options: Any) -> Any:
    def function(**given: Any) -> Any:
        return answer(**given) if callable(answer) else answer

    kind = inspect.Parameter.KEYWORD_ONLY
    given = [
        inspect.Parameter(each, kind, annotation=types[0], default=types[1])
        if isinstance(types, tuple)
        else inspect.Parameter(each, kind, annotation=types)
        for each, types in takes.items()
    ]
    function.__name__, function.__doc__ = name, told
    function.__annotations__ = {each.name: each.annotation for each in given} | {"return": Any}
    function.__signature__ = inspect.Signature(given, return_annotation=Any)  # type: ignore[attr-defined]
    return tool(**options)(function) if options else tool(function)


def ran(question: str, *tools: Any) -> RunResult:
    return Agent("offline", tools=list(tools)).run_sync(question)


def made(question: str, *tools: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in ran(question, *tools).tool_calls_made]


CHECK_OUT = change("check_out", "Check out a room.", room=int)
SCALE = change("scale", "Scale a service to a number of replicas.", service=str, replicas=int)
RESTART = change("restart", "Restart a service.", service=str)
ROLLBACK = change("rollback", "Roll a service back in an environment.", service=str, env=Literal["test", "live"])
NOTIFY = change("notify_parents", "Send a message to the parents of a bus.", bus=int, message=str)
COMMENT = change("comment", "Comment on a post with a text.", post=int, text=str)
COMMENTS = look_up("comments", "Comments on a post.", ["nice"], post=int)
TRANSFER = change(
    "transfer", "Transfer an amount in euros between accounts.", amount=float, from_account=str, to_account=str
)
PRESCRIBE = change(
    "prescribe",
    "Prescribe a drug for a pet in mg, some times per day.",
    pet=str,
    drug=str,
    mg=int,
    times_per_day=(int, 1),
)
BONUS = change("give_bonus", "Give an employee a bonus in euros.", employee=str, amount=float)
MARK = change("mark_read", "Mark a thread as read or unread.", thread=str, read=(bool, True))
CANCEL = change("cancel_order", "Cancel an order.", order=str)
STATIONS = look_up("stations", "Bike stations with at least so many bikes.", ["North", "Quay"], city=(str, ""))
BERTH = look_up("berth_fee", "Berth fee for a length in metres and a number of nights.", 72, length=float, nights=int)
GATE = look_up("gate", "Gate of a flight.", "B12", flight=str)
DELAY = look_up("delay", "Delay of a flight in minutes.", 25, flight=str)
RAIN = look_up("rain_chance", "Chance of rain in a city in percent.", 40, city=str)
SIZE = look_up("file_size", "Size of a file in bytes.", 10, path=str)
CUSTOMER = look_up("customer_id", "Identifier of a customer by name.", "C-7", name=str)
ORDERS = look_up("orders_of", "Orders of a customer by identifier.", ["O-1", "O-2"], customer_id=str)
VALUE = look_up("order_value", "Value of an order in euros.", 50, order=str)
COWS = look_up("herd_size", "Number of cows of a farm.", lambda farm: {"Hill Farm": 60}.get(farm, 85), farm=str)
WARMTH = look_up("room_temperature", "Temperature of a room.", 21, room=str)


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("Check room 104", CHECK_OUT),
        ("Check in room 104", CHECK_OUT),
        ("Scale down billing to 2 replicas", SCALE),
        ("Scale billing up by 2 replicas", SCALE),
        ("Roll back billing", ROLLBACK),
    ],
)
def test_a_little_word_that_makes_another_verb_makes_another_order(question: str, tool: Any) -> None:
    assert made(question, tool) == []


def test_a_verb_with_its_little_word_is_the_tools_own() -> None:
    assert made("Check out room 104", CHECK_OUT) == [("check_out", {"room": 104})]
    assert made("Check room 104 out", CHECK_OUT) == [("check_out", {"room": 104})]


def test_what_is_changed_is_written_in_one_piece_and_no_part_of_the_order() -> None:
    assert made("Restart billing and then auth", RESTART) in (
        [],
        [("restart", {"service": "billing"}), ("restart", {"service": "auth"})],
    )
    for _, arguments in made("Roll billing back in test", ROLLBACK):
        assert arguments == {"service": "billing", "env": "test"}


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("Notify the parents of bus 2 that the bus is late", NOTIFY),
        ("Comment on post 12 that it is great", COMMENT),
    ],
)
def test_nobody_is_told_a_part_of_what_was_said(question: str, tool: Any) -> None:
    said = {text for _, arguments in made(question, tool) for text in arguments.values()}
    assert not said & {"late", "great"}


@pytest.mark.parametrize("question", ["Show the comments on post 12", "How many comments does post 12 have?"])
def test_who_asks_is_told_by_the_tool_that_reads(question: str) -> None:
    assert made(question, COMMENT, COMMENTS) == [("comments", {"post": 12})]


def test_who_orders_is_not_told_by_the_tool_that_reads() -> None:
    assert made('Comment "delete it" on post 12', COMMENT, COMMENTS) == [("comment", {"post": 12, "text": "delete it"})]


@pytest.mark.parametrize("amount", ["50 $", "$ 50", "50 dollars", "$50"])
def test_the_sign_of_other_money_stands_where_it_likes(amount: str) -> None:
    assert made(f"Transfer {amount} from A1 to B2", TRANSFER) == []


def test_times_per_day_are_no_days_and_the_drug_is_what_there_is_so_much_of() -> None:
    wanted = {"pet": "Rex", "drug": "Carprofen", "mg": 50}
    assert made("Prescribe 50 mg of Carprofen for Rex for 5 days", PRESCRIBE) == []
    assert made("Prescribe Rex 50 mg of Carprofen", PRESCRIBE) == [("prescribe", wanted)]
    assert made("Prescribe 50 mg of Carprofen for Rex", PRESCRIBE) == [("prescribe", wanted)]


def test_a_bonus_for_two_may_be_for_both_together() -> None:
    assert made("Give Tom and Ann a bonus of 500 euros", BONUS) == []
    assert len(made("Give Tom and Ann a bonus of 500 euros each", BONUS)) == 2


def test_the_opposite_of_a_switch_is_not_its_default() -> None:
    assert made("Mark thread A7 as unread", MARK) in ([], [("mark_read", {"thread": "A7", "read": False})])


def test_the_cheaper_one_is_no_name() -> None:
    assert made("Cancel the cheaper one", CANCEL) == []
    assert made("Cancel the red one", CANCEL) == []


def test_stations_of_bikes_are_not_counted_as_bikes() -> None:
    assert "2 listed" not in ran("How many bikes are in Ghent?", STATIONS).text
    assert "2 listed" in ran("How many stations are in Ghent?", STATIONS).text


def test_two_bare_numbers_may_be_either() -> None:
    assert made("What is the berth fee for 12 and 3?", BERTH) == []
    assert made("What is the berth fee for 12 metres and 3 nights?", BERTH) == [
        ("berth_fee", {"length": 12, "nights": 3})
    ]


@pytest.mark.parametrize(
    ("question", "tools"),
    [
        ("How late is flight LH 441?", [GATE]),
        ("Which flight leaves from gate B12?", [GATE]),
        ("What is the chance of snow in Rome?", [RAIN]),
        ("Which files are in docs?", [SIZE]),
        ("What is the pleasant temperature of the kitchen?", [WARMTH]),
        ("Has flight LH 441 been cancelled?", [GATE, DELAY]),
    ],
)
def test_a_word_that_no_tool_speaks_of_forbids_an_answer(question: str, tools: list[Any]) -> None:
    assert ran(question, *tools).text.startswith("I c")


@pytest.mark.parametrize(
    ("question", "call"),
    [
        ("How late is flight LH 441?", ("delay", {"flight": "LH 441"})),
        ("How warm is the kitchen?", ("room_temperature", {"room": "kitchen"})),
    ],
)
def test_a_degree_is_asked_of_what_measures_it(question: str, call: Any) -> None:
    assert made(question, GATE, DELAY, WARMTH) == [call]


def test_a_name_is_no_identifier_where_a_tool_tells_it() -> None:
    assert made("Which orders does Ada Poe have?", CUSTOMER, ORDERS) == [
        ("customer_id", {"name": "Ada Poe"}),
        ("orders_of", {"customer_id": "C-7"}),
    ]


def test_whose_orders_they_are_is_no_order() -> None:
    assert ("order_value", {"order": "Ada Poe"}) not in made("What is the value of Ada Poe's orders?", VALUE)
    text = ran("What is the value of Ada Poe's orders?", CUSTOMER, ORDERS, VALUE).text
    assert text.startswith("I c")


@pytest.mark.parametrize("words", ["in total", "altogether", "together"])
def test_what_several_come_to_is_added_up(words: str) -> None:
    text = ran(f"How many cows do Hill Farm and Lake Farm have {words}?", COWS).text
    assert "60" in text
    assert "85" in text
    assert "In total: 145" in text


def test_what_is_no_sum_is_not_added_up() -> None:
    assert "42" not in ran("What is the combined temperature of the kitchen and the bath?", WARMTH).text
    yes_or_no = ran("Do Hill Farm and Lake Farm have more than 100 cows in total?", COWS).text
    assert "No." not in yes_or_no
    assert "Yes." not in yes_or_no


def test_what_follows_a_refusal_is_not_about_what_came_before_it() -> None:
    price = look_up("price_of", "Price of an item in a size.", 10, item=str, size=(Literal["S", "M", "L"], "M"))
    order = change("order_item", "Order a quantity of an item.", item=str, quantity=int)
    talk = Conversation()
    agent = Agent("offline", tools=[price, order])
    agent.run_sync("What is the price of the hoodie?", conversation=talk)
    agent.run_sync("And the pleasant cap?", conversation=talk)
    ordered = agent.run_sync("Order 3 of them", conversation=talk).tool_calls_made
    assert [dict(call.arguments) for call in ordered if call.arguments.get("item") == "hoodie"] == []


METER = change("report_reading", "Report the reading of a meter.", meter=str, kwh=float)
SLOT = change("book_slot", "Book a slot for a patient on a day at a time.", patient=str, day=date, at=str)
LIGHT = change("set_light", "Switch the light of a room on or off.", room=str, on=bool)
QUEUE = change("queue_song", "Put a song into the queue at a position.", song=str, position=(int, 1))
TASKS = look_up("list_tasks", "List tasks, or those that are done.", ["a"], done=(bool | None, None))
PRICE = look_up("get_price", "Get the price of an item in dollars.", 20, item_name=str)
TOTAL = look_up("calculate_total", "Calculate the total of a quantity.", 140, quantity=int, unit_price=float)
SEATS = look_up("seats_left", "Seats left in a block.", 0, block=str)


@pytest.mark.parametrize(
    ("question", "tools"),
    [
        ("Did you report a reading of 12 for meter Z-77?", [METER]),
        ("Why did you report 12 kWh for meter Z-77?", [METER]),
        ("Report 12 kWh for meter Z-77 or Z-78", [METER]),
        ("Report 12 kWh for meter Z-77 and dance", [METER]),
        ("Book a slot for Lou Bell on 2026-12-03 at 10:30 and Zed", [SLOT]),
        ("Switch on the light in the kitchen slowly", [LIGHT]),
        ("Frobnicate Halo at position 3", [QUEUE]),
        ("Never list the done tasks", [TASKS]),
        ("What is the price of a gadget at 7?", [PRICE, TOTAL]),
        ("Are there any seats left in block B at 7?", [SEATS]),
        ("Are there any seats left in block B 7?", [SEATS]),
    ],
)
def test_a_word_more_makes_it_another_question(question: str, tools: list[Any]) -> None:
    assert made(question, *tools) == []


@pytest.mark.parametrize(
    ("question", "tools"),
    [
        ("Report 12 kWh for meter Z-77", [METER]),
        ("Book a slot for Lou Bell on 2026-12-03 at 10:30", [SLOT]),
        ("Switch on the light in the kitchen", [LIGHT]),
        ("List the done tasks", [TASKS]),
        ("Are there 7 seats left in block B?", [SEATS]),
        ("Put Halo into the queue at position 3", [QUEUE]),
    ],
)
def test_without_that_word_it_is_answered(question: str, tools: list[Any]) -> None:
    assert len(made(question, *tools)) == 1


def test_what_it_may_be_at_most_is_not_what_it_is() -> None:
    flats = look_up(
        "list_flats", "List flats in a city, up to a rent.", ["F1"], city=str, max_rent=(float | None, None)
    )
    flat = look_up("get_flat", "Get the address and rent of a flat.", {"rent": 900}, flat_id=str)
    assert made("What is the rent of flat F1?", flats, flat) == [("get_flat", {"flat_id": "F1"})]
    assert made("What is the rent of flats in Ghent?", flats) == []


def test_what_is_returned_by_somebody_is_not_asked_for() -> None:
    rate = change("get_daily_rate", "Get the daily rate of a car in euros.", car=str)
    back = change("return_car", "Return a car with its kilometres.", plate=str, km=int)
    assert "return_car" not in [name for name, _ in made("What is the daily rate of a van to Zed?", rate, back)]
    assert made("Return car KA-77 with 1200 km", rate, back) == [("return_car", {"plate": "KA-77", "km": 1200})]


def test_a_square_root_is_no_square() -> None:
    root = look_up("square_root", "Calculate the square root of a number.", 12, number=float)
    assert made("What is the square root of 144?", root) == [("square_root", {"number": 144})]
    assert made("What is the square of 144?", root) == []


def test_a_list_does_not_tell_whether_what_it_is_of_is_so() -> None:
    recordings = look_up("list_recordings", "List the recordings of a channel.", ["A", "B"], channel=str)
    assert ran("Was Nova recorded?", recordings).text.startswith("I c")
    assert "- A" in ran("Which recordings does Nova have?", recordings).text
