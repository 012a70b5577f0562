"""Addresses: whether the name of a journal, or of a budget's ledger, is that of a file or of a database."""

import re

_POSTGRES = re.compile(
    r"(?:postgres(?:ql)?://|(?:host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=)", re.I
)
"""How the address of a database begins: as a URL, or in libpq's own words."""

_MISTYPED = re.compile(r"postgres(?:ql)?(?::|//|\\)", re.I)
"""How one begins that was meant to be a URL: a file of that name would have the password in it."""


def in_postgres(where: str) -> bool:
    """Whether the name is the address of a PostgreSQL database."""
    return _POSTGRES.match(where) is not None


def is_mistyped(where: str) -> bool:
    """Whether it begins as the address of a database that is not written as one."""
    return not in_postgres(where) and _MISTYPED.match(where) is not None
