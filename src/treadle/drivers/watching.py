"""Watching: what somebody who watches a run is shown, and what its log says."""

import logging
from typing import Any

from msgspec import Struct

from treadle.drivers.partial import PartialArguments
from treadle.kernel.events import Event
from treadle.kernel.messages import Json
from treadle.kernel.state import RunState
from treadle.models.port import ModelEvent

log = logging.getLogger("treadle")


class ToolProgress(Struct, frozen=True):
    """A tool under way reported how far it is. Shown to whoever watches; not part of the journal."""

    call_id: str
    name: str
    update: str | Json


class SubRunEvent(Struct, frozen=True):
    """Something happened in a sub-run. Shown to whoever watches the parent; the sub-run's own journal has it."""

    run_id: str
    call_id: str
    agent: str
    event: Any


RunEvent = Event | ModelEvent | PartialArguments | ToolProgress | SubRunEvent
"""What someone who watches a run sees: its journal's events, the model's deltas, the tools' reports, its sub-runs."""


def log_event(state: RunState, event: Event) -> None:
    """A line a step at INFO, and a line an event at DEBUG; what was said and found stays in the journal."""
    if state.step is None and state.steps and state.steps[-1].ended_at == event.at:
        step = state.steps[-1]
        calls = ", ".join([record.name for record in step.calls]) or "no tools"
        log.info(
            "run %s step %d: %s replied in %.3f s and asked for %s; %d tokens",
            state.run_id, step.number, step.model, step.replied_at - step.started_at, calls, step.usage.total_tokens,
        )  # fmt: skip
    log.debug("run %s event %d: %s", state.run_id, state.events - 1, type(event).__name__)
