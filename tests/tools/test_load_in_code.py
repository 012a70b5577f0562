"""Descriptions in code, in words, and one function that carries all of them out."""

from typing import Any

import pytest

from treadle import Agent, load_tools
from treadle.testing import ScriptedModel
from treadle.tools import BadTool

pytestmark = pytest.mark.anyio

STOCK = {
    "name": "check_stock",
    "description": "Says how many of an item there are.",
    "input_schema": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
}
WORDS = {
    "name": "total",
    "description": "Multiplies.",
    "inputs": {"quantity": "How many.", "unit_price": "What one costs."},
}


def check_stock(item: str) -> int:
    return {"gadget": 3}.get(item, 0)


def total(quantity: int, unit_price: float = 1.0) -> float:
    return quantity * unit_price


def execute_tool(name: str, arguments: dict[str, Any]) -> Any:
    return {"check_stock": check_stock, "total": total}[name](**arguments)


async def execute_later(name: str, arguments: dict[str, Any]) -> Any:
    return execute_tool(name, arguments)


class Shop:
    def check_stock(self, item: str) -> int:
        return check_stock(item)

    def total(self, quantity: int, unit_price: float) -> float:
        return total(quantity, unit_price)


@pytest.mark.parametrize(
    "functions", [execute_tool, execute_later, {"check_stock": check_stock, "total": total}, Shop()]
)
@pytest.mark.parametrize("descriptions", [[STOCK, WORDS], {"tools": [STOCK, WORDS]}, (STOCK, WORDS)])
async def test_descriptions_in_code_are_tools(descriptions: Any, functions: Any) -> None:
    tools = load_tools(descriptions, functions)
    calls = [("check_stock", {"item": "gadget"}), ("total", {"quantity": 2, "unit_price": 1.5})]
    result = await Agent(ScriptedModel([calls, "done"]), tools=tools).run("?")
    assert [record.result.text for record in result.tool_calls_made if record.result] == ["3", "3.0"]


def test_arguments_that_are_described_in_words_have_the_types_of_the_function() -> None:
    (made,) = load_tools([WORDS], {"total": total})
    schema = made.spec.input_schema
    assert schema["properties"]["quantity"]["type"] == "integer"
    assert schema["properties"]["quantity"]["description"] == "How many."
    assert schema["required"] == ["quantity"]
    (open_,) = load_tools([WORDS], execute_tool)
    assert open_.spec.input_schema["required"] == ["quantity", "unit_price"]


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({**WORDS, "inputs": {"quantity": 1}}, "in words what it is; 'quantity' has 1"),
        ({**WORDS, "inputs": ["quantity"]}, "inputs"),
        ({**WORDS, "input_schema": {}}, "two names of one thing"),
        ({**WORDS, "inputs": {"amount": "How much."}}, "amount"),
        ("total", "expected an object"),
    ],
)
def test_what_is_wrong_with_a_description_in_code_is_said(item: Any, words: str) -> None:
    with pytest.raises(BadTool, match=words):
        load_tools([item], {"total": total})


def test_a_function_that_is_not_there_is_named() -> None:
    with pytest.raises(BadTool, match=r"the mapping has no function 'check_stock'; did you mean 'check_stocks'\?"):
        load_tools([STOCK], {"check_stocks": check_stock})
    with pytest.raises(BadTool, match="expected a list"):
        load_tools({"tool": [STOCK]}, execute_tool)


def test_one_function_for_all_that_takes_no_name_and_arguments_is_refused_where_it_is_given():
    with pytest.raises(BadTool, match="the one function that carries all tools out takes a name and arguments"):
        load_tools([{"name": "look", "description": "Looks at it."}], lambda name: name)
