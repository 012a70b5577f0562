"""Skills and their registry."""

from typing import Any

import pytest

from treadle.tools import BadTool, Skill, SkillRegistry, Tool, tool


def named(name: str) -> Tool:
    @tool(name=name)
    def act(a: int) -> int:
        return a

    return act


ONE, TWO, LOOSE = named("one"), named("two"), named("loose")
FIRST, SECOND = Skill("first", "Do the first.", [ONE], "the first"), Skill("second", "Do the second.\n", (TWO,))


def test_the_registry_indexes_tools_and_skills() -> None:
    registry = SkillRegistry([FIRST, SECOND], [LOOSE])
    assert registry.tools == (ONE, TWO, LOOSE)
    assert registry.skills == (FIRST, SECOND)
    assert registry.skill_of("two") is SECOND
    assert registry.skill_of("loose") is None
    assert registry.skill_of("nowhere") is None
    assert registry.tool("one") is ONE
    assert registry.tool("nowhere") is None
    assert registry.skill("first") is FIRST
    with pytest.raises(BadTool, match="did you mean 'second'"):
        registry.skill("secnd")


def test_instructions_are_combined_in_order() -> None:
    registry = SkillRegistry([SECOND, Skill("silent", " "), FIRST])
    assert registry.instructions("Be kind.\n") == "Be kind.\n\n## second\n\nDo the second.\n\n## first\n\nDo the first."
    assert registry.instructions() == "## second\n\nDo the second.\n\n## first\n\nDo the first."
    assert SkillRegistry().instructions("") == ""


@pytest.mark.parametrize(
    ("skills", "tools", "words"),
    [
        (
            [FIRST, Skill("first", "", [TWO])],
            [],
            r"two skills named 'first': one with the tools one, one with the tools two",
        ),
        (
            [FIRST, Skill("other", "", [named("one")])],
            [],
            r"two tools named 'one': one in the skill 'first' \(.*test_skills",
        ),
        ([FIRST], [named("one")], r"in the skill 'first' .* in tools="),
        ([Skill("twice", "", [ONE, named("one")])], [], r"in the skill 'twice' .* in the skill 'twice'"),
        (
            [],
            [LOOSE, named("loose")],
            r"in tools= .* in tools= .*@tool\(name=…\), as_tool\(name=…\) or handoff\(…, name=…\)",
        ),
        (["first"], [], "is not a skill"),
        ([], [print], "decorate the function with @tool"),
    ],
)
def test_what_is_refused(skills: list[Any], tools: list[Any], words: str) -> None:
    with pytest.raises(BadTool, match=words):
        SkillRegistry(skills, tools)


def test_a_refused_skill_leaves_the_registry_as_it_was() -> None:
    registry = SkillRegistry([FIRST])
    with pytest.raises(BadTool):
        registry.register(Skill("other", "", [TWO, named("one")]))
    assert registry.tools == (ONE,)
    assert registry.skills == (FIRST,)


@pytest.mark.parametrize(("name", "tools"), [("", ()), (" ", ()), ("fine", [print])])
def test_bad_skills(name: str, tools: Any) -> None:
    with pytest.raises(BadTool):
        Skill(name, "", tools)
