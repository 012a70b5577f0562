"""Two searches for tools in one agent: refused, in words that say what to do instead."""

import pytest

from treadle import Agent, Misuse, ToolSearch, tool
from treadle.testing import ScriptedModel


@tool(effect="read")
def look(n: int) -> str:
    """Looks at a number of things."""
    return f"seen {n}"


@tool(effect="read")
def ask(n: int) -> str:
    """Asks somebody for a number."""
    return f"asked {n}"


def test_two_searches_are_refused_and_one_takes_the_tools_of_both() -> None:
    one, other = ToolSearch([look]), ToolSearch([ask])
    with pytest.raises(Misuse, match=r"give one search all the tools, ToolSearch\(\[\*these, \*those\]\)"):
        Agent(ScriptedModel(["Yes."]), tools=[*one.tools, *other.tools], prepare_step=[one, other])
    both = ToolSearch([look, ask])
    assert Agent(ScriptedModel(["Yes."]), tools=both.tools, prepare_step=both).run_sync("Look.").text == "Yes."
