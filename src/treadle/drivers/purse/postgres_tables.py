"""The tables of a ledger in PostgreSQL, the statements over them, and the two transactions that a budget makes there.

They stand beside a journal's, in the same schema or one of their own. Names are stored as bytes (`bytea`), so that they
are what they were whatever the database's encoding, and sorted as Python sorts them; amounts as exact numbers.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, TypeVar

from psycopg.sql import Identifier

from treadle.drivers.purse.claims import Claim
from treadle.drivers.purse.rows import BudgetUnavailable, Entry, Look, Place, Row, Sums
from treadle.journal.postgres.connection import BEGIN, COMMIT, END_STUCK, Connection, Layout

T = TypeVar("T")

VERSION: Final = 1
"""The version of the tables."""

LOCKED: Final = 0.05
"""Seconds for which a transaction waits for whoever is at the same purse, and an event loop may stand still with it."""

SILENT: Final = 10.0
"""Seconds without a word from the server after which its connection is given up."""

_AMOUNTS = """claimed_tokens numeric NOT NULL, claimed_usd numeric NOT NULL,
    used_tokens numeric NOT NULL, used_usd numeric NOT NULL"""

# Half of each page is left free, so that a row is changed in its place.
_TABLES = (
    "CREATE SCHEMA IF NOT EXISTS {}",
    "CREATE TABLE {}.budget_about (version integer NOT NULL)",
    f"""CREATE TABLE {{}}.budget_purses (purse bytea NOT NULL, key bytea NOT NULL, {_AMOUNTS},
        PRIMARY KEY (purse, key)) WITH (fillfactor = 50)""",
    f"""CREATE TABLE {{}}.budget_runs (purse bytea NOT NULL, run bytea NOT NULL, key bytea NOT NULL,
        base_tokens numeric NOT NULL, base_usd numeric NOT NULL, {_AMOUNTS},
        PRIMARY KEY (purse, run, key)) WITH (fillfactor = 50)""",
    """CREATE TABLE {}.budget_told (purse bytea NOT NULL, key bytea NOT NULL, mark bytea NOT NULL, teller text NOT NULL,
        PRIMARY KEY (purse, key, mark))""",
)

_CLAIMED_AND_USED = "claimed_tokens, claimed_usd, used_tokens, used_usd"

_ROW = f"base_tokens, base_usd, {_CLAIMED_AND_USED}"

ROLLBACK: Final = b"ROLLBACK"


class Statements:
    """The statements over the tables in one schema."""

    def __init__(self, schema: str) -> None:
        self._schema = Identifier(schema).as_string()
        self.layout = Layout(
            what="budget",
            error=_unavailable,
            names=frozenset({"budget_purses", "budget_runs", "budget_told"}),
            about="budget_about",
            known=VERSION,
            tables=tuple(map(self._made, _TABLES)),
            version=self._made("SELECT version FROM {}.budget_about"),
            set_version=self._made("INSERT INTO {}.budget_about VALUES (%s)"),
            end_stuck=self._made(END_STUCK.replace("*tables*", "'{}.budget_purses'")),
            patience=LOCKED,
            silence=SILENT,
        )
        self.look = self._made(
            "SELECT it.claimed_tokens, it.claimed_usd, it.used_tokens, it.used_usd, own.base_tokens, own.base_usd, "
            "own.claimed_tokens, own.claimed_usd, own.used_tokens, own.used_usd FROM (VALUES (%b, %b, %b)) "
            "AS wanted (purse, key, run) LEFT JOIN {}.budget_purses AS it USING (purse, key) "
            "LEFT JOIN {}.budget_runs AS own USING (purse, key, run)"
        )
        # A statement for each: what is read once the purse is locked is as whoever had it before has left it.
        self.make_purse = self._made("INSERT INTO {}.budget_purses VALUES (%b, %b, 0, 0, 0, 0) ON CONFLICT DO NOTHING")
        self.lock_purse = self._made(
            "SELECT *amounts* FROM {}.budget_purses WHERE purse = %b AND key = %b FOR NO KEY UPDATE"
        )
        self.row = self._made("SELECT *row* FROM {}.budget_runs WHERE purse = %b AND key = %b AND run = %b")
        self.told = self._made(
            "SELECT mark FROM {}.budget_told WHERE purse = %b AND key = %b AND mark = ANY(%b) AND teller <> %s"
        )
        self.set_row = self._made(
            "INSERT INTO {}.budget_runs (purse, key, run, *row*) VALUES (%b, %b, %b, %s, %s, %s, %s, %s, %s) "
            "ON CONFLICT (purse, run, key) DO UPDATE SET (*row*) = (EXCLUDED.base_tokens, EXCLUDED.base_usd, "
            "EXCLUDED.claimed_tokens, EXCLUDED.claimed_usd, EXCLUDED.used_tokens, EXCLUDED.used_usd)"
        )
        self.set_sums = self._made(
            "UPDATE {}.budget_purses SET (*amounts*) = (%s, %s, %s, %s) WHERE purse = %b AND key = %b"
        )
        self.tell = self._made(
            "INSERT INTO {}.budget_told SELECT %b, %b, mark, %s FROM unnest(%b::bytea[]) AS mark "
            "ON CONFLICT (purse, key, mark) DO UPDATE SET teller = EXCLUDED.teller"
        )
        self.rows = self._made("SELECT key, *row* FROM {}.budget_runs WHERE purse = %b AND run = %b ORDER BY key")
        self.rename = self._made(
            "UPDATE {}.budget_runs AS it SET run = %b WHERE purse = %b AND run = %b AND NOT EXISTS "
            "(SELECT FROM {}.budget_runs AS one WHERE one.purse = it.purse AND one.key = it.key AND one.run = %b)"
        )
        self.key_of = self._made(
            "SELECT key FROM {}.budget_runs WHERE purse = %b AND (run = %b OR (run > %b AND run < %b)) LIMIT 1"
        )
        self.keys = self._made("SELECT key FROM {}.budget_purses WHERE purse = %b ORDER BY key")
        self.set_aside = self._made(
            "SELECT DISTINCT run FROM {}.budget_runs WHERE purse = %b "
            "AND (claimed_tokens, claimed_usd) <> (used_tokens, used_usd) ORDER BY run"
        )
        self.identity = b"SELECT pg_postmaster_start_time()::text, current_database()"

    def _made(self, text: str) -> bytes:
        for sign, word in (("{}", self._schema), ("*amounts*", _CLAIMED_AND_USED), ("*row*", _ROW)):
            text = text.replace(sign, word)
        return text.encode()


def look(connection: Connection, say: Statements, place: Place) -> Look:
    """What stands at `place`, in one round trip."""
    found = connection.execute(say.look, stored(*place)).fetchone() or (None,) * 10
    return Look(Sums(*_claims(found[:4])), _row(found[4:]))


def change(
    connection: Connection,
    say: Statements,
    place: Place,
    decide: Callable[[Look], tuple[T, Entry | None]],
    marks: Sequence[str],
    teller: str,
) -> T:
    """See `Store.change`; in two round trips, the purse locked from the first to the end of the second.

    So what a transaction sets whose answer was lost is there before the next can look, or never will be.

    Args:
        connection: where; say: the statements.
        place, decide, marks: as there.
        teller: tells this change from others, and not from an earlier try of it, of which nobody heard what came of it.
    """
    purse, key, _ = names = stored(*place)
    with connection.pipeline():
        connection.execute(BEGIN)
        connection.execute(say.make_purse, (purse, key))
        sums = connection.execute(say.lock_purse, (purse, key))
        row = connection.execute(say.row, names)
        told = connection.execute(say.told, (purse, key, [*stored(*marks)], teller)) if marks else None
    known = () if told is None else [mark.decode() for (mark,) in told.fetchall()]
    answer, entry = decide(Look(Sums(*_claims(sums.fetchall()[0])), _row(row.fetchone()), known))
    if entry is None:
        connection.execute(ROLLBACK)
        return answer
    with connection.pipeline():
        connection.execute(say.set_row, (*names, *_amounts(*entry.row)))
        connection.execute(say.set_sums, (*_amounts(*entry.sums), purse, key))
        if entry.told:
            connection.execute(say.tell, (purse, key, teller, [*stored(*entry.told)]))
        connection.execute(COMMIT)
    return answer


def rows(connection: Connection, say: Statements, purse: str, run: str) -> list[tuple[str, Row]]:
    """See `Store.rows`."""
    found = connection.execute(say.rows, stored(purse, run)).fetchall()
    return [(named(key), Row(*_claims(amounts))) for key, *amounts in found]


def _unavailable(message: str, where: str) -> BudgetUnavailable:
    return BudgetUnavailable(message, where=where)


def named(stored: bytes) -> str:
    """A name as it was before it was stored."""
    return stored.decode(errors="surrogatepass")


def stored(*names: str) -> tuple[bytes, ...]:
    """Names as they are stored."""
    return tuple(name.encode(errors="surrogatepass") for name in names)


def _amounts(*claims: Claim) -> list[int | Decimal]:
    return [amount for claim in claims for amount in (claim.tokens, claim.usd)]


def _claims(found: Sequence[Any]) -> list[Claim]:
    """Pairs of tokens and dollars as they are stored; nothing where nothing is."""
    return [
        Claim(tokens=int(tokens or 0), usd=Decimal(usd or 0))
        for tokens, usd in zip(found[::2], found[1::2], strict=True)
    ]


def _row(found: Sequence[Any] | None) -> Row | None:
    return None if found is None or found[0] is None else Row(*_claims(found))
