"""read_result finds what a stub stands for in the messages of the run."""

import json

import msgspec
import pytest

from treadle.context.stubs import reference
from treadle.kernel.messages import Message, Text, ToolMessage, UserMessage
from treadle.tools import ToolContext
from treadle.tools.read_result import read_result

pytestmark = pytest.mark.anyio
FIRST = ToolMessage("c1", "look", "first " * 2_000)
SECOND = ToolMessage("c1", "look", (Text("second"),))


def name_of(original: ToolMessage) -> str:
    return reference(original.call_id, original.content)


def stub(original: ToolMessage) -> ToolMessage:
    return ToolMessage(original.call_id, original.name, "cut", whole=original.content)


async def read(call_id: str, *messages: Message) -> str:
    output = await read_result.call({"call_id": call_id}, ToolContext(history=lambda: messages))
    assert isinstance(output.content, str)
    return output.content


async def test_the_original_is_found_by_its_name() -> None:
    history = (UserMessage("hello"), stub(FIRST), stub(SECOND), ToolMessage("c2", "look", "whole"))
    assert (await read(name_of(FIRST), *history)).startswith("first first ")
    assert (await read(name_of(SECOND), *history)).startswith("second\n[Characters 0 to 6 of 6.")
    assert (await read("c1", *history)).startswith("second")


async def test_what_is_no_stub_is_not_found() -> None:
    told = json.loads(await read("c2", stub(FIRST), ToolMessage("c2", "look", '{"cleared":true,"tool":"look"}')))
    assert told["error"] is True
    assert told["available"] == [name_of(FIRST)]


async def test_outside_a_run_there_is_nothing() -> None:
    assert "There is no cleared or shortened result" in str((await read_result.call({"call_id": "c1"})).content)


def test_a_message_has_its_original_in_its_json_form_only_where_it_has_one() -> None:
    assert b"whole" not in msgspec.json.encode(FIRST)
    assert msgspec.json.decode(msgspec.json.encode(stub(FIRST)), type=ToolMessage) == stub(FIRST)
