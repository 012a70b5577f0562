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
        raise _no_public(name) from None
    globals()[name] = value
    return value


def _no_public(name: str) -> AttributeError | ImportError:
    """That there is no public `name`, and what is meant by it elsewhere.

    Of an attribute that is missing, `from treadle import …` keeps no word, so that it is given the error to raise.
    """
    import sys

    from treadle.misnamed import PUBLIC

    meant = PUBLIC.get(name)
    told = f"treadle has no public name {name!r}; " + (f"did you mean {meant}?" if meant else "see dir(treadle)")
    imports = meant is not None and sys._getframe(2).f_code.co_name == "_handle_fromlist"
    return ImportError(told, name=__name__) if imports else AttributeError(told, name=name)


def __dir__() -> list[str]:
    from treadle import api

    return sorted({*globals(), *api.__all__})
