"""Whether what a tool returned says that the call failed, where a tool or an agent has a way to tell.

Tools that others wrote often say so in what they return rather than by an exception. `says_error` knows the usual
forms; any function of the value will do (`@tool(errors=...)`).
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from jiter import from_json

from treadle.event_loop import is_closed
from treadle.tools.errors import passing, place_of_exception
from treadle.tools.output import ToolResult
from treadle.tools.raised import Redact, log_raised

SaysError = Callable[[Any], bool | Awaitable[bool]]
"""Tells whether a returned value means that the call failed; may be async."""

_log = logging.getLogger("treadle")
# A library says nothing on a terminal that the program did not ask for; whoever configures logging sees it all.
_log.addHandler(logging.NullHandler())


def says_error(value: Any) -> bool:
    """Whether `value` says by the usual signs that something failed.

    The signs are: a mapping with an "error" that is not empty or with "is_error" true, a text that begins with "Error:"
    or "Error ", and a JSON text of such a mapping.
    """
    if isinstance(value, str):
        text = value.lstrip()
        if text.startswith(("Error:", "Error ")):
            return True
        if not text.startswith("{") or "error" not in text:
            return False
        try:
            value = from_json(text.encode("utf-8", "replace"))
        except ValueError:
            return False
    return isinstance(value, Mapping) and (bool(value.get("error")) or value.get("is_error") is True)


async def is_failure(
    says: SaysError,
    value: Any,
    tool: str,
    cancelled: Callable[[], bool],
    about: Mapping[str, object],
    redact: Redact | None,
) -> bool:
    """What `says` tells of a returned value (of what the model is shown, for a `ToolResult`).

    One that raises, or returns None, is logged and tells nothing: the value was returned, so it counts as a result.
    """
    task = asyncio.current_task()
    try:
        found = says(value.for_model if isinstance(value, ToolResult) else value)
        found = await found if inspect.isawaitable(found) else found
        if found is None:
            words = "the errors= of tool %s returned None, which is neither yes nor no; let it return True or False"
            _log.warning(words, tool, extra=about)
        return bool(found)
    except BaseException as error:
        if isinstance(error, GeneratorExit) and is_closed(task):
            raise
        if passing(error) is not None or (not isinstance(error, Exception) and cancelled()):
            raise
        log_raised(f"the errors= of tool {tool} raised {place_of_exception(error)}", error, redact, about)
        return False
