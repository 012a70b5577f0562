"""Google's names: `finishReason` or `finish_reason`, as the API takes both, and servers between send either. Pure.

Neighbours: `treadle.models.google`, which writes requests; `treadle.models.google_stream`, which reads replies.
"""

import re
from functools import cache
from typing import Any

from treadle.kernel.messages import Json


def camelled(name: str) -> str:
    """The name of a field as the API's pages have it."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


@cache
def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


def named(fields: Json, name: str) -> Any:
    """The field `name`, in either spelling; None if there is none."""
    value = fields.get(name)
    return fields.get(_snake(name)) if value is None else value
