"""Decisions on the command line: they hold for the agent that was asked, and are made by someone who saw the call.

What was found, and the test that holds it:

- `treadle approve` and `resume` build a bare agent -> test_approve_keeps_the_rules_of_the_agent,
  test_approve_keeps_the_hook_of_the_agent, test_approve_keeps_the_stop_condition_of_the_agent,
  test_approve_keeps_the_output_of_the_agent, test_deny_and_resume_take_the_agent_itself
- one call, and edited arguments -> test_approve_by_call_and_by_key_takes_the_agent_too,
  test_edited_arguments_are_judged_again_on_the_command_line
- without `--agent` a run that had rules or hooks is refused -> test_a_run_with_rules_is_refused_without_its_agent,
  test_a_run_with_a_hook_is_refused_without_its_agent
- a run that had none needs none -> test_a_run_without_rules_needs_no_agent
- an agent that is weaker, or none, is refused -> test_an_agent_that_is_not_there_is_refused,
  test_an_agent_with_weaker_rules_is_refused
- the hint that `ask` prints is the command that works -> test_the_hint_of_ask_is_the_command_that_works
- the whole call is shown -> test_ask_shows_the_whole_call, test_approve_shows_the_whole_call,
  test_chat_shows_the_whole_call, test_ask_at_a_terminal_shows_the_whole_call
- an interrupted call -> test_an_interrupted_call_says_that_approving_runs_it_again_and_how_to_give_its_result,
  test_the_result_of_an_interrupted_call_is_given_as_it_is_said
- a decision on a finished run -> test_a_decision_on_a_finished_run_is_refused_on_the_command_line
- ids of any kind -> test_a_call_whose_id_is_hostile_can_be_approved
"""

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time

import pytest
from stem import PLAIN, run_in

BANK = '''
import sys, time
from treadle import Agent, Alternative, SqliteJournal, ask_before, deny, has_tool_call, tool
from treadle.testing import ScriptedModel
from treadle.models import AssistantMessage, ModelReply, ToolCall
from pydantic import BaseModel

def note(text):
    with open("notes.txt", "a") as file:
        file.write(text + "\\n")

@tool
def pay(amount: int, to: str = "Ann") -> str:
    """Pay."""
    note(f"pay {amount}")
    return f"paid {amount}"

@tool
def wipe() -> str:
    """Wipe everything."""
    note("wipe")
    return "wiped"

@tool(needs_approval=True)
def guarded(text: str) -> str:
    """Do something that a person must agree to."""
    note("guarded")
    return "done it"

@tool
def hang(amount: int) -> str:
    """Take long."""
    note(f"hang {amount}")
    time.sleep(600)
    return "never"

def once(*calls, then="done"):
    def turn(request):
        asked = [message for message in request.messages if message.role == "assistant"]
        return list(calls[len(asked)]) if len(asked) < len(calls) else then
    return turn

class Bill(BaseModel):
    amount: int

journal = SqliteJournal("runs.db")
tools = [pay, wipe, guarded, hang]
LARGE = lambda arguments: arguments["amount"] > 100
rules = [ask_before("pay"), deny("wipe", reason="never"), deny("pay", when=LARGE, reason="too much")]
stages = once([("pay", {"amount": 5})], [("pay", {"amount": 5000}), ("wipe", {})])
agent = Agent(ScriptedModel(stages), tools=tools, approvals=rules, journal=journal)
weak = Agent(ScriptedModel(stages), tools=tools, approvals=[ask_before("pay")], journal=journal)

def hook(call, output):
    note(f"hook {call.name}")
    return "seen by the hook"

hooked = Agent(ScriptedModel(once([("guarded", {"text": "x"})])), tools=tools, on_tool_result=hook, journal=journal)
stopping = Agent(ScriptedModel(once([("guarded", {"text": "x"})], [("pay", {"amount": 1})])), tools=tools,
                 stop_when=has_tool_call("guarded"), journal=journal)
typed = Agent(ScriptedModel(once([("guarded", {"text": "x"})], then='{"amount": 5}')), tools=tools, output=Bill,
              output_mode="prompted", journal=journal)
plain = Agent(ScriptedModel(once([("guarded", {"text": "x"})])), tools=tools, journal=journal)
hanging = Agent(ScriptedModel(once([("hang", {"amount": 7})])), tools=tools, journal=journal)

LONG = "a" * 3000 + "THE END"
SLY = "abc\\u202egnp.exe\\u200b\\u2066"
model = ScriptedModel(once([("guarded", {"text": LONG + SLY})]), name="bank:model")

def hostile(request):
    if len(request.messages) > 1:
        return "done"
    return ModelReply(AssistantMessage((ToolCall("a/b#1f2e3d4c x", "guarded", '{"text": "x"}'),)), finish="tool_calls")

hostile = Agent(ScriptedModel(hostile), tools=tools, journal=journal)

if __name__ == "__main__":
    result = globals()[sys.argv[1]].run_sync("go")
    print(result.run_id, result.stop.reason)
'''


class Desk:
    """A folder with a bank in it, a person's command line, and what the tools noted."""

    def __init__(self, folder, stem):
        self.folder, self.stem = folder, stem
        (folder / "bank.py").write_text(BANK, encoding="utf-8")
        self.environment = PLAIN | {
            "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"), "XDG_CACHE_HOME": str(folder / "cache"),
            "TREADLE_FORBID_MODELS": "1", "TREADLE_JOURNAL": "runs.db",
        }  # fmt: skip

    def run(self, name):
        """The id of a run of the agent `name`, carried as far as it goes."""
        done = self._ran([str(self.folder / "bank.py"), name])
        done.check_returncode()
        return done.stdout.split()[0]

    def __call__(self, *arguments, input=""):
        return self._ran(["-m", "treadle", *arguments], input)

    def _ran(self, words, input=""):
        return run_in(self.stem, words, self.folder, self.environment, input=input)

    @property
    def notes(self):
        path = self.folder / "notes.txt"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.fixture
def desk(tmp_path, stem):
    return Desk(tmp_path, stem)


def agent(name):
    return "--agent", f"bank:{name}"


def test_approve_keeps_the_rules_of_the_agent(desk):
    run = desk.run("agent")
    done = desk("approve", run, *agent("agent"))
    assert done.returncode == 0, done.stderr
    assert desk.notes == ["pay 5"]


def test_approve_by_call_and_by_key_takes_the_agent_too(desk):
    run = desk.run("agent")
    refused = desk("approve", run, "call_9_9", *agent("agent"))
    assert refused.returncode == 2
    assert desk.notes == []
    assert desk("approve", run, "call_0_0", *agent("agent")).returncode == 0
    assert desk.notes == ["pay 5"]


def test_edited_arguments_are_judged_again_on_the_command_line(desk):
    run = desk.run("agent")
    done = desk("approve", run, "call_0_0", "--arguments", '{"amount": 5000}', *agent("agent"))
    assert "No such option" not in done.stderr
    assert desk.notes == []


def test_approve_keeps_the_hook_of_the_agent(desk):
    run = desk.run("hooked")
    done = desk("approve", run, *agent("hooked"))
    assert done.returncode == 0, done.stderr
    assert desk.notes == ["guarded", "hook guarded"]


def test_approve_keeps_the_stop_condition_of_the_agent(desk):
    run = desk.run("stopping")
    done = desk("approve", run, *agent("stopping"))
    assert done.returncode == 0, done.stderr
    assert desk.notes == ["guarded"]


def test_approve_keeps_the_output_of_the_agent(desk):
    run = desk.run("typed")
    done = desk("approve", run, "--json", *agent("typed"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["output"] == {"amount": 5}


def test_deny_and_resume_take_the_agent_itself(desk):
    run = desk.run("hooked")
    assert desk("resume", run, *agent("hooked")).returncode == 4
    done = desk("deny", run, "--reason", "no", *agent("hooked"))
    assert done.returncode == 0, done.stderr
    assert "guarded" not in desk.notes


@pytest.mark.parametrize("verb", ["approve", "resume", "deny"])
def test_a_run_with_rules_is_refused_without_its_agent(desk, verb):
    run = desk.run("agent")
    done = desk(verb, run, "--tools", "bank", "--model", "bank:model")
    assert done.returncode == 2
    assert "--agent" in done.stderr
    assert "wipe" in done.stderr
    assert desk.notes == []


def test_a_run_with_a_hook_is_refused_without_its_agent(desk):
    run = desk.run("hooked")
    done = desk("approve", run, "--tools", "bank", "--model", "bank:model")
    assert done.returncode == 2
    assert "--agent" in done.stderr
    assert desk.notes == []


def test_a_run_without_rules_needs_no_agent(desk):
    run = desk.run("plain")
    done = desk("approve", run, "--tools", "bank", "--model", "bank:model")
    assert done.returncode in (0, 4), done.stderr
    assert desk.notes[:1] == ["guarded"]


def test_an_agent_with_weaker_rules_is_refused(desk):
    run = desk.run("agent")
    done = desk("approve", run, *agent("weak"))
    assert done.returncode == 2
    assert "wipe" in done.stderr
    assert desk.notes == []


def test_an_agent_that_is_not_there_is_refused(desk):
    run = desk.run("agent")
    for target in ("bank:nobody", "nowhere:agent", "bank:pay"):
        done = desk("approve", run, "--agent", target)
        assert done.returncode == 2, target
        assert "--agent" in done.stderr
        assert "No such option" not in done.stderr
        assert "Traceback" not in done.stderr
    assert desk.notes == []


def test_a_decision_on_a_finished_run_is_refused_on_the_command_line(desk):
    run = desk.run("plain")
    assert desk("approve", run, *agent("plain")).returncode == 0
    for verb in ("approve", "deny"):
        done = desk(verb, run, "call_0_0", *agent("plain"))
        assert done.returncode == 2
        assert "finished" in done.stderr
    done = desk("resume", run, "--result", "call_0_0=5", *agent("plain"))
    assert done.returncode == 2
    assert desk.notes == ["guarded"]


def test_a_call_whose_id_is_hostile_can_be_approved(desk):
    run = desk.run("hostile")
    call = json.loads(desk("resume", run, "--json", *agent("hostile")).stdout)["pending"][0]["call_id"]
    done = desk("approve", run, call, *agent("hostile"))
    assert done.returncode == 0, done.stderr
    assert desk.notes == ["guarded"]


ASK = ("ask", "go", "--model", "bank:model", "--tools", "bank")


def test_the_hint_of_ask_is_the_command_that_works(desk):
    asked = desk(*ASK)
    assert asked.returncode == 4
    hint = re.search(r"treadle approve [^\n]*?(?=,? or treadle|\n|$)", asked.stderr)
    assert hint, asked.stderr
    words = shlex.split(hint[0].rstrip(",."))
    done = desk(*words[1:])
    assert done.returncode == 0, done.stderr
    assert desk.notes == ["guarded"]


def whole(shown):
    """Whether someone who reads `shown` has seen the whole call."""
    flat = re.sub(r"\s+", "", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown))
    assert "guarded" in flat
    assert "a" * 3000 + "THEEND" in flat, "the arguments are unabridged"
    assert "[write]" in flat, "the effect is shown"
    for hidden in ("\u202e", "\u200b", "\u2066"):
        assert hidden not in shown
        assert f"\\u{ord(hidden):04x}" in flat.lower(), "invisible characters are written as escapes"


def test_ask_shows_the_whole_call(desk):
    whole(desk(*ASK).stderr)


def test_approve_shows_the_whole_call(desk):
    desk(*ASK)
    done = desk("approve", "last", "--model", "bank:model", "--tools", "bank")
    assert done.returncode == 0, done.stderr
    whole(done.stderr)


def test_chat_shows_the_whole_call(desk):
    done = desk("chat", "--model", "bank:model", "--tools", "bank", input="go\nn\n")
    whole(done.stderr)
    assert desk.notes == []


def test_ask_at_a_terminal_shows_the_whole_call(desk):
    """What is said at a terminal is said where the person looks, whether or not `ask` asks there and then."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "treadle", *ASK], cwd=desk.folder, env=desk.environment | {"COLUMNS": "200"},
        stdin=theirs, stdout=theirs, stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        os.write(ours, b"n no\n")
        shown = b""
        try:
            while select.select([ours], [], [], 60)[0] and (piece := os.read(ours, 65536)):
                shown += piece
        except OSError:
            pass  # what a terminal says when its other end is closed
        assert process.wait(timeout=60) in (0, 4)
    os.close(ours)
    whole(shown.decode("utf-8"))
    assert desk.notes == []


def killed_while_it_hangs(desk):
    with subprocess.Popen([sys.executable, "bank.py", "hanging"], cwd=desk.folder, env=desk.environment) as process:
        deadline = time.monotonic() + 30
        while "hang 7" not in desk.notes:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.1)
        process.send_signal(signal.SIGKILL)


def test_an_interrupted_call_says_that_approving_runs_it_again_and_how_to_give_its_result(desk):
    killed_while_it_hangs(desk)
    done = desk("resume", "last", *agent("hanging"))
    assert done.returncode == 4, done.stderr
    said = done.stderr
    assert "hang" in said
    assert "again" in said
    assert "resolve" in said
    assert "call_0_0 --done" in said


def test_the_result_of_an_interrupted_call_is_given_as_it_is_said(desk):
    killed_while_it_hangs(desk)
    said = desk("resume", "last", *agent("hanging")).stderr
    hint = re.search(r"treadle resolve .*--done RESULT.*", said)
    assert hint, said
    done = desk(*shlex.split(hint[0].replace("RESULT", "'it was done'"))[1:])
    assert done.returncode == 0, done.stderr
    assert desk.notes == ["hang 7"]
