"""A parameter may be called what a schema calls its own parts: `type`, `metadata`, `default`."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from treadle import Agent, Tool, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

NAMES = ("type", "metadata", "default", "serialization", "fields", "choices")


class Shape(BaseModel):
    type: Literal["circle", "square"]
    default: Decimal


async def called(one: Tool, arguments: dict[str, Any]) -> str:
    result = await Agent(ScriptedModel([[(one.name, arguments)], "done"]), tools=[one]).run("go")
    told = result.tool_calls_made[0].result
    assert told is not None
    return told.text


def taking(name: str, kind: Any) -> Tool:
    space: dict[str, Any] = {"kind": kind}
    exec(f"def take({name}: kind) -> str:\n    return repr({name})", space)
    return tool(space["take"])


@pytest.mark.parametrize("name", NAMES)
async def test_a_parameter_of_that_name_takes_what_its_type_says(name: str) -> None:
    assert await called(taking(name, Literal["single", "double"] | None), {name: "double"}) == "'double'"
    assert "it is one of" in await called(taking(name, Literal["single", "double"]), {name: "triple"})


@pytest.mark.parametrize("name", NAMES)
async def test_a_number_of_that_name_keeps_its_digits(name: str) -> None:
    digits = "0.1234567890123456789012345"
    assert await called(taking(name, Decimal), {name: Decimal(digits)}) == f"Decimal('{digits}')"


@pytest.mark.parametrize("name", NAMES)
async def test_items_of_that_name_are_read_before_the_call(name: str) -> None:
    assert await called(taking(name, Iterable[int]), {name: [1, 2]}) == "[1, 2]"
    assert "should be a valid integer" in await called(taking(name, Iterable[int]), {name: [1, "x"]})


async def test_a_field_of_that_name_does_as_well() -> None:
    @tool
    def draw(shape: Shape) -> str:
        """Draws a shape."""
        return f"{shape.type} {shape.default}"

    assert await called(draw, {"shape": {"type": "circle", "default": Decimal("1.50")}}) == "circle 1.50"


async def test_a_typed_answer_may_have_it() -> None:
    model = ScriptedModel(['{"type": "circle", "default": 1.50}'])
    assert (await Agent(model, output=Shape).run("go")).output == Shape(type="circle", default=Decimal("1.50"))
