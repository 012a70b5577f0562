"""Failing: why a server cannot be reached, in words for a person; and what of an error is the connection's."""

from typing import Any, Final

from treadle.kernel.errors import Misuse
from treadle.tools.server import ServerFailed

OF_TRANSPORTS: Final = ("Connection closed", "Session terminated", "Server returned an error response")
"""What the transports of the official package say, as if the server had answered it."""

MOST_FAULTS: Final = 5
"""Faults of one message that are told."""

OF_STREAMS: Final = "SSE stream"
"""With what they begin to say that a stream of events has ended."""


def in_words(error: BaseException, told: str) -> str:
    """What is wrong, for an error in connecting to the server that is `told` by its program or address."""
    match error:
        case Misuse() | TimeoutError():
            return str(error)
        case FileNotFoundError():
            return f"there is no program {told!r}, or not the folder that it is to be started in"
        case PermissionError():
            return f"{told!r} is no program that may be started"
    kind = type(error).__name__
    if str(error) == "Server returned an error response":
        return f"{told} answers with an HTTP error: are the address and the headers right?"
    if kind in ("ConnectError", "ConnectTimeout"):
        return f"nobody answers at {told}"
    if (kind == "MCPError" and str(error) == "Connection closed") or kind == "Gone":
        return "it ended before it answered"
    return f"{kind}: {told_of(error)}" if str(error) else kind


def told_of(error: BaseException) -> str:
    """What is wrong with what a server sent, without what it sent: pydantic shows pieces of that, in which no secret is
    recognised.
    """
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found[:MOST_FAULTS])


def failed(server: str, error: Exception) -> ServerFailed:
    """That the server cannot be used, where its connection ended in the middle of something."""
    if isinstance(error, ServerFailed):
        return error
    return ServerFailed(f"the server {server} went away before it answered")


def is_of_the_connection(error: Any) -> bool:
    """Whether an error of the official package is for the link to look at: nothing that the server answered."""
    from mcp_types import CONNECTION_CLOSED

    ended = error.code == CONNECTION_CLOSED and error.message.startswith(OF_STREAMS)
    return ended or error.message in OF_TRANSPORTS
