"""The titles of conversations in a journal in PostgreSQL; see `titles.py`.

A schema of before there were titles has no table of them until the first is kept.
"""

from collections.abc import Collection

from treadle.journal.postgres.connection import Connection
from treadle.journal.postgres.statements import Statements, key
from treadle.journal.titles import MOST


def entitle(connection: Connection, statements: Statements, user: str, conversation: str, title: str | None) -> None:
    """See `Titles.entitle`."""
    if not _is_there(connection, statements):
        if title is None:
            return
        connection.execute(statements.make_titles)
    if title is None:
        connection.execute(statements.untitle, (key(user), key(conversation)))
    else:
        connection.execute(statements.entitle, (key(user), key(conversation), key(title[:MOST])))


def titles(connection: Connection, statements: Statements, user: str, conversations: Collection[str]) -> dict[str, str]:
    """See `Titles.titles`."""
    if not conversations or not _is_there(connection, statements):
        return {}
    rows = connection.execute(statements.titles, (key(user), [*map(key, conversations)]), binary=True)
    return {bytes(name).decode(errors="replace"): bytes(title).decode(errors="replace") for name, title in rows}


def _is_there(connection: Connection, statements: Statements) -> bool:
    return connection.execute(statements.has_titles, (statements.schema,)).fetchone() is not None
