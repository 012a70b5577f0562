"""The public names. `import treadle` offers them all; this module is loaded when the first of them is used."""

from treadle.agent import Agent, handoff
from treadle.context.edited import with_text
from treadle.context.policies import ClearToolResults, ContextPolicy, KeepFirstAndRecent, ShortenResult, Summarise
from treadle.conversation import Conversation
from treadle.drivers.approvals import ApprovalRule, allow, ask_before, deny
from treadle.drivers.calls.reaction import Alternative, AskUser, Retry
from treadle.drivers.configuration import Retries, RunContext, StepContext, StepSettings
from treadle.drivers.estimate import Estimate
from treadle.drivers.live import LiveRun
from treadle.drivers.partial import PartialArguments
from treadle.drivers.purse.budget import Balance, Budget
from treadle.drivers.purse.rows import BudgetUnavailable
from treadle.drivers.purse.spending import Charge, Share, Spending
from treadle.drivers.run import Run
from treadle.drivers.tool_search import ToolSearch
from treadle.drivers.trace import print_trace, trace_lines
from treadle.drivers.watching import SpentSoFar, StepCompleted, SubRunEvent, ToolProgress
from treadle.journal import Journal, MemoryJournal, PostgresJournal, SqliteJournal
from treadle.judging.conditions import (
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
from treadle.kernel.calls import CallRecord
from treadle.kernel.decide import CallModel, Command, Finish, Nudge, Pause, PrepareStep, RunTools, decide
from treadle.kernel.errors import IllegalEvent, Misuse
from treadle.kernel.events import Event
from treadle.kernel.fold import fold
from treadle.kernel.messages import File, Image, Message, ModelSettings, Text, Usage
from treadle.kernel.state import RunState
from treadle.kernel.step import Step
from treadle.kernel.stop import Decision, Limits, Stop
from treadle.models.price import Price
from treadle.models.price_table import PriceTable
from treadle.result import Pending, RunResult, RunStopped
from treadle.timetravel.differences import Difference
from treadle.timetravel.figures import Statistics
from treadle.timetravel.parting import Diff, diff
from treadle.timetravel.replay import Replay, ReplayDiffers, replay
from treadle.timetravel.statistics import statistics
from treadle.timetravel.waterfall import Waterfall, waterfall
from treadle.tools import (
    AgentSkills,
    BadTool,
    Done,
    Injected,
    NotDone,
    Skill,
    SkillRegistry,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    agent_skills,
    external_tool,
    load_tools,
    says_error,
    tool,
)

__all__ = [
    "Agent", "AgentSkills", "Alternative", "ApprovalRule", "AskUser", "BadTool", "Balance", "Budget",
    "BudgetUnavailable", "CallModel", "CallRecord", "Charge", "ClearToolResults", "Command", "Condition",
    "ContextPolicy", "Conversation", "Decision", "Diff", "Difference", "Done", "Estimate", "Event", "File", "Finish",
    "IllegalEvent", "Image", "Injected", "Journal", "KeepFirstAndRecent", "Limits", "LiveRun", "MemoryJournal",
    "Message", "Misuse", "ModelSettings", "NotDone", "Nudge", "PartialArguments", "Pause", "Pending", "PostgresJournal",
    "PrepareStep", "Price", "PriceTable", "Replay", "ReplayDiffers", "Retries", "Retry", "Run", "RunContext",
    "RunResult", "RunState", "RunStopped", "RunTools", "Share", "ShortenResult", "Skill", "SkillRegistry", "Spending",
    "SpentSoFar", "SqliteJournal", "Statistics", "Step", "StepCompleted", "StepContext", "StepSettings", "Stop",
    "SubRunEvent", "Summarise", "Text", "Tool", "ToolContext", "ToolError", "ToolProgress", "ToolResult", "ToolSearch",
    "Usage", "Waterfall", "agent_skills", "allow", "ask_before", "condition", "consecutive_errors", "cost_over",
    "decide", "deny", "diff", "elapsed_over", "external_tool", "fold", "handoff", "has_tool_call", "load_tools",
    "no_progress", "print_trace", "replay", "says_error", "statistics", "step_count", "text_contains", "tokens_over",
    "tool", "tool_call_count", "trace_lines", "waterfall", "with_text",
]  # fmt: skip
