"""docs/journal-format.md is true: it has every event and field of the code, every table and column, and no other."""

import io
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import msgspec.inspect
import pytest

from treadle.journal import JournalDamaged, MemoryJournal, SqliteJournal, import_runs
from treadle.journal.chain import beginning, link, seal
from treadle.journal.database import APPLICATION_ID, SCHEMA, VERSION
from treadle.journal.lines import VERSION as EXPORT
from treadle.journal.payloads import LARGE
from treadle.kernel.events import FORMAT, Event, NudgeGiven, RunStarted, encode_event

pytestmark = pytest.mark.anyio

TEXT = (Path(__file__).parents[2] / "docs" / "journal-format.md").read_text("utf-8")
SECTIONS = {
    head: body for head, body in re.findall(r"^#{2,3} (.+?)\n(.*?)(?=^#{2,3} |\Z)", TEXT, re.MULTILINE | re.DOTALL)
}


def structs() -> dict[str, msgspec.inspect.StructType]:
    """Every kind of object that an event may hold, by name."""
    found: dict[str, msgspec.inspect.StructType] = {}
    todo: list[Any] = list(get_args(Event))
    while todo:
        one = msgspec.inspect.type_info(todo.pop())
        if isinstance(one, msgspec.inspect.StructType) and one.cls.__name__ not in found:
            found[one.cls.__name__] = one
            todo += [cls for field in one.fields for cls in inside(field.type)]
    return found


def inside(kind: Any) -> Iterator[type]:
    """The structs in a type."""
    if isinstance(kind, msgspec.inspect.StructType):
        yield kind.cls
    for name in ("types", "item_types"):
        for one in getattr(kind, name, None) or ():
            yield from inside(one)
    for name in ("item_type", "key_type", "value_type"):
        if (one := getattr(kind, name, None)) is not None:
            yield from inside(one)


def described(section: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \| \S", SECTIONS[section], re.MULTILINE)


STRUCTS = structs()


@pytest.mark.parametrize("name", STRUCTS)
def test_the_page_has_every_event_and_value_with_all_its_fields(name: str) -> None:
    one = STRUCTS[name]
    assert sorted(described(name)) == sorted(field.encode_name for field in one.fields)
    if one.tag_field is not None:
        assert f'`"{one.tag_field}": "{one.tag}"`' in SECTIONS[name]


def test_the_page_has_no_event_that_there_is_not() -> None:
    tables = {head for head in SECTIONS if described(head)}
    assert {head for head in tables if not head.startswith("Table ")} == set(STRUCTS)


def test_the_page_has_every_table_with_its_columns() -> None:
    file = sqlite3.connect(":memory:")
    for statement in SCHEMA:
        file.execute(statement)
    names = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = {name: [row[1] for row in file.execute(f"PRAGMA table_info({name})")] for name in names}
    file.close()
    assert columns == {head[6:]: described(head) for head in SECTIONS if head.startswith("Table ")}


def test_the_page_says_which_versions_there_are() -> None:
    for what, version in (("the events' JSON", FORMAT), ("the SQLite file", VERSION), ("an export", EXPORT)):
        assert f"| {what} | {version} |" in TEXT
    assert f"0x{APPLICATION_ID:X}" in TEXT
    assert f"more than {LARGE:,} bytes" in TEXT


async def test_the_export_on_the_page_is_one() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", SECTIONS["Exports"], re.DOTALL)
    journal = MemoryJournal()
    assert await import_runs(journal, io.BytesIO(block.encode())) == ["run-1"]
    assert len(await journal.read("run-1")) == 2


def spoil(path: Path, seq: int, change: Callable[[bytes], bytes]) -> None:
    """Puts another form of event `seq` into a file, with hashes and seal as if treadle had written it."""
    with sqlite3.connect(path) as other:
        head = beginning("r")
        rows = other.execute("SELECT seq, at, body FROM events ORDER BY seq").fetchall()
        for number, at, text in rows:
            body = change(text.encode()) if number == seq else text.encode()
            head = link(head, at, body)
            other.execute("UPDATE events SET hash = ?, body = ? WHERE seq = ?", (head, body.decode(), number))
        (info,) = other.execute("SELECT info FROM runs").fetchone()
        other.execute("UPDATE runs SET head = ?, seal = ?", (head, seal(head, info.encode())))
    other.close()


LATER = {
    "an event of an unknown kind": (1, lambda body: body.replace(b"nudge_given", b"nudge_taken"), "later treadle"),
    "a higher format": (0, lambda body: body.replace(b'"format":1', b'"format":2'), "it has form 2.*update"),
    "a value of an unknown kind": (1, lambda body: body.replace(b'"a"', b'{"said":"a"}'), "later treadle"),
}


@pytest.mark.parametrize("what", LATER)
async def test_what_is_newer_is_refused(path: Path, started: Callable[..., RunStarted], what: str) -> None:
    seq, change, why = LATER[what]
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started("r"), NudgeGiven(text="a")])
        spoil(path, seq, change)
        with pytest.raises(JournalDamaged, match=f"event {seq} of run 'r' .*{why}"):
            await journal.read("r")


async def test_a_field_that_is_not_known_is_passed_over(path: Path, started: Callable[..., RunStarted]) -> None:
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started("r"), NudgeGiven(text="a")])
        spoil(path, 1, lambda body: body.replace(b'"a"', b'"a","loudly":true'))
        assert await journal.read("r") == [started("r"), NudgeGiven(text="a")]


def test_a_body_has_no_blank_between_its_parts(started: Callable[..., RunStarted]) -> None:
    body = encode_event(started("r", question="a b"))
    assert b" " not in re.sub(rb'"[^"]*"', b"", body)
