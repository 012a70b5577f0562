"""Shapes: what the server hands out, as types. It is written from them, and described from them.

What a run, its events or the figures over runs have for types of their own goes out as those: see `forms`.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from treadle.kernel.calls import CallStatus
from treadle.kernel.events import ApprovalDecided, ApprovalRequested, ModelFailed, Parent, Reserve
from treadle.kernel.messages import (
    AssistantMessage,
    Content,
    FinishReason,
    Json,
    Message,
    ModelSettings,
    ToolSpec,
    Usage,
)
from treadle.kernel.stop import Check, Decision, Limits, Stop
from treadle.serve.status import Status
from treadle.serve.verdicts import Verb

REFS: Final = "#/components/schemas/{name}"
"""How one type's description names another's."""


def _whole(kind: type[Struct]) -> Meta:
    """That all fields of `kind` are told, those too that its stored form leaves out."""
    return Meta(extra_json_schema={"$ref": REFS.format(name=kind.__name__), "required": list(kind.__struct_fields__)})


WHOLE: Final = (Decision, ModelSettings, Stop, Usage)
"""The types that are told so; see `forms.fields`."""

WholeDecision = Annotated[Json, _whole(Decision)]
WholeSettings = Annotated[Json, _whole(ModelSettings)]
WholeStop = Annotated[Json, _whole(Stop)]
WholeUsage = Annotated[Json, _whole(Usage)]


StoredEvent = Annotated[Any, Meta(extra_json_schema={"$ref": REFS.format(name="StoredEvent"), "required": ["number"]})]
"""An event of the journal with its number, as `forms.event_json` writes it."""

Shown = Annotated[Any, Meta(extra_json_schema={"$ref": REFS.format(name="Shown")})]
"""What is shown of a run that works for another."""


class RunLine(Struct):
    """A run in one line; `seconds` are those from its beginning to its last event, waits and pauses among them.

    `own_usage` and `own_cost` are without the runs that work for it, which have their own.
    """

    id: str
    agent: str
    model: str
    status: Status
    question: str
    started: float
    updated: float
    ended: float | None
    seconds: float
    steps: int
    calls: int
    events: int
    own_usage: Usage
    own_cost: Decimal | None
    parent: Parent | None
    forked_from: str | None
    user: str
    conversation: str | None
    stop: WholeStop | None
    damage: str


class RunPage(Struct):
    """Runs, and what the next page is asked for with; null at the end."""

    runs: Sequence[RunLine]
    next: str | None


class EventPage(Struct):
    """Events, and the number after which the next page goes on; null at the end."""

    events: Sequence[StoredEvent]
    next: int | None


class WaitingCall(Struct):
    """A call that waits for a person; `allowed` is how it can be decided."""

    call: str
    tool: str
    arguments: Any
    arguments_json: str
    kind: Literal["approval", "interrupted", "result"]
    effect: str
    fingerprint: str
    why: str
    question: str
    found: str
    run: str
    allowed: Sequence[Verb]


class Total(Struct):
    """What a run took with those that work for it; `elapsed` is seconds under way."""

    usage: WholeUsage
    cost: Decimal | None
    elapsed: float


class WholeRun(RunLine):
    """A run, with what has come of it and what it waits for."""

    driven: bool
    text: str
    message: str
    output: Any
    messages: Sequence[Message]
    limits: Limits
    total: Total
    decision: WholeDecision | None
    pending: Sequence[WaitingCall]
    sub_runs: Sequence[RunLine]


class MadeCall(Struct):
    """A tool call with its result; null until there is one."""

    id: str
    tool: str
    arguments: Any
    result: str | tuple[Content, ...] | None
    status: CallStatus
    is_error: bool
    executed: bool
    seconds: float | None
    run: str


class StepLine(Struct):
    """A step in one line; `seconds` are those under way, without the pauses in the middle of it."""

    number: int
    started: float
    replied: float
    ended: float
    seconds: float
    model: str
    finish: FinishReason
    text: str
    calls: Sequence[MadeCall]
    usage: WholeUsage
    cost: Decimal | None
    stop_checks: Sequence[Check]


class SentRequest(Struct):
    """What a model was sent. `tools_described` is whether the tools are described as it was told of them."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    tools_described: bool
    tool_choice: str
    settings: WholeSettings
    output_schema: Json | None
    model: str


class Changed(Struct):
    """How a request differs from that of the step before: messages that begin alike, and others; tools; settings."""

    same: int
    removed: int
    added: int
    tools: Sequence[str]
    settings: bool


class WhyMade(Struct):
    """Why a step was made: everything that was looked at, with the values found."""

    verdict: Literal["go", "land", "stop"]
    why: str
    checks: Sequence[Check]
    landing: WholeStop | None
    note: str
    withheld: Sequence[str]
    stuck: int
    reserve: Reserve | None


class Filled(Struct):
    """Tokens of the window that were used, and its size; null where nobody knows."""

    used: int | None
    size: int | None


class StepInside(Struct):
    """A step's inside; what it does not have yet is null."""

    number: int
    event: int
    request: SentRequest
    changed: Changed
    decision: WhyMade
    step: StepLine | None
    reply: AssistantMessage | None
    failed: Sequence[ModelFailed]
    asked: Sequence[ApprovalRequested | ApprovalDecided]
    window: Filled | None


class AgentTool(Struct):
    """A tool of an agent; `asks` is whether a person is asked before a call."""

    name: str
    description: str
    effect: Literal["read", "idempotent", "write"]
    schema: Json
    asks: Literal["always", "sometimes", "never"]
    external: bool


class AgentLine(Struct):
    """An agent; `window` is the tokens that its model's requests and replies may have, null if nobody knows."""

    name: str
    description: str
    model: str
    instructions: str | None
    tools: Sequence[AgentTool]
    skills: Sequence[str]
    limits: Limits
    window: int | None


class ConversationLine(Struct):
    """A conversation, with its newest run."""

    id: str
    title: str
    user: str
    agent: str
    updated: float
    run: RunLine


class ConversationPage(Struct):
    """Conversations, and what the next page is asked for with; null at the end."""

    conversations: Sequence[ConversationLine]
    next: str | None


class WholeConversation(ConversationLine):
    """A conversation with what was said in it, and its newest runs."""

    messages: Sequence[Message]
    runs: Sequence[RunLine]


class NewConversation(Struct):
    """A name for a conversation that is there from its first run on."""

    id: str
    title: str


class Caller(Struct):
    """Who calls, and what they may do."""

    name: str
    sees: Literal["own", "all"]
    decides: Literal["own", "all", "nothing"]
    begins: bool
    inside: bool
    raises_limits: bool


class Known(Struct):
    """Who calls; null for nobody that is known. `login` is whether a token can be sent."""

    user: Caller | None
    login: bool


class Health(Struct):
    """That the server can be used."""

    status: Literal["ok"]


# What is shown live, and is not in the journal.


class ShownText(Struct, tag_field="kind", tag="text"):
    """A piece of the reply's text."""

    text: str


class ShownThinking(Struct, tag_field="kind", tag="thinking"):
    """A piece of the model's thinking."""

    text: str


class ShownCall(Struct, tag_field="kind", tag="call"):
    """The model has begun to ask for a call."""

    id: str
    name: str


class ShownArguments(Struct, tag_field="kind", tag="arguments"):
    """A piece of the JSON text of a call's arguments."""

    id: str
    json: str


class ShownCompleted(Struct, tag_field="kind", tag="call_completed"):
    """The arguments of a call are complete."""

    id: str


class ShownPartial(Struct, tag_field="kind", tag="partial"):
    """The arguments of a call as far as they can be read; `cut` leads to the value at whose end they break off."""

    id: str
    name: str
    arguments: Any
    cut: tuple[str | int, ...] | None


Delta = ShownText | ShownThinking | ShownCall | ShownArguments | ShownCompleted | ShownPartial
"""A piece of a reply."""


class Progress(Struct):
    """A tool says how far it is."""

    call: str
    tool: str
    update: str | Json


class Below(Struct):
    """Something of a run that works for this one: `event` is what it would be called there, and `data` what it has."""

    run: str
    call: str
    agent: str
    event: str
    data: Shown


class End(Struct):
    """That the run has ended, or where that was asked for waits; nothing more comes."""

    run: str


class Other(Struct):
    """Something else happened, that is told by what comes after it."""

    kind: str
