"""Skills: the names of those that the command line knows."""

from typing import Final

ANALYST: Final = "analyst"
"""The name of the data analyst's skill on the command line."""

MEMORY: Final = "memory"
"""The name of the memory skill on the command line; only given to an agent that asks for it."""


def skill_names() -> list[str]:
    """Every name that --skill takes."""
    from treadle.tools.builtin import SKILLS

    return [*SKILLS, ANALYST, MEMORY]
