"""Output schemas: what a provider's native structured output makes of a JSON Schema.

Providers take a part of JSON Schema only, each another part, and refuse a request that goes beyond it. The value is
validated against the whole schema afterwards in any case, so what a provider cannot enforce is told to the model in
words. Pure. Neighbours: the dialects.
"""

from typing import Any, Final

import msgspec

from treadle.kernel.messages import Json

# https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
ANTHROPIC_KEYWORDS: Final = frozenset(
    {
        *("type", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "definitions", "properties", "required"),
        *("additionalProperties", "items", "description", "title", "default"),
    }
)
ANTHROPIC_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)
# https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas
NOT_STRICT: Final = frozenset(
    {
        *("oneOf", "allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties"),
        *("prefixItems", "contains", "uniqueItems", "propertyNames", "minProperties", "maxProperties"),
        *("minLength", "maxLength", "default"),
    }
)
STRICT_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)


def anthropic_schema(schema: Json) -> Json:
    """`schema` as Anthropic takes it: objects closed, `oneOf` as `anyOf`, what it cannot enforce told in descriptions.

    Every value of the schema returned is one of `schema`, unless a rule was moved to a description.
    """
    kept: Json = {}
    told: Json = {}
    for keyword, value in schema.items():
        if keyword in ("properties", "$defs", "definitions") and isinstance(value, dict):
            kept[keyword] = {name: _nested(part) for name, part in value.items()}
        elif keyword in ("anyOf", "allOf", "oneOf") and isinstance(value, list):
            kept["anyOf" if keyword == "oneOf" else keyword] = [_nested(part) for part in value]
        elif keyword in ("items", "additionalProperties"):
            kept[keyword] = _nested(value)
        elif (
            keyword in ANTHROPIC_KEYWORDS
            or (keyword == "format" and value in ANTHROPIC_FORMATS)
            or (keyword == "minItems" and value in (0, 1))
        ):
            kept[keyword] = value
        elif keyword not in ("$schema", "$id"):
            told[keyword] = value
    if kept.get("type") == "object" or "properties" in kept:
        kept.setdefault("additionalProperties", False)
    if told:
        rules = msgspec.json.encode(told).decode()
        kept["description"] = f"{kept['description']} {rules}" if kept.get("description") else rules
    return kept


def _nested(schema: Any) -> Any:
    return anthropic_schema(schema) if isinstance(schema, dict) else schema


def openai_strict(schema: Json) -> bool:
    """Whether OpenAI's strict mode takes `schema` as it is: an object, each object closed, all properties required.

    Where it does not, the schema is sent without strictness: to close it would change which values are right.
    Source: https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas
    """
    return schema.get("type") == "object" and _strict(schema)


def _strict(schema: Json) -> bool:
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
            return False
    if not NOT_STRICT.isdisjoint(schema) or schema.get("format", "uuid") not in STRICT_FORMATS:
        return False
    nested: list[Any] = [schema.get("items"), *schema.get("anyOf", ())]
    for keyword in ("properties", "$defs", "definitions"):
        nested += schema.get(keyword, {}).values()
    return all(_strict(part) for part in nested if isinstance(part, dict))
