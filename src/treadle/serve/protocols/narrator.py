"""Narrator: turns the events of a run, stored or live, into moves. Pure; every protocol tells a run through one.

A journal has each reply whole; a watcher has its pieces first. Both are told alike: what the pieces did not show is
told with the whole, and what they showed that the whole does not have is withdrawn. Results are read from the folded
state and not from events, as some are given without one: calls over a limit, cut off, or left open at the end.
"""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from treadle.drivers.output import answer_said
from treadle.drivers.watching import RunEvent, ToolProgress
from treadle.kernel import events as happened
from treadle.kernel.calls import CallRecord
from treadle.kernel.fold import fold
from treadle.kernel.messages import AssistantMessage, Text, Thinking, ToolCall, ToolMessage
from treadle.kernel.state import RunState
from treadle.kernel.step import Step
from treadle.models.port import TextDelta, ThinkingDelta, ToolCallDelta, ToolCallStarted
from treadle.result import pending_in
from treadle.serve.protocols import moves
from treadle.serve.protocols.moves import Move, PartKind

ANSWER: Final = "final_answer"
"""What the name of the tool begins with by which a model gives a typed answer."""

CallEvent = happened.ToolFinished | happened.ToolReacted | happened.ApprovalDecided


class Told(NamedTuple):
    """How much of a run was told: how many of its events, steps that were over, and things that were said to it; the
    calls, and those of them whose results were told."""

    events: int
    steps: int
    said: int
    calls: Collection[str]
    results: Collection[str]


class _Shown:
    """What has been shown of the reply that is arriving."""

    def __init__(self) -> None:
        self.text = self.thinking = ""
        self.parts: list[str] = []
        self.calls: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.held: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.parts or self.calls)


class Narrator:
    """Tells a run. `skip` what is known already, then `hear` the rest, in the journal's order.

    Args:
        prefix: what the ids of the parts begin with, where some were told and taken back.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._state = RunState()
        self._shown = _Shown()
        self._part: tuple[PartKind, str] | None = None
        self._said = 0
        # The number of the event since which the reply that is told was asked for: its pieces and the whole have it.
        self._asked = 0
        self._step: int | None = None
        self._told: set[str] = set()
        self._used: set[str] = set()
        self._names: dict[str, str] = {}

    @property
    def state(self) -> RunState:
        """The run as far as it is known."""
        return self._state

    @property
    def told(self) -> Told:
        """How much is told by now."""
        state = self._state
        return Told(state.events, len(state.steps), self._said, frozenset(self._used), frozenset(self._told))

    def skip(self, event: happened.Event) -> None:
        """Takes note of an event that was told before."""
        self._state = fold(self._state, event)
        match event:
            case happened.ModelReplied(message=message):
                self._note(message)
                self._asked = self._state.events
            case happened.StepPrepared() | happened.ModelFailed() | happened.RunResumed() | happened.RunForked():
                self._asked = self._state.events
            case happened.MessageAdded():
                self._said += 1
        for step in self._steps():
            self._told.update([record.id for record in step.calls if record.result is not None])

    def closed(self) -> Iterator[Move]:
        """Closes what is open, where it is not gone on with."""
        self._shown = _Shown()
        yield from self._close_step()

    def hear(self, event: RunEvent) -> Iterator[Move]:
        """What there is to tell of `event`."""
        match event:
            case TextDelta(text=text) if text:
                self._shown.text += text
                yield from self._piece("text", text)
            case ThinkingDelta(text=text) if text:
                self._shown.thinking += text
                yield from self._piece("thinking", text)
            case ToolCallStarted(id=call_id, name=name):
                yield from self._call_started(call_id, name)
            case ToolCallDelta(id=call_id, json=json) if json and call_id in self._shown.calls:
                self._shown.calls[call_id] += json
                yield moves.CallPiece(call_id, json)
            case ToolProgress(call_id=call_id, name=name, update=update):
                yield moves.Progress(call_id, name, update)
            case _ if isinstance(event, happened.Happened):
                yield from self._of_journal(event)

    def _of_journal(self, event: happened.Event) -> Iterator[Move]:
        before = self._state.step
        self._state = fold(self._state, event)
        match event:
            case happened.RunStarted(run_id=run_id, agent=agent):
                yield moves.Began(run_id, agent)
            case happened.RunResumed() | happened.RunForked():
                yield from self._withdraw(again=True)
                yield moves.Began(self._state.run_id, self._state.agent, again=True)
            case happened.StepPrepared(step=step):
                yield from self._close_step()
                self._step, self._asked = step, self._state.events
                yield moves.StepBegan(step)
            case happened.ModelReplied(message=message):
                yield from self._replied(message)
                yield from self._results()
            case happened.ModelFailed(retry_in=again):
                yield from self._withdraw(again=again is not None)
            case happened.MessageAdded(message=message):
                self._said += 1
                yield moves.Said(self._said, message.text)
            case happened.ToolStarted(call_id=call_id) if call_id in self._names:
                yield moves.CallStarted(call_id, self._names[call_id], self._arguments(call_id))
            case happened.ToolFinished() | happened.ToolReacted() | happened.ApprovalDecided():
                yield from self._call_settled(event)
            case happened.RunPaused() | happened.RunFinished():
                yield from self._ended(event, before)

    # What the model says.

    def _piece(self, kind: PartKind, text: str) -> Iterator[Move]:
        if self._part is None or self._part[0] != kind:
            yield from self._close_part()
            # Named by its place in the journal, so that no part of a run is called like another, whoever tells them,
            # and each is called as it was where it is told again.
            part_id = f"{self._prefix}{kind}-{self._asked}-{len(self._shown.parts)}"
            self._part = (kind, part_id)
            self._shown.parts.append(part_id)
            yield moves.PartBegan(kind, part_id)
        yield moves.PartPiece(kind, self._part[1], text)

    def _close_part(self) -> Iterator[Move]:
        if self._part is not None:
            kind, part_id = self._part
            self._part = None
            yield moves.PartEnded(kind, part_id)

    def _call_started(self, call_id: str, name: str) -> Iterator[Move]:
        """A call that has no id, or one that the run has had, is told when the whole reply has named it; a typed answer
        that is given by a call is no call there."""
        shown = self._shown
        given = not call_id or call_id in self._used or call_id in shown.calls or call_id in shown.held
        if given or name.startswith(ANSWER):
            shown.held.add(call_id)
            return
        yield from self._close_part()
        shown.calls[call_id], shown.names[call_id] = "", name
        yield moves.CallBegan(call_id, name)

    def _replied(self, message: AssistantMessage) -> Iterator[Move]:
        shown = self._shown
        if not self._fits(message):
            yield from self._withdraw(again=True)
            shown = self._shown
        rest = message.text[len(shown.text) :]
        if shown.text and rest:
            # It goes on where it was; what was thought and not shown comes late.
            yield from self._piece("text", rest)
        for part in message.content:
            match part:
                case Text(text=text) if text and not shown.text:
                    yield from self._piece("text", text)
                case Thinking(text=text) if text and not shown.thinking:
                    yield from self._piece("thinking", text)
                case ToolCall():
                    yield from self._call_whole(part)
        yield from self._close_part()
        self._note(message)
        self._shown, self._asked = _Shown(), self._state.events

    def _fits(self, message: AssistantMessage) -> bool:
        """Whether what was shown is the beginning of the whole, and each part of it can be gone on with."""
        shown, calls = self._shown, {call.id: call for call in message.calls}
        closed = self._part is None or self._part[0] != "text"
        if not message.text.startswith(shown.text) or (closed and shown.text and message.text != shown.text):
            return False
        for call_id, json in shown.calls.items():
            call = calls.get(call_id)
            if call is None or call.name != shown.names[call_id] or not call.arguments.startswith(json):
                return False
        return True

    def _call_whole(self, call: ToolCall) -> Iterator[Move]:
        so_far = self._shown.calls.get(call.id)
        yield from self._close_part()
        if so_far is None:
            yield moves.CallBegan(call.id, call.name)
        if rest := call.arguments[len(so_far or "") :]:
            yield moves.CallPiece(call.id, rest)
        yield moves.CallReady(call.id, call.name, call.arguments)

    def _withdraw(self, again: bool) -> Iterator[Move]:
        yield from self._close_part()
        shown, self._shown, self._asked = self._shown, _Shown(), self._state.events
        if shown:
            # An id that was shown names the call that is gone; the same call is told anew only under another, or whole.
            yield moves.Withdrawn(tuple(shown.parts), tuple(shown.names.items()), again)

    def _note(self, message: AssistantMessage) -> None:
        for call in message.calls:
            self._used.add(call.id)
            self._names[call.id] = call.name

    # What becomes of calls.

    def _steps(self) -> tuple[Step, ...]:
        """The step under way, or the last: where calls may have been settled."""
        state = self._state
        if state.step is not None:
            return (state.step,)
        return () if not state.steps else (state.steps[-1],)

    def _results(self) -> Iterator[Move]:
        """The results that are there and were not told."""
        for step in self._steps():
            for record in step.calls:
                yield from self._result(record)

    def _result(self, record: CallRecord) -> Iterator[Move]:
        if record.result is not None and record.id not in self._told:
            self._told.add(record.id)
            yield _returned(record, record.result)
            if record.final and record.result.text:
                yield moves.Answered(f"{self._prefix}text-{self._state.events}-0", record.result.text)

    def _call_settled(self, event: CallEvent) -> Iterator[Move]:
        if isinstance(event, happened.ApprovalDecided):
            yield from self._decided(event)
        elif isinstance(event, happened.ToolReacted) and event.arguments is not None:
            yield moves.CallEdited(event.call_id, self._names.get(event.call_id, ""), event.arguments)
        for step in self._steps():
            record = step.calls.find(event.call_id)
            if record is not None:
                yield from self._result(record)

    def _decided(self, event: happened.ApprovalDecided) -> Iterator[Move]:
        name = self._names.get(event.call_id, "")
        if not event.approved:
            self._told.add(event.call_id)
            call = event.call_id, event.reason, name, self._arguments(event.call_id)
            yield moves.CallRefused(*call, self._made(event.call_id))
        elif event.arguments is not None:
            yield moves.CallEdited(event.call_id, name, event.arguments)

    def _made(self, call_id: str) -> moves.CallReturned | None:
        """What a call that was refused is answered with, where it had been made, or may have been."""
        for record in self._records(call_id):
            if record.result is not None and (record.executed or record.made > 1):
                return _returned(record, record.result)
        return None

    def _arguments(self, call_id: str) -> str:
        return "".join([record.arguments_json for record in self._records(call_id)])

    def _records(self, call_id: str) -> list[CallRecord]:
        found = [step.calls.find(call_id) for step in self._steps()]
        return [one for one in found if one is not None]

    # The run as a whole.

    def _close_step(self) -> Iterator[Move]:
        yield from self._close_part()
        if self._step is not None:
            step, self._step = self._step, None
            yield moves.StepEnded(step)

    def _ended(self, event: happened.RunPaused | happened.RunFinished, before: Step | None) -> Iterator[Move]:
        state = self._state
        yield from self._withdraw(again=False)
        ended_with = () if before is None or event.stop.reason != "external_tool" else tuple(before.calls)
        unanswered = [
            (record.id, record.name, record.arguments_json) for record in ended_with if record.status == "awaited"
        ]
        self._told.update([call_id for call_id, _, _ in unanswered])
        if isinstance(event, happened.RunFinished):
            yield from self._results()
        pending = pending_in(state) if state.phase == "paused" else ()
        if pending:
            yield moves.Asked(pending)
        yield from self._close_step()
        failed = None if state.failure is None else (state.failure.kind, state.failure.message)
        failure = failed if event.stop.reason == "model_error" else None
        cost = state.accounts.whole_cost
        took, told = (state.usage, cost), (tuple(unanswered), answer_said(state))
        yield moves.Ended(event.stop, state.text, state.output, *took, failure, *told)


def _returned(record: CallRecord, result: ToolMessage) -> moves.CallReturned:
    return moves.CallReturned(record.id, record.name, result.content, result.is_error, record.arguments_json)
