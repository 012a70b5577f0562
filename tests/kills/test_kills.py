"""Wherever a process is killed, no result is repeated, no write doubled, no run lost, and nothing known asked about.

Some 20 real kills here; `make kills KILLS=2000` for the night. And the audit itself: that it tells
what it is there to tell, or the zeros would mean nothing.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from kill_audit import QUESTIONS, audit
from kill_life import Life
from kill_worlds import FEATURES, World

from treadle.kernel.events import ModelReplied, RunStarted, ToolFinished, ToolReacted, ToolStarted
from treadle.kernel.messages import AssistantMessage, ToolCall

PROGRAM = Path(__file__).parents[2] / "scripts" / "kills.py"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")


def test_twenty_kills_cost_nothing():
    done = subprocess.run([sys.executable, str(PROGRAM), "--kills", "20"], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith("all")]
    assert int(row[2]) >= 20
    assert row[3:] == ["0", "0", "0", "0"]


def test_the_worlds_have_everything_that_is_to_be_killed():
    worlds = [World.of(seed) for seed in range(60)]
    assert worlds == [World.of(seed) for seed in range(60)]
    for feature in FEATURES:
        assert sum(feature in world.features for world in worlds) >= 8, feature


def line(process, tool="pay", label="t.0.0", made=1, what="effect", run="r"):
    return {"what": what, "process": process, "run": run, "tool": tool, "label": label, "made": made}


OUTCOME = {"reason": "answered", "text": "done", "output": "None"}
CALL = ToolCall("c", "pay", '{"label": "t.0.0"}')
ASKED = [RunStarted("r", (), 1), ModelReplied(0, AssistantMessage((CALL,)))]
KNOWN = [*ASKED, ToolStarted(0, "c"), ToolFinished(0, "c", "paid")]


def found(events, *lines, outcome=OUTCOME, faults=()):
    """How much of each the audit finds, of two processes: the second begins with `events` in the journal."""
    life = Life(dict(outcome), list(lines), [{}, {"r": events}, {"r": events}], faults=list(faults))
    undisturbed = Life(dict(OUTCOME), [line(0)])
    findings = audit(life, undisturbed)
    return tuple(len(findings.found[question]) for question in QUESTIONS)


def test_a_run_that_went_well_is_found_to_have():
    assert found(KNOWN, line(1)) == (0, 0, 0, 0)


def test_a_write_that_ran_twice_is_doubled():
    assert found(ASKED, line(1), line(2)) == (0, 1, 0, 0)


def test_a_call_whose_result_is_in_the_journal_is_repeated():
    assert found(KNOWN, line(1), line(2)) == (1, 1, 0, 0)
    look = [RunStarted("r", (), 1), ToolStarted(0, "c", "look", '{"label": "l"}'), ToolFinished(0, "c", "seen")]
    assert found(look, line(1), line(1, "look", "l"), line(2, "look", "l")) == (1, 0, 0, 0)


def test_a_call_in_its_place_is_another():
    again = [*KNOWN, ToolReacted(0, "c", "call", call=ToolCall("c", "look", '{"label": "t.0.0"}'))]
    assert found(again, line(1), line(2, "look", made=2)) == (0, 0, 0, 0)
    answered = [*again, ToolFinished(0, "c", "seen")]
    assert found(answered, line(1), line(1, "look", made=2), line(2, "look", made=2)) == (1, 0, 0, 0)


def test_a_question_about_a_known_result_is_asked_again():
    assert found(KNOWN, line(1), line(2, what="asked")) == (0, 0, 0, 1)
    assert found(ASKED, line(1), line(2, what="asked")) == (0, 0, 0, 0)


def test_a_call_that_was_refused_is_not_known():
    refused = [*ASKED, ToolFinished(0, "c", '{"error":true,"message":"no","executed":false}', True)]
    assert found(refused, line(1), line(2, what="asked")) == (0, 0, 0, 0)


def test_a_run_that_ends_otherwise_is_lost():
    assert found(KNOWN, line(1), outcome=OUTCOME | {"text": "what?"}) == (0, 0, 1, 0)
    assert found(KNOWN, outcome=OUTCOME) == (0, 0, 1, 0)
    assert found(KNOWN, line(1), line(1, label="t.9.9")) == (0, 0, 1, 0)
    assert found(KNOWN, line(1), outcome={}, faults=["it hung"]) == (0, 0, 1, 0)
