"""Makes tools of functions: the `tool` decorator.

Everything that can be wrong with a definition is found here, when the tool is made, and raised as `BadTool`.
"""

from collections.abc import Callable
from typing import TypeVar, Unpack, overload

from typing_extensions import ParamSpec

from treadle.kernel.messages import ToolSpec
from treadle.tools.arguments import from_parameters
from treadle.tools.described import fields_of, output_schema_of
from treadle.tools.errors import BadTool
from treadle.tools.options import ToolOptions, check_name, check_options
from treadle.tools.signature import read_signature
from treadle.tools.tool import Tool

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Tool[P, R]: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, **options: Unpack[ToolOptions]
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Makes a tool of a function, sync or async; as a decorator, bare or with options, or as a plain call.

    The input schema comes from the parameters' types (`Annotated`, `Field`, `Literal`, enums, models, dataclasses),
    their descriptions from the docstring (Google, NumPy or Sphinx style). A parameter annotated `ToolContext` or
    `ToolContext[Shop]` gets the context, one annotated `Injected[Shop]` the application's dependencies; the model sees
    neither. The tool can still be called as the function that it was, and type checkers know it as such.

    Args:
        function: a function, bound method, `functools.partial`, or an instance that can be called. A `Tool` stays as it
            is.
        name: what the model calls; by default the function's own name. Letters, digits, `_` and `-`, at most 64.
        description: what the model is told it is for; by default the docstring.
        options: see `Tool`: effect ("write"), timeout (60.0 s an attempt), retries (0), alone (False), resource (None),
            max_output (50,000 characters), needs_approval (False), polling (False), parallel (False), thread (True),
            errors (None), reconcile (None), keep (False).

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
    about = signature.description if description is None else description
    check_name(own, label, about)
    check_options(options, label)
    arguments = from_parameters(own, signature.parameters, signature.where)
    spec = ToolSpec(own, about, arguments.schema, output_schema_of(signature))
    return Tool(spec=spec, **fields_of(function, signature, arguments), **options, says_effect="effect" in options)
