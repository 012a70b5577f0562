"""`treadle skills`: the skills in folders, in the format of agentskills.io."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from treadle.cli import completion
from treadle.cli.exits import ExitCode
from treadle.cli.skill_folders import INSIDE, Found, file_of, found, project_folder, usable, user_folder
from treadle.cli.table import print_table
from treadle.cli.terminal import clean, note, print_json, shorten, visible
from treadle.cli.trust import distrust, trust
from treadle.tools import BadTool, did_you_mean, nearest
from treadle.tools.agent_skills.files import listed
from treadle.tools.agent_skills.folder import SkillFolder, is_folder, looked_at, name_faults

TEMPLATE = """\
---
name: {name}
description: Says what this is for, and when to use it. A model chooses by this line alone.
---

# {name}

What to do, step by step. Long material belongs in files of its own, such as references/details.md, which are read when
these lines name them.
"""


@click.group(short_help="List, show, check and begin skills that stand in folders.")
def skills() -> None:
    """The skills in .agents/skills, of the user and of this project, in the format of agentskills.io."""


@contextmanager
def _told() -> Iterator[None]:
    """What is wrong with a folder is the caller's to put right."""
    try:
        yield
    except BadTool as error:
        raise click.UsageError(clean(str(error))) from error


@skills.command("ls", short_help="List the skills, and what is wrong with them.")
@click.option("--json", "as_list", is_flag=True, help="Print a JSON list.")
def list_skills(as_list: bool) -> int:
    """List the skills in .agents/skills, of this project and of the user, and what is wrong with them."""
    with _told():
        there = found()
    given = usable(there).values()
    if as_list:
        print_json([_as_json(one, one.looked.folder in given) for one in there])
    elif not there:
        note(f"there are no skills in {INSIDE} of this project or in {user_folder()}; treadle skills new NAME")
    else:
        rows = [
            (visible(one.name), one.owner, _standing(one, one.looked.folder in given), _about(one)) for one in there
        ]
        print_table(["skill", "of", "used", "description"], rows)
    return ExitCode.FINISHED


def _as_json(one: Found, used: bool) -> dict[str, object]:
    folder = one.looked.folder
    return {
        "name": one.name,
        "of": one.owner,
        "path": str(one.path),
        "used": used,
        "trusted": one.trusted,
        "description": "" if folder is None else folder.description,
        "faults": list(one.looked.faults),
    }


def _standing(one: Found, used: bool) -> str:
    if one.looked.folder is None:
        return "no: not valid"
    if not one.trusted:
        return "no: not trusted"
    return "yes" if used else "no: the project has one of that name"


def _about(one: Found) -> str:
    folder = one.looked.folder
    return shorten("; ".join(one.looked.faults) if folder is None else folder.description, 300)


@skills.command(short_help="Show a skill: what a model is told of it.")
@click.argument("name", shell_complete=completion.skill_folders)
def show(name: str) -> int:
    """Show the skill NAME, of .agents/skills or in a folder of that path: its fields, instructions and files."""
    with _told():
        folder = _named(name)
    click.echo(clean(f"{folder.name}: {folder.description}"))
    click.echo(clean(f"in {folder.path}"))
    if folder.compatibility:
        click.echo(clean(f"needs: {folder.compatibility}"))
    if folder.license:
        click.echo(clean(f"licence: {folder.license}"))
    if folder.allowed_tools is not None:
        click.echo(clean(f"tools that it allows: {', '.join(folder.allowed_tools) or 'none'}"))
    for path in listed(folder.path):
        click.echo(clean(f"file: {path}"))
    click.echo(clean(f"\n{folder.body}"))
    return ExitCode.FINISHED


def _named(name: str) -> SkillFolder:
    there = found()
    folder = next((one.looked.folder for one in there if one.name == name and one.looked.folder is not None), None)
    if folder is None and name and is_folder(Path(name)):
        looked = looked_at(Path(name))
        if looked.folder is None:
            raise click.UsageError(clean(f"{name} cannot be used: {'; '.join(looked.faults)}"))
        return looked.folder
    if folder is None:
        known = [one.name for one in there if one.looked.folder is not None]
        none = "none of those that there are is valid; treadle skills ls"
        none = none if there else "there are none; treadle skills new NAME"
        listing = f"there are: {', '.join(known)}" if known else none
        raise click.UsageError(clean(f"there is no skill {name!r}{did_you_mean(nearest(name, known))} ({listing})"))
    return folder


@skills.command(short_help="Check folders against the format; exit code 2 if one does not follow it.")
@click.argument("folder", nargs=-1, required=True, type=click.Path())
def validate(folder: tuple[str, ...]) -> int:
    """Check each FOLDER against the format of agentskills.io. The exit code is 2 if one does not follow it, else 0."""
    failed = False
    for given in folder:
        path = Path(given)
        if path.name.lower() == "skill.md" and is_folder(path.parent) and not is_folder(path):
            path = path.parent
        with _told():
            faults = looked_at(path).faults
        failed = failed or bool(faults)
        click.echo(clean(f"{given}: {'not valid' if faults else 'valid'}"))
        for fault in faults:
            click.echo(clean(f"  {visible(fault)}"))
    return ExitCode.USAGE if failed else ExitCode.FINISHED


@skills.command(short_help="Begin a skill: a folder with a SKILL.md to be filled in.")
@click.argument("name")
@click.option("--user", is_flag=True, help="Among the user's skills, in place of this project's.")
def new(name: str, user: bool) -> int:
    """Begin the skill NAME in .agents/skills of this folder: a SKILL.md to be filled in."""
    if faults := name_faults(name):
        raise click.UsageError(visible("; ".join(faults)))
    place = (user_folder() if user else Path.cwd() / INSIDE) / name
    file = place / "SKILL.md"
    try:
        place.mkdir(parents=True)
        file.write_text(TEMPLATE.format(name=name), encoding="utf-8")
    except FileExistsError as error:
        raise click.UsageError(clean(f"{place} is there already")) from error
    except OSError as error:
        raise click.UsageError(clean(f"{place} cannot be made: {error.strerror or error}")) from error
    click.echo(clean(f"{file if user else INSIDE / name / 'SKILL.md'} is there to be filled in"))
    if place.parent != user_folder():
        note("this project's skills are used once you have said so: treadle skills trust")
    return ExitCode.FINISHED


@skills.command("trust", short_help="Say that this project's skills may be used, as they are now.")
@click.option("--revoke", is_flag=True, help="Say that they may not any more.")
def trust_project(revoke: bool) -> int:
    """Say that the skills of this project may be used, as they are now; one that changes is asked about again.

    They stand in prompts, and what they say a model may follow: look at them before (treadle skills show NAME).
    """
    if project_folder() is None:
        raise click.UsageError(f"there is no {INSIDE} in this folder, nor above it in the same repository")
    with _told():
        there = [one for one in found() if one.owner == "project" and one.looked.folder is not None]
    for one in there:
        (distrust if revoke else trust)(file_of(one.path))
        click.echo(clean(f"{one.name}: {'not trusted any more' if revoke else 'trusted as it is now'}"))
    if not there:
        note("no skill of this project is valid: treadle skills ls")
    return ExitCode.FINISHED
