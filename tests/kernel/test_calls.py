"""Calls: an immutable sequence in blocks, which behaves as a tuple would."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle.kernel.calls import BLOCK, NO_CALLS, Awaited, CallRecord, Calls
from treadle.kernel.messages import ToolCall

SIZES = (0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 1)


def records(count):
    return [CallRecord(ToolCall(f"c{i}", "t", "{}")) for i in range(count)]


@pytest.mark.parametrize("size", SIZES)
def test_it_is_the_sequence_that_it_was_made_of(size):
    given = records(size)
    calls = Calls(iter(given))
    assert len(calls) == size
    assert list(calls) == given
    assert [calls[i] for i in range(size)] == given
    assert [calls[i] for i in range(-size, 0)] == given
    assert calls == given == calls
    assert calls == tuple(given)
    assert bool(calls) == bool(given)
    for outside in (size, -size - 1):
        with pytest.raises(IndexError, match=f"outside {size} calls"):
            calls[outside]


@pytest.mark.parametrize("size", SIZES)
def test_a_call_is_found_by_its_id(size):
    calls = Calls(records(size))
    assert [calls.find(f"c{i}") for i in range(size)] == list(calls)
    assert calls.find("zz") is None


@pytest.mark.parametrize("size", SIZES[1:])
def test_a_change_is_in_the_new_calls_and_not_in_the_old(size):
    before = Calls(records(size))
    for at in {0, size // 2, size - 1}:
        changed = replace(before[at], status="started")
        after = before.put(changed)
        assert after != before
        assert list(after) == [*before[:at], changed, *before[at + 1 :]]
        assert before == records(size)
        assert after.find(f"c{at}") == after[at]
        assert after.put(before[at]) == before


@given(st.integers(0, 3 * BLOCK), st.slices(3 * BLOCK))
def test_a_slice_is_that_of_the_list(size, part):
    assert list(Calls(records(size))[part]) == records(size)[part]


@given(st.integers(1, 2 * BLOCK + 2), st.lists(st.integers(0, 10**6), max_size=30))
def test_any_changes_one_after_the_other_are_those_of_a_list(size, places):
    calls, model = Calls(records(size)), records(size)
    versions = []
    for number, place in enumerate(places):
        changed = replace(model[place % size], question=str(number))
        versions.append((calls, list(model)))
        calls = calls.put(changed)
        model[place % size] = changed
        assert calls == model
    assert all(earlier == then for earlier, then in versions)


def test_equality_is_by_what_is_in_it():
    one, other = Calls(records(2)), Calls(records(2))
    assert one == other
    assert one != Calls(records(3))
    assert one != other.put(replace(other[1], executed=True))
    assert one != "calls"
    assert Calls() == NO_CALLS
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)
    assert repr(Calls(records(1))) == f"Calls({records(1)!r})"


def test_what_is_run_for_a_call_is_the_models_the_edited_or_the_one_in_its_place():
    record = CallRecord(ToolCall("a", "t", '{"n":1}'))
    assert record.doing == record.call
    assert record.arguments == {"n": 1}
    edited = replace(record, edited='{"n":2}')
    assert edited.doing == ToolCall("a", "t", '{"n":2}')
    assert (edited.arguments, edited.call.arguments) == ({"n": 2}, '{"n":1}')
    replaced = replace(edited, stand_in=ToolCall("a", "other", "{}"))
    assert replaced.doing.name == "other"
    assert replaced.name == "t"
    assert CallRecord(ToolCall("a", "t", "what?")).arguments == "what?"
    assert CallRecord(ToolCall("a", "t")).arguments == {}


def test_what_a_sub_run_waits_for_is_data():
    assert Awaited("a", "t", "{}", "approval") == Awaited("a", "t", "{}", "approval")
