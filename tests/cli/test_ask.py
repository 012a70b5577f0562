"""`treadle ask`: the answer on standard output, everything about it on standard error, and the exit code."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

TOOLS = ("--tools", "script")


def test_the_answer_is_all_of_standard_output(treadle: Any) -> None:
    done = treadle("ask", "What is the answer?", "--model", "script:answers")
    assert (done.code, done.out) == (0, "The answer is 42.\n")
    assert done.err == "model: script:answers (named by --model)\n"


def test_the_planner_answers_without_a_key_and_says_so(treadle: Any) -> None:
    done = treadle("ask", "What is 25 * 4 + 10?")
    assert done.code == 0
    assert "110" in done.out
    assert done.err.startswith("model: offline (a planner, not a language model; treadle doctor says why)")


def test_the_main_job(treadle: Any) -> None:
    done = treadle(
        "ask",
        "Compare the amount totals between fi_reporting and consolidation_mart for company 1001 in period 202401",
        "--skill",
        "analyst",
    )
    assert done.code == 0
    assert "1,500,000" in done.out
    assert "1,492,000" in done.out


def test_quiet_prints_the_answer_and_nothing_else(treadle: Any) -> None:
    done = treadle("ask", "?", "--model", "script:endless", *TOOLS, "--max-steps", "2", "--quiet")
    assert done.out == "so far: seen 0\n"
    done = treadle("ask", "?", "--model", "script:answers", "--quiet")
    assert (done.out, done.err) == ("The answer is 42.\n", "")


@pytest.mark.parametrize("source", ["dash", "pipe", "file", "words"])
def test_the_question_comes_from(treadle: Any, source: str) -> None:
    (treadle.folder / "question.txt").write_text("what now\n", encoding="utf-8")
    arguments = {"dash": ["-"], "pipe": [], "file": ["--file", "question.txt"], "words": ["what", "now"]}[source]
    done = treadle(
        "ask", *arguments, "--model", "script:echo", input="what now\n" if source in ("dash", "pipe") else ""
    )
    assert (done.code, done.out) == (0, "1: what now\n")


def test_text_of_different_steps_stands_on_lines_of_its_own(treadle: Any) -> None:
    done = treadle("ask", "?", "--model", "script:fails", *TOOLS)
    assert done.out == "I looked\n"


def test_json_is_one_object_with_everything(treadle: Any) -> None:
    done = treadle("ask", "?", "--model", "script:endless", *TOOLS, "--max-steps", "2", "--json")
    found = json.loads(done.out)
    assert done.code == 3
    assert found["finished"] is False
    assert found["stop"]["reason"] == "max_steps"
    assert found["stop"]["advice"]
    assert found["text"] == "so far: seen 0"
    assert found["model"] == "script:endless"
    [call] = found["tool_calls"]
    assert (call["tool"], call["arguments"], call["result"]) == ("look", {"what": "0"}, "seen 0")
    assert [step["step"] for step in found["steps"]] == [0, 1]
    assert found["steps"][1]["last_call_because"] == "max_steps"
    assert {"name": "steps", "value": 1, "bound": 2, "met": False} in found["steps"][1]["decision"]["checks"]
    assert found["usage"]["input_tokens"] > 0
    assert found["pending"] == []
    assert treadle("show", found["run_id"]).code == 0


def test_json_says_what_is_pending(treadle: Any) -> None:
    done = treadle("ask", "?", "--model", "script:paying", *TOOLS, "--json")
    [pending] = json.loads(done.out)["pending"]
    assert done.code == 4
    assert (pending["tool"], pending["arguments"], pending["kind"]) == ("pay", {"amount": 40}, "approval")


def test_the_trace_shows_perceive_think_act_and_why_beside_the_answer(treadle: Any) -> None:
    done = treadle("ask", "?", "--model", "script:endless", *TOOLS, "--max-steps", "2", "--trace")
    assert done.out == "still looking\nso far: seen 0\n"
    lines = [line.strip() for line in done.err.splitlines()]
    assert "step 0" in lines
    assert any(line.startswith("perceive") and "1 message" in line and "4 tools offered" in line for line in lines)
    assert any(line.startswith("think") and "asks for 1 tool call" in line for line in lines)
    assert 'act       look(what="0")' in lines
    assert any(line.startswith("-> seen 0") for line in lines)
    assert any(line.startswith("verdict") and "one last call: steps 1 of 2" in line for line in lines)
    assert any(line.startswith("verdict") and "stop: max_steps" in line for line in lines)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--max-steps", "2"], "max_steps"),
        (["--max-tool-calls", "1"], "max_tool_calls"),
        (["--max-tokens", "10"], "max_tokens"),
        (["--timeout", "0"], "deadline"),
    ],
)
def test_a_limit_stops_with_3_and_says_what_to_do(treadle: Any, options: list[str], reason: str) -> None:
    done = treadle("ask", "?", "--model", "script:endless", *TOOLS, *options, "--on-limit", "stop")
    assert done.code == 3
    assert f"stopped: {reason}" in done.err
    assert f"Raise {options[0]}" in done.err
    assert "treadle show" in done.err


def test_a_model_that_fails_is_5_and_what_was_found_is_kept(treadle: Any) -> None:
    done = treadle("ask", "?", "--model", "script:fails", *TOOLS)
    assert (done.code, done.out) == (5, "I looked\n")
    assert "the key is not valid" in done.err
    assert 'look(what="x")' in treadle("show", "last").out


def test_a_limit_on_cost_needs_a_price(treadle: Any) -> None:
    done = treadle("ask", "?", "--model", "script:endless", "--max-cost", "1")
    assert done.code == 2
    assert "price" in done.err


@pytest.mark.parametrize(("model", "found"), [("sleepy", "Let me see.\n"), ("halts", "So far so good\n")])
def test_ctrl_c_keeps_what_was_found(treadle: Any, model: str, found: str) -> None:
    process = treadle.start("ask", "?", "--model", f"script:{model}", *TOOLS)
    process.stdin.close()
    process.stdin = None
    deadline = time.monotonic() + 30
    while not (treadle.folder / "begun.txt").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert out == found
    assert "stopped: cancelled" in err
    assert "Traceback" not in err
    [run] = json.loads(treadle("runs", "--json").out)
    assert run["run_id"] in err
    assert (run["status"], run["stop"]["reason"]) == ("cancelled", "cancelled")


def test_a_reader_that_leaves_ends_the_run(treadle: Any) -> None:
    process = treadle.start("ask", "?", "--model", "script:endless", *TOOLS, "--max-steps", "500")
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=30)
    assert process.returncode == 141, err
    [run] = json.loads(treadle("runs", "--json").out)
    assert run["steps"] < 10


@pytest.mark.parametrize("options", [["--trace"], ["--trace", "--json"], ["--trace", "--quiet"], []])
def test_the_answer_comes_though_nobody_reads_what_is_said_about_it(treadle: Any, options: list[str]) -> None:
    """The run was cancelled in its first step, as one whose answer nobody reads."""
    process = treadle.start("ask", "?", "--model", "script:answers", *options)
    process.stderr.close()
    process.stderr = None
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "The answer is 42." in out


def test_a_reader_that_leaves_both_ends_the_run(treadle: Any) -> None:
    """As that of `2>&1 | head`."""
    process = treadle.start("ask", "?", "--model", "script:endless", *TOOLS, "--max-steps", "500", "--trace", "--quiet")
    for stream in ("stdout", "stderr"):
        getattr(process, stream).close()
        setattr(process, stream, None)
    process.communicate(timeout=30)
    assert process.returncode == 141
    [run] = json.loads(treadle("runs", "--json").out)
    assert run["steps"] < 10


def test_a_model_cannot_steer_the_terminal(treadle: Any) -> None:
    assert treadle("ask", "?", "--model", "script:loud").out == "red alarm\n"


def test_without_a_journal_nothing_is_kept(treadle: Any) -> None:
    assert treadle("ask", "?", "--model", "script:answers", "--no-journal").code == 0
    assert not treadle.journal.exists()


def test_the_journal_is_where_it_is_said_to_be(treadle: Any) -> None:
    treadle("ask", "?", "--model", "script:answers", "--journal", "here.db")
    treadle("ask", "?", "--model", "script:answers", TREADLE_JOURNAL="there.db")
    treadle("ask", "?", "--model", "script:answers")
    assert (treadle.folder / "here.db").exists()
    assert (treadle.folder / "there.db").exists()
    assert treadle.journal.exists()


def test_a_function_that_makes_a_model_and_a_file_with_tools(treadle: Any) -> None:
    done = treadle("ask", "?", "--model", "script.py:made", "--tools", "script.py:look", "--tools", "script:pay")
    assert (done.code, done.out) == (0, "made by a function\n")


@pytest.mark.parametrize("path", ["./script.py", ".script.py", "../{folder}/script.py"])
def test_a_path_may_begin_with_a_dot(treadle: Any, path: str) -> None:
    (treadle.folder / ".script.py").write_text((treadle.folder / "script.py").read_text())
    named = path.format(folder=treadle.folder.name)
    assert treadle("ask", "?", "--model", f"{named}:answers", "--tools", named).out == "The answer is 42.\n"


def test_instructions_come_first(treadle: Any) -> None:
    treadle("ask", "?", "--model", "script:answers", "--instructions", "Be brief.", "--skill", "basics")
    [first, *_] = json.loads(treadle("show", "last", "--json").out)
    assert first["messages"][0]["content"].startswith("Be brief.\n")


def test_what_was_found_is_told_where_the_model_spoke_beside_its_calls(treadle: Any) -> None:
    done = treadle("ask", "?", "--model", "script:fails", *TOOLS)
    assert "found: look" in done.err
    assert "seen x" in done.err


ENDS = '''
from treadle import Agent, Injected, external_tool, handoff, has_tool_call
from treadle.kernel.messages import AssistantMessage, Opaque
from treadle.models import ModelReply
from treadle.testing import ScriptedModel
from script import look

done = external_tool("done", "Call this when the task is done.", {"type": "object"})
outside = Agent(ScriptedModel([("All is well.", [("done", {"grams": 1.5})])]), tools=[done])
enough = Agent(ScriptedModel([[("look", {"what": "x"})]]), tools=[look], stop_when=has_tool_call("look"), name="enough")
front = Agent(ScriptedModel([[("transfer_to_enough", {})]]), tools=[handoff(enough)])
class Shop: ...

def count(shop: Injected[Shop]) -> int:
    """Counts what there is in the shop."""

wants = Agent("offline", tools=[count])
draws = Agent(ScriptedModel([ModelReply(AssistantMessage((Opaque("scripted", {}, shown="image"),)))]))
'''


def test_the_arguments_of_the_tool_that_ends_a_run_are_its_answer(treadle: Any) -> None:
    (treadle.folder / "ends.py").write_text(ENDS, encoding="utf-8")
    for more in ((), ("--quiet",)):
        done = treadle("ask", "?", "--agent", "ends:outside", *more)
        assert (done.code, done.out) == (0, 'All is well.\n{"grams":1.5}\n')
    assert treadle("chat", "--agent", "ends:outside", input="?\n").out == 'All is well.\n{"grams":1.5}\n'


def test_what_ended_without_a_word_is_said(treadle: Any) -> None:
    (treadle.folder / "ends.py").write_text(ENDS, encoding="utf-8")
    done = treadle("ask", "?", "--agent", "ends:enough")
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines()[-2:] == ['found: look(what="x") -> seen x', "ended: condition: has_tool_call('look')"]
    handed_on = treadle("ask", "?", "--agent", "ends:front").out
    assert handed_on.startswith("transfer_to_enough ended without a word (condition: has_tool_call('look'))")
    assert treadle("ask", "?", "--agent", "ends:draws").err.endswith("ended: the answer is [image]\n")


def test_an_agent_that_wants_dependencies_is_told_where_it_is_given_some(treadle: Any) -> None:
    (treadle.folder / "ends.py").write_text(ENDS, encoding="utf-8")
    done = treadle("ask", "?", "--agent", "ends:wants")
    assert done.code == 2
    assert "takes dependencies of type Shop: run it from a program, with deps=…, or by treadle serve" in done.err


def test_an_output_that_is_full_is_said_to_be(treadle: Any) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m treadle ask "What is 6 times 7?" >/dev/full'],
        cwd=treadle.folder, env=treadle.environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "Error: the output cannot be written: No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "2>/dev/full"])
def test_standard_streams_that_are_closed_are_no_fault(treadle: Any, closed: str) -> None:
    if "full" in closed and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    command = f'"{sys.executable}" -m treadle ask "What is 6 times 7?" {closed}'
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=treadle.folder, env=treadle.environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == (2 if closed == ">&-" else 0)
    assert "Internal error" not in done.stderr
    assert ("6 * 7 = 42" in done.stdout) == (closed != ">&-")


def test_a_journal_in_memory_is_a_wrong_use(treadle: Any) -> None:
    done = treadle("ask", "?", "--journal", ":memory:")
    assert done.code == 2
    assert "takes the path of a file" in done.err
