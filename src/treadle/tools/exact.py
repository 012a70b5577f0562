"""Numbers that keep every digit: what is written where a `Decimal` belongs does not go through a float.

Pydantic reads each number of a JSON text that has a point as a float, and makes the `Decimal` of that. Given as text
the number is taken exactly as it stands; `exact` makes text of it (or a `Decimal`) where the schema of the types takes
a `Decimal`, and nowhere else. The schemas here are Pydantic's core schemas.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jiter import LosslessFloat, from_json

Schema = Mapping[str, Any]
_FLOAT = re.compile(r"-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)")
_WRAPPED = ("schema", "json_schema", "lax_schema", "arguments_schema")
_NO_SCHEMA = {"default", "metadata", "serialization"}


def takes_decimal(schema: Any) -> bool:
    """Whether a `Decimal` belongs anywhere in what `schema` describes."""
    if isinstance(schema, Mapping):
        return schema.get("type") == "decimal" or any(
            takes_decimal(each) for key, each in schema.items() if key not in _NO_SCHEMA
        )
    return isinstance(schema, list | tuple) and any(takes_decimal(each) for each in schema)


def exact(schema: Schema, text: str, as_text: bool) -> Any:
    """The JSON value of `text` with the numbers whose digits a `Decimal` is to get made exact; None if there are none.

    Args:
        schema: what the value is to be checked by.
        text: what the model wrote.
        as_text: whether such a number becomes text, for a check that reads JSON; otherwise it becomes a `Decimal`.
    """
    if all([str(float(number)) == number for number in _FLOAT.findall(text)]):
        return None
    walk = _Walk(as_text)
    value = walk.value([schema], from_json(text.encode(), float_mode="lossless-float"))
    return value if walk.changed else None


class _Walk:
    """One walk along a value and what describes it."""

    def __init__(self, as_text: bool) -> None:
        self.as_text = as_text
        self.changed = False
        self.named: dict[str, Schema] = {}

    def value(self, schemas: list[Schema], value: Any) -> Any:
        if not isinstance(value, LosslessFloat | list | dict):
            return value
        nodes = [node for schema in schemas for node in self.alternatives(schema)]
        if isinstance(value, list):
            return [
                self.value([each for node in nodes for each in _items(node, at)], one) for at, one in enumerate(value)
            ]
        if isinstance(value, dict):
            return {
                key: self.value([each for node in nodes for each in _below(node, key)], one)
                for key, one in value.items()
            }
        kinds = [node.get("type") for node in nodes if node.get("type") in ("decimal", "str", "any")]
        number = float(value)
        # Where any text is welcome before a `Decimal` is, the number would be taken for one.
        taken = kinds[:1] == ["decimal"] if self.as_text else "decimal" in kinds
        if not taken or str(number) == str(value):
            return number
        self.changed = True
        return str(value) if self.as_text else value.as_decimal()

    def alternatives(self, schema: Any, depth: int = 0) -> Iterator[Schema]:
        """`schema` without what is wrapped around it, and each of what it leaves to choose from."""
        if isinstance(schema, tuple):  # a choice of a union, with its label
            schema = schema[0]
        if not isinstance(schema, Mapping) or depth > 50:
            return
        yield schema
        for definition in schema.get("definitions", ()):
            self.named[definition["ref"]] = definition
        if schema.get("type") == "definition-ref":
            yield from self.alternatives(self.named.get(schema["schema_ref"]), depth + 1)
        choices = schema.get("choices", ())
        inner = [schema[key] for key in _WRAPPED if isinstance(schema.get(key), Mapping)]
        for each in [
            *inner,
            *schema.get("steps", ()),
            *(choices.values() if isinstance(choices, Mapping) else choices),
        ]:
            yield from self.alternatives(each, depth + 1)


def _items(node: Schema, at: int) -> list[Schema]:
    """What describes the item `at` of an array."""
    items = node.get("items_schema", node.get("arguments_schema"))
    if node.get("type") == "named-tuple":
        items = node["fields"]
    if isinstance(items, list):
        varies = node.get("variadic_item_index")
        items = items[at : at + 1] if varies is None or at < varies else items[varies:]
        return [item.get("schema", item) for item in items]
    return [] if items is None else [items]


def _below(node: Schema, key: str) -> list[Schema]:
    """What describes the member `key` of an object."""
    found = [node[name] for name in ("values_schema", "extras_schema") if name in node]
    fields = node.get("fields", node.get("arguments_schema", ()))
    named = fields.items() if isinstance(fields, Mapping) else [(field["name"], field) for field in _dicts(fields)]
    return found + [field["schema"] for name, field in named if key == name or key in _aliases(field)]


def _dicts(fields: Any) -> list[Schema]:
    return [field for field in fields if isinstance(field, Mapping) and "name" in field]


def _aliases(field: Schema) -> list[Any]:
    alias = field.get("validation_alias", field.get("alias", []))
    return [alias] if isinstance(alias, str) else [path[0] if isinstance(path, list) else path for path in alias]
