"""What can be read of a call's arguments while they are arriving."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle import Agent, PartialArguments, SubRunEvent, handoff, tool
from treadle.drivers.partial import Partial
from treadle.kernel.calls import parsed
from treadle.models import (
    AssistantMessage,
    ModelReply,
    ToolCall,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)
from treadle.testing import ScriptedModel

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_partial_arguments_are_events_of_the_stream(anyio_backend):
    @tool
    def write(path: str, text: str) -> str:
        """Write."""
        return "written"

    async def reply():
        yield ToolCallStarted("c", "write")
        for piece in ('{"pa', 'th": "a.txt", "te', 'xt": "hel', 'lo"}'):
            yield ToolCallDelta("c", piece)
        yield ToolCallCompleted("c")
        yield ModelReply(AssistantMessage((ToolCall("c", "write", '{"path": "a.txt", "text": "hello"}'),)))

    async with Agent(ScriptedModel([reply(), "done"]), tools=[write]).stream("go", partial_arguments=True) as run:
        seen = [event.arguments async for event in run if isinstance(event, PartialArguments)]
    assert seen[0] == {}
    assert {"path": "a.txt", "text": "hel"} in seen
    assert seen[-1] == {"path": "a.txt", "text": "hello"}


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_partial_arguments_of_agents_below_are_events_of_the_stream(anyio_backend):
    @tool
    def write(path: str) -> str:
        """Write."""
        return "written"

    def writer(name: str, path: str) -> Agent:
        return Agent(ScriptedModel([[("write", {"path": path})], "done"], chunk=4), name=name, tools=[write])

    deep = Agent(
        ScriptedModel([[("transfer_to_ann", {})]]), name="deep", tools=[handoff(writer("ann", "of ann, and long"))]
    )
    above = Agent(
        ScriptedModel([[("deep", {"task": "Write."}), ("bob", {"task": "Write."})], "done"]),
        tools=[deep.as_tool(), writer("bob", "of bob, and long").as_tool()],
    )
    read: dict[tuple[str, ...], list[object]] = {}
    async with above.stream("go", partial_arguments=True) as run:
        async for event in run:
            path: tuple[str, ...] = ()
            while isinstance(event, SubRunEvent):
                path, event = (*path, event.agent), event.event
            if isinstance(event, PartialArguments) and event.name == "write":
                assert event.id == "call_0_0"
                read.setdefault(path, []).append(event.arguments)

    assert {path: seen[-1] for path, seen in read.items()} == {
        ("deep", "ann"): {"path": "of ann, and long"},
        ("bob",): {"path": "of bob, and long"},
    }


@given(st.dictionaries(st.text(), values), st.integers(1, 9))
def test_the_last_is_the_whole_and_each_is_a_beginning(arguments, size):
    text = json.dumps(arguments)
    partial = Partial()
    partial.hear(ToolCallStarted("c", "x"))
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    seen = [partial.hear(ToolCallDelta("c", piece)) for piece in pieces]
    last = partial.hear(ToolCallCompleted("c"))
    assert last is not None
    assert last.arguments == arguments
    for one in seen:
        assert one is None or set(one.arguments) <= set(arguments)


def test_malformed_arguments_are_nobodys_error_here():
    partial = Partial()
    assert partial.hear(ToolCallDelta("unknown", "x")) is None
    partial.hear(ToolCallStarted("c", "x"))
    assert partial.hear(ToolCallDelta("c", "}{")) is None
    assert partial.hear(ToolCallCompleted("c")) is None


def test_numbers_have_the_digits_that_they_have_in_the_call():
    text = '{"a": [1.00000000000000000000001, 1e400, 0.5, 7], "b": 100000000000000000.01}'
    whole = {
        "a": [Decimal("1.00000000000000000000001"), Decimal("1e400"), 0.5, 7],
        "b": Decimal("100000000000000000.01"),
    }
    partial = Partial()
    partial.hear(ToolCallStarted("c", "x"))
    begun = partial.hear(ToolCallDelta("c", text[:30]))
    assert begun is not None
    assert (begun.arguments, begun.cut) == ({"a": [Decimal("1.0000000000000000000000")]}, ("a", 0))
    partial.hear(ToolCallDelta("c", text[30:]))
    last = partial.hear(ToolCallCompleted("c"))
    assert last is not None
    assert last.arguments == whole == parsed(text)
    assert [type(one) for one in last.arguments["a"]] == [Decimal, Decimal, float, int]
