"""What has happened: the events of a run, in their order the journal of it, from which everything else is derived.

An event is a fact with its time (`at`, Unix seconds) and is never changed afterwards. `fold.py` says which event is
legal when; a stored event is JSON tagged by `event`.
"""

from decimal import Decimal
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import Struct

from treadle.kernel.accounts import Spent
from treadle.kernel.calls import Awaited
from treadle.kernel.messages import (
    AssistantMessage,
    Content,
    FinishReason,
    ListedTool,
    Message,
    ModelSettings,
    ToolCall,
    Usage,
    UserMessage,
)
from treadle.kernel.stop import Decision, Limits, OnLimit, Stop, StopReason

FORMAT = 1
"""The version of the events' stored form; a journal of a higher one is refused, never guessed at."""


class ErrorInfo(Struct, frozen=True, gc=False, omit_defaults=True):
    """What went wrong, as data: kind and words, may trying again help, and after how many seconds, if it was said."""

    kind: str
    message: str
    retryable: bool = False
    status: int | None = None
    request_id: str = ""
    retry_after: float | None = None


class Parent(Struct, frozen=True, gc=False):
    """The run, step and call that a sub-run works for; `began` is when that run did, None in earlier journals."""

    run_id: str
    step: int
    call_id: str
    began: float | None = None


class Happened(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="event"):
    """What all events have: when they happened, in Unix seconds, and whose doing it was, as far as it was said."""

    at: float = 0.0
    by: str = ""


class RunStarted(Happened, frozen=True, gc=False, tag="run_started"):
    """A run began: with these messages, under these limits, offering these tools; with `model` by that name if `named`.

    `polling` are tools for which calling again is progress, `writes` those that say that they change something;
    `tool_tokens` estimates what tools take of each request; `watch`: is progress watched? `format`: the form's version.

    `rules` says which of its calls somebody must decide on and which are never made, a line a rule, and `hooks` what
    else of the application's takes part in it, by name: only an agent that has them all may take the run up. They are
    None in a journal of treadle 0.1. `one_step` is whether the run ends after its first step. `user` is whose it is,
    `conversation` the name of its own, `origin` what goes on with it after a crash, `foreign_skills` are active in its
    messages and not its agent's. `asked`: where in those is what people asked, if not only at the end (a hand-off).
    `nonce` tells keys of its calls from those of a deleted run of its name (below 0: only of decisions); 0: new name.
    """

    run_id: str
    messages: tuple[Message, ...]
    format: int
    limits: Limits = Limits()
    on_limit: OnLimit = "answer"
    agent: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    polling: tuple[str, ...] = ()
    tool_choice: str = "auto"
    settings: ModelSettings = ModelSettings()
    tool_tokens: int = 0
    watch: bool = True
    parent: Parent | None = None
    writes: tuple[str, ...] = ()
    rules: tuple[str, ...] | None = None
    hooks: tuple[str, ...] | None = None
    one_step: bool = False
    user: str = ""
    conversation: str = ""
    origin: str = ""
    foreign_skills: tuple[str, ...] = ()
    asked: tuple[int, ...] = ()
    nonce: int = 0
    named: bool = False


class Reserve(Struct, frozen=True, gc=False):
    """The worst case of a model call: tokens, `reply` of them in the reply; dollars (None if no limit on money).

    `limit` is the stop reason of the limit that leaves the reply fewer tokens than it may have, if one does.
    """

    tokens: int
    usd: Decimal | None = None
    reply: int = 0
    limit: StopReason | None = None


class StepPrepared(Happened, frozen=True, gc=False, tag="step_prepared"):
    """A step was decided on and its request chosen; what is None is as the run started with it.

    `landing` is why this is the last call, made without tools, and `note` what the model is told about it. `messages`
    replaces the history for this step only. `stuck` is how far the run has gone up the ladder against getting nowhere
    (1 told so, 2 tools withheld), and `withheld` the tools that are not offered for that.
    """

    step: int
    decision: Decision
    landing: Stop | None = None
    note: str = ""
    model: str | None = None
    instructions: str | None = None
    tools: tuple[str, ...] | None = None
    tool_choice: str | None = None
    settings: ModelSettings | None = None
    messages: tuple[Message, ...] | None = None
    reserve: Reserve | None = None
    stuck: int = 0
    withheld: tuple[str, ...] = ()


class ModelReplied(Happened, frozen=True, gc=False, tag="model_replied"):
    """The model's whole reply. `cost` is None if the price is unknown; `handed_in` is for a final tool's typed answer.

    `estimate` is what was estimated of the request, as nobody had counted it; `allowed` how many calls the runs above
    leave it (None if they set no limit); `early` which calls had begun, as which id (None for those that are alike).
    """

    step: int
    message: AssistantMessage
    usage: Usage = Usage()
    finish: FinishReason = "stop"
    finish_detail: str = ""
    model: str = ""
    request_id: str = ""
    cost: Decimal | None = None
    estimate: int = 0
    allowed: int | None = None
    handed_in: bool = False
    early: dict[str, str] | None = None


class ModelFailed(Happened, frozen=True, gc=False, tag="model_failed"):
    """A model call failed: that of `model`. `text` is what had arrived and is withdrawn.

    `retry_in` is the seconds until the call is tried again; None if it is not. `usage` and `cost` are what the call has
    taken all the same, as its provider says, and estimated where it does not; None if nothing had arrived.
    """

    step: int
    error: ErrorInfo
    attempt: int = 1
    text: str = ""
    retry_in: float | None = None
    usage: Usage | None = None
    cost: Decimal | None = None
    model: str = ""


class ToolStarted(Happened, frozen=True, gc=False, tag="tool_started"):
    """A tool call was handed to its tool; from here on it may have had its effect, a change if it `writes`.

    A call that starts while the reply is still arriving brings its tool's `name` and its `arguments` along.
    """

    step: int
    call_id: str
    name: str = ""
    arguments: str = ""
    writes: bool = False


class ToolFinished(Happened, frozen=True, gc=False, tag="tool_finished"):
    """A tool call came back: what the model is shown, and what the application is given.

    It is its one result, unless `provisional`: the application has yet to look at it. `spent` is what a run below took
    for it; `final`: it is the run's answer (a hand-off); `raised` is the type and last frame of an exception.
    """

    step: int
    call_id: str
    content: str | tuple[Content, ...]
    is_error: bool = False
    app: Any = None
    spent: Spent | None = None
    final: bool = False
    provisional: bool = False
    raised: str = ""


class ToolReacted(Happened, frozen=True, gc=False, tag="tool_reacted"):
    """What the application made of a call: before it is made a `change` of its arguments (`arguments`, JSON text).

    Of its result: kept, replaced by `content`, or `call` made in its place, an `other` one; `reason` is why it is kept.
    """

    step: int
    call_id: str
    action: Literal["keep", "replace", "call", "change"]
    content: str | tuple[Content, ...] = ""
    is_error: bool = False
    app: Any = None
    call: ToolCall | None = None
    reason: str = ""
    arguments: str | None = None
    other: bool | None = None


class ApprovalRequested(Happened, frozen=True, gc=False, tag="approval_requested"):
    """A person has to decide on a call: a rule or its tool says so, or a crash left its outcome unknown."""

    step: int
    call_id: str
    why: Literal["policy", "interrupted"] = "policy"
    reason: str = ""


class ApprovalDecided(Happened, frozen=True, gc=False, tag="approval_decided"):
    """A person decided on a call; `reason` is shown to the model, `arguments` (JSON text) replace the call's own.

    It is told so where `corrects` says that it wrote others. `answer` (JSON text) is for a tool that asked.
    """

    step: int
    call_id: str
    approved: bool
    reason: str = ""
    arguments: str | None = None
    answer: str | None = None
    corrects: bool = False
    other: bool | None = None


class ResultAwaited(Happened, frozen=True, gc=False, tag="result_awaited"):
    """A tool without a function was called: the run ends with it or, with `wait`, pauses for a result from outside.

    Where a sub-run that works on the call waits for someone, `run_id` is that run, `waits` for what, and `spent` what
    it has taken so far. With a `question` a person is asked for the result of a call that did run; or, with `again`,
    for the answer with which its tool goes on, which is given that back.
    """

    step: int
    call_id: str
    wait: bool = False
    run_id: str = ""
    waits: tuple[Awaited, ...] = ()
    question: str = ""
    spent: Spent | None = None
    again: str = ""


class MessageAdded(Happened, frozen=True, gc=False, tag="message_added"):
    """Someone steered the run; the message is taken up before the next model call. `origin` is what said it."""

    message: UserMessage
    origin: str = ""


class ContextEdited(Happened, frozen=True, gc=False, tag="context_edited"):
    """A context policy put `messages` in the place of those from index `start` up to, not including, `stop`.

    `before` and `after` are the tokens of the request, counted and estimated. `usage` and `cost` are those of a `model`
    that was called for it, and `detail` says what else there is to say, such as why there is no summary. With a
    `reserve` nothing is edited yet: a model is about to be called for it, which may take so much.
    """

    policy: str
    start: int
    stop: int
    messages: tuple[Message, ...]
    before: int = 0
    after: int = 0
    detail: str = ""
    usage: Usage | None = None
    cost: Decimal | None = None
    model: str = ""
    reserve: Reserve | None = None


class ToolsListed(Happened, frozen=True, gc=False, tag="tools_listed"):
    """Servers, or who began the run, said what tools they have, before the first step or since the last: all `listed`.

    `tool_tokens` estimates what the descriptions of these and of the agent's own tools take of each request.
    """

    listed: tuple[ListedTool, ...]
    tool_tokens: int = 0


class NudgeGiven(Happened, frozen=True, gc=False, tag="nudge_given"):
    """treadle told the model something: its reply was empty, not what was asked for (`fault`), or it is `stuck`."""

    text: str
    fault: bool = False
    stuck: bool = False


class Queued(Struct, frozen=True, gc=False, omit_defaults=True):
    """How a run waits for a worker: whose turn it takes (`key`), higher `priority` first, not before `at`."""

    key: str = ""
    priority: int = 0
    at: float | None = None


class RunPaused(Happened, frozen=True, gc=False, tag="run_paused"):
    """The run stopped for a while; nothing of it is in flight. With `queued` a worker is to go on with it."""

    stop: Stop
    queued: Queued | None = None


class RunResumed(Happened, frozen=True, gc=False, tag="run_resumed"):
    """A process took the run up, after a pause, a crash or its end; calls that were in flight then are interrupted.

    `limits` replaces the run's limits, if given. `lost` is the worst case of a model call that was under way: nobody
    knows whether it was billed. `budgets` are those that it draws on from here on beside what it began under; and which
    of these it does not, with "without " before them.
    """

    limits: Limits | None = None
    lost: Spent | None = None
    budgets: tuple[str, ...] = ()


class RunForked(Happened, frozen=True, gc=False, tag="run_forked"):
    """Run `run_id` began as a fork of the run whose the events before this one are; what these took that run has paid.

    `model`, had by that name if `named`, `limits` and `instructions`, the system message, replace those of that run.
    `taken` is what runs below took, by call, for other results: it is paid. `again` events after it are told once more.
    """

    run_id: str
    model: str = ""
    limits: Limits | None = None
    taken: dict[str, Spent] = {}
    origin: str = ""
    instructions: str | None = None
    again: int = 0
    named: bool = False


class RunFinished(Happened, frozen=True, gc=False, tag="run_finished"):
    """The run ended, for the one reason in `stop`. `output` is the typed answer or an external tool's arguments."""

    stop: Stop
    decision: Decision | None = None
    output: Any = None


CallEvent = ToolStarted | ToolFinished | ToolReacted | ApprovalRequested | ApprovalDecided | ResultAwaited
Event = (
    RunStarted
    | StepPrepared
    | ModelReplied
    | ModelFailed
    | CallEvent
    | MessageAdded
    | ContextEdited
    | ToolsListed
    | NudgeGiven
    | RunPaused
    | RunResumed
    | RunForked
    | RunFinished
)
KINDS: Final[frozenset[type]] = frozenset(get_args(Event))

_encoder = msgspec.json.Encoder(decimal_format="string")
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """The stored form of an event: one JSON object."""
    return _encoder.encode(event)


def decode_event(data: bytes | str) -> Event:
    """The event that `encode_event` stored.

    Raises:
        msgspec.ValidationError: it is no event of a form that this version knows.
        msgspec.DecodeError: it is not JSON.
    """
    return _decoder.decode(data)
