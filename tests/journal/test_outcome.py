"""Outcome: what is true of a future of the standard library is true of it, however little it locks."""

import asyncio
import concurrent.futures
import inspect
import logging
import os
import re
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, SqliteJournal, tool
from treadle.journal import outcome as outcome_module
from treadle.journal.outcome import Outcome
from treadle.testing import ScriptedModel


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


FORKED = """
import os, signal, sys, threading, warnings
from treadle.journal.outcome import Outcome

warnings.simplefilter("ignore", DeprecationWarning)
inside, forked, condition = threading.Event(), threading.Event(), threading.Condition

def slow(*given):
    if threading.current_thread() is thread:
        inside.set()
        forked.wait(10)
    return condition(*given)

thread = threading.Thread(target=lambda: Outcome().exception(0.01), daemon=True)
threading.excepthook = lambda told: None
threading.Condition = slow
thread.start()
assert inside.wait(10)
if (child := os.fork()) == 0:
    signal.alarm(5)
    outcome = Outcome()
    try:
        outcome.result(0.01)
    except TimeoutError:
        os._exit(0)
forked.set()
thread.join()
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")
def test_a_child_of_a_fork_can_wait_though_a_thread_was_about_to() -> None:
    """The thread had a lock of the module, which nobody gave back in the child."""
    assert subprocess.run([sys.executable, "-c", FORKED], check=False).returncode == 0


def test_it_relies_on_no_name_that_the_standard_library_keeps_to_itself() -> None:
    """It wrote the attributes of Future by their names of today."""
    theirs = vars(Future()).keys()
    outcome = Outcome[int]()
    assert not vars(outcome).keys() & theirs
    outcome.add_done_callback(lambda _: None)
    outcome.set_result(3)
    assert (outcome.done(), outcome.result(), outcome.exception()) == (True, 3, None)
    assert not vars(outcome).keys() & theirs, "it has become what it is to become only where somebody blocks"
    source = inspect.getsource(outcome_module)
    assert not [name for name in theirs if re.search(rf"\b{name}\b", source)]


class Renamed(Future[Any]):
    """A future of a standard library that keeps everything elsewhere, and waits by other names."""

    def __init__(self) -> None:
        self._kept = Future[Any]()

    def result(self, timeout: float | None = None) -> Any:
        return self._kept.result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        return self._kept.exception(timeout)

    def set_result(self, result: Any) -> None:
        self._kept.set_result(result)

    def set_exception(self, exception: BaseException | None) -> None:
        self._kept.set_exception(exception)


def test_it_is_as_good_over_a_future_of_other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrent.futures, "Future", Renamed)
    other: Any = types.ModuleType("other")
    exec(compile(inspect.getsource(outcome_module), "other", "exec"), vars(other))
    good, bad = other.Outcome(), other.Outcome()
    assert isinstance(good, Renamed)
    threads = [soon(lambda: good.set_result(3)), soon(lambda: bad.set_exception(ValueError("no")))]
    assert good.result(10) == 3
    assert str(bad.exception(10)) == "no"
    with pytest.raises(ValueError, match="no"):
        bad.result()
    for thread in threads:
        thread.join()


def test_whoever_waits_for_several_misses_none_while_threads_change_at_every_turn() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):
            outcomes = [Outcome[int]() for _ in range(3)]
            threads = [soon(lambda one=one: one.set_result(1)) for one in outcomes]  # type: ignore[misc]
            waiting = [soon(lambda many=outcomes: concurrent.futures.wait(many, 30)) for _ in range(2)]  # type: ignore[misc]
            assert set(concurrent.futures.as_completed(outcomes, timeout=30)) == set(outcomes)
            assert concurrent.futures.wait(outcomes, 0).not_done == set()
            for thread in (*threads, *waiting):
                thread.join(30)
                assert not thread.is_alive()
    finally:
        sys.setswitchinterval(before)


def test_it_can_be_shown_and_asked_for_what_it_has_not() -> None:
    outcome = Outcome[int]()
    assert "Outcome" in repr(outcome)
    outcome.set_result(1)
    assert "finished" in repr(outcome)
    assert not hasattr(outcome, "no_such_thing")
    assert not hasattr(Outcome[int](), "__no_such_thing__")


def test_a_run_blocks_on_none_of_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So that no lock is made for an event."""
    asked = list[str]()

    def counted(outcome: Any, name: str) -> Any:
        asked.append(name)
        raise AttributeError(name)

    @tool
    def buy(number: int) -> str:
        """Buys."""
        return "bought"

    async def run() -> int:
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            turns = [[("buy", {"number": number})] for number in range(10)]
            result = await Agent(ScriptedModel([*turns, "done"]), tools=[buy], journal=journal).run("Buy.")
            return len(await journal.read(result.run_id))

    monkeypatch.setattr(Outcome, "__getattr__", counted)
    assert asyncio.run(run()) > 40
    assert asked == []


class _Halting(dict[str, object]):
    """What a future has, handed out up to what others are told by, and the rest when the test says so."""

    reached, goes_on = threading.Event(), threading.Event()

    def items(self) -> Any:
        for name, value in super().items():
            if name == "_waiters":
                self.reached.set()
                self.goes_on.wait(30)
            yield name, value


def test_whoever_waits_while_another_begins_to_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was told in the middle of his looking at it, before he could be, and he waited for ever."""
    real, made = concurrent.futures.Future, []

    def future() -> concurrent.futures.Future[int]:
        one = real[int]()
        if not made:
            one.__dict__ = _Halting(vars(one))
        made.append(one)
        return one

    outcome = Outcome[int]()
    monkeypatch.setattr(outcome_module, "Future", future)
    other = soon(lambda: concurrent.futures.wait([outcome], 30))
    assert _Halting.reached.wait(30)
    outcome.set_result(1)
    try:
        assert concurrent.futures.wait([outcome], 10).done == {outcome}
    finally:
        _Halting.goes_on.set()
        other.join(30)
    assert not other.is_alive()
