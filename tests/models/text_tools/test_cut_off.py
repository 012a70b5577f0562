"""A call that was cut off anywhere is never carried out with what had come of it, whatever the finish says."""

import pytest

from treadle import Agent, tool
from treadle.models import TextTools
from treadle.testing import ScriptedModel

SAY = '{"to": "Anna", "text": "hello there"}'
PARAMETERS = '<parameter name="to">Anna</parameter><parameter name="text">hello there</parameter>'
CALLS = [
    ("json", f'{{"name": "say", "arguments": {SAY}}}'),
    ("json", f'```json\n{{"tool": "say", "args": {SAY}}}\n```'),
    ("tags", f'<tool_call>\n{{"name": "say", "arguments": {SAY}}}\n</tool_call>'),
    ("tags", f'<tool name="say">{SAY}</tool>'),
    ("tags", f"<function=say>{SAY}</function>"),
    ("tags", f'<function_calls><invoke name="say">{PARAMETERS}</invoke></function_calls>'),
    (
        "tags",
        "<tool_call>\n<function=say>\n<parameter=to>\nAnna\n</parameter>\n<parameter=text>\nhello there\n</parameter>\n"
        "</function>\n</tool_call>",
    ),
    ("tags", '<tool name="note">hello there</tool>'),
    ("react", f"Thought: I say it.\nAction: say\nAction Input: {SAY}"),
    ("react", f'Action: {{"name": "say", "arguments": {SAY}}}'),
    ("react", 'Action: say(to="Anna", text="hello there")'),
    ("react", "Action: note[hello there]"),
]


def carried_out(form, text):
    ran = []

    @tool
    def say(to: str = "nobody", text: str = "") -> str:
        """Says something."""
        ran.append((to, text))
        return "said"

    @tool
    def note(text: str = "") -> str:
        """Notes something."""
        ran.append(("Anna", text))
        return "noted"

    model = ScriptedModel([text, "done."])
    Agent(TextTools(model, form), tools=[say, note]).run_sync("go")
    return ran


@pytest.mark.parametrize(("form", "text"), CALLS)
def test_a_call_that_was_cut_off_is_not_carried_out_with_what_had_come(form, text):
    assert carried_out(form, text) == [("Anna", "hello there")]
    for length in range(1, len(text)):
        assert carried_out(form, text[:length]) in ([], [("Anna", "hello there")]), text[:length]


@pytest.mark.parametrize(
    ("form", "text", "what"),
    [
        ("tags", "<function=note>\n<parameter=text>\nhel", "the element is not closed"),
        ("tags", '<invoke name="note"><', "the element is not closed"),
        ("react", "Action: note", "the Action note has no Action Input"),
        ("react", "Action: note\nAction Input:", "the Action note has no Action Input"),
    ],
)
def test_the_model_is_told_that_its_call_was_cut_off(form, text, what):
    model = ScriptedModel([text, "done."])

    @tool
    def note(text: str = "") -> str:
        """Notes something."""
        raise AssertionError("it was carried out")

    Agent(TextTools(model, form), tools=[note]).run_sync("go")
    assert what in str(model.requests[1].messages)


def test_an_action_of_a_tool_that_takes_nothing_needs_no_input():
    @tool
    def clock() -> str:
        """Tells the time."""
        return "noon"

    model = ScriptedModel(["Action: clock", "Final Answer: noon"])
    assert Agent(TextTools(model, "react"), tools=[clock]).run_sync("go").text == "noon"
    assert "noon" in str(model.requests[1].messages)
