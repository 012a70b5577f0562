"""Makes tools of functions: the `tool` decorator, and a function with a schema of its own.

Everything that can be wrong with a definition is found here, when the tool is made, and raised as `BadTool`.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack, cast, overload

from msgspec.structs import replace

from treadle.kernel.messages import Content, File, Image, Json, Text, ToolSpec
from treadle.tools.arguments import from_json_schema, from_parameters, from_type, schema_of_result
from treadle.tools.errors import BadTool, did_you_mean, nearest
from treadle.tools.output import ToolResult
from treadle.tools.signature import MISSING, Parameter, Signature, read_signature
from treadle.tools.tool import Effect, Tool

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_EFFECTS = ("read", "idempotent", "write")


class ToolOptions(TypedDict, total=False):
    """How a tool may be run; the meanings are those of the attributes of `Tool`."""

    effect: Effect
    timeout: float | None
    retries: int
    alone: bool
    resource: str | None
    max_output: int
    needs_approval: bool | Callable[[dict[str, Any]], bool]
    polling: bool


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    function: Callable[..., Any],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Tool: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, **options: Unpack[ToolOptions]
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a tool of a function, sync or async; as a decorator, bare or with options, or as a plain call.

    The input schema comes from the parameters' types (`Annotated`, `Field`, `Literal`, enums, models, dataclasses),
    their descriptions from the docstring (Google, NumPy or Sphinx style). A parameter annotated `ToolContext`, or named
    `context` without a type, gets the context; one named `deps` gets the application's dependencies; the model sees
    neither. The tool can still be called as the function that it was.

    Args:
        function: a function, bound method, `functools.partial`, or an instance that can be called. A `Tool` stays as it
            is.
        name: what the model calls; by default the function's own name. Letters, digits, `_` and `-`, at most 64.
        description: what the model is told it is for; by default the docstring.
        options: see `Tool`: effect ("write"), timeout (60.0 s an attempt), retries (0), alone (False), resource (None),
            max_output (50,000 characters), needs_approval (False), polling (False).

    Raises:
        BadTool: the function or an option cannot be used; the message says where and what to do.
    """
    if function is None:
        return lambda decorated: tool(decorated, name=name, description=description, **options)
    if isinstance(function, Tool):
        if name is None and description is None and not options:
            return function
        raise BadTool(f"{function.name} is a tool already; give its options where it is made ({function.where})")
    signature = read_signature(function)
    own = signature.name if name is None else name
    label = f"{own} ({signature.where})"
    check_name(own, label)
    check_options(options, label)
    return Tool(
        spec=ToolSpec(
            own,
            signature.description if description is None else description,
            (arguments := from_parameters(own, signature.parameters, signature.where)).schema,
            _output_schema(signature),
        ),
        arguments=arguments,
        function=function,
        where=signature.where,
        is_async=signature.is_async,
        injected=signature.injected,
        **options,
    )


def from_schema(
    name: str,
    description: str,
    input_schema: Any,
    function: Callable[..., Any],
    *,
    output_schema: Json | None = None,
    **options: Unpack[ToolOptions],
) -> Tool:
    """See `Tool.from_schema`."""
    if isinstance(function, Tool):
        function = cast(Callable[..., Any], function.function)
    signature = read_signature(function, typed=False)
    label = f"{name} ({signature.where})"
    check_name(name, label)
    check_options(options, label)
    if isinstance(input_schema, dict):
        arguments = from_json_schema(name, input_schema, signature.parameters, signature.where, is_open=signature.open)
    else:
        arguments = replace(from_type(name, input_schema), shape=_shape(input_schema, signature, label))
    return Tool(
        spec=ToolSpec(name, description, arguments.schema, output_schema or _output_schema(signature)),
        arguments=arguments,
        function=function,
        where=signature.where,
        is_async=signature.is_async,
        injected=signature.injected,
        **options,
    )


def check_name(name: str, label: str) -> None:
    """Raises `BadTool` if providers would refuse `name`."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadTool(
            f"{label}: {name!r:.100} cannot be the name of a tool; give name= with 1 to 64 letters, digits, '_' or '-'"
        )


def check_options(options: ToolOptions, label: str) -> None:
    """Raises `BadTool` if an option is unknown or has a value that makes no sense."""
    given: dict[str, Any] = dict(options)
    known = ToolOptions.__annotations__
    for key in given:
        if key not in known:
            raise BadTool(
                f"{label}: there is no option {key!r}{did_you_mean(nearest(key, known))} "
                f"(there are: {', '.join(known)})"
            )
    effect, timeout, retries = given.get("effect", "write"), given.get("timeout", 60.0), given.get("retries", 0)
    if effect not in _EFFECTS:
        raise BadTool(f"{label}: effect={effect!r}, but it is one of {', '.join(map(repr, _EFFECTS))}")
    if timeout is not None and not (_is_number(timeout) and timeout > 0):
        raise BadTool(f"{label}: timeout={timeout!r}, but it is a number of seconds above 0, or None for no limit")
    if type(retries) is not int or retries < 0:
        raise BadTool(f"{label}: retries={retries!r}, but it is a number from 0")
    if retries and effect == "write":
        raise BadTool(
            f"{label}: a tool that writes is never tried again, as nobody knows how far it came; remove "
            f'retries={retries}, or say effect="read" or effect="idempotent" if running it twice does no harm'
        )
    max_output = given.get("max_output", 50_000)
    if type(max_output) is not int or max_output < 100:
        raise BadTool(f"{label}: max_output={max_output!r}, but it is a number of characters from 100")
    for key in ("alone", "polling"):
        if type(given.get(key, False)) is not bool:
            raise BadTool(f"{label}: {key}={given[key]!r}, but it is True or False")
    resource, approval = given.get("resource"), given.get("needs_approval", False)
    if resource is not None and (not isinstance(resource, str) or not resource):
        raise BadTool(f"{label}: resource={resource!r}, but it is a name, or None")
    if type(approval) is not bool and not callable(approval):
        raise BadTool(f"{label}: needs_approval={approval!r}, but it is True, False, or a function of the arguments")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _output_schema(signature: Signature) -> Json | None:
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
