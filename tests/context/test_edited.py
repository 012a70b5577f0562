"""with_text: a message with other text, and everything else as it was."""

import pytest

from treadle import File, Misuse, StepSettings, Text, with_text
from treadle.kernel.messages import AssistantMessage, SystemMessage, Thinking, ToolCall, ToolMessage, UserMessage

FILE = File(data=b"1", name="a.pdf")
CALL = ToolCall("c", "look", "{}")


@pytest.mark.parametrize(
    ("message", "after"),
    [
        (SystemMessage("long"), SystemMessage("x")),
        (UserMessage("long"), UserMessage("x")),
        (UserMessage((FILE, Text("long"), Text("er"))), UserMessage((FILE, Text("x")))),
        (UserMessage((FILE,)), UserMessage((FILE, Text("x")))),
        (AssistantMessage((Thinking("hm"), Text("long"), CALL)), AssistantMessage((Thinking("hm"), Text("x"), CALL))),
        (ToolMessage("c", "look", "long", is_error=True), ToolMessage("c", "look", "x", is_error=True)),
    ],
)
def test_only_the_text_is_another(message, after):
    assert with_text(message, "x") == after
    assert with_text(message, message.text).text == message.text


def test_no_text_is_left_out():
    assert with_text(AssistantMessage((Text("long"), CALL)), "") == AssistantMessage((CALL,))


@pytest.mark.parametrize(("message", "text"), [("no message", "x"), (UserMessage("a"), None)])
def test_anything_else_is_refused(message, text):
    with pytest.raises(Misuse, match="with_text takes a message and a text"):
        with_text(message, text)
    assert StepSettings(messages=[with_text(UserMessage("long"), "x")]).messages == [UserMessage("x")]
