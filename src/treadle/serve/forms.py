"""Forms: what the server hands out, as plain data that JSON holds. Pure; decimals are texts, and lose no digit."""

from collections.abc import Sequence
from sys import maxsize
from typing import Any, Literal

import msgspec
from msgspec.structs import asdict

from treadle.agent import Agent
from treadle.drivers.approvals import ApprovalRule
from treadle.drivers.partial import PartialArguments
from treadle.drivers.watching import RunEvent, SpentSoFar, SubRunEvent, ToolProgress, seconds_of_steps
from treadle.journal.info import RunInfo
from treadle.journal.titles import MOST
from treadle.kernel.calls import CallRecord, plain
from treadle.kernel.events import Happened, encode_event
from treadle.kernel.state import RunState
from treadle.kernel.step import Step
from treadle.kernel.stop import Limits
from treadle.models.port import TextDelta, ThinkingDelta, ToolCallCompleted, ToolCallDelta, ToolCallStarted
from treadle.models.profile import profile_of
from treadle.serve import shapes
from treadle.serve.conversations import Told
from treadle.serve.feed import Numbered, Piece
from treadle.serve.status import status_of
from treadle.serve.veil import veiled_tools
from treadle.serve.verdicts import Waits
from treadle.serve.views import Described
from treadle.tools import Tool

Form = dict[str, Any]

Asks = Literal["always", "sometimes", "never"]

_TAG = b'{"event":'


def _fallback(value: Any) -> Any:
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=str, inf_nan_mode="null")


_encoder = msgspec.json.Encoder(enc_hook=_fallback, decimal_format="string")


def encoded(value: Any) -> bytes:
    """`value` as JSON."""
    return _encoder.encode(value)


def form(value: Any) -> Any:
    """`value` as plain data."""
    return msgspec.json.decode(_encoder.encode(value))


def event_json(one: Numbered) -> bytes:
    """A numbered event: `{"number": …, "type": …, "at": …, …}`, with the fields of docs/journal-format.md."""
    body = encode_event(one.event)
    return b'{"number":%d,"type":%b' % (one.number, body[len(_TAG) :])


def piece_form(piece: Piece) -> tuple[str, Any]:
    """The name and the data of what is shown live; see `shapes`. Of a run below that is "event", too."""
    return _shown(piece.event)


def _shown(event: RunEvent) -> tuple[str, Any]:
    match event:
        case TextDelta(text=text):
            return "delta", shapes.ShownText(text)
        case ThinkingDelta(text=text):
            return "delta", shapes.ShownThinking(text)
        case ToolCallStarted(id=call, name=name):
            return "delta", shapes.ShownCall(call, name)
        case ToolCallDelta(id=call, json=json):
            return "delta", shapes.ShownArguments(call, json)
        case ToolCallCompleted(id=call):
            return "delta", shapes.ShownCompleted(call)
        case PartialArguments(id=call, name=name, arguments=arguments, cut=cut):
            return "delta", shapes.ShownPartial(call, name, arguments, cut)
        case ToolProgress(call_id=call, name=name, update=update):
            return "progress", shapes.Progress(call=call, tool=name, update=update)
        case SpentSoFar():
            return "spent", event
        case SubRunEvent(run_id=run_id, call_id=call, agent=agent, event=inner):
            name, data = _shown(inner)
            return "below", shapes.Below(run=run_id, call=call, agent=agent, event=name, data=data)
        case Happened():
            found = msgspec.json.decode(encode_event(event))
            return "event", {"type": found.pop("event"), **found}
        case _:
            return "other", shapes.Other(kind=type(event).__name__)


def line_form(line: RunInfo, driven: bool | None = None) -> shapes.RunLine:
    """A run in one line. What its own model took is told, without the runs that work for it, which have lines of their
    own; the whole is the `total` of a run.
    """
    return shapes.RunLine(
        id=line.run_id,
        agent=line.agent,
        model=line.model,
        status=status_of(line, driven),
        question=line.question,
        started=line.started_at,
        updated=line.updated_at,
        ended=line.updated_at if line.status == "finished" else None,
        seconds=round(line.updated_at - line.started_at, 3),
        steps=line.steps,
        calls=line.tool_calls,
        events=line.events,
        own_usage=line.usage,
        own_cost=line.cost,
        parent=line.parent,
        forked_from=None if line.fork is None else line.fork.run_id,
        user=line.user,
        conversation=line.conversation or None,
        stop=None if line.stop is None else fields(line.stop),
        damage=line.damage,
    )


def run_form(found: Described) -> shapes.WholeRun:
    """A run, with what has come of it and what it waits for."""
    result = found.result
    return shapes.WholeRun(
        **asdict(line_form(found.line, found.driven)),
        driven=found.driven,
        text=result.text,
        message=result.message,
        output=result.output,
        messages=result.messages,
        limits=result.limits,
        total=shapes.Total(usage=fields(result.usage), cost=result.cost, elapsed=result.elapsed),
        decision=None if result.decision is None else fields(result.decision),
        pending=[waits_form(one) for one in found.waits],
        sub_runs=[line_form(one) for one in found.below],
    )


def waits_form(one: Waits) -> shapes.WaitingCall:
    """A call that waits for a person."""
    pending = one.pending
    return shapes.WaitingCall(
        call=pending.call_id,
        tool=pending.tool,
        arguments=plain(pending.arguments_json),
        arguments_json=pending.arguments_json,
        kind=pending.kind,
        effect=one.effect,
        fingerprint=one.fingerprint,
        why=one.why,
        question=pending.question,
        found=pending.found,
        run=pending.run_id,
        allowed=one.allowed,
    )


def steps_form(state: RunState) -> list[shapes.StepLine]:
    """The steps of a run, each in a line."""
    steps = [*state.steps, *(() if state.step is None else (state.step,))]
    seconds = seconds_of_steps(steps, state.elapsed)
    return [step_form(step, state.limits, took) for step, took in zip(steps, seconds, strict=True)]


def step_form(step: Step, limits: Limits, seconds: float) -> shapes.StepLine:
    """A step in one line."""
    return shapes.StepLine(
        number=step.number,
        started=step.started_at,
        replied=step.replied_at,
        ended=step.ended_at,
        seconds=round(seconds, 3),
        model=step.model,
        finish=step.finish,
        text=step.text,
        calls=[call_form(record) for record in step.calls],
        usage=fields(step.usage),
        cost=step.cost,
        stop_checks=list(step.decision.checks(limits)),
    )


def call_form(record: CallRecord) -> shapes.MadeCall:
    """A tool call with its result."""
    return shapes.MadeCall(
        id=record.id,
        tool=record.name,
        arguments=plain(record.arguments_json),
        result=None if record.result is None else record.result.content,
        status=record.status,
        is_error=record.is_error,
        executed=record.executed,
        seconds=record.seconds,
        run=record.run_id,
    )


def agent_form(name: str, agent: Agent[Any, Any], *, inside: bool) -> shapes.AgentLine:
    """An agent; with `inside` its instructions too."""
    config = agent._config
    told = config.instructions
    return shapes.AgentLine(
        name=name,
        description="",
        model=agent.model.name,
        instructions=told if inside and isinstance(told, str) else None,
        tools=[
            shapes.AgentTool(
                name=one.name,
                description=one.spec.description,
                effect=one.effect,
                schema=one.spec.input_schema,
                asks=asks(one, config.approvals),
                external=one.external,
            )
            for one in (agent.tools if inside else veiled_tools(agent.tools)).values()
        ],
        skills=[skill.name for skill in config.skills],
        limits=agent.limits,
        window=profile_of(agent.model).context_window,
    )


def asks(tool: Tool, rules: Sequence[ApprovalRule]) -> Asks:
    """Whether a person is asked before a call, by the tool's word and the rules: "always", "sometimes" or "never"."""
    about = [rule for rule in rules if rule.is_about(tool, lambda: maxsize)]
    at_all = {rule.action for rule in about}
    whole = {rule.action for rule in about if rule.when is None and not rule.repeats}
    own: Asks = "sometimes" if callable(tool.needs_approval) else "always" if tool.needs_approval else "never"
    if "ask" in whole:
        return "always"
    if "allow" in whole:
        own = "never"
    elif "allow" in at_all and own == "always":
        own = "sometimes"
    return "sometimes" if "ask" in at_all and own == "never" else own


def conversation_form(one: Told) -> shapes.ConversationLine:
    """A conversation."""
    return shapes.ConversationLine(
        id=one.name,
        title=one.title[:MOST],
        user=one.user,
        agent=one.last.agent,
        updated=one.last.updated_at,
        run=line_form(one.last),
    )


def fields(struct: msgspec.Struct) -> Form:
    """All fields of a struct, those too that its stored form leaves out."""
    return {name: form(getattr(struct, name)) for name in struct.__struct_fields__}
