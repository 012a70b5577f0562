"""Tools described apart from their functions: what `Tool.from_schema` makes a tool of."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from treadle.kernel.messages import Content, File, Image, Json, Text, ToolSpec
from treadle.tools.arguments import Arguments, from_json_schema, from_type, schema_of_result
from treadle.tools.errors import BadTool
from treadle.tools.options import ToolOptions, check_name, check_options
from treadle.tools.output import ToolResult
from treadle.tools.signature import MISSING, Parameter, Signature, read_signature


def described(
    name: str,
    description: str,
    input_schema: Any,
    function: Callable[..., Any],
    output_schema: Json | None,
    options: ToolOptions,
) -> dict[str, Any]:
    """The fields of a tool whose arguments are described apart from its function; see `Tool.from_schema`."""
    is_json = isinstance(input_schema, dict)
    listed = input_schema.get("properties", ()) if is_json else _fields(input_schema)
    signature = read_signature(function, listed if isinstance(listed, dict | list) else ())
    label = f"{name} ({signature.where})"
    check_name(name, label, description)
    check_options(options, label)
    if is_json:
        arguments = from_json_schema(name, input_schema, signature.parameters, signature.where, is_open=signature.open)
    else:
        arguments = replace(from_type(name, input_schema), shape=_shape(input_schema, signature, label))
    spec = ToolSpec(name, description, arguments.schema, output_schema or output_schema_of(signature))
    return {"spec": spec, **fields_of(function, signature, arguments), **options, "says_effect": "effect" in options}


def fields_of(function: Callable[..., Any], signature: Signature, arguments: Arguments) -> dict[str, Any]:
    """The fields of a tool that come from its function."""
    return {
        "arguments": arguments,
        "function": function,
        "where": signature.where,
        "is_async": signature.is_async,
        "injected": signature.injected,
        "deps_types": signature.deps_types,
        "needs_deps": signature.needs_deps,
        "filled": tuple([(parameter.name, parameter.annotation) for parameter in signature.parameters]),
    }


def output_schema_of(signature: Signature) -> Json | None:
    """The JSON Schema of what the function returns, where its type tells."""
    if signature.returns in (ToolResult, Text, Image, File, Content, None, type(None)):
        return None
    return schema_of_result(signature.returns)


def _shape(kind: Any, signature: Signature, label: str) -> Callable[[Any], dict[str, Any]]:
    """How a value of the type becomes the function's keywords: whole, or field by field."""
    fields = _fields(kind)
    parameters = signature.parameters
    takes = [parameter.name for parameter in parameters]
    if len(parameters) == 1 and not signature.open and _takes_whole(parameters[0], kind, fields):
        whole = takes[0]
        return lambda value: {whole: value}
    needed = [parameter.name for parameter in parameters if parameter.default is MISSING]
    unknown = [] if signature.open else [field for field in fields if field not in takes]
    missing = [name for name in needed if name not in fields]
    if unknown or missing:
        wrong = "does not take " + ", ".join(unknown) if unknown else "needs " + ", ".join(missing)
        raise BadTool(
            f"{label}: the function {wrong}, unlike {getattr(kind, '__name__', kind)}; it takes either one value "
            f"of that type or its fields as keywords ({', '.join(fields)})"
        )
    return lambda value: dict(value) if isinstance(value, dict) else {field: getattr(value, field) for field in fields}


def _takes_whole(parameter: Parameter, kind: Any, fields: Sequence[str]) -> bool:
    return parameter.annotation is kind or (parameter.annotation is MISSING and parameter.name not in fields)


def _fields(kind: Any) -> list[str]:
    for attribute in ("model_fields", "__dataclass_fields__", "__annotations__"):
        found = getattr(kind, attribute, None)
        if found:
            return list(found)
    return []
