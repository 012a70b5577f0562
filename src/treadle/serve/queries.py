"""Queries: what stands in a query, read as a type; and of what does not fit, what would."""

from collections.abc import Mapping
from math import isnan
from typing import Any, TypeVar

import msgspec

from treadle.serve.refused import Refused
from treadle.tools.errors import not_one_of

T = TypeVar("T", bound=msgspec.Struct)


def read(given: Mapping[str, str], kind: type[T]) -> T:
    """The query as that type.

    Raises:
        Refused: a name is none, something is missing, or a value does not fit ("unfit"); says what would.
    """
    fields = {one.name: one for one in msgspec.structs.fields(kind)}
    for name, value in given.items():
        if name not in fields:
            raise _unfit(not_one_of(name, fields))
        _look(name, value, fields[name].type)
    for name, one in fields.items():
        if one.required and name not in given:
            raise _unfit(f"{name} is missing")
    return msgspec.convert(given, kind, strict=False)


def digits(text: str) -> int | None:
    """The whole number that a text is, in digits alone; None for one that is none, or that nothing has as many of."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _look(name: str, value: str, kind: Any) -> None:
    try:
        found = msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        raise _unfit(f"{name} takes {_wanted(value, msgspec.json.schema(kind))}") from None
    if isinstance(found, float) and isnan(found):
        raise _unfit(f"{name} takes a number; it was given {value!r:.100}")


def _wanted(value: str, schema: Mapping[str, Any]) -> str:
    """What `schema` takes, and that `value` is not it."""
    schema = next((one for one in schema.get("anyOf", ()) if one != {"type": "null"}), schema)
    if "enum" in schema:
        return f"one word: {not_one_of(value, [one for one in schema['enum'] if one is not None])}"
    what = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}[schema["type"]]
    least, most = schema.get("minimum"), schema.get("maximum")
    if most is not None:
        what += f" from {least} to {most}"
    elif least is not None:
        what += f" of at least {least}"
    return f"{what}; it was given {value!r:.100}"


def _unfit(words: str) -> Refused:
    return Refused("unfit", f"the query does not fit: {words}")
