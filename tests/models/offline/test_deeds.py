"""What a tool says that it does, it does, however it says so: no question calls it, and an order does."""

from collections.abc import Callable
from itertools import product

import pytest

from treadle import Agent, tool

DEEDS = (
    "Opens or closes the barrier.",
    "Open/close the barrier.",
    "Used to open or close the barrier.",
    "Lets you open the barrier.",
    "This opens the barrier.",
    "Safely opens the barrier.",
    "A tool that opens the barrier.",
    "Raises or lowers the barrier.",
    "Raises the barrier.",
    "Locks, unlocks or resets the barrier.",
    "(Un)locks the barrier.",
    "Opens barriers.",
    "Gets or sets the barrier.",
    "Remote control for the barrier.",
    "Greases and logs the barrier.",
    "Has the barrier opened.",
    "Has the arm of the barrier swept.",
)
NAMES = ("barrier", "barrier_state", "main_barrier", "run_barrier", "barriers")
QUESTIONS = (
    "Is the barrier open?",
    "Are the barriers open?",
    "What is the state of the barrier?",
    "How is the barrier?",
    "Show me the barrier",
)
TOLD = (
    ("load_menu", "Opens and reads the menu of a shop.", "What is the menu of Kiosk?"),
    ("rating", "Used to look up the rating of a shop.", "What is the rating of Kiosk?"),
    ("distance", "A function that computes the distance to a shop.", "What is the distance to Kiosk?"),
    ("tax", "Loads or computes a shop's tax.", "What is the tax of Kiosk?"),
    ("get_price", "Has the price of a shop.", "What is the price of Kiosk?"),
    ("rent", "Monthly rent the shop pays.", "What is the rent of Kiosk?"),
    ("queue", "Cars and vans a shop has in the queue.", "What is the queue of Kiosk?"),
)


def _barrier(name: str, description: str) -> Callable[[str], str]:
    def barrier(action: str) -> str:
        return action

    barrier.__name__ = name
    barrier.__doc__ = f'{description}\n\nArgs:\n    action: "open" or "close".'
    return barrier


@pytest.mark.parametrize("description", DEEDS)
def test_a_question_does_nothing_that_a_tool_says_it_does(description: str) -> None:
    for name, question in product(NAMES, QUESTIONS):
        result = Agent("offline", tools=[tool(_barrier(name, description))]).run_sync(question)
        assert not result.tool_calls_made, (name, question)


@pytest.mark.parametrize("effect", ["write", None])
@pytest.mark.parametrize("way", ["open", "close"])
def test_an_order_by_either_of_two_joined_verbs_is_carried_out(effect: str | None, way: str) -> None:
    barrier = _barrier("barrier", DEEDS[0])
    made = tool(barrier) if effect is None else tool(effect="write")(barrier)
    result = Agent("offline", tools=[made]).run_sync(f"{way.title()} the barrier.")
    assert [call.arguments for call in result.tool_calls_made] == [{"action": way}]


@pytest.mark.parametrize(("name", "description", "question"), TOLD)
def test_what_a_tool_says_that_it_tells_it_is_asked(name: str, description: str, question: str) -> None:
    def told(shop: str) -> str:
        return "forty two"

    told.__name__, told.__doc__ = name, description
    result = Agent("offline", tools=[tool(told)]).run_sync(question)
    assert [call.arguments for call in result.tool_calls_made] == [{"shop": "Kiosk"}]
