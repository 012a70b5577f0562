"""What only speaks of a change makes none, however the tool that makes it is called; nor does a word too many."""

from typing import Any, Literal

import pytest

from treadle import Agent, Conversation, tool

DONE: list[tuple[str, Any]] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


def does(name: str, description: str, effect: Literal["write"] | None = None) -> Any:
    """A tool that writes down that it was called; without an effect nothing says that it changes something."""

    def change(item: str) -> dict[str, bool]:
        DONE.append((name, item))
        return {"ok": True}

    change.__doc__ = description
    return tool(change, name=name, effect=effect) if effect else tool(change, name=name)


CALLED = [
    ("reverse_entry", "Reverses an entry.", "reverse", "reversed"),
    ("release_order", "Releases an order.", "release", "released"),
    ("generate_reminder", "Generates a reminder.", "generate", "generated"),
    ("parcels-ship", "Ship a parcel", "ship", "shipped"),
    ("orders_cancel", "", "cancel", "cancelled"),
    ("post_orders_cancel", "Cancel order", "cancel", "cancelled"),
    ("check_cancel", "Cancels a check.", "cancel", "cancelled"),
    ("payments", "Pays a bill.", "pay", "paid"),
    ("contact_archive", "Archive a contact.", "archive", "archived"),
]


@pytest.mark.parametrize(("name", "description", "verb", "participle"), CALLED, ids=[each[0] for each in CALLED])
def test_a_tool_of_which_nothing_says_that_it_writes_is_called_by_its_verb_alone(
    name: str, description: str, verb: str, participle: str
) -> None:
    agent = Agent("offline", tools=[does(name, description)])
    for question in (
        "Was X-7 {done}?",
        "X-7 was {done}",
        "X-7 {done}",
        "Is X-7 {done}?",
        "Can X-7 be {done}?",
        "By whom was X-7 {done}?",
        "What does it mean to {verb} X-7?",
        "You just {verb} X-7",
        "What is X-7?",
        "Where is X-7?",
    ):
        agent.run_sync(question.format(verb=verb, done=participle))
        assert DONE == [], question
    agent.run_sync(f"{verb.capitalize()} X-7")
    assert [(name, "X-7")] == DONE


@pytest.mark.parametrize(
    ("name", "description", "order"),
    [
        ("message_delete", "Delete a message.", "Send M-1"),
        ("order_cancel", "Cancels an order.", "Order X-1"),
        ("post_orders_cancel", "Cancel order", "Order X-1"),
    ],
)
def test_the_thing_that_a_tool_is_called_by_is_no_order_to_it(name: str, description: str, order: str) -> None:
    Agent("offline", tools=[does(name, description)]).run_sync(order)
    assert DONE == []


@pytest.mark.parametrize(
    "tail",
    [
        " is what I did",
        ", did you?",
        ", is that right?",
        ", would you say?",
        ", I think",
        ", she said",
        ", cancel that",
        " etc.",
        " and so on",
        "! No.",
    ],
)
def test_an_order_with_words_that_are_no_part_of_it_is_none(tail: str) -> None:
    tools = [does("close_ticket", "Closes a ticket.", "write"), does("cancel_ticket", "Cancels a ticket.", "write")]
    Agent("offline", tools=tools).run_sync(f"Close ticket T-9{tail}")
    assert DONE == []


@pytest.mark.parametrize("tail", ["", ", please", ". Thank you so much!", ", would you?", " right now"])
def test_courtesies_take_nothing_from_an_order(tail: str) -> None:
    Agent("offline", tools=[does("close_ticket", "Closes a ticket.", "write")]).run_sync(f"Close ticket T-9{tail}")
    assert DONE == [("close_ticket", "T-9")]


def test_to_be_reminded_of_a_change_is_no_order_to_make_it() -> None:
    Agent("offline", tools=[does("remind_customer", "Reminds a customer.", "write")]).run_sync(
        "Remind me to remind Sud"
    )
    assert DONE == []


def test_a_condition_is_no_part_of_a_thing() -> None:
    """Five pieces of "spades once approved" were ordered."""

    @tool(effect="write")
    def order_product(product: str, quantity: int) -> str:
        """Orders pieces of a product."""
        DONE.append((product, quantity))
        return "ordered"

    Agent("offline", tools=[order_product]).run_sync("Order 5 spades once approved")
    assert DONE == []


def test_an_aside_is_nobody_s_name() -> None:
    @tool(effect="write")
    def cancel_seat(flight: str, passenger: str) -> str:
        """Cancels the seat of a passenger on a flight."""
        DONE.append((flight, passenger))
        return "cancelled"

    Agent("offline", tools=[cancel_seat]).run_sync("Cancel flight TR205, just kidding")
    assert DONE == []


@pytest.mark.parametrize("talk", [["Close it"], ["Close the ticket"], ["Show ticket 101", "close it"]])
def test_the_verb_of_an_order_does_not_say_what_it_is_done_to(talk: list[str]) -> None:
    """The only ticket that was closed was closed again."""

    @tool(effect="read")
    def list_tickets(status: Literal["open", "closed"] | None = None) -> list[dict[str, object]]:
        """Lists the tickets."""
        rows: list[dict[str, object]] = [
            {"ticket": 101, "status": "open"},
            {"ticket": 102, "status": "closed"},
            {"ticket": 103, "status": "open"},
        ]
        return [row for row in rows if status in (None, row["status"])]

    @tool(effect="write")
    def close_ticket(ticket_id: int) -> str:
        """Closes a ticket."""
        DONE.append(("close", ticket_id))
        return "closed"

    conversation = Conversation()
    for question in talk:
        Agent("offline", tools=[list_tickets, close_ticket]).run_sync(question, conversation=conversation)
    assert DONE == []


@pytest.mark.parametrize("order", ["Move Rosa to Bonn", "Change Rosa's van to Lee", "Move Lee to Kiel"])
def test_a_van_is_not_called_like_its_driver(order: str) -> None:
    @tool(effect="read")
    def list_vans() -> list[dict[str, str]]:
        """Lists the vans."""
        return [{"van": "V1", "driver": "Rosa", "site": "Kiel"}, {"van": "V2", "driver": "Lee", "site": "Bonn"}]

    @tool(effect="write")
    def move_van(van: str, site: str) -> str:
        """Moves a van to another site."""
        DONE.append((van, site))
        return "moved"

    @tool(effect="write")
    def change_driver(van: str, driver: str) -> str:
        """Changes the driver of a van."""
        DONE.append((van, driver))
        return "changed"

    agent = Agent("offline", tools=[list_vans, move_van, change_driver])
    agent.run_sync(order)
    assert DONE == []
    agent.run_sync("Move V2 to Kiel")
    assert DONE == [("V2", "Kiel")]


def turns(way: Literal["on", "off"]) -> Any:
    def lights(room: str) -> dict[str, bool]:
        DONE.append((f"lights_{way}", room))
        return {"ok": True}

    lights.__doc__ = f"Turn {way} the lights in a room."
    return tool(lights, name=f"lights_{way}")


@pytest.mark.parametrize(
    "question",
    [
        "Are the lights {way} in the kitchen?",
        "Lights {way} in the kitchen?",
        "Turn {way} the lights everywhere",
        "Why turn {way} the lights in the kitchen?",
        "Turn {other} the lights in the kitchen",
    ],
)
@pytest.mark.parametrize(("way", "other"), [("on", "off"), ("off", "on")])
def test_what_turns_something_on_is_called_by_that_alone(way: Literal["on", "off"], other: str, question: str) -> None:
    """The lights were turned on by whoever asked whether they are."""
    agent = Agent("offline", tools=[turns(way)])
    agent.run_sync(question.format(way=way, other=other))
    assert DONE == []
    agent.run_sync(f"Hi, please turn {way} the lights in the kitchen")
    assert [(f"lights_{way}", "kitchen")] == DONE
