"""Google's names: `finishReason` or `finish_reason`, as the API takes both, and servers between send either. Pure.

And names of tools, which begin with a letter or "_" there.

Neighbours: `treadle.models.google`, which writes requests; `treadle.models.google_stream`, which reads replies.
"""

import re
from functools import cache
from typing import Any, Final

from treadle.kernel.messages import Json

# With "_" before it, too: no two names become one.
BEGINS: Final = re.compile(r"_*[0-9-]")


def camelled(name: str) -> str:
    """The name of a field as the API's pages have it."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def begun(name: str) -> str:
    """A tool's name, with one "_" more before a digit or "-" that it would begin with, as Gemini refuses it then."""
    return f"_{name}" if BEGINS.match(name) else name


def unbegun(name: str) -> str:
    """The tool's name of which `begun` made `name`."""
    return name[1:] if name.startswith("_") and BEGINS.match(name) else name


@cache
def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


def named(fields: Json, name: str) -> Any:
    """The field `name`, in either spelling; None if there is none."""
    value = fields.get(name)
    return fields.get(_snake(name)) if value is None else value
