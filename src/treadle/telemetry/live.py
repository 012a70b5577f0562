"""Live: what an agent is given to have its runs traced."""

from collections import deque
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from msgspec import Struct

from treadle.journal.redaction import Redact
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, RunStarted
from treadle.telemetry.content import without_secrets
from treadle.telemetry.metrics import Metrics, wants_newest
from treadle.telemetry.spans import Span, Spans
from treadle.telemetry.worker import MOST, PATIENCE, Worker

SCOPE = "treadle"
"""What OpenTelemetry calls those who made the spans."""


def version_of_treadle() -> str:
    """The version of treadle, as far as it is known."""
    try:
        return version("treadle")
    except PackageNotFoundError:
        return ""


class Telemetry:
    """Has the runs of agents traced and measured by OpenTelemetry, by the conventions for generative AI.

    One may be given to many agents. It works in a thread of its own: a tracer that raises, hangs or is slow costs
    spans, and never a run. Runs below are traced with those that they work for.

    Args:
        tracer_provider: where spans go; by default OpenTelemetry's global one, as it is when the first run begins.
        meter_provider: where metrics go; likewise.
        content: whether what was said, and what tools were given and returned, goes along.
        redact: given each text before it leaves, returns what leaves in its place; beside that of the run's journal.

    Raises:
        Misuse: `opentelemetry-api` is not installed, or an argument is none.
    """

    def __init__(
        self,
        *,
        tracer_provider: Any = None,
        meter_provider: Any = None,
        content: bool = False,
        redact: Redact | None = None,
    ) -> None:
        try:
            from opentelemetry import metrics, trace
        except ImportError as error:
            raise Misuse("telemetry needs OpenTelemetry: pip install 'treadle[otel]'") from error
        if not isinstance(content, bool) or not (redact is None or callable(redact)):
            raise Misuse("Telemetry takes content=True or False, and redact= a function of a text that returns one")
        for given, kind in ((tracer_provider, trace.TracerProvider), (meter_provider, metrics.MeterProvider)):
            if given is not None and not isinstance(given, kind):
                raise Misuse(f"Telemetry takes a {kind.__name__} of OpenTelemetry's; it was given {given!r:.100}")
        self._providers = tracer_provider, meter_provider
        self._content, self._redact = content, redact
        self._newest = wants_newest()
        self._telling: _Telling | None = None
        self._worker = Worker(self._tell)

    def observed(
        self, earlier: Sequence[Event], redact: Redact | None, conversation: str = ""
    ) -> Callable[[int, Event], None]:
        """What is called with each event of a run, and its number, as it happens.

        Args:
            earlier: the run's events that have happened already.
            redact: that of the run's journal.
            conversation: the name of the conversation that the run above it belongs to.
        """
        from opentelemetry import trace

        caller = trace.get_current_span().get_span_context()
        watched = _Watched(
            Spans(content=self._content, newest=self._newest, conversation=conversation),
            [one for one in (redact, self._redact) if one is not None] if self._content else [],
            caller if caller.is_valid else None,
            deque(earlier),
            len(earlier),
        )
        waiting, put = watched.events, self._worker.put

        def happened(seq: int, event: Event) -> None:
            if len(waiting) < MOST and not watched.given_up:
                waiting.append(event)
            else:
                watched.given_up = True
            if not watched.queued:
                # Before it is put: it may be told before this goes on.
                watched.queued = True
                if not put(watched):
                    watched.queued = False

        return happened

    def flush(self, timeout: float = PATIENCE) -> bool:
        """Waits until all that has happened was handed to OpenTelemetry, at most `timeout` seconds; whether it was.

        A program that ends does so by itself. What OpenTelemetry itself holds back its own `force_flush` sends.
        """
        return self._worker.flush(timeout)

    def _tell(self, watched: "_Watched") -> None:
        if self._telling is None:
            self._telling = _Telling(*self._providers, newest=self._newest)
        # Before they are looked at: what comes from here on is told the next time.
        watched.queued = False
        failure: BaseException | None = None
        while watched.events:
            event, seq = watched.events.popleft(), watched.told
            watched.told += 1
            try:
                found = watched.spans.take(seq, watched.without_secrets(seq, event) if watched.redact else event)
            except Exception:
                watched.given_up = True
                watched.events.clear()
                raise
            if found and seq >= watched.earlier:
                failure = self._told_of(found, watched.caller) or failure
        if watched.given_up and not watched.said:
            watched.said = True
            raise RuntimeError(
                f"run {watched.spans.run_id} does more than is taken away, and is not traced any further"
            )
        if failure is not None:
            raise failure

    def _told_of(self, spans: Sequence[Span], caller: Any) -> BaseException | None:
        """Tells of the spans, whatever comes of the others; what was raised."""
        failure: BaseException | None = None
        for span in spans:
            try:
                if self._telling is not None:
                    self._telling.tell(span, caller)
            except BaseException as error:
                failure = error
        return failure


class _Watched(Struct):
    """A run that is traced.

    Attributes:
        spans: the fold of its events.
        redact: what texts pass through before they leave.
        caller: the application's span in which it was begun or taken up.
        events: those that are still to be told.
        earlier: how many happened before it was watched: they are folded, and told of elsewhere.
        told: how many have been looked at.
        given_up: whether it is not traced any further: there was no room, or an event could not be folded or redacted.
        said: whether that was said.
        queued: whether the worker knows that there are some.
    """

    spans: Spans
    redact: list[Redact]
    caller: Any
    events: deque[Event]
    earlier: int
    told: int = 0
    given_up: bool = False
    said: bool = False
    queued: bool = False

    def without_secrets(self, seq: int, event: Event) -> Event:
        """The event as it may leave.

        Raises:
            Misuse: a function raised; then nothing of the event leaves.
        """
        run_id = event.run_id if isinstance(event, RunStarted) else self.spans.run_id
        for redact in self.redact:
            event = without_secrets(run_id, seq, event, redact)
        return event


class _Telling:
    """OpenTelemetry's side: a tracer and, where somebody counts, the instruments."""

    def __init__(self, tracer_provider: Any, meter_provider: Any, *, newest: bool) -> None:
        from opentelemetry import trace

        from treadle.telemetry.emitter import Emitter

        tracers = trace.get_tracer_provider() if tracer_provider is None else tracer_provider
        self._emitter = Emitter(tracers.get_tracer(SCOPE, version_of_treadle()))
        self._meters, self._newest = meter_provider, newest
        self._metrics: Metrics | None = None
        self._looked = False

    def tell(self, span: Span, caller: Any) -> None:
        """Tells of a span: of a leg when it begins and when it ends, of all others when they end."""
        if self._metrics is None and (not self._looked or not span.end):
            # A run that is taken up may be in a leg that began in another process.
            self._looked, self._metrics = True, self._counting()
        try:
            self._emitter.tell(span, caller)
        finally:
            if span.end and self._metrics is not None:
                self._metrics.record(span)

    def _counting(self) -> Metrics | None:
        """The instruments, once there is more than the interface, which counts nothing."""
        from opentelemetry import metrics

        meters = metrics.get_meter_provider() if self._meters is None else self._meters
        if type(meters).__module__.startswith("opentelemetry.metrics"):
            return None
        return Metrics(meters.get_meter(SCOPE, version_of_treadle()), newest=self._newest)
