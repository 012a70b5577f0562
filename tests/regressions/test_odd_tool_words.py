"""What a tool says in ways that no text, and no JSON, can take: it ends no run, and holds none up."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from treadle import Agent, ToolError, ToolResult, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Unsayable(str):
    """Words of a translation that is not there, say."""

    def __str__(self) -> str:
        raise LookupError("no such language")


class Lazy:
    def __str__(self) -> str:
        raise LookupError("no such language")


async def told(result: Any, raised: bool = False) -> dict[str, Any]:
    """What the model is shown of a tool that returns, or raises, `result`."""

    @tool(effect="read")
    async def look() -> Any:
        """Looks."""
        if raised:
            raise result
        return result

    run = await Agent(ScriptedModel([[("look", {})], "Done."]), tools=[look]).run("Look.")
    assert run.finished
    shown = json.loads(run.tool_calls_made[0].result.text)  # type: ignore[union-attr]
    assert isinstance(shown, dict)
    return shown


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Lazy(), "(its message could not be shown)"),
        (Unsayable("it is closed"), "it is closed"),
        (404, "404"),
    ],
)
async def test_an_error_whose_words_are_no_text_ends_no_run(message: Any, words: str) -> None:
    assert await told(ToolError(message, given="west"), raised=True) == {
        "error": True,
        "message": words,
        "given": "west",
    }


async def test_a_hint_that_cannot_be_shown_takes_no_other_with_it() -> None:
    ring: list[Any] = []
    ring.append(ring)
    shown = await told(ToolError("There is none.", given=ring, name=b"\xff", available=["north", "south"]), raised=True)
    assert shown == {
        "error": True,
        "message": "There is none.",
        "given": "(list)",
        "name": "(bytes)",
        "available": ["north", "south"],
    }


def for_ever() -> Iterator[int]:
    while True:
        yield 1


@dataclass
class Page:
    rows: Any


@pytest.mark.parametrize(
    "result",
    [
        {"rows": for_ever()},
        [{"rows": itertools.count()}],
        Page((for_ever(),)),
        ToolResult("some", for_app={"rows": for_ever()}),
        {"rows": map(str, [1, 2])},
    ],
    ids=["generator", "count", "dataclass", "for_app", "map"],
)
async def test_what_may_never_end_inside_a_result_is_not_read(result: Any) -> None:
    """It was read in the event loop, where no time limit ends it."""
    shown = await told(result)
    assert "can be read only once and may never end" in shown["message"]
    assert "the tool ran; only its result could not be shown" in shown["message"]


@pytest.mark.parametrize(
    "result",
    [
        1 << 10_000_000,
        [{"factorial": -(1 << 10_000_000)}],
        Page((1, 1 << 10_000_000)),
        ToolResult("some", for_app={"number": 1 << 10_000_000}),
    ],
    ids=["alone", "inside", "dataclass", "for_app"],
)
async def test_a_number_of_millions_of_digits_is_not_written(result: Any) -> None:
    """It held the whole process up for minutes, and the run beyond its deadline."""
    shown = await told(result)
    assert "more than 100,000 digits" in shown["message"]
    assert "the tool ran; only its result could not be shown" in shown["message"]


async def test_what_is_no_list_yet_is_made_none_of_any_length() -> None:
    """A `range` was made a list first, in which the memory of the machine could end."""
    shown = await told({"numbers": range(10**11)})
    assert "has 100,000,000,000 items, and may have 10,000,000" in shown["message"]


async def test_what_may_never_end_inside_a_hint_is_not_read() -> None:
    shown = await told(ToolError("There is none.", available=for_ever(), given="west"), raised=True)
    assert (shown["available"], shown["given"]) == ("(generator)", "west")
