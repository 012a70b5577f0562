"""Claude over HTTP: the dialect of Anthropic Messages under Anthropic's address.

Neighbours: `treadle.models.http_model`, which does the work; `treadle.models.anthropic`, the dialect.
"""

from typing import Literal, Unpack

from treadle.models.given import check_cache
from treadle.models.hosts import host_of
from treadle.models.http_model import HttpModel, HttpOptions, hostname
from treadle.models.providers import PROVIDERS


class AnthropicModel(HttpModel):
    """A model that speaks Anthropic Messages.

    Args:
        model: the model's name, as the provider knows it.
        cache: how long the provider is to keep the prefix of a run; None for no prompt caching.
        options: see `HttpOptions`.
    """

    def __init__(self, model: str, *, cache: Literal["5m", "1h"] | None = "5m", **options: Unpack[HttpOptions]) -> None:
        from treadle.models.anthropic import AnthropicCodec

        provider = PROVIDERS["anthropic"]
        check_cache(cache, ("5m", "1h"))
        host = host_of(hostname(provider, options))
        codec = AnthropicCodec(host=host, cache=cache, claude="claude" in str(model).lower())
        super().__init__(model, provider, codec, **options)
