"""Orders, and what only looks like one, put together by chance over tools of each form.

What may be called follows from how a sentence was made: of what is no order nothing, of an order that one call. A
refusal is always right, but plain orders are carried out.
"""

import inspect
import random
from typing import Any

import pytest

from treadle import Agent, Tool, tool

DONE: list[tuple[str, dict[str, Any]]] = []

# The verb, what it is called once it is done, and while it is.
VERBS = [
    tuple(line.split())
    for line in """
    cancel cancelled cancelling
    lock locked locking
    clean cleaned cleaning
    print printed printing
    queue queued queuing
    like liked liking
    attack attacked attacking
    open opened opening
    return returned returning
    drop dropped dropping
    charge charged charging
    water watered watering
    release released releasing
    track tracked tracking
    test tested testing
    double doubled doubling
    """.strip().splitlines()
]
THINGS = ["ticket", "room", "device", "valve", "permit", "parcel"]
NAMES = ["A17", "B8", "K-204", "7", "Vega", "Tom Reed"]
NO_ORDERS = """
Is {n} {x} {done}?
Is {n} {x} {v}?
Has {n} {x} been {done}?
Can {n} {x} be {done}?
{N} {x} is {v}
{N} {x} is {done}
{V} of {n} {x}
{V} of {x}
{V} at {n} {x}
{V} on {x}
{V} in {n} {x}
"{V} {n} {x}"
'{V} {n} {x}'
({V} {n} {x})
I {v} {n} {x}
What is {n} {x} {v}?
{Doing} {n} {x}
{V} the cat
{V} the {n}
Ann said to {v} {n} {x}
Ann: {v} {n} {x}
Should I {v} {n} {x}?
What if we {v} {n} {x}?
If I {v} {n} {x}, what then?
Never {v} {n} {x}
{V} {n} {x}, or don't
{V} {n} {x} tomorrow
{V} {n} {x} unless Ann objects
{V} {n} {x} or B9
{V} neither {n} {x} nor B9
{V} {n} {x}'s twin
{V} {n} {x} is wrong
{V} {n} {x} twice
Let Ann {v} {n} {x}
You {v} {n} {x}, right?
Show the {v} of {n} {x}
{N} {x} {v}
{V} {n} {x}, sorry, {z}
{V} {n} {x}, oops, {z}
{V} {n} {x}, {z}
{V} {n} {x} - {z}
{V} {n} {x} ({z})
{V} {n} {x} like {z}
{V} {n} {x} and
{V} {n} {x} with
{V} {n} {x} for the
{V} {n}
{V} later
{V} once
{V} 3 times
{V} himself
""".strip().splitlines()
ORDERS = ["{V} {n} {x}", "Please {v} {n} {x}", "{V} the {n} {x}.", "Could you {v} {n} {x}?"]
ENOUGH = 30


def toolbox(chance: random.Random, verb: str, thing: str) -> tuple[list[Tool], str]:
    """A tool of some form that does it, and one that tells of such a thing; with the name of the first."""
    name = chance.choice([f"{verb}_{thing}", f"{thing}_{verb}", f"{verb}_{thing}" if verb == "return" else verb])
    called = chance.choice([verb.capitalize(), f"{verb.capitalize()}{'es' if verb.endswith('h') else 's'}"])

    def do(which: str) -> str:
        DONE.append((name, {"which": which}))
        return "done"

    def get(which: str) -> dict[str, object]:
        return {thing: which, "state": "pending", "owner": "Ann"}

    do.__name__, do.__doc__ = name, f"{called} a {thing}.\n\n    Args:\n        which: the {thing}."
    get.__name__, get.__doc__ = f"get_{thing}", f"Get a {thing}."
    tools = [tool(effect="write")(do) if chance.random() < 1 / 3 else tool(do), tool(effect="read")(get)]
    return tools[: chance.choice([1, 2])], name


def sentence(chance: random.Random, form: str, verb: tuple[str, ...], thing: str, names: list[str]) -> str:
    v, done, doing = verb
    words = {
        "v": v,
        "V": v.capitalize(),
        "done": done,
        "Doing": doing.capitalize(),
        "n": thing,
        "N": thing.capitalize(),
    }
    return form.format(**words, x=names[0], z=names[1])


@pytest.mark.parametrize("seed", [2, 3])
def test_nothing_is_changed_that_was_not_ordered(seed: int) -> None:
    chance = random.Random(seed)
    for form in NO_ORDERS:
        verb, thing = chance.choice(VERBS), chance.choice(THINGS)
        tools, _ = toolbox(chance, verb[0], thing)
        question = sentence(chance, form, verb, thing, chance.sample(NAMES, 2))
        DONE.clear()
        Agent("offline", tools=tools).run_sync(question)
        assert DONE == [], (question, tools[0].spec)


def test_plain_orders_are_carried_out_and_as_they_were_given() -> None:
    chance = random.Random(5)
    carried = 0
    for _ in range(40):
        verb, thing = chance.choice(VERBS), chance.choice(THINGS)
        tools, name = toolbox(chance, verb[0], thing)
        names = chance.sample(NAMES, 2)
        question = sentence(chance, chance.choice(ORDERS), verb, thing, names)
        DONE.clear()
        Agent("offline", tools=tools).run_sync(question)
        assert DONE in ([], [(name, {"which": names[0]})]), (question, tools[0].spec)
        carried += bool(DONE)
    assert carried >= ENOUGH


def does(name: str, description: str, *params: str, effect: Any = None) -> Tool:
    """A tool that changes something, and says so or not."""

    def function(**given: str) -> str:
        DONE.append((name, given))
        return "done"

    said = {each: inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, annotation=str) for each in params}
    function.__name__, function.__doc__ = name, description
    function.__annotations__ = {**dict.fromkeys(params, str), "return": str}
    setattr(function, "__signature__", inspect.Signature(list(said.values()), return_annotation=str))  # noqa: B010
    return tool(effect=effect)(function) if effect else tool(function)


@pytest.mark.parametrize(
    ("question", "name", "description", "params"),
    [
        ("Is room 14 clean?", "clean", "Have a room cleaned.", ["room"]),
        ("Is folder Docs read only?", "read_only", "Makes a folder read-only.", ["folder"]),
        ("Show the payment of invoice I9", "check_payment", "Sends a check for an invoice.", ["invoice"]),
        ("What do I get of file a.txt?", "get_rid_of", "Deletes a file.", ["file"]),
        ("Alarm status zone 3", "alarm_status", "Silences the alarm of a zone.", ["zone"]),
        ("What is post 77 like?", "like", "Like a post.", ["post_id"]),
        ("Keep track of K1?", "track", "Starts to track a car.", ["car"]),
        ("Display of the Amber Cup", "display", "Puts an exhibit on display.", ["exhibit"]),
        ("Can valve 7 be returned?", "valve_return", "Return a valve.", ["valve_id"]),
        ("Room A17 is printed", "room_print", "Print a room.", ["room_id"]),
    ],
)
def test_what_changes_something_by_its_description_is_not_asked(
    question: str, name: str, description: str, params: list[str]
) -> None:
    DONE.clear()
    Agent("offline", tools=[does(name, description, *params)]).run_sync(question)
    assert DONE == []


@pytest.mark.parametrize(
    ("order", "name", "description", "params"),
    [
        ("Lock the car", "door_lock", "Locks a door.", ["door"]),
        ("Turn on the heater", "lights_on", "Turns the lights in a room on.", ["room"]),
        ("Fire the potter", "fire", "Fires a kiln.", ["kiln"]),
        ("Deploy main to staging, sorry, dev", "deploy", "Deploy a branch to a stage.", ["branch", "stage"]),
        ("Charge the bill of table 3", "bill_pay", "Pays the bill of a table.", ["table"]),
        ("Borrow Emma for Tom Brown", "lend", "Lend a book to a member.", ["title", "member"]),
        ("Release line Tom Reed - Vega", "release", "Release a line.", ["line"]),
        ("Approve of K5", "approve", "Approve a permit.", ["permit"]),
        ("'Drop table tmp_a'", "drop_table", "Drop a table.", ["table"]),
    ],
)
def test_an_order_of_something_else_is_not_carried_out(
    order: str, name: str, description: str, params: list[str]
) -> None:
    DONE.clear()
    Agent("offline", tools=[does(name, description, *params, effect="write")]).run_sync(order)
    assert DONE == []


@pytest.mark.parametrize(
    ("order", "name", "description", "params", "given"),
    [
        ("Lock door D4", "door_lock", "Locks a door.", ["door"], ["D4"]),
        ("Vacuum the hall", "vacuum", "Vacuum a room.", ["room"], ["hall"]),
        ("Turn on the lights in the kitchen", "lights_on", "Turns the lights in a room on.", ["room"], ["kitchen"]),
        ("Clean room 14", "clean", "Have a room cleaned.", ["room"], ["14"]),
        ("Like post 77", "like", "Like a post.", ["post_id"], ["77"]),
        ("Return valve 7", "valve_return", "Return a valve.", ["valve_id"], ["7"]),
        ("Delete file a.txt", "get_rid_of", "Deletes a file.", ["file"], ["a.txt"]),
    ],
)
def test_an_order_by_the_verb_of_the_tool_is_carried_out(
    order: str, name: str, description: str, params: list[str], given: list[str]
) -> None:
    DONE.clear()
    Agent("offline", tools=[does(name, description, *params)]).run_sync(order)
    assert [(name, dict(zip(params, given, strict=True)))] == DONE
