"""Series: what is added to the SDK's aggregations directly is what its instruments would have come to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry.sdk.metrics import AlwaysOnExemplarFilter, Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader, MetricReader
from opentelemetry.sdk.metrics.view import DropAggregation, ExponentialBucketHistogramAggregation, View

from treadle.telemetry.series import series

AMOUNTS = (0.5, 3, 0, 70.25, 3)
ONE, OTHER = {"model": "a", "kind": "input"}, {"model": "a", "kind": "output"}


def _plain() -> MeterProvider:
    return MeterProvider([InMemoryMetricReader()])


def _delta() -> MeterProvider:
    kinds = dict.fromkeys((Counter, Histogram), AggregationTemporality.DELTA)
    return MeterProvider([InMemoryMetricReader(preferred_temporality=kinds)])


def _viewed(**view: Any) -> Callable[[], MeterProvider]:
    return lambda: MeterProvider([InMemoryMetricReader()], views=[View(instrument_name="seconds", **view)])


def _two() -> MeterProvider:
    return MeterProvider([InMemoryMetricReader(), InMemoryMetricReader()])


def _exemplars() -> MeterProvider:
    return MeterProvider([InMemoryMetricReader()], exemplar_filter=AlwaysOnExemplarFilter())


PROVIDERS = {
    "plain": _plain,
    "sums that begin anew": _delta,
    "a view on attributes": _viewed(attribute_keys={"model"}),
    "a view that drops it": _viewed(aggregation=DropAggregation()),
    "a view with other buckets": _viewed(aggregation=ExponentialBucketHistogramAggregation()),
    "two readers": _two,
    "exemplars of all": _exemplars,
}


@contextmanager
def instruments(make: Callable[[], MeterProvider]) -> Iterator[tuple[MeterProvider, Any, Any]]:
    provider = make()
    meter = provider.get_meter("treadle")
    yield provider, meter.create_histogram("seconds", "s", "x"), meter.create_counter("tokens")
    provider.shutdown()


def readers(provider: MeterProvider) -> list[InMemoryMetricReader]:
    found: list[Any] = list(provider._measurement_consumer._reader_storages)
    return found


def counted(reader: MetricReader) -> list[Any]:
    """What a reader has, without its times."""
    data = reader.get_metrics_data()  # type: ignore[attr-defined]
    if data is None:
        return []
    metrics = [one for of in data.resource_metrics for scope in of.scope_metrics for one in scope.metrics]
    points = [(one.name, point) for one in metrics for point in one.data.data_points]
    fields = ("attributes", "count", "sum", "value", "min", "max", "bucket_counts", "positive", "zero_count")
    told = [(name, [getattr(point, field, None) for field in fields], len(point.exemplars)) for name, point in points]
    return sorted(told, key=repr)


@pytest.mark.parametrize("make", PROVIDERS.values(), ids=PROVIDERS)
def test_what_is_added_directly_is_what_the_instruments_come_to(make: Callable[[], MeterProvider]) -> None:
    told = []
    for direct in (True, False):
        with instruments(make) as (provider, seconds, tokens):
            seen = []
            for amounts in (AMOUNTS, AMOUNTS[1:3], ()):
                for labels in (ONE, OTHER):
                    adds = [series(one, labels) for one in (seconds, tokens)] if direct else []
                    for amount in amounts:
                        for add in adds:
                            add(amount)
                        if not direct:
                            seconds.record(amount, labels)
                            tokens.add(amount, labels)
                seen.append([counted(one) for one in readers(provider)])
            told.append(seen)
    assert told[0] == told[1]


@pytest.mark.parametrize("make", PROVIDERS.values(), ids=PROVIDERS)
def test_a_series_is_used_over_and_over(make: Callable[[], MeterProvider]) -> None:
    with instruments(make) as (provider, seconds, _), instruments(make) as (again, usual, _):
        add = series(seconds, ONE)
        for amount in AMOUNTS:
            add(amount)
            usual.record(amount, ONE)
            assert [counted(one) for one in readers(provider)] == [counted(one) for one in readers(again)]


def test_a_reader_that_comes_later_is_given_what_comes_later() -> None:
    with instruments(_plain) as (provider, seconds, _):
        add, later = series(seconds, ONE), InMemoryMetricReader()
        add(1)
        provider._measurement_consumer.add_metric_reader(later)
        later._set_collect_callback(provider._measurement_consumer.collect)
        add(2)
        assert [counted(one)[0][1][2] for one in readers(provider)] == [3, 2]


class Other:
    """An instrument of somebody else's SDK."""

    def __init__(self) -> None:
        self.recorded: list[tuple[float, dict[str, str]]] = []

    def record(self, amount: float, attributes: Any) -> None:
        self.recorded.append((amount, attributes))


def test_an_instrument_that_is_not_the_sdk_s_is_asked_itself() -> None:
    other = Other()
    series(other, ONE)(5)
    assert other.recorded == [(5, ONE)]


def test_the_sdk_that_is_here_is_added_to_directly() -> None:
    with instruments(_plain) as (_, seconds, _):
        add: Any = series(seconds, ONE)
        assert add.__self__._takers
