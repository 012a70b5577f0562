"""Step: one model call and the tool calls that it asked for, as a value that grows while the step is under way."""

from decimal import Decimal

from msgspec import Struct

from treadle.kernel.calls import NO_CALLS, Calls
from treadle.kernel.messages import AssistantMessage, FinishReason, Text, Usage
from treadle.kernel.stop import Decision, Stop, StopReason


class Step(Struct, frozen=True, gc=False, omit_defaults=True):
    """One model call and its tool calls.

    Attributes:
        number: from 0.
        decision: why the step was made: the limits and conditions that were looked at before it.
        landing: why it is the run's last, if it is the closing call of `on_limit="answer"`.
        model: the model that answered; `message` is what it said, None until it has.
        usage: the tokens of the call; `cost` is its price in dollars, None if unknown.
        finish: why the reply ended; `finish_detail` is the provider's own word.
        calls: the tool calls, in the model's order.
        offered: the names of its tools, where `prepare_step` chose; `tool_choice` is how it was to choose.
        withheld: the tools that it was not offered, as their calls led nowhere.
        handed_in: whether it gave its answer by the final tool of a typed answer.
        held_by: the stop reason of the limit that made its reply shorter than it may be, if one did.
        failures: how many attempts at the model call failed before; `waited` is the seconds until the last one began.
        started_at: Unix seconds; `replied_at` when the reply was in, `ended_at` when the last tool result was.
    """

    number: int
    decision: Decision
    started_at: float
    landing: Stop | None = None
    model: str = ""
    message: AssistantMessage | None = None
    usage: Usage = Usage()
    cost: Decimal | None = None
    finish: FinishReason = "stop"
    finish_detail: str = ""
    calls: Calls = NO_CALLS
    offered: tuple[str, ...] | None = None
    tool_choice: str = "auto"
    withheld: tuple[str, ...] = ()
    handed_in: bool = False
    held_by: StopReason | None = None
    failures: int = 0
    waited: float = 0.0
    replied_at: float = 0.0
    ended_at: float = 0.0

    @property
    def text(self) -> str:
        """What the model said in this step: of an answer by the final tool that answer, and no words beside it."""
        if self.message is None or not self.handed_in:
            return "" if self.message is None else self.message.text
        return next((part.text for part in reversed(self.message.content) if isinstance(part, Text)), "")

    @property
    def failed(self) -> bool:
        """Whether all that it did went wrong: every call answered with an error, or nothing said or shown at all."""
        if self.calls:
            return all([call.is_error for call in self.calls])
        return not self.text.strip() and not (self.message and self.message.shown)
