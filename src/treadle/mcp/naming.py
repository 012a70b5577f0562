"""Naming: what the tools of a server are called here, so that none can pass for another's.

A name is the server's, two underscores, and the tool's: `files__read_file`. The server's name is the user's word and
has no two underscores in it, so the first two tell whose a tool is, whatever the server says.
"""

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from treadle.kernel.errors import Misuse
from treadle.tools.server import JOINT

LONGEST: Final = 64
"""Characters of a name that every model takes."""

_SERVER = re.compile(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*")
_LONGEST_SERVER = 32


def check_server_name(name: object) -> str:
    """`name`, if a server can be called so.

    Raises:
        Misuse: it cannot.
    """
    if not isinstance(name, str) or not _SERVER.fullmatch(name) or len(name) > _LONGEST_SERVER:
        raise Misuse(
            f"a server's name has at most {_LONGEST_SERVER} letters, digits, '-' and single '_' in it, as the names of "
            f"its tools begin with it; it was given {name!r:.100}"
        )
    return name


def plain_name(name: str) -> str:
    """The nearest name that a server can have, for one that a file gives it."""
    found = "_".join(part for part in re.split(r"[^A-Za-z0-9-]+", name) if part)
    return check_server_name(found[:_LONGEST_SERVER].rstrip("_") or name)


def tool_names(server: str, remote: Iterable[str]) -> dict[str, str]:
    """By what the server calls each of its tools, what the model calls it; every name is one that a model takes.

    What no model takes is replaced. Where two would be one, or it is too long, the end says by a digest which it is.
    """
    names = list(dict.fromkeys(remote))
    found = {name: f"{server}{JOINT}{re.sub(r'[^A-Za-z0-9_-]', '_', name)}" for name in names}
    taken = [one.casefold() for one in found.values()]
    return {
        name: _with_digest(one, name) if len(one) > LONGEST or taken.count(one.casefold()) > 1 or not name else one
        for name, one in found.items()
    }


def _with_digest(name: str, remote: str) -> str:
    digest = sha256(remote.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: LONGEST - 9]}_{digest}"
