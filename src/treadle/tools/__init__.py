"""Tools: what a model can ask for, the skills that bundle them, and how they are made of functions.

May use `treadle.kernel` and `treadle.context`; the stores of memory in `builtin` use the files and addresses of
`treadle.journal` too. Pydantic and `jsonschema-rs` are imported when a tool needs them.
"""

from treadle.tools.agent_skills.skill import AgentSkills, agent_skills
from treadle.tools.context import Injected, ToolContext
from treadle.tools.errors import BadTool, InvalidArguments, ToolError, did_you_mean, nearest
from treadle.tools.external import external_tool
from treadle.tools.failure import SaysError, says_error
from treadle.tools.function import tool
from treadle.tools.load import load_tools
from treadle.tools.options import Effect, ToolOptions
from treadle.tools.output import ToolOutput, ToolResult, encode, encode_error
from treadle.tools.reconcile import Done, NotDone
from treadle.tools.skills import Skill, SkillRegistry
from treadle.tools.tool import Tool

__all__ = [
    "AgentSkills",
    "BadTool",
    "Done",
    "Effect",
    "Injected",
    "InvalidArguments",
    "NotDone",
    "SaysError",
    "Skill",
    "SkillRegistry",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolOptions",
    "ToolOutput",
    "ToolResult",
    "agent_skills",
    "did_you_mean",
    "encode",
    "encode_error",
    "external_tool",
    "load_tools",
    "nearest",
    "says_error",
    "tool",
]
