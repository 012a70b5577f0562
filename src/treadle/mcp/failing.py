"""Failing: why a server cannot be used, in words for a person."""

from typing import Final

from treadle.kernel.errors import Misuse
from treadle.mcp.unanswered import WENT, Forgotten, Gone
from treadle.tools.server import ServerFailed

MOST_FAULTS: Final = 5
"""Faults of one message that are told."""


def in_words(error: BaseException, told: str) -> str:
    """What is wrong, for an error in connecting to the server that is `told` by its program or address."""
    match error:
        case Misuse() | TimeoutError():
            return str(error)
        case FileNotFoundError():
            apart = f"; arguments in it are given apart: {', '.join(map(repr, told.split()))}" if " " in told else ""
            return f"there is no program {told!r}, or not the folder that it is to be started in{apart}"
        case PermissionError():
            return f"{told!r} is no program that may be started"
    kind = type(error).__name__
    if str(error) == "Server returned an error response":
        return f"{told} answers with an HTTP error: are the address and the headers right?"
    if kind in ("ConnectError", "ConnectTimeout"):
        return f"nobody answers at {told}"
    if (kind == "MCPError" and str(error) == "Connection closed") or isinstance(error, Gone):
        return "it ended before it answered"
    if str(error).startswith("Failed to parse "):
        # The official package shows pieces of what it was, in which no secret is recognised.
        return "it sent what is no message, or not a whole one"
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
    return ServerFailed(f"the server {server} {error if isinstance(error, (Gone, Forgotten)) else WENT}")
