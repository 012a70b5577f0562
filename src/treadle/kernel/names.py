"""Names that are made of the ids of calls, which a model makes up as it likes."""

import re

_SPECIAL = re.compile(r"\A-|[\x00-\x20\x7f-\x9f/#%+.~]|[^\x00-\x7f]")


def escaped(call_id: str) -> str:
    """`call_id` as a part of a path ("call/inner"), a key ("call#fingerprint") or a run's name ("run.0.call").

    What separates there, white space, control characters and whatever is not ASCII become %XX, a byte each of UTF-8;
    so does a "-" at the beginning, which a command line would take for an option.
    """
    return _SPECIAL.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace")), call_id)
