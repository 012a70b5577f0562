"""The story of a run: perceive, think, act, and why it went on, line by line as its events happen.

The same view tells a run under way (`ask --trace`) and one from the journal (`show`). Steps are numbered from 0, as in
the library and in the journal.
"""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from treadle.cli.terminal import shorten
from treadle.context.shown import text_with_shown
from treadle.context.tokens import context_tokens
from treadle.drivers.watching import RunEvent, SpentSoFar, SubRunEvent, ToolProgress, asked_in, replied_in
from treadle.kernel.calls import CallRecord
from treadle.kernel.events import (
    ApprovalDecided,
    ApprovalRequested,
    ContextEdited,
    Event,
    Happened,
    MessageAdded,
    ModelFailed,
    ModelReplied,
    NudgeGiven,
    ResultAwaited,
    RunFinished,
    RunForked,
    RunPaused,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolReacted,
    ToolsListed,
)
from treadle.kernel.fold import fold, fold_all
from treadle.kernel.messages import AssistantMessage, Message, ToolCall, text_of
from treadle.kernel.names import escaped
from treadle.kernel.state import RunState
from treadle.kernel.stop import Check, Decision, Limits, Stop

ARGUMENTS = 160
RESULT = 200
TEXT = 200
PREVIEW = 80
"""How many cells of a call's arguments, a result, a text and a message in context are shown."""
PREVIEWS = 6
"""How many messages are shown at most that are new in the context, besides the first of them."""


class Story:
    """Tells a run.

    Args:
        say: called with each line: its label ("step" for a heading, "" for a further line) and its text.
        texts: whether to tell what the model said in full.
    """

    def __init__(self, say: Callable[[str, str], None], *, texts: bool = False) -> None:
        self._say = say
        self._texts = texts
        self._known: tuple[Message, ...] = ()
        self._below: dict[str, tuple[Story, RunState]] = {}

    def tell(self, events: Iterable[Event]) -> RunState:
        """Tells all of `events`, and returns the state that they lead to."""
        state = RunState()
        for event in events:
            before, state = state, fold(state, event)
            self.see(event, before, state)
        return state

    def see(self, event: RunEvent, before: RunState, after: RunState) -> None:
        """Tells what `event` adds."""
        match event:
            case StepPrepared():
                self._perceive(event, before, after)
            case ModelReplied():
                self._think(event, before)
            case ModelFailed():
                self._failed(event, before)
            case ToolFinished(call_id=call_id):
                record = record_of(after, event.step, call_id)
                given = is_answered_from_outside(record_of(before, event.step, call_id))
                self._act(record, text_of(event.content), event.is_error, given=given)
            case ToolReacted():
                self._reacted(event, record_of(before, event.step, event.call_id))
            case ToolProgress(name=name, update=update):
                self._say("", f"{name}: {shorten(str(update), TEXT)}")
            case SubRunEvent(run_id=run_id, agent=agent, event=inner):
                self._see_below(run_id, agent, inner)
            case SpentSoFar(usage=usage) if usage.total_tokens:
                self._say("", _so_far(event))
            case RunFinished(stop=stop, decision=decision):
                self._left(before, after)
                self._verdict(stop, decision, after.limits)
            case _:
                self._pauses(event, before, after)

    def _failed(self, event: ModelFailed, before: RunState) -> None:
        one_of_several = event.model not in ("", asked_in(before))
        who, again = (f"{event.model} ", "; asking another model") if one_of_several else ("", "")
        if event.retry_in is not None and not one_of_several:
            again = f"; asking again in {event.retry_in:.1f} s"
        self._say("error", f"{who or 'the model call '}failed: {shorten(event.error.message, TEXT)}{again}")

    def _see_below(self, run_id: str, agent: str, event: RunEvent) -> None:
        """Tells what a sub-run does, under its agent's name."""
        if run_id not in self._below:
            told = Story(lambda label, text: self._say("", f"{agent}: {label + '  ' if label else ''}{text}"))
            self._below[run_id] = (told, RunState())
        story, before = self._below[run_id]
        after = before
        if isinstance(event, Happened) and (before.events or isinstance(event, RunStarted)):
            after = fold(before, event)
        if after.events:
            story.see(event, before, after)
        self._below[run_id] = (story, after)

    def _reacted(self, event: ToolReacted, seen: CallRecord) -> None:
        """Tells what the application made of a call before it is made, or of the result that was told before."""
        if event.action == "change" and event.arguments is not None:
            self._say("act", f"{escaped(event.call_id)} is made with {shorten(event.arguments, ARGUMENTS)}")
        elif event.action == "call" and event.call is not None:
            same = (event.call.name, event.call.arguments) == (seen.doing.name, seen.doing.arguments)
            how = "made again" if same else "replaced by another call"
            self._say("act", f"{escaped(event.call_id)} is {how}: {described(event.call)}")
        elif event.action == "replace":
            label, word = ("error", "an error:") if event.is_error else ("", "->")
            self._say(label, f"replaced by {word} {shorten(text_of(event.content), RESULT)}")
        elif event.reason:
            self._say("", f"the result before it is kept: {shorten(event.reason, TEXT)}")

    def _pauses(self, event: RunEvent, before: RunState, after: RunState) -> None:
        match event:
            case ApprovalRequested(step=step, call_id=call_id, why=why):
                question = "needs a decision" if why == "policy" else "was interrupted; run it again?"
                self._say("act", f"{described(record_of(after, step, call_id).doing)} {question} ({escaped(call_id)})")
            case ApprovalDecided(step=step, call_id=call_id):
                self._decided(event, record_of(before, step, call_id))
            case ResultAwaited(step=step, call_id=call_id, wait=wait, run_id=run_id, question=question):
                how = "is answered from outside" if wait else "ends the run"
                how = "gave that; a person is asked about it" if question else how
                if run_id:
                    how = f"waits, as its own run {run_id} does"
                self._say("act", f"{described(record_of(after, step, call_id).doing)} {how} ({escaped(call_id)})")
            case ContextEdited(reserve=reserve) if reserve is not None:
                self._say("perceive", f"{event.policy} asks {event.model} for a summary")
            case ContextEdited(policy=policy, before=tokens, after=left, detail=detail):
                more = f" ({detail})" if detail else ""
                self._say("perceive", f"{policy} made room: about {tokens:,} tokens became {left:,}{more}")
            case ToolsListed(listed=tools):
                told = shorten(", ".join(one.name for one in tools), TEXT)
                whose = "servers list" if any(one.server for one in tools) else "who began it brings"
                self._say("perceive", f"{whose} {count(len(tools), 'tool')}: {told}")
            case MessageAdded(message=message):
                self._say("perceive", f"someone added: {shorten(message.text, TEXT)}")
            case NudgeGiven(text=text):
                self._say("perceive", f"treadle told the model: {shorten(text, TEXT)}")
            case RunPaused(stop=stop):
                self._say("verdict", f"paused: {_because(stop)}")
            case RunResumed(lost=lost):
                took = "" if lost is None else f"{lost.usage.total_tokens:,} tokens"
                more = f"; a model call that was under way may have been billed: {took} are counted for it"
                self._say("", f"taken up again{more if took else ''}")
            case RunForked(run_id=run_id):
                self._say("", f"from here on it is run {run_id}, a fork of run {before.run_id}")
            case _:
                pass

    def _decided(self, event: ApprovalDecided, asked: CallRecord) -> None:
        name = escaped(event.call_id)
        if asked.run_id and event.approved:
            self._say("act", f"{name} goes on: it was decided in its own run {asked.run_id}")
            return
        word = "refused" if not event.approved else "allowed to run again" if asked.in_doubt else "allowed"
        more = f": {event.reason}" if event.reason else ""
        more = f", with {shorten(event.arguments, ARGUMENTS)}" if event.arguments and not more else more
        self._say("act", f"{name} was {word}{more}")

    def _perceive(self, event: StepPrepared, before: RunState, after: RunState) -> None:
        if event.step:
            self._go(event.decision, after.limits)
        self._say("step", str(event.step))
        if event.landing is not None:
            self._say("perceive", f"the last call, without tools: {_because(event.landing)}")
        messages = after.messages if event.messages is None else event.messages
        tools = after.tools if event.tools is None else event.tools
        choice = event.tool_choice or after.tool_choice
        offered = "no tools" if choice == "none" or not tools else f"{count(len(tools), 'tool')} offered"
        if choice not in ("auto", "none"):
            offered += f" (tool choice {choice})"
        self._say("perceive", f"{count(len(messages), 'message')}, about {context_tokens(before):,} tokens; {offered}")
        self._previews(messages)

    def _previews(self, messages: Sequence[Message]) -> None:
        """Tells which messages the model is given that it was not given at the step before."""
        told = tuple(messages)
        same = next((at for at, (new, old) in enumerate(zip(told, self._known, strict=False)) if new != old), None)
        first = min(len(told), len(self._known)) if same is None else same
        self._known = told
        left_out = range(first + 1, len(told) - PREVIEWS + 1)
        for number in range(first, len(told)):
            if number not in left_out:
                self._say("", f"[{number}] {told[number].role}: {shorten(_preview(told[number]), PREVIEW)}")
            elif number == left_out[0]:
                self._say("", f"… {count(len(left_out), 'message')} more")

    def _think(self, event: ModelReplied, before: RunState) -> None:
        calls = event.message.calls
        parts = []
        if event.message.text and not self._texts:
            parts.append(f"says {len(event.message.text):,} characters" if not calls else "says something")
        if calls:
            parts.append(f"asks for {count(len(calls), 'tool call')}")
        took = 0.0 if before.step is None else replied_in(before.step, event.at)
        facts = [f"{took:.2f} s", f"finish {event.finish}"]
        if event.usage is not None:
            about = "about " if event.usage.estimated else ""
            facts.insert(0, f"{about}{event.usage.input_tokens:,} tokens in, {event.usage.output_tokens:,} out")
        if event.cost:
            facts.append(f"{'about ' if event.usage.estimated else ''}${event.cost:f}")
        self._say("think", f"{event.model} {' and '.join(parts) or 'replies'} ({'; '.join(facts)})")
        if self._texts:
            for line in event.message.text.splitlines():
                self._say("", line)

    def _act(self, record: CallRecord, result: str, is_error: bool, *, given: bool = False) -> None:
        took = "" if given or record.seconds is None else f" ({record.seconds:.2f} s)"
        self._say("act", f"{described(record.doing)}{' was given its result from outside' if given else ''}")
        self._say("error" if is_error else "", f"{'' if is_error else '-> '}{shorten(result, RESULT)}{took}")

    def _left(self, before: RunState, after: RunState) -> None:
        """The calls that were open when the run ended, which have been answered by a note."""
        if before.step is None or before.step.message is None or not after.steps:
            return
        known = {record.id for record in before.step.calls if record.result is not None or record.found is not None}
        known -= {record.id for record in before.step.calls if record.status == "started" or record.in_doubt}
        for record in after.steps[len(after.steps) - 1].calls:
            if record.id not in known and record.result is not None:
                self._act(record, record.result.text, record.is_error)

    def _go(self, decision: Decision, limits: Limits) -> None:
        word = "go on" if decision.verdict == "go" else "one last call"
        self._say("verdict", f"{word}: {looked_at(decision.checks(limits))}")

    def _verdict(self, stop: Stop, decision: Decision | None, limits: Limits) -> None:
        rows = "" if decision is None else looked_at(decision.checks(limits))
        self._say("verdict", f"stop: {_because(stop)}{f' ({rows})' if rows else ''}")


def is_answered_from_outside(record: CallRecord) -> bool:
    """Whether a result that comes for a call that stands so comes from outside, rather than from its tool."""
    return record.status in ("awaited", "needs_approval") and not record.run_id


def in_flight(events: Sequence[Event]) -> list[CallRecord]:
    """The calls that were under way when the run ended, or at its last event: nobody knows what they did."""
    state = fold_all(events[:-1] if events and isinstance(events[-1], RunFinished) else events)
    calls = () if state.step is None else state.step.calls
    early = [record for record in state.early if record.status == "started"]
    return [*early, *(record for record in calls if record.status == "started" or record.in_doubt)]


def is_harmless(record: CallRecord, events: Sequence[Event]) -> bool:
    """Whether its tool said, as it began, that to run it again does no harm; a journal of 0.1.0 does not tell."""
    return not record.writes and fold_all(events[:1]).started.rules is not None


def described(call: ToolCall) -> str:
    """A call as it would be written in Python, shortened; a number has the digits that the model gave it."""
    import msgspec

    name, text = shorten(call.name, ARGUMENTS), call.arguments
    try:
        given = msgspec.json.Decoder(float_hook=Decimal).decode(text or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        given = text
    if not isinstance(given, dict):
        return f"{name}({shorten(text, ARGUMENTS)})"
    written = msgspec.json.Encoder(decimal_format="number").encode
    shown = ", ".join(f"{key}={written(value).decode()}" for key, value in given.items())
    return f"{name}({shorten(shown, ARGUMENTS)})"


def looked_at(checks: Iterable[Check]) -> str:
    """What was looked at in a decision, on one line."""
    return ", ".join(
        f"{row.name.replace('_', ' ')} {number(row.value)}"
        + (f" of {number(row.bound)}" if row.bound is not None else "")
        + (" (met)" if row.met else "")
        for row in checks
    )


def number(value: float | int | str | None) -> str:
    """A value of a check, as it is shown."""
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def decisions(state: RunState) -> Sequence[tuple[str, Decision]]:
    """Every decision record of a run, with what it was about: before each step, and at the end."""
    steps = [*state.steps, *(() if state.step is None else (state.step,))]
    found = [(f"before step {step.number}", step.decision) for step in steps]
    if state.decision is not None:
        found.append(("at the end", state.decision))
    return found


def record_of(state: RunState, at: int, call_id: str) -> CallRecord:
    """The record of a call of step `at`, also of one that was started while the reply was still arriving."""
    early = [record for record in state.early if record.id == call_id]
    if early:
        return early[0]
    step = state.step if state.step is not None and state.step.number == at else state.steps[at]
    return next(record for record in step.calls if record.id == call_id)


def _preview(message: Message) -> str:
    """What a message says, or asks for, in a line."""
    calls = message.calls if isinstance(message, AssistantMessage) else ()
    asked = ", ".join(described(call) for call in calls)
    text = text_with_shown(message) if isinstance(message, AssistantMessage) else message.text
    return " ".join(part for part in (text, f"asks for {asked}" if asked else "") if part) or "(no text)"


def went_wrong(events: Iterable[Event], most: int = 10) -> list[str]:
    """The steps of a run at which something failed, each with what and why, in a line; the first `most` of them."""
    found: list[str] = []
    state = RunState()
    for event in events:
        state = fold(state, event)
        match event:
            case ToolFinished(is_error=True, provisional=False, step=step, call_id=call_id):
                name = shorten(record_of(state, step, call_id).doing.name, TEXT)
                found.append(f"step {step}: {name}: {shorten(text_of(event.content), TEXT)}")
            case ModelFailed(step=step):
                found.append(f"step {step}: the model call: {shorten(event.error.message, TEXT)}")
            case RunFinished(stop=stop) if not stop.finished:
                found.append(f"at the end: {shorten(_because(stop), TEXT)}")
            case _:
                pass
    return found if len(found) <= most else [*found[: most - 1], f"… {len(found) - most} more", found[-1]]


def _so_far(spent: SpentSoFar) -> str:
    """What a run has spent so far, and what is left of its limits."""
    about = "about " if spent.estimated else ""
    cost = "" if spent.cost is None else f", {about}${spent.cost:f}"
    left = [] if spent.left_usd is None else [f"${spent.left_usd:f}"]
    left += [] if spent.left_tokens is None else [count(spent.left_tokens, "token")]
    return (
        f"so far {about}{count(spent.usage.total_tokens, 'token')}{cost}{'; left: ' if left else ''}{', '.join(left)}"
    )


def _because(stop: Stop) -> str:
    return f"{stop.reason}: {stop.detail}" if stop.detail else stop.reason


def count(many: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{many:,} {noun}{'' if many == 1 else 's'}"
