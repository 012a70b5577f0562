"""What stands in the place of a result or a call never tells a model to make one again that may have changed something,
and says of one whose outcome nobody knows that nobody knows it.
"""

import json

import pytest

from treadle import Agent, ClearToolResults, KeepFirstAndRecent, ToolError, deny, tool
from treadle.models import ContextOverflow
from treadle.testing import ScriptedModel
from treadle.tools.errors import OutcomeUnknown

pytestmark = pytest.mark.anyio


@tool(effect="write")
async def pay(amount: int) -> str:
    """Pays an amount of money to the one who is owed it."""
    if amount == 13:
        raise OutcomeUnknown("the bank went away before it answered")
    if amount == 14:
        raise ToolError(f"the bank says {'much ' * 800}", executed="unknown")
    return "receipt: " + "x" * 4_000


@tool(effect="read")
async def look(page: int) -> str:
    """Looks up a page of the books, whichever is wanted."""
    return "page: " + "y" * 4_000


def agent(*calls: tuple[str, dict[str, int]], most: int = 14_000, **options: object) -> Agent:
    def says(request):
        if sum(len(message.text) for message in request.messages) > most:
            raise ContextOverflow("prompt is too long")
        return [calls[request.step]] if request.step < len(calls) else "done"

    return Agent(ScriptedModel(says), tools=[pay, look], on_interrupted="tell", **options)


LOOKS = [("look", {"page": number}) for number in range(6)]


async def test_the_stub_of_a_payment_does_not_ask_for_it_again():
    """By default it said: "Call the tool again if you need it."."""
    result = await agent(("pay", {"amount": 1}), *LOOKS[:3]).run("go")
    stubs = [json.loads(one.text) for one in result.messages if one.role == "tool" and '"cleared"' in one.text]
    told = {one["tool"]: one["message"] for one in stubs}
    assert told["look"].endswith("Call the tool again if you need it.")
    assert told["pay"].endswith("do not make it again only to see its result.")


async def test_the_cut_result_of_a_payment_does_not_ask_for_it_again():
    result = await agent(("pay", {"amount": 1}), most=3_000).run("go")
    (cut,) = [one.text for one in result.messages if one.role == "tool"]
    assert "do not make it again only to see them" in cut


async def test_of_a_payment_in_doubt_a_notice_says_so():
    """It said that the payment was answered with an error, and a model makes such a one again."""
    context = KeepFirstAndRecent(high=3_000, low=1_500)
    run = agent(("pay", {"amount": 13}), ("pay", {"amount": 2}), *LOOKS, most=10**6, context=context)
    result = await run.run("go")
    notice = next(one for one in result.messages if one.role == "user" and one.left_out)
    lines = notice.text.splitlines()
    assert '- pay({"amount":13}), which was answered with an error: nobody knows whether it took effect' in lines
    assert '- pay({"amount":2})' in lines


async def test_of_a_payment_that_was_not_allowed_a_notice_says_that_it_was_not_made():
    """It was told as one that was answered with an error, which may have been made."""
    context = KeepFirstAndRecent(high=3_000, low=1_500)
    rules = [deny("pay", when=lambda arguments: arguments["amount"] == 1)]
    calls = (("pay", {"amount": 1}), ("pay", {"amount": "much"}), ("pay", {"amount": 2}), *LOOKS)
    result = await agent(*calls, most=10**6, context=context, approvals=rules).run("go")
    notice = next(one for one in result.messages if one.role == "user" and one.left_out)
    assert [line for line in notice.text.splitlines() if line.startswith("- pay")] == [
        '- pay({"amount":1}), which was not made',
        '- pay({"amount":"much"}), which was answered with an error',
        '- pay({"amount":2})',
    ]


async def test_the_stub_of_a_payment_in_doubt_says_so():
    """It stood in the words that were cleared."""
    context = ClearToolResults(high=3_000, low=500, keep=1)
    result = await agent(("pay", {"amount": 14}), *LOOKS, most=10**6, context=context).run("go")
    stubs = [json.loads(one.text) for one in result.messages if one.role == "tool" and '"cleared"' in one.text]
    assert [one.get("executed") for one in stubs if one["tool"] == "pay"] == ["unknown"]
    assert not [one for one in stubs if one["tool"] == "look" and "executed" in one]
