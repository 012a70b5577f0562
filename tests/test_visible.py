"""What a person decides on hides nothing, wherever it is shown: every character that cannot be seen is an escape."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from treadle import Agent, tool, trace_lines
from treadle.testing import ScriptedModel
from treadle.visible import as_shown, seen, visible


@pytest.mark.parametrize("hidden", ["\u3164", "\u2800", "\ufe0f", "\u202e", "\u200b", "\x1b", "\U000e0101"])
def test_a_waiting_call_and_the_trace_show_what_is_hidden_in_arguments(hidden):
    @tool(needs_approval=True)
    def pay(to: str) -> str:
        """Pay somebody an amount of money."""
        return to

    events = []
    agent = Agent(ScriptedModel([[("pay", {"to": f"Ada{hidden}"})], "Paid."]), tools=[pay])
    (waiting,) = agent.run_sync("Pay Ada.", on_event=events.append).pending
    for shown in (str(waiting), "".join(line for event in events for line in trace_lines(event))):
        assert hidden not in shown
        assert visible(hidden) in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ünï ☕ code 😀", "Ünï ☕ code 😀"),
        ("two\nlines\tand more", "two\\nlines\\tand more"),
        ("a\ud800b", "a\\ud800b"),
        ("\U000e0101", "\\udb40\\udd01"),
        ("\u00a0", "\\u00a0"),
    ],
)
def test_what_can_be_seen_stays_and_all_else_is_written_as_json_does(text, shown):
    assert visible(text) == shown


@given(st.none() | st.text() | st.text("'\"\\u(none) 😀\u200b"))
@example("(none)")
@example("'x '")
@example("\U000e0101'\"")
def test_a_value_that_is_given_as_it_was_shown_is_that_value(value):
    assert as_shown(seen(value)) == value


def test_letters_of_several_characters_look_like_no_letter_of_one():
    """A comparison said that each side has no row for é, and the other has."""
    assert (seen("caf\u00e9"), seen("cafe\u0301")) == ("caf\u00e9", "'cafe\\u0301'")
    assert seen("\u212b") != seen("\u00c5")
    assert as_shown("'cafe\\u0301'") == "cafe\u0301"


def test_what_stands_beside_such_letters_can_be_read():
    """A name in Chinese letters was all escapes for one of them."""
    assert seen("\u6771\u4eac \ufa19\u7530") == "'\u6771\u4eac \\ufa19\u7530'"
    assert seen("Mu\u0308ller f\u00fcr 10 k\u2126") == "'Mu\\u0308ller f\u00fcr 10 k\\u2126'"


@given(st.text("aeA\u0301\u0308\u00e9\u212b\u00c5\u1100\u1161\uac00 '\""))
def test_a_value_of_several_characters_is_taken_as_it_was_shown(value):
    assert as_shown(seen(value)) == value
