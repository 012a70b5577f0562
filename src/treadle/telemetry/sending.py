"""Sending: runs in a journal, told to OpenTelemetry after they happened.

The spans are those that a live run would have made, with the same ids: a run that was traced, or sent before, is the
same run again for whoever receives it. Metrics are not sent, as they would be counted twice.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from treadle.journal.errors import JournalDamaged, UnknownRun
from treadle.journal.families import families, family
from treadle.journal.ones_own import check_journal, read_of
from treadle.journal.port import Journal
from treadle.journal.redaction import Redact
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, RunForked, RunStarted
from treadle.telemetry.content import without_secrets
from treadle.telemetry.metrics import wants_newest
from treadle.telemetry.spans import Span, Spans

TOGETHER = 500
"""Spans that are sent at once."""


class Sent(Struct, frozen=True):
    """What was sent.

    Attributes:
        runs: how many runs, those below others included.
        spans: how many spans.
        under_way: runs whose last leg has not ended, so that its span is still to be sent.
    """

    runs: int = 0
    spans: int = 0
    under_way: tuple[str, ...] = ()


async def send(
    journal: Journal,
    run_ids: Iterable[str] | None = None,
    *,
    exporter: Any,
    content: bool = False,
    redact: Redact | None = None,
    on_damage: Callable[[JournalDamaged], object] | None = None,
) -> Sent:
    """Sends the spans of runs, each with those of the runs that work for it.

    Args:
        journal: where the runs are.
        run_ids: which; None for all.
        exporter: a span exporter of OpenTelemetry's SDK, such as `OTLPSpanExporter()`. It is not shut down.
        content: whether what was said goes along.
        redact: given each text before it leaves, returns what leaves in its place. What the journal has was passed
            through the journal's own already.
        on_damage: called with a run that cannot be read, which is then left out; None raises it.

    Raises:
        Misuse: `opentelemetry-sdk` is not installed, or `redact` raised; of the run nothing further is sent.
        ConnectionError: the exporter could not send; what came before was sent.
        UnknownRun: there is no such run.
    """
    check_journal("send", journal)
    sender = _Sender(exporter)
    runs, under_way = 0, list[str]()
    async for run_id in _each(journal, run_ids):
        try:
            events = await read_of(journal, run_id)
        except JournalDamaged as error:
            if on_damage is None:
                raise
            on_damage(error)
            continue
        runs += 1
        await sender.look_above(run_id, journal)
        if sender.take(run_id, events, content, redact):
            under_way.append(run_id)
    sender.flush()
    return Sent(runs, sender.spans, tuple(under_way))


async def _each(journal: Journal, run_ids: Iterable[str] | None) -> AsyncIterator[str]:
    done: set[str] = set()
    if run_ids is None:
        for group in await families(journal):
            for line in group:
                yield line.run_id
        return
    for one in run_ids:
        for run_id in await family(journal, one):
            if run_id not in done:
                done.add(run_id)
                yield run_id


class _Sender:
    """Makes the SDK's spans and hands them to an exporter, many at once."""

    def __init__(self, exporter: Any) -> None:
        try:
            from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
            from opentelemetry.sdk.trace.sampling import ALWAYS_ON
        except ImportError as error:
            raise Misuse("sending runs needs OpenTelemetry's SDK: pip install 'treadle[otlp]'") from error
        from treadle.telemetry.emitter import Emitter
        from treadle.telemetry.live import SCOPE, version_of_treadle

        waiting: list[Any] = []

        class Keeping(SpanProcessor):
            def on_end(self, span: Any) -> None:
                waiting.append(span)

        provider = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False)
        provider.add_span_processor(Keeping())
        self._waiting, self._exporter = waiting, exporter
        self._emitter = Emitter(provider.get_tracer(SCOPE, version_of_treadle()))
        self._newest = wants_newest()
        self.spans = 0
        self._conversations: dict[str, str] = {}

    async def look_above(self, run_id: str, journal: Journal) -> None:
        """Learns in whose conversation a run works, where the run at the top was not sent before it."""
        top = run_id.partition(".")[0]
        if top != run_id and top not in self._conversations:
            try:
                first, *_ = await read_of(journal, top)
            except (UnknownRun, JournalDamaged):
                first = None
            self._conversations[top] = first.conversation if isinstance(first, RunStarted) else ""

    def take(self, run_id: str, events: Sequence[Event], content: bool, redact: Redact | None) -> bool:
        """Takes the spans of a run; whether its last leg is still under way."""
        top = run_id.partition(".")[0]
        spans = Spans(content=content, newest=self._newest, conversation=self._conversations.get(top, ""))
        own = max([seq for seq, event in enumerate(events) if isinstance(event, RunForked)], default=-1)
        begun: dict[int, Span] = {}
        for seq, event in enumerate(events):
            if isinstance(event, RunStarted):
                self._conversations[run_id] = event.conversation
            if redact is not None and content:
                event = without_secrets(run_id, seq, event, redact)
            for span in spans.take(seq, event):
                if seq <= own:
                    # It is of the run that this one was forked from.
                    continue
                if span.end:
                    begun.pop(span.id, None)
                else:
                    begun[span.id] = span
                self._emitter.tell(span)
            if len(self._waiting) >= TOGETHER:
                self.flush()
        for span in begun.values():
            self._emitter.forget(span)
        return bool(begun)

    def flush(self) -> None:
        """Sends what waits. Raises `ConnectionError` if it could not be."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        many = [*self._waiting]
        self._waiting.clear()
        if not many:
            return
        try:
            result = self._exporter.export(many)
        except Exception as error:
            raise ConnectionError(f"{len(many)} spans could not be sent: {type(error).__name__}: {error}") from error
        if result is not SpanExportResult.SUCCESS:
            raise ConnectionError(f"{len(many)} spans could not be sent; the log says why")
        self.spans += len(many)
