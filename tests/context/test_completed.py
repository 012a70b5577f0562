"""A history that is completed: whatever comes in, what goes out is valid, and nothing is lost without need."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle.context.completed import NO_RESULT, completed
from treadle.context.ids_apart import distinct_ids
from treadle.kernel import history
from treadle.kernel.calls import told
from treadle.kernel.history import have_distinct_ids
from treadle.kernel.messages import (
    AssistantMessage,
    Image,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)

A, B = ToolCall("a", "t", "{}"), ToolCall("b", "t", "{}")

ids = st.sampled_from(["a", "b", "c"])
parts = st.one_of(st.builds(Text, st.sampled_from(["", " ", "hm"])), st.builds(ToolCall, ids, st.just("t")))
assistants = st.lists(parts, max_size=4).map(lambda parts: distinct_ids(AssistantMessage(tuple(parts))))
histories = st.lists(
    st.one_of(
        st.builds(SystemMessage, st.sampled_from(["be good", "be quick"])),
        st.builds(UserMessage, st.sampled_from(["q", "and?"])),
        assistants,
        st.builds(ToolMessage, ids, st.just("t"), st.sampled_from(["1", "2", "3"])),
    ),
    max_size=12,
)


def is_valid(messages):
    i = 0
    while i < len(messages):
        message = messages[i]
        i += 1
        if isinstance(message, ToolMessage) or (isinstance(message, SystemMessage) and i > 1):
            return False
        if isinstance(message, AssistantMessage):
            results = messages[i : i + len(message.calls)]
            if not message.says_something or [getattr(one, "call_id", None) for one in results] != [
                call.id for call in message.calls
            ]:
                return False
            i += len(message.calls)
    return True


@settings(max_examples=400)
@given(histories)
def test_completed_is_valid_and_does_no_more_than_it_must(messages):
    done = completed(messages)
    assert is_valid(done)
    assert history.is_valid(done)
    assert history.is_valid(messages) == is_valid(messages) == (done == messages)
    assert completed(done) == done
    assert [m for m in done if isinstance(m, UserMessage)] == [m for m in messages if isinstance(m, UserMessage)]
    said = [m for m in messages if isinstance(m, AssistantMessage) and m.says_something]
    assert [m for m in done if isinstance(m, AssistantMessage)] == said


def test_a_late_result_is_moved_up_and_a_missing_one_is_noted():
    asked = AssistantMessage((ToolCall("a", "t"), ToolCall("b", "t")))
    done = completed([UserMessage("q"), asked, UserMessage("well?"), ToolMessage("b", "t", "late")])
    assert [message.role for message in done] == ["user", "assistant", "tool", "tool", "user"]
    assert [message.call_id for message in done[2:4]] == ["a", "b"]
    assert done[2].is_error
    assert done[3].text == "late"


def test_two_results_of_one_call_are_one():
    asked = AssistantMessage((ToolCall("a", "t"),))
    done = completed([asked, ToolMessage("a", "t", "1"), ToolMessage("a", "t", "2")])
    assert [message.text for message in done] == ["", "1"]


def test_the_same_id_in_two_steps_keeps_each_its_own_result():
    asked = AssistantMessage((ToolCall("a", "t"),))
    history = [asked, ToolMessage("a", "t", "1"), asked, ToolMessage("a", "t", "2")]
    assert completed(history) == history
    assert [m.text for m in completed([asked, asked, ToolMessage("a", "t", "2")])][-1] == "2"


def test_thinking_alone_is_something_said():
    assert completed([AssistantMessage((Thinking("hm"),))]) == [AssistantMessage((Thinking("hm"),))]


@given(st.lists(st.builds(ToolCall, st.sampled_from(["", "a", "a_1", "call_0", "call_1"]), st.just("t")), max_size=6))
def test_distinct_ids_are_distinct_and_those_that_were_stay(calls):
    message = AssistantMessage(tuple(calls))
    done = distinct_ids(message)
    assert have_distinct_ids(done.calls) or not calls
    assert len(done.calls) == len(calls)
    seen = set()
    for before, after in zip(calls, done.calls, strict=True):
        if before.id and before.id not in seen:
            assert after.id == before.id
        seen.add(before.id)
    assert distinct_ids(done) == done


def test_a_history_is_completed():
    first, second = AssistantMessage((Text("x"), A, A)), AssistantMessage((ToolCall("", "t"),))
    history = [SystemMessage("one"), first, ToolMessage("a", "t", "1"), SystemMessage("two"), second]
    assert completed(history) == [
        SystemMessage("one\n\ntwo"),
        AssistantMessage((Text("x"), A, replace(A, id="a_2"))),
        ToolMessage("a", "t", "1"),
        ToolMessage("a_2", "t", NO_RESULT, is_error=True),
        AssistantMessage((ToolCall("call_0", "t"),)),
        ToolMessage("call_0", "t", NO_RESULT, is_error=True),
    ]
    assert told("No result was recorded for this call: it may or may not have been made.", "unknown") == NO_RESULT
    assert completed([UserMessage(" "), UserMessage((Image(url="https://x.test/a.png"),)), AssistantMessage()]) == [
        UserMessage((Image(url="https://x.test/a.png"),))
    ]


def test_a_result_belongs_to_the_last_message_before_it_that_asked():
    asked = AssistantMessage((A,))
    other = AssistantMessage((B,))
    late = completed([asked, other, ToolMessage("a", "t", "late"), asked, ToolMessage("a", "t", "own")])
    assert [one.content for one in late if isinstance(one, ToolMessage)] == ["late", NO_RESULT, "own"]


def test_ids_are_made_of_what_there_is_and_avoid_those_that_are_used():
    calls = (A, A, ToolCall("", "t"))
    made = distinct_ids(AssistantMessage((Text("x"), *calls)), {"a", "call_3", "a_1"})
    assert [call.id for call in made.calls] == ["a_1_", "a_2", "call_3_"]
    assert made.content[0] == Text("x")


def test_a_call_without_an_id_is_given_one_that_says_what_it_is():
    message = distinct_ids(AssistantMessage((ToolCall("", "t", "{}"), ToolCall("", "t", "{}"))))
    assert [call.id for call in message.calls] == ["call_0", "call_1"]
