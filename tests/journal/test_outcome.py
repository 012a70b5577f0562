"""Outcome: what is true of a future of the standard library is true of it, however little it locks."""

import asyncio
import concurrent.futures
import logging
import sys
import threading
from collections.abc import Callable

import pytest

from treadle.journal.outcome import Outcome


def soon(act: Callable[[], object]) -> threading.Thread:
    """Does it in another thread."""
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_whoever_blocks_is_woken_by_a_result_and_by_an_error() -> None:
    good, bad = Outcome[int](), Outcome[int]()
    threads = [soon(lambda: good.set_result(3)), soon(lambda: bad.set_exception(ValueError("no")))]
    assert good.result(10) == 3
    assert str(bad.exception(10)) == "no"
    with pytest.raises(ValueError, match="no"):
        bad.result()
    assert good.exception() is None
    assert good.done()
    assert not good.running()
    for thread in threads:
        thread.join()


def test_whoever_blocks_for_a_time_is_told_that_it_is_over() -> None:
    outcome = Outcome[int]()
    with pytest.raises(TimeoutError):
        outcome.result(0.01)
    with pytest.raises(TimeoutError):
        outcome.exception(0.01)
    assert outcome.running()


def test_what_was_handed_over_is_not_cancelled() -> None:
    outcome = Outcome[int]()
    assert not outcome.cancel()
    assert not outcome.cancelled()
    assert outcome.set_running_or_notify_cancel()
    outcome.set_result(1)
    assert outcome.result() == 1


def test_a_callback_is_called_once_whenever_it_comes_and_one_that_raises_hinders_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outcome, heard = Outcome[int](), list[str]()
    outcome.add_done_callback(lambda one: heard.append(f"first {one.result()}"))
    outcome.add_done_callback(lambda _: 1 / 0)
    outcome.add_done_callback(lambda _: heard.append("third"))
    with caplog.at_level(logging.ERROR, "concurrent.futures"):
        outcome.set_result(1)
    outcome.add_done_callback(lambda _: heard.append("late"))
    assert heard == ["first 1", "third", "late"]
    assert "exception calling callback" in caplog.text


def test_no_callback_is_lost_or_called_twice_while_threads_change_at_every_turn() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(300):
            outcome, heard = Outcome[int](), list[int]()
            thread = soon(lambda outcome=outcome: outcome.set_result(1))  # type: ignore[misc]
            for number in range(5):
                outcome.add_done_callback(lambda _, number=number, heard=heard: heard.append(number))  # type: ignore[misc]
            assert outcome.result(10) == 1
            thread.join()
            assert sorted(heard) == [0, 1, 2, 3, 4]
    finally:
        sys.setswitchinterval(before)


def test_the_standard_library_waits_for_many_of_them() -> None:
    outcomes = [Outcome[int]() for _ in range(4)]

    def settle() -> None:
        for number, outcome in enumerate(outcomes):
            if number == 2:
                outcome.set_exception(ValueError("no"))
            else:
                outcome.set_result(number)

    thread = soon(settle)
    done, left = concurrent.futures.wait(outcomes, timeout=10)
    assert (len(done), len(left)) == (4, 0)
    assert set(concurrent.futures.as_completed(outcomes, timeout=10)) == set(outcomes)
    thread.join()


async def awaited(outcome: "Outcome[int]") -> int:
    return await asyncio.wrap_future(outcome)


def test_an_event_loop_waits_for_it() -> None:
    outcome = Outcome[int]()
    thread = soon(lambda: outcome.set_result(5))
    assert asyncio.run(awaited(outcome)) == 5
    thread.join()
