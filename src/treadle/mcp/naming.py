"""Naming: what the tools of a server are called here, so that none can pass for another's.

A name is the server's, two underscores, and the tool's: `files__read_file`. The server's name is the user's word and
has no two underscores in it, so the first two tell whose a tool is, whatever the server says.
"""

import re
from collections.abc import Collection, Iterable
from hashlib import sha256
from itertools import count
from typing import Final

from treadle.kernel.errors import Misuse
from treadle.tools.server import JOINT

LONGEST: Final = 64
"""Characters of a name that every model takes."""

KEY: Final = "io.treadle/idempotency-key"
"""Under which name a call's `_meta` has the key that is the same whenever the call is made again."""

_SERVER = re.compile(r"[A-Za-z][A-Za-z0-9-]*(_[A-Za-z0-9-]+)*")
_LONGEST_SERVER = 32


def check_server_name(name: object) -> str:
    """`name`, if a server can be called so.

    Raises:
        Misuse: it cannot.
    """
    if not isinstance(name, str) or not _SERVER.fullmatch(name) or len(name) > _LONGEST_SERVER:
        raise Misuse(
            f"a server's name begins with a letter, and has at most {_LONGEST_SERVER} letters, digits, '-' and single "
            f"'_' in it, as the names of its tools begin with it; it was given {name!r:.100}"
        )
    return name


def plain_name(name: str) -> str:
    """The nearest name that a server can have, for one that a file gives it."""
    found = "_".join(part for part in re.split(r"[^A-Za-z0-9-]+", name) if part)
    # Gemini and Kimi refuse each request with a tool whose name begins otherwise.
    found = f"mcp_{found}" if found and not found[0].isalpha() else found
    return check_server_name(found[:_LONGEST_SERVER].rstrip("_") or name)


def tool_names(server: str, remote: Iterable[str]) -> dict[str, str]:
    """By what the server calls each of its tools, what the model calls it; every name is one that a model takes.

    A name that a model takes as it is stays, whatever else is listed: a rule that names it must not lose it. In others
    what no model takes is replaced; where two would be one, or it is too long, the end says by a digest which it is.
    """
    names = list(dict.fromkeys(remote))
    found = {name: f"{server}{JOINT}{re.sub(r'[^A-Za-z0-9_-]', '_', name)}" for name in names}
    kept = {name for name, one in found.items() if name and one == f"{server}{JOINT}{name}" and len(one) <= LONGEST}
    wanted = [one.casefold() for one in found.values()]
    taken = {found[name].casefold() for name in kept}
    for name, one in found.items():
        if name not in kept:
            if len(one) > LONGEST or wanted.count(one.casefold()) > 1 or not name:
                found[name] = _with_digest(one, name, taken)
            taken.add(found[name].casefold())
    return found


def _with_digest(name: str, remote: str, taken: Collection[str]) -> str:
    for number in count():
        digest = sha256(f"{remote}{number or ''}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
        found = f"{name[: LONGEST - 9]}_{digest}"
        if found.casefold() not in taken:
            break
    return found
