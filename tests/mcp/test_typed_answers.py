"""An agent or a tool with a type, served: the type is listed, and what is given is structured content that fits it."""

from decimal import Decimal
from typing import Any, Literal

import pytest

pytest.importorskip("mcp")

from mcp import Client
from pydantic import BaseModel, ConfigDict, Field

from treadle import Agent, File, Image, Limits, MemoryJournal, ToolError, ToolResult, external_tool, handoff, tool
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


async def test_a_file_of_one_treadle_has_its_name_with_another():
    """The address was none, and what followed a "/" or a "#" in the name was all of it, or lost."""
    bill = File(b"5", None, "text/plain", "bill #7 of 1/2.txt")

    @tool(effect="read")
    def bills() -> list[Any]:
        """Gives a bill."""
        return [bill]

    server = MCPServer("shop", lambda _: of(server_of([bills])), Secrets({}), "in memory", {})
    result = await Agent(ScriptedModel([[("shop__bills", {})], "done"]), tools=[server]).run("go")
    assert result.steps[0].calls[0].result.content == (bill,)


def of(served: Any) -> Any:
    import runpy
    from pathlib import Path

    streams = runpy.run_path(str(Path(__file__).with_name("handshake.py")))["of_before"]
    return streams(served, before=False)


class Node(BaseModel):
    name: str
    below: list["Node"] = []


@tool(effect="read")
def invoice() -> Invoice:
    """Gives an invoice."""
    return Invoice(number=7, lines=[Line(text="nut", price=Decimal("2.50"))])


@tool(effect="read")
def totals() -> list[Decimal]:
    """Gives totals."""
    return [Decimal("2.50")]


@tool(effect="read")
def tree() -> Node:
    """Gives a tree."""
    return Node(name="a", below=[Node(name="b")])


@tool(effect="read")
def grade() -> Literal["1", "2"]:
    """Gives a grade, which is a text."""
    return "1"


@tool(effect="read")
def share() -> float:
    """Gives a share that is no number."""
    return float("nan")


@tool(effect="read", max_output=200)
def many() -> list[int]:
    """Gives more than is shown."""
    return list(range(1000))


@tool(effect="read")
def breaks() -> list[int]:
    """Fails."""
    raise ToolError("there are none")


@tool(effect="read")
def words() -> str | int:
    """Gives words."""
    return "5"


@tool(effect="read")
def whatever() -> ToolResult:
    """Gives something."""
    return ToolResult("a", {"a": 1})


@tool(effect="read")
def pictured() -> list[Any]:
    """Gives words and a picture."""
    return ["a nut", Image(b"i")]


async def given(one: Any, mode: str) -> tuple[Any, Any]:
    """What is listed of the tool's results, and what a call of it gives."""
    async with Client(server_of([one]), mode=mode) as client:
        (listed,) = (await client.list_tools()).tools
        return listed.output_schema, await client.call_tool(one.name, {})


@ERAS
@pytest.mark.parametrize(
    ("one", "shown"),
    [
        (invoice, {"no": 7, "lines": [{"text": "nut", "price": "2.50"}]}),
        (totals, {"result": ["2.50"]}),
        (tree, {"result": {"name": "a", "below": [{"name": "b", "below": []}]}}),
        (grade, {"result": "1"}),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
async def test_what_a_tool_gives_is_listed_and_fits_it(one, shown, mode):
    """Agents had a form, and tools none."""
    schema, found = await given(one, mode)
    assert schema["type"] == "object"
    assert (found.structured_content, found.is_error) == (shown, False)
    assert found.content[0].text


@ERAS
@pytest.mark.parametrize(("one", "says"), [(share, "NaN"), (many, "["), (breaks, "there are none")], ids=lambda one: "")
async def test_a_result_that_is_not_of_the_form_is_an_error_which_shows_it(one, says, mode):
    schema, found = await given(one, mode)
    assert schema is not None
    assert (found.structured_content, found.is_error) == (None, True)
    assert says in found.content[-1].text
    assert (len(found.content) == 2) == (one is not breaks)


@pytest.mark.parametrize("one", [words, whatever, pictured], ids=lambda one: one.name)
async def test_nothing_is_listed_of_a_tool_that_may_give_any_text_or_any_list(one):
    """What is a picture was told as an error, of a call that was made."""
    schema, found = await given(one, "auto")
    assert (schema, found.structured_content, found.is_error) == (None, None, False)


async def test_a_result_that_is_asked_for_again_under_its_key_has_its_form_too():
    keyed = {"io.treadle/idempotency-key": "once"}
    async with Client(server_of([totals], journal=MemoryJournal())) as client:
        found = [await client.call_tool("totals", {}, meta=keyed) for _ in range(2)]
    assert [one.structured_content for one in found] == [{"result": ["2.50"]}] * 2
    assert found[0].meta == found[1].meta


async def test_a_tool_of_a_server_is_served_on_with_its_form():
    """Through two servers."""
    transport = lambda _: of(server_of([totals]))  # noqa: E731
    async with MCPServer("shop", transport, Secrets({}), "in memory", {}) as shop:
        (listed,) = await shop.listed()
    assert listed.output_schema["properties"]["result"]["type"] == "array"
