"""How a tool goes to another process, by the name that it has in its module, and into a copy: as a function does."""

import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from importlib import import_module
from operator import attrgetter
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel.errors import Misuse

T = TypeVar("T", bound=Struct)

_CALLED: Final = ("function", "needs_approval", "errors", "reconcile")
"""The fields of a tool that may be methods."""


def by_name(tool: object, name: str, function: object) -> tuple[Callable[[str, str], object], tuple[str, str]]:
    """For `__reduce__` of the `tool` of that name, which has that function.

    Raises:
        Misuse: the module of the function does not have the tool.
    """
    module = str(getattr(function, "__module__", None))
    there: Mapping[str, object] = dict(vars(sys.modules[module])) if module in sys.modules else {}
    for place in (str(getattr(function, "__qualname__", "")), *there):
        try:
            if _found(module, place) is tool:
                return _found, (module, place)
        except (ImportError, AttributeError):
            continue
    raise Misuse(
        f"the tool {name!r} cannot be pickled, as no module has it by a name under which another process would find "
        "it: make it at the top of the module of its function, or let each process make it anew"
    )


def copied(tool: T, memo: dict[int, Any]) -> T:
    """For `__deepcopy__` of a tool: itself, or one that calls the methods of the copy where it calls an object's."""
    called = {name: getattr(tool, name) for name in _CALLED}
    other = {name: deepcopy(one, memo) for name, one in called.items()}
    return replace(tool, **other) if any(other[name] is not one for name, one in called.items()) else tool


def _found(module: str, place: str) -> object:
    found: object = attrgetter(place)(import_module(module))
    return found
