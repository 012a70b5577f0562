"""RunState: everything that follows from a run's events so far. `fold.py` makes it, `decide.py` reads it."""

from decimal import Decimal
from typing import Any, ClassVar, Literal

from msgspec import Struct

from treadle.kernel.accounts import Accounts, Progress, RequestSize
from treadle.kernel.calls import CallRecord, part
from treadle.kernel.events import ErrorInfo, Parent, Reserve, RunStarted, StepPrepared
from treadle.kernel.log import Log
from treadle.kernel.messages import ListedTool, Message, ModelSettings, Usage, UserMessage
from treadle.kernel.step import Step
from treadle.kernel.stop import Decision, Limits, OnLimit, Stop

Phase = Literal["new", "ready", "prepared", "acting", "replied", "paused", "finished"]

Changes = dict[str, Any]
"""The fields of the state that an event changes, and their new values."""


class Stock(Struct, frozen=True, gc=False):
    """The tools of servers: `now`, as they were last listed, and `first`, all that there were, as each was at first."""

    now: tuple[ListedTool, ...] = ()
    first: tuple[ListedTool, ...] = ()


class RunState(Struct, frozen=True, gc=False):
    """Everything that follows from a run's events so far.

    Attributes:
        phase: where the run stands; see the rules in `fold.py`.
        started: how it began.
        limits: what it may use at most, as it was last said.
        stock: what servers, and who began the run, have listed; `tool_tokens` estimates what all descriptions take.
        messages: the history as the next model call will see it, the system message first.
        steps: the steps that are complete; `step` is the one under way, `prepared` how its request was chosen.
        asked: the worst case of a model call beside the steps that may be under way, such as one for a summary.
        early: calls that were started while the reply that makes them is still arriving, by the ids that they had then.
        inbox: what was said to the run while a step was under way.
        open_calls: calls of the step under way that have no result yet.
        refused: whether the last step asked for more calls than the limit allows.
        handed_on: whether another agent has given the run's answer.
        accounts: what it has taken.
        size: what is known of the size of its next request.
        progress: what was done about a run that gets nowhere.
        pinned: what people asked and said in this run, which no context policy takes away.
        failure: the last failed attempt at the model call under way, if it is not to be tried again.
        text: the last text that the model said, whole or in part.
        now: the time of the last event, Unix seconds.
        resumed_at: when the run was started or last taken up; it had been under way for `earlier` seconds before.
        paused_from: the phase that it was in when it paused.
        taken_up: how many steps were complete when it was last taken up after its end.
        stop: why the run ended or paused; `decision` is the record of the look at the limits that ended it.
        output: the structured answer, or an external tool's arguments.
        events: how many events have been folded.
    """

    phase: Phase = "new"
    started: RunStarted = RunStarted("", (), 0)
    limits: Limits = Limits()
    stock: Stock = Stock()
    tool_tokens: int = 0
    messages: Log[Message] = Log()
    steps: Log[Step] = Log()
    step: Step | None = None
    prepared: StepPrepared | None = None
    asked: Reserve | None = None
    early: tuple[CallRecord, ...] = ()
    inbox: tuple[UserMessage, ...] = ()
    open_calls: int = 0
    refused: bool = False
    handed_on: bool = False
    accounts: Accounts = Accounts()
    size: RequestSize = RequestSize()
    progress: Progress = Progress()
    pinned: Log[UserMessage] = Log()
    failure: ErrorInfo | None = None
    text: str = ""
    now: float = 0.0
    resumed_at: float = 0.0
    earlier: float = 0.0
    paused_from: Phase = "new"
    taken_up: int = 0
    stop: Stop | None = None
    decision: Decision | None = None
    output: Any = None
    events: int = 0

    run_id: ClassVar[str] = part("started.run_id")
    """The run's name in its journal."""
    agent: ClassVar[str] = part("started.agent")
    """What the agent is called."""
    model: ClassVar[str] = part("started.model")
    """What the agent's model is called."""
    on_limit: ClassVar[OnLimit] = part("started.on_limit")
    """What is done at a limit."""
    tool_choice: ClassVar[str] = part("started.tool_choice")
    """How the model is to choose among the tools, where a step says nothing else."""
    settings: ClassVar[ModelSettings] = part("started.settings")
    """How the model is to generate, where a step says nothing else."""
    parent: ClassVar[Parent | None] = part("started.parent")
    """The run, step and call that the run works for, if it is a sub-run."""
    started_at: ClassVar[float] = part("started.at")
    """The time of the first event, Unix seconds."""
    polling: ClassVar[tuple[str, ...]] = part("started.polling")
    """The names of the tools for which calling again is progress."""
    watch: ClassVar[bool] = part("started.watch")
    """Whether the run's progress is watched."""
    usage: ClassVar[Usage] = part("accounts.usage")
    """Tokens of all model calls so far."""
    cost: ClassVar[Decimal | None] = part("accounts.cost")
    """Dollars of all model calls so far; None as long as no price is known."""
    tool_calls: ClassVar[int] = part("accounts.tool_calls")
    """Tool calls within the limit so far, those of sub-runs included."""
    call_counts: ClassVar[dict[str, int]] = part("accounts.call_counts")
    """Answered calls so far by tool name."""
    sub_steps: ClassVar[int] = part("accounts.sub_steps")
    """Steps of sub-runs so far."""
    errors: ClassVar[int] = part("accounts.errors")
    """Steps in a row in which everything went wrong."""
    stuck: ClassVar[int] = part("progress.stuck")
    """How far up the ladder against getting nowhere the run is."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools, those of servers included."""
        return (*self.started.tools, *[one.name for one in self.stock.now])

    @property
    def elapsed(self) -> float:
        """Seconds under way, pauses not counted. A clock that goes back adds nothing."""
        return self.earlier + max(0.0, self.now - self.resumed_at)
