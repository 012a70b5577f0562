"""Asking: what the step under way asks a model, at what price, and what its reply is as an event."""

import reprlib
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from treadle.context.storable import storable
from treadle.context.tokens import next_tokens, uncounted
from treadle.drivers.call_ids import CallIds
from treadle.drivers.checks import model_of
from treadle.drivers.clock import Clock
from treadle.drivers.configuration import Configuration, StepSettings, asked_to_wait
from treadle.drivers.output import handed_in
from treadle.drivers.purse.arrived import Arrived
from treadle.drivers.purse.claims import Borrower, calls_allowed, claim, within
from treadle.drivers.purse.drawing import Purse
from treadle.drivers.purse.reckoning import charge_of, price_of, require_price
from treadle.drivers.purse.request_size import request_tokens
from treadle.drivers.request import prepared
from treadle.journal.told_apart import begun_as
from treadle.kernel.decide import PrepareStep
from treadle.kernel.errors import Misuse
from treadle.kernel.events import ErrorInfo, ModelFailed, ModelReplied, RunFinished, StepPrepared
from treadle.kernel.messages import AssistantMessage, ModelSettings, Usage
from treadle.kernel.step_changes import asked_in_full
from treadle.models.errors import ModelError
from treadle.models.fixed import answered_by
from treadle.models.port import Model, ModelReply, longest_reply_of
from treadle.models.sound import sound_reply
from treadle.tools.output import cut

LONGEST_WORDS = 10_000
"""Characters of an error's message that are recorded; its middle is left out where it is longer."""


class Asker(Borrower, Protocol):
    """A run, as far as asking a model for it needs to know it; see `treadle.drivers.run.Run`."""

    config: Configuration

    @property
    def clock(self) -> Clock:
        """Gives its events their times."""

    @property
    def purses(self) -> Sequence[Purse]:
        """The budgets that it draws on."""

    @property
    def redact(self) -> Callable[[str], str] | None:
        """What its journal makes of each text before it is written."""


class Asking:
    """The model calls of one run, one after the other.

    Attributes:
        arrived: what has come of the reply that is arriving.
        model: that of the step under way.
    """

    __slots__ = ("_call_ids", "_counted", "_models", "_run", "arrived", "model")

    def __init__(self, run: Asker) -> None:
        self.arrived = Arrived()
        self._run = run
        self._call_ids = CallIds()
        self.model: Model = run.config.model
        self._counted: Model | None = None
        self._models: dict[str, Model] = {}

    def prepare(self, command: PrepareStep, chosen: StepSettings | None = None) -> StepPrepared | RunFinished:
        """The event that carries `command` out with what `prepare_step` chose; the end where there is no money for it.

        Raises:
            Misuse: a tool was chosen that the agent does not have, or a model without a price under a limit in dollars.
            BudgetUnavailable: the file or database of a budget cannot be used, or is held.
        """
        return self.set_aside(command, self.reckoned(command, chosen))

    def set_aside(self, command: PrepareStep, event: StepPrepared) -> StepPrepared | RunFinished:
        """Sets aside what `event` may take, which was reckoned for `command`; the end where there is too little.

        Raises:
            BudgetUnavailable: the file or database of a budget cannot be used, or is held.
        """
        refused = claim(self._run, event.reserve)
        return event if refused is None else RunFinished(command.landing or refused, command.decision)

    def set_aside_again(self, prepared: StepPrepared) -> RunFinished | None:
        """Likewise, what another attempt at the step under way may take. Raises as `set_aside`."""
        refused = claim(self._run, prepared.reserve)
        return None if refused is None else RunFinished(prepared.landing or refused, prepared.decision)

    def reckoned(self, command: PrepareStep, chosen: StepSettings | None = None) -> StepPrepared:
        """The event that carries `command` out, before anything is set aside for it. Raises as `prepare`."""
        run = self._run
        config = run.config
        wanted = None if chosen is None else chosen.model
        if wanted is None:
            model = config.model
        elif isinstance(wanted, str):
            model = self._models.get(wanted) or self._models.setdefault(wanted, config.model_named(wanted))
        else:
            model = model_of(wanted)
        self.model = model
        for purse in run.purses:
            require_price(model, (None if chosen is None else chosen.settings) or run.state.settings, purse.budget)
        return prepared(config, within(run), model, command, chosen, self._counted, run.clock.now())

    def replied(self, reply: ModelReply) -> ModelReplied:
        """The event that records `reply`.

        Raises:
            ModelError: the model replied what no model may, or its `cost()` failed.
        """
        run, model = self._run, self.model
        output, state = run.config.output, run.state
        reply = sound_reply(reply)
        usage, prepared = reply.usage, state.prepared
        if usage is None or usage.estimated:
            usage = self.arrived.paid(reply, self.asked, self.longest_reply)
        in_full = self.has_counted(prepared, usage)
        message, finish = storable(reply.message), reply.finish
        handed = False
        if output is not None and output.tool is not None:
            told = message
            message, finish = handed_in(message, finish, output.tool.name)
            handed = told is not message
        message = self._call_ids.given(state, message)
        return ModelReplied(
            len(state.steps),
            message,
            usage,
            finish,
            reply.finish_detail,
            reply.model or model.name,
            reply.request_id,
            charge_of(answered_by(model, reply.model), usage, self._settings) if reply.cost is None else reply.cost,
            uncounted(state) if state.size.reported or not in_full else 0,
            calls_allowed(run) if run.parent is not None and message.calls else None,
            handed,
            self._early(message),
            at=run.clock.now(),
        )

    def _early(self, message: AssistantMessage) -> dict[str, str] | None:
        """Which calls of a reply began early, where the fold does not find that: redacted, calls may be alike that were
        not, and what a call brought before something was said may be another by now."""
        state = self._run.state
        new = tuple([one for one in state.early if not one.stale])
        told = len(new) < len(state.early) or (bool(new) and self._run.redact is not None)
        return begun_as(new, message) if told else None

    def came(self, end: ModelReply | ModelError) -> tuple[ModelReplied | ModelFailed, ModelError | None]:
        """The event that records how a call of the model ended of which no piece was heard here, and why it failed.

        Raises:
            Misuse: a call ends with no such thing.
        """
        if type(end) is not ModelReply and not isinstance(end, ModelError):
            given = f"it was given {reprlib.repr(end)}, of type {type(end).__name__}"
            raise Misuse(f"feed takes an event, or the ModelReply or ModelError that a stream ends with; {given}")
        self.arrived = Arrived()
        if isinstance(end, ModelReply):
            self.arrived.end(end)
            try:
                return self.replied(end), None
            except ModelError as error:
                end = error
        self.arrived.failed(end)
        return self.failed(error_info(end), model=end.model), end

    def failed(
        self, error: ErrorInfo, attempt: int = 1, wait: float | None = None, model: Model | None = None
    ) -> ModelFailed:
        """The event that records a failed attempt, which is made again in `wait` seconds, or not.

        A provider charges for a reply that broke off, so what came of it is counted.

        Args:
            model: that has failed, of several for which the model of the step stands.
        """
        arrived, step = self.arrived, len(self._run.state.steps)
        usage, cost = arrived.usage(self.asked, self.longest_reply), arrived.cost
        if usage is not None and cost is None:
            cost = price_of(model or self.model, usage, self._settings)
        return ModelFailed(step, error, attempt, arrived.text, wait, usage, cost, self.model.name)

    def has_counted(self, prepared: StepPrepared | None, usage: Usage) -> bool:
        """The model of the step has replied: where that is the measure of the next request, it is by this model.

        Says whether the request was the history with all tools.
        """
        in_full = asked_in_full(prepared)
        if in_full and usage.total_tokens:
            self._counted = self.model
        return in_full

    def forget_count(self) -> None:
        """No reply so far is the measure of the next request: it is reckoned by estimate."""
        self._counted = None

    @property
    def asked(self) -> int:
        """The most tokens that the request under way may have."""
        state, prepared = self._run.state, self._run.state.prepared
        if prepared is None:
            return next_tokens(state)
        if prepared.reserve is not None:
            return prepared.reserve.tokens - prepared.reserve.reply
        if prepared.note and prepared.messages is None:
            # It stands in the messages of the run by now.
            prepared = replace(prepared, note="")
        return request_tokens(self._run.config, state, prepared, self.model, self._counted)

    @property
    def longest_reply(self) -> int | None:
        """The tokens of the longest reply that the step under way may have; None if nobody has said."""
        prepared = self._run.state.prepared
        if prepared is not None and prepared.reserve is not None and prepared.reserve.reply:
            return prepared.reserve.reply
        return longest_reply_of(self.model, self._settings)

    @property
    def _settings(self) -> ModelSettings:
        """How the model of the step under way is asked to generate."""
        state = self._run.state
        return (None if state.prepared is None else state.prepared.settings) or state.settings

    def is_new(self, call_id: str) -> bool:
        """Whether no call of the run has had this id."""
        return bool(call_id) and call_id not in self._call_ids.used(self._run.state)


def error_info(error: ModelError) -> ErrorInfo:
    """The record of `error`."""
    return ErrorInfo(
        error.kind,
        cut(str(error), LONGEST_WORDS),
        error.retryable,
        error.status,
        error.request_id,
        asked_to_wait(error),
    )
