"""A JSON file of descriptions and a module of functions become tools, or a message that says what is wrong where."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from treadle.tools import BadTool, load_tools

FUNCTIONS = '''
"""Functions of a shop."""
from __future__ import annotations
from dataclasses import dataclass

from treadle.tools import tool


@dataclass
class Item:
    name: str


def check_stock(product: str, limit: int = 3) -> dict[str, int]:
    return {product: limit}


async def get_price(item: Item) -> str:
    return item.name


@tool
def decorated(a: int) -> int:
    return a


def _hidden(a: int) -> int:
    return a
'''
OBJECT = {
    "type": "object",
    "properties": {"product": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["product"],
}
STOCK = {"name": "check_stock", "description": "Stock.", "input_schema": OBJECT}


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    path = tmp_path / "shop_functions.py"
    path.write_text(FUNCTIONS)
    return path


def described(folder: Path, content: Any) -> Path:
    path = folder / "tools.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


OPENAI = {
    "type": "function",
    "function": {"name": "check_stock", "description": "Stock.", "parameters": OBJECT, "strict": True},
}
FLAT = {"type": "function", "name": "check_stock", "description": "Stock.", "parameters": OBJECT}
CAMEL = {"name": "check_stock", "description": "Stock.", "inputSchema": OBJECT}


@pytest.mark.anyio
@pytest.mark.parametrize("item", [STOCK, OPENAI, FLAT, CAMEL])
@pytest.mark.parametrize("wrapped", [True, False])
async def test_every_form_of_description(tmp_path: Path, functions: Path, item: Any, wrapped: bool) -> None:
    [made] = load_tools(described(tmp_path, {"tools": [item]} if wrapped else [item]), functions)
    assert (made.name, made.description, made.input_schema) == ("check_stock", "Stock.", OBJECT)
    assert (await made.call(made.validate('{"product": "x"}'))).content == '{"x":3}'


@pytest.mark.anyio
async def test_options_decorated_functions_and_typed_arguments(tmp_path: Path, functions: Path) -> None:
    item = {"type": "object", "properties": {"name": {"type": "string"}}}
    schema = {"type": "object", "properties": {"item": item}, "required": ["item"]}
    path = described(
        tmp_path,
        [
            {
                "name": "get_price",
                "input_schema": schema,
                "effect": "read",
                "timeout": 5,
                "output_schema": {"type": "string"},
            },
            {"name": "decorated", "input_schema": {"type": "object", "properties": {"a": {}}, "required": ["a"]}},
        ],
    )
    price, decorated = load_tools(path, functions)
    assert (price.effect, price.timeout, price.output_schema) == ("read", 5, {"type": "string"})
    assert (await price.call(price.validate('{"item": {"name": "x"}}'))).content == "x"
    assert (await decorated.call(decorated.validate('{"a": 3}'))).content == "3"


def test_module_by_name_and_as_object(tmp_path: Path, functions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    path = described(tmp_path, [STOCK])
    by_name = load_tools(path, "shop_functions")
    by_object = load_tools(str(path), sys.modules.pop("shop_functions"))
    assert [each.name for each in by_name] == [each.name for each in by_object] == ["check_stock"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[\n{"name": }]', "line 2, column 10"),
        ("\x00", "not valid JSON"),
        ("[" * 200_000, "not a JSON file"),
        ("{}", "expected a list"),
        ('{"tools": 3}', "expected a list"),
        ([3], "item 0: expected an object"),
        ([{"description": "x"}], 'item 0: expected an object with a "name"'),
        ([STOCK, STOCK], "item 1: there are two descriptions of 'check_stock'"),
        ([{**STOCK, "name": "check_stok"}], "has no function 'check_stok'; did you mean 'check_stock'"),
        ([{**STOCK, "name": "Item stock"}], "has no function 'Item stock'"),
        ([{**STOCK, "timout": 3}], "did you mean 'timeout'"),
        ([{**STOCK, "effect": "reed"}], "effect='reed'"),
        ([{**STOCK, "description": 3}], "the description is a text"),
        ([{**STOCK, "input_schema": 3}], "input_schema is a JSON Schema object"),
        ([{**STOCK, "parameters": OBJECT}], "two names of one thing"),
        ([{**STOCK, "input_schema": {"type": "object", "properties": {"product": {}, "colour": {}}}}], "has 'colour'"),
        ([{**STOCK, "input_schema": {"type": "object"}}], "needs 'product'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, functions: Path, content: Any, words: str) -> None:
    path = described(tmp_path, content)
    with pytest.raises(BadTool) as caught:
        load_tools(path, functions)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path, functions: Path) -> None:
    with pytest.raises(BadTool, match="No such file"):
        load_tools(tmp_path / "none.json", functions)
    with pytest.raises(BadTool, match="cannot be read"):
        load_tools(tmp_path, functions)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadTool, match="UTF-8"):
        load_tools(binary, functions)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("nowhere_to_be_found", "no module 'nowhere_to_be_found'"),
        ("treadle.nowhere", "no module 'treadle.nowhere'"),
        ("none.py", "no such file of functions"),
        ("..", "failed"),
    ],
)
def test_bad_modules(tmp_path: Path, module: str, words: str) -> None:
    with pytest.raises(BadTool, match=words):
        load_tools(described(tmp_path, [STOCK]), module)


@pytest.mark.parametrize("code", ["1 +", "import nowhere_at_all", "1 / 0"])
def test_a_module_that_fails_leaves_nothing_behind(tmp_path: Path, code: str) -> None:
    path = tmp_path / "broken_functions.py"
    path.write_text(code)
    before = set(sys.modules)
    with pytest.raises(
        BadTool, match=r"importing .*broken_functions\.py failed: (Syntax|ModuleNotFound|ZeroDivision)Error"
    ):
        load_tools(described(tmp_path, [STOCK]), path)
    assert not {name for name in set(sys.modules) - before if "broken_functions" in name}
