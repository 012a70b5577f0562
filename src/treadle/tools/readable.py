"""Readable: a validator of a type that reads whatever the type's JSON Schema tells a model to write.

Pydantic's own validator and its JSON Schema say different things of a few types. Neighbours: `arguments.py`, and the
answers of a type in `treadle.drivers.output`.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any

from pydantic_core import PydanticSerializationError, core_schema, to_jsonable_python

from treadle.tools.exact import NAMED, NO_SCHEMA


def validator_of(adapter: Any) -> Any:
    """That of `adapter`, which reads an `Iterable` to its end, and an enum's member by what it is in JSON.

    Pydantic's own gives of the one what checks each item as it is asked for: in the middle of what a function does, and
    once. Of the other, in a `Literal`, or where its value is none of JSON's (a Decimal, a date, a tuple), it takes the
    member alone, which no JSON is.
    """
    from pydantic_core import SchemaValidator

    schema = adapter.core_schema
    readable = _readable(schema)
    if readable == schema:
        return adapter.validator
    made: Any = SchemaValidator
    try:
        # A model in it would be checked by what its class has, made from the schema that was.
        return made(readable, _use_prebuilt=False)
    except TypeError:  # early releases do not take it
        return made(readable)


def _readable(schema: Any) -> Any:
    """A core schema with a list in the place of each generator, that reads the members of enums as JSON has them."""
    if isinstance(schema, dict):
        found = {key: each if key in NO_SCHEMA else _readable_at(key, each) for key, each in schema.items()}
        match found.get("type"):
            case "generator":
                return {**found, "type": "list"}
            case "literal":
                # One that is a text or a number itself Pydantic reads.
                alone = [one for one in found["expected"] if isinstance(one, Enum) and not isinstance(one, (str, int))]
                return _by_form(found, _forms(alone))
            case "enum":
                return _by_form(found, [(form, one) for form, one in _forms(found["members"]) if form != one.value])
            case _:
                return found
    return type(schema)(map(_readable, schema)) if type(schema) in (list, tuple) else schema


def _readable_at(key: str, inner: Any) -> Any:
    by_name = key in NAMED and isinstance(inner, dict)
    return {name: _readable(each) for name, each in inner.items()} if by_name else _readable(inner)


def _forms(members: Sequence[Any]) -> list[tuple[Any, Enum]]:
    """Members with what they are in JSON, as the JSON Schema lists them."""
    found = list[tuple[Any, Enum]]()
    for one in members:
        try:
            found.append((to_jsonable_python(one.value), one))
        except PydanticSerializationError:
            # Nor has the JSON Schema a word for it.
            continue
    return found


def _by_form(schema: Any, forms: Sequence[tuple[Any, Enum]]) -> Any:
    """`schema`, which takes members alone, with what makes the member of its form."""
    if not forms:
        return schema

    def member(given: Any) -> Any:
        return next((one for form, one in forms if type(form) is type(given) and form == given), given)

    inner: Any = {key: each for key, each in schema.items() if key != "ref"}
    return core_schema.no_info_before_validator_function(member, inner, ref=schema.get("ref"))
