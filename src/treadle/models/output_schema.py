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
# Of these it takes so many in all; which limits it has is in its documentation and in its refusals.
MOST_OPTIONAL: Final = 24
MOST_UNIONS: Final = 16
DEFINITIONS: Final = ("$defs", "definitions")
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


def anthropic_holds(schema: Json) -> bool:
    """Whether Anthropic takes `schema` as `anthropic_schema` writes it; it refuses the whole request otherwise.

    Objects whose keys are free, schemas that hold themselves, and parts that may be anything are what it does not take;
    nor does it take many fields that may be left out, or that may be of several types.
    """
    named = definitions(schema)
    if not _closed(schema, named, ()):
        return False
    optional, unions = _choices(schema, named)
    return optional <= MOST_OPTIONAL and unions <= MOST_UNIONS


def definitions(schema: Json) -> Json:
    """The schemas that `schema` defines, by how it refers to them."""
    return {f"#/{where}/{name}": part for where in DEFINITIONS for name, part in schema.get(where, {}).items()}


def _choices(schema: Json, named: Json) -> tuple[int, int]:
    """How many fields of a closed schema may be left out, and how many parts of it may be of several types."""
    schema = named.get(schema.get("$ref", ""), schema)
    optional = len(schema.get("properties", {}).keys() - set(schema.get("required", ())))
    unions = int("anyOf" in schema or "oneOf" in schema or isinstance(schema.get("type"), list))
    inside = [_choices(part, named) for part in _parts(schema)]
    return optional + sum(one for one, _ in inside), unions + sum(one for _, one in inside)


def _parts(schema: Json) -> list[Any]:
    """The schemas in `schema` that a value, or a part of it, has to fit."""
    nested = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else ())]
    for keyword in ("anyOf", "oneOf", "allOf"):
        nested += schema.get(keyword, ())
    return nested


def _closed(schema: Any, named: Json, above: tuple[str, ...]) -> bool:
    """Whether `schema` says all that it allows; `above` are the references that led to it."""
    if not isinstance(schema, dict) or schema.get("additionalProperties", False) is not False:
        return False
    if (reference := schema.get("$ref")) is not None:
        if reference in above or reference not in named or not _closed(named[reference], named, (*above, reference)):
            return False
    elif schema.keys().isdisjoint(("type", "anyOf", "oneOf", "allOf", "enum", "const")):
        return False
    if any(isinstance(one, (dict, list)) for one in (*schema.get("enum", ()), schema.get("const"))):
        return False
    if any("$ref" in part for part in schema.get("allOf", ())):
        return False
    return all(_closed(part, named, above) for part in _parts(schema))


def _nested(schema: Any) -> Any:
    return anthropic_schema(schema) if isinstance(schema, dict) else schema


def openai_strict(schema: Json) -> bool:
    """Whether OpenAI's strict mode takes `schema` as it is: an object, each object closed, all properties required.

    Where it does not, the schema is sent without strictness: to close it would change which values are right. Each part
    has a type of its own, or is a reference and nothing beside it.
    Source: https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas
    """
    return schema.get("type") == "object" and _strict(schema)


def _strict(schema: Json) -> bool:
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
            return False
    if not ("type" in schema or "anyOf" in schema or schema.keys() == {"$ref"}):
        return False
    if not NOT_STRICT.isdisjoint(schema) or schema.get("format", "uuid") not in STRICT_FORMATS:
        return False
    nested: list[Any] = [schema.get("items"), *schema.get("anyOf", ())]
    for keyword in ("properties", "$defs", "definitions"):
        nested += schema.get(keyword, {}).values()
    return all(_strict(part) for part in nested if isinstance(part, dict))
