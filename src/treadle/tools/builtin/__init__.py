"""The tools that come with treadle: a calculator, the time, and an example skill over a small inventory.

`SKILLS` holds them by the names that the command line knows.
"""

from treadle.tools.builtin.calculator import calculator
from treadle.tools.builtin.current_time import current_time
from treadle.tools.builtin.inventory import inventory
from treadle.tools.skills import Skill

basics = Skill(
    "basics",
    "For every calculation use the calculator, never your own arithmetic. For the date or the time of day use "
    "current_time; you do not know it otherwise.",
    (calculator, current_time),
    "arithmetic and the time of day",
)

SKILLS: dict[str, Skill] = {skill.name: skill for skill in (basics, inventory)}

__all__ = ["SKILLS", "basics", "calculator", "current_time", "inventory"]
