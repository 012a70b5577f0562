"""Refusing: what a client is answered to a line that is no message of the protocol, where it waits for an answer."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, get_args

from treadle.context.storable import storable_text

_BATCH: Final = "several messages in one are not taken: write each on a line of its own"

_NUMBERED: Final = "a request has an id, which is a text or a whole number: nothing was done"

_TOLD: Final = "notifications/"

_OF_THE_WHOLE: Final = 2
"""How deep a part of a message is named: by what the message would be, and its own name."""


def refusals(error: Exception) -> Sequence[Any]:
    """An error for each request in a line that the official package could not read; none for what is no request.

    Args:
        error: what it says of the line.
    """
    from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return ()
    faults: Any = error.errors(include_url=False, include_context=False)
    first = faults[0]
    match first["type"]:
        case "json_invalid":
            # What Python reads all the same, such as half of a pair of surrogates, or a control character.
            found, code, why = _read(first["input"]), PARSE_ERROR, str(first["msg"])
        case "model_type":
            found, code, why = first["input"], INVALID_REQUEST, _BATCH
        case _:
            # A fault is told with the part that has it; that it is no answer, of which the message is one part.
            whole = (one["input"] for one in faults if one["type"] == "missing" and len(one["loc"]) == _OF_THE_WHOLE)
            where = ".".join(map(str, first["loc"][1:]))
            found, code, why = next(whole, None), INVALID_REQUEST, f"{where}: {first['msg']}"
    each = found if isinstance(found, list) else [found]
    # What has an id and is no answer is meant as a request, also where it does not say of what.
    asked = [one for one in each if isinstance(one, dict) and ("method" in one or not {"result", "error"} & one.keys())]
    numbers = [one["id"] for one in asked if "id" in one]
    error_data = ErrorData(code=code, message=why)
    return [JSONRPCError(jsonrpc="2.0", id=_as_answered(number), error=error_data) for number in numbers]


def _as_answered(number: Any) -> int | str | None:
    """The id that an answer has; None where none can have it, such as a text with half of a pair of surrogates."""
    if isinstance(number, bool) or not isinstance(number, int | str):
        return None
    return number if isinstance(number, int) or storable_text(number) == number else None


def unnumbered(message: Any, *, has_number: bool = False) -> Sequence[Any]:
    """An error for a request that has no id which an answer could have; none for all else.

    The official package takes it for a notification, and whoever asked would wait. What has no id is one, to which
    JSON-RPC wants no answer: it is a request only by its method.

    Args:
        message: what was said, as the package has read it.
        has_number: whether it is known to have an id, which the package does not say.
    """
    from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, JSONRPCNotification

    if not isinstance(message, JSONRPCNotification) or message.method.startswith(_TOLD):
        return ()
    if not has_number and message.method not in _requests():
        return ()
    return (JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=INVALID_REQUEST, message=_NUMBERED)),)


def taken(number: int | str) -> Any:
    """An error for a request whose id another under way has, of the same client."""
    from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError

    # Where all answers come by one way, it may be taken for that of the request which goes on.
    under_way = f"a request with the id {number!r:.60} is under way in this session, and goes on"
    why = f"{under_way}; this one was not carried out: give each an id of its own"
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=INVALID_REQUEST, message=why))


def nothing_kept() -> Any:
    """An error for a client that wants the rest of an answer which was cut off."""
    from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError

    why = "nothing is kept of an answer that was cut off: ask again, with the key of the call if it had one"
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=INVALID_REQUEST, message=why))


@cache
def _requests() -> frozenset[str]:
    """The methods by which a client asks something."""
    from mcp_types import ClientRequest

    kinds: Any = get_args(ClientRequest)
    return frozenset(method for kind in kinds for method in get_args(kind.model_fields["method"].annotation))


def _read(line: Any) -> Any:
    try:
        return json.loads(line, strict=False)
    except RecursionError:
        # Nested so deep it is more than junk, and somebody may wait.
        return {"method": None, "id": None}
    except (TypeError, ValueError):
        return None
