"""Redacting: a text, or the arguments of a call, put through the function of a journal that says what is kept of it.

Neighbours: `treadle.journal.redaction`, which puts the events of a run through it.
"""

import json
import re
from collections.abc import Callable

Redact = Callable[[str], str]
"""Given a text, returns what is kept in its place: the function of a journal."""

# A string in JSON; with a colon after it, it is the name of a value.
_STRING = re.compile(r'("[^"\\]*+(?>(?:\\.[^"\\]*+)*)")(\s*:)?', re.DOTALL)


def kept_text(text: str, redact: Redact) -> str:
    """What `redact` keeps of a text; an empty one as it is.

    Raises:
        TypeError: `redact` returned no text.
    """
    if not text:
        return text
    found = redact(text)
    if not isinstance(found, str):
        raise TypeError(f"it returned {type(found).__name__} in place of a text")
    return found


def kept_arguments(text: str, redact: Redact) -> str:
    """The JSON of a call's arguments with each text in it passed through, and everything else as it was written.

    What is no JSON is one text.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return kept_text(text, redact)

    def passed(match: "re.Match[str]") -> str:
        if match.group(2):
            return match.group()
        before = json.loads(match.group(1))
        after = kept_text(before, redact)
        return match.group() if after == before else json.dumps(after, ensure_ascii=False)

    found = _STRING.sub(passed, text)
    return text if found == text else found
