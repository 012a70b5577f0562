"""A valid history: what is valid, and the instructions that it begins with."""

import pytest

from treadle.kernel.history import instructed, is_valid
from treadle.kernel.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage

Q = UserMessage("q")
ASKED = AssistantMessage((ToolCall("a", "t"), ToolCall("b", "t")))
A, B = ToolMessage("a", "t", "1"), ToolMessage("b", "t", "2")


@pytest.mark.parametrize(
    "messages",
    [[], [Q], [SystemMessage("be good"), Q], [ASKED, A, B], [Q, ASKED, A, B, ASKED, A, B, Q], [SystemMessage(" ")]],
)
def test_a_history_is_valid_where_each_call_has_its_result(messages):
    assert is_valid(messages)


@pytest.mark.parametrize(
    "messages",
    [
        [Q, SystemMessage("late")],
        [SystemMessage("")],
        [UserMessage(" ")],
        [AssistantMessage()],
        [ASKED],
        [ASKED, A],
        [ASKED, B, A],
        [ASKED, A, Q, B],
        [ASKED, A, B, B],
        [A],
        [AssistantMessage((ToolCall("a", "t"), ToolCall("a", "t"))), A, A],
        [AssistantMessage((ToolCall("", "t"),)), ToolMessage("", "t", "1")],
    ],
)
def test_a_history_is_not_valid_where_a_provider_would_refuse_it(messages):
    assert not is_valid(messages)


def test_instructions_take_the_place_of_those_that_were():
    history = [SystemMessage("be good"), UserMessage("q")]
    assert instructed(history, "be quick") == [SystemMessage("be quick"), UserMessage("q")]
    assert instructed(history, "") == [UserMessage("q")]
    assert instructed([UserMessage("q")], "be quick")[0] == SystemMessage("be quick")
