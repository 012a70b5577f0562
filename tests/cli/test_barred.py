"""Files and folders that this user may not read: told as that, each with its path, and no fault of treadle's."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a file system with links that lead to themselves")

AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.mark.parametrize("damage", ["folder", "loop", "no folder"])
def test_names_of_keys_that_cannot_be_read_keep_nobody_from_asking(treadle: Any, damage: str) -> None:
    """Each question was an internal error, by a file that it had no need of."""
    data = treadle.folder / "data" / "treadle"
    data.parent.mkdir(parents=True, exist_ok=True)
    match damage:
        case "folder":
            (data / "keys.json").mkdir(parents=True)
        case "loop":
            data.mkdir()
            (data / "keys.json").symlink_to("keys.json")
        case _:
            data.write_text("")
    asked = treadle("ask", "What is 6 * 7?", "--no-journal")
    assert (asked.code, asked.out.splitlines()[0]) == (0, "6 * 7 = 42"), asked.err
    if damage != "no folder":
        assert "the stored keys are left aside: " in asked.err
        listed = treadle("keys", "ls")
        assert listed.code == 2
        assert "keys.json cannot be read" in listed.err


def test_a_file_of_settings_that_leads_to_itself_is_told(treadle: Any) -> None:
    path = Path(treadle("config", "path").out.strip())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(path.name)
    done = treadle("config", "set", "limits.steps", "5")
    assert (done.code, "fault in treadle" in done.err) == (2, False), done.err
    assert "cannot be" in done.err


@pytest.mark.skipif(AS_ROOT, reason="root may read everything")
def test_folders_that_may_not_be_read_are_told_with_their_rights(treadle: Any) -> None:
    skill = treadle.folder / ".agents" / "skills" / "one"
    skill.mkdir(parents=True)
    settings = Path(treadle("config", "path").out.strip()).parent
    settings.mkdir(parents=True, exist_ok=True)
    try:
        skill.chmod(0)
        assert "its rights keep it from being read" in treadle("skills", "ls").out
        assert "its rights keep it from being read" in treadle("doctor").out
        settings.chmod(0)
        asked = treadle("ask", "What is 6 * 7?")
        assert asked.code == 2
        assert "config.toml cannot be used: Permission denied. Look at the rights of it" in asked.err
    finally:
        skill.chmod(0o700)
        settings.chmod(0o700)


def test_a_folder_of_skills_that_cannot_be_looked_into_is_not_told_as_empty(treadle: Any) -> None:
    """It was listed as none; a project's whose rights are wrong kept everybody from asking."""
    (treadle.folder / ".agents").mkdir()
    (treadle.folder / ".agents" / "skills").symlink_to("skills")
    why = "it cannot be looked into: Too many levels of symbolic links"
    assert why in treadle("skills", "ls").out
    assert [(one["used"], one["faults"]) for one in json.loads(treadle("skills", "ls", "--json").out)] == [
        (False, [why])
    ]
    assert why in treadle("doctor").out
    assert "none of those that there are is valid" in treadle("skills", "show", "one").err
    assert treadle("ask", "What is 6 * 7?").code == 0
    asked = treadle("ask", "What is 6 * 7?", "--model", "script:answers")
    assert (asked.code, why in asked.err) == (0, True), asked.err
