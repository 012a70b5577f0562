"""`/NAME` of a skill that a question has not got; in the real command, with a home of its own."""

from typing import Any

from cli.test_skills_command import project
from tools.skill_folders import skill_in

NOT_FOLLOWED = "the skill pdf is not followed"


def test_a_skill_that_is_named_and_not_followed_is_said(treadle: Any) -> None:
    """The question was asked with "/pdf" before it, as if no such skill was there."""
    skill_in(project(treadle) / ".agents" / "skills", "pdf")
    assert NOT_FOLLOWED in treadle("ask", "/pdf Fill it.", "--model", "offline").err
    assert NOT_FOLLOWED in treadle("ask", "/pdf Fill it.", "--model", "skilled:model", "--skill", "none").err
    skill_in(treadle.folder / ".agents" / "skills", "evil")
    assert "the skill evil is not followed" in treadle("ask", "/evil Go.", "--model", "skilled:model").err


def test_why_a_skill_that_is_used_otherwise_is_not_followed_is_true(treadle: Any) -> None:
    """Of an agent of one's own it was said that it follows what `skills ls` shows as used, which it did."""
    skill_in(project(treadle) / ".agents" / "skills", "pdf")
    code = (
        "from treadle import Agent",
        "from treadle.testing import ScriptedModel",
        "agent = Agent(ScriptedModel(['Done.']))",
    )
    (treadle.folder / "own_agent.py").write_text("\n".join(code))
    asked = treadle("ask", "/pdf Fill it.", "--agent", "own_agent:agent").err
    assert NOT_FOLLOWED in asked
    assert "or those that --agent, --tools or --skill names where one is given" in " ".join(asked.split())


def test_what_is_followed_and_what_is_no_skill_are_not(treadle: Any) -> None:
    skill_in(project(treadle) / ".agents" / "skills", "pdf")
    for question in ("/pdf Fill it.", "/etc/hosts is what?", "/", "/ pdf"):
        assert "is not followed" not in treadle("ask", question, "--model", "skilled:model").err
