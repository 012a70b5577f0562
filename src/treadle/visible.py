"""Visible: texts of others as a person is shown them, for a model or a tool may write anything."""

import ast
import json
import re
from unicodedata import combining, is_normalized

_BLANK = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that show nothing; Unicode calls them printable."""


_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_NONE = "(none)"


def clean(text: str) -> str:
    """`text` without control characters, also those that turn the writing direction.

    What a model, a tool or a source says must not be able to steer the terminal, nor to show a figure backwards.
    """
    return _CONTROL.sub("", text)


def visible(text: str) -> str:
    """`text` with every character that cannot be seen as it is written as JSON escapes it, such as \\u202e.

    For what a person decides on: control, invisible and bidirectional characters, blanks that are none, and lone
    surrogates.
    """
    if text.isprintable() and (text.isascii() or not _BLANK.search(text)):
        return text
    return "".join([one if one.isprintable() and not _BLANK.match(one) else json.dumps(one)[1:-1] for one in text])


def seen(value: object) -> str:
    """A value of data in words: as it is; "(none)" for none; in quotes and escaped where one would not see all of it.

    So no two values look alike: an empty text and none, a text and the same with a blank, a line break or an invisible
    mark in it, or with letters made of several characters.
    """
    if value is None:
        return _NONE
    told = str(value)
    if not (told.isascii() or is_normalized("NFC", told)):
        return _apart(visible(repr(told)))
    plain = told == told.strip() and visible(told) == told and told not in ("", _NONE)
    quoted = told[:1] == told[-1:] and told[:1] in ("'", '"')
    return told if plain and not quoted else visible(repr(told))


def _apart(text: str) -> str:
    """`text` with each character escaped that looks like another, or like one with that before it; others stay."""
    pairs = zip(f" {text}", text, strict=False)
    return "".join([ascii(one)[1:-1] if _is_part(before, one) else one for before, one in pairs])


def _is_part(before: str, one: str) -> bool:
    if one.isascii():
        return False
    joined = is_normalized("NFC", before) and not is_normalized("NFC", before + one)
    return joined or combining(one) > 0 or not is_normalized("NFC", one)


def as_shown(told: str) -> str | None:
    """The value that `seen` shows as `told`; `told` itself if it shows none so."""
    if told == _NONE:
        return None
    if told[:1] not in ("'", '"'):
        return told
    try:
        value = ast.literal_eval(told)
        # `seen` writes what is beyond the first 65,536 characters as two, as JSON does.
        value = value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    except (ValueError, SyntaxError, AttributeError):
        return told
    return value if seen(value) == told else told
