"""The page about LangChain has a function for its tools: whatever schema one has, and whatever it gives, comes over."""

import re
from typing import Annotated, Any

import pytest
from pages import ROOT

pytest.importorskip("langchain_core")

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolArg, InjectedToolCallId, StructuredTool, ToolException, tool

from treadle import Agent, Image, Text
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio
BLOCK = re.compile(r"^(from langchain_core.tools import .*?)^def multiply", re.MULTILINE | re.DOTALL)
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@tool(args_schema=SCHEMA)
def described(q: str) -> str:
    """Has a schema and no type for it, as those of an MCP server have."""
    return q


async def beside(q: str) -> str:
    """Has no function to call at once."""
    return q


@tool(response_format="content_and_artifact")
def with_artifact(q: str) -> Any:
    """Gives something beside the text."""
    return q, {"kept": True}


@tool
def pictures(q: str) -> list[dict[str, str]]:
    """Gives parts."""
    return [{"type": "text", "text": q}, {"type": "image", "base64": "aGk=", "mime_type": "image/png"}]


@tool
def fails(q: str) -> str:
    """Raises what its own handler makes a text of."""
    raise ToolException(f"no {q}")


@tool
def says_so(q: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
    """Says by its status that it failed."""
    return ToolMessage(f"no {q}", tool_call_id=tool_call_id, status="error")


fails.handle_tool_error = True
GIVEN = [
    (described, "nut", False),
    (StructuredTool.from_function(coroutine=beside), "nut", False),
    (with_artifact, "nut", False),
    (pictures, (Text("nut"), Image(b"hi", media_type="image/png")), False),
    (fails, "no nut", True),
    (says_so, "no nut", True),
]


@tool
def injected(q: str, key: Annotated[str, InjectedToolArg] = "the program's") -> str:
    """Has an argument that is no model's."""
    return q + key


async def test_a_model_sets_no_argument_that_it_is_not_shown() -> None:
    (block,) = BLOCK.findall((ROOT / "docs" / "langchain.md").read_text("utf-8"))
    page: dict[str, Any] = {}
    exec(block, page)
    model = ScriptedModel([[("injected", {"q": "nut", "key": "mine"}), ("injected", {"q": "nut"})], "done"])
    result = await Agent(model, tools=[page["from_theirs"](injected, effect="read")]).run("go")
    first, second = result.tool_calls_made
    assert "no argument 'key'" in first.result.text
    assert second.result.text == "nutthe program's"


@pytest.mark.parametrize(("theirs", "content", "failed"), [pytest.param(*one, id=one[0].name) for one in GIVEN])
async def test_any_tool_of_langchain_comes_over_with_what_it_gives(theirs: Any, content: Any, failed: bool) -> None:
    """One with a schema of JSON had no form, and a failure that was told by a status was told as a success."""
    (block,) = BLOCK.findall((ROOT / "docs" / "langchain.md").read_text("utf-8"))
    page: dict[str, Any] = {}
    exec(block, page)  # The page's own function is what is tested.
    model = ScriptedModel([[(theirs.name, {"q": "nut"})], "done"])
    result = await Agent(model, tools=[page["from_theirs"](theirs, effect="read")]).run("go")
    (call,) = result.tool_calls_made
    assert call.result.is_error is failed
    assert content in call.result.text if failed else call.result.content == content
