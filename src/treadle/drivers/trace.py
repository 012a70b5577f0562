"""The trace of a run for people: a few plain lines for each event, for programs that print what happens.

Knows nothing but the event at hand. Neighbours: `watching.py`, what can be watched; the command line tells more, as it
folds the events.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from treadle.drivers.watching import RunEvent, SubRunEvent, ToolProgress
from treadle.kernel.events import (
    ApprovalDecided,
    ApprovalRequested,
    ContextEdited,
    Event,
    MessageAdded,
    ModelFailed,
    ModelReplied,
    NudgeGiven,
    ResultAwaited,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolReacted,
    ToolsListed,
    ToolStarted,
)
from treadle.kernel.messages import Message, ToolCall, UserMessage, text_of
from treadle.kernel.stop import Stop, counted
from treadle.visible import visible

LONGEST = 600
"""Characters of a text that a trace shows."""


@runtime_checkable
class _Ended(Protocol):
    """A run that has come to its end, such as a `RunResult`."""

    @property
    def events(self) -> Sequence[Event]:
        """What happened."""


def print_trace(event: RunEvent | _Ended) -> None:
    """Prints what a run does, as it happens: `agent.run("…", on_event=print_trace)`; or of a result, what it did.

    The question, each step with why its reply ended, each call with its input and result, the answer, and why the run
    stopped. Texts are cut to 600 characters, and what cannot be seen in them is escaped.
    """
    for one in event.events if isinstance(event, _Ended) else (event,):
        for line in trace_lines(one):
            print(line, flush=True)


def trace_lines(event: RunEvent) -> list[str]:
    """The lines that `print_trace` prints for an event; none for pieces of a reply."""
    match event:
        case RunStarted():
            return [f"run {event.run_id} of {_shown(event.agent)} ({_shown(event.model)})", *_asked(event.messages)]
        case StepPrepared(landing=landing):
            last = "" if landing is None else f", the last, without tools: {_because(landing)}"
            return [f"step {event.step}{last}"]
        case ModelReplied(message=message):
            said = [f"  says: {_shown(message.text)}"] if message.text.strip() else []
            calls = [f"  calls {_shown(one.id)}: {_shown(one.name)}({_shown(one.arguments)})" for one in message.calls]
            return [*said, *calls, f"  reply ended: {event.finish}"]
        case ModelFailed(error=error, retry_in=wait):
            then = "" if wait is None else f"; asked again in {wait:.1f} s"
            return [f"  model failed: {_shown(error.message)}{then}"]
        case ToolStarted(call_id=call_id, name=name) if name:
            return [f"  begun early, {_shown(call_id)}: {_shown(name)}({_shown(event.arguments)})"]
        case ToolFinished(call_id=call_id, is_error=is_error):
            return [f"  {'error' if is_error else 'result'} of {_shown(call_id)}: {_shown(text_of(event.content))}"]
        case ToolProgress(name=name, update=update):
            return [f"  {_shown(name)}: {_shown(str(update))}"]
        case SubRunEvent(agent=agent, event=inner):
            return [f"  {_shown(agent)} | {line}" for line in trace_lines(inner)]
        case RunPaused(stop=stop):
            return [f"paused: {_because(stop)}"]
        case RunFinished(stop=stop):
            return [f"stop: {_because(stop)}"]
        case _:
            return _between(event)


def _between(event: RunEvent) -> list[str]:
    """The lines of what is said and decided between steps."""
    match event:
        case MessageAdded(message=message):
            return [f"  user: {_shown(message.text)}"]
        case NudgeGiven(text=text):
            return [f"  treadle: {_shown(text)}"]
        case ToolReacted(call_id=call_id, arguments=str(arguments)):
            return [f"  {_shown(call_id)} is made with other arguments: {_shown(arguments)}"]
        case ToolReacted(call_id=call_id, action="replace", content=content):
            word = "an error" if event.is_error else "this"
            return [f"  {_shown(call_id)} is replaced by {word}: {_shown(text_of(content))}"]
        case ToolReacted(call_id=call_id, call=ToolCall() as call):
            return [f"  {_shown(call_id)} is made anew as {_shown(call.name)}({_shown(call.arguments)})"]
        case ToolReacted(call_id=call_id, reason=reason):
            return [f"  {_shown(call_id)} is kept as it is{f': {_shown(reason)}' if reason else ''}"]
        case ApprovalRequested(call_id=call_id):
            return [f"  waits for a decision: {_shown(call_id)}"]
        case ApprovalDecided(call_id=call_id, approved=True, arguments=str(arguments)):
            return [f"  allowed with other arguments: {_shown(call_id)}: {_shown(arguments)}"]
        case ApprovalDecided(call_id=call_id, approved=True):
            # It may be one whose own run was decided on, and denied what was asked there.
            return [f"  goes on after a decision: {_shown(call_id)}"]
        case ApprovalDecided(call_id=call_id, reason=reason):
            return [f"  refused: {_shown(call_id)}{f': {_shown(reason)}' if reason else ''}"]
        case ResultAwaited(call_id=call_id, wait=wait):
            return [f"  {'waits for a result' if wait else 'ends the run'}: {_shown(call_id)}"]
        case ContextEdited(policy=policy, before=before, after=after):
            return [f"  {policy} made room: about {before:,} tokens became {after:,}"]
        case ToolsListed(listed=tools):
            whose = "servers list" if any(one.server for one in tools) else "who began it brings"
            return [f"  {whose} {counted(len(tools), 'tool')}: {_shown(', '.join(one.name for one in tools))}"]
        case RunResumed():
            return ["  taken up again"]
        case _:
            return []


def _asked(messages: tuple[Message, ...]) -> list[str]:
    last = messages[-1] if messages else None
    return [f"  user: {_shown(last.text)}"] if isinstance(last, UserMessage) else []


def _because(stop: Stop) -> str:
    return f"{stop.reason}: {_shown(stop.detail)}" if stop.detail else stop.reason


def _shown(text: str) -> str:
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
    return "\n    ".join(visible(line) for line in cut.split("\n"))
