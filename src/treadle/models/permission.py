"""Whether models outside this process may be called at all: the switch that tests turn off."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from treadle.kernel.errors import Misuse

VARIABLE = "TREADLE_FORBID_MODELS"

_forbidden: ContextVar[bool | None] = ContextVar("treadle_models_forbidden", default=None)


@contextmanager
def forbid_real_models(forbidden: bool = True) -> Iterator[None]:
    """No model outside this process may be called in this block; `False` allows it again inside one.

    For a whole process, set the environment variable TREADLE_FORBID_MODELS to 1.
    """
    token = _forbidden.set(forbidden)
    try:
        yield
    finally:
        _forbidden.reset(token)


def require_permission(name: str) -> None:
    """Called by every model that would leave this process, before it does.

    Raises:
        Misuse: such calls are forbidden here.
    """
    forbidden = _forbidden.get()
    if forbidden is None:
        forbidden = os.environ.get(VARIABLE, "") not in ("", "0")
    if forbidden:
        raise Misuse(
            f"a call of {name} was about to leave this process, which is forbidden here (forbid_real_models or "
            f"{VARIABLE}): use treadle.testing.ScriptedModel, or allow it with forbid_real_models(False)"
        )
