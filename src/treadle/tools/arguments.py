"""The arguments of a tool: the schema that the model is shown, and the check of what it wrote.

Schemas come from types (Pydantic makes both schema and validator) or from a JSON Schema written by hand (checked by
`jsonschema-rs`, then converted to the types of the function, where it has any). Both libraries are imported when a tool
is made, not before. Neighbours: `signature.py` reads the function, `readable.py` has its validator, `explain.py` words
the errors.
"""

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Annotated, Any, Final, Literal, NotRequired, Required, cast

from jiter import from_json
from msgspec import Struct
from pydantic_core import ValidationError

from treadle.context.storable import storable_text
from treadle.kernel.errors import PassesThrough
from treadle.kernel.messages import Json
from treadle.tools.errors import BadTool, InvalidArguments, describe_exception
from treadle.tools.exact import Numbers, numbers_of
from treadle.tools.explain import Fault, example, explain, pydantic_faults, schema_faults
from treadle.tools.readable import validator_of
from treadle.tools.signature import MISSING, Parameter

_AS_READ: Final = Numbers()


class Arguments(Struct, frozen=True, eq=False):
    """What a tool takes.

    Attributes:
        tool: the tool's name, for errors.
        schema: the JSON Schema, always of an object.
        validator: Pydantic's; None to take the JSON values as they are.
        checker: the JSON Schema validator, for a schema written by hand.
        closed: the keys that are allowed, where the validators would let others pass.
        defaults: values for absent keys, from a schema written by hand.
        shape: makes keyword arguments of the validated value; None if it is them already.
        numbers: what the numbers that the model wrote become.
    """

    tool: str
    schema: Json
    validator: Any = None
    checker: Any = None
    closed: frozenset[str] | None = None
    defaults: Json = {}
    shape: Callable[[Any], dict[str, Any]] | None = None
    numbers: Numbers = _AS_READ

    def parse(self, text: str) -> dict[str, Any]:
        """The keyword arguments in the JSON text that the model wrote; empty text means none.

        Raises:
            InvalidArguments: it is not JSON, not an object, or does not fit the schema.
        """
        try:
            return self._parse(text.strip() or "{}")
        except (InvalidArguments, PassesThrough):
            raise
        except BaseException as error:  # a validator of the user's may raise anything
            raise InvalidArguments(
                f"{self.tool}: the arguments could not be checked: {describe_exception(error)[:500]}"
            ) from error

    def _parse(self, text: str) -> dict[str, Any]:
        data = self._decode(text)
        as_text = self.checker is None
        exact, lost = self.numbers.read(text, as_text)
        if lost:
            raise explain(self.tool, self.schema, [Fault(one.path, "wrong", one.why, one.text) for one in lost])
        if exact is not None:
            data, text = exact, json.dumps(exact) if as_text else text
        if self.closed is not None and not data.keys() <= self.closed:
            raise self._explained(data, text)
        if self.checker is not None and not self.checker.is_valid(data):
            raise self._explained(data, text)
        for name, default in self.defaults.items():
            if name not in data:
                data[name] = deepcopy(default)
        value: Any = data
        if self.validator is not None:
            try:
                value = (
                    self.validator.validate_json(text) if self.checker is None else self.validator.validate_python(data)
                )
            except ValidationError:
                raise self._explained(data, text, fits_schema=True) from None
        return value if self.shape is None else self.shape(value)

    def _decode(self, text: str) -> dict[str, Any]:
        try:
            data = from_json(text.encode(), allow_inf_nan=False, catch_duplicate_keys=True)
        except ValueError as error:
            raise self._malformed(text, error) from None
        if type(data) is not dict:
            right = example(self.schema)
            kind = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}.get(
                type(data), "a number"
            )
            raise InvalidArguments(
                f"{self.tool}: the arguments are {kind}, but must be a JSON object such as {right}",
                given=text[:200],
                expected=right,
            )
        return data

    def _malformed(self, text: str, error: ValueError) -> InvalidArguments:
        if isinstance(error, UnicodeEncodeError):
            fault, shown = "a lone surrogate is not text", text[max(0, error.start - 40) : error.start]
        else:
            fault, shown = str(error), _before(text, str(error))
        given = storable_text(shown)
        right = example(self.schema)
        return InvalidArguments(
            f"{self.tool}: the arguments are not valid JSON: {fault}; write one JSON object such as {right}",
            given=f"...{given}" if len(given) < len(text) else given,
            expected=right,
        )

    def _explained(self, data: dict[str, Any], text: str, fits_schema: bool = False) -> InvalidArguments:
        """Looks for everything that is wrong, as a model does better with all of it at once."""
        faults: list[Fault] = []
        if self.closed is not None:
            faults += [Fault((key,), "unknown") for key in data if key not in self.closed]
        if self.checker is not None and not fits_schema:
            faults += schema_faults(list(self.checker.iter_errors(data)))
        if self.validator is not None and (self.checker is None or not faults):
            try:
                self.validator.validate_json(text) if self.checker is None else self.validator.validate_python(data)
            except ValidationError as error:
                faults += pydantic_faults(error.errors(include_url=False, include_context=False), data)
        return explain(self.tool, self.schema, faults)


def from_parameters(tool: str, parameters: Sequence[Parameter], where: str) -> Arguments:
    """The arguments that a function's typed parameters describe."""
    adapter = _adapter(tool, parameters, where, extra="forbid")
    schema = _schema_of(adapter, f"{tool} ({where})", parameters)
    return Arguments(tool, schema, validator_of(adapter), numbers=numbers_of(adapter.core_schema))


def from_json_schema(
    tool: str, schema: Json, parameters: Sequence[Parameter] | None, where: str, *, is_open: bool = False
) -> Arguments:
    """The arguments that a JSON Schema written by hand describes.

    Args:
        tool: the tool's name.
        schema: of an object; kept as it is. Its draft is what `$schema` says, else 2020-12.
        parameters: those of the function that takes them; None if there is no function.
        where: the place of the function, for errors.
        is_open: whether the function takes any further keyword.

    Raises:
        BadTool: the schema is not valid, not of an object, refers to another document, or does not fit the function.
    """
    checker = _checker(tool, schema)
    if parameters is None:
        return Arguments(tool, schema, checker=checker)
    names = frozenset(parameter.name for parameter in parameters)
    listed: Json = schema.get("properties", {})
    defaults = {}
    if not is_open and (stray := [name for name in listed if name not in names]):
        raise BadTool(
            f"{tool} ({where}): the schema has {', '.join(map(repr, stray))}, which the function does not take; "
            f"it takes {', '.join(sorted(names)) or 'nothing'}"
        )
    for parameter in parameters:
        if parameter.default is not MISSING or parameter.name in schema.get("required", ()):
            continue
        if "default" not in listed.get(parameter.name, {}):
            raise BadTool(
                f"{tool} ({where}): the function needs {parameter.name!r}, which the schema does not require; add it "
                'to "required", or give the parameter a default'
            )
        defaults[parameter.name] = listed[parameter.name]["default"]
    typed = any(parameter.annotation is not MISSING for parameter in parameters)
    adapter = _adapter(tool, parameters, where, extra="allow") if typed else None
    return Arguments(
        tool,
        schema,
        validator_of(adapter) if adapter is not None else None,
        checker,
        closed=None if is_open else _closed(schema, names),
        defaults=defaults,
        numbers=numbers_of(adapter.core_schema, times=False) if adapter is not None else _AS_READ,
    )


def _closed(schema: Json, names: frozenset[str]) -> frozenset[str]:
    """The keys that may come: the described ones, lest a model set what its schema does not show."""
    if schema.get("additionalProperties") or schema.keys() & {"patternProperties", "$ref", "allOf", "anyOf", "oneOf"}:
        return names
    return names & frozenset(schema.get("properties", ()))


def from_type(tool: str, kind: Any) -> Arguments:
    """The arguments that a Pydantic model, dataclass or TypedDict describes, as JSON's own types.

    Raises:
        BadTool: the type has no JSON Schema, or not that of an object.
    """
    adapter = _made(kind, f"the input of {tool}")
    schema = _schema_of(adapter, f"the input of {tool}")
    reference = schema.get("$ref", "")
    if reference.startswith("#/$defs/"):
        schema = {**schema["$defs"][reference.removeprefix("#/$defs/")], "$defs": schema["$defs"]}
    if schema.get("type") != "object":
        raise BadTool(
            f"the input of {tool} is {kind!r:.100}, but a tool takes named arguments: give a Pydantic model, "
            'a dataclass, a TypedDict, or a JSON Schema of type "object"'
        )
    closed = None
    if "properties" in schema and "additionalProperties" not in schema:
        closed = frozenset(schema["properties"])
        schema = {**schema, "additionalProperties": False}

    def dump(value: Any) -> dict[str, Any]:
        return cast(dict[str, Any], adapter.dump_python(value, mode="json", by_alias=True))

    numbers = numbers_of(adapter.core_schema)
    return Arguments(tool, schema, validator_of(adapter), closed=closed, shape=dump, numbers=numbers)


def schema_of_result(annotation: Any) -> Json | None:
    """The JSON Schema of what a function returns; None where its type does not tell."""
    if annotation is MISSING or annotation is Any:
        return None
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        return schema_of(TypeAdapter(annotation), "serialization")
    except (PydanticUserError, TypeError, ValueError, NameError, AttributeError):
        return None


def _adapter(tool: str, parameters: Sequence[Parameter], where: str, extra: str) -> Any:
    from typing_extensions import TypedDict  # Pydantic refuses the one of typing before Python 3.12

    fields: dict[str, Any] = {}
    for parameter in parameters:
        try:
            fields[parameter.name] = _field(parameter)
        except TypeError as error:
            words = f"the type of {parameter.name!r} cannot be filled from JSON: {_in_words(error, parameters)}"
            raise BadTool(f"{tool} ({where}): {words}") from error
    shape = cast(Any, TypedDict)(tool, fields)
    shape.__pydantic_config__ = {"extra": extra, "allow_inf_nan": False}
    return _made(shape, f"{tool} ({where})", parameters)


def _field(parameter: Parameter) -> Any:
    """What the shape of a function's arguments has for `parameter`. Raises TypeError where its type is none."""
    from pydantic import Field
    from pydantic.fields import FieldInfo

    kind = Any if parameter.annotation is MISSING else parameter.annotation
    told = [item for item in getattr(kind, "__metadata__", ()) if isinstance(item, FieldInfo)]
    if parameter.description and not any(item.description for item in told):
        kind = Annotated[kind, Field(description=parameter.description)]
    if isinstance(parameter.default, FieldInfo):
        kind = Annotated[kind, parameter.default]
        told.append(parameter.default)
    elif parameter.default is not MISSING:
        kind = Annotated[kind, Field(default=parameter.default)]
    optional = not isinstance(parameter.default, FieldInfo) and parameter.default is not MISSING
    optional = optional or any(not item.is_required() for item in told)
    return NotRequired[kind] if optional else Required[kind]


def _made(kind: Any, label: str, parameters: Sequence[Parameter] = ()) -> Any:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        return TypeAdapter(kind)
    except (PydanticUserError, TypeError, ValueError, NameError) as error:
        raise BadTool(
            f"{label}: {_guilty(parameters)} cannot be filled from JSON: {_in_words(error, parameters)}"
        ) from error


def _guilty(parameters: Sequence[Parameter]) -> str:
    """Whose type it is that cannot be used, as far as that can be told."""
    for parameter in parameters:
        try:
            _schema_of(_made(parameter.annotation, ""), "")
        except BadTool:
            return f"the type of {parameter.name!r}"
    return "a type"


def _in_words(error: Exception, parameters: Sequence[Parameter]) -> str:
    """What Pydantic says, with our advice in place of its own to whoever writes a type."""
    said = str(error).splitlines()[0].partition(". Set `")[0]
    injected = "; what your program fills in has the type Injected[…]" if parameters else ""
    return f"{said}. A model writes text, numbers, lists, dataclasses, Pydantic models and TypedDicts{injected}"


def _schema_of(adapter: Any, label: str, parameters: Sequence[Parameter] = ()) -> Json:
    from pydantic.errors import PydanticUserError

    try:
        return schema_of(adapter)
    except (PydanticUserError, ValueError) as error:
        # A ValueError is of a value, such as an enum's, that JSON cannot tell.
        raise BadTool(f"{label}: {_guilty(parameters)} has no JSON Schema: {_in_words(error, parameters)}") from error


def schema_of(adapter: Any, mode: Literal["validation", "serialization"] = "validation") -> Json:
    """The adapter's schema without the titles that Pydantic derives from names: they cost tokens and say nothing."""
    from pydantic.json_schema import GenerateJsonSchema
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    class Plain(GenerateJsonSchema):
        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

        def encode_default(self, dft: Any) -> Any:
            try:
                json.dumps(to_jsonable_python(dft, inf_nan_mode="constants", fallback=str), allow_nan=False)
            except ValueError as error:
                # JSON has no number for infinity: a model would be told null, which the type does not take.
                raise PydanticSerializationError(str(error)) from error
            return super().encode_default(dft)

    schema: Json = adapter.json_schema(schema_generator=Plain, mode=mode)
    schema.pop("title", None)
    return schema


def _checker(tool: str, schema: Any) -> Any:
    import jsonschema_rs

    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise BadTool(
            f'{tool}: the input schema must be a JSON Schema with "type": "object", as a tool takes named arguments'
        )
    try:
        return jsonschema_rs.validator_for(schema, offline=True)
    except (ValueError, TypeError) as error:
        fault = str(error).strip().splitlines()[0]
        path = "/".join(map(str, getattr(error, "instance_path", ())))
        raise BadTool(
            f"{tool}: the input schema is not a valid JSON Schema{f', at {path}' if path else ''}: {fault}"
        ) from error


def _before(text: str, fault: str) -> str:
    """The end of what could be read, up to the "line L column C" that the parser names."""
    words = fault.split()
    if len(words) >= 4 and words[-4] == "line" and words[-1].isdigit() and words[-3].isdigit():
        lines = text.split("\n")[: int(words[-3])]
        until = "\n".join([*lines[:-1], lines[-1].encode()[: int(words[-1])].decode("utf-8", "ignore")])
        return until[-80:]
    return text[:80]
