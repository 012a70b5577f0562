"""Conversations: what outlives a run, always valid, saved and loaded whole."""

import json
import stat
import sys

import pytest

from treadle import Conversation, Image, Misuse, Text
from treadle.kernel.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage


@pytest.fixture
def said():
    conversation = Conversation()
    conversation.add_user([Text("what is this?"), Image(data=b"\x89PNG")])
    conversation.add_assistant("let me look", [ToolCall("a", "look", '{"n": 1}'), ToolCall("b", "look", "{")])
    conversation.add_tool_result("b", "no", is_error=True)
    conversation.add_tool_result("a", [Text("seen")])
    conversation.add_assistant("a cat")
    return conversation


def test_results_stand_in_call_order_however_they_came(said):
    assert [message.role for message in said.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [message.call_id for message in said.messages if isinstance(message, ToolMessage)] == ["a", "b"]


def test_save_and_load_give_the_same(said, tmp_path):
    path = tmp_path / "c.json"
    said.save(path)
    assert Conversation.load(path).messages == said.messages
    assert json.loads(path.read_text())["format"] == 1
    assert list(tmp_path.iterdir()) == [path]
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_saving_again_replaces_the_file(said, tmp_path):
    path = tmp_path / "c.json"
    said.save(path)
    said.add_user("and this?")
    said.save(path)
    assert Conversation.load(path).messages[-1] == UserMessage("and this?")


def test_a_save_that_fails_leaves_the_old_file(said, tmp_path):
    with pytest.raises(FileNotFoundError):
        said.save(tmp_path / "missing" / "c.json")
    (tmp_path / "d").mkdir()
    with pytest.raises(OSError, match="d"):
        said.save(tmp_path / "d")
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b'{"format": 1}', b"\xff\xfe", b'{"format":1,"messages":[{"role":"x"}]}']
)
def test_a_file_that_holds_no_conversation_says_so(tmp_path, data):
    path = tmp_path / "c.json"
    path.write_bytes(data)
    with pytest.raises(Misuse, match="holds no saved conversation"):
        Conversation.load(path)


def test_a_file_of_a_newer_format_says_so(tmp_path):
    path = tmp_path / "c.json"
    path.write_text('{"format": 2, "messages": []}')
    with pytest.raises(Misuse, match="newer treadle"):
        Conversation.load(path)


def test_a_file_of_a_newer_format_with_messages_that_this_one_does_not_know_says_so(tmp_path):
    path = tmp_path / "c.json"
    path.write_text('{"format": 2, "messages": [{"role": "oracle", "content": "?"}]}')
    with pytest.raises(Misuse, match="newer treadle"):
        Conversation.load(path)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        Conversation.load(tmp_path / "none.json")


def test_a_call_without_a_result_is_answered_by_a_note_until_the_result_comes():
    conversation = Conversation()
    conversation.add_assistant(calls=[ToolCall("a", "look")])
    assert "No result" in conversation.messages[-1].text
    assert conversation.messages[-1].is_error
    conversation.add_tool_result("a", "seen")
    assert [message.text for message in conversation.messages] == ["", "seen"]


def test_a_result_that_answers_nothing_is_refused():
    conversation = Conversation()
    with pytest.raises(Misuse, match="no tool call 'a' waits"):
        conversation.add_tool_result("a", "seen")
    conversation.add_assistant(calls=[ToolCall("a", "look")])
    conversation.add_tool_result("a", "seen")
    with pytest.raises(Misuse, match="none is"):
        conversation.add_tool_result("a", "again")


def test_an_assistant_that_says_nothing_is_refused():
    with pytest.raises(Misuse, match="neither"):
        Conversation().add_assistant()


def test_what_it_is_made_of_is_completed_and_instructions_are_left_out():
    conversation = Conversation(
        [
            SystemMessage("be good"),
            ToolMessage("z", "look", "orphan"),
            AssistantMessage(()),
            AssistantMessage((Text(""),)),
            AssistantMessage((ToolCall("a", "look"),)),
            UserMessage("well?"),
            ToolMessage("a", "look", "late"),
        ]
    )
    assert [message.role for message in conversation.messages] == ["assistant", "tool", "user"]
    assert conversation.messages[1].text == "late"
    assert len(conversation) == 3


def test_replace(said):
    said.replace([SystemMessage("no"), UserMessage("afresh")])
    assert said.messages == (UserMessage("afresh"),)


def test_two_conversations_do_not_mix(said):
    other = Conversation(said.messages)
    other.add_user("and this?")
    assert len(other) == len(said) + 1
