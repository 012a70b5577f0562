"""Unanswered: requests that a server gave no answer to, in what each transport says of them; and whether the server may
have carried them out.
"""

from secrets import token_hex
from typing import Any, Final

OF_TRANSPORTS: Final = (
    "Connection closed", "Session terminated", "Server returned an error response", "SSE stream", "Failed to parse ",
    "Redirect to ",
)  # fmt: skip
"""With what the transports of the official package begin to say, as if the server had answered it, that it has not."""

WENT: Final = "went away before it answered"
JUNK: Final = "answered with what is no message, or not a whole one"

_MARK: Final = token_hex()
"""What no server can know: by it an error is known for one of ours, and not of a server that says the same."""


class Gone(Exception):
    """No answer came, and nobody knows what became of the request. Its text follows the server's name."""


class Forgotten(Exception):
    """The server has not carried the request out. Its text follows the server's name."""


class Refused(Forgotten):
    """It has not, and would not if it were asked again."""


def marked(kind: type[Gone | Forgotten], words: str, *, ends: bool = False) -> dict[str, Any]:
    """The error of JSON-RPC, in the place of an answer, that `of_transport` reads as one of `kind`.

    Args:
        kind: what is known of the request.
        words: what a person is told, after the server's name.
        ends: whether the connection is of no more use.
    """
    from mcp_types import CONNECTION_CLOSED

    data = {"mark": _MARK, "kind": kind.__name__, "ends": ends}
    return {"code": CONNECTION_CLOSED, "message": words, "data": data}


def of_transport(error: Any) -> tuple[Gone | Forgotten, bool] | None:
    """What an error of the official package says of a request, and whether the connection has ended; None for one that
    the server answered.
    """
    from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR

    code, words, data = error.code, error.message, error.error.data
    if isinstance(data, dict) and data.get("mark") == _MARK:
        (kind,) = (one for one in (Gone, Forgotten, Refused) if one.__name__ == data["kind"])
        return kind(words), data["ends"]
    if code == CONNECTION_CLOSED and words == "Connection closed":
        return Gone(WENT), True
    if code == CONNECTION_CLOSED and words.startswith("SSE stream"):
        return Gone(WENT), False
    if code == PARSE_ERROR and words.startswith("Failed to parse "):
        # What it sent is not shown: a secret is not recognised in pieces of it.
        return Gone(JUNK), False
    if code == INVALID_REQUEST and words.startswith("Redirect to "):
        return Gone("answered with a redirect, which is not followed"), False
    return None
