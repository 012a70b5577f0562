"""Skills: named bundles of instructions and tools, and the registry that says which tool belongs to which skill."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from treadle.kernel.messages import Message, UserMessage
from treadle.tools.agent_skills.active import active_in, has_other_characters, narrowed
from treadle.tools.errors import BadTool, did_you_mean, nearest
from treadle.tools.tool import Tool


class Skill(Struct, frozen=True, eq=False):
    """A named bundle of instructions and tools.

    Attributes:
        name: what it is called; the title of its section in the system prompt.
        instructions: what the model is told of how to go about it; may be empty.
        tools: the tools that belong to it.
        description: one line for people, in lists of skills.
    """

    name: str
    instructions: str
    tools: Sequence[Tool] = ()
    description: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise BadTool(f"a skill needs a name, not {self.name!r}")
        if not isinstance(self.instructions, str):
            raise BadTool(f"the instructions of the skill {self.name!r} are a text, not {self.instructions!r:.100}")
        _require_list(self.tools, f"the tools of the skill {self.name!r} are")
        force_setattr(self, "tools", tuple(self.tools))
        for each in self.tools:
            _require_tool(each, f"the skill {self.name!r}")

    def tool(self, name: str) -> Tool | None:
        """Its tool of that name; None if it has none."""
        return next((each for each in self.tools if each.name == name), None)

    def said(self, text: str, messages: Iterable[Message] = ()) -> UserMessage | None:
        """What a user means who writes `/name` of something that it knows; None otherwise. See `AgentSkills`."""
        return None

    @property
    def in_folders(self) -> Mapping[str, Sequence[str] | None]:
        """What the skills in folders are called that it stands for, with the tools that each allows; None
        where it does not say. See `AgentSkills`.
        """
        return {}


class SkillRegistry:
    """The skills and single tools of an agent, in the order in which they were registered.

    Args:
        skills: registered first.
        tools: those that belong to no skill.

    Raises:
        BadTool: two skills or two tools have one name; the message names both places.
    """

    def __init__(self, skills: Iterable[Skill] = (), tools: Iterable[Tool] = ()) -> None:
        _require_list(skills, "the skills of a registry are")
        _require_list(tools, "the tools of a registry are")
        self._skills: dict[str, Skill] = {}
        self._tools: dict[str, Tool] = {}
        self._owner: dict[str, str] = {}
        for skill in skills:
            self.register(skill)
        for each in tools:
            _require_tool(each, "tools")
            self._refuse_taken(each, None)
            self._tools[each.name] = each

    def register(self, skill: Skill) -> None:
        """Adds a skill and its tools; adds nothing if it raises.

        Raises:
            BadTool: its name, or the name of one of its tools, is taken.
        """
        if not isinstance(skill, Skill):
            raise BadTool(f"{skill!r:.100} is not a skill; make one with Skill(name, instructions, tools)")
        if skill.name in self._skills:
            raise BadTool(
                f"there are two skills named {skill.name!r}: one with {_listed(self._skills[skill.name].tools)}, one "
                f"with {_listed(skill.tools)}; rename one of them"
            )
        own: dict[str, Tool] = {}
        for each in skill.tools:
            self._refuse_taken(each, skill.name)
            if each.name in own:
                raise _two(own[each.name], skill.name, each, skill.name)
            own[each.name] = each
        self._skills[skill.name] = skill
        self._tools |= own
        self._owner |= dict.fromkeys(own, skill.name)

    def __len__(self) -> int:
        """How many skills there are."""
        return len(self._skills)

    def __iter__(self) -> Iterator[Skill]:
        """The skills, in order, so that a registry can stand wherever skills are listed."""
        return iter(self.skills)

    @property
    def loose(self) -> tuple[Tool, ...]:
        """The tools that belong to no skill, in order."""
        return tuple(each for name, each in self._tools.items() if name not in self._owner)

    @property
    def skills(self) -> tuple[Skill, ...]:
        """The skills, in order."""
        return tuple(self._skills.values())

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools, in order: each skill's, then those without a skill."""
        return tuple(self._tools.values())

    def tool(self, name: str) -> Tool | None:
        """The tool of that name; None if there is none."""
        return self._tools.get(name)

    def skill(self, name: str) -> Skill:
        """The skill of that name.

        Raises:
            BadTool: there is none; the message names the nearest.
        """
        if name not in self._skills:
            listed = ", ".join(self._skills) or "none"
            raise BadTool(
                f"there is no skill {name!r}{did_you_mean(nearest(name, self._skills))} (there are: {listed})"
            )
        return self._skills[name]

    def skill_of(self, tool_name: str) -> Skill | None:
        """The skill that the tool belongs to; None if it belongs to none or there is no such tool."""
        owner = self._owner.get(tool_name)
        return None if owner is None else self._skills[owner]

    def instructions(self, opening: str = "") -> str:
        """The system prompt: `opening`, then a titled section for each skill that has instructions, in order."""
        sections = [opening.strip()]
        sections += [f"## {skill.name}\n\n{text}" for skill in self.skills if (text := skill.instructions.strip())]
        return "\n\n".join(section for section in sections if section)

    def said(self, text: str, messages: Sequence[Message] = ()) -> UserMessage | None:
        """What a user means who writes `/name` of a skill that stands in a folder: a message with its instructions.

        Args:
            text: what was written.
            messages: the conversation so far; a skill that is active in it is not told again.

        Returns:
            The message; None where the text does not begin with a slash and the name of such a skill.
        """
        return next((said for skill in self.skills if (said := skill.said(text, messages)) is not None), None)

    def foreign(self, messages: Iterable[Message]) -> tuple[str, ...]:
        """The skills in folders that are active in `messages` and not among these: those of another agent.

        What no skill can be called is what a journal's redaction left of a name: it may be one of these.
        """
        return tuple(
            [name for name in active_in(messages) if not (self._is_in_folder(name) or has_other_characters(name))]
        )

    def withheld(self, messages: Iterable[Message], foreign: Iterable[str], names: Iterable[str]) -> Sequence[str]:
        """Those of the tools `names` that are not to be offered after `messages`: an active skill does not allow them.

        Whether the skill is among these does not count, unless it was `foreign` as the run began.
        """
        allowed = narrowed(messages, [name for name in foreign if not self._is_in_folder(name)])
        return () if allowed is None else [name for name in names if name not in allowed]

    def _is_in_folder(self, name: str) -> bool:
        return any(name in skill.in_folders for skill in self._skills.values())

    def _refuse_taken(self, each: Tool, skill: str | None) -> None:
        first = self._tools.get(each.name)
        if first is not None:
            raise _two(first, self._owner.get(each.name), each, skill)


def _two(first: Tool, owner: str | None, second: Tool, skill: str | None) -> BadTool:
    return BadTool(
        f"there are two tools named {second.name!r}: {_placed(first, owner)} and {_placed(second, skill)}; "
        "give one another name: @tool(name=…), as_tool(name=…) or handoff(…, name=…)"
    )


def _require_list(given: object, what: str) -> None:
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise BadTool(f"{what} given as a list, [{given!r:.100}]")


def _require_tool(value: Any, place: str) -> None:
    if not isinstance(value, Tool):
        raise BadTool(f"{place}: {value!r:.100} is not a tool; decorate the function with @tool")


def _listed(tools: Sequence[Tool]) -> str:
    names = ", ".join(each.name for each in tools)
    return f"the tools {names}" if names else "no tools"


def _placed(each: Tool, skill: str | None) -> str:
    place = f"in the skill {skill!r}" if skill is not None else "in tools="
    return f"one {place} ({each.where})" if each.where else f"one {place}"
