"""Names and texts of others as they may be shown or used in ours: escaped, for a model or a tool may write anything."""

import re

_SPECIAL = re.compile(r"\A-|[\x00-\x20\x7f-\x9f/#%+.~]|[^\x00-\x7f]")
_BLANK = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that show nothing; Unicode calls them printable."""


def escaped(call_id: str) -> str:
    """`call_id` as a part of a path ("call/inner"), a key ("call#fingerprint") or a run's name ("run.0.call").

    What separates there, white space, control characters and whatever is not ASCII become %XX, a byte each of UTF-8;
    so does a "-" at the beginning, which a command line would take for an option.
    """
    return _SPECIAL.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace")), call_id)


def visible(text: str) -> str:
    """`text` with every character that cannot be seen as it is written as an escape, such as \\u202e.

    For what a person decides on: control, invisible and bidirectional characters, blanks that are none, and lone
    surrogates, each as JSON writes it.
    """
    return "".join(one if one.isprintable() and not _BLANK.match(one) else _escape(one) for one in text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
