"""A tool that says next to nothing of itself is pointed out, once."""

import logging

import pytest

from treadle import Agent, tool


def test_a_vague_description_is_pointed_out_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    @tool(effect="read")
    def vague(x: int) -> int:
        """Does it."""
        return x

    @tool(effect="read")
    def silent(x: int) -> int:
        return x

    @tool(effect="read")
    def clear(x: int) -> int:
        """Says how many items are left."""
        return x

    with caplog.at_level(logging.WARNING, "treadle"):
        for _ in range(2):
            Agent("offline", tools=[vague, silent, clear])
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "tool vague (" in told[0]
    assert "'Does it.': a model chooses tools, and what to give them, by their descriptions" in told[0]
    assert "tool silent (" in told[1]
