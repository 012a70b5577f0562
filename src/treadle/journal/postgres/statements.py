"""What is said to PostgreSQL: the tables of a journal, and the statements over them.

Texts are stored as bytes (`bytea`), so that they are what they were whatever the database's encoding, also where they
have a NUL in them, which PostgreSQL's texts cannot have; and run ids are sorted as Python sorts them.
"""

from psycopg.sql import Identifier

from treadle.journal.errors import JournalUnavailable
from treadle.journal.info import RunInfo, searched
from treadle.journal.postgres.connection import BEGIN, COMMIT, END_STUCK, Layout

VERSION = 1
"""The version of the tables. A schema of a higher one is refused and not touched."""

_TITLES = """CREATE TABLE IF NOT EXISTS {}.titles (
    "user" bytea NOT NULL, conversation bytea NOT NULL, title bytea NOT NULL,
    PRIMARY KEY ("user", conversation)
)"""
"""A schema of before there were titles lacks it; then it is made when the first is kept."""

# Half of each page of `runs` is left free, so that a line is changed in its place.
SCHEMA = (
    "CREATE SCHEMA IF NOT EXISTS {}",
    "CREATE TABLE {}.about (version integer NOT NULL)",
    """CREATE TABLE {}.events (
        run_id bytea NOT NULL,
        seq bigint NOT NULL,
        at double precision NOT NULL,
        hash bytea NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (run_id, seq)
    )""",
    """CREATE TABLE {}.runs (
        run_id bytea PRIMARY KEY,
        started_at double precision NOT NULL,
        head bytea NOT NULL,
        seal bytea NOT NULL,
        info bytea NOT NULL,
        agent bytea NOT NULL,
        model bytea NOT NULL,
        status text NOT NULL,
        searched bytea NOT NULL
    ) WITH (fillfactor = 50)""",
    "CREATE INDEX runs_by_start ON {}.runs (started_at, run_id)",
    "CREATE INDEX runs_by_agent ON {}.runs (agent, started_at, run_id)",
    "CREATE INDEX runs_by_model ON {}.runs (model, started_at, run_id)",
    "CREATE INDEX runs_by_status ON {}.runs (status, started_at, run_id)",
    "CREATE TABLE {}.payloads (hash bytea PRIMARY KEY, data bytea NOT NULL)",
    """CREATE TABLE {}.payload_uses (
        run_id bytea NOT NULL,
        seq bigint NOT NULL,
        hash bytea NOT NULL,
        PRIMARY KEY (run_id, seq, hash)
    )""",
    "CREATE INDEX payload_uses_by_hash ON {}.payload_uses (hash)",
    """CREATE TABLE {}.forks (
        run_id bytea PRIMARY KEY,
        origin bytea NOT NULL,
        source bytea,
        seq bigint NOT NULL
    )""",
    "CREATE INDEX forks_by_source ON {}.forks (source) WHERE source IS NOT NULL",
    """CREATE TABLE {}.leases (
        run_id bytea PRIMARY KEY,
        name text NOT NULL,
        holder bytea NOT NULL,
        beat_at double precision NOT NULL,
        until double precision NOT NULL
    ) WITH (fillfactor = 50)""",
    _TITLES,
)


_LINE = "run_id, started_at, head, seal, info"

_COLUMNS = f"{_LINE}, agent, model, status, searched"

_LINES = """unnest(%b::bytea[], %b::double precision[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[],
    %t::text[], %b::bytea[])"""

_NOW = "extract(epoch FROM clock_timestamp())::double precision"


class Statements:
    """The statements over the tables of one schema."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self._schema = Identifier(schema).as_string()
        self.channel = f"{schema}_events"
        self.listen = f"LISTEN {Identifier(self.channel).as_string()}".encode()
        self.layout = Layout(
            what="journal",
            error=_unavailable,
            names=frozenset({"runs", "events"}),
            about="about",
            known=VERSION,
            tables=tuple(map(self._made, SCHEMA)),
            version=self._made("SELECT version FROM {}.about"),
            set_version=self._made("INSERT INTO {}.about VALUES (%s)"),
            end_stuck=self._made(END_STUCK.replace("*tables*", "'{}.runs', '{}.leases'")),
        )
        self._write_runs()
        self._read_runs()
        self._share_rows()
        self._store_payloads()
        self._keep_leases()
        self.begin = BEGIN
        self.look = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        self.commit = COMMIT
        self.rollback = b"ROLLBACK"
        self.transaction_id = b"SELECT pg_current_xact_id()::xid::text"
        self.notify = b"SELECT pg_notify(%s, %s)"

    def _made(self, text: str) -> bytes:
        words = {"{}": self._schema, "*line*": _LINE, "*columns*": _COLUMNS, "*now*": _NOW}
        for sign, word in words.items():
            text = text.replace(sign, word)
        return text.encode()

    def _write_runs(self) -> None:
        self.line = self._made("SELECT *line* FROM {}.runs WHERE run_id = %b")
        self.lock_lines = self._made("SELECT *line* FROM {}.runs WHERE run_id = ANY(%b) ORDER BY run_id FOR UPDATE")
        self.without_line = self._made(
            "SELECT wanted.run_id FROM unnest(%b::bytea[]) AS wanted (run_id) "
            "WHERE NOT EXISTS (SELECT FROM {}.runs AS it WHERE it.run_id = wanted.run_id) "
            "AND EXISTS (SELECT FROM {}.events AS it WHERE it.run_id = wanted.run_id)"
        )
        # The rows that one transaction wrote, and no other, though it may have written the same.
        self.written_by = self._made(
            "SELECT it.run_id, it.seq FROM {}.events AS it "
            "JOIN unnest(%b::bytea[], %b::bigint[], %b::bytea[]) AS mine (run_id, seq, hash) "
            "ON it.run_id = mine.run_id AND it.seq = mine.seq AND it.hash = mine.hash WHERE it.xmin::text = %s"
        )
        self.add_events = self._made(
            "INSERT INTO {}.events (run_id, seq, at, hash, body) SELECT * FROM "
            "unnest(%b::bytea[], %b::bigint[], %b::double precision[], %b::bytea[], %b::bytea[])"
        )
        self.add_lines = self._made(
            f"INSERT INTO {{}}.runs (*columns*) SELECT * FROM {_LINES} ORDER BY 1"  # noqa: S608 - of the words above
        )
        self.change_lines = self._made(
            "UPDATE {}.runs AS it SET head = new.head, seal = new.seal, info = new.info, status = new.status "
            "FROM unnest(%b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[], %t::text[]) "
            "AS new (run_id, head, seal, info, status) WHERE it.run_id = new.run_id"
        )
        self.delete_events = self._made("DELETE FROM {}.events WHERE run_id = %b")
        self.delete_line = self._made("DELETE FROM {}.runs WHERE run_id = %b")

    def _read_runs(self) -> None:
        self.page = self._made("SELECT *line* FROM {}.runs *where* ORDER BY started_at DESC, run_id DESC LIMIT %b")
        self.found_by = self._made("SELECT agent, model, status, searched FROM {}.runs WHERE run_id = %b")
        self.newest = self._made("SELECT run_id FROM {}.runs ORDER BY started_at DESC LIMIT 1000")
        self.all_runs = self._made("SELECT run_id FROM {}.runs UNION SELECT run_id FROM {}.events")
        self.part = self._made(
            "SELECT seq, at, hash, body FROM {}.events WHERE run_id = %b AND seq >= %b AND seq < %b ORDER BY seq"
        )
        self.ends = self._made(
            "SELECT it.run_id, it.seq, it.at, it.hash, CASE WHEN it.seq IN (0, wanted.last) THEN it.body END "
            "FROM unnest(%b::bytea[], %b::bigint[]) AS wanted (run_id, last) JOIN {}.events AS it "
            "ON it.run_id = wanted.run_id "
            "AND it.seq = ANY(ARRAY[0, wanted.last - 1, wanted.last, wanted.last + 1])"
        )
        self.hash = self._made("SELECT hash FROM {}.events WHERE run_id = %b AND seq = %b")
        self.one = self._made("SELECT hash, body FROM {}.events WHERE run_id = %b AND seq = %b")
        self.any_event = self._made("SELECT 1 FROM {}.events WHERE run_id = %b LIMIT 1")

    def _share_rows(self) -> None:
        # Whose rows are whose changes one at a time.
        self.hold_forks = b"SELECT pg_advisory_xact_lock(hashtext(%s))"
        self.fork = self._made("SELECT origin, source, seq FROM {}.forks WHERE run_id = %b")
        self.forks = self._made("SELECT run_id, seq FROM {}.forks WHERE source = %b ORDER BY seq DESC, run_id")
        self.add_fork = self._made("INSERT INTO {}.forks (run_id, origin, source, seq) VALUES (%b, %b, %b, %b)")
        self.delete_fork = self._made("DELETE FROM {}.forks WHERE run_id = %b")
        self.give_events = self._made("UPDATE {}.events SET run_id = %b WHERE run_id = %b AND seq < %b")
        self.give_uses = self._made("UPDATE {}.payload_uses SET run_id = %b WHERE run_id = %b AND seq < %b")
        self.change_fork = self._made("UPDATE {}.forks SET source = %b, seq = %b WHERE run_id = %b")
        self.change_sources = self._made("UPDATE {}.forks SET source = %b WHERE source = %b")

    def _store_payloads(self) -> None:
        self.payloads = self._made("SELECT hash, data FROM {}.payloads WHERE hash = ANY(%b)")
        # Held until the end of the transaction, so that nobody removes what is to be referred to.
        self.hold_payloads = self._made("SELECT hash FROM {}.payloads WHERE hash = ANY(%b) ORDER BY hash FOR KEY SHARE")
        self.add_payloads = self._made(
            "INSERT INTO {}.payloads (hash, data) SELECT * FROM unnest(%b::bytea[], %b::bytea[]) ORDER BY 1 "
            "ON CONFLICT (hash) DO UPDATE SET hash = excluded.hash"
        )
        self.add_uses = self._made(
            "INSERT INTO {}.payload_uses (run_id, seq, hash) "
            "SELECT * FROM unnest(%b::bytea[], %b::bigint[], %b::bytea[]) ON CONFLICT DO NOTHING"
        )
        self.uses = self._made("SELECT seq, hash FROM {}.payload_uses WHERE run_id = %b")
        self.delete_uses = self._made("DELETE FROM {}.payload_uses WHERE run_id = %b")
        # First those that might go are held, and then those are removed to which, seen after that, nobody refers.
        self.hold_used = self._made(
            "SELECT hash FROM {}.payloads WHERE hash IN (SELECT hash FROM {}.payload_uses WHERE run_id = %b) "
            "ORDER BY hash FOR UPDATE"
        )
        self.delete_used = self._made(
            "DELETE FROM {}.payloads AS it WHERE it.hash IN (SELECT hash FROM {}.payload_uses WHERE run_id = %b) "
            "AND NOT EXISTS (SELECT FROM {}.payload_uses AS use WHERE use.hash = it.hash AND use.run_id <> %b)"
        )
        self.hold_unused = self._made(
            "SELECT it.hash FROM {}.payloads AS it "
            "WHERE NOT EXISTS (SELECT FROM {}.payload_uses AS use WHERE use.hash = it.hash) FOR UPDATE SKIP LOCKED"
        )
        self.delete_unused = self._made(
            "DELETE FROM {}.payloads AS it WHERE it.hash = ANY(%b) "
            "AND NOT EXISTS (SELECT FROM {}.payload_uses AS use WHERE use.hash = it.hash)"
        )

    def _keep_leases(self) -> None:
        # The times of leases are those of the server's clock, which all machines share. An append holds the leases that
        # it is made under until it is stored, so that none is taken over in the middle.
        self.lock_leases = self._made(
            "SELECT run_id, name FROM {}.leases WHERE run_id = ANY(%b) ORDER BY run_id FOR SHARE"
        )
        self.leases = self._made("SELECT run_id, holder, beat_at, until, *now* FROM {}.leases WHERE run_id = ANY(%b)")
        self.hold = self._made(
            "INSERT INTO {}.leases AS it VALUES (%b, %s, %b, *now*, *now* + %s) ON CONFLICT (run_id) DO UPDATE "
            "SET name = EXCLUDED.name, holder = EXCLUDED.holder, beat_at = EXCLUDED.beat_at, until = EXCLUDED.until "
            "WHERE it.name = ANY(%s::text[]) OR %s"
        )
        self.beat = self._made(
            "UPDATE {}.leases AS it SET beat_at = *now*, until = *now* + %s FROM (SELECT run_id FROM {}.leases "
            "WHERE run_id = ANY(%b) AND name = %s ORDER BY run_id FOR UPDATE) AS mine WHERE it.run_id = mine.run_id "
            "RETURNING it.run_id"
        )
        self.let_go = self._made("DELETE FROM {}.leases WHERE run_id = %b AND name = %s")
        self.make_titles = self._made(_TITLES)
        self.has_titles = b"SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'titles'"
        self.titles = self._made(
            'SELECT conversation, title FROM {}.titles WHERE "user" = %b AND conversation = ANY(%b)'
        )
        self.entitle = self._made(
            'INSERT INTO {}.titles VALUES (%b, %b, %b) ON CONFLICT ("user", conversation) '
            "DO UPDATE SET title = excluded.title"
        )
        self.untitle = self._made('DELETE FROM {}.titles WHERE "user" = %b AND conversation = %b')
        self.end_leases = self._made("DELETE FROM {}.leases WHERE run_id = ANY(%b)")


def _unavailable(message: str, where: str) -> JournalUnavailable:
    return JournalUnavailable(message, where=where)


def key(run_id: str) -> bytes:
    """The run id as it is stored; one that is no Unicode text is one that no row has."""
    return run_id.encode(errors="surrogatepass")


def found_by(info: RunInfo) -> tuple[bytes, bytes, str, bytes]:
    """What a list looks for in the run's line: its agent, its model, its status, its texts."""
    return info.agent.encode(), info.model.encode(), info.status, searched(info).encode()
