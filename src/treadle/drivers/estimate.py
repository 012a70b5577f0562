"""Estimate: what the first request of a run may take, found out as the run would, without calling a model or a tool."""

from dataclasses import dataclass, replace
from decimal import Decimal

from treadle.conversation import Conversation
from treadle.drivers.beginning import Asked, begun
from treadle.drivers.compact import compact
from treadle.drivers.configuration import Configuration, StepSettings
from treadle.drivers.hooks import settings_of
from treadle.drivers.purse.claims import refused
from treadle.drivers.purse.patience import patiently
from treadle.drivers.purse.reckoning import reckoned, worst_price
from treadle.drivers.run import Run
from treadle.drivers.stock import serving, take_stock
from treadle.kernel.decide import Finish, PrepareStep, decide
from treadle.kernel.events import Reserve
from treadle.kernel.fold import fold
from treadle.kernel.stop import Stop
from treadle.models.port import longest_reply_of


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the first request of a run may take at most, as its limits reckon it.

    Attributes:
        model: the model that would be asked.
        request_tokens: tokens of the request, estimated on the high side.
        reply_tokens: the longest reply that is reckoned with.
        usd: dollars of both at most; None if the model's price is not known.
        stop: why the run would end without asking the model: the limit that forbids it, most often; None if it would
            be asked.
        held: whether the reply is held to `reply_tokens`, by a limit, by the settings, or by the model; else a longer
            one may come, and cost more.
    """

    model: str
    request_tokens: int
    reply_tokens: int
    usd: Decimal | None
    stop: Stop | None = None
    held: bool = True

    @property
    def tokens(self) -> int:
        """Tokens of the request and the longest reply."""
        return self.request_tokens + self.reply_tokens

    @property
    def allowed(self) -> bool:
        """Whether the run would ask the model; else `stop` says why not."""
        return self.stop is None


async def estimated(config: Configuration, asked: Asked) -> Estimate:
    """What the first request of a run that is begun with `asked` may take. The conversation stays as it is.

    A summary that a context policy would have a model write first is not written: the history is reckoned whole.

    Raises:
        Misuse: a run cannot be begun so.
    """
    said = asked.conversation
    if isinstance(said, Conversation):
        asked = asked._replace(conversation=Conversation(said.messages, name=said.name))
    # Of a run that is not carried out nobody is told: a span of it would never end.
    run = await begun(replace(config, telemetry=None), asked._replace(untold=True))
    async with serving(config.servers):
        await take_stock(run)
    command = await run.judged()
    if isinstance(command, PrepareStep) and await compact(run, summaries=False):
        command = await run.judged()
    if not isinstance(command, PrepareStep):
        return Estimate(run.model.name, 0, 0, Decimal(0), command.stop if isinstance(command, Finish) else None)
    picked, asked_for = await settings_of(run, command.step), command
    return await patiently(lambda: _reckoned(run, asked_for, picked))


def _reckoned(run: Run, command: PrepareStep, picked: StepSettings | None) -> Estimate:
    event, state = run.asking.reckoned(command, picked), run.state
    worst = event.reserve or reckoned(run.config, state, event, run.model, None).event.reserve or Reserve(0)
    after, usd, request = decide(fold(state, event)), worst.usd, worst.tokens - worst.reply
    if usd is None:
        usd = worst_price(run.model, event.settings or state.settings, request, worst.reply)
    # In the order of a run: what budgets refuse is not prepared, and a limit is looked at after that.
    stop = refused(run, event.reserve) or (after.stop if isinstance(after, Finish) else None)
    known = longest_reply_of(run.model, event.settings or state.settings) is not None
    return Estimate(run.model.name, request, worst.reply, usd, stop, held=known or event.reserve is not None)
