"""A context policy cuts a result after it was redacted: half of a card number is none that anybody would find."""

import re
from collections.abc import Sequence

import pytest

from treadle import Agent, ClearToolResults, MemoryJournal, ShortenResult, tool
from treadle.context.policies import ContextPolicy
from treadle.kernel.events import encode_event
from treadle.testing import ScriptedModel

CARD = "4111 1111 1111 1111"

pytestmark = pytest.mark.anyio


def hide(text: str) -> str:
    return re.sub(r"\b\d{4}( ?\d{4}){3}\b", "[card]", text)


@tool(effect="read")
def look(before: int) -> str:
    """Looks up a customer.

    Args:
        before: characters before the card.
    """
    return f"{'x' * (before - 1)} {CARD} {'lorem ipsum ' * 900}"


@pytest.mark.parametrize("before", range(40, 61))
@pytest.mark.parametrize("policy", [ClearToolResults(high=300, low=100, keep=0), ShortenResult(max_tokens=100)])
async def test_no_half_of_a_secret_is_kept(policy: ContextPolicy, before: int) -> None:
    at = before if isinstance(policy, ClearToolResults) else before + 180
    journal = MemoryJournal(redact=hide)
    calls: Sequence[object] = [[("look", {"before": at})], [("look", {"before": at})], "done"]
    agent = Agent(ScriptedModel(calls), tools=[look], context=[policy], journal=journal)
    result = await agent.run("Look.")
    assert result.finished
    events = await journal.read(result.run_id)
    assert any(type(event).__name__ == "ContextEdited" for event in events)
    assert "x 4111" not in b"".join(map(encode_event, events)).decode()


async def test_a_redacted_result_is_read_by_the_name_in_its_stub() -> None:
    journal = MemoryJournal(redact=hide)
    calls: Sequence[object] = [[("look", {"before": 10})], [("look", {"before": 10})], "done"]
    agent = Agent(ScriptedModel(calls), tools=[look], context=[ShortenResult(max_tokens=100)], journal=journal)
    result = await agent.run("Look.")
    (edit, *_) = [one for one in await journal.read(result.run_id) if type(one).__name__ == "ContextEdited"]
    found = re.search(r'call_id "([^"]+)"', edit.messages[0].text)  # type: ignore[union-attr]
    assert found is not None
    reading = ScriptedModel([[("read_result", {"call_id": found[1]})], "read"])
    forked = await Agent(reading, tools=[look], context=[ShortenResult(max_tokens=100)], journal=journal).fork(
        result.run_id, at=2
    )
    (_, _, read) = forked.tool_calls_made
    assert not read.is_error
    assert "[card]" in read.result.text  # type: ignore[union-attr]
