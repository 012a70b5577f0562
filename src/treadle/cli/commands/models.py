"""`treadle models`: who serves models, which keys are set (never what they are), and what would be used now."""

import os
from typing import Any

import click

from treadle.cli.choose import DEFAULT_MODELS, choose, local_models, ollama_address
from treadle.cli.terminal import note, print_json, print_table
from treadle.models.providers import PROVIDERS, Provider


@click.command(short_help="List the providers of models, and which can be used here.")
@click.option("--json", "as_object", is_flag=True, help="Print a JSON object.")
def models(as_object: bool) -> int:
    """List the providers of models, the environment variables they read, and which of them are set."""
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
        note(f"Ollama at {ollama_address()} has: {', '.join(served)}")
    note(f"used if none is named: {choice.name} ({choice.why})")
    return 0


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
