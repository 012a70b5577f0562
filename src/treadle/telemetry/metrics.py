"""Metrics: how many tokens, and how long, by the conventions' names.

The usual pair is `gen_ai.client.token.usage` and `gen_ai.client.operation.duration`. With
`OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental` the newest take their place, as the conventions say.
"""

import os
from typing import Any, Final

from treadle.kernel.messages import Usage
from treadle.telemetry.spans import Span

TOKENS: Final = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]
SECONDS: Final = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
"""The bounds that the conventions name for their histograms."""

OPT_IN: Final = "gen_ai_latest_experimental"

_MODELS: Final = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model")
_LABELS: Final = {
    "chat": (*_MODELS, "gen_ai.response.model"),
    "invoke_agent": (*_MODELS, "gen_ai.agent.name"),
    "execute_tool": ("gen_ai.operation.name", "gen_ai.tool.name"),
}
"""What is counted apart, as far as a span has it."""


def wants_newest() -> bool:
    """Whether the environment asks for the newest names."""
    return OPT_IN in [word.strip() for word in os.environ.get("OTEL_SEMCONV_STABILITY_OPT_IN", "").split(",")]


class Metrics:
    """The instruments, made of a meter of OpenTelemetry's.

    Args:
        meter: makes them.
        newest: whether the newest names are used.
    """

    def __init__(self, meter: Any, *, newest: bool) -> None:
        self._newest = newest

        def histogram(name: str, unit: str, about: str) -> Any:
            bounds = TOKENS if unit == "{token}" else SECONDS
            return meter.create_histogram(name, unit, about, explicit_bucket_boundaries_advisory=bounds)

        if not newest:
            self._tokens = histogram("gen_ai.client.token.usage", "{token}", "Number of input and output tokens used.")
            self._seconds = {"chat": histogram("gen_ai.client.operation.duration", "s", "GenAI operation duration.")}
            return
        inference = "gen_ai.client.inference"
        self._seconds = {
            "chat": histogram(f"{inference}.duration", "s", "Inference duration."),
            "invoke_agent": histogram("gen_ai.invoke_agent.duration", "s", "Agent invocation duration."),
            "execute_tool": histogram("gen_ai.execute_tool.duration", "s", "Tool execution duration."),
        }
        kinds = ("input_tokens", "output_tokens")
        shares = ("cache_read.input_tokens", "cache_write.input_tokens", "reasoning.output_tokens")
        self._counters = {
            kind: meter.create_counter(f"{inference}.usage.{kind}", "{token}", f"Tokens used: {kind}.")
            for kind in (*kinds, *shares)
        }
        self._spread = {
            kind: histogram(f"{inference}.operation.{kind}", "{token}", f"Tokens of an operation: {kind}.")
            for kind in kinds
        }

    def record(self, span: Span) -> None:
        """Counts a span that has ended."""
        seconds, said = self._seconds.get(span.operation), span.attributes
        if seconds is None:
            return
        labels = {name: said[name] for name in _LABELS[span.operation] if name in said}
        error = {"error.type": span.error} if span.error else {}
        seconds.record((span.end - span.start) / 1e9, {**labels, **error})
        usage = span.usage
        if usage is None or not usage.total_tokens:
            return
        if self._newest:
            self._count(usage, labels)
        else:
            self._tokens.record(usage.input_tokens, {**labels, "gen_ai.token.type": "input"})
            self._tokens.record(usage.output_tokens, {**labels, "gen_ai.token.type": "output"})

    def _count(self, usage: Usage, labels: dict[str, Any]) -> None:
        counted = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read.input_tokens": usage.cache_read_tokens,
            "cache_write.input_tokens": usage.cache_write_tokens,
            "reasoning.output_tokens": usage.reasoning_tokens,
        }
        for kind, count in counted.items():
            if count:
                # Providers do not break all of their counts down.
                self._counters[kind].add(count, {**labels, "gen_ai.token.modality": "unknown"})
            if kind in self._spread:
                self._spread[kind].record(count, labels)
