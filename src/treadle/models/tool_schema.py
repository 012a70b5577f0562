"""Tool schemas: what a tool takes, as providers take it.

Pure. OpenAI and Anthropic want an object, and refuse the whole request for one tool whose schema has a choice at its
top; servers of MCP list such tools. What is taken out there is told to the model in words, and arguments are held
against the whole schema in any case. Neighbours: the dialects; `treadle.models.output_schema`, the same for answers.
"""

from typing import Final

import msgspec

from treadle.kernel.messages import Json, ToolSpec

CHOICES: Final = ("anyOf", "oneOf", "allOf")
UNTAKEN: Final = (*CHOICES, "not", "enum")


def as_taken(spec: ToolSpec) -> tuple[str, Json]:
    """The description of a tool, and the schema of what it takes: an object, with nothing of `UNTAKEN` at its top."""
    schema = spec.input_schema if "type" in spec.input_schema else {"type": "object"} | spec.input_schema
    told = {keyword: schema[keyword] for keyword in UNTAKEN if keyword in schema}
    if not told:
        return spec.description, schema
    kept = {keyword: value for keyword, value in schema.items() if keyword not in told}
    rules = msgspec.json.encode(told).decode()
    words = f"{spec.description} The arguments have to fit this, too: {rules}".strip()
    return words, kept | {"properties": _properties(schema)}


def _properties(schema: Json) -> Json:
    """The properties of a schema, and those that only its choices name."""
    found: dict[str, list[Json]] = {}
    for keyword in CHOICES:
        for one in schema.get(keyword, ()):
            for name, part in one.get("properties", {}).items() if isinstance(one, dict) else ():
                if part not in found.setdefault(name, []):
                    found[name].append(part)
    named = {name: parts[0] if len(parts) == 1 else {"anyOf": parts} for name, parts in found.items()}
    properties: Json = named | schema.get("properties", {})
    return properties
