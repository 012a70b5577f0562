"""What a hostile user found in limits: ways around them, and what they took away by mistake."""

from pathlib import Path

import pytest

from treadle import Agent, Budget, Misuse, ToolSearch, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_a_step_by_hand_has_no_purse_of_a_conversation() -> None:
    """Each step had a purse of its own, so that the budget held nothing."""
    budget = Budget(tokens=400, per="conversation")
    agent = Agent(ScriptedModel(["Hello."]), budget=budget)
    with pytest.raises(Misuse, match="a purse for each conversation"):
        await agent.step("Hello?")
    assert budget.purses() == []


async def test_a_tool_that_an_active_skill_allows_is_offered_whatever_was_searched_for(tmp_path: Path) -> None:
    """The search did not offer it, and the skill did not let the model search: nothing could be done."""
    folder = tmp_path / "taxes"
    folder.mkdir()
    text = "---\nname: taxes\ndescription: Reports taxes.\nallowed-tools: report_taxes\n---\n\nCall report_taxes.\n"
    (folder / "SKILL.md").write_text(text)

    @tool(effect="read")
    def report_taxes() -> str:
        """Reports what is owed."""
        return "5 euro"

    @tool(effect="read")
    def report_sales() -> str:
        """Reports what was sold."""
        return "none"

    search = ToolSearch([report_taxes, report_sales], most=1)
    model = ScriptedModel([[("activate_skill", {"name": "taxes"})], [("report_taxes", {})], "5 euro."])
    agent = Agent(model, tools=search.tools, skills=[folder], prepare_step=search)
    result = await agent.run("Hello?")
    assert [call.result.text for call in result.tool_calls_made if call.result][1] == "5 euro"
    assert [[one.name for one in request.tools] for request in model.requests] == [
        ["activate_skill", "read_skill_file", "find_tools"],
        ["activate_skill", "read_skill_file", "report_taxes"],
        ["activate_skill", "read_skill_file", "report_taxes"],
    ]
