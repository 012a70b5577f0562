"""Google's schemas: what Gemini takes of a JSON Schema, for the input of a tool and for an answer.

Pure. Gemini takes a part of JSON Schema, and refuses a request that goes beyond it: what it has no keyword for is told
to the model in words, and the value is validated against the whole schema afterwards in any case.
Source: https://ai.google.dev/api/generate-content#FIELDS.response_json_schema.
Neighbours: `treadle.models.google`; `treadle.models.output_schema`, the same for other providers.
"""

from typing import Any, Final

import msgspec

from treadle.kernel.messages import Json

KEYWORDS: Final = frozenset(
    {
        *("$id", "$anchor", "type", "format", "description", "required", "minItems", "maxItems", "minimum", "maximum"),
        *("propertyOrdering",),
    }
)
LISTS: Final = frozenset({"anyOf", "oneOf", "prefixItems"})
MAPS: Final = frozenset({"properties", "$defs"})
SCHEMAS: Final = frozenset({"items", "additionalProperties"})
SILENT: Final = frozenset({"$schema", "title", "$comment", "discriminator"})
"""What says nothing of which values are right; a title beside one that is a property is refused."""
FORMATS: Final = frozenset({"date-time", "date", "time", "enum", "int32", "int64", "float", "double"})


def google_schema(schema: Json) -> Json:
    """`schema` as Gemini takes it: `const` as `enum`, what it has no keyword for in the description."""
    if isinstance(schema.get("$ref"), str):
        return _referred(schema)
    kept: Json = {}
    told: Json = {}
    for keyword, value in schema.items():
        if keyword == "definitions" and isinstance(value, dict):
            keyword = "$defs"
        if keyword in MAPS and isinstance(value, dict):
            kept[keyword] = kept.get(keyword, {}) | {name: _nested(part) for name, part in value.items()}
        elif keyword in LISTS and isinstance(value, list):
            kept[keyword] = [_nested(part) for part in value]
        elif keyword in SCHEMAS:
            kept[keyword] = value if keyword == "additionalProperties" and value is True else _nested(value)
        elif keyword == "enum" and isinstance(value, list) and all(map(_is_named, value)):
            kept[keyword] = value
        elif keyword == "const" and _is_named(value):
            kept["enum"] = [value]
        elif keyword in KEYWORDS and (keyword != "format" or value in FORMATS):
            kept[keyword] = value
        elif keyword not in SILENT:
            told[keyword] = value
    if told:
        rules = msgspec.json.encode(told).decode()
        kept["description"] = f"{kept['description']} {rules}" if kept.get("description") else rules
    if "enum" in kept and "type" not in kept and "anyOf" not in kept:
        # Gemini asks for the type of what it is to choose from.
        kept["type"] = "string" if all(isinstance(one, str) for one in kept["enum"]) else "number"
    return kept


def _referred(schema: Json) -> Json:
    """A reference, beside which Gemini takes nothing; what stands beside it goes round it."""
    target = schema["$ref"].replace("#/definitions/", "#/$defs/")
    beside = google_schema({name: value for name, value in schema.items() if name not in ("$ref", "default")})
    return (
        beside | {"anyOf": [{"$ref": target}]}
        if beside and "anyOf" not in beside
        else {"$ref": target} | {name: value for name, value in beside.items() if name.startswith("$")}
    )


def _nested(schema: Any) -> Any:
    """A schema within another; Gemini takes no `true` for one that anything fits."""
    return {} if schema is True else google_schema(schema) if isinstance(schema, dict) else schema


def _is_named(value: Any) -> bool:
    """Whether an enumeration may hold `value`."""
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)
