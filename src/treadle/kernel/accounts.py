"""What a run keeps count of: what it has taken, how large its next request is, and what was done about its progress.

Small values of their own, so that a state is the machine and these three.
"""

from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel.messages import Usage
from treadle.kernel.money import NOTHING, minus, plus, total

FADING = 0.9
"""What an earlier comparison of tokens still counts when a later one of the same size is made."""

BELIEF = 200
"""Tokens that count as estimated before anything was reported, so that short messages teach little."""

MOST_RATIO = 5.0
"""The most that is learnt: beyond it something else than the text was counted."""


class Spent(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a sub-run took: it counts against the limits of the run that it worked for.

    `cost` is what is known of it, `unpriced` whether that is not all, and `presumed` what the rest may come to.
    """

    steps: int = 0
    usage: Usage = Usage()
    cost: Decimal | None = None
    tool_calls: int = 0
    unpriced: bool = False
    presumed: Decimal = NOTHING

    def less(self, paid: "Spent") -> "Spent":
        """What of it has not been `paid` yet."""
        cost = self.cost if self.cost is None or paid.cost is None else minus(self.cost, paid.cost)
        calls = self.tool_calls - paid.tool_calls
        presumed = minus(self.presumed, paid.presumed)
        return Spent(self.steps - paid.steps, self.usage - paid.usage, cost, calls, self.unpriced, presumed)


NOTHING_SPENT = Spent()


class Accounts(Struct, frozen=True, gc=False):
    """What a run has taken so far, its sub-runs included.

    Attributes:
        usage, cost: of all model calls; the cost is what is known of it, None as long as no price is.
        tool_calls: tool calls within the limit; `call_counts` by tool name, of the run itself.
        sub_steps: steps of sub-runs.
        errors: steps in a row in which everything went wrong.
        unpriced: whether any model call took tokens whose price is not known.
        presumed: dollars that were reserved for such calls: they may have cost as much.
        shared: what of it another run took and has paid, of which this one is a fork.
        budgets: those that it has drawn on since it was last taken up, as `RunResumed` tells them.
    """

    usage: Usage = Usage()
    cost: Decimal | None = None
    tool_calls: int = 0
    call_counts: dict[str, int] = {}
    sub_steps: int = 0
    errors: int = 0
    unpriced: bool = False
    presumed: Decimal = NOTHING
    shared: Spent = NOTHING_SPENT
    budgets: tuple[str, ...] = ()

    @property
    def whole_cost(self) -> Decimal | None:
        """Dollars of all model calls, 0 if there was none; None if the price of any is not known."""
        return None if self.unpriced else self.cost or NOTHING

    def charged(
        self, usage: Usage | None, cost: Decimal | None, reserved: Decimal | None = None, calls: int = 0
    ) -> "Accounts":
        """The accounts with one more model call, which asked for tool `calls`; `reserved` dollars were set aside."""
        unpriced = cost is None and usage is not None and usage.total_tokens > 0
        return replace(
            self,
            usage=self.usage if usage is None else self.usage + usage,
            cost=self.cost if cost is None else total(self.cost, cost),
            tool_calls=self.tool_calls + calls,
            unpriced=self.unpriced or unpriced,
            presumed=plus(self.presumed, reserved) if unpriced and reserved is not None else self.presumed,
        )


class Ratio(Struct, frozen=True, gc=False):
    """What a model's provider reported, held against what was estimated for the same messages; `most`: at the most."""

    reported: float = 0.0
    estimated: float = 0.0
    most: float = 1.0

    def learnt(self, reported: int, estimated: int) -> "Ratio":
        """This ratio and one more comparison; the larger the messages, the more it counts."""
        most = min(max(self.most, (reported + BELIEF) / (estimated + BELIEF)), MOST_RATIO)
        return Ratio(self.reported * FADING + reported, self.estimated * FADING + estimated, most)


class RequestSize(Struct, frozen=True, gc=False):
    """What is known of the size of the next request; `treadle.context.tokens` estimates the rest.

    Attributes:
        tokens: tokens of the history as last reported or estimated, which covers its first `messages` messages.
        messages: how many messages that is.
        reported: whether the provider counted them.
        ratios: what providers reported against what was estimated, by model.
    """

    tokens: int = 0
    messages: int = 0
    reported: bool = False
    ratios: dict[str, Ratio] = {}

    def after(self, model: str, usage: Usage, estimate: int, in_full: bool, messages: int) -> "RequestSize":
        """The size after a reply of `model`, `messages` messages being known by then.

        The first request teaches nothing: providers add hundreds of tokens of their own for tools, whatever the text
        is. Nor does one after a reply with hidden reasoning, which is counted in the reply and not in the request.

        Args:
            usage: what the reply took.
            estimate: what was estimated for the messages that nobody had counted before.
            in_full: whether the request was the history with all tools, so that its size tells that of the next one.
        """
        tokens = usage.total_tokens
        if not (in_full and tokens):
            if not estimate:
                return self
            return RequestSize(self.tokens + estimate + usage.output_tokens, messages, False, self.ratios)
        reported = usage.input_tokens > 0 and not usage.estimated
        ratios, new = self.ratios, usage.input_tokens - self.tokens
        if reported and self.reported and estimate and new > 0:
            ratios = {**ratios, model: ratios.get(model, Ratio()).learnt(new, estimate)}
        return RequestSize(tokens, messages, reported and not usage.reasoning_tokens, ratios)


class Progress(Struct, frozen=True, gc=False):
    """What was done about a run that gets nowhere.

    Attributes:
        stuck: how far up the ladder the run is: 1 told so, 2 tools withheld; 0 if it gets somewhere.
        stuck_at: after how many steps it got there.
        nudges: how often it was told.
    """

    stuck: int = 0
    stuck_at: int = 0
    nudges: int = 0
