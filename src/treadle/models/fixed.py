"""Fixed: the tokens of a request that do not stand in its messages, at most.

They are the tools' descriptions, the schema of the answer, and what a provider adds of its own. Pure. Neighbours:
`treadle.context.tokens`, which estimates text; `treadle.models.hosts`, which knows what providers add.
"""

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from treadle.context.texts import estimate_text
from treadle.context.tokens import MESSAGE_TOKENS
from treadle.kernel.messages import Json, ToolSpec
from treadle.models.hosts import Host
from treadle.models.port import Model
from treadle.models.profile import MOST_TOKENS
from treadle.models.tool_schema import CLAUDES, as_taken


def fixed_tokens(model: Model, tools: Sequence[ToolSpec], output_schema: Json | None) -> int:
    """What each request to `model` holds besides its messages: as the model says, if it does, else `described`."""
    ask = getattr(model, "fixed_tokens", None)
    found: object = described(tools, output_schema) if ask is None else ask(tuple(tools), output_schema)
    if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= MOST_TOKENS:
        return found
    return described(tools, output_schema)


def described(tools: Sequence[ToolSpec], output_schema: Json | None) -> int:
    """The descriptions of `tools` and the schema, as JSON. Some providers write them out in less."""
    said = [_json((spec.name, *as_taken(spec, CLAUDES))) + MESSAGE_TOKENS for spec in tools]
    return sum(said) + (0 if output_schema is None else _json(output_schema) + MESSAGE_TOKENS)


def billed(host: Host, tools: Sequence[ToolSpec], output_schema: Json | None) -> int:
    """`described`, and what `host` adds of its own, as it documents that, else as it was seen to."""
    added = host.adds + (host.adds_for_tools if tools else 0)
    return described(tools, output_schema) + added + (0 if output_schema is None else host.adds_for_schema)


def members(model: Model) -> Sequence[Model]:
    """The models that may answer in its place: `model.models`, if it stands for several, else itself alone."""
    several: object = getattr(model, "models", None)
    return several if isinstance(several, (list, tuple)) and several else (model,)


def answered_by(model: Model, name: str) -> Model:
    """Which of them gave a reply that bears `name`; `model` itself where none, or several, are called that."""
    several = members(model)
    if several == (model,):
        return model
    found = [one for inner in several if (one := answered_by(inner, name)).name == name]
    return found[0] if len(found) == 1 else model


def _json(value: object) -> int:
    return _tokens(msgspec.json.encode(value))


@lru_cache(1000)
def _tokens(said: bytes) -> int:
    # Each agent that has a tool asks this anew.
    return estimate_text(said.decode())
