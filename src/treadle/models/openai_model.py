"""OpenAI's models over HTTP, and those that speak as they do: the dialects of Chat Completions and of Responses.

Neighbours: `treadle.models.http_model`, which does the work; `treadle.models.openai_chat` and
`treadle.models.openai_responses`, the dialects.
"""

from typing import Unpack

from msgspec.structs import replace

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Opaque
from treadle.models.errors import BadRequest
from treadle.models.given import check_cache
from treadle.models.hosts import OPENAI, host_of, takes_turns
from treadle.models.http_model import HttpModel, HttpOptions, hostname
from treadle.models.openai_cache import KEEPS, Keep
from treadle.models.port import ModelReply
from treadle.models.providers import PROVIDERS
from treadle.models.refused_thinking import RefusedThinking
from treadle.models.sound import reported_of


class OpenAIChatModel(HttpModel):
    """A model that speaks Chat Completions: OpenAI's, or any compatible server's by its `base_url`.

    Args:
        model: the model's name, as the provider knows it.
        provider: who serves it, one of the table `treadle.models.providers.PROVIDERS` that speaks this dialect, such as
            "groq"; "local" for any other, with `base_url`.
        cache_key: the key for the provider's prompt cache; by default one of the conversation's own, at OpenAI only.
        cache: how long OpenAI is to keep the prefix of a run: "in_memory" or "24h" for models before gpt-5.6, "30m" or
            "12h" since. None leaves it to the provider.
        options: see `HttpOptions`.
    """

    def __init__(
        self,
        model: str,
        *,
        provider: str = "openai-chat",
        cache_key: str | None = None,
        cache: Keep | None = None,
        **options: Unpack[HttpOptions],
    ) -> None:
        from treadle.models.openai_chat import ChatCodec

        served_by = PROVIDERS.get(provider)
        if served_by is None or served_by.dialect != "chat":
            known = ", ".join(name for name, one in PROVIDERS.items() if one.dialect == "chat")
            raise Misuse(f"{provider!r} is no provider of Chat Completions; there are {known}")
        check_cache(cache, KEEPS, cache_key)
        host = host_of(hostname(served_by, options))
        # What is no name at all is refused with the options.
        if is_strict := takes_turns(host, str(model)):
            host = replace(host, short_ids=True)
        codec = ChatCodec(provider, host, cache_key=cache_key, cache=cache)
        super().__init__(model, served_by, codec, **options)
        if is_strict:
            self._thinking = RefusedThinking(served_by.dialect, self.name, model, frozenset({"order"}))

    def _check(self, reply: ModelReply) -> None:
        """Raises `BadRequest` for a reply that calls a custom tool, which the caller was to carry out."""
        if any(isinstance(part, Opaque) and "custom" in part.value for part in reply.message.content):
            raise _left(reply, f"{self.name} calls a custom tool, which is not carried out here: use functions")


class OpenAIResponsesModel(HttpModel):
    """A model that speaks OpenAI's Responses.

    Args:
        model: the model's name, as the provider knows it.
        cache_key: the key for the provider's prompt cache; by default one of the conversation's own, at OpenAI only.
        cache: how long OpenAI is to keep the prefix of a run: "in_memory" or "24h" for models before gpt-5.6, "30m" or
            "12h" since. None leaves it to the provider.
        options: see `HttpOptions`.
    """

    def __init__(
        self,
        model: str,
        *,
        cache_key: str | None = None,
        cache: Keep | None = None,
        **options: Unpack[HttpOptions],
    ) -> None:
        from treadle.models.openai_responses import ResponsesCodec

        provider = PROVIDERS["openai"]
        check_cache(cache, KEEPS, cache_key)
        name = hostname(provider, options)
        host = host_of(name)
        place = None if host is OPENAI else name
        codec = ResponsesCodec(host=host, cache_key=cache_key, cache=cache, place=place)
        super().__init__(model, provider, codec, **options)

    def _check(self, reply: ModelReply) -> None:
        """Raises `BadRequest` for a reply that leaves to the caller what nobody here can do."""
        from treadle.models.openai_responses_items import waits_for

        own = [part.value for part in reply.message.content if isinstance(part, Opaque)]
        if waiting := waits_for(own):
            raise _left(reply, f"{self.name} {waiting}")


def _left(reply: ModelReply, words: str) -> BadRequest:
    """The error for a whole reply that nobody here can go on from, which was paid for all the same."""
    error = BadRequest(words)
    error.usage = reported_of(reply).usage
    return error
