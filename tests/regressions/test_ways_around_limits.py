"""No way around limits and rules, and nothing that they take away by mistake."""

from pathlib import Path

import pytest

from treadle import Agent, Budget, Limits, Misuse, Tool, ToolSearch, deny, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_a_step_by_hand_has_no_purse_of_a_conversation() -> None:
    """Each step had a purse of its own, so that the budget held nothing."""
    budget = Budget(tokens=400, per="conversation")
    agent = Agent(ScriptedModel(["Hello."]), budget=budget)
    with pytest.raises(Misuse, match=r"a purse for each conversation: .*agent\.step does not take"):
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


async def test_a_call_that_writes_a_default_out_or_a_number_otherwise_is_no_other_call() -> None:
    """A model that was refused wrote the same payment in other words, and it was made."""
    paid: list[tuple[int, str]] = []

    @tool
    def pay(amount: int, currency: str = "EUR") -> str:
        """Pays."""
        paid.append((amount, currency))
        return "paid"

    spellings = ['{"amount":1}', '{"currency":"EUR","amount":1}', '{"amount":"1"}', '{"amount":1.0}']
    model = ScriptedModel([*[[("pay", spelling)] for spelling in spellings], [("pay", {"amount": 2})], "Paid."])
    limits = Limits(consecutive_errors=None)
    await Agent(model, tools=[pay], approvals=[deny("pay", repeats=1)], limits=limits).run("Pay 1 euro, then 2.")
    assert paid == [(1, "EUR"), (2, "EUR")]


async def test_of_a_tool_with_a_schema_1_0_is_1() -> None:
    counted: list[object] = []
    schema = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}

    def count(n: float) -> str:
        counted.append(n)
        return "counted"

    made = Tool.from_schema("count", "Counts up to a number.", schema, count)
    model = ScriptedModel([[("count", '{"n":1}')], [("count", '{"n":1.0}')], [("count", '{"n":1.5}')], "Done."])
    await Agent(model, tools=[made], approvals=[deny("count", repeats=1)]).run("Count.")
    assert counted == [1, 1.5]
