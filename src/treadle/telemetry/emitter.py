"""Emitter: hands spans to OpenTelemetry, whose interface is all that it needs.

A leg is a span of the tracer's from its beginning, so that samplers and processors see it in time; what is below it is
handed over when it ends, whole. Where the tracer is the SDK's, and nobody looks at spans as they begin, what is below
goes to the tracer's processor directly: making it by way of the tracer would cost ten times as much.
"""

import threading
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from treadle.telemetry.spans import Span

_CLIENT, _INTERNAL = SpanKind.CLIENT, SpanKind.INTERNAL
_WELL, _FAILED = Status(), Status(StatusCode.ERROR)
_FLAGS = TraceFlags(TraceFlags.SAMPLED)


class Ids:
    """Gives the SDK the ids that it is told, and others where it is told none."""

    def __init__(self, others: Any) -> None:
        self._others = others
        self._next = threading.local()

    def tell(self, span: Span) -> None:
        """The next span of this thread is `span`."""
        self._next.ids = (span.trace, span.id)

    def generate_trace_id(self) -> int:
        """The id of a trace."""
        ids = getattr(self._next, "ids", None)
        return int(self._others.generate_trace_id() if ids is None else ids[0])

    def generate_span_id(self) -> int:
        """The id of a span; each that was told is given once."""
        ids, self._next.ids = getattr(self._next, "ids", None), None
        return int(self._others.generate_span_id() if ids is None else ids[1])

    def is_trace_id_random(self) -> bool:
        """Whether trace ids are random: ours follow from the ids of runs."""
        return False


class Emitter:
    """Hands spans to a tracer.

    Args:
        tracer: OpenTelemetry's.
    """

    def __init__(self, tracer: Any) -> None:
        self._tracer = tracer
        self._ids: Ids | None = None
        self._directly = False
        self._readable: Any = None
        self._take: Any = None
        self._scope: Any = None
        self._legs: dict[int, trace.Span] = {}

    def _prepare(self) -> None:
        """The SDK may come after us: the tracer that we were given stands for it then."""
        real = getattr(self._tracer, "_real_tracer", None) or self._tracer
        others = getattr(real, "id_generator", None)
        if others is not None and self._ids is None:
            self._ids = others if isinstance(others, Ids) else Ids(others)
            real.id_generator = self._ids
            self._tracer = real
        self._directly = _nobody_looks(real)
        if self._directly:
            from opentelemetry.sdk.trace import ReadableSpan

            self._readable, self._take, self._scope = ReadableSpan, real.span_processor.on_end, _scope_of(real)

    def tell(self, span: Span, caller: SpanContext | None = None) -> None:
        """A span that `Spans` gives: a leg when it begins, and whatever has ended."""
        if span.end:
            self.end(span)
        else:
            self.begin(span, caller)

    def begin(self, span: Span, caller: SpanContext | None) -> None:
        """A leg begins; `caller` is the span of the application that began it, if there is one."""
        self._prepare()
        links = [Link(SpanContext(one, other, False, _FLAGS)) for one, other in span.links]
        if caller is not None:
            links.append(Link(caller, {"treadle.link": "caller"}))
        self._legs[span.id] = self._start(span, links)

    def end(self, span: Span) -> None:
        """A span has ended: a leg, or whatever is below it."""
        if span.operation == "invoke_agent":
            leg = self._legs.pop(span.id, None)
            if leg is None:
                self.begin(span, None)
                leg = self._legs.pop(span.id)
            for name, value in span.attributes.items():
                leg.set_attribute(name, value)
            self._end(leg, span)
            return
        above = self._legs.get(span.above)
        if above is not None and not above.is_recording():
            # It was not sampled, and neither is what is below it.
            return
        if self._directly and above is not None:
            self._hand_over(span, above.get_span_context())
        else:
            self._end(self._start(span, ()), span)

    def forget(self, span: Span) -> None:
        """A leg will not end here."""
        self._legs.pop(span.id, None)

    def _start(self, span: Span, links: Any) -> trace.Span:
        if self._ids is None:
            self._prepare()
        if self._ids is not None:
            self._ids.tell(span)
        context = Context()
        if span.above:
            over = self._legs.get(span.above)
            parent = SpanContext(span.trace, span.above, False, _FLAGS) if over is None else over.get_span_context()
            context = trace.set_span_in_context(NonRecordingSpan(parent), context)
        kind = _CLIENT if span.operation == "chat" else _INTERNAL
        made: trace.Span = self._tracer.start_span(span.name, context, kind, span.attributes, links, span.start)
        return made

    def _end(self, made: trace.Span, span: Span) -> None:
        if span.error:
            made.set_attribute("error.type", span.error)
            made.set_status(StatusCode.ERROR, span.words or None)
        made.end(span.end)

    def _hand_over(self, span: Span, above: SpanContext) -> None:
        tracer, error, attributes, status = self._tracer, span.error, span.attributes, _WELL
        if error:
            attributes = {**attributes, "error.type": error}
            status = Status(StatusCode.ERROR, span.words) if span.words else _FAILED
        self._take(
            self._readable(
                span.name,
                SpanContext(span.trace, span.id, False, above.trace_flags, above.trace_state),
                above,
                tracer.resource,
                attributes,
                kind=_CLIENT if span.operation == "chat" else _INTERNAL,
                instrumentation_info=tracer.instrumentation_info,
                status=status,
                start_time=span.start,
                end_time=span.end,
                instrumentation_scope=self._scope,
            )
        )


def _scope_of(tracer: Any) -> Any:
    """What the SDK writes of who made a span; None if this SDK keeps it elsewhere."""
    return getattr(tracer, "_instrumentation_scope", None)


def _nobody_looks(tracer: Any) -> bool:
    """Whether a tracer is the SDK's own, without limits of the application's, and no processor looks at what begins.

    The SDK tells that by names of its own; where it has other names, spans are made by way of the tracer.
    """
    try:
        from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, Tracer
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
    except ImportError:
        return False
    if type(tracer) is not Tracer:
        return False
    own = (SpanProcessor.on_start, BatchSpanProcessor.on_start, SimpleSpanProcessor.on_start)
    processors = getattr(tracer.span_processor, "_span_processors", None)
    limits, usual = getattr(tracer, "_span_limits", None), SpanLimits()
    if processors is None or limits is None or _scope_of(tracer) is None or vars(limits) != vars(usual):
        return False
    return all(type(one).on_start in own for one in processors)
