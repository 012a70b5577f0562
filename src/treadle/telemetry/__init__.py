"""OpenTelemetry: traces and metrics of runs, made of their events by one fold.

`Telemetry` is given to an agent and tells of its runs as they go; `send` tells of runs in a journal afterwards. Both
make the same spans, with the same ids.

    spans.py        the fold: events to spans, with the calls of tools in calls.py; attributes.py and content.py: what
                    is said of them
    emitter.py      spans to OpenTelemetry's tracer
    metrics.py      spans to its meter
    worker.py       the thread in which that happens
    sending.py      runs of a journal
"""

from treadle.telemetry.live import Telemetry
from treadle.telemetry.sending import Sent, send

__all__ = ["Sent", "Telemetry", "send"]
