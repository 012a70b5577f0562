"""An error on the command line speaks of the command line, and of nothing that only a program could give."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ask", "hi", "--model", "anthropic:claude-x"], "treadle keys set"),
        (["show", "nope"], "`treadle runs` shows the runs there are."),
        (["ask", "--continue", "what", "about", "stock"], 'in quotes: treadle ask --continue "…"'),
        (["resume", "nope"], "`treadle runs` shows the runs there are."),
    ],
    ids=" ".join,
)
def test_an_error_speaks_of_the_command_line(treadle: Any, words: list[str], said: str) -> None:
    treadle("ask", "What is 2 + 2?", "--model", "offline")
    done = treadle(*words)
    assert done.code == 2
    assert said in done.err
    for other in ("api_key=", "in Python", "await ", "takeover=", "limits="):
        assert other not in done.err


def test_a_question_of_one_word_stands_before_the_option(terminal: Any, treadle: Any) -> None:
    treadle("ask", "one", "--model", "script:echo")
    asked = terminal("ask", "--continue", "Why?", "--model", "script:echo")
    asked.until("before --continue")
    assert asked.end() == 2
    assert treadle("ask", "Why?", "--continue", "--model", "script:echo").out == "2: Why?\n"
