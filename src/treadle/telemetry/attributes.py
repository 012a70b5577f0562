"""Attributes: what is said of models and their calls, by the names of the semantic conventions."""

from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

from treadle.kernel.messages import ModelSettings, Usage
from treadle.models.named import in_text
from treadle.models.names import UnknownModel

PROVIDERS: Final = {
    "anthropic": "anthropic",
    "openai": "openai",
    "openai-chat": "openai",
    "google": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "groq": "groq",
    "mistral": "mistral_ai",
    "deepseek": "deepseek",
    "xai": "x_ai",
    "moonshot": "moonshot_ai",
    "perplexity": "perplexity",
    "cohere": "cohere",
}
"""What the conventions call the providers that treadle knows by other names; all else goes by our name."""


@lru_cache(1000)
def _of_model(name: str) -> tuple[str, str]:
    with suppress(UnknownModel):
        inner = in_text(name)
        name = name if inner is None else inner.name
    provider, colon, model = name.partition(":")
    if "(" in provider:
        # It stands for several, and which one was asked is told of its replies alone.
        return "", name
    if not colon:
        return PROVIDERS.get(provider, provider), name
    # What follows an @ is an address, which may be somebody's own.
    address = model.lower().find("@http")
    return PROVIDERS.get(provider, provider), model if address < 0 else model[:address]


def of_model(name: str) -> dict[str, Any]:
    """The provider and the model of a name such as "anthropic:claude-sonnet-4-5"."""
    provider, model = _of_model(name)
    return {"gen_ai.provider.name": provider or "_OTHER", "gen_ai.request.model": model}


def of_settings(settings: ModelSettings) -> dict[str, Any]:
    """How a model was to generate, as far as it was said."""
    if settings == ModelSettings():
        return {}
    found = {
        "gen_ai.request.max_tokens": settings.max_tokens,
        "gen_ai.request.temperature": settings.temperature,
        "gen_ai.request.top_p": settings.top_p,
        "gen_ai.request.seed": settings.seed,
        "gen_ai.request.stop_sequences": settings.stop,
        "gen_ai.request.reasoning.level": settings.thinking if isinstance(settings.thinking, str) else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def of_usage(usage: Usage, *, newest: bool) -> dict[str, int]:
    """The tokens that a provider counted; what it did not report of is left out. Nothing at all for no tokens."""
    if not (usage.input_tokens or usage.output_tokens):
        return {}
    found = {"gen_ai.usage.input_tokens": usage.input_tokens, "gen_ai.usage.output_tokens": usage.output_tokens}
    if usage.cache_read_tokens:
        found["gen_ai.usage.cache_read.input_tokens"] = usage.cache_read_tokens
    if usage.cache_write_tokens:
        kind = "cache_write" if newest else "cache_creation"
        found[f"gen_ai.usage.{kind}.input_tokens"] = usage.cache_write_tokens
    if usage.reasoning_tokens:
        found["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning_tokens
    return found
