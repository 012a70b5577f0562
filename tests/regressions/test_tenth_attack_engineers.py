"""Found by the tenth attack, of engineers who build treadle into a product, with the docs and without the code."""

import pytest

from treadle import Agent, Limits, tool
from treadle.models.text_tools import TextTools
from treadle.testing import ScriptedModel


@tool(effect="read")
def pay(amount: int) -> str:
    """Pays an amount.

    Args:
        amount: in euros.
    """
    return f"paid {amount}"


def read_in_pieces_of(chunk, text):
    """The calls of a reply in text that comes in pieces of so many characters, as they were written."""
    model = ScriptedModel([text, "Done."], chunk=chunk)
    result = Agent(TextTools(model), tools=[pay], limits=Limits(steps=3)).run_sync("Pay.")
    return [(call.name, call.call.arguments) for call in result.steps[0].calls]


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ('"pay[4]</l>', "invalid_call"),
        (':pay("")</tool_call>', "invalid_call"),
        ('pay{"amount":8}</call>', "pay"),
        ('"<function>"\npay{"amount":8}</n>', "pay"),
        ('pay(3) "<function=pay>{"amount":8}</function>\n<function=pay>{"amount":8}</function>\n', "pay"),
    ],
)
def test_a_reply_in_text_is_read_alike_however_it_was_cut_on_its_way(text, called):
    whole = read_in_pieces_of(len(text), text)
    assert {name for name, _ in whole} == {called}
    assert [read_in_pieces_of(chunk, text) for chunk in (1, 2, 3, 5)] == [whole] * 4
