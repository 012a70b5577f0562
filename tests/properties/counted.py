"""Metrics of generated runs: what is added up as they happen is what the events of the journal come to."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import isclose
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource

from treadle.kernel.events import ContextEdited, Event, ModelFailed, ModelReplied, RunForked
from treadle.kernel.messages import Usage

RESOURCE = Resource({})
OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN"
SHARES = ("cache_read.input_tokens", "cache_write.input_tokens", "reasoning.output_tokens")


@contextmanager
def names(newest: bool) -> Iterator[None]:
    """While the environment asks for the newest names, or does not."""
    before = os.environ.pop(OPT_IN, None)
    if newest:
        os.environ[OPT_IN] = "gen_ai_latest_experimental"
    try:
        yield
    finally:
        os.environ.pop(OPT_IN, None)
        if before is not None:
            os.environ[OPT_IN] = before


class Counts:
    """What all processes of a trial add up."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader], resource=RESOURCE, shutdown_on_exit=False)

    def points(self) -> dict[str, list[Any]]:
        """What has been added up, by the name of the metric."""
        data = self._reader.get_metrics_data()
        if data is None:
            return {}
        metrics = [one for of in data.resource_metrics for scope in of.scope_metrics for one in scope.metrics]
        return {one.name: list(one.data.data_points) for one in metrics}


def metrics_are_those_of_the_journal(trial: Any) -> Iterator[str]:
    """Tokens are those of the replies, failures and summaries that this process and those after it recorded, each once;
    and each of them, and each span that ended, has its duration once."""
    traces = trial.world.traces
    if traces is None or trial.journal.failed or trial.taken is not None or trial.journal.gone:
        return
    spans = traces.of_the_journal(trial)
    points = traces.points()
    taken = [one for run in trial.journal.ever for one in _taken(_new(trial, run))]
    usages = [one for _, one in taken if one is not None and not one.estimated and one.total_tokens]
    total = sum(usages, Usage())
    inputs, outputs = total.input_tokens, total.output_tokens
    if traces.newest:
        amounts = (inputs, outputs, total.cache_read_tokens, total.cache_write_tokens, total.reasoning_tokens)
        for kind, amount in zip(("input_tokens", "output_tokens", *SHARES), amounts, strict=True):
            found = points.get(f"gen_ai.client.inference.usage.{kind}", [])
            yield from _differs(kind, amount, sum(one.value for one in found))
        for kind, amount in (("input_tokens", inputs), ("output_tokens", outputs)):
            found = points.get(f"gen_ai.client.inference.operation.{kind}", [])
            yield from _differs(f"spread of {kind}", (len(usages), amount), _count_and_sum(found))
    else:
        found = points.get("gen_ai.client.token.usage", [])
        for kind, amount in (("input", inputs), ("output", outputs)):
            of_kind = [one for one in found if one.attributes["gen_ai.token.type"] == kind]
            yield from _differs(f"{kind} tokens", (len(usages), amount), _count_and_sum(of_kind))
    chat = "gen_ai.client.inference.duration" if traces.newest else "gen_ai.client.operation.duration"
    found = points.get(chat, [])
    yield from _differs("calls of models", len(taken), _count_and_sum(found)[0])
    failed = sum(one.count for one in found if "error.type" in one.attributes)
    yield from _differs("calls that failed", sum(error for error, _ in taken), failed)
    told = {"chat": chat}
    if traces.newest:
        told |= {one: f"gen_ai.{one}.duration" for one in ("invoke_agent", "execute_tool")}
    for operation, name in told.items():
        own = [one for one in spans if (one.attributes or {})["gen_ai.operation.name"] == operation]
        count, seconds = _count_and_sum(points.get(name, []))
        yield from _differs(f"{operation} durations", len(own), count)
        lasted = sum((one.end_time or 0) - (one.start_time or 0) for one in own) / 1e9
        if not isclose(lasted, seconds, rel_tol=1e-6, abs_tol=1e-6):
            yield f"{operation} took {lasted} s by the journal, and {seconds} s were counted"


def _differs(what: str, wanted: Any, found: Any) -> Iterator[str]:
    if wanted != found:
        yield f"metrics: the journal has {wanted} {what}, and {found} were counted"


def _count_and_sum(points: list[Any]) -> tuple[int, Any]:
    return sum(one.count for one in points), sum(one.sum for one in points)


def _new(trial: Any, run: str) -> list[Event]:
    """The events of a run that happened in it, in this process or a later one: not those that it was forked with."""
    events = trial.journal.events(run)
    own = max((i + 1 + event.again for i, event in enumerate(events) if isinstance(event, RunForked)), default=0)
    before = Counter(one for one, _ in trial.journal.order[: trial.before])[run]
    return events[max(own, before) :]


def _taken(events: list[Event]) -> Iterator[tuple[bool, Usage | None]]:
    """The calls of models: whether one failed, and what it took."""
    for event in events:
        match event:
            case ModelReplied(usage=usage):
                yield False, usage
            case ModelFailed(usage=usage):
                yield True, usage
            case ContextEdited(usage=usage, reserve=None) if usage is not None:
                yield False, usage
