"""Reads a function once, when it becomes a tool: its parameters, their types, what is injected, what it returns.

Everything that needs `inspect` or `typing` happens here and never at call time. Neighbours: `function.py` makes a tool
of what is found, `arguments.py` a validator.
"""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterator
from typing import Annotated, Any, Literal

from msgspec import Struct

from treadle.tools.context import FromRun, ToolContext
from treadle.tools.docstring import parse_docstring
from treadle.tools.errors import BadTool

Injection = Literal["context", "deps"]
MISSING: Any = inspect.Parameter.empty
_ONCE_INJECTED = {
    "context": "ToolContext",
    "deps": "Injected[...]` with the type of the dependencies in it, such as `deps: Injected[Shop]",
}
_ANYTHING = (MISSING, Any, object)
_CALL = "__call__"  # of an instance that can be called, where it is async or a generator


class Parameter(Struct, frozen=True):
    """A parameter that the model fills; `default` is `MISSING` if it has none, `description` is the docstring's."""

    name: str
    annotation: Any
    default: Any
    description: str


class Signature(Struct, frozen=True):
    """What a function says of itself.

    Attributes:
        name: the function's own name.
        where: its place, as "file:line".
        description: its docstring without the sections on parameters and results.
        parameters: those that the model fills, in order.
        injected: the parameters that are filled with the context or the dependencies.
        deps_types: the classes that those parameters say the dependencies to be, that of None among them.
        needs_deps: the type of dependencies that a run must be given, as it is written; empty if it may be given none.
        open: whether it takes any further keyword (`**name`).
        returns: the type it returns; `MISSING` if it does not say, or says what cannot be resolved.
        is_async: whether calling it gives a coroutine.
    """

    name: str
    where: str
    description: str
    parameters: tuple[Parameter, ...]
    injected: tuple[tuple[str, Injection], ...]
    deps_types: tuple[type, ...]
    needs_deps: str
    open: bool
    returns: Any
    is_async: bool


def read_signature(function: Callable[..., Any], described: Collection[str] | None = None) -> Signature:
    """Reads `function`.

    Args:
        function: what is to be a tool.
        described: the arguments that a schema describes, apart from the function; None if its parameters are all there
            is, so that each must have a type, and `**name` is refused.

    Raises:
        BadTool: the function cannot be a tool; the message names it and its place.
    """
    where = place_of(function)
    own_name = _name_of(function)
    label = f"{own_name} ({where})"
    _refuse_what_is_no_function(function, label)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise BadTool(
            f"{label} cannot be read ({error}); wrap it in a function of your own whose parameters have types"
        ) from error
    description, said = parse_docstring(_docstring_of(function))
    typed = described is None
    preset = function.keywords if isinstance(function, functools.partial) else {}
    parameters: list[Parameter] = []
    injected: list[tuple[str, Injection]] = []
    deps_types: list[type] = []
    needs_deps, is_open = "", False
    for name, parameter in signature.parameters.items():
        if name in preset:
            continue
        if parameter.kind is parameter.VAR_KEYWORD and not typed:
            is_open = True
            continue
        _refuse_unnamed(parameter, label)
        annotation = _resolve(function, name, parameter.annotation, label)
        kind, deps = _injection(annotation)
        if kind is not None:
            _refuse_filled_twice(name, described or (), label)
            injected.append((name, kind))
            deps_types += _classes(deps, annotation)
            needs_deps = needs_deps or ("" if parameter.default is None else _needed(deps, annotation))
        elif annotation is MISSING and (typed or name in _ONCE_INJECTED) and name not in (described or ()):
            raise BadTool(f"{label}: the parameter {name!r} has no type; {_fix_for_untyped(name)}")
        else:
            _refuse_given_elsewhere(name, annotation, label)
            taken = _with_none(annotation, parameter.default)
            parameters.append(Parameter(name, taken, parameter.default, said.get(name, "")))
    return Signature(
        name=own_name,
        where=where,
        description=description,
        parameters=tuple(parameters),
        injected=tuple(injected),
        deps_types=tuple(dict.fromkeys(deps_types)),
        needs_deps=needs_deps,
        open=is_open,
        returns=_returns(function, signature.return_annotation),
        is_async=_is_async(function),
    )


def _refuse_filled_twice(name: str, described: Collection[str], label: str) -> None:
    if name in described:
        raise BadTool(
            f"{label}: treadle fills in {name!r}, as its type says, and what a model writes for that of the schema "
            "would be lost; give the parameter another name"
        )


def _refuse_given_elsewhere(name: str, annotation: Any, label: str) -> None:
    """Refuses what other functions of an agent are given: a model would be asked for the dependencies."""
    for kind in _arms(annotation):
        origin = typing.get_origin(kind) or kind
        if str(getattr(origin, "__module__", "")).startswith("treadle.drivers."):
            (deps, *_) = (*typing.get_args(kind), "Shop")
            of = getattr(deps, "__name__", str(deps))
            raise BadTool(
                f"{label}: no tool is given the {origin.__name__} that {name!r} asks for; write "
                f"`{name}: ToolContext[{of}]`, which has the call and the dependencies, or for these alone "
                f"`deps: Injected[{of}]`"
            )


def place_of(function: Any) -> str:
    """Where a function was written, as "file:line"."""
    function = inspect.unwrap(_applied(function))
    code = getattr(function, "__code__", None) or getattr(getattr(type(function), _CALL, None), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "place unknown"


def _refuse_what_is_no_function(function: Any, label: str) -> None:
    if isinstance(function, type):
        raise BadTool(f"{label} is a class; make a tool of a function or of an instance that can be called")
    if not callable(function):
        raise BadTool(f"{function!r:.100} cannot be called; make a tool of a function")
    if isinstance(getattr(function, "registry", None), types.MappingProxyType) and hasattr(function, "dispatch"):
        raise BadTool(
            f"{label} is a functools.singledispatch, which chooses by the type of a first argument without a name, and "
            "a model names its arguments; make a tool of a function that calls it"
        )
    target = inspect.unwrap(function)
    for candidate in (target, getattr(type(target), _CALL, None)):
        if inspect.isgeneratorfunction(candidate) or inspect.isasyncgenfunction(candidate):
            raise BadTool(
                f"{label} is a generator, and a tool has one result; return a list, and report progress with "
                "context.report(...) (a parameter annotated ToolContext)"
            )


def _refuse_unnamed(parameter: inspect.Parameter, label: str) -> None:
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL | inspect.Parameter.VAR_KEYWORD:
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise BadTool(
                f"{label}: a model cannot fill {stars}{parameter.name}; name each parameter, or take one list or dict"
            )
        case inspect.Parameter.POSITIONAL_ONLY:
            raise BadTool(
                f"{label}: {parameter.name!r} is positional-only, and a model names its arguments; remove the '/'"
            )
        case _:
            return


def _fix_for_untyped(name: str) -> str:
    if name in ("self", "cls"):
        return "make the tool of the bound method: tool(instance.method)"
    if name in _ONCE_INJECTED:
        return (
            f"what treadle fills in is said by type: write `{name}: {_ONCE_INJECTED[name]}`, or give it the type of "
            "what the model is to write"
        )
    return f"write it as `{name}: str` (or whatever it takes), so that the model can be told"


def _injection(annotation: Any) -> tuple[Injection | None, Any]:
    """What the parameter is filled with, if not by the model, and the type of the dependencies that it names."""
    for kind in _arms(annotation):
        if typing.get_origin(kind) is Annotated:
            inner, *marks = typing.get_args(kind)
            if FromRun in marks:
                return "deps", inner
            kind = inner
        if kind is ToolContext:
            return "context", MISSING
        if typing.get_origin(kind) is ToolContext:
            return "context", typing.get_args(kind)[0]
    return None, MISSING


def _arms(annotation: Any, named: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """What a union is made of, unions in it too; the annotation itself if it is none.

    Of `named`, names of `type` statements that stand in what they name, nothing more is said.
    """
    kind = annotation if annotation in named else _meant(annotation)
    if kind is not annotation:
        return _arms(kind, (*named, annotation))
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return tuple(arm for one in typing.get_args(kind) for arm in _arms(one, named)) if is_union else (kind,)


def _meant(kind: Any) -> Any:
    """What a `type` statement names, where `kind` is such a name."""
    try:
        return getattr(kind, "__value__", kind)
    except NameError:
        # It is made of what is not there; Pydantic says so.
        return kind


def _classes(deps: Any, annotation: Any) -> list[type]:
    """The classes of the application in `deps`, and that of None where it will do beside them.

    JSON's own types say nothing, as anything may be one of them.
    """
    arms = _kinds_of(deps)
    classes = [arm for arm in arms if isinstance(arm, type) and arm.__module__ != "builtins" and arm not in _ANYTHING]
    none = type(None)
    return [*classes, none] if classes and none in (*arms, *_arms(annotation)) else classes


def _needed(deps: Any, annotation: Any) -> str:
    """What the dependencies must be, as it is written; empty if none will do."""
    arms = _kinds_of(deps)
    if any(isinstance(arm, typing.TypeVar) or _is_none(arm) for arm in (*arms, *_arms(annotation))):
        return ""
    names = [arm.__name__ if isinstance(arm, type) else str(arm) for arm in arms]
    return " or ".join(names).replace("typing.", "").replace("collections.abc.", "")


def _kinds_of(deps: Any) -> tuple[Any, ...]:
    return _arms(typing.get_args(deps)[0] if typing.get_origin(deps) is Annotated else deps)


def _is_none(kind: Any) -> bool:
    """Whether None is one of `kind`."""
    if kind in (*_ANYTHING, None) or (typing.get_origin(kind) is typing.Literal and None in typing.get_args(kind)):
        return True
    try:
        return issubclass(type(None), kind)
    except TypeError:
        # No class, such as `dict[str, int]`, or one that cannot be asked, as most protocols and typed dictionaries.
        return False


def _with_none(annotation: Any, default: Any) -> Any:
    """`x: int = None` means `int | None`, as its author does."""
    if default is not None or annotation is MISSING or annotation is Any:
        return annotation
    inner = typing.get_args(annotation)[0] if typing.get_origin(annotation) is Annotated else annotation
    if inner is None or type(None) in typing.get_args(inner):
        return annotation
    return annotation | None


def _resolve(function: Any, name: str, annotation: Any, label: str) -> Any:
    if annotation is MISSING:
        return MISSING
    try:
        found = _evaluate(function, annotation)
    except Exception as error:
        raise BadTool(
            f"{label}: the type of {name!r} cannot be resolved ({type(error).__name__}: {error}); define or import it "
            "at the top of the module, outside functions and `if TYPE_CHECKING`"
        ) from error
    for itself in unknown_names(found):
        raise BadTool(
            f"{label}: the type of {name!r} is made of {itself!r}, and that of itself; write "
            f'`{itself} = TypeAliasType("{itself}", "…")`, of typing_extensions, with the type in quotes, or a '
            "Pydantic model"
        )
    return found


def unknown_names(kind: Any) -> Iterator[str]:
    """The names in a type that stand for no type yet. Pydantic would look for them among the names of this package."""
    origin, arms = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, (str, typing.ForwardRef)):
        yield kind if isinstance(kind, str) else kind.__forward_arg__
    elif origin is not Literal:
        for one in arms[:1] if origin is Annotated else arms:
            yield from unknown_names(one)


def _evaluate(function: Any, annotation: Any) -> Any:
    target = inspect.unwrap(_applied(function))
    if not hasattr(target, "__globals__") and not hasattr(target, "__func__"):
        target = type(target).__call__
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    names = getattr(getattr(target, "__func__", target), "__globals__", {})
    return typing.get_type_hints(holder, globalns=names, include_extras=True)["it"]


def _returns(function: Any, annotation: Any) -> Any:
    try:
        return MISSING if annotation is MISSING else _evaluate(function, annotation)
    except Exception:  # the result's type only informs; a tool works without it
        return MISSING


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(type(function), _CALL, None))


def _applied(function: Any) -> Any:
    """The function that is called where some of its arguments were given by `functools.partial`."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _name_of(function: Any) -> str:
    function = _applied(function)
    return str(getattr(function, "__name__", type(function).__name__))


def _docstring_of(function: Any) -> str | None:
    function = _applied(function)
    if hasattr(function, "__name__"):
        return inspect.getdoc(function)
    return inspect.getdoc(type(function).__call__) or inspect.getdoc(type(function))
