"""Request size: how many tokens a request has at most, what is sent beside its messages included."""

from collections.abc import Sequence
from typing import Protocol

from treadle.context.tokens import estimate_tokens, most, next_tokens
from treadle.kernel.events import StepPrepared
from treadle.kernel.messages import Json, Message, ToolSpec, UserMessage
from treadle.kernel.state import RunState
from treadle.models.fixed import fixed_tokens, members
from treadle.models.port import Model

WORDS_OF_REMAINING = (
    "(What is left of this task's limits: 1000 steps, this one included, 1000 tool calls, 100000 seconds, "
    "100000.0000 dollars, 1000000000 tokens.)"
)
"""About what `tell_remaining` tells the model."""


class Answered(Protocol):
    """The type that an answer must have, as far as requests hold it."""

    @property
    def instructions(self) -> str:
        """What the model is told about it."""

    @property
    def schema(self) -> Json | None:
        """Its JSON Schema, if it is sent as one."""


class Asking(Protocol):
    """An agent, as far as the size of its requests goes; see `treadle.drivers.configuration.Configuration`."""

    @property
    def model(self) -> Model:
        """Its model."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Its tools."""

    @property
    def output(self) -> Answered | None:
        """The type of its answers."""

    @property
    def tool_tokens(self) -> int:
        """What each request to its model holds besides the messages."""

    @property
    def tell_remaining(self) -> bool:
        """Whether the model is told what is left of the limits."""

    @property
    def prepare_step(self) -> object:
        """What chooses for each step."""


def request_tokens(config: Asking, state: RunState, event: StepPrepared, model: Model, counted: Model | None) -> int:
    """What the request of the step that `event` prepares has at most, if it is asked of `model`.

    What a provider has counted is taken as it said, as long as no model may answer but the one that `counted` it for
    this process: another may make more tokens of the same text, and what an earlier process sent may have had another
    model, fewer tools, or texts that redaction has made longer since. Then all is estimated, and the more of the two is
    taken.
    """
    if event.messages is None:
        asked = next_tokens(state)
        if model is not counted or len(members(model)) > 1 or not state.size.messages:
            asked = max(asked, _estimated(config, state, model, state.messages))
    else:
        asked = _estimated(config, state, model, event.messages)
        if event.instructions is not None and config.output is not None:
            # It stands after them, and in the history of a step that chose no messages in any case.
            asked += estimate_tokens(UserMessage(config.output.instructions))
    for text in (event.note, event.instructions, WORDS_OF_REMAINING if config.tell_remaining else ""):
        if text:
            asked += estimate_tokens(UserMessage(text))
    return asked


def _estimated(config: Asking, state: RunState, model: Model, messages: Sequence[Message]) -> int:
    """The tokens of a request of `messages`, nothing of which is known, by what was learnt at the most."""
    schema = None if config.output is None else config.output.schema
    fixed = config.tool_tokens if model is config.model else fixed_tokens(model, config.specs, schema)
    return round((fixed + sum(estimate_tokens(message) for message in messages)) * most(state))
