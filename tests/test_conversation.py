"""Conversations: what outlives a run, always valid, saved and loaded whole."""

import asyncio
import copy
import json
import os
import pickle
import stat
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle import Agent, Conversation, File, Image, MemoryJournal, Misuse, Text, external_tool
from treadle.kernel.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from treadle.testing import ScriptedModel


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


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize("there", [True, False])
def test_saving_to_a_link_writes_what_it_leads_to(said, tmp_path, there):
    (tmp_path / "kept").mkdir()
    kept, link = tmp_path / "kept" / "c.json", tmp_path / "link.json"
    if there:
        Conversation().save(kept)
    link.symlink_to(kept)
    said.save(link)
    assert link.is_symlink()
    assert Conversation.load(kept).messages == said.messages
    assert [one.name for one in kept.parent.iterdir()] == ["c.json"]


def test_a_save_that_fails_leaves_the_old_file(said, tmp_path):
    with pytest.raises(FileNotFoundError):
        said.save(tmp_path / "missing" / "c.json")
    (tmp_path / "d").mkdir()
    with pytest.raises(OSError, match="d"):
        said.save(tmp_path / "d")
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[1]",
        b'{"format": 1}',
        b"\xff\xfe",
        b'{"format":1,"messages":[{"role":"x"}]}',
        b'{"a":' + b"[" * 10**5,
    ],
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


FORMS = [
    ToolCall("a", "look", '{"n": 1}'),
    {"id": "a", "name": "look", "arguments": {"n": 1}},
    {"id": "a", "name": "look", "arguments": '{"n": 1}'},
    {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"n": 1}'}},
    {"id": "a", "function": {"name": "look", "arguments": {"n": 1}}},
]


@pytest.mark.parametrize("call", FORMS, ids=range(len(FORMS)))
def test_a_call_may_be_written_in_any_usual_form(call):
    conversation = Conversation()
    conversation.add_assistant(None, [call])
    conversation.add_tool_result("a", "seen")
    assert conversation.messages == (
        AssistantMessage((ToolCall("a", "look", '{"n": 1}'),)),
        ToolMessage("a", "look", "seen"),
    )


def test_arguments_are_kept_as_the_model_wrote_them_and_may_be_missing():
    conversation = Conversation()
    conversation.add_assistant("", [{"id": "a", "name": "f", "arguments": "{broken"}, {"id": "b", "name": "f"}])
    assert [call.arguments for call in conversation.messages[0].calls] == ["{broken", ""]


WRONG_CALLS = [
    ([ToolCall("a", "f"), ToolCall("a", "g")], "has an id of its own"),
    ([ToolCall("\ud800", "f"), ToolCall("?", "g")], "has an id of its own"),
    ([ToolCall("", "f")], "has an id and a name"),
    ([ToolCall("a", "")], "has an id and a name"),
    ([{"id": "a"}], "has an id and a name"),
    ([{"name": "f", "arguments": {}}], "has an id and a name"),
    ([{"id": 3, "name": "f"}], "has an id and a name"),
    ([{"id": "a", "name": "f", "arguments": [1]}], "are a dict or JSON text"),
    ([{"id": "a", "name": "f", "arguments": {"x": {1}}}], "have no JSON form"),
    ([ToolCall("a", "f", {"n": {1}})], "have no JSON form"),
    (["look"], "a tool call is a ToolCall, or a dict"),
    ([("look", {})], "a tool call is a ToolCall, or a dict"),
    ("look", "takes a list of calls"),
    ({"id": "a", "name": "f"}, "takes a list of calls"),
    (None, "takes a list of calls"),
    ([], "given neither"),
]


@pytest.mark.parametrize(("calls", "words"), WRONG_CALLS, ids=range(len(WRONG_CALLS)))
def test_a_refused_call_leaves_the_conversation_exactly_as_it_was(said, calls, words):
    said.add_assistant("once more", [ToolCall("open", "look")])
    before = said.messages
    with pytest.raises(Misuse, match=words):
        said.add_assistant("", calls)
    assert said.messages == before
    said.add_tool_result("open", "seen")


@pytest.mark.parametrize("text", [3, b"x", ["x"]])
def test_what_the_assistant_says_is_text(said, text):
    with pytest.raises(Misuse, match="add_assistant takes text, or None"):
        said.add_assistant(text, [ToolCall("a", "look")])


@pytest.mark.parametrize(
    "content", [None, 3, b"x", {"a": 1}, [3], [{"type": "text", "text": "x"}], [Text(3)]], ids=repr
)
def test_content_that_is_none_is_refused_and_leaves_the_conversation_as_it_was(content):
    conversation = Conversation()
    with pytest.raises(Misuse, match="add_user takes text, or a list of Text, Image and File parts"):
        conversation.add_user(content)
    assert conversation.messages == ()
    conversation.add_assistant(calls=[ToolCall("a", "look")])
    with pytest.raises(Misuse, match="add_tool_result takes text, or a list of Text, Image and File parts"):
        conversation.add_tool_result("a", content)
    conversation.add_tool_result("a", ["seen ", Text("it")])
    assert conversation.messages[-1].content == (Text("seen "), Text("it"))


@pytest.mark.parametrize("content", ["", " \n", [], [Text("")]], ids=repr)
def test_a_person_who_says_nothing_is_refused_and_a_tool_may_find_nothing(content):
    conversation = Conversation()
    with pytest.raises(Misuse, match="something that was said"):
        conversation.add_user(content)
    conversation.add_assistant(calls=[ToolCall("a", "look")])
    conversation.add_tool_result("a", content)
    assert conversation.messages[-1].text.strip() == ""


@pytest.mark.parametrize("messages", [["hello"], [{"role": "user", "content": "hello"}], [None]], ids=repr)
def test_messages_of_others_are_refused(said, messages):
    before = said.messages
    with pytest.raises(Misuse, match="from_langchain"):
        said.replace(messages)
    assert said.messages == before
    with pytest.raises(Misuse, match="from_langchain"):
        Conversation(messages)


def test_lone_surrogates_become_question_marks_and_the_conversation_can_be_saved(tmp_path):
    bad, path = "caf\udce9", tmp_path / "c.json"
    conversation = Conversation([UserMessage(bad)])
    conversation.add_user([Text(bad), File(url=bad, name=bad)])
    conversation.add_assistant(bad, [{"id": bad, "name": bad, "arguments": {bad: bad}}])
    conversation.add_tool_result(bad, bad)
    conversation.replace([*conversation.messages, UserMessage(bad)])
    conversation.save(path)
    assert Conversation.load(path).messages == conversation.messages
    assert [message.text for message in conversation.messages] == ["caf?"] * 5
    assert conversation.messages[2].calls == (ToolCall("caf?", "caf?", '{"caf?": "caf?"}'),)
    assert conversation.messages[1].content[1].name == "caf?"


def test_what_a_policy_wrote_and_what_stood_in_its_place_is_saved(tmp_path):
    messages = [
        UserMessage("[3 messages left out]", left_out=3),
        UserMessage("In short: hello.", left_out=2, summary=True),
        AssistantMessage((ToolCall("a", "look"), ToolCall("b", "look"))),
        ToolMessage("a", "look", "long", whole="very long"),
        ToolMessage("b", "look", "long", whole=(Text("very"), Image(data=b"\x89PNG"))),
    ]
    Conversation(messages).save(tmp_path / "c.json")
    assert list(Conversation.load(tmp_path / "c.json").messages) == messages
    plain = Conversation([UserMessage("hello")])
    plain.save(tmp_path / "plain.json")
    assert json.loads((tmp_path / "plain.json").read_text())["messages"] == [{"role": "user", "content": "hello"}]


def test_threads_that_save_at_once_leave_one_whole_conversation(tmp_path):
    path = tmp_path / "c.json"
    talks = [Conversation([UserMessage(f"{number} " * 20_000)]) for number in range(8)]
    start = threading.Barrier(len(talks))

    def save(talk):
        start.wait()
        for _ in range(10):
            talk.save(path)
            assert Conversation.load(path).messages in whole

    whole = [talk.messages for talk in talks]
    with ThreadPoolExecutor(len(talks)) as pool:
        list(pool.map(save, talks))
    assert list(tmp_path.iterdir()) == [path]


def test_one_conversation_saved_by_two_threads_at_once(said, tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(said.save, [tmp_path / "c.json"] * 40))
    assert Conversation.load(tmp_path / "c.json").messages == said.messages


PARTS = st.one_of(st.text(st.characters()).map(Text), st.binary().map(lambda data: Image(data=data)))
CALLS = st.lists(
    st.builds(
        ToolCall, st.text(st.characters(), max_size=2), st.text(st.characters(), max_size=2), st.text(max_size=3)
    ),
    max_size=3,
)


@given(st.lists(st.one_of(st.lists(PARTS, max_size=2), CALLS, st.text(st.characters(), max_size=3)), max_size=6))
def test_whatever_is_added_or_refused_the_conversation_can_be_saved_and_stays_valid(steps):
    conversation = Conversation()
    for step in steps:
        before = conversation.messages
        try:
            if isinstance(step, list) and step and isinstance(step[0], ToolCall):
                conversation.add_assistant("", step)
                conversation.add_tool_result(conversation.messages[-1].call_id, "seen")
            else:
                conversation.add_user(step)
        except Misuse:
            assert conversation.messages == before
    ids = [call.id for message in conversation.messages for call in getattr(message, "calls", ())]
    assert len(ids) == len(set(ids))
    with tempfile.TemporaryDirectory() as folder:
        conversation.save(Path(folder) / "c.json")
        assert Conversation.load(Path(folder) / "c.json").messages == conversation.messages


def test_calls_of_one_id_in_two_messages_are_told_apart_each_with_its_result(tmp_path):
    """Claude refuses a history in which two calls have one id."""
    conversation = Conversation()
    for n in ("1", "2"):
        conversation.add_assistant("", [{"id": "a", "name": "look", "arguments": {"n": n}}])
        conversation.add_tool_result("a", f"seen {n}")
    conversation.add_assistant("", [ToolCall("a", "look"), ToolCall("b", "look")])
    conversation.add_tool_result("b", "seen b")
    third = conversation.messages[-2].call_id
    conversation.add_tool_result(third, "seen 3")
    told = [(message.call_id, message.text) for message in conversation.messages if isinstance(message, ToolMessage)]
    assert told == [("a", "seen 1"), ("a_0", "seen 2"), (third, "seen 3"), ("b", "seen b")]
    assert third not in ("a", "a_0")
    with pytest.raises(Misuse, match="none is"):
        conversation.add_tool_result("a", "again")

    two = [AssistantMessage((ToolCall("a", "look"),)), ToolMessage("a", "look", "seen")]
    given = Conversation([*two, UserMessage("again"), *two])
    assert [getattr(one, "call_id", "") for one in given.messages] == ["", "a", "", "", "a_0"]
    assert Conversation(given.messages).messages == given.messages


def test_a_run_that_waits_since_ids_came_twice_in_a_conversation_goes_on_in_it():
    """Version 0.1.0 began runs in such conversations, which may wait for days."""
    pay = external_tool("pay", "Pays what is due.", {"type": "object"}, wait=True)
    agent = Agent(ScriptedModel([[("pay", {})], "Paid."]), tools=[pay])
    two = [AssistantMessage((ToolCall("a", "look"),)), ToolMessage("a", "look", "seen")]
    twice = (*two, UserMessage("again"), *two, UserMessage("Pay."))

    async def main():
        journal = MemoryJournal()
        waiting = await agent.run(conversation=Conversation(twice))
        started, *more = waiting.events
        await journal.append(waiting.run_id, 0, [replace(started, messages=twice), *more])
        there, run_id, answers = agent.with_journal(journal), waiting.run_id, {"call_0_0": "done"}
        longer = Conversation([*twice, AssistantMessage((Text("Something else."),))])
        with pytest.raises(Misuse, match="more was said in this conversation"):
            await there.resume(run_id, results=answers, conversation=longer)
        conversation = Conversation(twice)
        result = await there.resume(run_id, results=answers, conversation=conversation)
        assert result.text == conversation.messages[-1].text == "Paid."

    asyncio.run(main())


@pytest.mark.parametrize(
    "call",
    [
        {"id": "a", "name": "look", "arguments": {"n": 1}},
        {"id": "a", "name": "look", "input": {"n": 1}, "type": "tool_use"},
        {"id": "a", "name": "look", "args": {"n": 1}, "type": "tool_call"},
        {"id": "a", "type": "function", "index": 0, "function": {"name": "look", "arguments": '{"n": 1}'}},
    ],
)
def test_the_arguments_of_a_call_that_is_a_dict_are_kept_whatever_they_are_called(call):
    conversation = Conversation()
    conversation.add_assistant(calls=[call])
    assert conversation.messages[0].calls == (ToolCall("a", "look", '{"n": 1}'),)


@pytest.mark.parametrize("other", [{"parameters": {"n": 1}}, {"args": {}, "arguments": {"n": 1}}, {"kwargs": {}}])
def test_a_call_whose_arguments_would_be_lost_is_refused(other):
    conversation = Conversation()
    with pytest.raises(Misuse, match="the arguments of a tool call stand under 'arguments'; it was given"):
        conversation.add_assistant(calls=[{"id": "a", "name": "look", **other}])
    assert len(conversation) == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_what_is_no_file_is_not_replaced_by_a_conversation(tmp_path):
    """Whoever may, such as root in a container, had a file in the place of /dev/null afterwards."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="no regular file"):
            Conversation([UserMessage("hello")]).save(tmp_path / name)
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()


COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda one: pickle.loads(pickle.dumps(one))}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_what_is_added_to_a_copy_is_not_in_the_conversation(said, copied):
    """A shallow copy had the list of the other, so that two people saw each other's words."""
    before = said.messages
    other = copied(said)
    other.add_user("Mine alone.")
    assert (said.messages, other.messages[:-1]) == (before, before)
    assert said.name == other.name


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_a_copy_of_a_conversation_in_use_is_free(said, copied):
    """No run would ever have given it back: each was refused as if another were under way."""
    copies = []
    model = ScriptedModel(lambda request: copies.append(copied(said)) or "Yes.")
    Agent(model).run_sync("Go on.", conversation=said)
    assert Agent(ScriptedModel(["Well."])).run_sync("And?", conversation=copies[0]).text == "Well."
