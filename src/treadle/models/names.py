"""Names of models: "provider:model" made into a model.

Neighbours: `treadle.models.providers`, the table; `treadle.models.http_model`, what is made.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, Unpack, assert_never

from treadle.kernel.errors import Misuse
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.bedrock_model import BedrockModel
from treadle.models.google_model import GoogleModel
from treadle.models.http_model import HttpOptions
from treadle.models.openai_model import OpenAIChatModel, OpenAIResponsesModel
from treadle.models.port import Model
from treadle.models.providers import ALIASES, MAKERS, PROVIDERS

OFFLINE: Final = "offline"

BEGINNING: Final = re.compile(r"o\d|[a-z]+")

ELSEWHERE: Final[Mapping[str, str]] = {
    "vertex": "models on Vertex need a project and an access token beside their name: Gemini by GoogleModel(NAME, "
    "project=…, token=…), Claude by AnthropicModel(NAME, client=AsyncAnthropicVertex()); see docs/models.md"
}
"""Providers that a name is not enough for."""


class UnknownModel(Misuse):
    """A model's name does not say which model is meant."""


def model_from_name(name: str, **options: Unpack[HttpOptions]) -> Model:
    """The model that `name` names.

    Args:
        name: "provider:model", or "provider/model", with a provider of the table in `treadle.models.providers`
            (`anthropic:`, `openai:` for Responses, `openai-chat:`, `ollama:`, …) or another name of one (`ALIASES`);
            "local:model@http://host:port/v1" for any compatible server; or "offline" for the planner that needs no key
            and no network.
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
    label, model = split_name(name)
    if label == "local":
        model, at, address = model.rpartition("@")
        if not at or not model:
            raise UnknownModel(f"{name!r} has no address; write local:NAME@http://host:port/v1")
        options["base_url"] = address
    if not model:
        raise UnknownModel(f"{name!r} names no model; write {label}:NAME")
    provider = PROVIDERS[label]
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


def split_name(name: str) -> tuple[str, str]:
    """The provider, as the table has it, and the model in a name such as "openai:gpt-5" or "openai/gpt-5".

    Raises:
        UnknownModel: it names no provider that there is; the message says what there is, and what may be meant.
    """
    # Either may hold the other sign: openrouter:openai/gpt-5, ollama/qwen3:8b.
    label, colon, model = name.partition(":")
    label = ALIASES.get(label.lower(), label.lower())
    if colon and label in PROVIDERS:
        return label, model
    label, slash, model = name.partition("/")
    if slash and label.lower() in PROVIDERS:
        # No other name: Qwen/Qwen3-8B is a model in many places, and says of none which.
        return label.lower(), model
    raise UnknownModel(_unknown(name))


def is_known(name: str) -> bool:
    """Whether `name` names a provider that there is."""
    try:
        split_name(name)
    except UnknownModel:
        return False
    return True


def _unknown(name: str) -> str:
    label, colon, model = name.partition(":") if ":" in name else name.partition("/")
    if elsewhere := ELSEWHERE.get(label.lower()):
        return elsewhere
    if label.lower() in PROVIDERS and not colon:
        return f"{name!r} names no model; write {name.lower()}:NAME"
    if label.lower() == OFFLINE:
        return f"{name!r} names a model, and there is one that needs no network: write {OFFLINE!r}"
    meant, listed = _meant(name, label, model), ", ".join(sorted([*PROVIDERS, OFFLINE]))
    if ":" in name:
        said = f"there is no provider {label!r}{f'; did you mean {meant}?' if meant else '.'} There are {listed}"
    else:
        near = f" (did you mean {meant}?)" if meant else ""
        said = f"{name!r} does not say who serves it{near}; write provider:name, with a provider of {listed}"
    return (
        f"{said}. Any other server that speaks as OpenAI does is local:NAME@URL, such as "
        "local:my-model@http://localhost:8000/v1"
    )


def _meant(name: str, label: str, model: str) -> str:
    """The name that is most likely meant; empty if nothing is near."""
    maker = _maker_of(name)
    if maker and not model:
        return repr(f"{maker}:{name}")
    published = bool(model) and ":" not in name
    known = [*PROVIDERS] if published else [*PROVIDERS, *ALIASES, OFFLINE]
    near = get_close_matches(label.lower(), known, n=1, cutoff=0.75)
    if near:
        return repr(f"{near[0]}:{model}" if model and ":" not in name else near[0])
    if published:
        return f"'huggingface:{name}' or 'openrouter:{name}'"
    return repr(f"{maker}:{name}") if maker else ""


def _maker_of(model: str) -> str:
    """Whom to ask for `model`, by how its name begins; empty if it does not tell."""
    first = BEGINNING.match(model.lower())
    return "" if first is None else MAKERS.get(first[0], "")
