"""Spans: the fold from the events of a run to its spans, in the terms of OpenTelemetry but without it.

A run that pauses and goes on has a span for each time that it was under way, its legs: `invoke_agent`. Below a leg are
the calls of models (`chat`) and of tools (`execute_tool`), and below a call that an agent works on the legs of its run.
All of it is one trace, however many days and processes it takes; each later leg has a link to the first.

The ids of traces and spans follow from the run's id and the number of the event, so that whoever folds the same events
makes the same spans: sent twice they are still one. Names of attributes are those of the semantic conventions for
generative AI (https://github.com/open-telemetry/semantic-conventions-genai), what is treadle's own begins with
`treadle.`.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel import events
from treadle.kernel.fold import fold
from treadle.kernel.messages import ModelSettings, Usage
from treadle.kernel.state import RunState
from treadle.kernel.stop import FINISHED
from treadle.telemetry.attributes import of_model, of_settings, of_usage
from treadle.telemetry.calls import LONGEST, Calls
from treadle.telemetry.content import asked_of, replied_of, said_of, tool_of

Operation = Literal["invoke_agent", "chat", "execute_tool"]


WELL: Final = FINISHED | {"waiting", "max_steps", "max_tool_calls", "deadline", "max_cost", "max_tokens"}
"""Reasons for which a run ends or pauses that are no errors: somebody wanted it so."""


_BUSY: Final = frozenset(
    {events.StepPrepared, events.ModelReplied, events.ModelFailed, events.ToolStarted, events.ContextEdited}
)


class Span(Struct, frozen=True):
    """A span, which ended unless `end` is 0.

    Attributes:
        operation: what it is of.
        name: what it is called.
        trace: the id of its trace.
        id: its own.
        above: the id of the span above it; 0 if there is none.
        start: when it began, in nanoseconds since 1970.
        end: when it ended; 0 for a leg that has just begun.
        attributes: what is said of it, by the names of the conventions.
        error: the kind of error that it ended with; empty if it did well.
        words: the error's words, where content is wanted.
        links: traces and spans that it has to do with.
        usage: what a call of a model took, where its provider reported it.
    """

    operation: Operation
    name: str
    trace: int
    id: int
    above: int
    start: int
    end: int
    attributes: dict[str, Any]
    error: str = ""
    words: str = ""
    links: tuple[tuple[int, int], ...] = ()
    usage: Usage | None = None


def trace_of(started: events.RunStarted) -> int:
    """The id of a run's trace: that of the run at the top, with whose id the ids of all below it begin."""
    top = told_apart(started.run_id if started.parent is None else started.run_id.partition(".")[0], started)
    return int.from_bytes(blake2b(f"trace {top}".encode(), digest_size=16).digest())


def told_apart(run_id: str, started: events.RunStarted) -> str:
    """The id of the run that began so, or of the one above it, apart from deleted ones of its name."""
    return f"{run_id}~{started.nonce:x}" if started.nonce else run_id


def span_of(run_id: str, what: int | str) -> int:
    """The id of the span that belongs to event number `what` of a run, or to a call ("STEP.CALL")."""
    return _number(_of_run(run_id), what)


def _of_run(run_id: str) -> blake2b:
    """What the ids of all spans of a run begin with, which is half of the work."""
    return blake2b(f"{run_id} ".encode(), digest_size=8)


def _number(of_run: blake2b, what: int | str) -> int:
    digest = of_run.copy()
    digest.update(str(what).encode())
    return int.from_bytes(digest.digest()) or 1


def nanoseconds(at: float) -> int:
    """A time in seconds, in nanoseconds, to the microsecond."""
    return round(at * 1_000_000) * 1000


class _Asked(Struct):
    """The call of a model that is under way: since when, of which model, with which settings."""

    at: float
    step: int
    model: str
    settings: ModelSettings
    content: dict[str, Any]


class Spans:
    """The fold of one run's events, from its first on.

    Args:
        content: whether what was said is put into the spans.
        newest: whether the newest names are used where the conventions have changed them.
        conversation: the name of the conversation that the run above it belongs to.
    """

    def __init__(self, *, content: bool = False, newest: bool = False, conversation: str = "") -> None:
        self._content, self._newest = content, newest
        self._state = RunState()
        self._started = self._state.started
        self._conversation = conversation
        self._leg: Span | None = None
        self._fork: tuple[int, float, tuple[int, int]] | None = None
        self._again = 0
        self._first: tuple[int, int] | None = None
        self._last = 0.0
        self._asked: _Asked | None = None
        self._aside = 0.0
        self._calls = Calls()
        self._usages: list[Usage] = []
        self._finish = ""
        self._idle = True
        self._text = ""
        self._trace, self._ids = 0, _of_run("")
        self._common: dict[str, Any] = {}
        self._of_chat: tuple[tuple[str, ModelSettings] | None, dict[str, Any], str] = (None, {}, "")
        self._often: dict[type, Callable[[int, Any], list[Span]]] = {
            events.StepPrepared: self._prepared,
            events.ModelReplied: self._replied,
            events.ToolStarted: self._tool_started,
            events.ToolFinished: self._tool_finished,
        }

    @property
    def run_id(self) -> str:
        """The run's id, as far as it is known by now."""
        return self._started.run_id

    def take(self, seq: int, event: events.Event) -> list[Span]:
        """The spans that begin or end with event number `seq`: a leg when it begins, all others when they end."""
        if self._again and not isinstance(event, events.RunForked):
            return self._told_again(event)
        late = None if self._leg is not None else self._begun_late(seq, event)
        self._idle = self._idle and type(event) not in _BUSY
        found = self._taken(seq, event)
        self._last = event.at
        if self._content:
            self._state = fold(self._state, event)
            if isinstance(event, events.StepPrepared) and self._asked is not None:
                self._asked.content = asked_of(self._state)
        return found if late is None else [late, *found]

    def _told_again(self, event: events.Event) -> list[Span]:
        """What a fork tells once more: the spans are those of the run in which it happened."""
        self._again -= 1
        if isinstance(event, (events.ToolReacted, events.ApprovalDecided)):
            self._calls.changed(event)
        if self._content:
            self._state = fold(self._state, event)
        return []

    def _begun_late(self, seq: int, event: events.Event) -> Span | None:
        """The leg of a fork, or of a run that goes on, where no event of its own says that it does."""
        if isinstance(
            event, (events.RunStarted, events.RunResumed, events.RunForked, events.RunPaused, events.RunFinished)
        ):
            return None
        if self._fork is None:
            return self._begun(seq, event.at)
        (seq, at, first), self._fork = self._fork, None
        return self._begun(seq, at, first)

    def _taken(self, seq: int, event: events.Event) -> list[Span]:
        # Those that come in every step are told apart by their type, which is quicker than one after the other.
        often = self._often.get(type(event))
        if often is not None:
            found: list[Span] = often(seq, event)
            return found
        match event:
            case events.ModelFailed():
                return [self._failed(seq, event)]
            case events.ContextEdited():
                return self._edited(seq, event)
            case events.ToolReacted() | events.ApprovalDecided():
                self._calls.changed(event)
            case events.RunStarted():
                self._started = event
                return [self._begun(seq, event.at)]
            case events.RunResumed() if self._leg is not None and self._idle:
                # It was taken up twice, and nothing was done in between.
                return []
            case events.RunResumed():
                first, self._fork = None if self._fork is None else self._fork[2], None
                return [*self._cut_off(), self._begun(seq, event.at, first)]
            case events.RunForked():
                self._forked(event, seq)
            case events.RunPaused(stop=stop) | events.RunFinished(stop=stop):
                return self._ended(event.at, stop.reason, isinstance(event, events.RunFinished))
        return []

    def _begun(self, seq: int, at: float, link: tuple[int, int] | None = None) -> Span:
        started, parent = self._started, self._started.parent
        self._ids = _of_run(told_apart(started.run_id, started))
        own, self._trace = _number(self._ids, seq), trace_of(started)
        name = started.conversation or self._conversation
        self._common = {"treadle.run.id": started.run_id, **({"gen_ai.conversation.id": name} if name else {})}
        self._of_chat = (None, {}, "")
        call = "" if parent is None else f"{parent.step}.{parent.call_id}"
        above = 0 if parent is None else span_of(told_apart(parent.run_id, started), call)
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            **of_model(started.model),
            "gen_ai.agent.name": started.agent,
            **self._common,
        }
        link = link or self._first
        self._first = self._first or (self._trace, own)
        self._usages, self._finish, self._idle = [], "", True
        self._calls.open.clear()
        if self._asked is not None:
            self._asked.at = at
        title = f"invoke_agent {started.agent}".rstrip()
        links = () if link is None else (link,)
        self._leg = Span("invoke_agent", title, self._trace, own, above, nanoseconds(at), 0, attributes, links=links)
        return self._leg

    def _forked(self, event: events.RunForked, seq: int) -> None:
        """What came before is of another run, whose spans it has."""
        first = self._first or (trace_of(self._started), span_of(told_apart(self._started.run_id, self._started), 0))
        self._started = replace(
            self._started, run_id=event.run_id, model=event.model or self._started.model, parent=None
        )
        self._leg, self._first, self._fork = None, None, (seq, event.at, first)
        self._again = event.again
        self._calls.open.clear()

    def _cut_off(self) -> list[Span]:
        """A leg that is still under way when the next begins: its process has died."""
        return [] if self._leg is None else self._closed(self._last, "running", "interrupted")

    def _ended(self, at: float, reason: str, finished: bool) -> list[Span]:
        return self._closed(at, reason, "" if reason in WELL else reason, tools="cancelled" if finished else "")

    def _closed(self, at: float, reason: str, error: str, tools: str = "interrupted") -> list[Span]:
        leg = self._leg
        if leg is None:
            return []
        found = [
            self._tool_span(call_id, at, tools, {"treadle.tool.waits": not tools}) for call_id in [*self._calls.open]
        ]
        attributes = {**leg.attributes, "treadle.stop.reason": reason, **self._taken_by_models()}
        if self._finish:
            attributes["gen_ai.response.finish_reasons"] = (self._finish,)
        if self._content:
            attributes |= said_of(self._state, self._text)
        self._leg = None
        end = max(leg.start, nanoseconds(at))
        return [*found, replace(leg, end=end, attributes=attributes, error=error)]

    def _asked_for(self, event: events.ModelReplied | events.ModelFailed) -> _Asked:
        return self._asked or _Asked(event.at, event.step, self._started.model, self._started.settings, {})

    def _asking(self, event: events.StepPrepared) -> _Asked:
        model, settings = event.model or self._started.model, event.settings or self._started.settings
        return _Asked(event.at, event.step, model, settings, {})

    def _taken_by_models(self) -> dict[str, int]:
        """What the leg's calls of models took, as far as it was reported."""
        return of_usage(sum(self._usages, Usage()), newest=self._newest)

    def _chat(
        self,
        seq: int,
        asked: _Asked,
        at: float,
        usage: Usage | None,
        more: dict[str, Any],
        error: str = "",
        words: str = "",
    ) -> Span:
        key = (asked.model, asked.settings)
        if key != self._of_chat[0]:
            model = of_model(asked.model)
            base = {"gen_ai.operation.name": "chat", **model, **of_settings(asked.settings), **self._common}
            self._of_chat = (key, base, f"chat {model['gen_ai.request.model']}".rstrip())
        _, base, name = self._of_chat
        attributes = {**base, "treadle.step": asked.step, **asked.content, **more}
        reported = None if usage is None or usage.estimated else usage
        if reported is not None:
            attributes |= of_usage(reported, newest=self._newest)
            self._usages.append(reported)
        own, start, end = _number(self._ids, seq), nanoseconds(asked.at), nanoseconds(at)
        # A clock that went back makes no span that ends before it began.
        end = max(start, end)
        return Span("chat", name, self._trace, own, self._above(), start, end, attributes, error, words, (), reported)

    def _prepared(self, seq: int, event: events.StepPrepared) -> list[Span]:
        self._asked = self._asking(event)
        return []

    def _replied(self, seq: int, event: events.ModelReplied) -> list[Span]:
        asked = self._asked_for(event)
        self._asked, self._finish = None, event.finish
        self._calls.asked(event.message.calls)
        more: dict[str, Any] = {"gen_ai.response.finish_reasons": (event.finish,)}
        if event.model:
            more["gen_ai.response.model"] = of_model(event.model)["gen_ai.request.model"][:LONGEST]
        if event.request_id:
            more["treadle.request.id"] = event.request_id[:LONGEST]
        if event.cost is not None:
            more["treadle.cost.usd"] = str(event.cost)
        if self._content:
            self._text = event.message.text
            more |= replied_of(event.message, event.finish)
        return [self._chat(seq, asked, event.at, event.usage, more)]

    def _failed(self, seq: int, event: events.ModelFailed) -> Span:
        asked = self._asked_for(event)
        error = event.error
        more: dict[str, Any] = {"treadle.attempt": event.attempt}
        if error.status is not None:
            more["http.response.status_code"] = error.status
        words = error.message if self._content else ""
        span = self._chat(seq, asked, event.at, event.usage, more, error=error.kind or "_OTHER", words=words)
        # It is asked again after the wait, if it is; that is known of no event of its own.
        asked.at = event.at + (event.retry_in or 0.0)
        self._asked = asked
        return span

    def _edited(self, seq: int, event: events.ContextEdited) -> list[Span]:
        """The call of a model that wrote a summary; an edit that called none is no span."""
        if event.reserve is not None:
            self._aside = event.at
            return []
        begun, self._aside = self._aside or event.at, 0.0
        if event.usage is None:
            return []
        asked = _Asked(begun, -1, event.model or self._started.model, ModelSettings(), {})
        span = self._chat(seq, asked, event.at, event.usage, {"treadle.context.policy": event.policy})
        del span.attributes["treadle.step"]
        return [span]

    def _tool_started(self, seq: int, event: events.ToolStarted) -> list[Span]:
        self._calls.started(seq, event)
        return []

    def _tool_finished(self, seq: int, event: events.ToolFinished) -> list[Span]:
        """The span of a call that was run; one that was refused, or made outside, was not."""
        if event.call_id not in self._calls.open:
            return []
        error = (event.raised.partition(" at ")[0] or "tool_error") if event.is_error else ""
        more = tool_of(self._calls.arguments(event.call_id), event.content) if self._content else {}
        return [self._tool_span(event.call_id, event.at, error, more)]

    def _tool_span(self, call_id: str, at: float, error: str, more: dict[str, Any]) -> Span:
        call, name = self._calls.open.pop(call_id), self._calls.name(call_id)
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": call_id[:LONGEST],
            "gen_ai.tool.type": "function",
            **self._common,
            "treadle.step": call.step,
            **more,
        }
        start, title = nanoseconds(call.at), f"execute_tool {name}" if name else "execute_tool"
        own, end = _number(self._ids, call.span), max(start, nanoseconds(at))
        return Span("execute_tool", title, self._trace, own, self._above(), start, end, attributes, error)

    def _above(self) -> int:
        return 0 if self._leg is None else self._leg.id
