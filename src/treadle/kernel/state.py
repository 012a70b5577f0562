"""RunState: everything that follows from a run's events so far. `fold.py` makes it, `decide.py` reads it."""

from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct

from treadle.kernel.accounts import Accounts, Progress, RequestSize
from treadle.kernel.calls import CallRecord
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

    @property
    def run_id(self) -> str:
        """The run's name in its journal."""
        return self.started.run_id

    @property
    def agent(self) -> str:
        """What the agent is called."""
        return self.started.agent

    @property
    def model(self) -> str:
        """What the agent's model is called."""
        return self.started.model

    @property
    def on_limit(self) -> OnLimit:
        """What is done at a limit."""
        return self.started.on_limit

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools, those of servers included."""
        return (*self.started.tools, *[one.name for one in self.stock.now])

    @property
    def tool_choice(self) -> str:
        """How the model is to choose among them, where a step says nothing else."""
        return self.started.tool_choice

    @property
    def settings(self) -> ModelSettings:
        """How the model is to generate, where a step says nothing else."""
        return self.started.settings

    @property
    def parent(self) -> Parent | None:
        """The run, step and call that the run works for, if it is a sub-run."""
        return self.started.parent

    @property
    def started_at(self) -> float:
        """The time of the first event, Unix seconds."""
        return self.started.at

    @property
    def usage(self) -> Usage:
        """Tokens of all model calls so far."""
        return self.accounts.usage

    @property
    def cost(self) -> Decimal | None:
        """Dollars of all model calls so far; None as long as no price is known."""
        return self.accounts.cost

    @property
    def tool_calls(self) -> int:
        """Tool calls within the limit so far, those of sub-runs included."""
        return self.accounts.tool_calls

    @property
    def call_counts(self) -> dict[str, int]:
        """Answered calls so far by tool name."""
        return self.accounts.call_counts

    @property
    def sub_steps(self) -> int:
        """Steps of sub-runs so far."""
        return self.accounts.sub_steps

    @property
    def errors(self) -> int:
        """Steps in a row in which everything went wrong."""
        return self.accounts.errors

    @property
    def polling(self) -> tuple[str, ...]:
        """The names of the tools for which calling again is progress."""
        return self.started.polling

    @property
    def watch(self) -> bool:
        """Whether the run's progress is watched."""
        return self.started.watch

    @property
    def stuck(self) -> int:
        """How far up the ladder against getting nowhere the run is."""
        return self.progress.stuck

    @property
    def elapsed(self) -> float:
        """Seconds under way, pauses not counted. A clock that goes back adds nothing."""
        return self.earlier + max(0.0, self.now - self.resumed_at)
