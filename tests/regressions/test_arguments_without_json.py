"""Arguments that somebody gives in place of the model's reach the tool as they were given, or are refused."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from treadle import Agent, Alternative, MemoryJournal, Misuse, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@dataclass
class Held:
    what: Any


RING: list[Any] = []
RING.append(RING)

GIVEN = {
    "bytes": (b"four", "bytes have no form in JSON"),
    "bytes inside": ([Held(bytearray(b"four"))], "bytes have no form in JSON"),
    "no number in a set": ({float("nan")}, "nan is no number"),
    "no number inside": (Held(float("inf")), "inf is no number"),
    "no decimal": (Decimal("NaN"), "NaN is no number"),
    "a ring": (RING, "hold themselves, or are nested too deep"),
}


@pytest.mark.parametrize("who", ["a person", "on_tool_call", "on_tool_result"])
@pytest.mark.parametrize(("given", "words"), GIVEN.values(), ids=GIVEN.keys())
async def test_what_has_no_form_in_json_is_refused_and_not_made_another_value(who: str, given: Any, words: str) -> None:
    """Bytes reached the tool as base64, and what is no number as null."""
    noted: list[Any] = []

    @tool(effect="read", needs_approval=who == "a person")
    async def note(what: Any) -> str:
        """Notes something down."""
        noted.append(what)
        return "noted"

    @tool(effect="read")
    async def look() -> str:
        """Looks something up."""
        return "seen"

    def instead(call: Any, result: Any) -> Any:
        return Alternative("note", {"what": given}) if call.name == "look" and call.made == 1 else None

    agent = Agent(
        ScriptedModel([[("look", {})], [("note", {"what": 1})], "Done."]),
        tools=[note, look],
        journal=MemoryJournal(),
        on_tool_call=(lambda call: {"what": given} if call.name == "note" else None) if who == "on_tool_call" else None,
        on_tool_result=instead if who == "on_tool_result" else None,
    )

    async def given_them() -> None:
        waiting = await agent.run("Note it.")
        await agent.resume(waiting, approve={waiting.pending[0].key: {"what": given}})

    with pytest.raises(Misuse, match=words):
        await given_them()
    assert noted == []


async def test_what_has_a_form_in_json_reaches_the_tool_as_it_is() -> None:
    noted: list[bytes] = []

    @tool(needs_approval=True)
    async def note(what: bytes) -> str:
        """Notes something down."""
        noted.append(what)
        return "noted"

    agent = Agent(ScriptedModel([[("note", {"what": "one"})], "Done."]), tools=[note])
    waiting = await agent.run("Note it.")
    assert (await agent.resume(waiting, approve={waiting.pending[0].key: {"what": "two"}})).finished
    assert noted == [b"two"]
