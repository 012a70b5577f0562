"""Skills: the names of those that the command line knows."""

from contextlib import suppress
from typing import Final

BASICS: Final = "basics"
"""The name of the skill that the offline planner has unasked."""

ANALYST: Final = "analyst"
"""The name of the data analyst's skill on the command line."""

MEMORY: Final = "memory"
"""The name of the memory skill on the command line; only given to an agent that asks for it."""

NONE: Final = "none"
"""What stands for no skill at all."""


def skill_names() -> list[str]:
    """Every name that --skill takes."""
    from treadle.cli.skill_folders import found, usable
    from treadle.tools import BadTool
    from treadle.tools.builtin import SKILLS

    in_folders: list[str] = []
    with suppress(BadTool):
        # Without PyYAML there are none.
        in_folders = [*usable(found())]
    return [*SKILLS, ANALYST, MEMORY, NONE, *in_folders]
