"""`treadle skills`, the trust in a project's skills, and `/name`; in the real command, with a home of its own."""

import json
from pathlib import Path
from typing import Any

from tools.skill_folders import skill_in

SKILLED = '''
from treadle import Agent, tool
from treadle.testing import ScriptedModel

def told(request):
    system = request.messages[0].text if request.messages[0].role == "system" else ""
    names = [name for name in ("pdf", "paper", "evil") if f"<name>{name}</name>" in system]
    return f"knows {names}; was told: {request.messages[-1].text}"

model = ScriptedModel(told)

def waits(request):
    results = [m for m in request.messages if m.role == "tool"]
    if not results:
        return [("activate_skill", {"name": "pdf"})]
    return [("pay", {"amount": 1})] if len(results) == 1 else ",".join(t.name for t in request.tools)

waiting = ScriptedModel(waits)

@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pays an amount of money."""
    return f"paid {amount}"

@tool(effect="read")
def look(what: str) -> str:
    """Looks at something."""
    return "seen"
'''


def project(treadle: Any) -> Path:
    """A project in a folder of its own, in which the command then runs, with the user's home beside it."""
    home, treadle.folder = treadle.folder, treadle.folder / "project"
    treadle.folder.mkdir()
    treadle.environment["HOME"] = treadle.environment["USERPROFILE"] = str(home)
    (treadle.folder / "skilled.py").write_text(SKILLED)
    return home


def test_the_skills_of_a_project_are_used_once_it_is_trusted(treadle: Any) -> None:
    home = project(treadle)
    skill_in(home / ".agents" / "skills", "pdf")
    skill_in(treadle.folder / ".agents" / "skills", "evil")
    before = treadle("ask", "Go.", "--model", "skilled:model")
    assert before.out.startswith("knows ['pdf']")
    assert "of this project evil are left aside until you trust them: treadle skills trust" in before.err
    assert treadle("skills", "trust").code == 0
    assert treadle("ask", "Go.", "--model", "skilled:model").out.startswith("knows ['pdf', 'evil']")
    assert treadle("skills", "trust", "--revoke").code == 0
    assert treadle("ask", "Go.", "--model", "skilled:model").out.startswith("knows ['pdf']")


def test_a_project_cannot_trust_itself(treadle: Any) -> None:
    project(treadle)
    skill_in(treadle.folder / ".agents" / "skills", "evil")
    (treadle.folder / "trusted.json").write_text(json.dumps({str(treadle.folder): "x"}))
    (treadle.folder / ".env").write_text(f"XDG_DATA_HOME={treadle.folder}\nTREADLE_TRUST=1\n")
    assert treadle("ask", "Go.", "--model", "skilled:model").out.startswith("knows []")


def test_what_was_trusted_before_is_not_lost_where_it_cannot_be_read(treadle: Any) -> None:
    home = project(treadle)
    skill_in(treadle.folder / ".agents" / "skills", "pdf")
    assert treadle("skills", "trust").code == 0
    (kept,) = home.rglob("trusted.json")
    for text in ("{" + kept.read_text(), "[]"):
        kept.write_text(text)
        assert treadle("ask", "Go.", "--model", "skilled:model").out.startswith("knows []")
        for more in ([], ["--revoke"]):
            done = treadle("skills", "trust", *more)
            assert done.code == 2
            assert str(kept) in done.err
            assert kept.read_text() == text
    kept.unlink()
    assert treadle("skills", "trust").code == 0


def test_a_skill_that_changed_or_came_later_is_to_be_trusted_again(treadle: Any) -> None:
    project(treadle)
    place = skill_in(treadle.folder / ".agents" / "skills", "pdf")
    assert treadle("skills", "trust").out == "pdf: trusted as it is now\n"
    skill_in(treadle.folder / ".agents" / "skills", "evil")
    assert treadle("ask", "Go.", "--model", "skilled:model").out.startswith("knows ['pdf']")
    (place / "SKILL.md").write_text("---\nname: pdf\ndescription: Something else.\n---\n")
    assert treadle("ask", "Go.", "--model", "skilled:model").out.startswith("knows []")


def test_nothing_of_a_skill_that_is_not_trusted_is_read_for_a_question(treadle: Any) -> None:
    project(treadle)
    place = skill_in(treadle.folder / ".agents" / "skills", "evil")
    (place / "SKILL.md").unlink()
    (place / "SKILL.md").symlink_to("/proc/kcore")
    bad = skill_in(treadle.folder / ".agents" / "skills", "bad")
    (bad / "SKILL.md").write_text("---\nname: [\n---\n")
    said = treadle("ask", "Go.", "--model", "skilled:model")
    assert said.out.startswith("knows []")
    assert "bad" in said.err
    assert "not valid" not in said.err
    assert treadle("skills", "ls").code == 0


def test_a_link_out_of_a_trusted_project_is_no_skill_of_it(treadle: Any) -> None:
    home = project(treadle)
    skill_in(treadle.folder / ".agents" / "skills", "pdf")
    (treadle.folder / ".agents" / "skills" / "evil").symlink_to(skill_in(home / "elsewhere", "evil"))
    treadle("skills", "trust")
    assert treadle("ask", "Go.", "--model", "skilled:model").out.startswith("knows ['pdf']")
    assert "leads out of the project" in treadle("skills", "ls").out


def test_skills_of_a_folder_above_count_in_the_same_repository_alone(treadle: Any) -> None:
    project(treadle)
    skill_in(treadle.folder / ".agents" / "skills", "pdf")
    root, treadle.folder = treadle.folder, treadle.folder / "src"
    treadle.folder.mkdir()
    assert json.loads(treadle("skills", "ls", "--json").out) == []
    (root / ".git").mkdir()
    assert [one["name"] for one in json.loads(treadle("skills", "ls", "--json").out)] == ["pdf"]


def test_the_list_says_what_is_used_and_what_is_wrong(treadle: Any) -> None:
    home = project(treadle)
    skill_in(home / ".agents" / "skills", "pdf")
    skill_in(treadle.folder / ".agents" / "skills", "pdf")
    bad = home / ".agents" / "skills" / "bad"
    bad.mkdir()
    (bad / "SKILL.md").write_text("---\nname: bad\n---\n")
    treadle("skills", "trust")
    found = {(one["name"], one["of"]): one for one in json.loads(treadle("skills", "ls", "--json").out)}
    assert found["pdf", "project"]["used"]
    assert not found["pdf", "user"]["used"]
    assert found["bad", "user"]["faults"] == ["description is missing"]
    table = treadle("skills", "ls").out
    assert "no: the project has one of that name" in table
    assert "no: not valid" in table
    said = treadle("ask", "Go.", "--model", "skilled:model").err
    assert "bad is left aside: description is missing" in said
    assert "pdf of the user is left aside for that of the project" in said


def test_show_says_what_a_model_is_told(treadle: Any) -> None:
    home = project(treadle)
    head = "license: MIT\ncompatibility: needs qpdf\nallowed-tools: fill\n"
    skill_in(home / ".agents" / "skills", "pdf", head, "Do \x1b[31mit.", references__a="x")
    out = treadle("skills", "show", "pdf").out
    assert "pdf: About pdf." in out
    for line in ("needs: needs qpdf", "licence: MIT", "tools that it allows: fill", "file: references/a", "Do it."):
        assert line in out
    wrong = treadle("skills", "show", "pdff")
    assert (wrong.code, "did you mean 'pdf'?" in wrong.err) == (2, True)


def test_validate_has_the_exit_code_of_its_finding(treadle: Any) -> None:
    good = skill_in(treadle.folder, "pdf")
    (treadle.folder / "bad").mkdir()
    found = treadle("skills", "validate", "pdf", str(good / "SKILL.md"), "bad", "nowhere")
    assert found.code == 2
    assert found.out.splitlines() == [
        "pdf: valid", f"{good / 'SKILL.md'}: valid", "bad: not valid", "  there is no SKILL.md in it",
        "nowhere: not valid", "  there is no folder nowhere",
    ]  # fmt: skip
    assert treadle("skills", "validate", "pdf").code == 0


def test_a_skill_that_is_begun_is_valid(treadle: Any) -> None:
    project(treadle)
    assert treadle("skills", "new", "my-skill").code == 0
    assert treadle("skills", "validate", ".agents/skills/my-skill").code == 0
    assert "is there already" in treadle("skills", "new", "my-skill").err
    for name in ("My Skill", "../x", "a/b", ".", "-x"):
        assert treadle("skills", "new", "--", name).code == 2
    assert [path.name for path in (treadle.folder / ".agents" / "skills").iterdir()] == ["my-skill"]
    assert treadle("skills", "new", "own", "--user").code == 0


def test_a_skill_that_is_begun_in_the_home_folder_is_the_users_own_and_needs_no_trust(treadle: Any) -> None:
    """Whoever is there was told to say that the project's skills may be used, and there is no project."""
    begun = treadle("skills", "new", "own")
    assert (begun.code, begun.err) == (0, "")
    (listed,) = json.loads(treadle("skills", "ls", "--json").out)
    assert (listed["of"], listed["used"]) == ("user", True)


def test_a_slash_and_a_name_activate_a_skill(treadle: Any) -> None:
    home = project(treadle)
    skill_in(home / ".agents" / "skills", "pdf", body="The instructions.")
    said = treadle("ask", "/pdf", "Fill", "it.", "--model", "skilled:model").out
    assert "was told: Fill it." in said
    assert "The instructions." in said
    chat = treadle("chat", "--model", "skilled:model", input="/pdf Fill it.\n/nothing x\n/help\n/exit\n")
    assert "The instructions." in chat.out
    assert "there is no /nothing" in chat.err
    assert "/NAME" in chat.out


def test_skills_can_be_named_or_left_out(treadle: Any) -> None:
    home = project(treadle)
    skill_in(home / ".agents" / "skills", "pdf")
    skill_in(treadle.folder / "mine", "paper")
    ask = ("ask", "Go.", "--model", "skilled:model")
    assert treadle(*ask, "--skill", "none").out.startswith("knows []")
    assert treadle(*ask, "--skill", "pdf", "--skill", "mine").out.startswith("knows ['pdf', 'paper']")
    assert treadle(*ask, "--skill", "mine/paper").out.startswith("knows ['paper']")
    wrong = treadle(*ask, "--skill", "pdff")
    assert (wrong.code, "did you mean 'pdf'?" in wrong.err) == (2, True)


def test_a_run_with_a_skill_goes_on_with_what_it_allows(treadle: Any) -> None:
    home = project(treadle)
    skill_in(home / ".agents" / "skills", "pdf", "allowed-tools: pay\n")
    options = ("--model", "skilled:waiting", "--tools", "skilled.py", "--skill", "pdf")
    waiting = treadle("ask", "Go.", *options)
    assert waiting.code == 4, waiting.err
    done = treadle("approve", "last", *options)
    assert done.out.strip().endswith("activate_skill,read_skill_file,pay"), done


def test_the_doctor_looks_at_skills(treadle: Any) -> None:
    home = project(treadle)
    assert "none in" in next(line for line in treadle("doctor").out.splitlines() if line.startswith("skills"))
    skill_in(home / ".agents" / "skills", "pdf")
    skill_in(treadle.folder / ".agents" / "skills", "evil")
    (home / ".agents" / "skills" / "bad").mkdir()
    (home / ".agents" / "skills" / "bad" / "SKILL.md").write_text("x")
    rows = [
        (one["state"], one["found"]) for one in json.loads(treadle("doctor", "--json").out) if one["what"] == "skills"
    ]
    assert rows[0] == ("ok", "used: pdf")
    assert rows[1] == ("no", "not trusted: evil of this project; treadle skills trust")
    assert rows[2][0] == "no"
    assert "bad is not valid: SKILL.md: it does not begin with" in rows[2][1]
