"""What counts as stuck, what does not, and that the answer depends on the last few calls only."""

import json
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle.judging.findings import StuckFinding
from treadle.judging.progress import WINDOW, ObservedCall, Weights, detect_stuck
from treadle.kernel.log import Log


def call(
    name: str,
    result: str = "ok",
    is_error: bool = False,
    polling: bool = False,
    write: bool = False,
    **arguments: object,
) -> ObservedCall:
    return ObservedCall(name, json.dumps(arguments), result, is_error, polling, write)


def in_steps(*steps: Sequence[ObservedCall]) -> list[ObservedCall]:
    """The calls of these steps, each with the number of its step."""
    return [replace(one, step=number) for number, step in enumerate(steps) for one in step]


def first_finding(calls: Sequence[ObservedCall]) -> StuckFinding | None:
    """What is found first when the question is asked after every call."""
    return next((f for n in range(len(calls)) if (f := detect_stuck(calls[: n + 1]))), None)


READ = call("read", "the same page", path="a")
LIST = call("list", "a, b", folder="/")
STAT = call("stat", "12 bytes", path="a")
FAIL = call("query", "no such column 'x'", is_error=True, sql="select x")


@pytest.mark.parametrize(
    ("calls", "kind", "concerned"),
    [
        ([READ] * 4, "repeat", (0, 1, 2, 3)),
        ([LIST, READ, READ, READ, READ], "repeat", (1, 2, 3, 4)),
        ([FAIL] * 3, "repeat", (0, 1, 2)),
        ([READ, LIST, READ, LIST], "cycle", (0, 1, 2, 3)),
        ([STAT, STAT, READ, LIST, READ, LIST], "cycle", (2, 3, 4, 5)),
        ([READ, LIST, STAT, READ, LIST, STAT], "cycle", (0, 1, 2, 3, 4, 5)),
        ([call(f"t{i}", "the disk is full", is_error=True, i=i) for i in range(9)], "errors", tuple(range(9))),
        ([call("q", f"bad column {i}", is_error=True, i=i) for i in range(9)], "errors", tuple(range(9))),
        ([call(f"t{i}", f"unknown tool 't{i}'", is_error=True) for i in range(3)], "unknown_tool", (0, 1, 2)),
        ([READ, LIST, STAT, LIST, READ, STAT, READ], "nothing_new", tuple(range(7))),
        (in_steps([READ, LIST], [LIST, READ], [READ, LIST], [LIST, READ]), "repeat", tuple(range(8))),
        (in_steps([READ, LIST], [STAT], [READ, LIST], [STAT]), "cycle", tuple(range(6))),
    ],
)
def test_found_stuck(calls: list[ObservedCall], kind: str, concerned: tuple[int, ...]) -> None:
    finding = detect_stuck(calls)
    assert finding is not None
    assert (finding.kind, finding.calls) == (kind, concerned)
    for name in {calls[i].name for i in concerned}:
        assert name in finding.message


@pytest.mark.parametrize(
    "calls",
    [
        [],
        [READ],
        [READ] * 3,
        [FAIL] * 2,
        [READ, LIST, READ],
        [READ, LIST, READ, STAT],
        [call(f"t{i}", f"unknown tool 't{i}'", is_error=True) for i in range(2)],
        [call("q", f"bad column {i}", is_error=True, i=i) for i in range(8)],
        [*[call("q", f"bad column {i}", is_error=True, i=i) for i in range(8)], READ],
        in_steps([READ, LIST], [READ, LIST], [READ, LIST]),
        in_steps([READ] * 10),
        [*[READ] * 4, LIST],
    ],
)
def test_not_stuck(calls: list[ObservedCall]) -> None:
    assert detect_stuck(calls) is None


def test_the_sentence_names_the_tool_and_the_number_of_calls() -> None:
    finding = detect_stuck([READ] * 4)
    assert finding is not None
    assert finding.message.startswith(
        "You called read 4 times with the same arguments and got the same result each time."
    )


def test_an_unknown_tool_is_recognised_by_the_result_that_the_house_gives() -> None:
    def wrong(name: str) -> ObservedCall:
        body = {"error": True, "message": f"there is no tool {name!r}", "available_tools": ["read", "list"]}
        return ObservedCall(name, "{}", json.dumps(body), is_error=True)

    finding = detect_stuck([READ, wrong("reed"), wrong("open"), wrong("cat")])
    assert finding is not None
    assert finding.kind == "unknown_tool"
    assert finding.calls == (1, 2, 3)


def test_batch_work_over_many_items_is_no_loop() -> None:
    assert first_finding([call("approve", "ok", item=i) for i in range(200)]) is None


def test_going_back_to_the_list_between_items_is_no_loop() -> None:
    calls = [c for i in range(50) for c in (call("open", f"item {i}", item=i), LIST)]
    assert first_finding(calls) is None


def test_running_the_tests_after_every_edit_is_no_loop() -> None:
    calls = [c for i in range(50) for c in (call("edit", "written", text=i), call("test", "1 failed"))]
    assert first_finding(calls) is None


@pytest.mark.parametrize("page", ["Chapter %d. When a call failed, the error was not found.", "Terror, part %d"])
def test_reading_documents_that_speak_of_errors_is_no_loop(page: str) -> None:
    assert first_finding([call("read", page % i, page=i) for i in range(30)]) is None


@pytest.mark.parametrize("body", ['{"error": null, "rows": %d}', '{"error": false, "rows": %d}', "errors: 0\nrows: %d"])
def test_a_field_that_says_there_was_no_error_is_no_error(body: str) -> None:
    assert first_finding([call("q", body % i, i=i) for i in range(30)]) is None


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"line": %d}', "Error %d: the disk was full"),
        ('{"ticket": %d}', "Error: customer %d cannot log in"),
        ('{"path": "/srv/logs/web server/error/%d.log", "lines": 50}', "ERROR 10:00 worker %d died"),
        ('{"path": "/srv/logs/error.log", "offset": %d00, "limit": 100}', "Error\nTimeout in module %d"),
        ('{"ticket": %d}', "Error: cannot log in"),
        ("%d", "Error: cannot log in"),
    ],
)
def test_reading_what_begins_with_error_is_no_loop(arguments: str, text: str) -> None:
    """A reader of logs or tickets was stopped after nine calls, though all of them had succeeded."""
    results = [text % i if "%d" in text else text for i in range(60)]
    assert first_finding([ObservedCall("read", arguments % i, results[i]) for i in range(60)]) is None


def test_reading_on_without_arguments_is_no_loop() -> None:
    assert first_finding([call("next_ticket", f"Error: customer {i} cannot log in") for i in range(60)]) is None


QUERY = "select name, count(*) from %s group by name order by %s"


@pytest.mark.parametrize(
    "text",
    [
        "Error: no table %s",
        '{"error": true, "message": "there is no source %s"}',
        "Traceback (most recent call last):\n  File ...\nKeyError: %s",
        "ValueError: %s",
        "Invalid action! %s",
        "Could not find [%s].",
        "result: failed to connect to %s",
        "bash: line 1: %s: command not found",
    ],
)
def test_an_error_told_as_text_counts_where_the_call_is_put_differently_each_time(text: str) -> None:
    calls = [call("q", text % f"t{i}", sql=QUERY % (f"tab{chr(97 + i)}", f"x{i}")) for i in range(9)]
    finding = first_finding(calls)
    assert finding is not None
    assert finding.kind == "errors"
    assert finding.calls == tuple(range(9))


def test_an_error_told_as_text_counts_where_the_same_call_gets_it_again() -> None:
    assert detect_stuck([call("q", "Error: card declined")] * 2) is None
    finding = detect_stuck([call("q", "Error: card declined")] * 3)
    assert finding is not None
    assert finding.kind == "repeat"


def test_looking_again_after_each_change_is_no_loop() -> None:
    checks = [call("test", "1 failed"), call("lint", "2 warnings")]
    assert first_finding([c for i in range(50) for c in (call("edit", "written", text=i), *checks)]) is None


def test_a_batch_repeated_for_ever_is_found() -> None:
    """The window counted calls, so that a batch of ten never came round within it."""
    batch = [call("read", f"page {i}", page=i) for i in range(10)]
    found = next(n for n in range(1, 20) if detect_stuck(in_steps(*[batch] * n)) is not None)
    assert found == 4
    finding = detect_stuck(in_steps(*[batch] * 4))
    assert finding is not None
    assert finding.message.startswith("You made the same 10 calls (read) 4 times and got the same results each time.")


def test_a_batch_in_which_one_call_is_new_is_progress() -> None:
    batches = [[READ, LIST, call("open", f"item {i}", item=i)] for i in range(40)]
    assert first_finding(in_steps(*batches)) is None


def test_a_batch_weighs_what_the_least_of_its_calls_weighs() -> None:
    errors = [[READ, call("q", f"bad column {i}", is_error=True, i=i)] for i in range(10)]
    assert detect_stuck(in_steps(*errors[:9])) is None
    assert detect_stuck(in_steps(*errors)) is not None


def test_successes_of_a_tool_that_writes_are_no_loop() -> None:
    assert first_finding([call("press", "ok", write=True, key="down")] * 100) is None
    assert first_finding([call("press", "ok", write=True, key=key) for key in "ab" * 50]) is None


def test_failures_of_a_tool_that_writes_are_a_loop() -> None:
    assert detect_stuck([call("pay", "declined", is_error=True, write=True)] * 3) is not None


def test_writing_the_same_between_does_not_hide_a_loop() -> None:
    press = call("press", "ok", write=True, key="down")
    finding = first_finding([c for _ in range(8) for c in (press, READ)])
    assert finding is not None
    assert finding.kind == "repeat"
    assert finding.calls == (1, 3, 5, 7)


def test_a_polling_tool_is_no_loop() -> None:
    assert first_finding([call("status", "running", polling=True, job=1)] * 100) is None


def test_polling_between_calls_does_not_hide_a_loop() -> None:
    wait = call("status", "running", polling=True)
    finding = first_finding([wait, *[READ, wait] * 8])
    assert finding is not None
    assert finding.kind == "repeat"
    assert finding.calls == (1, 3, 5, 7)


def test_a_change_seen_by_polling_starts_afresh() -> None:
    running, done = call("status", "running", polling=True), call("status", "done", polling=True)
    assert detect_stuck([running, READ, READ, READ, done, READ]) is None


@pytest.mark.parametrize(
    "result",
    [
        "2026-01-31T10:20:%02dZ load 7",
        "[10:20:%02d] load 7",
        "load 7 (took 1.%02d s)",
        '{"load": 7, "elapsed_ms": %d}',
        '{"load": 7, "request_id": "req-%02dab"}',
        '{"load": 7, "id": "8f14e45f-ceea-467f-9b3e-0000000000%02d"}',
        "<Load object at 0x7f3a00%02d> 7",
        "attempt %d: load 7",
    ],
)
def test_what_merely_counts_does_not_make_a_result_another(result: str) -> None:
    finding = detect_stuck([call("load", result % (i + 10)) for i in range(4)])
    assert finding is not None
    assert finding.kind == "repeat"


@pytest.mark.parametrize(
    "result",
    [
        "callback%d fired",
        "%d rows",
        "%d %% done",
        "price 1%d.50",
        "2026-01-%02d",
        "commit 9fceb02d0ae598e95dc970b74767f193%02d",
    ],
)
def test_what_may_be_the_answer_makes_a_result_another(result: str) -> None:
    assert first_finding([call("load", result % (i + 10)) for i in range(20)]) is None


def test_a_digest_after_a_shortened_result_tells_two_results_apart() -> None:
    same_beginning = "x" * 600
    calls = [call("read", f"{same_beginning}\n[{i:016x}]") for i in range(8)]
    assert first_finding(calls) is None


def test_key_order_and_white_space_of_arguments_do_not_matter() -> None:
    texts = ['{"a": 1, "b": [1, 2]}', '{"b":[1,2],"a":1}', '\n{ "b" : [1,2], "a" : 1 }', '{"a":1,"b":[1,2]}']
    finding = detect_stuck([ObservedCall("t", text, "r") for text in texts])
    assert finding is not None
    assert finding.kind == "repeat"


@pytest.mark.parametrize("text", ["", "{", "not json", "[" * 100_000, "\ud800", '"\\ud800"', "1e999", "\x00"])
def test_arguments_that_are_no_json_are_compared_as_text(text: str) -> None:
    finding = detect_stuck([ObservedCall("t", text, "r")] * 4)
    assert finding is not None
    assert finding.kind == "repeat"
    assert detect_stuck([ObservedCall("t", text + "#" * i, "r") for i in range(1, 5)]) is None


def test_it_takes_a_log_of_calls() -> None:
    finding = detect_stuck(Log([LIST, STAT, READ, READ, READ, READ]))
    assert finding is not None
    assert finding.calls == (2, 3, 4, 5)


def test_more_patience_can_be_asked_for() -> None:
    assert detect_stuck([READ] * 4, Weights(enough=14)) is None
    assert detect_stuck([READ] * 5, Weights(enough=14)) is not None


@pytest.mark.parametrize("name", ["window", "enough", "unknown_tools", "rechecked", "repeated", "again", "error"])
def test_weights_that_make_no_sense_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Weights(**{name: -1})


texts = st.one_of(
    st.text(max_size=30), st.sampled_from(["error: x", "ok", "", "{}", "unknown tool", "10:20:30", "Traceback"])
)
observed = st.builds(
    ObservedCall,
    name=st.sampled_from(["a", "b", "c"]),
    arguments=st.one_of(texts, st.dictionaries(st.sampled_from("xy"), st.integers(0, 2)).map(json.dumps)),
    result=texts,
    is_error=st.booleans(),
    polling=st.booleans(),
    write=st.booleans(),
)
# Made so, and not sorted out of all: of a long list little would be left to try.
acts = observed.map(lambda one: replace(one, polling=False))
reads = acts.map(lambda one: replace(one, write=False))
repeating = st.lists(observed, min_size=1, max_size=3).flatmap(lambda few: st.lists(st.sampled_from(few), max_size=30))
batches = st.lists(observed, min_size=1, max_size=4).flatmap(
    lambda few: st.lists(st.lists(st.sampled_from(few), min_size=1, max_size=4), max_size=20)
)
histories = st.one_of(st.lists(observed, max_size=30), repeating, batches.map(lambda steps: in_steps(*steps)))


@given(histories)
def test_it_never_raises_and_points_at_calls_that_are_there(calls: list[ObservedCall]) -> None:
    finding = detect_stuck(calls)
    assert finding == detect_stuck(list(calls))
    if finding is not None:
        assert list(finding.calls) == sorted(set(finding.calls))
        assert all(0 <= i < len(calls) and not calls[i].polling for i in finding.calls)
        last = calls[-1].step
        assert any(i == len(calls) - 1 or (last is not None and calls[i].step == last) for i in finding.calls)


@given(histories, batches.filter(bool))
def test_steps_before_the_window_do_not_change_the_answer(
    before: list[ObservedCall], steps: list[list[ObservedCall]]
) -> None:
    window = [replace(one, step=99 + (one.step or 0)) for one in in_steps(*(steps * WINDOW)[-WINDOW:])]
    alone, later = detect_stuck(window), detect_stuck([*before, *window])
    assert (alone is None) == (later is None)
    if alone is not None and later is not None:
        assert later.calls == tuple(i + len(before) for i in alone.calls)
        assert (later.kind, later.message) == (alone.kind, alone.message)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers()), unique=True, max_size=40), texts)
def test_different_calls_that_succeed_are_never_a_loop(chosen: list[tuple[str, int]], result: str) -> None:
    calls = [call(name, f"done {result}", number=number) for name, number in chosen]
    assert first_finding(calls) is None


@given(reads, st.integers(4, 40))
def test_the_same_call_with_the_same_result_is_always_found(repeated: ObservedCall, times: int) -> None:
    assert detect_stuck([repeated] * times) is not None


@given(st.lists(reads, min_size=1, max_size=9), st.integers(4, 9))
def test_the_same_batch_with_the_same_results_is_always_found(batch: list[ObservedCall], times: int) -> None:
    assert detect_stuck(in_steps(*[batch] * times)) is not None


@given(st.lists(acts, min_size=1, max_size=5), st.randoms())
def test_the_order_of_the_calls_in_a_step_does_not_matter(batch: list[ObservedCall], order: Random) -> None:
    def shuffled() -> list[ObservedCall]:
        return order.sample(batch, len(batch))

    found, again = (detect_stuck(in_steps(*(shuffled() for _ in range(6)))) for _ in range(2))
    assert (found and found.kind) == (again and again.kind)


@given(st.lists(st.sampled_from(["Error: x", "ok", "Traceback", "not found", "Failed: y"]), min_size=1, max_size=60))
def test_numbered_calls_that_succeed_are_never_a_loop_whatever_they_bring(results: list[str]) -> None:
    assert first_finding([call("read", result, page=i) for i, result in enumerate(results)]) is None


@given(st.dictionaries(st.text(max_size=5), st.integers(-(2**53), 2**53), min_size=2), st.randoms())
def test_any_order_of_keys_is_the_same_call(arguments: dict[str, int], order: Random) -> None:
    def shuffled() -> str:
        items = list(arguments.items())
        order.shuffle(items)
        return json.dumps(dict(items), indent=order.choice([None, 2]))

    assert detect_stuck([ObservedCall("t", shuffled(), "r") for _ in range(4)]) is not None
