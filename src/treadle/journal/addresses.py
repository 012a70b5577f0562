"""Addresses: whether the name of a journal, or of a budget's ledger, is that of a file or of a database. Pure."""

import re
from os import fsencode, fspath
from typing import Any

_POSTGRES = re.compile(
    r"(?:postgres(?:ql)?://|(?:host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=)", re.I
)
"""How the address of a database begins: as a URL, or in libpq's own words."""

_MISTYPED = re.compile(r"postgres(?:ql)?(?::|//|\\)", re.I)
"""How one begins that was meant to be a URL: a file of that name would have the password in it."""

_USER = re.compile(r"(\s*[^:/?#@\s]+://[^:@/]*):.*@", re.DOTALL)
"""The user of a URL, and all that may be a password: an address is told also where libpq would refuse it."""

_SECRET = re.compile(r"([?&](?:ssl)?password=)[^&]*", re.IGNORECASE)

_WORD = re.compile(
    r"(\b(?:ssl)?password\s*=\s*)(?:'(?:[^'\\]|\\.)*(?:'|\\?$)|(?:[^\s\\]|\\.)+)", re.IGNORECASE | re.DOTALL
)
"""A password in libpq's words: in quotes, which may not be closed, or up to a blank without a backslash before it."""

_QUERY = re.compile(r"([^:]+://(?:[^@/]*@)?[^?]*)\?(.*)", re.DOTALL)
"""An address up to its query. To libpq a password is all that stands before the @, a "?", "#" or "[" in it too."""


def in_postgres(where: str) -> bool:
    """Whether the name is the address of a PostgreSQL database."""
    return _POSTGRES.match(where) is not None


def named_file(given: Any) -> str | None:
    """The path that a file can have which was given as text or as a path; None if it is none."""
    try:
        named = fspath(given)
        fsencode(named)
    except (TypeError, UnicodeEncodeError):
        return None
    return named if isinstance(named, str) and named and named != ":memory:" and "\0" not in named else None


def fault_in(where: str) -> str:
    """Why no journal can be at `where`, whatever there is; empty if one can."""
    if in_postgres(where):
        return ""
    if _MISTYPED.match(where):
        return "the address of a database begins with postgresql:// (a colon and two slashes)"
    kind, mark, _ = where.partition("://")
    return f"{kind}:// is no kind of journal: name a file, or postgresql://USER@HOST/DATABASE" if mark else ""


def without_password(where: str) -> str:
    """The name of a journal as it is told: with PASSWORD in the place of a password."""
    kind, mark, _ = where.partition("://")
    if mark and "=" not in kind:
        return _SECRET.sub(r"\1PASSWORD", _USER.sub(r"\1:PASSWORD@", where, count=1))
    return _WORD.sub(r"\1PASSWORD", where) if in_postgres(where) else where


def apart_from_schema(where: str) -> tuple[str, str | None]:
    """The address of a database without the `schema=NAME` that only a journal knows, and that name."""
    found = _QUERY.fullmatch(where)
    if found is None:
        return where, None
    words = found[2].split("&")
    schemas = [word.removeprefix("schema=") for word in words if word.startswith("schema=")]
    rest = "&".join([word for word in words if not word.startswith("schema=")])
    return f"{found[1]}?{rest}" if rest else found[1], schemas[-1] if schemas else None
