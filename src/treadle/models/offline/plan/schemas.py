"""JSON Schemas as the planner reads them: references followed, and what a parameter takes.

Called by `toolbox`, which reads the tools, and by `filters`.
"""

from typing import Any, Literal

from treadle.kernel.messages import Json

Shape = Literal["text", "number", "boolean", "names", "filters", "mapping", "other"]

_FIELD_KEYS = ("dimension", "field", "column", "attribute", "property", "key", "name")


def resolve(schema: Json, root: Json) -> Json:
    """`schema` with its reference followed, and of alternatives the first that is not null."""
    for _ in range(8):
        if "$ref" in schema:
            target: Any = root
            for key in str(schema["$ref"]).removeprefix("#/").split("/"):
                target = target.get(key, {}) if isinstance(target, dict) else {}
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
            continue
        options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if not options:
            return schema
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "allOf")}
        resolved = [resolve(option, root) for option in options if option.get("type") != "null"]
        # A list says more than a mapping can: of filters, for one, also what is not to hold.
        order = {"array": 0, "object": 1}
        ranked = sorted(resolved, key=lambda option: order.get(str(option.get("type")), 2))
        types = {kind for option in resolved for kind in types_of(option)}
        schema = {**(ranked[0] if ranked else {}), **rest}
        schema.setdefault("x-types", sorted(types))
    return schema


def types_of(schema: Json) -> frozenset[str]:
    """The JSON types that a schema names."""
    named = schema.get("x-types") or schema.get("type") or ()
    return frozenset([named] if isinstance(named, str) else named)


def shape_of(schema: Json) -> Shape:
    """What a parameter takes, as far as the planner tells such things apart."""
    types = types_of(schema)
    if "array" in types or "items" in schema:
        items = schema.get("items", {})
        if "object" in types_of(items) or "properties" in items:
            return "filters" if field_key(items) else "other"
        return "names"
    if types and types <= {"number", "integer", "string", "null"} and types & {"number", "integer"}:
        return "number"
    if "boolean" in types:
        return "boolean"
    if "object" in types:
        return "other" if schema.get("properties") else "mapping"
    return "text" if not types or "string" in types else "other"


def field_key(items: Json) -> str | None:
    """The property of a filter's schema that names the field, if the schema is a filter's: a field and a value."""
    properties = items.get("properties", {})
    valued = any(key in properties for key in ("value", "values", "equals"))
    return next((key for key in _FIELD_KEYS if key in properties), None) if valued else None
