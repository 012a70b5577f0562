"""`treadle chat`: a conversation from a pipe and at a terminal, approvals, Ctrl-C, saving and loading."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

TOOLS = ("--tools", "script")

LOSING = """
import shutil
from treadle.testing import ScriptedModel

def says(request):
    shutil.rmtree("place", ignore_errors=True)
    return "hello"

model = ScriptedModel(says)
"""


def test_lines_from_a_pipe_are_one_conversation(treadle: Any) -> None:
    done = treadle("chat", "--model", "script:echo", input="one\n\ntwo\n")
    assert (done.code, done.out) == (0, "1: one\n2: two\n")


def test_lines_from_a_pipe_of_windows_are_those_alone(treadle: Any) -> None:
    """The model was shown the mark at the beginning, and a command after it was no command."""
    assert treadle("chat", "--model", "script:echo", input="\ufeffone\r\ntwo\r\n").out == "1: one\n2: two\n"
    assert treadle("chat", "--model", "script:echo", input="\ufeff/exit\r\nnot asked\r\n").out == ""


def test_a_quiet_chat_says_why_there_is_no_answer(treadle: Any) -> None:
    """There was nothing at all: no answer, and no word of the key that is not valid."""
    assert treadle("chat", "--model", "script:answers", "--quiet", input="one\n").err == ""
    done = treadle("chat", "--model", "script:fails", "--tools", "script:look", "--quiet", input="one\n")
    assert done.code == 5
    assert "the key is not valid" in done.err


def test_what_can_be_said_beside_questions(treadle: Any) -> None:
    said = "/why\n/tools\none\n/why\n/bogus\n/save\n/save talk.json\n/help\n/exit\nnot asked\n"
    done = treadle("chat", "--model", "script:echo", "--tools", "script:look", input=said)
    assert done.code == 0
    assert "nothing has been answered yet" in done.err
    assert "look [read]: Looks at something." in done.out
    assert "stop reason: answered" in done.out
    assert "there is no /bogus" in done.err
    assert "name a file" in done.err
    assert "saved to talk.json" in done.out
    assert "/save FILE" in done.out
    assert "not asked" not in done.out
    assert (treadle.folder / "talk.json").exists()


@pytest.mark.parametrize("said", ["exit", " quit ", "Exit"])
def test_a_word_that_leaves_everywhere_else_is_no_question(treadle: Any, said: str) -> None:
    """Each was asked of the model, and paid for; "exit 2" is a question."""
    done = treadle("chat", "--model", "script:echo", input=f"exit 2\n{said}\nnot asked\n")
    assert (done.code, done.out) == (0, "1: exit 2\n")


def test_a_saved_conversation_goes_on(treadle: Any) -> None:
    treadle("chat", "--model", "script:echo", "--save", "talk.json", input="one\n")
    done = treadle("chat", "--model", "script:echo", "--load", "talk.json", "--save", "talk.json", input="two\n")
    assert done.out == "2: two\n"
    messages = json.loads((treadle.folder / "talk.json").read_text(encoding="utf-8"))["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]


def test_a_file_that_cannot_be_saved_to_does_not_end_the_conversation(treadle: Any) -> None:
    done = treadle("chat", "--model", "script:echo", input="one\n/save absent/talk.json\ntwo\n")
    assert done.out == "1: one\n2: two\n"
    assert "cannot be saved to absent/talk.json" in done.err


@pytest.mark.parametrize(("then", "code"), [("", 2), ("/save kept.json\n", 0)])
def test_a_conversation_that_is_not_kept_has_its_code(treadle: Any, then: str, code: int) -> None:
    """Regression: 0, though what `--save` was to keep was lost. A file that it is in after all will do."""
    (treadle.folder / "place").mkdir()
    (treadle.folder / "losing.py").write_text(LOSING, encoding="utf-8")
    done = treadle("chat", "--model", "losing.py:model", "--save", "place/talk.json", input=f"one\n{then}")
    assert (done.code, "cannot be saved to place/talk.json" in done.err) == (code, True)


@pytest.mark.parametrize("target", [".", "absent/talk.json"])
def test_a_file_that_cannot_be_saved_to_is_refused_before_anything_is_said(treadle: Any, target: str) -> None:
    done = treadle("chat", "--model", "script:echo", "--save", target, input="one\n")
    assert (done.code, done.out) == (2, "")
    assert target in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_is_saved_through_and_one_into_no_folder_is_refused_before_anything_is_said(treadle: Any) -> None:
    (treadle.folder / "kept").mkdir()
    (treadle.folder / "link.json").symlink_to("kept/talk.json")
    (treadle.folder / "gone.json").symlink_to("absent/talk.json")
    treadle("chat", "--model", "script:echo", "--save", "link.json", input="one\n")
    done = treadle("chat", "--model", "script:echo", "--load", "link.json", "--save", "link.json", input="two\n")
    assert (done.out, (treadle.folder / "link.json").is_symlink()) == ("2: two\n", True)
    assert len(json.loads((treadle.folder / "kept" / "talk.json").read_text(encoding="utf-8"))["messages"]) == 4
    done = treadle("chat", "--model", "script:echo", "--save", "gone.json", input="one\n")
    assert (done.code, done.out, "leads into a folder that does not exist" in done.err) == (2, "", True)


def test_a_file_that_holds_something_else_is_not_written_over(treadle: Any) -> None:
    notes = treadle.folder / "notes.txt"
    notes.write_text("what took a week", encoding="utf-8")
    done = treadle("chat", "--model", "script:echo", "--save", "notes.txt", input="one\n")
    assert (done.code, done.out, "holds no saved conversation" in done.err) == (2, "", True)
    done = treadle("chat", "--model", "script:echo", input="one\n/save notes.txt\n/save new.json\n/save new.json\n")
    assert "cannot be saved to notes.txt, which is there, and holds no saved conversation" in done.err
    assert done.out.count("saved to new.json") == 2
    assert notes.read_text(encoding="utf-8") == "what took a week"


PUT = "A person put these arguments in place of yours: "


@pytest.mark.parametrize(
    ("decision", "paid", "answer"),
    [
        ("y\n", "40\n", "The tool said: paid 40 / seen bill\n"),
        ("maybe\nyes\n", "40\n", "The tool said: paid 40 / seen bill\n"),
        ('e {"amount": 7}\n', "7\n", f'The tool said: {PUT}{{"amount":7}}\npaid 7 / seen bill\n'),
        (
            'e\n{"amount": "much"}\ne\n{"amount": 8}\n',
            "8\n",
            f'The tool said: {PUT}{{"amount":8}}\npaid 8 / seen bill\n',
        ),
        ("n too dear\n", None, "too dear"),
    ],
    ids=["yes", "unclear", "edit", "bad edit", "no"],
)
def test_a_tool_that_needs_approval_asks(treadle: Any, decision: str, paid: str | None, answer: str) -> None:
    done = treadle("chat", "--model", "script:paying", *TOOLS, input=f"pay the bill\n{decision}again\n")
    assert 'pay({"amount":40}) [write] asks for approval.' in done.err
    assert answer in done.out
    written = treadle.folder / "paid.txt"
    assert (written.read_text(encoding="utf-8") if written.exists() else None) == paid


def test_approvals_need_no_journal(treadle: Any) -> None:
    done = treadle("chat", "--model", "script:paying", *TOOLS, "--no-journal", input="pay\ny\n")
    assert (done.code, done.out) == (0, "The tool said: paid 40 / seen bill\n")
    assert not treadle.journal.exists()


def test_the_end_of_the_input_leaves_a_decision_for_later(treadle: Any) -> None:
    done = treadle("chat", "--model", "script:paying", *TOOLS, input="pay the bill\n")
    assert done.code == 4
    assert "treadle approve" in done.err
    done = treadle("approve", "last", "--model", "script:paying", *TOOLS)
    assert (done.code, done.out) == (0, "The tool said: paid 40 / seen bill\n")


def test_a_person_can_give_the_result_of_an_external_tool(treadle: Any) -> None:
    done = treadle("chat", "--model", "script:boss", *TOOLS, input="ask\nfine by me\n")
    assert (done.code, done.out) == (0, "The boss agrees.\n")
    assert "fine by me" in treadle("show", "last").out


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
class TestAtATerminal:
    def test_ctrl_c_stops_the_answer_and_keeps_the_conversation(self, treadle: Any, terminal: Any) -> None:
        (treadle.folder / "both.py").write_text(
            "from script import ScriptedModel, slow\nmodel = ScriptedModel([\n"
            "    ('Let me see.', [('slow', {'seconds': 60})]),\n"
            "    lambda request: ' / '.join(m.role for m in request.messages)])\n",
            encoding="utf-8",
        )
        chat = terminal("chat", "--model", "both:model", "--tools", "script:slow")
        chat.until("you>")
        chat.type("wait for me\n")
        begun: Path = treadle.folder / "begun.txt"
        while not begun.exists():
            time.sleep(0.02)
        os.kill(chat.pid, signal.SIGINT)
        chat.until("stopped: cancelled")
        chat.until("you>")
        chat.type("and now\n")
        chat.until("user / assistant / tool / user")
        chat.until("you>")
        chat.interrupt_until("Ctrl-D leaves")
        assert chat.leave() == 0

    def test_approval_at_the_prompt(self, terminal: Any) -> None:
        chat = terminal("chat", "--model", "script:paying", *TOOLS)
        chat.until("you>")
        chat.type("pay\n")
        chat.until("y(es), n(o)")
        chat.type("y\n")
        chat.until("The tool said: paid 40")
        chat.type("/exit\n")
        assert chat.end() == 0

    @pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)], ids=["plain", "no"])
    def test_colours_only_where_they_are_wanted(
        self, terminal: Any, environment: dict[str, str], coloured: bool
    ) -> None:
        run = terminal("ask", "?", "--model", "script:endless", *TOOLS, "--max-steps", "2", "--trace", **environment)
        assert run.end() == 3
        assert ("\x1b[" in run.shown) is coloured
        assert "so far: seen 0" in run.shown
