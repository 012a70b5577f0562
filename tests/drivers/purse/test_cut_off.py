"""What is reckoned for a reply that was cut off at its length, where its provider does not count it."""

import pytest

from treadle import Agent, ModelSettings, Usage
from treadle.kernel.messages import AssistantMessage, Text
from treadle.models import ModelReply
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("usage", "finish", "most", "tokens"),
    [
        (None, "length", 40, 40),
        (Usage(100, 0, estimated=True), "length", 40, 40),
        (Usage(100, 7), "length", 40, 7),
        (Usage(100, 7, estimated=True), "length", 40, 7),
    ],
)
async def test_a_reply_that_was_cut_off_is_reckoned_at_all_that_it_might_have(usage, finish, most, tokens):
    """A provider may charge for the beginning of a call that it keeps back."""
    model = ScriptedModel([ModelReply(AssistantMessage((Text("So"),)), usage, finish)])
    result = await Agent(model, settings=ModelSettings(max_tokens=most)).run("go")
    assert (result.stop.reason, result.usage.output_tokens) == ("length", tokens)


async def test_where_nobody_says_how_long_it_may_be_it_is_reckoned_by_what_came():
    model = ScriptedModel([ModelReply(AssistantMessage((Text("So"),)), None, "length")])
    result = await Agent(model).run("go")
    assert 0 < result.usage.output_tokens < 20
