"""What is nested too deep to be read is a text like any other."""

import pytest

from treadle import Agent, tool

pytestmark = pytest.mark.anyio


async def test_a_result_that_is_nested_too_deep_to_be_read_is_answered_with():
    @tool(effect="read")
    def list_members() -> str:
        """Lists the members of the club."""
        return "[" * 100_000 + "]" * 100_000

    result = await Agent("offline", tools=[list_members]).run("List the members of the club.")
    assert result.stop.reason == "answered", result.error
    assert [call.name for call in result.tool_calls_made] == ["list_members"]
