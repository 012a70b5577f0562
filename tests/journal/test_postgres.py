"""The journal in PostgreSQL, beyond what every journal promises."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from postgres_server import Server

from treadle import Agent, Budget, BudgetUnavailable
from treadle.journal import JournalConflict, JournalDamaged, JournalUnavailable, PostgresJournal, UnknownRun
from treadle.journal.holder import this_process
from treadle.journal.postgres import connection
from treadle.journal.postgres import journal as postgres_journal
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, NudgeGiven, RunForked, RunStarted, ToolFinished
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

Started = Callable[..., RunStarted]
Note = Callable[[str], Event]

OURS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'treadle' AND pid <> pg_backend_pid()"


@pytest.fixture
async def journal(server: Server, schema: str, anyio_backend: str) -> AsyncIterator[PostgresJournal]:
    async with PostgresJournal(server.dsn(), schema=schema) as made:
        yield made


async def test_making_one_does_nothing_and_closing_leaves_nothing(
    server: Server, schema: str, started: Started, finished: Event
) -> None:
    journal = PostgresJournal(server.dsn(), schema=schema)
    assert server.execute(OURS) == [(0,)]
    await journal.append("r", 0, [started(), finished])
    assert [event async for event in journal.watch("r")] == [started(), finished]
    assert 1 <= server.execute(OURS)[0][0] <= 3
    await journal.close()
    assert not [one for one in threading.enumerate() if one.name.startswith("treadle-journal")]
    for _ in range(100):
        if server.execute(OURS) == [(0,)]:
            break
        await asyncio.sleep(0.02)
    assert server.execute(OURS) == [(0,)]


async def test_one_that_is_forgotten_ends_its_threads(server: Server, schema: str, started: Started) -> None:
    journal = PostgresJournal(server.dsn(), schema=schema)
    await journal.append("r", 0, [started()])
    await anext(watcher := journal.watch("r"))
    await watcher.aclose()  # type: ignore[attr-defined]
    threads = [one for one in threading.enumerate() if one.name.startswith("treadle-journal")]
    assert len(threads) >= 3
    del journal, watcher
    for thread in threads:
        thread.join(timeout=30)
    assert not [one for one in threads if one.is_alive()]


async def test_rows_can_be_read_by_any_program(
    server: Server, schema: str, journal: PostgresJournal, started: Started
) -> None:
    await journal.append("run-1", 0, [started("run-1", question="how many?")])
    events = (
        f"SELECT convert_from(run_id, 'UTF8'), seq, convert_from(body, 'UTF8')::json ->> 'event' FROM {schema}.events"
    )
    assert server.execute(events) == [("run-1", 0, "run_started")]
    lines = f"SELECT convert_from(info, 'UTF8')::json ->> 'question', status FROM {schema}.runs"
    assert server.execute(lines) == [("how many?", "running")]


@pytest.mark.parametrize("schema", ["", "A", "a b", "pg_mine", 'a"; DROP SCHEMA public', "ä", "1a", "a" * 51, "a-b"])
def test_a_schema_is_a_plain_name(schema: str) -> None:
    with pytest.raises(Misuse, match="a schema is a name"):
        PostgresJournal("postgresql://localhost/x", schema=schema)


@pytest.mark.parametrize("dsn", ["hello", "postgresql+psycopg://a:hunter2@h/d", "host=h pasword=hunter2", "file.db"])
def test_what_names_no_database_is_refused_without_being_told(dsn: str) -> None:
    with pytest.raises(Misuse, match="is not the address of a PostgreSQL database") as caught:
        PostgresJournal(dsn)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_schema_that_commands_take_in_an_address_is_told_of() -> None:
    with pytest.raises(Misuse, match="give schema='NAME' beside the address"):
        PostgresJournal("postgresql://a@h/d?schema=agents&sslmode=require")


def test_its_name_has_no_password() -> None:
    journal = PostgresJournal("postgresql://me:hunter2@db.example:5433/runs?sslmode=require")
    assert journal.where == "postgresql://me@db.example:5433/runs, schema treadle"
    assert "hunter2" not in repr(journal)
    assert PostgresJournal("host=db.example dbname=runs password=hunter2").where.startswith("postgresql://db.example/")


async def test_of_many_that_come_first_one_makes_the_tables(server: Server, schema: str, started: Started) -> None:
    journals = [PostgresJournal(server.dsn(), schema=schema) for _ in range(8)]
    await asyncio.gather(*[one.append(f"r{n}", 0, [started(f"r{n}")]) for n, one in enumerate(journals)])
    assert len(await journals[0].list()) == 8
    for one in journals:
        await one.close()
    assert server.execute(f"SELECT version FROM {schema}.about") == [(1,)]


async def refused(journal: PostgresJournal, started: Started) -> str:
    """What all calls say alike."""
    said: set[str] = set()
    async with journal:
        for call in (journal.append("r", 0, [started()]), journal.read("r"), journal.list(), journal.delete("r")):
            with pytest.raises(JournalUnavailable) as caught:
                await call
            said.add(str(caught.value))
            assert caught.value.where == journal.where
        with pytest.raises(JournalUnavailable):
            await journal.check()
    assert len(said) == 1
    return said.pop()


async def test_tables_of_a_later_version_are_refused_and_left_alone(
    server: Server, schema: str, started: Started
) -> None:
    async with PostgresJournal(server.dsn(), schema=schema) as journal:
        await journal.append("r", 0, [started()])
        server.execute(f"UPDATE {schema}.about SET version = 99")
        # Who has them open while a later treadle brings them up writes nothing more.
        assert "was written by a later treadle" in await refused(journal, started)
    said = await refused(PostgresJournal(server.dsn(), schema=schema), started)
    assert "was written by a later treadle (its tables have version 99; this one knows 1). Update treadle" in said
    assert server.execute(f"SELECT count(*) FROM {schema}.events") == [(1,)]


@pytest.mark.parametrize("spoil", ["DELETE FROM {}.about", "UPDATE {}.about SET version = 0"])
async def test_tables_without_a_version_are_damaged(server: Server, schema: str, started: Started, spoil: str) -> None:
    async with PostgresJournal(server.dsn(), schema=schema) as journal:
        await journal.list()
    server.execute(spoil.replace("{}", schema))
    assert "is damaged" in await refused(PostgresJournal(server.dsn(), schema=schema), started)


async def test_the_schema_of_another_application_is_refused(server: Server, schema: str, started: Started) -> None:
    server.execute(f"CREATE SCHEMA {schema}")
    server.execute(f"CREATE TABLE {schema}.runs (mine integer)")
    said = await refused(PostgresJournal(server.dsn(), schema=schema), started)
    assert "is another application's" in said
    assert "Name another schema" in said


async def test_a_schema_that_others_use_too_is_no_hindrance(server: Server, schema: str, started: Started) -> None:
    server.execute(f"CREATE SCHEMA {schema}")
    server.execute(f"CREATE TABLE {schema}.mine (it integer)")
    async with PostgresJournal(server.dsn(), schema=schema) as journal:
        await journal.append("r", 0, [started()])
        assert [line.run_id for line in await journal.list()] == ["r"]


@pytest.mark.parametrize(
    ("dsn", "words"),
    [
        ("port=1", "cannot be reached: nothing answers there. Start the server"),
        ("password=hunter2", "refuses this user or password"),
        ("user=nobody_here password=hunter2", "refuses this user or password"),
        ("dbname=elsewhere", "cannot be reached .*elsewhere.* does not exist"),
        ("host=/tmp/nowhere", "cannot be reached: no server runs on this machine"),
        ("host=no.such.host.invalid connect_timeout=5", "is on a host that is not known"),
    ],
)
async def test_a_server_that_cannot_be_had_is_told_with_what_to_do(
    server: Server, started: Started, dsn: str, words: str
) -> None:
    journal = PostgresJournal(f"{server.dsn()} {dsn}")
    async with journal:
        with pytest.raises(JournalUnavailable, match=words) as caught:
            await journal.append("r", 0, [started()])
    assert server.password not in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__cause__ is not None


async def test_a_user_who_may_have_no_more_connections_is_told_so(server: Server, schema: str) -> None:
    server.execute(f"CREATE ROLE few_{schema} LOGIN PASSWORD 'few' CONNECTION LIMIT 0")
    try:
        journal = PostgresJournal(f"{server.dsn('few')} user=few_{schema}", schema=schema)
        with pytest.raises(JournalUnavailable, match=r"no more connections\. Raise that limit"):
            await journal.list()
        await journal.close()
    finally:
        server.execute(f"DROP ROLE few_{schema}")


async def test_a_user_without_rights_is_told_which(server: Server, schema: str, started: Started) -> None:
    server.execute(f"DROP ROLE IF EXISTS guest_{schema}")
    server.execute(f"CREATE ROLE guest_{schema} LOGIN PASSWORD 'guest'")
    guest = f"{server.dsn('guest')} user=guest_{schema}"
    said = await refused(PostgresJournal(guest, schema=schema), started)
    assert "may not be used like this by this user (permission denied for database postgres)" in said
    async with PostgresJournal(server.dsn(), schema=schema) as owner:
        await owner.append("r", 0, [started()])
        server.execute(f"GRANT USAGE ON SCHEMA {schema} TO guest_{schema}")
        server.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO guest_{schema}")
        async with PostgresJournal(guest, schema=schema) as reader:
            assert await reader.read("r") == [started()]
            assert len(await reader.list()) == 1
            with pytest.raises(JournalUnavailable, match="permission denied for table"):
                await reader.append("s", 0, [started("s")])
            with pytest.raises(JournalUnavailable, match="permission denied for table"):
                await reader.check()
        server.execute(f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO guest_{schema}")
        async with PostgresJournal(guest, schema=schema) as runner:
            await runner.append("s", 0, [started("s")])
            await runner.check()
            await runner.entitle("ada", "c", "Plans")
            assert await runner.titles("ada", ["c"]) == {"c": "Plans"}
    server.execute(f"DROP OWNED BY guest_{schema}")
    server.execute(f"DROP ROLE guest_{schema}")


async def test_a_schema_of_before_there_were_titles_keeps_them(server: Server, schema: str, started: Started) -> None:
    async with PostgresJournal(server.dsn(), schema=schema) as journal:
        await journal.append("r", 0, [started()])
    server.execute(f"DROP TABLE {schema}.titles")
    async with PostgresJournal(server.dsn(), schema=schema) as journal:
        assert await journal.titles("ada", ["c"]) == {}
        await journal.entitle("ada", "c", "Plans")
        assert await journal.titles("ada", ["c"]) == {"c": "Plans"}


async def test_tables_that_were_dropped_under_it_are_missed(
    server: Server, schema: str, journal: PostgresJournal, started: Started, note: Note
) -> None:
    await journal.append("r", 0, [started()])
    server.execute(f"DROP SCHEMA {schema} CASCADE")
    with pytest.raises(JournalUnavailable, match="has lost its tables"):
        await journal.append("r", 1, [note("a")])


async def test_tables_that_were_dropped_under_it_are_not_made_anew(
    server: Server, schema: str, journal: PostgresJournal, started: Started, note: Note
) -> None:
    """A run of the same name, or request, was begun a second time, and a run under way was told to be elsewhere."""
    await journal.append("r", 0, [started()])
    server.execute(f"DROP SCHEMA {schema} CASCADE")
    for _ in range(2):
        for asked in (
            lambda: journal.append("r", 1, [note("a")]),
            lambda: journal.append("r", 0, [started()]),
            lambda: journal.read("r"),
            lambda: journal.list(),
        ):
            with pytest.raises(JournalUnavailable, match="has lost its tables"):
                await asked()
    async with PostgresJournal(server.dsn(), schema=schema) as another:
        assert await another.list() == []


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_any_encoding_of_the_database_will_do(
    server: Server, schema: str, started: Started, note: Note, encoding: str
) -> None:
    name = f"{encoding.lower()}_{schema}"
    server.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")
    text = "ä\x00\U0001f600 Ω"
    async with PostgresJournal(f"{server.dsn()} dbname={name}") as journal:
        await journal.append(text, 0, [started(text, question=text, agent=text), note(text)])
        assert await journal.read(text, 1) == [note(text)]
        assert [line.question for line in await journal.list()] == [text]
        with pytest.raises(UnknownRun):
            await journal.read("Ω")
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_commits_are_on_the_disk_whatever_the_database_says(server: Server, schema: str) -> None:
    async with PostgresJournal(f"{server.dsn()} options='-c synchronous_commit=off'", schema=schema) as journal:
        ask = lambda connection: connection.execute("SHOW synchronous_commit").fetchone()[0]  # noqa: E731
        assert await asyncio.wrap_future(journal._workers.read(ask)) == "on"


async def test_a_database_that_only_reads_by_default_is_written_all_the_same(
    server: Server, schema: str, started: Started
) -> None:
    odd = "-c default_transaction_read_only=on -c default_transaction_isolation=serializable -c search_path=nowhere"
    async with PostgresJournal(f"{server.dsn()} options='{odd}'", schema=schema) as journal:
        await journal.append("r", 0, [started()])
        assert len(await journal.list()) == 1
        assert await journal.hold("r", mine := this_process("mine"), 60.0) is None
        assert await asyncio.wrap_future(journal.beat(["r"], mine, 60.0)) == []
        await journal.entitle("u", "c", "tea")
        assert await journal.titles("u", ["c"]) == {"c": "tea"}


async def test_a_group_larger_than_a_transaction_is_stored_in_several(
    journal: PostgresJournal, started: Started, note: Note
) -> None:
    texts = [f"{n}" * 3_000_000 for n in range(9)]
    await asyncio.gather(*[journal.append(f"r{n}", 0, [started(f"r{n}"), note(text)]) for n, text in enumerate(texts)])
    for n, text in enumerate(texts):
        assert await journal.read(f"r{n}", 1) == [note(text)]


async def test_one_append_that_the_server_refuses_harms_none_of_its_neighbours(
    server: Server, schema: str, journal: PostgresJournal, started: Started
) -> None:
    await journal.list()
    server.execute(f"ALTER TABLE {schema}.events ADD CHECK (position('hunter2' in convert_from(body, 'UTF8')) = 0)")
    runs = [started(f"r{n}", question="hunter2" if n == 3 else "why?") for n in range(6)]
    outcomes = await asyncio.gather(*[journal.append(one.run_id, 0, [one]) for one in runs], return_exceptions=True)
    assert [n for n, one in enumerate(outcomes) if one is not None] == [3]
    assert isinstance(outcomes[3], JournalUnavailable)
    assert "violates check constraint" in str(outcomes[3])
    assert "hunter2" not in str(outcomes[3])
    assert len(await journal.list()) == 5


async def test_a_watcher_is_told_by_the_server(
    server: Server, schema: str, journal: PostgresJournal, started: Started, note: Note, finished: Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(postgres_journal, "POLL", 1000.0)
    await journal.append("r", 0, [started()])
    async with PostgresJournal(server.dsn(), schema=schema) as other:
        async with asyncio.timeout(60):
            watchers = [other.watch("r") for _ in range(3)]
            for watcher in watchers:
                assert await anext(watcher) == started()
            await journal.append("r", 1, [note("a")])
            for watcher in watchers:
                assert await anext(watcher) == note("a")
            await journal.append("r", 2, [finished])
            for watcher in watchers:
                assert [event async for event in watcher] == [finished]


async def test_a_payload_that_one_deletes_while_another_stores_it_is_there(
    server: Server, schema: str, journal: PostgresJournal, started: Started, note: Note
) -> None:
    text = "0123456789" * 1000
    async with PostgresJournal(server.dsn(), schema=schema) as other:
        await journal.append("r0", 0, [started("r0"), note(text)])
        for n in range(40):
            new = f"r{n + 1}"
            await asyncio.gather(journal.delete(f"r{n}"), other.append(new, 0, [started(new), note(text)]))
            assert await other.read(new, 1) == [note(text)]
        assert server.execute(f"SELECT count(*) FROM {schema}.payloads") == [(1,)]
        await other.delete("r40")
        assert server.execute(f"SELECT count(*) FROM {schema}.payloads") == [(0,)]
        await journal.check()


async def test_a_fork_shares_its_rows_and_is_whole_whoever_deletes_what_at_the_same_time(
    server: Server, schema: str, journal: PostgresJournal, started: Started, note: Note
) -> None:
    text, count = "x" * 6000, f"SELECT count(*) FROM {schema}.events"
    async with PostgresJournal(server.dsn(), schema=schema) as other:
        for n in range(15):
            shared = [started("r"), note(text), note("b")]
            await journal.append("r", 0, shared)
            await journal.fork("r", 2, "f", [RunForked("f", at=5.0)])
            assert server.execute(count) == [(4,)]
            changes = [journal.delete("r"), other.fork("f", 2, "g", [RunForked("g", at=6.0)])]
            changes += [other.fork("r", 3, "h", [RunForked("h", at=7.0)]), journal.append("f", 3, [note("c")])]
            if n % 2:
                changes.append(other.delete("f"))
            outcomes = await asyncio.gather(*changes, return_exceptions=True)
            assert outcomes[0] is True
            assert {type(one) for one in outcomes} <= {bool, type(None), UnknownRun, JournalConflict}
            await journal.check()
            for name, kept, first in (("f", 2, 5.0), ("g", 2, 6.0), ("h", 3, 7.0)):
                try:
                    events = await journal.read(name)
                except UnknownRun:
                    continue
                assert events[: kept + 1] == [*shared[:kept], RunForked(name, at=first)]
                await other.delete(name)
            assert server.execute(count) == [(0,)]
            assert server.execute(f"SELECT * FROM {schema}.payloads") == []
            assert server.execute(f"SELECT * FROM {schema}.forks") == []


COUNT = 6
BAD = "run_id = 'bad'"
ALTERED = {
    "a word": (3, [f"UPDATE {{}}.events SET body = overlay(body placing 'b' from 30) WHERE {BAD} AND seq = 3"]),
    "its time": (3, [f"UPDATE {{}}.events SET at = at + 1 WHERE {BAD} AND seq = 3"]),
    "its hash": (3, [f"UPDATE {{}}.events SET hash = '' WHERE {BAD} AND seq = 3"]),
    "no JSON": (2, [f"UPDATE {{}}.events SET body = '{{{{' WHERE {BAD} AND seq = 2"]),
    "the first": (0, [f"DELETE FROM {{}}.events WHERE {BAD} AND seq = 0"]),
    "one in the middle": (4, [f"DELETE FROM {{}}.events WHERE {BAD} AND seq = 4"]),
    "the last": (5, [f"DELETE FROM {{}}.events WHERE {BAD} AND seq = 5"]),
    "all": (0, [f"DELETE FROM {{}}.events WHERE {BAD}"]),
    "one too many": (
        6,
        [f"INSERT INTO {{}}.events SELECT run_id, 6, at, hash, body FROM {{}}.events WHERE {BAD} AND seq = 5"],
    ),
    "another run's": (
        2,
        [
            f"DELETE FROM {{}}.events WHERE {BAD} AND seq = 2",
            "INSERT INTO {}.events SELECT 'bad', seq, at, hash, body FROM {}.events WHERE run_id = 'new' AND seq = 2",
        ],
    ),
    "its line": (0, [f"DELETE FROM {{}}.runs WHERE {BAD}"]),
    "its payload": (1, ["UPDATE {}.payloads SET data = 'x'"]),
    "its payload is gone": (1, ["DELETE FROM {}.payloads"]),
}


def events(run_id: str, started: Started) -> list[Event]:
    large = "x" * 5000 if run_id == "bad" else "small"
    return [started(run_id), *(NudgeGiven(at=float(n), text=f"{n} of {run_id} {large}") for n in range(1, COUNT))]


@pytest.mark.parametrize("what", ALTERED)
async def test_what_was_altered_is_named_and_the_other_runs_are_as_they_were(
    server: Server, schema: str, journal: PostgresJournal, started: Started, what: str
) -> None:
    for run_id in ("old", "bad", "new"):
        await journal.append(run_id, 0, events(run_id, started))
    number, statements = ALTERED[what]
    for statement in statements:
        server.execute(statement.replace("{{", "[").replace("{}", schema))
    with pytest.raises(JournalDamaged, match=f"event {number} of run 'bad'"):
        await journal.read("bad")
    with pytest.raises(JournalDamaged) as found:
        await journal.check()
    assert [(one.run_id, one.event) for one in found.value.damage] == [("bad", number)]
    for name in ("old", "new"):
        assert await journal.read(name) == events(name, started)
        await journal.append(name, COUNT, [NudgeGiven(text="on")])
    listed = {line.run_id: line for line in await journal.list()}
    assert {line.events for name, line in listed.items() if name != "bad"} == {COUNT + 1}
    if what in ("the first", "the last", "all", "one too many"):
        assert listed["bad"].status == "damaged"
    assert await journal.delete("bad") is True
    await journal.check()


LINES = [
    "UPDATE {}.runs SET info = replace(convert_from(info, 'UTF8'), 'why', 'how')::bytea",
    "UPDATE {}.runs SET info = ''",
    "UPDATE {}.runs SET head = ''",
    "UPDATE {}.runs SET seal = 'x'",
    "UPDATE {}.runs SET started_at = 9e9",
    "UPDATE {}.runs SET started_at = 'NaN'",
    "UPDATE {}.runs SET status = 'finished'",
    "UPDATE {}.runs SET agent = 'x', searched = ''",
    "DELETE FROM {}.payload_uses",
    "INSERT INTO {}.payload_uses SELECT run_id, 99, hash FROM {}.payload_uses WHERE seq = 1",
]


@pytest.mark.parametrize("statement", LINES)
async def test_what_is_derived_is_told_anew_from_the_events(
    server: Server, schema: str, journal: PostgresJournal, started: Started, statement: str
) -> None:
    await journal.append("bad", 0, events("bad", started))
    tables = [f"SELECT * FROM {schema}.runs", f"SELECT * FROM {schema}.payload_uses"]
    before, lines = [server.execute(table) for table in tables], await journal.list()
    server.execute(statement.replace("{}", schema))
    assert [server.execute(table) for table in tables] != before
    assert await journal.read("bad") == events("bad", started)
    assert await journal.list() == lines
    await journal.check()
    assert [server.execute(table) for table in tables] == before
    await journal.append("bad", COUNT, [NudgeGiven(text="on")])


async def test_an_altered_line_does_not_keep_its_run_from_going_on(
    server: Server, schema: str, journal: PostgresJournal, started: Started, note: Note
) -> None:
    await journal.append("r", 0, [started()])
    server.execute(f"UPDATE {schema}.runs SET info = ''")
    await journal.append("r", 1, [note("a")])
    assert (await journal.list())[0].events == 2
    await journal.check()


async def test_what_is_put_one_after_the_other_is_stored_in_that_order(
    journal: PostgresJournal, started: Started, note: Note
) -> None:
    futures = [journal.put("r", 0, [started()])]
    futures += [journal.put("r", n, [note(str(n))]) for n in (1, 2, 4, 5, 3)]
    found = await asyncio.gather(*map(asyncio.wrap_future, futures), return_exceptions=True)
    assert [type(one) for one in found] == [type(None)] * 3 + [JournalConflict] * 2 + [type(None)]
    assert await journal.read("r", 1) == [note("1"), note("2"), note("3")]


@pytest.mark.parametrize("number", [0, 2])
async def test_a_value_that_the_server_cannot_give_harms_the_run_that_it_belongs_to(
    server: Server, schema: str, started: Started, note: Note, number: int
) -> None:
    """The table's large values lie in a file of their own, which is overwritten."""
    chance = random.Random(1)
    words = [chance.randbytes(1500).hex() for _ in range(4)]
    large: list[Event] = [started("bad"), note("a"), note("b")]
    large[number] = ToolFinished(at=2.0, step=0, call_id="c", content="x", app=words)
    if number == 0:
        large[0] = started("bad", tools=[], agent="", question="why?", hooks=tuple(words))
    async with PostgresJournal(server.dsn(), schema=schema) as journal:
        await journal.append("old", 0, [started("old"), note("a")])
        await journal.append("bad", 0, large)
        await journal.append("new", 0, [started("new", at=5.0), note("a")])
        lines = await journal.list()
    server.execute("CHECKPOINT")
    asked = "SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE oid = %s::regclass"
    file = Path(server.data) / server.execute(asked, (f"{schema}.events",))[0][0]
    server.stop()
    assert file.stat().st_size > 0
    file.write_bytes(bytes(file.stat().st_size))
    server.start()
    async with PostgresJournal(server.dsn(), schema=schema) as journal:
        with pytest.raises(JournalDamaged, match=f"event {number} of run 'bad' .*is damaged there"):
            await journal.read("bad")
        listed = await journal.list()
        assert [line.run_id for line in listed if line.status == "damaged"] == ["bad"]
        assert listed == [found if found.run_id == "bad" else line for line, found in zip(lines, listed, strict=True)]
        assert await journal.read("new", 1) == [note("a")]
        with pytest.raises(JournalDamaged):
            await journal.check()
        await journal.append("new", 2, [note("b")])
        assert await journal.delete("bad") is True
        await journal.check()


async def test_of_a_standby_it_is_told_that_it_can_only_be_read(
    server: Server, schema: str, started: Started, note: Note
) -> None:
    budget = Budget(tokens=1000, path=f"postgresql://owner:{server.password}@127.0.0.1:{server.port}/postgres")
    async with PostgresJournal(server.dsn(), schema=schema) as journal:
        await journal.append("r", 0, [started()])
        assert budget.spent().tokens == 0
        server.stop()
        server.start_as_standby()
        try:
            with pytest.raises(JournalUnavailable, match=r"can only be read \(.* Name the server that is written to"):
                await journal.append("r", 1, [note("a")])
            with pytest.raises(BudgetUnavailable, match=r"can only be read \(.* Name the server that is written to"):
                await Agent(ScriptedModel(["done"]), budget=budget).run("go")
            assert await journal.read("r") == [started()]
        finally:
            server.promote()
        await journal.append("r", 1, [note("a")])
        assert (await Agent(ScriptedModel(["done"]), budget=budget).run("go")).finished
    budget.close()


async def test_who_lists_beside_a_lock_is_not_told_to_resume_a_run_of_nobody(
    server: Server, schema: str, journal: PostgresJournal, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "STUCK", 0.0)
    await journal.append("r", 0, [started()])
    with psycopg.connect(server.dsn()) as other, ThreadPoolExecutor(1) as pool:
        other.execute(f'LOCK TABLE "{schema}".runs IN ACCESS EXCLUSIVE MODE'.encode())
        # Who only holds a transaction open is made to let go of it.
        at_work = pool.submit(other.execute, "SELECT pg_sleep(60)")
        async with PostgresJournal(server.dsn(), schema=schema) as beside:
            with pytest.raises(JournalUnavailable, match=r"locked.*, and try again\. A run that it stopped can be"):
                await beside.list()
        other.cancel_safe()
        assert isinstance(at_work.exception(), psycopg.errors.QueryCanceled)
