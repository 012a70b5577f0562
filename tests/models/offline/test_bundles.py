"""Several things with a number of each: what they cost together is worked out, and an order of them is several."""

import pytest

from treadle import Agent, ToolError, tool

PRICES = {"rake": 14.5, "spade": 22.0, "hose": 35.25, "glove": 0.1}
ORDERS: list[tuple[str, int]] = []


def price(item: str) -> float:
    for name in (item.lower(), item.lower().removesuffix("s")):
        if name in PRICES:
            return PRICES[name]
    raise ToolError(f"no item {item!r}", given=item, available=list(PRICES))


@tool(effect="read")
def unit_price(item: str) -> float:
    """Price in EUR of one piece of an item."""
    return price(item)


@tool(effect="read")
def price_per_kg(item: str) -> float:
    """Price per kg of an item."""
    return price(item)


@tool(effect="read")
def line_total(item: str, quantity: int) -> float:
    """What a quantity of an item costs in EUR."""
    return price(item) * quantity


@tool(effect="read")
def calculate(expression: str) -> float:
    """Evaluates an arithmetic expression, such as "2 * (3 + 4)"."""
    number, figure = expression.split(" * ")
    return float(number) * float(figure)


@tool
def place_order(item: str, quantity: int) -> str:
    """Orders some pieces of an item."""
    ORDERS.append((item, quantity))
    return "ordered"


def asked(question: str, *tools: object) -> str:
    ORDERS.clear()
    return Agent("offline", tools=[*tools]).run_sync(question).text  # type: ignore[list-item]


@pytest.mark.parametrize("times", [line_total, calculate])
@pytest.mark.parametrize(
    ("question", "total"),
    [
        ("total for 3 rakes and 2 spades", "87.5"),
        ("What do 3 rakes and 2 spades cost together?", "87.5"),
        ("How much are two rakes, 1 spade and 10 gloves, please?", "52"),
        ("What is the total price of 4 hoses and a rake?", "155.5"),
        ("How much would 3 gloves and 3 rakes come to?", "43.8"),
    ],
)
def test_adds_up_what_several_things_cost(question: str, total: str, times: object) -> None:
    assert asked(question, unit_price, times).splitlines()[-2] == f"In total: {total}"


def test_multiplies_with_a_tool_that_takes_an_expression() -> None:
    assert "43.5" in asked("What do 3 rakes cost?", unit_price, calculate)


@pytest.mark.parametrize(
    "question",
    [
        "total for 3 rakes and some spades",
        "total for 3 rakes or 2 spades",
        "total for 3 rakes and 2 spades with 20% VAT",
        "What do 3 rakes and 2 spades cost each?",
        "What do 3 rakes and 2 red spades cost?",
        "What do 3 rakes and 2.5 spades cost?",
        "What do 3 rakes and 2 unicorns cost?",
        "What do 3 rakes and 2 kg gloves cost?",
    ],
)
def test_tells_no_total_of_anything_else(question: str) -> None:
    assert "In total" not in asked(question, unit_price, line_total)


def test_a_price_per_kilogram_is_none_of_a_piece() -> None:
    assert "In total" not in asked("What do 3 rakes and a spade cost?", price_per_kg, calculate)


def test_orders_each_of_several_things() -> None:
    asked("Please order 5 rakes and 3 spades", unit_price, place_order)
    assert sorted(ORDERS) == [("rakes", 5), ("spades", 3)]


@pytest.mark.parametrize(
    "question",
    [
        "Order 5 rakes and 3 of the spades",
        "Order 5 rakes or 3 spades",
        "Order 5 rakes and no spades",
        "Order 5 rakes and cancel 3 spades",
        "Did we order 5 rakes and 3 spades?",
        "Order 5 rakes and 1.000 spades",
        "Order 5 rakes and some spades",
    ],
)
def test_orders_nothing_where_one_of_them_is_not_said(question: str) -> None:
    asked(question, unit_price, place_order)
    assert ORDERS == []


def test_takes_no_other_thing_for_the_one_that_is_asked_for() -> None:
    assert "no item 'vegan rake'" in asked("What does a vegan rake cost?", unit_price)
