"""Invalid call: a call in a reply that stands for an attempt at one, from which no tool can be told.

Pure data. Models that read calls out of text make it, the driver answers it with what is wrong. Neighbours:
`treadle.models.text_tools`.
"""

from typing import Final

import msgspec

from treadle.kernel.messages import ToolCall

INVALID_CALL: Final = "invalid_call"
"""The name of such a call. No tool of an agent may have it where a model makes such calls."""


class Attempt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the arguments of such a call are.

    Attributes:
        fault: what is wrong and what would be right, in words for the model.
        text: what the model wrote.
    """

    fault: str
    text: str


def attempt_of(call: ToolCall) -> Attempt | None:
    """The attempt that `call` stands for; None for any other call."""
    if call.name != INVALID_CALL:
        return None
    try:
        return msgspec.json.decode(call.arguments, type=Attempt)
    except (ValueError, RecursionError):
        return None
