"""Which model: what is named; else one whose key is in the environment; else a local server's; else `offline`.

Reads the environment, and asks a local server with a very short patience; no key is ever shown.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from treadle.cli.settings import setting
from treadle.cli.stored_keys import take_keys
from treadle.kernel.errors import Misuse
from treadle.models.named import in_text, model_from_name
from treadle.models.names import OFFLINE, is_known
from treadle.models.permission import VARIABLE
from treadle.models.port import Model, is_model
from treadle.models.providers import PROVIDERS, Provider

DEFAULT_MODELS = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-6-sol",
    "google": "gemini-3.5-flash",
    "openrouter": "anthropic/claude-sonnet-5.5",
    "groq": "openai/gpt-oss-120b",
    "mistral": "mistral-medium-latest",
    "deepseek": "deepseek-chat",
}
"""The model that is taken where only a key says which provider is meant; in this order."""

PATIENCE = 0.25
"""Seconds to wait for a local server."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model by its name, why it was chosen, whether somebody named it, and why in few words if those are many."""

    name: str
    why: str
    named: bool = False
    brief: str = ""

    def __str__(self) -> str:
        return f"model: {self.name} ({self.brief or self.why})"


def choose(named: str | None) -> ModelChoice:
    """The model to use.

    Args:
        named: what the command line says, if it says anything; else what is set, and so on.

    Raises:
        click.BadParameter: it names nothing, as a variable of a shell that is not set.
    """
    if named is not None and not named.strip():
        import click

        raise click.BadParameter("it names no model; leave it out to have one chosen", param_hint="'--model'")
    if named is not None:
        return ModelChoice(named, "named by --model", named=True)
    if (found := setting("model")) is not None:
        return ModelChoice(str(found.value), f"named by {found.where}", named=True)
    take_keys()
    for provider in with_key():
        return ModelChoice(f"{provider.name}:{DEFAULT_MODELS[provider.name]}", f"{provider.key_set} is set")
    models = local_models()
    if models:
        why = f"no key in the environment; Ollama answers at {ollama_address()}"
        return ModelChoice(f"ollama:{models[0]}", why, brief="no key is set, Ollama answers")
    server = "no local server answers" if models is None else f"Ollama at {ollama_address()} has no model"
    return ModelChoice(
        OFFLINE,
        f"no key in the environment and {server}; a planner, not a language model: set "
        f"{' or '.join(PROVIDERS[name].key_variable for name in list(DEFAULT_MODELS)[:2])}, or name one with --model",
        brief="a planner, not a language model; treadle doctor says why",
    )


def with_key() -> Iterator[Provider]:
    """The providers whose key is in the environment, in the order in which they are taken."""
    for name in DEFAULT_MODELS:
        if os.environ.get(PROVIDERS[name].key_set, "").strip():
            yield PROVIDERS[name]


def model_named(name: str) -> Model:
    """The model of that name: the library's names, or "module:object" and "path.py:object" for one of your own.

    After "text:" or "text:FORMAT:", any of them, with its tools in text.

    Raises:
        UnknownModel: nothing has that name.
        MissingKey: its provider needs a key, and there is none.
        click.UsageError: the module cannot be imported, the object is no model, or a package is missing.
    """
    if is_of_library(name):
        return library_model(name)
    if (inner := in_text(name)) is not None:
        return inner.around(model_named(inner.name))
    import click

    from treadle.agent import Agent
    from treadle.cli.loading import load

    made = load(name, "--model")[2]
    if isinstance(made, Agent):
        raise click.BadParameter(
            f"{name} is an agent, which has a model of its own; give it with --agent {name}", param_hint="'--model'"
        )
    if isinstance(made, type) or (callable(made) and not hasattr(made, "name")):
        made = made()
    if not is_model(made):
        raise click.BadParameter(
            f"{name} is {made!r:.60}, not a model: it needs a name and a method stream(request)",
            param_hint="'--model'",
        )
    return made


def is_of_library(name: str) -> bool:
    """Whether `name` is to be one of the library's names, and not that of an object of one's own."""
    if (inner := in_text(name)) is not None:
        return is_of_library(inner.name)
    label = name.partition(":")[0]
    # A folder of one's own may be called like a provider: local/agent.py:model.
    known = is_known(name) and not label.endswith(".py")
    return name == OFFLINE or ":" not in name or not _importable(label) or known


def library_model(name: str) -> Model:
    """The model that the library knows by that name.

    Raises:
        UnknownModel: nothing has that name.
        MissingKey: its provider needs a key, and there is none.
        click.UsageError: the packages for models over the network are not installed.
    """
    from importlib.util import find_spec

    if name != OFFLINE:
        take_keys()
    inner = in_text(name)
    if is_known(name if inner is None else inner.name) and find_spec("httpx2") is None:
        import click

        raise click.UsageError(f"the model {name} is called over the network, which needs: pip install 'treadle[http]'")
    return model_from_name(name)


def fault_in_model(name: str) -> str:
    """Why the library has no model of that name here; empty if it has, or if it is the user's, which is not loaded."""
    import click

    inner = in_text(name)
    label, colon, _ = (name if inner is None else inner.name).partition(":")
    if colon and _importable(label) and not is_known(name if inner is None else inner.name):
        return ""
    try:
        library_model(name)
    except Misuse as error:
        return str(error)
    except click.UsageError as error:
        return error.message
    return ""


def _importable(label: str) -> bool:
    """Whether `label` names a file or module of the user's rather than a provider."""
    from importlib.util import find_spec

    from treadle.cli.loading import search_here

    if label.endswith(".py"):
        return True
    # What begins so is the address of a server, though Python has a module of that name.
    if label == "http" or not all(part.isidentifier() for part in label.split(".")):
        return False
    search_here()
    try:
        return find_spec(label) is not None
    except (ImportError, ValueError):
        return False


def ollama_address() -> str:
    """Where a local Ollama would be: OLLAMA_HOST, else port 11434 of this machine."""
    return PROVIDERS["ollama"].address().removesuffix("/v1")


def local_models() -> list[str] | None:
    """The models that the local server has and that can chat, the newest first; None if no server answers."""
    if os.environ.get(VARIABLE, "") not in ("", "0"):
        return None
    answer: Any = None
    # Whatever is on that port, or in OLLAMA_HOST, it is no server to be used then.
    with suppress(OSError, HTTPException, ValueError):
        answer = _get(f"{ollama_address()}/api/tags")
    if not isinstance(answer, dict) or not isinstance(answer.get("models"), list):
        return None
    names = [model.get("name") for model in answer["models"] if isinstance(model, dict)]
    return [name for name in names if isinstance(name, str) and "embed" not in name]


def _get(address: str) -> Any:
    """The JSON at `address`; without a proxy, which would not know this machine's own servers."""
    parts = urlsplit(address)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=PATIENCE)
    try:
        connection.request("GET", parts.path)
        response = connection.getresponse()
        return json.loads(response.read(1_000_000)) if response.status == 200 else None
    finally:
        connection.close()
