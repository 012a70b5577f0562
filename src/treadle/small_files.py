"""Small files: text that a person wrote, such as a declaration, and never more of it than anybody writes.

What is named may be a device that never ends, such as /dev/zero, or the wrong file.
"""

import errno
from pathlib import Path

MOST = 16_000_000
"""How many bytes a file that somebody wrote has at most."""


def small_text(path: Path) -> str:
    """Returns the text of a file in UTF-8.

    Raises:
        OSError: it cannot be read, or has more than `MOST` bytes.
        UnicodeDecodeError: it is no UTF-8.
    """
    with path.open("rb") as file:
        found = file.read(MOST + 1)
    if len(found) > MOST:
        raise OSError(errno.EFBIG, f"it has more than {MOST:,} bytes, which nobody writes by hand")
    return found.decode("utf-8-sig")
