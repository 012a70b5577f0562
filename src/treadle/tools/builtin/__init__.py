"""The tools that come with treadle: a calculator, the time, an example skill over a small inventory, notes kept across
runs, and a question to the user.

`SKILLS` holds those that any agent may have without more ado, by the names that the command line knows. The other two
are asked for: `memory_skill` needs a file and an owner, and a run with `ask_user` may pause.
"""

from treadle.tools.builtin.ask_user import ask_user
from treadle.tools.builtin.calculator import calculator
from treadle.tools.builtin.current_time import current_time
from treadle.tools.builtin.inventory import inventory
from treadle.tools.builtin.memory import memory_skill
from treadle.tools.skills import Skill

basics = Skill(
    "basics",
    "For every calculation use the calculator, never your own arithmetic. For the date or the time of day use "
    "current_time; you do not know it otherwise.",
    (calculator, current_time),
    "arithmetic and the time of day",
)

SKILLS: dict[str, Skill] = {skill.name: skill for skill in (basics, inventory)}

__all__ = ["SKILLS", "ask_user", "basics", "calculator", "current_time", "inventory", "memory_skill"]
