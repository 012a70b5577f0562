"""Workers: processes that drive submitted runs, on one machine or many, and the queues that bring runs to them.

`PostgresQueue` (extra `workers`) keeps its orders beside the journal, in PostgreSQL; `TemporalQueue` (extra `temporal`)
leaves them to a Temporal cluster. Both keep the contract of `treadle.drivers.dispatch`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from treadle.drivers.dispatch import Dispatcher, Order, Pausing, QueueFull
from treadle.workers.deliveries import QueueUnavailable, WorkerStopped

if TYPE_CHECKING:
    from treadle.workers.postgres import PostgresQueue
    from treadle.workers.schedule import Schedule
    from treadle.workers.temporal import TemporalQueue

__all__ = [
    "Dispatcher",
    "Order",
    "Pausing",
    "PostgresQueue",
    "QueueFull",
    "QueueUnavailable",
    "Schedule",
    "TemporalQueue",
    "WorkerStopped",
]

_ADAPTERS = {
    "Schedule": ("treadle.workers.schedule", "workers"),
    "PostgresQueue": ("treadle.workers.postgres", "workers"),
    "TemporalQueue": ("treadle.workers.temporal", "temporal"),
}


def __getattr__(name: str) -> Any:
    if name not in _ADAPTERS:
        raise AttributeError(f"treadle.workers has no {name!r}")
    module, extra = _ADAPTERS[name]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{name} needs {error.name}, which is not installed: pip install 'treadle[{extra}]'", name=error.name
        ) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
