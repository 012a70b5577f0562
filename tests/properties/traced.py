"""Telemetry of generated runs: told to OpenTelemetry in each process, and held against what the journal tells.

Spans are held here, metrics in `counted.py`.
"""

from collections.abc import Iterator
from typing import Any

from counted import Counts, names
from hypothesis import strategies as st
from journals import at_once
from likely import mostly
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from skilled import BODY, INSIDE
from texts import ASIDE, FROM_OUTSIDE, GO_ON, REPLACED, WHY_NOT

from treadle.kernel.events import RunFinished
from treadle.telemetry import Telemetry, send
from treadle.telemetry.spans import Spans

TRACED = ("plain", "at once", "content", "looked at", "raising", "not sent", "newest")
traced = mostly(st.just(""), st.sampled_from(TRACED), times=2)

SAID = (ASIDE, FROM_OUTSIDE, GO_ON, REPLACED, WHY_NOT, BODY, INSIDE, "known to be written")
"""What people, tools and skills say in generated runs."""

RESOURCE = Resource({})


class Raising(SpanProcessor):
    """Raises whatever it is told, when a span begins too."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise RuntimeError("on_start")

    def on_end(self, span: ReadableSpan) -> None:
        raise SystemError("on_end")


class LookingOn(SpanProcessor):
    """Looks at spans as they begin, so that all of them are made by the tracer."""

    def __init__(self) -> None:
        self.begun = 0

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self.begun += 1


class NotSent(SpanExporter):
    """Sends nothing."""

    def export(self, spans: Any) -> SpanExportResult:
        return SpanExportResult.FAILURE


class Traces:
    """All that the processes of a trial tell; what they tell is looked at when the trial is over, or at once."""

    def __init__(self, how: str) -> None:
        self.how = how
        self._kept = InMemorySpanExporter()
        self._looking = LookingOn()
        self._tracers = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
        self._tracers.add_span_processor(SimpleSpanProcessor(self._kept))
        odd: dict[str, Any] = {"raising": Raising, "looked at": lambda: self._looking}
        if how in odd:
            self._tracers.add_span_processor(odd[how]())
        if how == "not sent":
            self._tracers.add_span_processor(SimpleSpanProcessor(NotSent()))
        self._by_process: dict[int, Telemetry] = {}
        self._counts = Counts()

    def telemetry(self, process: int) -> Telemetry:
        """What a process tells its runs to."""
        if process not in self._by_process:
            with names(self.newest):
                made = Telemetry(
                    tracer_provider=self._tracers, meter_provider=self._counts.meters, content=self.how == "content"
                )
            worker: Any = made._worker
            worker._wake = worker.work_off if self.how == "at once" else lambda: None
            self._by_process[process] = made
        return self._by_process[process]

    def told(self) -> list[ReadableSpan]:
        """All spans that have ended."""
        for one in self._by_process.values():
            one._worker.work_off()
        return list(self._kept.get_finished_spans())

    def points(self) -> dict[str, list[Any]]:
        """What has been added up, by the name of the metric."""
        self.told()
        return self._counts.points()

    @property
    def newest(self) -> bool:
        """Whether the newest names are told."""
        return self.how == "newest"

    def of_the_journal(self, trial: Any) -> list[ReadableSpan]:
        """The spans that the journal tells, but for those that had ended in a process that died."""
        sent = InMemorySpanExporter()
        with names(self.newest):
            at_once(send(trial.journal, trial.journal.runs, exporter=sent, content=self.how == "content"))
        earlier = _ended_before(trial)
        return [one for one in sent.get_finished_spans() if _id(one) not in earlier]

    @property
    def begun(self) -> int:
        """How many spans have begun, where somebody looks."""
        return self._looking.begun


def spans_are_those_of_the_journal(trial: Any) -> Iterator[str]:
    """What was told as it happened is what the journal tells, each span once; and nothing of it was said by anybody."""
    traces = trial.world.traces
    if traces is None:
        return
    live = traces.told()
    for span in live:
        yield from _odd(span, traces.how == "content")
    if traces.how == "raising":
        return
    ids = [_id(span) for span in live]
    if len(set(ids)) != len(ids) and not trial.journal.failed and trial.taken is None:
        yield f"spans are told twice: {sorted(span.name for span in live if ids.count(_id(span)) > 1)}"
    ended = [run for run in trial.journal.runs if isinstance(trial.journal.events(run)[-1], RunFinished)]
    over = len(ended) == len(trial.journal.runs) and trial.undisturbed and not trial.left
    if traces.how == "looked at" and over and traces.begun != len(live):
        yield f"{traces.begun} spans have begun, and {len(live)} have ended"
    if trial.journal.failed or trial.taken is not None or trial.journal.gone:
        return
    wanted = {_id(span): _said(span) for span in traces.of_the_journal(trial)}
    found = {_id(span): _said(span) for span in live}
    for one in wanted.keys() | found.keys():
        if wanted.get(one) != found.get(one):
            yield f"the journal tells {wanted.get(one)}, and told was {found.get(one)}"


def _ended_before(trial: Any) -> set[int]:
    """The spans that had ended in a process that died."""
    ended: set[int] = set()
    for run in dict.fromkeys(run for run, _ in trial.journal.order[: trial.before]):
        fold = Spans()
        had = [event for one, event in trial.journal.order[: trial.before] if one == run]
        ended |= {span.id for seq, event in enumerate(had) for span in fold.take(seq, event) if span.end}
    return ended


def _id(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def _said(span: ReadableSpan) -> tuple[Any, ...]:
    above = None if span.parent is None else span.parent.span_id
    links = [(link.context.trace_id, link.context.span_id) for link in span.links]
    status = (span.status.status_code, span.status.description)
    trace = None if span.context is None else span.context.trace_id
    times = (span.start_time, span.end_time)
    return (span.name, span.kind, trace, above, times, dict(span.attributes or {}), links, status)


def _odd(span: ReadableSpan, content: bool) -> Iterator[str]:
    """What no span may have: what was said without leave, values that no exporter takes, an end before it began."""
    if span.start_time is None or span.end_time is None or span.end_time < span.start_time:
        yield f"{span.name} ends at {span.end_time}, before it begins"
    for name, value in (span.attributes or {}).items():
        for one in value if isinstance(value, tuple) else (value,):
            if not isinstance(one, (str, int, float, bool)):
                yield f"{span.name} has {name}={one!r}"
            if isinstance(one, str):
                one.encode()
                if not content and any(said in one for said in SAID):
                    yield f"{span.name} has {name}={one!r}, which was said"
    words = span.status.description or ""
    if not content and words:
        yield f"{span.name} has the words {words!r}"
