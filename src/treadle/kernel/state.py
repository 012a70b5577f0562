"""RunState: everything that follows from a run's events so far. `fold.py` makes it, `decide.py` reads it."""

from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct

from treadle.kernel.events import ErrorInfo, Parent, StepPrepared
from treadle.kernel.log import Log
from treadle.kernel.messages import Message, ModelSettings, ToolMessage, Usage, UserMessage
from treadle.kernel.step import EarlyCall, Step
from treadle.kernel.stop import Decision, Limits, OnLimit, Stop
from treadle.kernel.tokens import Ratio, estimate_tokens

Phase = Literal["new", "ready", "prepared", "acting", "replied", "paused", "finished"]


class Progress(Struct, frozen=True, gc=False):
    """What was done about getting nowhere."""

    stuck: int = 0
    stuck_at: int = 0
    nudges: int = 0
    polled: tuple[str, str, str] | None = None
    polled_since: float = 0.0


class RunState(Struct, frozen=True, gc=False):
    """Everything that follows from a run's events so far.

    Attributes:
        phase: where the run stands; see the rules in `fold.py`.
        messages: the history as the next model call will see it, the system message first.
        steps: the steps that are complete; `step` is the one under way.
        early: calls that were started while the reply is still arriving.
        inbox: what was said to the run while a step was under way.
        tool_calls: tool calls within the limit so far; `call_counts` by tool name; `refused` whether the last step
            asked for more than the limit allows.
        sub_steps: steps of sub-runs; `handed_on` whether another agent has given the run's answer.
        polled: the last call of a polling tool, with its arguments and result, if the last step ended with one, and
            `polled_since`, since when the answer has been the same.
        stuck: how far up the ladder against getting nowhere the run is, `stuck_at` after how many steps it got there.
        usage, cost: of all model calls so far; the cost is None as long as no price is known.
        errors: steps in a row in which everything went wrong.
        known_tokens: tokens of the history as last reported or estimated, which covers its first `known_messages`;
            `reported` is whether the provider counted them.
        ratios: what providers reported against what was estimated, by model.
        pinned: what people asked and said in this run, which no context policy takes away.
        shelf: the results that a context policy put something shorter in the place of, whole, by `stubs.reference`.
        failure: the last failed attempt at the model call under way, if it is not to be tried again.
        text: the last text that the model said, whole or in part.
        started_at, now: the times of the first and the last event, Unix seconds.
        resumed_at: when the run was started or last taken up; it had been under way for `earlier` seconds before.
        stop: why the run ended or paused; `decision` is the record of the look at the limits that ended it.
        output: the structured answer, or an external tool's arguments.
        events: how many events have been folded.
    """

    phase: Phase = "new"
    run_id: str = ""
    agent: str = ""
    model: str = ""
    limits: Limits = Limits()
    on_limit: OnLimit = "answer"
    tools: tuple[str, ...] = ()
    polling: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    tool_choice: str = "auto"
    settings: ModelSettings = ModelSettings()
    tool_tokens: int = 0
    watch: bool = True
    parent: Parent | None = None
    messages: Log[Message] = Log()
    steps: Log[Step] = Log()
    step: Step | None = None
    prepared: StepPrepared | None = None
    early: tuple[EarlyCall, ...] = ()
    inbox: tuple[UserMessage, ...] = ()
    open_calls: int = 0
    tool_calls: int = 0
    call_counts: dict[str, int] = {}
    refused: bool = False
    sub_steps: int = 0
    handed_on: bool = False
    polled: tuple[str, str, str] | None = None
    polled_since: float = 0.0
    stuck: int = 0
    stuck_at: int = 0
    nudges: int = 0
    usage: Usage = Usage()
    cost: Decimal | None = None
    errors: int = 0
    known_tokens: int = 0
    known_messages: int = 0
    reported: bool = False
    ratios: dict[str, Ratio] = {}
    pinned: Log[UserMessage] = Log()
    shelf: dict[str, ToolMessage] = {}
    failure: ErrorInfo | None = None
    text: str = ""
    started_at: float = 0.0
    now: float = 0.0
    resumed_at: float = 0.0
    earlier: float = 0.0
    paused_from: Phase = "new"
    stop: Stop | None = None
    decision: Decision | None = None
    output: Any = None
    events: int = 0

    @property
    def progress(self) -> Progress:
        """What was done about getting nowhere."""
        return Progress(self.stuck, self.stuck_at, self.nudges, self.polled, self.polled_since)

    @property
    def elapsed(self) -> float:
        """Seconds under way, pauses not counted. A clock that goes back adds nothing."""
        return self.earlier + max(0.0, self.now - self.resumed_at)

    @property
    def next_tokens(self) -> int:
        """What the next request will hold: as reported as far as that goes, then estimated on the high side."""
        return self._with_rest(max(1.0, self._factor) if self.ratios else 1.0)

    @property
    def context_tokens(self) -> int:
        """What the next request will hold, the part that nobody has counted as the model's ratio makes it likely."""
        return self._with_rest(self._factor if self.ratios else 1.0)

    @property
    def _factor(self) -> float:
        """What estimates are multiplied by for the model that answered last."""
        ratio = self.ratios.get(self.steps[-1].model) if self.steps else None
        return 1.0 if ratio is None else ratio.factor

    def _with_rest(self, factor: float) -> int:
        rest = 0
        for message in self.messages.since(self.known_messages):
            rest += estimate_tokens(message)
        if factor == 1.0:
            return self.known_tokens + rest
        if not self.known_messages:
            return round((self.known_tokens + rest) * factor)
        return self.known_tokens + round(rest * factor)
