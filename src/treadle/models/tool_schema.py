"""Tool schemas: what a tool takes, as providers take it.

Pure. OpenAI and Anthropic want an object, and refuse the whole request for one tool whose schema has a choice at its
top, Anthropic also for an argument with a name that it does not take, such as `filter[id]` or `größe`; servers of MCP
list such tools. What is taken out there is told to the model in words, and arguments are held against the whole schema
in any case. Neighbours: the dialects; `treadle.models.output_schema`, the same for answers.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from treadle.kernel.messages import Json, ToolSpec
from treadle.models.output_schema import definitions

CHOICES: Final = ("anyOf", "oneOf", "allOf")
CLOSING: Final = ("additionalProperties", "unevaluatedProperties")
UNTAKEN: Final = (*CHOICES, "not", "enum")
CLAUDES: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""The names of arguments that Anthropic takes."""


def as_taken(spec: ToolSpec, names: re.Pattern[str] | None = None) -> tuple[str, Json]:
    """The description of a tool, and the schema of what it takes: an object, with nothing of `UNTAKEN` at its top.

    Args:
        spec: the tool.
        names: those of arguments that are taken, if not all are.
    """
    schema = spec.input_schema if "type" in spec.input_schema else {"type": "object"} | spec.input_schema
    told: Json = {keyword: schema[keyword] for keyword in UNTAKEN if keyword in schema}
    kept = {keyword: value for keyword, value in schema.items() if keyword not in told}
    if told:
        kept["properties"] = _properties(schema)
    if names is not None:
        kept, untaken = _split(kept, names)
        told = untaken | told
    if not told:
        return spec.description, schema
    rules = msgspec.json.encode(told).decode()
    return f"{spec.description} The arguments have to fit this, too: {rules}".strip(), kept


def _split(schema: Json, names: re.Pattern[str]) -> tuple[Json, Json]:
    """A schema without the properties of which the names are not among `names`, and what it says of these."""
    properties: dict[str, Any] = schema.get("properties", {})
    untaken = {name: part for name, part in properties.items() if not names.fullmatch(name)}
    if not untaken:
        return schema, {}
    # They may be given all the same.
    kept = {keyword: value for keyword, value in schema.items() if keyword not in CLOSING}
    kept["properties"] = {name: part for name, part in properties.items() if name not in untaken}
    told: Json = {"properties": untaken}
    if required := [name for name in schema.get("required", ()) if name in untaken]:
        kept["required"] = [name for name in schema["required"] if name not in untaken]
        told["required"] = required
    return kept, told


def _properties(schema: Json) -> Json:
    """The properties of a schema, and those that only its choices name."""
    found: dict[str, list[Json]] = {}
    for one in _chosen(schema, definitions(schema), set()):
        for name, part in one.get("properties", {}).items():
            if part not in found.setdefault(name, []):
                found[name].append(part)
    named = {name: parts[0] if len(parts) == 1 else {"anyOf": parts} for name, parts in found.items()}
    properties: Json = named | schema.get("properties", {})
    return properties


def _chosen(schema: Json, named: Json, seen: set[str]) -> Iterator[Json]:
    """The schemas that the choices of a schema are among, also those in one another, and those that they refer to."""
    within = [one for keyword in CHOICES for one in schema.get(keyword, ()) if isinstance(one, dict)]
    reference = schema.get("$ref")
    if reference in named and reference not in seen and isinstance(named[reference], dict):
        seen.add(reference)
        within.append(named[reference])
    for one in within:
        yield one
        yield from _chosen(one, named, seen)
