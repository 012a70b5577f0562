"""treadle: the agent loop you can read, stop, resume, replay and trust.

The public names are those of `treadle.api`, loaded when the first of them is used, so that `treadle --help` answers at
once.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treadle.api import *  # noqa: F403  (its __all__ is the list)

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name.startswith("__") and name != "__all__":
        raise AttributeError(name)
    try:
        value = getattr(import_module("treadle.api"), name)
    except AttributeError:
        raise AttributeError(f"treadle has no public name {name!r}; see dir(treadle)") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from treadle import api

    return sorted({*globals(), *api.__all__})
