"""What is said of skills that were written for somebody else: no error, and not nothing."""

import logging

import pytest

from treadle import Agent, tool
from treadle.testing import ScriptedModel
from treadle.tools.errors import BadTool


@tool(effect="read")
def add_up(items: list[float]) -> float:
    """Adds up the items of an invoice."""
    return sum(items)


def folder(root, name, allowed, before=""):
    place = root / name
    place.mkdir(parents=True)
    head = f"---\nname: {name}\ndescription: Writes invoices well.\n{allowed}---\nDo it.\n"
    (place / "SKILL.md").write_text(f"{before}{head}", encoding="utf-8")
    return root


def warned(caplog, root, **options):
    with caplog.at_level(logging.WARNING, "treadle"):
        Agent(ScriptedModel(["done"]), tools=[add_up], skills=[root], **options)
    return [one.getMessage() for one in caplog.records if "allows the tools" in one.getMessage()]


def test_tools_that_a_skill_allows_and_the_agent_has_not_are_told(tmp_path, caplog):
    """A skill for another program left the agent without tools, and nobody said so."""
    (said,) = warned(caplog, folder(tmp_path, "elsewhere", "allowed-tools: Bash(git:*) Add_Up add_up\n"))
    assert "the skill elsewhere allows the tools Bash(git:*), Add_Up, which the agent has not" in said
    assert said.endswith("of its own it is offered add_up")


@pytest.mark.parametrize("allowed", ["", "allowed-tools: add_up read_skill_file\n", "allowed-tools:\n"])
def test_what_is_right_is_not_told(allowed, tmp_path, caplog):
    assert warned(caplog, folder(tmp_path, "right", allowed)) == []


def test_a_tool_of_a_server_may_come_later(tmp_path, caplog):
    from treadle.mcp import MCPServer

    root = folder(tmp_path, "served", "allowed-tools: shop__price\n")
    with caplog.at_level(logging.WARNING, "treadle"):
        Agent(ScriptedModel(["done"]), tools=[add_up, MCPServer.stdio("x", name="shop")], skills=[root])
    assert not any("allows the tools" in one.getMessage() for one in caplog.records)


def test_a_mark_that_cannot_be_seen_is_named(tmp_path):
    with pytest.raises(BadTool, match="an invisible mark stands before it: save it as UTF-8 without BOM"):
        Agent(ScriptedModel(["done"]), skills=[folder(tmp_path, "marked", "", before="\ufeff")])
