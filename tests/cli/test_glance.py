"""The step that went wrong is found at a glance: in `show`, in `ask --trace`, and by what the model was given."""

from typing import Any

SCRIPT = '''
from treadle import Agent, Limits, ToolError, tool
from treadle.models.errors import AuthenticationFailed
from treadle.testing import ScriptedModel

@tool(effect="read")
def look(what: str) -> str:
    """Looks at something."""
    if what == "b":
        raise ToolError("there is no b")
    return f"seen {what}"

turns = [("First.", [("look", {"what": "a"})]), [("look", {"what": "b"}), ("look", {"what": "c"})]]
well = Agent(ScriptedModel([turns[0], "All is well."]), tools=[look])
ill = Agent(ScriptedModel([*turns, AuthenticationFailed("the key is not valid")]), tools=[look])
'''


def test_show_says_first_at_which_steps_something_went_wrong(treadle: Any) -> None:
    (treadle.folder / "agents.py").write_text(SCRIPT, encoding="utf-8")
    assert treadle("ask", "Look!", "--agent", "agents:ill").code == 5
    shown = treadle("show", "last").out
    before, _, story = shown.partition("step 0\n")
    wrong = before.partition("went wrong:\n")[2].splitlines()
    assert wrong[0].startswith("  step 1: look: ")
    assert "there is no b" in wrong[0]
    assert wrong[1].startswith("  step 2: the model call: ")
    assert "the key is not valid" in wrong[1]
    assert wrong[2].startswith("  at the end: model_error")
    errors = [line for line in story.splitlines() if line.startswith("  error  ")]
    assert len(errors) == 2
    assert "there is no b" in errors[0]


def test_nothing_is_said_to_have_gone_wrong_where_nothing_did(treadle: Any) -> None:
    (treadle.folder / "agents.py").write_text(SCRIPT, encoding="utf-8")
    assert treadle("ask", "Look!", "--agent", "agents:well").code == 0
    shown = treadle("show", "last").out
    assert "went wrong" not in shown
    assert "  error" not in shown


def test_the_trace_tells_each_message_once_by_number_role_and_beginning(treadle: Any) -> None:
    (treadle.folder / "agents.py").write_text(SCRIPT, encoding="utf-8")
    told = treadle("ask", "Look!", "--agent", "agents:ill", "--trace").err
    lines = [line.strip() for line in told.splitlines() if line.strip().startswith("[")]
    assert lines[:3] == ["[0] user: Look!", '[1] assistant: First. asks for look(what="a")', "[2] tool: seen a"]
    assert lines[3] == '[3] assistant: asks for look(what="b"), look(what="c")'
    assert [line[:8] for line in lines[4:]] == ["[4] tool", "[5] tool"]


def test_a_long_conversation_is_told_by_its_ends(treadle: Any) -> None:
    (treadle.folder / "agents.py").write_text(SCRIPT, encoding="utf-8")
    lines = "\n".join(f"question {at}" for at in range(9))
    told = treadle("chat", "--model", "script:echo", "--trace", input=lines).err
    last = told.rpartition("step 0\n")[2].splitlines()
    previews = [line.strip().partition(":")[0] for line in last if line.startswith("            ")]
    assert previews[0].startswith("[0] ")
    assert previews[1].endswith("messages more")
    assert previews[6].endswith("] user")
