"""The format of a SKILL.md: ours and the reference library say the same of what is valid, and nothing harms us."""

from pathlib import Path

import pytest
from needs import need
from tools.skill_folders import CASES, HEAD, put, skill_in

from treadle import BadTool, agent_skills
from treadle.tools.agent_skills.folder import folders_in, looked_at


@pytest.mark.parametrize(("name", "folder", "content", "valid"), CASES, ids=[case[0] for case in CASES])
def test_what_is_valid(tmp_path: Path, name: str, folder: str, content: str | bytes | None, valid: bool) -> None:
    assert (looked_at(put(tmp_path, folder, content)).faults == ()) == valid


@pytest.mark.parametrize(("name", "folder", "content", "valid"), CASES, ids=[case[0] for case in CASES])
def test_the_reference_library_agrees(
    tmp_path: Path, name: str, folder: str, content: str | bytes | None, valid: bool
) -> None:
    need("skills_ref", "TREADLE_REQUIRE_SKILLS_REF")
    from skills_ref import validate

    try:
        theirs = validate(put(tmp_path, folder, content)) == []
    except (UnicodeDecodeError, AttributeError):
        # It stops on what is no text, and on characters that YAML does not allow.
        theirs = False
    assert theirs == valid


def test_the_lower_case_file_is_found_too(tmp_path: Path) -> None:
    place = skill_in(tmp_path, "pdf")
    (place / "SKILL.md").rename(place / "skill.md")
    assert looked_at(place).faults == ()


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    place = put(tmp_path, "my-skill", f"---\n{HEAD}---\n" + "x" * 200_000)
    assert "has 200,0" in looked_at(place).faults[0]
    assert looked_at(place).folder is None


def test_fields_deep_in_each_other_are_refused(tmp_path: Path) -> None:
    place = put(tmp_path, "my-skill", f"---\n{HEAD}metadata:\n  " + "- " * 2_000 + "x\n---\n")
    assert "deep in each other" in looked_at(place).faults[0]


def test_an_unknown_field_or_another_folder_does_not_keep_a_skill_from_being_used(tmp_path: Path) -> None:
    put(tmp_path, "other", f"---\n{HEAD}argument-hint: x\n---\nBody")
    assert list(agent_skills(tmp_path).folders) == ["my-skill"]


def test_a_fault_in_a_path_of_the_application_is_said_at_once(tmp_path: Path) -> None:
    put(tmp_path, "my-skill", "---\nname: my-skill\ndescription: Use when: PDFs\n---\n")
    with pytest.raises(BadTool, match=r"my-skill cannot be used.*in line 3.*put a value that has a colon in quotes"):
        agent_skills(tmp_path)


@pytest.mark.parametrize("path", ["nowhere", "."])
def test_a_folder_without_skills_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(BadTool, match="there is no skill in"):
        agent_skills(tmp_path / path)


def test_two_skills_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTool, match="there are two skills named 'pdf'"):
        agent_skills(skill_in(tmp_path / "a", "pdf"), skill_in(tmp_path / "b", "pdf"))


def test_more_skills_than_a_prompt_can_bear_are_refused(tmp_path: Path) -> None:
    for number in range(101):
        skill_in(tmp_path, f"skill-{number}")
    with pytest.raises(BadTool, match="there are 101 skills, and at most 100"):
        agent_skills(tmp_path)


def test_a_head_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    place = put(
        tmp_path, "my-skill", f"---\n{HEAD}metadata:\n" + "".join(f"  a{n}: b\n" for n in range(2000)) + "---\n"
    )
    assert "at most 10,000 are read" in looked_at(place).faults[0]


def test_of_very_many_folders_the_first_are_looked_at(tmp_path: Path) -> None:
    for number in range(250):
        skill_in(tmp_path, f"skill-{number:03}")
    assert [path.name for path in folders_in(tmp_path)][-1] == "skill-199"
