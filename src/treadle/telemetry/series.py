"""Series: a histogram or counter with one set of attributes, to which is added over and over.

Where the instrument is the SDK's own, what is added goes to its aggregations directly: it looks at each attribute three
times for each addition, which costs six times as much as the addition. Whatever the application has set up that needs
more than the amount, such as views on attributes, exemplars of all, or sums that begin anew with each collection, goes
the instrument's own way, and so does whatever is not as we know it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Add = Callable[[float], None]


def series(instrument: Any, attributes: Mapping[str, Any]) -> Add:
    """What adds an amount to `instrument` under these attributes; for one thread only.

    Args:
        instrument: a histogram or counter of OpenTelemetry's.
        attributes: which are not changed any more.
    """
    add = instrument.record if hasattr(instrument, "record") else instrument.add

    def usual(amount: float) -> None:
        add(amount, attributes)

    try:
        return _Direct(instrument, attributes, usual).add
    except (ImportError, AttributeError, TypeError):
        return usual


class _Direct:
    """Adds to the aggregations of an instrument of the SDK's; it is itself the measurement that they are shown.

    Attributes:
        value: what is added.
    """

    __slots__ = ("_attributes", "_consumer", "_enabled", "_instrument", "_storages", "_takers", "_usual", "value")

    def __init__(self, instrument: Any, attributes: Mapping[str, Any], usual: Add) -> None:
        self._instrument, self._attributes, self._usual = instrument, attributes, usual
        self._consumer, self._enabled = instrument._measurement_consumer, instrument._is_enabled
        self._storages: Any = None
        self._takers: Sequence[Callable[[Any, bool], None]] = ()
        self.value: float = 0
        self._look()

    def add(self, amount: float) -> None:
        """Adds `amount`, which is finite and not negative."""
        if self._consumer._reader_storages is not self._storages:
            self._look()
        if not self._takers or not self._enabled():
            self._usual(amount)
            return
        self.value = amount
        for take in self._takers:
            take(self, False)

    def _look(self) -> None:
        """Finds the aggregations of all readers; none where one of them wants to be shown more than the amount."""
        from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, TraceBasedExemplarFilter

        self._storages, self._takers = self._consumer._reader_storages, ()
        if type(self._consumer._sdk_config.exemplar_filter) not in (AlwaysOffExemplarFilter, TraceBasedExemplarFilter):
            return
        takers = []
        for storage in self._storages.values():
            for match in storage._get_or_init_view_instrument_match(self._instrument):
                if match._reset_on_collect or match._view._attribute_keys is not None:
                    return
                takers.append(_aggregation(match, self._attributes).aggregate)
        self._takers = takers


def _aggregation(match: Any, attributes: Mapping[str, Any]) -> Any:
    from opentelemetry.sdk.metrics._internal._view_instrument_match import _hash_attributes

    with match._lock:
        return match._get_or_create_aggregation(_hash_attributes(attributes), attributes)
