"""The tools and skills that a command line names: built-in skills, the data analyst, and the user's own."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from treadle.cli import skill_folders
from treadle.cli.catalogs import missing_package, named_sources, open_catalog
from treadle.cli.loading import load, search_here
from treadle.cli.settings import setting
from treadle.cli.skills import ANALYST, BASICS, MEMORY, NONE, skill_names
from treadle.models.names import OFFLINE
from treadle.tools import AgentSkills, Skill, Tool, agent_skills, did_you_mean, load_tools, nearest
from treadle.tools.agent_skills.folder import SkillFolder
from treadle.tools.agent_skills.skill import skills_of


@dataclass(frozen=True, slots=True)
class Toolset:
    """Skills, and tools that belong to none."""

    skills: tuple[Skill, ...]
    tools: tuple[Tool, ...]

    @property
    def all_tools(self) -> list[tuple[Tool, str]]:
        """Every tool, with the name of its skill ("" if it has none)."""
        owned = [(tool, skill.name) for skill in self.skills for tool in skill.tools]
        return [*owned, *((tool, "") for tool in self.tools)]


def gather(skills: Iterable[str], tools: Iterable[str], sources: str | None, *, model: str | None = None) -> Toolset:
    """The tools that the options name.

    Where no skills are named, a question has those that are set. With neither skills nor tools they are those that are
    given unasked: of all commands every built-in skill; to the offline planner, which can do nothing without tools, the
    basics alone, as a sample must not answer for somebody's own stock; to a model none of these, for what it is shown
    costs money and may be called, but the skills in `.agents/skills`, which somebody put there for models. The analyst
    comes along wherever sources are named.

    Args:
        skills: the values of --skill.
        tools: the values of --tools.
        sources: the value of --sources; given, it brings the analyst along, as sources that are set do.
        model: the name of the model that is asked with them; None where they are not for a question.

    Raises:
        click.BadParameter: a skill is not known, a tool cannot be loaded, or one cannot be used here.
    """
    from treadle.tools.builtin import SKILLS

    own = [tool for target in tools for tool in _loaded(target)]
    named = list(dict.fromkeys(skills))
    if not named and model is not None and (found := setting("skills")) is not None:
        named = list(found.value)
    names = [name for name in named if name != NONE]
    folders: AgentSkills | None = None
    if not named and not own:
        folders = None if model == OFFLINE else skill_folders.offered(told=model is not None)
        wanted = model is None or bool(named_sources(sources))
        names = [
            *(SKILLS if model is None else (BASICS,) if model == OFFLINE else ()),
            *([ANALYST] if wanted and missing_package() is None else []),
        ]
    if sources and ANALYST not in names:
        names.append(ANALYST)
    chosen: list[Skill] = [] if folders is None else [folders]
    in_folders: dict[str, SkillFolder] = {}
    for name in names:
        if name == ANALYST:
            chosen.append(_analyst(sources, told=model is not None))
        elif name == MEMORY:
            chosen.append(_memory())
        elif name in SKILLS:
            chosen.append(SKILLS[name])
        else:
            in_folders |= _in_folder(name)
    if in_folders:
        chosen.append(skills_of(in_folders.values()))
    return Toolset(tuple(chosen), tuple(own))


def _in_folder(name: str) -> dict[str, SkillFolder]:
    """The skill in `.agents/skills` of that name, or those in the folder of that path."""
    there = skill_folders.usable(skill_folders.found())
    if name in there:
        return {name: there[name]}
    if Path(name).is_dir():
        return dict(agent_skills(name).folders)
    known = skill_names()
    raise click.BadParameter(
        f"there is no skill {name!r}{did_you_mean(nearest(name, known))} (there are: {', '.join(known)})",
        param_hint="'--skill'",
    )


def _analyst(sources: str | None, *, told: bool) -> Skill:
    catalog = open_catalog(sources, told=told)
    from treadle.analyst import analyst_skill

    return analyst_skill(catalog)


def _memory() -> Skill:
    from treadle.cli.commands.memory import OWNER, memory_path
    from treadle.tools.builtin import memory_skill

    return memory_skill(memory_path(), owner=OWNER)


def _loaded(target: str) -> list[Tool]:
    from treadle.agent import Agent

    described, colon, functions = target.partition(".json:")
    if colon:
        search_here()
        return load_tools(f"{described}.json", functions)
    module, name, value = load(target, "--tools")
    if not name:
        found = list(dict.fromkeys(each for each in vars(module).values() if isinstance(each, Tool)))
        if not found:
            raise click.BadParameter(
                f"{target} has no tools; decorate its functions with @treadle.tool", param_hint="'--tools'"
            )
        return found
    if isinstance(value, Agent):
        return [value.as_tool()]
    if isinstance(value, Tool):
        return [value]
    if isinstance(value, list | tuple) and value and all(isinstance(each, Tool) for each in value):
        return list(value)
    raise click.BadParameter(
        f"{target} is {value!r:.60}, not a tool or a list of tools; decorate the function with @treadle.tool",
        param_hint="'--tools'",
    )
