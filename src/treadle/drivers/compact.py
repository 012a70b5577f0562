"""Compact: applies an agent's context policies to a run, before a step is prepared and after a request was too long.

What is done is fed as `ContextEdited`, so that a replay does not do it again. The policies themselves are pure and in
`treadle.context.policies`; here is what they need from outside: the model behind `Summarise`, within the run's limits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.context.chosen import with_an_end
from treadle.context.completed import completed
from treadle.context.frames import ACTIVATE
from treadle.context.ids_apart import with_ids_apart
from treadle.context.policies import (
    DEFAULT,
    ClearToolResults,
    ContextPolicy,
    Dropped,
    Edit,
    Facts,
    ShortenResult,
    Summarise,
    by_share,
    ladder,
    resolved,
)
from treadle.context.shown import told_of
from treadle.context.storable import storable_text
from treadle.context.stubs import READ_RESULT, shortened
from treadle.context.tokens import context_tokens, estimate_tokens, likely, most
from treadle.drivers.commit import require_lease
from treadle.drivers.hearing import unexpected, whole_reply
from treadle.drivers.purse.arrived import Arrived
from treadle.drivers.purse.bill import Bill
from treadle.drivers.purse.claims import settle
from treadle.drivers.run import Run
from treadle.drivers.think import may_call_again, seconds_left
from treadle.kernel.errors import IllegalEvent, Misuse, PassesThrough
from treadle.kernel.events import ContextEdited
from treadle.kernel.messages import (
    AssistantMessage,
    Message,
    ModelSettings,
    Opaque,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from treadle.models.errors import ModelError
from treadle.models.fixed import answered_by, fixed_tokens
from treadle.models.port import AttemptFailed, Model, ModelReply, ModelRequest
from treadle.models.profile import profile_of
from treadle.models.sound import sound_reply

LONGEST_TOLD = 2000
"""Tokens of a tool result that the model which summarises is shown; longer ones are shown by their head and tail."""


async def compact(run: Run, *, summaries: bool = True) -> bool:
    """Applies the agent's policies before a step is prepared. Returns whether something was changed.

    Without `summaries` those are passed over that have a model write one.
    """
    policies = run.config.context or ()
    if not summaries:
        policies = tuple(policy for policy in policies if not isinstance(policy, Summarise))
    return bool(policies) and await _apply(run, policies, None)


def overflowed(run: Run) -> bool:
    """Whether the model call under way has failed because the request was too long."""
    failure = run.state.failure
    return failure is not None and failure.kind == "context_overflow" and run.state.phase == "prepared"


async def make_room(run: Run) -> bool:
    """After an overflow: gets the request down to half of what it was, by the agent's policies and then by any means.

    Returns whether something was changed, so that the call may be made again; the failure is cleared then.
    """
    policies = run.config.context
    if policies == ():
        return False
    tokens, window = _tokens(run), _window(run)
    target = (tokens if window is None else min(tokens, window)) // 2
    return await _apply(run, (*(policies or ()), *ladder(target)), target) and await may_call_again(run)


def chosen_policies(
    context: ContextPolicy | Iterable[ContextPolicy] | None, model: Model, by_name: Callable[[Any], Model]
) -> tuple[ContextPolicy, ...] | None:
    """The policies that an agent has: those it was given, checked, or the default where its model's window is known.

    None if it has none and is left to make room after an overflow; empty if it is to leave the history alone.

    Raises:
        Misuse: what was given is no policy, or its marks are shares of a window that the model does not name.
    """
    window = profile_of(model).context_window
    if context is None:
        return None if window is None else DEFAULT
    several = isinstance(context, Iterable) and not isinstance(context, (str, type))
    policies: tuple[Any, ...] = tuple(context) if isinstance(context, Iterable) and several else (context,)
    for policy in policies:
        if isinstance(policy, type) or not isinstance(policy, ContextPolicy):
            raise Misuse(
                "context takes a policy such as KeepFirstAndRecent(high=100_000, low=60_000), a list of them, or [] "
                f"for none at all; it was given {policy!r}"
            )
        if by_share(policy) and window is None:
            raise Misuse(
                f"the marks of {type(policy).__name__} are shares of the context window, and {model.name} does not say "
                "how large that is: give them in tokens, such as high=100_000, low=60_000"
            )
    return tuple(resolved(policy, by_name) for policy in policies)


def reads_results(policies: Iterable[ContextPolicy]) -> bool:
    """Whether the policies put stubs in the place of results, so that the model needs `read_result`."""
    return any(isinstance(policy, (ClearToolResults, ShortenResult)) for policy in policies)


def _window(run: Run) -> int | None:
    return profile_of(run.config.model).context_window


def _messages(run: Run) -> Sequence[Message]:
    """What the policies may edit: what is sent, without the note that the step under way puts at its end."""
    prepared, messages = run.state.prepared, run.state.messages
    if prepared is None:
        return messages
    if prepared.messages is not None:
        return prepared.messages
    return messages[:-1] if prepared.note else messages


def _tokens(run: Run) -> int:
    state = run.state
    if state.prepared is not None and state.prepared.messages is not None:
        estimate = sum(estimate_tokens(message) for message in state.prepared.messages)
        return round((state.tool_tokens + estimate) * likely(state))
    return context_tokens(state)


async def _apply(run: Run, policies: Sequence[ContextPolicy], target: int | None) -> bool:
    """Applies `policies` in order, each to what the one before has left."""
    tokens, changed = _tokens(run), False
    window, readable = _window(run), READ_RESULT in run.config.tools
    # The instructions of a skill stay where the agent that takes the run up does not have it, too.
    keep = frozenset([ACTIVATE, *[tool.name for tool in run.config.tools.values() if tool.keep]])
    reads = frozenset([tool.name for tool in run.config.tools.values() if tool.effect == "read"])
    for policy in policies:
        state = run.state
        since = state.size.messages if target is None else 0
        facts = Facts(window, state.tool_tokens, state.pinned, since, target, readable, run.redact, keep, reads)
        if isinstance(policy, Summarise):
            made = await _summarised(run, policy, tokens, facts)
        else:
            made = Made(_messages(run), policy.edit(_messages(run), tokens, facts))
        if made.edit is not None and not isinstance(made.edit, Edit):
            raise Misuse(f"a context policy returns an Edit or None; {type(policy).__name__} returned {made.edit!r}")
        if made.edit is not None and _feed(run, policy, made, made.edit):
            tokens, changed = made.edit.after, True
        elif made.usage is not None:
            _feed_bill(run, policy, tokens, made)
        settle(run)
    return changed


class Made(Struct, frozen=True):
    """What a policy made of `messages`, and what a `model` that was called for it took."""

    messages: Sequence[Message]
    edit: Edit | None
    detail: str = ""
    usage: Usage | None = None
    cost: Decimal | None = None
    model: str = ""


def _feed(run: Run, policy: ContextPolicy, made: Made, edit: Edit) -> bool:
    """Records an edit as what differs, from the first message that does to the last; False if nothing does."""
    name = type(policy).__name__
    before, sound = made.messages, with_ids_apart(completed(edit.messages))
    after = with_an_end(sound, before, run.state.pinned)
    start, most = 0, min(len(before), len(after))
    while start < most and (before[start] is after[start] or before[start] == after[start]):
        start += 1
    if start == len(before) == len(after):
        return False
    end = 0
    while end < most - start and (before[-1 - end] is after[-1 - end] or before[-1 - end] == after[-1 - end]):
        end += 1
    event = ContextEdited(
        name,
        start,
        len(before) - end,
        tuple([_bare(message) for message in after[start : len(after) - end]]),
        edit.before,
        edit.after,
        made.detail or edit.detail,
        made.usage,
        made.cost,
        made.model,
    )
    try:
        run.feed(event)
    except IllegalEvent as error:
        raise Misuse(f"what the context policy {name} made of the messages cannot be sent: {error}") from error
    return True


def _feed_bill(run: Run, policy: ContextPolicy, tokens: int, made: Made) -> None:
    """Records what a model took that was called for nothing: no message is another."""
    end = len(_messages(run))
    name, paid = type(policy).__name__, (made.usage, made.cost, made.model)
    run.feed(ContextEdited(name, end, end, (), tokens, tokens, made.detail, *paid))


def _bare(message: Message) -> Message:
    """`message` as an edit records it: the whole of a result stands in the journal already."""
    return replace(message, whole=None) if isinstance(message, ToolMessage) and message.whole is not None else message


async def _summarised(run: Run, policy: Summarise, tokens: int, facts: Facts) -> Made:
    """The edit with a summary; without one, and why, where the model did not give it or the limits do not allow it."""
    messages = list(_messages(run))
    dropped, without = policy.covers(messages, tokens, facts), policy.edit(messages, tokens, facts)
    if dropped is None:
        return Made(messages, None)
    await run.driven.in_time()
    model: Model = policy.model or run.config.model
    request = ModelRequest(
        [SystemMessage(policy.instructions), UserMessage(storable_text(told(dropped.covered)))],
        settings=ModelSettings(max_tokens=policy.max_tokens),
        run_id=run.run_id,
        step=len(run.state.steps),
    )
    bill, asked = Bill(), _request_tokens(run, model, request)
    why = await bill.refused(run, model, request.settings, asked)
    if why:
        return Made(messages, without, f"no summary: {why}")
    aside = partial(_set_aside, run, type(policy).__name__, model, tokens, bill)
    await aside()
    try:
        reply, usage = await _asked(run, model, request, bill, aside)
    except asyncio.CancelledError:
        if bill.usage is not None:
            made = Made(messages, None, "no summary: cancelled", bill.usage, bill.cost, model.name)
            _feed_bill(run, policy, tokens, made)
        raise
    except _TooDear as error:
        return Made(messages, without, f"no summary: {error}", bill.usage, bill.cost, model.name)
    except ModelError as error:
        return Made(messages, without, f"no summary: {error.kind}: {error}", bill.usage, bill.cost, model.name)
    bill.add(answered_by(model, reply.model), usage, reply.cost, request.settings)
    cut = "the summary was cut off at its length limit" if reply.finish == "length" else ""
    edit, detail = _with_summary(policy, dropped, reply, facts), cut
    if edit is None:
        edit, detail = without, "no summary: the model gave none that is short enough"
    return Made(messages, edit, detail, bill.usage, bill.cost, reply.model or model.name)


def _with_summary(policy: Summarise, dropped: Dropped, reply: ModelReply, facts: Facts) -> Edit | None:
    text = storable_text(reply.message.text)
    if not text.strip() or reply.finish in ("refusal", "content_filter"):
        return None
    return policy.summarised(dropped, text, facts)


async def _set_aside(run: Run, policy: str, model: Model, tokens: int, bill: Bill) -> None:
    """Records what the next attempt may take, before it is made: after a crash nobody knows whether it was billed."""
    if bill.reserve is not None:
        end = len(_messages(run))
        run.feed(ContextEdited(policy, end, end, (), tokens, tokens, model=model.name, reserve=bill.reserve))
    await run.commit()


class _TooDear(Exception):
    """A model that stands for several may not ask the next of them: what the last one took leaves too little."""


async def _asked(
    run: Run, model: Model, request: ModelRequest, bill: Bill, aside: Callable[[], Awaitable[None]]
) -> tuple[ModelReply, Usage]:
    """The model's reply and what it took, tried again as often as the agent's `retries` say and its limits allow.

    What the attempts that failed have taken is added to `bill`.
    """
    attempt, asked, most = 1, _request_tokens(run, model, request), request.settings.max_tokens
    arrived = Arrived()

    def count(failed: Model) -> None:
        bill.add(failed, arrived.usage(asked, most), arrived.cost, request.settings)

    async def passed_over(event: AttemptFailed) -> Arrived:
        nonlocal arrived
        count(event.error.model or model)
        arrived = Arrived()
        if why := await bill.refused(run, model, request.settings, asked):
            raise _TooDear(why)
        await aside()
        return arrived

    while True:
        require_lease(run)
        try:
            reply = sound_reply(await whole_reply(run, model, request, arrived, passed_over))
            return reply, arrived.paid(reply, asked, most)
        except asyncio.CancelledError as error:
            if run.driven.is_cancelled():
                arrived.given_up()
                count(model)
                raise
            failure: ModelError = unexpected(error, model)
        except (Misuse, PassesThrough, _TooDear):
            raise
        except (Exception, SystemExit) as error:
            failure = error if isinstance(error, ModelError) else unexpected(error, model)
        count(failure.model or model)
        wait = run.config.retries.delay(failure, attempt, seconds_left(run))
        if wait is None or await bill.refused(run, model, request.settings, asked):
            raise failure
        await aside()
        await asyncio.sleep(wait)
        attempt, arrived = attempt + 1, Arrived()


def _request_tokens(run: Run, model: Model, request: ModelRequest) -> int:
    estimate = fixed_tokens(model, (), None) + sum(estimate_tokens(message) for message in request.messages)
    return round(estimate * most(run.state))


def told(messages: Iterable[Message]) -> str:
    """`messages` as one text, for a model that is to summarise them."""
    lines: list[str] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            for part in message.content:
                if isinstance(part, Text) and part.text.strip():
                    lines.append(f"ASSISTANT: {part.text.strip()}")
                elif isinstance(part, Opaque) and (shown := told_of(part, message)):
                    lines.append(f"ASSISTANT: {shown}")
                elif isinstance(part, ToolCall):
                    lines.append(f"ASSISTANT calls {part.name} with {part.arguments or '{}'}")
        elif isinstance(message, ToolMessage):
            failed = " failed" if message.is_error else ""
            lines.append(
                f"TOOL {message.name}{failed}: {shortened(message, LONGEST_TOLD, readable=False, reads=False).text}"
            )
        elif isinstance(message, UserMessage):
            lines.append(f"USER: {message.text}")
    return "\n\n".join(lines)
