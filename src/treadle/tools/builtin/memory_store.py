"""An agent's notes: found by their words, bounded, each owner's apart.

`memory.py` makes tools of it, the command line shows and edits it, `memory_file.py` opens its file. Every call opens
the file and closes it again, so a store may be used from any thread, and any number of processes may use one file at
once. Whatever cannot be done is raised as a `ToolError`, whose message is for a model and for a person alike.
"""

import sqlite3
import time
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

import msgspec
from msgspec import Struct

from treadle.context.storable import storable_text
from treadle.journal.addresses import fault_in, in_postgres
from treadle.tools.builtin.memory_file import can_index, has_index, read, written
from treadle.tools.errors import BadTool, ToolError

MAX_TAGS, MAX_TAG, MAX_OWNER = 10, 50, 200
"""How many tags a note may have, and how many characters a tag and an owner's name."""

_COLUMNS = "id, text, tags, saved"
# What a query is cut to: a model may paste a whole page, and SQLite bounds an expression.
_MAX_WORDS, _MAX_WORD = 64, 100
_PREFIX_FROM = 3

Row = tuple[int, str, str, float]


class Note(Struct, frozen=True):
    """A note: its id, its text, its tags, and when it was written or last changed, in Unix seconds."""

    id: int
    text: str
    tags: tuple[str, ...]
    saved: float


class MemoryStore:
    """The notes in the SQLite file at `path`.

    The file is made by the first note, readable for its owner only, and its folder with it. What is forgotten is
    overwritten in it.

    Args:
        path: the file; on a local disk.
        max_notes: how many notes an owner may have.
        max_note: how many characters a note may have.
        max_total: how many characters an owner's notes may have together, tags included.
        full_text: whether an index of words is kept where SQLite can (FTS5), which ranks what is found. Without it
            every note is looked through.

    Raises:
        BadTool: `path` is ":memory:" or the address of a database, or a bound is not a number from 1.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        max_notes: int = 500,
        max_note: int = 2_000,
        max_total: int = 200_000,
        full_text: bool = True,
    ) -> None:
        if str(path) == ":memory:":
            raise BadTool("notes are kept across runs, so they need the path of a file; it was given ':memory:'")
        if in_postgres(str(path)) or fault_in(str(path)):
            raise BadTool("notes are kept in a file, so they need its path, and not the address of a database")
        for name, value in (("max_notes", max_notes), ("max_note", max_note), ("max_total", max_total)):
            if type(value) is not int or value < 1:
                raise BadTool(f"{name}={value!r}, but it is a number from 1")
        self.path = Path(path).expanduser().absolute()
        self.max_notes, self.max_note, self.max_total = max_notes, max_note, max_total
        self._full_text = full_text

    def add(self, owner: str, text: str, tags: Iterable[str] = ()) -> tuple[int, bool]:
        """Keeps a note; its id, and whether it is new. A text that the owner has already is not kept twice.

        Raises:
            ToolError: the text is empty or too long, the tags do not fit, or the memory is full.
        """
        owner, text, listed = _checked_owner(owner), self._checked(text), _encoded(tags)
        with written(self.path, self._full_text) as connection:
            known = connection.execute("SELECT id FROM notes WHERE owner = ? AND text = ?", (owner, text)).fetchone()
            if known:
                return int(known[0]), False
            self._require_room(connection, owner, 1, len(text) + len(listed))
            row = (owner, text, listed, time.time())
            added = connection.execute("INSERT INTO notes (owner, text, tags, saved) VALUES (?, ?, ?, ?)", row)
            number = int(added.lastrowid or 0)
            _reindex(connection, number)
            return number, True

    def edit(self, owner: str, id: int, text: str | None = None, tags: Iterable[str] | None = None) -> Note:
        """Changes a note's text, its tags, or both; None leaves them. Gives the note as it is then.

        Raises:
            ToolError: there is no such note, another one has that text, or the change does not fit the bounds.
        """
        owner = _checked_owner(owner)
        fresh = None if text is None else self._checked(text)
        encoded = None if tags is None else _encoded(tags)
        self._require_file(id)
        with written(self.path, self._full_text) as connection:
            before = _row(connection, owner, id)
            wanted, listed = before[1] if fresh is None else fresh, before[2] if encoded is None else encoded
            same = connection.execute(
                "SELECT id FROM notes WHERE owner = ? AND text = ? AND id <> ?", (owner, wanted, id)
            ).fetchone()
            if same:
                raise ToolError(f"note {same[0]} has that text already", argument="text", id=same[0])
            grown = len(wanted) + len(listed) - len(before[1]) - len(before[2])
            if grown > 0:
                self._require_room(connection, owner, 0, grown)
            change = (wanted, listed, time.time(), id)
            connection.execute("UPDATE notes SET text = ?, tags = ?, saved = ? WHERE id = ?", change)
            _reindex(connection, id, erase=True)
            return _note(_row(connection, owner, id))

    def forget(self, owner: str, *ids: int) -> None:
        """Removes notes.

        Raises:
            ToolError: the owner has not all of them; none is removed.
        """
        owner = _checked_owner(owner)
        self._require_file(*ids)
        with written(self.path, self._full_text) as connection:
            for number in dict.fromkeys(ids):
                _row(connection, owner, number)
                connection.execute("DELETE FROM notes WHERE id = ?", (number,))
                _reindex(connection, number, erase=True)

    def newest(self, owner: str, limit: int = -1) -> list[Note]:
        """The owner's notes, the last written first; -1 for all."""
        owner = _checked_owner(owner)
        with read(self.path) as connection:
            return [] if connection is None else [_note(row) for row in _newest(connection, owner, limit)]

    def search(self, owner: str, query: str, limit: int = 5) -> list[Note]:
        """The owner's notes with words of `query` in their text or tags, the best first; the newest without a word.

        First those that the index finds, by rank; then those in which a word stands anywhere, by how many do.
        """
        owner, words = _checked_owner(owner), _words(query)
        with read(self.path) as connection:
            if connection is None:
                return []
            if not words:
                return [_note(row) for row in _newest(connection, owner, limit)]
            found = _ranked(connection, owner, words, limit) if self._full_text and can_index(connection) else []
            if len(found) < limit:
                known = {row[0] for row in found}
                rest = [row for row in _newest(connection, owner, -1) if row[0] not in known]
                found += _containing(rest, words)[: limit - len(found)]
            return [_note(row) for row in found]

    def owners(self) -> dict[str, int]:
        """Who has notes, and how many."""
        with read(self.path) as connection:
            if connection is None:
                return {}
            return dict(connection.execute("SELECT owner, count(*) FROM notes GROUP BY owner ORDER BY owner"))

    def _require_file(self, *ids: int) -> None:
        """What changes notes that there are makes no file."""
        if ids and not self.path.exists():
            raise _no_note(ids[0], [])

    def _checked(self, text: str) -> str:
        text = _plain(text).strip()
        if not text:
            raise ToolError("a note needs a text", argument="text")
        if len(text) > self.max_note:
            raise ToolError(
                f"a note has at most {self.max_note} characters, and this one {len(text)}: say it in fewer words, or "
                "make several notes",
                argument="text",
                max_length=self.max_note,
            )
        return text

    def _require_room(self, connection: sqlite3.Connection, owner: str, notes: int, characters: int) -> None:
        count, total = connection.execute(
            "SELECT count(*), coalesce(sum(length(text) + length(tags)), 0) FROM notes WHERE owner = ?", (owner,)
        ).fetchone()
        if count + notes > self.max_notes:
            full, order, hint = f"{count} of at most {self.max_notes} notes", "saved, id", "oldest"
        elif total + characters > self.max_total:
            full, order, hint = f"{total} of at most {self.max_total} characters", "length(text) DESC, id", "longest"
        else:
            return
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM notes WHERE owner = ? ORDER BY {order} LIMIT 5",  # noqa: S608  (no outside text)
            (owner,),
        ).fetchall()
        shown = {hint: [{"id": row[0], "text": row[1][:80]} for row in rows]}
        first = f", say note {rows[0][0]}" if rows else ""
        raise ToolError(
            f"nothing was kept: the memory is full ({full}); forget what is needed least{first}, and try again", **shown
        )


def _checked_owner(owner: str) -> str:
    """The owner's name as it is kept.

    Raises:
        ToolError: it is no text, empty or too long.
    """
    if not isinstance(owner, str) or not owner.strip() or len(owner) > MAX_OWNER:
        raise ToolError(
            f"whose notes these are is a name of 1 to {MAX_OWNER} characters; the application gave {owner!r:.60}"
        )
    return _plain(owner)


def _plain(text: str) -> str:
    """`text` as SQLite can hold it: it ends a text at NUL, and takes no lone surrogates."""
    return storable_text(text).replace("\0", "\ufffd")


def _encoded(tags: Iterable[str]) -> str:
    kept = list(dict.fromkeys(tag for each in tags if (tag := _plain(each).strip())))
    if len(kept) > MAX_TAGS or any(len(tag) > MAX_TAG for tag in kept):
        raise ToolError(f"a note has at most {MAX_TAGS} tags of at most {MAX_TAG} characters", argument="tags")
    return msgspec.json.encode(kept).decode()


def _note(row: Row) -> Note:
    return Note(row[0], row[1], tuple(msgspec.json.decode(row[2], type=list[str])), row[3])


def _row(connection: sqlite3.Connection, owner: str, id: int) -> Row:
    known = 0 < id < 2**63
    row: Row | None = connection.execute(
        f"SELECT {_COLUMNS} FROM notes WHERE owner = ? AND id = ?",  # noqa: S608  (no outside text)
        (owner, id if known else 0),
    ).fetchone()
    if row is None:
        raise _no_note(id, [number for (number, *_) in _newest(connection, owner, 20)])
    return row


def _no_note(id: int, there: list[int]) -> ToolError:
    return ToolError(
        f"there is no note {id}; it may have been forgotten already", argument="id", given=id, available=there
    )


def _newest(connection: sqlite3.Connection, owner: str, limit: int) -> list[Row]:
    return connection.execute(
        f"SELECT {_COLUMNS} FROM notes WHERE owner = ? ORDER BY saved DESC, id DESC LIMIT ?",  # noqa: S608  (no outside text)
        (owner, limit),
    ).fetchall()


def _words(query: str) -> list[str]:
    """The words of a query, each once, as many as are looked for."""
    return list(dict.fromkeys(word[:_MAX_WORD].casefold() for word in _plain(query).split()))[:_MAX_WORDS]


def _ranked(connection: sqlite3.Connection, owner: str, words: Sequence[str], limit: int) -> list[Row]:
    """What the index finds for any of the words; long ones may also begin a word."""
    if not has_index(connection):
        return []
    # In quotes nothing is an operator of the query language, whatever a person or a model wrote.
    terms = ['"{}"{}'.format(word.replace('"', '""'), "*" if len(word) >= _PREFIX_FROM else "") for word in words]
    return connection.execute(
        """SELECT notes.id, notes.text, notes.tags, notes.saved FROM words JOIN notes ON notes.id = words.rowid
        WHERE words MATCH ? AND notes.owner = ? ORDER BY bm25(words), notes.saved DESC, notes.id DESC LIMIT ?""",
        (" OR ".join(terms), owner, limit),
    ).fetchall()


def _containing(rows: Iterable[Row], words: Sequence[str]) -> list[Row]:
    """The rows in which a word stands anywhere, those with more of them first: for scripts that put no spaces between
    words, signs that the index leaves out, and a SQLite without an index."""
    hits: list[tuple[int, Row]] = []
    for row in rows:
        inside = "\n".join((row[1], *msgspec.json.decode(row[2], type=list[str]))).casefold()
        count = sum(word in inside for word in words)
        if count:
            hits.append((count, row))
    return [row for _, row in sorted(hits, key=lambda hit: -hit[0])]


def _reindex(connection: sqlite3.Connection, id: int, *, erase: bool = False) -> None:
    """Puts the index right for one note; with `erase`, what it had of the note before is not left in the file."""
    if not has_index(connection):
        return
    if erase:
        connection.execute("DELETE FROM words WHERE rowid = ?", (id,))
    connection.execute("INSERT INTO words (rowid, text, tags) SELECT id, text, tags FROM notes WHERE id = ?", (id,))
    if erase:
        # The index only marks entries as deleted, until its parts are merged.
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
