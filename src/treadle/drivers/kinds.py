"""Kinds: what may be the type of an answer, and in which words all else is refused.

What Pydantic says of a type that it cannot read is meant for whoever writes one, and some of what no JSON can be it
takes without a word. Neighbours: `treadle.drivers.output`, which asks for answers and reads them.
"""

import builtins
import re
from collections.abc import Iterator
from enum import Enum
from inspect import isroutine
from typing import Any, Final, ForwardRef, TypeVar, get_args, get_origin

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Json
from treadle.tools.arguments import schema_of
from treadle.tools.errors import describe_exception
from treadle.tools.signature import unknown_names

_NOT_READ: Final = re.compile(r"Unable to generate pydantic-core schema for (.+?)\. Set ", re.DOTALL)
_WOULD_DO: Final = "a Pydantic model, a dataclass, a TypedDict, or a type made of these and of JSON's own, would do"
_WRITE_IT: Final = (
    "write the type itself there; one that is made of itself is a model, or a TypeAliasType (typing_extensions)"
)
_NO_JSON: Final = frozenset({"is-instance", "is-subclass", "callable"})
"""What Pydantic checks without reading it from JSON."""


def read_from_json(kind: Any) -> tuple[Any, Json]:
    """Pydantic's adapter for answers of the type `kind`, and the JSON Schema of what they are read from.

    Raises:
        Misuse: it is no type, or none that can be read from JSON.
    """
    from pydantic import PydanticUserError, TypeAdapter

    refused = f"output takes a type that Pydantic can read from JSON; it was given {kind!r:.500}"
    if why := _why_not(kind):
        raise Misuse(f"{refused}{why}")
    try:
        adapter: Any = TypeAdapter(kind)
        if adapter.core_schema["type"] in _NO_JSON:
            raise Misuse(f"{refused}, and no JSON is one; {_WOULD_DO}")
        return adapter, schema_of(adapter)
    except PydanticUserError as error:
        raise Misuse(f"{refused}{_in_words(error, kind)}") from error
    except Misuse:
        raise
    except Exception as error:  # a type of the user's may say itself how it is read, and raise anything
        raise Misuse(f"{refused}, which could not be looked at: {describe_exception(error)[:500]}") from error


def _why_not(kind: Any) -> str:
    """What is wrong with what Pydantic would take for a type, or for another; empty if it is to be asked."""
    from pydantic import BaseModel

    if isinstance(kind, dict):
        # Pydantic would take it for a schema of its own kind.
        return ". The arguments of a tool that ends the run may have a JSON Schema: external_tool(…)"
    if isroutine(kind):
        # Pydantic would take its parameters for the type.
        return f", which is a function; {_WOULD_DO}"
    if isinstance(kind, (str, ForwardRef)):
        return ": give the type itself, not its name"
    if kind is BaseModel:
        return ", which has no fields: give a class of your own that is made from it"
    if isinstance(kind, type) and issubclass(kind, Enum) and not list(kind):
        return ", which has no values: give a class of your own that is made from it"
    if unknown := [name for name in unknown_names(kind) if not hasattr(builtins, name)]:
        return f", in which {unknown[0]!r} is not known: {_WRITE_IT}"
    if open_ones := [*dict.fromkeys(_variables(kind))]:
        names = ", ".join(str(one.__name__) for one in open_ones)
        return f", and nobody has said what {names} is: a type variable stands for a type; give that"
    return ""


def _variables(kind: Any) -> Iterator[TypeVar]:
    if isinstance(kind, TypeVar):
        yield kind
    for one in get_args(kind) if get_origin(kind) is not None else ():
        yield from _variables(one)


def _in_words(error: Exception, kind: Any) -> str:
    """What Pydantic says of `kind`, for whoever wants to be answered with one."""
    from pydantic import PydanticUndefinedAnnotation, PydanticUserError
    from pydantic.errors import PydanticInvalidForJsonSchema

    said = str(error).splitlines()[0]
    if isinstance(error, PydanticInvalidForJsonSchema):
        return f", and no JSON is one; {_WOULD_DO} ({said})"
    if found := _NOT_READ.match(said):
        part = "" if found[1] == repr(kind) else f", and {found[1]} in it is none"
        return f"{part}; {_WOULD_DO}"
    unknown = isinstance(error, PydanticUndefinedAnnotation) or (
        isinstance(error, PydanticUserError) and error.code == "class-not-fully-defined"
    )
    return f", in which a name is not known: {_WRITE_IT} ({said})" if unknown else f" ({said})"
