"""Records of calls, and histories: what arguments are as data, what is told of a call, what an edit does."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from treadle.kernel.calls import (
    BLOCK,
    CallRecord,
    Calls,
    alike,
    cut_off,
    parsed,
    plain,
    told,
)
from treadle.kernel.events import ContextEdited
from treadle.kernel.history import edited, have_distinct_ids
from treadle.kernel.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage

A, B = ToolCall("a", "t", "{}"), ToolCall("b", "t", "{}")
Q = UserMessage("q")


@pytest.mark.parametrize(
    ("text", "data", "journaled"),
    [
        ("", {}, {}),
        ("{}", {}, {}),
        ("what?", "what?", "what?"),
        ('{"n":1.5}', {"n": 1.5}, {"n": 1.5}),
        ('{"n":0.1}', {"n": 0.1}, {"n": 0.1}),
        ('{"n":1.50}', {"n": 1.5}, {"n": 1.5}),
        ('{"n":1e2}', {"n": 100.0}, {"n": 100.0}),
        (
            '{"n":100000000000000000.01}',
            {"n": Decimal("100000000000000000.01")},
            {"n": "100000000000000000.01"},
        ),
        ('{"n":1e400}', {"n": Decimal("1e400")}, {"n": "1e400"}),
        ('{"n":1e99999999999999999999}', '{"n":1e99999999999999999999}', '{"n":1e99999999999999999999}'),
        ("[" * 5000, "[" * 5000, "[" * 5000),
    ],
)
def test_arguments_as_data_lose_no_digit(text, data, journaled):
    assert (parsed(text), plain(text)) == (data, journaled)
    assert type(parsed(text)) is type(data)
    if isinstance(data, dict) and data:
        assert (type(parsed(text)["n"]), type(plain(text)["n"])) == (type(data["n"]), type(journaled["n"]))


def test_a_number_nearer_to_zero_than_can_be_said_is_the_nearest_there_is():
    assert parsed('{"n":1e-99999999999999999999999}') == {"n": 0.0}


def test_arguments_are_alike_however_they_are_written():
    assert alike('{"a":1,"b":2}', ' { "b": 2, "a": 1 } ')
    assert alike("what?", "what?")
    assert alike("", "{}")
    assert not alike('{"a":1}', '{"a":2}')
    assert not alike("what?", "what")


def test_what_is_told_of_a_call():
    assert told("why", executed=True) == '{"error":true,"message":"why","executed":true}'
    assert told("why") == '{"error":true,"message":"why","executed":false}'
    unknown = "its outcome is unknown: it may or may not have taken effect."
    assert cut_off(" here") == told(f"This call was under way when the run stopped here; {unknown}", executed="unknown")
    assert cut_off() == told(f"This call was under way when the run stopped; {unknown}", executed="unknown")


def test_a_record_is_answered_and_times_what_was_worked_on_it():
    record = CallRecord(A, "started", started_at=100.0, in_doubt=True, executed=True)
    done = record.answered("1", is_error=True, at=102.5, app={"n": 1})
    assert done == CallRecord(
        A,
        "done",
        ToolMessage("a", "t", "1", is_error=True),
        {"n": 1},
        executed=True,
        started_at=100.0,
        ended_at=102.5,
        seconds=2.5,
    )
    assert replace(record, seconds=4.0).answered("1", False, at=102.5).seconds == 6.5
    assert record.answered("1", False, at=99.0).seconds == 0.0
    waiting = replace(record, status="awaited", seconds=4.0)
    assert waiting.answered("1", False, at=200.0).seconds == 4.0
    assert (waiting.worked_on(200.0), record.worked_on(101.0)) == (4.0, 1.0)
    assert (record.is_error, done.is_error, waiting.answered("1", False, at=1.0).is_error) == (False, True, False)


def test_a_record_that_is_settled_has_the_result_that_was_found():
    found = ToolMessage("a", "t", "1")
    record = CallRecord(A, "returned", found=found)
    assert record.settled(9.0) == replace(record, status="done", result=found, ended_at=9.0)
    assert replace(record, ran=(B,)).settled(9.0).executed
    assert replace(record, executed=True).settled(9.0).executed


def test_the_calls_that_were_run_for_a_record():
    record = CallRecord(A, ran=(B,))
    assert record.calls_run == (B,)
    assert replace(record, executed=True).calls_run == (B, A)


@pytest.mark.parametrize("size", [0, 1, 2, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_calls_are_found_by_their_place_from_either_end(size):
    records = [CallRecord(replace(A, id=f"c{number}")) for number in range(size)]
    calls = Calls(records)
    for place in range(-size, size):
        assert calls[place] == records[place]
    for place in (size, -size - 1):
        with pytest.raises(IndexError, match=f"^index {place} is outside {size} calls$"):
            calls[place]
    assert calls.find("x") is None
    assert [calls.find(record.id) for record in records] == records


def test_an_edit_keeps_the_whole_of_what_it_shortens():
    asked = AssistantMessage((A, B))
    history = [SystemMessage("s"), Q, asked, ToolMessage("a", "t", "long a"), ToolMessage("b", "t", "long b"), Q]
    short = (ToolMessage("a", "t", "short"), ToolMessage("b", "t", "long b"))
    after = edited(history, ContextEdited("p", 3, 5, short), 0)
    assert after[3:5] == [ToolMessage("a", "t", "short", whole="long a"), ToolMessage("b", "t", "long b")]
    again = edited(after, ContextEdited("p", 3, 4, (ToolMessage("a", "t", "s"),)), 0)
    assert again[3] == ToolMessage("a", "t", "s", whole="long a")
    back = edited(after, ContextEdited("p", 3, 4, (ToolMessage("a", "t", "long a"),)), 0)
    assert back[3].whole == "long a"


def test_equal_ids_are_told_apart_by_their_order():
    asked = AssistantMessage((A,))
    history = [asked, ToolMessage("a", "t", "first"), asked, ToolMessage("a", "t", "second")]
    put = (asked, ToolMessage("a", "t", "x"), asked, ToolMessage("a", "t", "y"))
    after = edited(history, ContextEdited("p", 0, 4, put), 0)
    assert [after[1].whole, after[3].whole] == ["first", "second"]


@pytest.mark.parametrize(
    ("start", "stop", "put", "note", "why"),
    [
        (-1, 1, (), 0, "it replaces messages -1 to 1, but only those up to 5 may be replaced"),
        (2, 1, (), 0, "it replaces messages 2 to 1, but only those up to 5 may be replaced"),
        (1, 6, (), 0, "it replaces messages 1 to 6, but only those up to 5 may be replaced"),
        (4, 5, (), 1, "it replaces messages 4 to 5, but only those up to 4 may be replaced"),
        (0, 1, (), 0, "it touches the system message, which stays"),
        (1, 1, (SystemMessage("x"),), 0, "it touches the system message, which stays"),
        (3, 4, (), 0, "it parts a tool call from its result, or leaves a message that says nothing"),
        (2, 3, (), 0, "it parts a tool call from its result, or leaves a message that says nothing"),
        (3, 3, (Q,), 0, "it parts a tool call from its result, or leaves a message that says nothing"),
        (1, 2, (UserMessage(" "),), 0, "it parts a tool call from its result, or leaves a message that says nothing"),
        (
            5,
            5,
            (AssistantMessage((A, A)), ToolMessage("a", "t", "1"), ToolMessage("a", "t", "2")),
            0,
            "it parts a tool call from its result, or leaves a message that says nothing",
        ),
    ],
)
def test_an_edit_that_does_not_fit(start, stop, put, note, why):
    history = [SystemMessage("s"), Q, AssistantMessage((A,)), ToolMessage("a", "t", "1"), Q]
    with pytest.raises(ValueError, match="it ") as refused:
        edited(history, ContextEdited("p", start, stop, put), note)
    assert str(refused.value) == why


def test_an_edit_may_reach_from_the_first_message_to_the_last():
    history = [Q, AssistantMessage((A,)), ToolMessage("a", "t", "1")]
    assert edited(history, ContextEdited("p", 0, 3, (Q,)), 0) == [Q]
    assert edited(history, ContextEdited("p", 3, 3, (Q,)), 0) == [*history, Q]
    with pytest.raises(ValueError, match=r"^it leaves no message$"):
        edited(history, ContextEdited("p", 0, 3, ()), 0)


def test_an_edit_after_results_looks_back_to_the_call_that_they_answer():
    history = [AssistantMessage((A,)), ToolMessage("a", "t", "1"), Q]
    assert edited(history, ContextEdited("p", 2, 3, (UserMessage("x"),)), 0)[2] == UserMessage("x")
    longer = [Q, AssistantMessage((A, B)), ToolMessage("a", "t", "1"), ToolMessage("b", "t", "1"), Q]
    assert edited(longer, ContextEdited("p", 4, 5, (UserMessage("x"),)), 0)[4] == UserMessage("x")
    with pytest.raises(ValueError, match="it parts a tool call from its result"):
        edited(longer, ContextEdited("p", 4, 4, (ToolMessage("a", "t", "again"),)), 0)


def test_ids_are_distinct_where_each_call_has_one_and_no_two_the_same():
    assert have_distinct_ids((A, B))
    assert have_distinct_ids(())
    for wrong in ((A, A), (replace(A, id=""),), (A, replace(A, id=""))):
        assert not have_distinct_ids(wrong)
