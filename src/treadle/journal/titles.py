"""Titles: what people call their conversations. They stand beside the runs, as no event says them: anybody may rename.

`MemoryJournal`, `SqliteJournal` and `PostgresJournal` keep titles.
"""

import sqlite3
from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS titles (
        user TEXT NOT NULL,
        conversation TEXT NOT NULL,
        title TEXT NOT NULL,
        PRIMARY KEY (user, conversation)
    ) WITHOUT ROWID""",
)

MOST = 200
"""Characters of a title that are kept."""


@runtime_checkable
class Titles(Protocol):
    """A journal that keeps the titles of conversations, apart by user."""

    async def entitle(self, user: str, conversation: str, title: str | None) -> None:
        """Keep the title of a user's conversation, its first 200 characters; None removes it.

        Raises:
            JournalUnavailable: the journal cannot be written.
        """

    async def titles(self, user: str, conversations: Collection[str]) -> Mapping[str, str]:
        """The titles of those of a user's conversations that have one.

        Raises:
            JournalUnavailable: the journal cannot be read.
        """


def entitle(connection: sqlite3.Connection, user: str, conversation: str, title: str | None) -> None:
    """See `Titles.entitle`; in a SQLite file, in a transaction of the caller's."""
    if title is None:
        connection.execute("DELETE FROM titles WHERE user = ? AND conversation = ?", (user, conversation))
    else:
        connection.execute(
            "INSERT OR REPLACE INTO titles (user, conversation, title) VALUES (?, ?, ?)",
            (user, conversation, title[:MOST]),
        )


def titles(connection: sqlite3.Connection, user: str, conversations: Collection[str]) -> dict[str, str]:
    """See `Titles.titles`; likewise."""
    found = {}
    for one in conversations:
        row = connection.execute("SELECT title FROM titles WHERE user = ? AND conversation = ?", (user, one)).fetchone()
        if row is not None:
            found[one] = row[0]
    return found
