"""Halves: text in which a character of two UTF-16 units was cut apart, and what becomes of it. Pure.

JSON may say half a surrogate pair (a server that cuts its text by UTF-16 units, a tool's output, the name of a file),
and a Python text may hold one; no journal, provider or screen takes it. Two halves that meet are one character again, a
half that stays alone becomes a question mark. Neighbours: `treadle.models.guarded`, which looks at
what models say; `treadle.models.codec`, at what they are sent; `treadle.models.bodies`, which reads JSON.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


def whole_text(text: str) -> str:
    """`text` with the halves that stand next to each other joined, and those that are alone replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return joined.encode("utf-8", "replace").decode()


def without_halves(value: Any) -> Any:
    """`value`, of JSON's types, structs and sequences of them, with `whole_text` for each text in it."""
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, Mapping):
        return {without_halves(key): without_halves(one) for key, one in value.items()}
    if isinstance(value, msgspec.Struct):
        return type(value)(*[without_halves(getattr(value, field)) for field in value.__struct_fields__])
    if isinstance(value, tuple):
        return tuple([without_halves(one) for one in value])
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [without_halves(one) for one in value]
    return value


def decoded(data: bytes) -> Any:
    """The value of JSON text, halves of pairs included. Raises `ValueError` or `RecursionError` if it is no JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # It refuses halves of pairs, which the standard library reads; a number that is none (NaN) it must not.
        return json.loads(data, parse_constant=_refused)


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no JSON")
