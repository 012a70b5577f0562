"""What is wrong with a call names its tool once, wherever it is said."""

import pytest

from treadle import Agent, Alternative, MemoryJournal, Misuse, ask_before, deny, tool
from treadle.kernel.events import ToolReacted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

PAY = ("pay", {"amount": 1})
UNFIT = "pay: the argument 'amount' should be a valid integer"


@pytest.fixture
def anyio_backend():
    return "asyncio"


@tool
async def pay(amount: int) -> str:
    """Pay somebody an amount."""
    return f"paid {amount}"


@tool(effect="read")
async def look() -> str:
    """Look something up."""
    return "found"


def agent(call, **options):
    return Agent(ScriptedModel([[call], "done"]), tools=[pay, look], journal=MemoryJournal(), **options)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"amount": "much"}, UNFIT),
        ({"amount": object()}, "pay: Encoding objects of type object is unsupported"),
    ],
)
async def test_arguments_that_do_not_fit_are_said_of_the_tool_once(arguments, told):
    with pytest.raises(Misuse) as refused:
        await agent(PAY, on_tool_call=lambda call: arguments).run("go")
    assert str(refused.value).startswith(f"the arguments that on_tool_call gives call 'call_0_0' do not fit {told}")
    careful = agent(PAY, approvals=[ask_before("pay")])
    waiting = await careful.run("go")
    with pytest.raises(Misuse) as refused:
        await careful.resume(waiting.run_id, approve={"call_0_0": arguments})
    assert str(refused.value).startswith(f"the edited arguments of call 'call_0_0' do not fit {told}")


@pytest.mark.parametrize(
    ("arguments", "options", "reason"),
    [
        ({"amount": "much"}, {}, UNFIT),
        ({"amount": 1}, {"approvals": [deny("pay")]}, "pay: This call is not allowed."),
    ],
)
async def test_why_a_call_in_place_of_another_is_not_made_names_the_tool_once(arguments, options, reason):
    def react(call, output):
        return Alternative("pay", arguments) if call.doing.name == "look" else None

    result = await agent(("look", {}), on_tool_result=react, **options).run("go")
    *_, last = [event for event in result.events if isinstance(event, ToolReacted)]
    assert last.reason.startswith(reason)
