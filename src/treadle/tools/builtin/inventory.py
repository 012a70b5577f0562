"""An example skill: what a small warehouse has in stock and what it costs, over the data file beside this module."""

import json
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from treadle.kernel.money import times
from treadle.tools.errors import ToolError, did_you_mean, nearest
from treadle.tools.function import tool
from treadle.tools.skills import Skill

Money = Annotated[Decimal, WithJsonSchema({"type": "string", "format": "decimal"})]


class Stock(TypedDict):
    """How many of a product are in stock."""

    product: str
    quantity: int


class Price(TypedDict):
    """What one of a product costs."""

    product: str
    unit_price: Money
    currency: str


class Total(TypedDict):
    """What a number of something costs together."""

    quantity: int
    unit_price: Money
    total: Money
    currency: str


@tool(effect="read", timeout=10.0)
async def check_stock(product: str) -> Stock:
    """Tells how many of a product are in stock in the inventory.

    Args:
        product: the product's name, such as "widgets".
    """
    name = _product(product)
    return {"product": name, "quantity": _stock()[name]}


@tool(effect="read", timeout=10.0)
async def get_price(product: str) -> Price:
    """Tells the unit price of a product in the inventory.

    Args:
        product: the product's name, such as "widgets".
    """
    name = _product(product)
    return {"product": name, "unit_price": _prices()[name], "currency": _currency()}


@tool(effect="read", timeout=10.0)
async def calculate_total(
    quantity: Annotated[int, Field(ge=0, le=10**12)], unit_price: Annotated[Decimal, Field(ge=0, le=10**12)]
) -> Total:
    """Calculates the total price, or value, of a quantity at a unit price. It is in the inventory's currency.

    Args:
        quantity: how many, such as check_stock tells.
        unit_price: what one costs, as get_price tells.
    """
    return {
        "quantity": quantity,
        "unit_price": unit_price,
        "total": times(unit_price, Decimal(quantity)),
        "currency": _currency(),
    }


def _product(given: str) -> str:
    """The product's name as the data has it; case, and singular or plural, do not matter."""
    plain = given.strip().casefold()
    known = list(_stock())
    for name in (plain, f"{plain}s"):
        if name in known:
            return name
    like = nearest(given, known)
    raise ToolError(
        f"there is no product {given[:80]!r}{did_you_mean(like)} (there are: {', '.join(known)})",
        argument="product",
        given=given[:80],
        nearest=like,
        available=known,
    )


class _Row(TypedDict):
    product: str
    quantity: int
    unit_price: str


class _Data(TypedDict):
    currency: str
    products: list[_Row]


@cache
def _data() -> _Data:
    text = files("treadle.tools.builtin").joinpath("inventory.json").read_text(encoding="utf-8")
    data: _Data = json.loads(text)
    return data


def _currency() -> str:
    return _data()["currency"]


@cache
def _stock() -> dict[str, int]:
    return {row["product"]: row["quantity"] for row in _data()["products"]}


@cache
def _prices() -> dict[str, Decimal]:
    return {row["product"]: Decimal(row["unit_price"]) for row in _data()["products"]}


inventory = Skill(
    "inventory",
    "Answers questions about the warehouse: stock with check_stock, unit prices with get_price, values and totals with "
    "calculate_total. The value of everything in stock is calculate_total of the quantity that check_stock tells and "
    "the unit price that get_price tells. Name the quantity and the currency in the answer.",
    (check_stock, get_price, calculate_total),
    "what is in stock and what it costs (example data)",
)
