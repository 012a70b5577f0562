"""Going on with a run in another process: approve, deny, resume, and what is refused."""

import json
import signal
import time
from typing import Any

TOOLS = ("--tools", "script")
PAYING = ("--model", "script:paying", *TOOLS)


def test_ask_waits_and_another_process_approves(treadle: Any, run_id: Any) -> None:
    asked = treadle("ask", "pay the bill", *PAYING)
    assert asked.code == 4
    assert 'call_0_0: pay({"amount":40}) [write] asks for approval.' in asked.err
    assert f"treadle approve {run_id()}" in asked.err
    assert not (treadle.folder / "paid.txt").exists()
    done = treadle("approve", run_id(), "call_0_0", *PAYING)
    assert (done.code, done.out) == (0, "The tool said: paid 40 / seen bill\n")
    assert (treadle.folder / "paid.txt").read_text(encoding="utf-8") == "40\n"
    again = treadle("approve", "last", *PAYING)
    assert again.code == 2
    assert "has finished" in again.err
    assert (treadle.folder / "paid.txt").read_text(encoding="utf-8") == "40\n"


def test_approve_with_other_arguments(treadle: Any) -> None:
    treadle("ask", "pay the bill", *PAYING)
    assert "name it" in treadle("approve", "last", "--arguments", "{}", *PAYING).err
    assert treadle("approve", "last", "call_0_0", "--arguments", "nonsense", *PAYING).code == 2
    assert treadle("approve", "last", "call_0_0", "--arguments", '{"amount": "x"}', *PAYING).code == 2
    done = treadle("approve", "last", "call_0_0", "--arguments", '{"amount": 5}', *PAYING)
    put = 'A person put these arguments in place of yours: {"amount":5}'
    assert (done.code, done.out) == (0, f"The tool said: {put}\npaid 5 / seen bill\n")


def test_what_is_not_utf8_is_refused_and_the_run_waits_on(treadle: Any) -> None:
    treadle("ask", "pay the bill", *PAYING)
    done = treadle("approve", "last", "call_0_0", "--arguments", "\udcff", *PAYING)
    assert (done.code, "arguments are a JSON object" in done.err) == (2, True)
    done = treadle("resume", "last", "--result", "call_0_0=\udcff", *PAYING)
    assert (done.code, "a text in UTF-8" in done.err) == (2, True)
    assert treadle("resume", "last", *PAYING).code == 4


def test_deny_tells_the_model_why(treadle: Any) -> None:
    treadle("ask", "pay the bill", *PAYING)
    done = treadle("deny", "last", "--reason", "too dear", *PAYING)
    assert done.code == 0
    assert "too dear" in done.out
    assert not (treadle.folder / "paid.txt").exists()


def test_a_call_that_does_not_wait_is_refused(treadle: Any) -> None:
    treadle("ask", "pay the bill", *PAYING)
    done = treadle("approve", "last", "call_9", *PAYING)
    assert done.code == 2
    assert "call_0_0" in done.err


def test_approve_with_arguments_for_no_call_says_which_waits(treadle: Any) -> None:
    treadle("ask", "pay the bill", *PAYING)
    done = treadle("approve", "last", "--arguments", '{"amount": 1}', *PAYING)
    assert done.code == 2
    assert "name it, as call_0_0" in done.err


def test_resume_of_a_waiting_run_waits_on(treadle: Any) -> None:
    treadle("ask", "pay the bill", *PAYING)
    assert treadle("resume", "last", *PAYING).code == 4


def test_resume_gives_results_from_outside(treadle: Any) -> None:
    asked = treadle("ask", "ask the boss", "--model", "script:boss", *TOOLS)
    assert asked.code == 4
    assert "--result call_0_0=VALUE" in asked.err
    (treadle.folder / "agrees.py").write_text(
        "from treadle.testing import ScriptedModel\n"
        "model = ScriptedModel(lambda request: 'The boss says: ' + request.messages[-1].text)\n",
        encoding="utf-8",
    )
    done = treadle("resume", "last", "--result", "call_0_0=yes, do it", "--model", "agrees:model", *TOOLS)
    assert (done.code, done.out) == (0, "The boss says: yes, do it\n")


def test_a_finished_run_is_not_run_again(treadle: Any) -> None:
    first = treadle("ask", "What is 25 * 4 + 10?")
    again = treadle("resume", "last")
    assert (again.code, again.out) == (0, first.out)
    assert len(json.loads(treadle("runs", "--json").out)) == 1


def test_a_run_needs_its_own_tools_and_model_again(treadle: Any) -> None:
    treadle("ask", "pay the bill", *PAYING)
    done = treadle("approve", "last", "--model", "script:paying")
    assert done.code == 2
    assert "pay" in done.err
    assert "--tools" in done.err
    done = treadle("approve", "last", *TOOLS)
    assert done.code == 2
    assert "--model" in done.err
    assert treadle("approve", "last", *PAYING).code == 0


def test_a_run_whose_process_was_killed_goes_on(treadle: Any) -> None:
    (treadle.folder / "twice.py").write_text(
        "from treadle.testing import ScriptedModel\n"
        "model = ScriptedModel(lambda request: [('slow', {'seconds': 60})]\n"
        "    if request.step == 0 else 'went on: ' + request.messages[-1].text)\n",
        encoding="utf-8",
    )
    process = treadle.start("ask", "?", "--model", "twice:model", "--tools", "script:slow")
    deadline = time.monotonic() + 30
    while not (treadle.folder / "begun.txt").exists() or not (treadle.folder / "begun.txt").stat().st_size:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    [run] = json.loads(treadle("runs", "--json").out)
    assert run["status"] == "running"
    assert "treadle resume" in treadle("show", "last").out
    (treadle.folder / "script.py").write_text(
        (treadle.folder / "script.py").read_text(encoding="utf-8").replace("time.sleep(seconds)", "pass"),
        encoding="utf-8",
    )
    done = treadle("resume", "last", "--model", "twice:model", "--tools", "script:slow")
    assert (done.code, done.out) == (0, "went on: done\n"), done.err


def test_a_journal_cannot_have_a_module_imported(treadle: Any) -> None:
    (treadle.folder / "trap.py").write_text(
        "from treadle.testing import ScriptedModel\nopen('sprung.txt', 'a').write('x')\n"
        "model = ScriptedModel([[('pay', {'amount': 1})]], name='trap:model')\n",
        encoding="utf-8",
    )
    assert treadle("ask", "?", "--model", "trap:model", *TOOLS).code == 4
    (treadle.folder / "sprung.txt").unlink()
    done = treadle("approve", "last", *TOOLS)
    assert (done.code, "--model" in done.err) == (2, True)
    assert not (treadle.folder / "sprung.txt").exists()
