"""An agent whose answer has a type, served: the type is listed, and each answer is structured content that fits it."""

from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp import Client
from pydantic import BaseModel, ConfigDict, Field

from treadle import Agent, Limits, MemoryJournal, external_tool, handoff
from treadle.mcp import MCPServer, server_of
from treadle.mcp.secrets import Secrets
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


class Line(BaseModel):
    text: str
    price: Decimal


class Invoice(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    number: int = Field(alias="no")
    lines: list[Line]


SAID = '{"no": "7", "lines": [{"text": "nut", "price": 2.50}]}'


def typed(said: Any, output: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel([said]), output=output, output_mode="prompted", name="clerk", **options)


async def called(agent: Agent[Any, Any], mode: str = "auto") -> tuple[Any, Any]:
    async with Client(server_of(agent), mode=mode) as client:
        (listed,) = (await client.list_tools()).tools
        return listed.output_schema, await client.call_tool("clerk", {"task": "write it"})


@ERAS
async def test_its_type_is_listed_and_its_answer_fits_it(mode):
    """No client could know what it would be given, nor hold it against anything."""
    schema, found = await called(typed(SAID, Invoice), mode)
    assert schema["type"] == "object"
    assert set(schema["properties"]) == {"no", "lines"}
    # As Pydantic writes the type, not as the model wrote the answer.
    assert found.structured_content == {"no": 7, "lines": [{"text": "nut", "price": "2.50"}]}
    assert not found.is_error


@ERAS
@pytest.mark.parametrize(
    ("output", "said", "shown"),
    [(list[int], "[1, 2]", [1, 2]), (int | None, "null", None), (Invoice | Line, '{"text":"a","price":1}', None)],
)
async def test_an_answer_that_is_no_object_stands_in_one(mode, output, said, shown):
    """It was given as text alone."""
    schema, found = await called(typed(said, output), mode)
    assert (schema["type"], schema["required"]) == ("object", ["result"])
    assert list(found.structured_content) == ["result"]
    if shown is not None or output == int | None:
        assert found.structured_content["result"] == shown


@ERAS
async def test_a_run_that_stops_before_is_an_error_and_needs_no_answer(mode):
    agent = typed([("clerk", {})], Invoice, limits=Limits(steps=1), on_limit="stop")
    schema, found = await called(agent, mode)
    assert schema is not None
    assert found.is_error
    assert "stopped before it was done" in found.content[0].text


@ERAS
async def test_an_answer_that_has_no_form_is_an_error(mode):
    """Not a number has no JSON: the official client would have raised."""
    _, found = await called(typed('{"total": NaN}', dict[str, float]), mode)
    assert found.is_error
    assert "without an answer of the form that is listed" in found.content[0].text


async def test_nothing_is_listed_where_a_run_may_end_with_something_else():
    other = Agent(ScriptedModel(["words"]), name="other")
    done = external_tool("done", "Ends.")
    for agent in (typed(SAID, Invoice, tools=[done]), typed(SAID, Invoice, tools=[handoff(other)])):
        schema, found = await called(agent)
        assert schema is None
        assert found.structured_content["no"] == 7
    plain = Agent(ScriptedModel(["words"]), name="clerk")
    assert (await called(plain))[0] is None


async def test_no_answer_is_not_an_answer_of_null():
    agent = typed("not yet", int | None, stop_when=[lambda state: True])
    _, found = await called(agent)
    assert found.structured_content is None
    assert found.is_error


class Twice(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    word: str = Field(pattern=r"^(?P<a>.)(?P=a)$")


async def test_a_form_that_only_python_can_check_is_not_listed():
    """Every answer was told to be of another form."""
    schema, found = await called(typed('{"word": "aa"}', Twice))
    assert schema is None
    assert found.structured_content == {"word": "aa"}
    assert not found.is_error


async def test_one_treadle_gives_it_to_another():
    transport = lambda _: of(server_of(typed(SAID, Invoice)))  # noqa: E731
    server = MCPServer("shop", transport, Secrets({}), "in memory", {})
    journal = MemoryJournal()
    model = ScriptedModel([[("shop__clerk", {"task": "write it"})], "done"])
    result = await Agent(model, tools=[server], journal=journal).run("go")
    assert result.steps[0].calls[0].app == {"no": 7, "lines": [{"text": "nut", "price": "2.50"}]}


def of(served: Any) -> Any:
    import runpy
    from pathlib import Path

    streams = runpy.run_path(str(Path(__file__).with_name("handshake.py")))["of_before"]
    return streams(served, before=False)
