"""Checked: replies and arguments that are what they are declared to be, though JSON from outside may hold anything.

Pure. A dialect puts a reply together out of JSON without looking at each value; what a server sent in the wrong type
would otherwise be found out much later, in a tool or a journal. Neighbours: the dialects' decoders.
"""

from typing import Final

import msgspec

from treadle.models.halves import without_halves
from treadle.models.port import ModelReply

_DECODER: Final = msgspec.json.Decoder(ModelReply)
_OBJECT: Final = msgspec.json.Decoder(dict)


def checked(reply: ModelReply) -> ModelReply:
    """`reply`, if each value in it is of its declared type; halves of characters are joined, or replaced.

    Raises:
        ValueError: a value is of another type; so does `TypeError`.
    """
    try:
        encoded = msgspec.json.encode(reply)
    except UnicodeEncodeError:
        reply = without_halves(reply)
        encoded = msgspec.json.encode(reply)
    _DECODER.decode(encoded)
    return reply


def is_object(text: str) -> bool:
    """Whether `text` is one whole JSON object, as the arguments of a tool call must be."""
    try:
        _OBJECT.decode(text)
        return True
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
