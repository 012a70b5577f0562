"""`treadle models`: who serves models, which keys are set (never what they are), and what would be used now.

With a name: what that model can do, as far as it is known.
"""

import os
from typing import Any

import click
from msgspec import to_builtins

from treadle.cli import completion
from treadle.cli.choose import DEFAULT_MODELS, choose, local_models, model_named, ollama_address
from treadle.cli.stored_keys import take_keys
from treadle.cli.table import print_table
from treadle.cli.terminal import note, print_json, prose
from treadle.kernel.messages import Usage
from treadle.models.named import in_text
from treadle.models.names import is_known, model_from_name
from treadle.models.port import Model
from treadle.models.profile import profile_of
from treadle.models.providers import PROVIDERS, Provider
from treadle.models.sound import cost_of


@click.command(short_help="List the providers of models, and which can be used here.")
@click.argument("name", required=False, shell_complete=completion.models)
@click.option("--json", "as_object", is_flag=True, help="Print a JSON object.")
def models(name: str | None, as_object: bool) -> int:
    """List the providers of models, the environment variables they read, and which of them are set.

    With NAME, such as openai:gpt-5, what that model can do, as far as it is known; it is not called.
    """
    if name is not None:
        return _what(name, as_object)
    take_keys()
    served = local_models()
    providers = [_described(provider, served) for provider in PROVIDERS.values()]
    providers.append(
        {"provider": "offline", "name": "offline", "key": "", "key_set": None, "address_variable": "", "ready": True}
    )
    choice = choose(None)
    if as_object:
        print_json({"providers": providers, "local_models": served or [], "chosen": choice.name, "why": choice.why})
        return 0
    rows = [
        (one["provider"], one["name"], one["key"], _word(one["key_set"]), one["address_variable"],
         "yes" if one["ready"] else "no")
        for one in providers
    ]  # fmt: skip
    print_table(["provider", "name, for example", "key in", "set", "address in", "ready"], rows)
    if served:
        note(prose(f"Ollama at {ollama_address()} has: {', '.join(served)}", err=True))
    note(prose(f"used if none is named: {choice.name} ({choice.why})", err=True))
    return 0


def _what(name: str, as_object: bool) -> int:
    model = _without_key(name)
    profile = to_builtins(profile_of(model))
    profile["price_known"] = cost_of(model, Usage(1, 1)) is not None
    if as_object:
        print_json({"model": model.name, **profile})
        return 0
    words = {None: "not known", True: "yes", False: "no"}
    rows = [
        (field.replace("_", " "), words.get(value) if value is None or isinstance(value, bool) else f"{value:,}" if
         isinstance(value, int) else value)
        for field, value in profile.items()
    ]  # fmt: skip
    print_table([model.name, "as far as it is known"], rows)
    return 0


def _without_key(name: str) -> Model:
    """The model of that name; no key is needed to say what it can do."""
    inner = in_text(name)
    if inner is not None:
        return inner.around(_without_key(inner.name))
    return model_from_name(name, api_key="not needed") if is_known(name) else model_named(name)


def _described(provider: Provider, served: list[str] | None) -> dict[str, Any]:
    key_set = bool(os.environ.get(provider.key_set, "").strip()) if provider.key_variable else None
    example = {
        "openai-chat": DEFAULT_MODELS["openai"],
        "ollama": served[0] if served else "MODEL",
        "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "local": "MODEL@http://127.0.0.1:8000/v1",
    }
    return {
        "provider": provider.name,
        "name": f"{provider.name}:{DEFAULT_MODELS.get(provider.name) or example.get(provider.name, 'MODEL')}",
        "key": provider.key_variable,
        "key_set": key_set,
        "address_variable": provider.url_variable,
        "ready": bool(key_set) if provider.needs_key else provider.name != "ollama" or bool(served),
    }


def _word(key_set: bool | None) -> str:
    return "" if key_set is None else "yes" if key_set else "no"
