"""Readable: a validator of a type that reads whatever the type's JSON Schema tells a model to write.

Pydantic's own validator and its JSON Schema say different things of a few types. Neighbours: `arguments.py`, and the
answers of a type in `treadle.drivers.output`.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final

from pydantic_core import PydanticSerializationError, core_schema, to_json, to_jsonable_python

from treadle.tools.exact import NAMED, NO_SCHEMA

_NUMBERS: Final = {int, float}


def validator_of(adapter: Any) -> Any:
    """That of `adapter`, which reads an `Iterable` to its end, and an enum's member by what it is in JSON.

    Pydantic's own gives of the one what checks each item as it is asked for: in the middle of what a function does, and
    once. Of the other, in a `Literal`, or where its value is none of JSON's (a Decimal, a date, a tuple), it takes the
    member alone, which no JSON is; nor does it find what such a member is the tag of in a union.
    """
    from pydantic_core import SchemaValidator

    schema = adapter.core_schema
    readable = _readable(schema)
    if readable == schema:
        return adapter.validator
    made: Any = SchemaValidator
    # A model in it would be checked by what its class has, made from the schema that was.
    return made(readable, _use_prebuilt=False)


def _readable(schema: Any) -> Any:
    """A core schema with a list in the place of each generator, that reads the members of enums as JSON has them."""
    if isinstance(schema, dict):
        found = {key: each if key in NO_SCHEMA else _readable_at(key, each) for key, each in schema.items()}
        match found.get("type"):
            case "generator":
                return {**found, "type": "list"}
            case "literal":
                # One that is a text or a number itself Pydantic reads.
                all_of = _forms(found["expected"])
                alone = [
                    (form, one) for form, one in all_of if isinstance(one, Enum) and not isinstance(one, (str, int))
                ]
                return _by_form(found, all_of, alone)
            case "enum":
                all_of = _forms(found["members"])
                return _by_form(found, all_of, [(form, one) for form, one in all_of if form != one.value])
            case "tagged-union":
                return {**found, "choices": _by_tag(found["choices"])}
            case _:
                return found
    return type(schema)(map(_readable, schema)) if type(schema) in (list, tuple) else schema


def _readable_at(key: str, inner: Any) -> Any:
    by_name = key in NAMED and isinstance(inner, dict)
    return {name: _readable(each) for name, each in inner.items()} if by_name else _readable(inner)


def _forms(values: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Values and members of enums, each with what it is in JSON, as the JSON Schema lists it."""
    found = list[tuple[Any, Any]]()
    for one in values:
        try:
            found.append((to_jsonable_python(one.value if isinstance(one, Enum) else one), one))
        except PydanticSerializationError:
            # Nor has the JSON Schema a word for it.
            continue
    return found


def _by_tag(choices: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """The schemas of a union by what tells them apart as JSON has it: by a member of an enum none would be found."""
    forms = {tag: form for form, tag in _forms([*choices]) if isinstance(tag, Enum) and isinstance(form, str | int)}
    return {forms.get(tag, tag): each for tag, each in choices.items()}


def _by_form(schema: Any, all_of: Sequence[tuple[Any, Any]], alone: Sequence[tuple[Any, Any]]) -> Any:
    """`schema`, which takes some members alone, with what makes these of their forms.

    Args:
        schema: of a literal or an enum.
        all_of: all that it takes, and its forms.
        alone: those of them of which it takes no form.
    """
    if not alone:
        return schema

    def member(given: Any) -> Any:
        same = [one for form, one in all_of if type(form) is type(given) and form == given]
        # JSON has one kind of number: 1 is 1.0, where that is not another member.
        same = same or [one for form, one in all_of if {type(form), type(given)} <= _NUMBERS and form == given]
        return next((one for one in same if any(one is each for _, each in alone)), given)

    inner: Any = {key: each for key, each in schema.items() if key != "ref"}
    *most, last = [repr(form) if isinstance(form, str) else to_json(form).decode() for form, _ in all_of]
    told = f"{', '.join(most)} or {last}" if most else last
    # Pydantic's own words have the members as Python writes them.
    worded = core_schema.custom_error_schema(
        inner, "member", custom_error_message="Input should be {told}", custom_error_context={"told": told}
    )
    return core_schema.no_info_before_validator_function(member, worded, ref=schema.get("ref"))
