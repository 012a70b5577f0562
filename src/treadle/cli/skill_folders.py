"""Skill folders: the skills in `.agents/skills`, of the user and of the project that the command runs in.

A project's are only taken once they are trusted (`treadle skills trust`), each as its SKILL.md is then: what a folder
that came from somebody else says would otherwise stand in every prompt. What is trusted stands in the user's data
folder, and never in the project.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from treadle.cli.terminal import note, visible
from treadle.cli.trust import is_trusted
from treadle.tools import AgentSkills, BadTool
from treadle.tools.agent_skills.folder import (
    FILES,
    LARGEST,
    Looked,
    SkillFolder,
    folders_in,
    is_folder,
    looked_at,
    skill_file_in,
)
from treadle.tools.agent_skills.skill import MOST, skills_of

INSIDE = Path(".agents", "skills")

Owner = Literal["project", "user"]


class Found(NamedTuple):
    """A folder with a skill: whose it is, what was found there, and whether it is trusted."""

    owner: Owner
    path: Path
    looked: Looked
    trusted: bool

    @property
    def name(self) -> str:
        """What the skill is called; its folder's name, if it cannot be used."""
        return self.path.name if self.looked.folder is None else self.looked.folder.name


def project_folder() -> Path | None:
    """The folder of the project that the command runs in, if it has skills: this one, or one above in the same
    repository.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (is_folder(folder / INSIDE) or _barred(folder / INSIDE)) and folder != Path.home():
            return folder
        if (folder / ".git").exists():
            return None
        if not any((above / ".git").exists() for above in folder.parents):
            return None
    return None


def user_folder() -> Path:
    """Where the user's own skills stand."""
    return Path.home() / INSIDE


def found(*, untrusted: bool = True) -> list[Found]:
    """All skills in `.agents/skills`, those of the project first.

    Without `untrusted` nothing of what is not trusted is read but its name.

    Raises:
        BadTool: there are some, and PyYAML is not installed.
    """
    project, out = project_folder(), list[Found]()
    if project is not None and (why := _barred(project / INSIDE)):
        out.append(Found("project", project / INSIDE, Looked(None, (why,)), True))
    elif project is not None:
        root = project.resolve()
        for path in folders_in(project / INSIDE):
            trusted = _is_trusted(file_of(path))
            looked = looked_at(path) if trusted or untrusted else Looked(None, ())
            if not path.resolve().is_relative_to(root):
                looked = Looked(None, ("it is a link that leads out of the project",))
            out.append(Found("project", path, looked, trusted))
    if why := _barred(user_folder()):
        return [*out, Found("user", user_folder(), Looked(None, (why,)), True)]
    return out + [Found("user", path, looked_at(path), True) for path in folders_in(user_folder())]


def _barred(path: Path) -> str:
    """Why nobody can look into the folder at `path`, which is not to be taken for an empty one; empty if one can."""
    try:
        os.scandir(path).close()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"it cannot be looked into: {error.strerror or error}"
    return ""


def tell_of_unused(question: str) -> None:
    """Says so where a question that nothing was made of names a skill in one of the folders, as "/NAME" before it."""
    name = question[1:].split(maxsplit=1)[0] if question[:1] == "/" and question[1:2].strip() else ""
    project = project_folder()
    roots = [user_folder(), *([] if project is None else [project / INSIDE])]
    if name and any(path.name == name for root in roots for path in folders_in(root)):
        why = (
            "the offline planner follows none, and others only what treadle skills ls shows as used, or those that "
            "--agent, --tools or --skill names where one is given"
        )
        note(f"the skill {visible(name)} is not followed: {why}")


def file_of(path: Path) -> Path:
    """The SKILL.md of a skill's folder."""
    return skill_file_in(path) or path / FILES[0]


def _is_trusted(file: Path) -> bool:
    """Whether the user has trusted the file as it is; one that is a link, or too large, is not even read for that."""
    try:
        readable = not file.is_symlink() and file.stat().st_size <= LARGEST
    except OSError:
        return False
    return readable and is_trusted(file)


def usable(all_found: list[Found]) -> dict[str, SkillFolder]:
    """The skills that may be used, by name: of two with one name that of the project."""
    out: dict[str, SkillFolder] = {}
    for one in all_found:
        if one.trusted and one.looked.folder is not None:
            out.setdefault(one.looked.folder.name, one.looked.folder)
    return out


def offered(*, told: bool) -> AgentSkills | None:
    """The skills in `.agents/skills` for an agent that is given what there is; None if there are none.

    With `told` what is left aside is said on standard error, and why.
    """
    try:
        all_found = found(untrusted=False)
    except BadTool as error:
        if told:
            note(f"skills: those in {INSIDE} are left aside: {error}")
        return None
    there = list(usable(all_found).values())
    if told:
        for line in _left_aside(all_found):
            note(line)
    if len(there) > MOST:
        note(f"skills: {len(there)} are more than the {MOST} that an agent is given; the first {MOST} by name are")
        there = sorted(there, key=lambda folder: folder.name)[:MOST]
    return skills_of(there) if there else None


def _left_aside(all_found: list[Found]) -> Iterator[str]:
    waiting = [one.name for one in all_found if not one.trusted]
    if waiting:
        names = ", ".join(visible(name)[:64] for name in waiting[:5])
        more = ", …" if len(waiting) > 5 else ""
        yield f"skills: of this project {names}{more} are left aside until you trust them: treadle skills trust"
    for one in all_found:
        if one.trusted and one.looked.folder is None:
            yield f"skills: {visible(str(one.path))} is left aside: {visible('; '.join(one.looked.faults))}"
    taken: dict[str, Found] = {}
    for one in all_found:
        if one.trusted and one.looked.folder is not None:
            first = taken.setdefault(one.name, one)
            if first is not one:
                yield f"skills: {one.name} of the {one.owner} is left aside for that of the {first.owner}"
