"""A valid history: whatever comes in, what goes out is valid, and nothing is lost without need."""

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.kernel.history import completed, distinct_ids, have_distinct_ids, instructed
from treadle.kernel.messages import AssistantMessage, SystemMessage, Text, Thinking, ToolCall, ToolMessage, UserMessage

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
    assert completed(done) == done
    if is_valid(messages):
        assert done == messages
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


def test_instructions_take_the_place_of_those_that_were():
    history = [SystemMessage("be good"), UserMessage("q")]
    assert instructed(history, "be quick") == [SystemMessage("be quick"), UserMessage("q")]
    assert instructed(history, "") == [UserMessage("q")]
    assert instructed([UserMessage("q")], "be quick")[0] == SystemMessage("be quick")
