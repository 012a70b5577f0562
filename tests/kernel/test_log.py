"""Log: grows in place, and no log is ever seen to change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.kernel.log import Log

operations = st.lists(
    st.tuples(st.integers(0, 30), st.one_of(st.integers(), st.lists(st.integers(), max_size=3))), max_size=30
)


@given(operations)
def test_every_log_stays_what_it_was_whatever_is_made_of_it(operations):
    logs, expected = [Log([1, 2])], [[1, 2]]
    for place, what in operations:
        i = place % len(logs)
        if isinstance(what, list):
            logs.append(logs[i].append(*what))
            expected.append([*expected[i], *what])
        else:
            logs.append(logs[i].append(what))
            expected.append([*expected[i], what])
    for log in logs:
        for other in logs:
            if log.lineage is other.lineage and len(log) <= len(other):
                assert list(log) == list(other)[: len(log)]
    for log, items in zip(logs, expected, strict=True):
        assert list(log) == items
        assert len(log) == len(items)
        assert log == items
        assert [log[i] for i in range(-len(items), len(items))] == items + items
        assert log[1:] == items[1:]
        assert log[::-1] == items[::-1]
        assert list(log.since(1)) == items[1:]


def test_appending_to_the_newest_copies_nothing():
    first = log = Log()
    for i in range(100):
        log = log.append(i)
    assert log._items is first._items
    assert log.lineage is first.lineage
    assert first.append(1).lineage is not first.lineage


def test_two_that_grow_from_one_do_not_see_each_other():
    one = Log([1])
    a, b = one.append(2), one.append(3)
    assert (list(one), list(a), list(b)) == ([1], [1, 2], [1, 3])


def test_the_list_it_was_made_of_is_not_its_own():
    items = [1]
    log = Log(items)
    items.append(2)
    assert log == [1]


@pytest.mark.parametrize("index", [2, -3, 99])
def test_an_index_outside_says_so(index):
    log = Log([1, 2])
    log.append(3)
    with pytest.raises(IndexError, match=f"index {index} is outside a log of 2 items"):
        log[index]


def test_an_iterator_does_not_see_what_is_added_later():
    log = Log([1, 2])
    iterator = iter(log)
    log.append(3)
    assert list(iterator) == [1, 2]


def test_equality_and_hash():
    assert Log([1]) == Log([1]) != Log([1, 2])
    assert Log([1]) == (1,)
    assert Log([1]) != "1"
    with pytest.raises(TypeError):
        hash(Log())
    assert repr(Log([1])) == "Log([1])"


def test_logs_that_were_made_apart_have_nothing_in_common():
    assert Log([1]).lineage is not Log([1]).lineage
    one = Log([1])
    assert one.append(2).lineage is one.lineage
