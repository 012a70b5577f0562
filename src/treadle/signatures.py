"""Signatures: whether a function of the application's can be called with what it will be given.

Asked where an agent is made, so that a wrong function is no surprise in the middle of a run.
"""

import inspect
from collections.abc import Callable
from typing import Any


def takes(function: Callable[..., Any], *given: None) -> bool:
    """Whether `function` can be called with as many arguments as are `given`, and nothing else."""
    try:
        inspect.signature(function).bind(*given)
    except TypeError:
        return False
    except ValueError:
        # Some functions written in C do not say what they take.
        return True
    return True
