"""The same call and the same result: what makes no difference, what does, and that little is remembered."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.judging import sameness
from treadle.judging.sameness import KEPT, PLACES, arguments_key, canonical, same_result

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(values, values)
def test_two_texts_are_the_same_arguments_if_they_are_the_same_value(one, other):
    def turned(value):
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(each) for each in value] if isinstance(value, list) else value

    assert arguments_key(json.dumps(one)) == arguments_key(
        f" {json.dumps(turned(one), indent=2, ensure_ascii=False)}\n"
    )
    same = canonical(json.dumps(one)) == canonical(json.dumps(other))
    assert (arguments_key(json.dumps(one)) == arguments_key(json.dumps(other))) is same


def test_long_arguments_are_told_apart_too():
    long = json.dumps({"a": "x" * 50_000, "b": 1})
    assert arguments_key(long) == arguments_key(json.dumps({"b": 1, "a": "x" * 50_000}))
    assert arguments_key(long) != arguments_key(json.dumps({"b": 1, "a": "x" * 50_001}))


def test_little_is_remembered():
    for i in range(3 * KEPT):
        arguments_key(f'{{"n": {i}}}')
        same_result(f"{i} rows", f"{i + 1} rows")
    assert len(sameness._keys) <= KEPT
    assert len(sameness._pairs) <= KEPT


TIMES = st.tuples(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59)).map(
    "{0[0]:02}:{0[1]:02}:{0[2]:02}".format
)
COUNTED = (
    TIMES,
    TIMES.map("2026-01-31T{}Z".format),
    st.integers(0, 9999).map("{} ms".format),
    st.integers(0, 9999).map("attempt {}".format),
    st.integers(0, 2**40).map("request_id: r-{:x}0".format),
    st.uuids().map(str),
)
WORDS = st.sampled_from(["load", "rows", "done", "page 7", "x" * 700, "\n", "ok;", '{"a": 1}'])


@given(st.lists(st.tuples(WORDS, st.integers(0, 5)), min_size=1, max_size=PLACES - 1), st.data())
def test_results_that_differ_in_what_counts_by_itself_are_the_same(parts, data):
    kinds = [kind for _, kind in parts]

    def drawn():
        counted = [data.draw(COUNTED[kind]) for kind in kinds]
        return " ".join(f"{word} [{count}]" for (word, _), count in zip(parts, counted, strict=True))

    one, other = drawn(), drawn()
    assert same_result(one, other)
    assert same_result(other, one)
    assert not same_result(one, f"{other} more")
    assert not same_result(f"fewer {one}", other)


@given(st.text(), st.text())
def test_it_does_not_matter_which_is_asked_about_first(one, other):
    assert same_result(one, other) is same_result(other, one)
    assert same_result(one, one)


@pytest.mark.parametrize("length", [0, 100, 49_000])
def test_a_difference_is_seen_wherever_it_is(length):
    for before, after in ((length, 0), (0, length), (length // 2, length // 2)):
        one, other = ("x " * before + word + " y" * after for word in ("seven", "eight"))
        assert not same_result(one, other)
        early, late = ("x " * before + time + " y" * after for time in ("10:20:30", "10:21:31"))
        assert same_result(early, late)


def test_results_that_differ_in_very_many_places_are_different():
    one, other = (" ".join(f"10:20:{(i + shift) % 60:02}" for i in range(PLACES + 9)) for shift in (0, 1))
    assert not same_result(one, other)
