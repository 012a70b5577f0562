"""The public names. `import treadle` offers them all; this module is loaded when the first of them is used."""

from treadle.agent import Agent
from treadle.conversation import Conversation
from treadle.drivers.configuration import Retries, RunContext, StepContext, StepSettings
from treadle.drivers.live import LiveRun
from treadle.drivers.run import Run, ToolProgress
from treadle.journal import Journal, MemoryJournal, SqliteJournal
from treadle.kernel.conditions import (
    Condition,
    condition,
    consecutive_errors,
    cost_over,
    elapsed_over,
    has_tool_call,
    no_progress,
    step_count,
    text_contains,
    tokens_over,
    tool_call_count,
)
from treadle.kernel.decide import CallModel, Command, Finish, Nudge, Pause, PrepareStep, RunTools, decide
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event
from treadle.kernel.fold import IllegalEvent, fold
from treadle.kernel.messages import File, Image, Message, ModelSettings, Text, Usage
from treadle.kernel.state import RunState
from treadle.kernel.step import CallRecord, Step
from treadle.kernel.stop import Decision, Limits, Stop
from treadle.models.price import Price
from treadle.result import Pending, RunResult, RunStopped
from treadle.tools import (
    BadTool,
    Skill,
    SkillRegistry,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    external_tool,
    load_tools,
    tool,
)

__all__ = [
    "Agent", "BadTool", "CallModel", "CallRecord", "Command", "Condition", "Conversation", "Decision", "Event", "File",
    "Finish", "IllegalEvent", "Image", "Journal", "Limits", "LiveRun", "MemoryJournal", "Message", "Misuse",
    "ModelSettings", "Nudge", "Pause", "Pending", "PrepareStep", "Price", "Retries", "Run", "RunContext", "RunResult",
    "RunState", "RunStopped", "RunTools", "Skill", "SkillRegistry", "SqliteJournal", "Step", "StepContext",
    "StepSettings", "Stop", "Text", "Tool", "ToolContext", "ToolError", "ToolProgress", "ToolResult", "Usage",
    "condition", "consecutive_errors", "cost_over", "decide", "elapsed_over", "external_tool", "fold", "has_tool_call",
    "load_tools", "no_progress", "step_count", "text_contains", "tokens_over", "tool", "tool_call_count",
]  # fmt: skip
