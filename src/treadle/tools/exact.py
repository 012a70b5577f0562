"""Numbers that keep every digit: what is written where a `Decimal` belongs does not go through a float.

Pydantic reads each number of a JSON text that has a point as a float, and makes the `Decimal` of that. Given as text
the number is taken exactly as it stands; `Numbers` makes text of it (or a `Decimal`) where the schema of the types
takes a `Decimal`, and nowhere else. What no float holds is lost where no float was asked for. Nor is a number a time:
Pydantic would count it from 1970, the year of a model's "2024" and the digits of its "20240131" alike; or `true` a
number: a JSON Schema takes it for none, and Pydantic for 1. The schemas here are Pydantic's core schemas.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from decimal import Decimal, InvalidOperation
from math import isinf
from typing import Any, Final

from jiter import LosslessFloat, from_json
from msgspec import Struct

Schema = Mapping[str, Any]
# From each digit on, of a number of a great many, it would be read to its end, and back.
_FLOAT = re.compile(r"(?<![0-9])-?[0-9]++(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)")
_MAY_BE_LOST: Final = re.compile(r"[0-9][eE][+0-9-]|[0-9.]{17}")
"""What a number has that a float may not keep: one of 15 digits is the same float wherever it is read."""
_WRAPPED = ("schema", "json_schema", "lax_schema", "arguments_schema")
NO_SCHEMA: Final = frozenset({"default", "metadata", "serialization"})
"""Keys of a core schema whose values are not of what it checks."""
NAMED: Final = frozenset({"fields", "choices"})
"""Keys of a core schema under which schemas stand by names that somebody chose: a field may be called `type`."""
_TIMES: Final = {"datetime": "2024-01-31T09:30:00", "date": "2024-01-31", "time": "09:30:00", "timedelta": "PT30M"}
"""What takes a number for a time, with what a model is to write instead."""
_ROUND: Final = frozenset({"float", "complex", *_TIMES})
_DIGITS: Final = re.compile(r"\s*[+-]?[0-9]+(?:\.[0-9]*)?\s*")
_TAKE_NUMBERS: Final = frozenset(
    {"any", "bool", "complex", "custom-error", "decimal", "enum", "float", "function-before", "function-plain",
     "function-wrap", "int", "is-instance", "literal", "str"}
)  # fmt: skip
"""What else may take a number, or its digits, beside a time; a function of the user's gets it as it stands."""
_TAKE_TRUTH: Final = frozenset({"any", "bool", "custom-error", "is-instance"})
"""What takes `true` and `false` for what they are, beside choices that have them."""
_BEFORE: Final = frozenset({"function-before", "function-plain", "function-wrap"})
"""What a function is given before it is checked."""
_OWN_WORDS: Final = ("pydantic_js_annotation_functions", "pydantic_js_extra")
"""Where it stands that a user tells the model something else of a type than Pydantic does: that a time is a number."""


class Lost(Struct, frozen=True):
    """A number that would reach a function as another.

    Attributes:
        path: where it stands in the value.
        text: as it was written.
        why: the rest of a sentence that begins with its name.
    """

    path: tuple[str | int, ...]
    text: str
    why: str


class Numbers(Struct, frozen=True):
    """What numbers of a JSON text become.

    Attributes:
        schema: what the value is checked by; None where it is taken as it is.
        decimals: whether a `Decimal` belongs somewhere in it.
        times: whether a time does, of which the model is told that it is text.
        counts: whether a whole number or a float does.
        written: whether the text itself goes on, and not a value of it, so that no digit is lost.
    """

    schema: Schema | None = None
    decimals: bool = False
    times: bool = False
    written: bool = False
    counts: bool = False

    def read(self, text: str, as_text: bool) -> tuple[Any, list[Lost]]:
        """The JSON value of `text` with the numbers whose digits a `Decimal` is to get made exact, None if there are
        none; and the numbers that are lost.

        Args:
            text: what the model wrote, which is JSON.
            as_text: whether such a number becomes text, for a check that reads JSON; otherwise it becomes a `Decimal`.
        """
        exact = self.decimals and not all(map(_same_as_float, _FLOAT.findall(text)))
        truth = self.counts and ("true" in text or "false" in text)
        if not exact and not self.times and not truth and not _MAY_BE_LOST.search(text):
            return None, []
        walk = _Walk(as_text, self.written, self.times)
        schemas = [] if self.schema is None else [self.schema]
        value = walk.value(schemas, from_json(text.encode(), float_mode="lossless-float"), ())
        return value if walk.changed else None, walk.lost


def numbers_of(schema: Schema, *, times: bool = True) -> Numbers:
    """What numbers become where `schema` takes them; without `times`, the model may be told that a time is one, or that
    a number is true or false."""
    counts = times and _takes(schema, {"int", "float", "enum", "literal"})
    return Numbers(schema, _takes(schema, {"decimal"}), times and _takes(schema, _TIMES.keys()), counts=counts)


def _takes(schema: Any, kinds: Set[str]) -> bool:
    if isinstance(schema, Mapping):
        inner = (
            _takes([*each.values()] if key in NAMED and isinstance(each, Mapping) else each, kinds)
            for key, each in schema.items()
            if key not in NO_SCHEMA
        )
        return schema.get("type") in kinds or any(inner)
    return isinstance(schema, list | tuple) and any(_takes(each, kinds) for each in schema)


class _Walk:
    """One walk along a value and what describes it."""

    def __init__(self, as_text: bool, written: bool, times: bool) -> None:
        self.as_text, self.written, self.times = as_text, written, times
        self.changed = False
        self.lost: list[Lost] = []
        self.named: dict[str, Schema] = {}

    def value(self, schemas: list[Schema], value: Any, path: tuple[str | int, ...], users: bool = False) -> Any:
        """`value` with its numbers made exact; of what a function of the user's (`users`) is given first it gets the
        numbers that Pydantic would give it, whichever way the model wrote them.
        """
        if not isinstance(value, LosslessFloat | list | dict | bool) and not (self.times and _is_digits(value)):
            return value
        nodes = [node for schema in schemas for node in self.alternatives(schema)]
        users = users or any(map(_is_users_first, nodes))
        if isinstance(value, list):
            return [
                self.value([each for node in nodes for each in _items(node, at)], one, (*path, at), users)
                for at, one in enumerate(value)
            ]
        if isinstance(value, dict):
            return {
                key: self.value([each for node in nodes for each in _below(node, key)], one, (*path, key), users)
                for key, one in value.items()
            }
        if isinstance(value, bool):
            if not users and _is_number(nodes):
                self.lost.append(Lost(path, str(value).lower(), "should be a number, not true or false"))
        elif self.times and (right := _time_in(nodes)):
            self.lost.append(Lost(path, str(value), f"should be written as text such as {right}, not as a number"))
        elif isinstance(value, LosslessFloat):
            return self.number([node.get("type") for node in nodes], value, path, users)
        return value

    def number(self, kinds: list[Any], value: LosslessFloat, path: tuple[str | int, ...], users: bool) -> Any:
        text, number = str(value), float(value)
        first = [kind for kind in kinds if kind in ("decimal", "str", "any")]
        # Where any text is welcome before a `Decimal` is, the number would be taken for one.
        takes = first[:1] == ["decimal"] if self.as_text else "decimal" in first
        if takes and not users and not _same_as_float(text):
            exact = _decimal(text)
            if exact is not None:
                self.changed = True
                return text if self.as_text else exact
        if isinf(number):
            # It would be written as null: whoever is called would be given another value.
            self.lost.append(Lost(path, text, "should be a finite number"))
        elif not _ROUND.intersection(kinds) and (why := self.why_lost(number, text, whole="int" in kinds)):
            self.lost.append(Lost(path, text, f"{why}, or write it as text" if users and "decimal" in kinds else why))
        return number

    def why_lost(self, number: float, text: str, *, whole: bool) -> str:
        """What is wrong with a number of which a float is read; empty if it is the same."""
        exact = _decimal(text)
        if exact == Decimal(number):
            return ""
        if whole:
            return "should be a whole number, written without a point and an exponent"
        kept = self.written or exact == Decimal(str(number))
        return "" if kept else "has digits that would be lost; write at most 15"

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


def _is_users_first(node: Schema) -> bool:
    """Whether a function of the user's is given what `node` checks, as it is; Pydantic has such functions too."""
    if node.get("type") not in _BEFORE:
        return bool(node.get("custom_init"))
    function = node["function"]["function"]
    module = getattr(getattr(function, "func", function), "__module__", None) or ""
    return module.partition(".")[0] not in ("pydantic", "pydantic_core")


def _is_number(nodes: Sequence[Schema]) -> bool:
    """Whether a number is taken, and no truth value."""
    kinds = {node.get("type") for node in nodes}
    chosen = {type(one) for node in nodes for one in _choices(node)}
    counts = not kinds.isdisjoint({"int", "float"}) or not chosen.isdisjoint({int, float})
    return counts and kinds.isdisjoint(_TAKE_TRUTH | _BEFORE) and bool not in chosen and not _in_own_words(nodes)


def _choices(node: Schema) -> list[Any]:
    """The values among which a literal or an enumeration is chosen."""
    return [getattr(one, "value", one) for one in node.get("expected", node.get("members", ()))]


def _is_digits(value: Any) -> bool:
    return type(value) is int or (isinstance(value, str) and _DIGITS.fullmatch(value) is not None)


def _time_in(nodes: Sequence[Schema]) -> str:
    """A time as text, where nothing but a time is taken; else nothing."""
    kinds = [node.get("type") for node in nodes]
    if not _TAKE_NUMBERS.isdisjoint(kinds) or _in_own_words(nodes):
        return ""
    return next((right for kind, right in _TIMES.items() if kind in kinds), "")


def _in_own_words(nodes: Sequence[Schema]) -> bool:
    return any(key in node.get("metadata", ()) for node in nodes for key in _OWN_WORDS)


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
    return found + [field for name, field in named if key == name or key in _aliases(field)]


def _dicts(fields: Any) -> list[Schema]:
    return [field for field in fields if isinstance(field, Mapping) and "name" in field]


def _aliases(field: Schema) -> list[Any]:
    alias = field.get("validation_alias", field.get("alias", []))
    return [alias] if isinstance(alias, str) else [path[0] if isinstance(path, list) else path for path in alias]


def _same_as_float(text: str) -> bool:
    """Whether Pydantic makes the `Decimal` of `text` out of its float: of the float of "1.0" it makes "1"."""
    return str(float(text)) == text and not text.endswith(".0")


def _decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except InvalidOperation:  # farther from 1 than a `Decimal` can say
        return None
