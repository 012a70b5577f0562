"""What is not to be done is not done where two features meet, each of which keeps to it alone.

No defects: what changes of the code would have gone unnoticed.

- a rule of a run above judges what a person, or a hook, put in place of the arguments of a call below
- what stands in for a call is offered in the step, or not called
- the reason of a denial reaches the run below whose call was denied, as deep as it may be
"""

import pytest
from play import Bank, within
from tools.skill_folders import skill_in

from treadle import Agent, Alternative, MemoryJournal, StepSettings, ask_before, deny
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


def under(agent, depth, **options):
    """`agent` below as many others, the outermost of which has these options."""
    for level in range(depth):
        call = [(agent.name, {"task": "Pay."})]
        model = ScriptedModel(lambda asked, call=call: "Done." if asked.step else call)
        more = options if level == depth - 1 else {}
        agent = Agent(model, name=f"above_{level}", tools=[agent.as_tool(None, "Pays.")], **more)
    return agent


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("by", ["a person", "a hook"])
async def test_a_rule_above_judges_what_was_put_in_place_of_arguments_below(depth, by):
    bank = Bank()
    model = ScriptedModel(lambda asked: "Done." if asked.step else [("pay", {"amount": 5})])
    asks = [ask_before("pay")] if by == "a person" else []
    hook = (lambda call: {"amount": 500}) if by == "a hook" else None
    clerk = Agent(model, name="clerk", tools=[bank.pay], approvals=asks, on_tool_call=hook)
    much = deny("pay", when=lambda arguments: arguments["amount"] > 100)
    agent = under(clerk, depth, approvals=[much], journal=MemoryJournal())
    result = await within(agent.run("Pay."))
    if by == "a person":
        (one,) = result.pending
        result = await within(agent.resume(result.run_id, approve={one.key: {"amount": 500}}))
    assert (result.text, bank.ran) == ("Done.", [])


@pytest.mark.parametrize("how", ["prepare_step", "skill"])
async def test_what_stands_in_for_a_call_is_a_tool_that_the_step_offers(tmp_path, how):
    bank = Bank()
    skill_in(tmp_path, "looking", "allowed-tools: down\n")
    script = [[("activate_skill", {"name": "looking"})]] if how == "skill" else []
    agent = Agent(
        ScriptedModel([*script, [("down", {"key": "a"})], "Done."]),
        tools=bank.tools,
        skills=[tmp_path] if how == "skill" else [],
        prepare_step=(lambda context: StepSettings(tools=["down"])) if how == "prepare_step" else None,
        on_tool_result=lambda call, output: Alternative("wipe", {}) if output.is_error and call.made == 1 else None,
    )
    result = await within(agent.run("Look."))
    assert (result.text, bank.ran) == ("Done.", ["down a"])


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("named", ["call_id", "key"])
async def test_the_reason_of_a_denial_reaches_the_run_below(depth, named):
    bank = Bank()
    model = ScriptedModel(lambda asked: "Done." if asked.step else [("pay", {"amount": 5})])
    clerk = Agent(model, name="clerk", tools=[bank.pay], approvals=[ask_before("pay")])
    agent = under(clerk, depth, journal=MemoryJournal())
    result = await within(agent.run("Pay."))
    (one,) = result.pending
    result = await within(agent.resume(result.run_id, deny={getattr(one, named): "It was paid in May."}))
    assert (result.text, bank.ran) == ("Done.", [])
    assert "not approved: It was paid in May." in model.requests[-1].messages[-1].text
