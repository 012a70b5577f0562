"""Names of models: "provider:model" made into a model.

Neighbours: `treadle.models.providers`, the table; `treadle.models.http_model`, what is made.
"""

from difflib import get_close_matches
from typing import Final, Unpack, assert_never

from treadle.kernel.errors import Misuse
from treadle.models.bedrock_model import BedrockModel
from treadle.models.google_model import GoogleModel
from treadle.models.http_model import AnthropicModel, HttpOptions, OpenAIChatModel, OpenAIResponsesModel
from treadle.models.port import Model
from treadle.models.providers import ALIASES, PROVIDERS

OFFLINE: Final = "offline"


class UnknownModel(Misuse):
    """A model's name does not say which model is meant."""


def model_from_name(name: str, **options: Unpack[HttpOptions]) -> Model:
    """The model that `name` names.

    Args:
        name: "provider:model" with a provider of the table (`anthropic:`, `openai:` for Responses, `openai-chat:`,
            `google:` or `gemini:`, `bedrock:`, `ollama:`, `openrouter:`, `groq:`, `mistral:`, `deepseek:`),
            "local:model@http://host:port/v1" for any compatible server, or "offline" for the planner that needs no
            key and no network.
        options: see `HttpOptions`; "offline" takes none.

    Raises:
        UnknownModel: there is no such provider, or the name has another form; the message says what there is.
        MissingKey: the provider needs a key, and there is none.
    """
    if name == OFFLINE:
        from treadle.models.offline import OfflineModel

        if options:
            raise Misuse(f"the offline model takes no options; it was given {', '.join(options)}")
        return OfflineModel()
    label, colon, model = name.partition(":")
    label = ALIASES.get(label, label)
    provider = PROVIDERS.get(label)
    if not colon or provider is None:
        raise UnknownModel(_unknown(name, label if colon else ""))
    if label == "local":
        model, at, address = model.rpartition("@")
        if not at or not model:
            raise UnknownModel(f"{name!r} has no address; write local:NAME@http://host:port/v1")
        options["base_url"] = address
    if not model:
        raise UnknownModel(f"{name!r} names no model; write {label}:NAME")
    match provider.dialect:
        case "anthropic":
            return AnthropicModel(model, **options)
        case "responses":
            return OpenAIResponsesModel(model, **options)
        case "chat":
            return OpenAIChatModel(model, provider=label, **options)
        case "converse":
            return BedrockModel(model, **options)
        case "google":
            return GoogleModel(model, **options)
        case _:
            assert_never(provider.dialect)


def _unknown(name: str, label: str) -> str:
    known = [*PROVIDERS, *ALIASES, OFFLINE]
    listed = ", ".join(sorted(known))
    if label:
        near = get_close_matches(label.lower(), known, n=1)
        meant = f"; did you mean {near[0]!r}?" if near else "."
        return f"there is no provider {label!r}{meant} There are {listed}"
    near = get_close_matches(name.lower(), known, n=1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    return f"{name!r} does not say who serves it{meant}; write provider:name, with a provider of {listed}"
