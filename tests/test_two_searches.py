"""Searches for tools that do not fit the agent: refused, in words that say what to do instead."""

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


def test_a_search_that_knows_the_tools_by_other_names_than_the_agent_is_refused() -> None:
    search = ToolSearch([look, ask])
    finder = search.tools[-1]
    for tools, what in [
        ({f"{one.name}_x": one for one in search.tools}, "its 'find_tools' is called 'find_tools_x'"),
        ({"see": look, "ask": ask, "find_tools": finder}, "there is none named 'look'"),
        ({"look": look, "ask": ask, "search": finder}, "its 'find_tools' is called 'search'"),
        ([look, finder], "there is none named 'ask'"),
    ]:
        with pytest.raises(Misuse, match=f"{what}.*rename a tool before the search is given it"):
            Agent(ScriptedModel(["Yes."]), tools=tools, prepare_step=[search])
    renamed = ToolSearch([look.named("see"), ask], most=1)
    model = ScriptedModel(["Yes."])
    Agent(model, tools=renamed.tools, prepare_step=renamed).run_sync("see")
    assert [spec.name for spec in model.requests[0].tools] == ["see", "find_tools"]
