"""Payloads: the large texts in events, each stored once, whichever events and runs have it.

An event's stored form is JSON. A string in it of more than `LARGE` bytes stands in the table `payloads` under its hash,
and a reference in its place in the event. The reference is a string too, with a blank before it: the encoder writes no
blanks between a form's parts, and a quotation mark within a string has a backslash before it; so no text, whatever it
says, is taken for a reference. The event's own hash covers its references, each of which is the hash of its payload.
"""

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

from treadle.journal.batch import Batch
from treadle.journal.chain import SIZE

LARGE = 4096
"""Bytes of a string's JSON form, above which it is a payload."""

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS payloads (hash BLOB NOT NULL PRIMARY KEY, data BLOB NOT NULL)",
    """CREATE TABLE IF NOT EXISTS payload_uses (
        run_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        hash BLOB NOT NULL,
        PRIMARY KEY (run_id, seq, hash)
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS payload_uses_by_hash ON payload_uses (hash)",
)
"""`payload_uses` says which events refer to a payload; it is derived from them, so that one that nobody needs goes."""

_STRING = re.compile(rb'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"', re.DOTALL)
_SIGN = b' "@payload:'
_REFERENCE = re.compile(_SIGN + rb'([0-9a-f]{%d})"' % (2 * SIZE))

# What is there is as it should be, unless it was damaged; then it is put right by whoever has it.
_PUT = """INSERT INTO payloads (hash, data) VALUES (?, ?)
    ON CONFLICT (hash) DO UPDATE SET data = excluded.data WHERE CAST(data AS BLOB) IS NOT excluded.data"""


class Payload(NamedTuple):
    """A large string in its JSON form, and the hash of that."""

    hash: bytes
    data: bytes


def split(body: bytes) -> tuple[bytes, Sequence[Payload]]:
    """An event's stored form with references in the place of its large strings, and these."""
    if len(body) <= LARGE:
        return body, ()
    found: list[Payload] = []

    def taken(match: "re.Match[bytes]") -> bytes:
        text = match.group()
        if len(text) <= LARGE:
            return text
        found.append(Payload(_hash(text), text))
        return _SIGN + found[-1].hash.hex().encode() + b'"'

    short = _STRING.sub(taken, body)
    return short, found


def taken_out(batch: Batch, seq: int) -> tuple[Batch, Sequence[tuple[int, Payload]]]:
    """`batch`, which begins at number `seq`, with references in the place of its large strings, and these by events."""
    if max(map(len, batch.bodies), default=0) <= LARGE:
        return batch, ()
    bodies: list[bytes] = []
    found: list[tuple[int, Payload]] = []
    for number, body in enumerate(batch.bodies, seq):
        short, payloads = split(body)
        bodies.append(short)
        found += [(number, one) for one in payloads]
    return Batch(batch.events, bodies), found


def whole(body: bytes, fetch: Callable[[bytes], bytes | None]) -> bytes:
    """An event's form with its payloads in the place of the references to them.

    Args:
        body: the form as it is stored.
        fetch: gives the payload that is stored under a hash; None if it is missing.

    Raises:
        ValueError: one of them is missing, or not what was stored.
    """
    return _REFERENCE.sub(partial(_fetched, fetch), body) if _SIGN in body else body


def references(body: bytes) -> frozenset[bytes]:
    """The hashes of the payloads that an event refers to."""
    return frozenset(map(_of_hex, _REFERENCE.findall(body))) if _SIGN in body else frozenset()


def put(connection: sqlite3.Connection, run_id: str, payloads: Sequence[tuple[int, Payload]]) -> None:
    """Store the payloads of some events, as far as they are not there; in a transaction of the caller's."""
    connection.executemany(_PUT, [one for _, one in payloads])
    _use(connection, [(run_id, seq, one.hash) for seq, one in payloads])


def let_go(connection: sqlite3.Connection, run_id: str | bytes) -> None:
    """Forget what the run refers to, and remove the payloads that nobody else does; likewise."""
    connection.execute(
        """DELETE FROM payloads WHERE hash IN (SELECT hash FROM payload_uses WHERE run_id = :run_id)
        AND NOT EXISTS (SELECT 1 FROM payload_uses WHERE hash = payloads.hash AND run_id <> :run_id)""",
        {"run_id": run_id},
    )
    connection.execute("DELETE FROM payload_uses WHERE run_id = ?", (run_id,))


def go_over(connection: sqlite3.Connection, run_id: str | bytes, before: int, heir: str) -> None:
    """What the run's events before number `before` refer to, run `heir` does now; likewise."""
    connection.execute("UPDATE payload_uses SET run_id = ? WHERE run_id = ? AND seq < ?", (heir, run_id, before))


def put_right(connection: sqlite3.Connection, run_id: str) -> None:
    """Tell anew which payloads the events of a whole run refer to, where that was altered; likewise."""
    rows = connection.execute(
        "SELECT seq, CAST(body AS BLOB) FROM events WHERE run_id = ? AND instr(body, ?)", (run_id, _SIGN.decode())
    )
    needed = {seq: found for seq, body in rows if (found := references(body))}
    stored: dict[object, set[bytes]] = {}
    for seq, hash in connection.execute("SELECT seq, hash FROM payload_uses WHERE run_id = ?", (run_id,)):
        stored.setdefault(seq, set()).add(hash)
    if stored != needed:
        connection.execute("DELETE FROM payload_uses WHERE run_id = ?", (run_id,))
        _use(connection, [(run_id, seq, one) for seq, hashes in needed.items() for one in hashes])


def remove_unused(connection: sqlite3.Connection) -> None:
    """Remove the payloads that no event refers to; likewise."""
    connection.execute("DELETE FROM payloads WHERE hash NOT IN (SELECT hash FROM payload_uses)")


def _use(connection: sqlite3.Connection, rows: Iterable[tuple[str, int, bytes]]) -> None:
    connection.executemany("INSERT OR IGNORE INTO payload_uses (run_id, seq, hash) VALUES (?, ?, ?)", rows)


def fetched(connection: sqlite3.Connection, hash: bytes) -> bytes | None:
    """The payload that is stored under `hash`; None if it is missing."""
    row = connection.execute("SELECT CAST(data AS BLOB) FROM payloads WHERE hash = ?", (hash,)).fetchone()
    return None if row is None else bytes(row[0])


def _fetched(fetch: Callable[[bytes], bytes | None], match: "re.Match[bytes]") -> bytes:
    name = match.group(1)
    data = fetch(_of_hex(name))
    if data is None:
        raise ValueError(f"its payload {name.decode()} is missing")
    if _hash(data) != _of_hex(name):
        raise ValueError(f"its payload {name.decode()} was altered")
    return data


def _of_hex(name: bytes) -> bytes:
    return bytes.fromhex(name.decode())


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=SIZE).digest()
