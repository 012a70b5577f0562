"""`treadle memory`: notes listed, found, written, changed and removed in the file that the skill uses."""

import json
import stat
from typing import Any

from treadle.tools.builtin.memory_store import MemoryStore


def notes(treadle: Any, *options: str) -> list[Any]:
    listed: list[Any] = json.loads(treadle("memory", "list", "--json", *options).out)
    return listed


def test_notes_are_written_shown_found_changed_and_removed(treadle: Any) -> None:
    assert treadle("memory", "add", "likes tea", "--tag", "drinks").out == "saved as note 1\n"
    again = treadle("memory", "add", "likes tea", "--json")
    assert json.loads(again.out) == {"id": 1, "saved": False}
    treadle("memory", "add", "lives in Bonn\nnear the Rhine")
    lines = treadle("memory", "list").out.splitlines()
    assert lines[0].split() == ["note", "saved", "tags", "text"]
    assert [line.split()[0] for line in lines[1:]] == ["2", "1"]
    assert lines[1].endswith("lives in Bonn near the Rhine")
    assert "drinks  likes tea" in lines[2]
    found = json.loads(treadle("memory", "search", "Bonn", "--json").out)
    assert [(one["id"], one["text"], one["tags"]) for one in found] == [(2, "lives in Bonn\nnear the Rhine", [])]
    assert treadle("memory", "edit", "1", "likes coffee").out == "note 1 is changed\n"
    assert json.loads(treadle("memory", "edit", "1", "--tag", "", "--json").out)["tags"] == []
    assert [one["id"] for one in notes(treadle)] == [1, 2]
    assert notes(treadle)[0]["text"] == "likes coffee"
    assert treadle("memory", "forget", "1", "9").code == 2
    assert len(notes(treadle)) == 2
    assert treadle("memory", "forget", "2", "1").out == "note 2 is forgotten\nnote 1 is forgotten\n"
    assert notes(treadle) == []


def test_the_file_is_in_the_data_folder_or_where_it_is_named(treadle: Any) -> None:
    empty = treadle("memory", "list")
    assert (empty.code, empty.out) == (0, "")
    assert str(treadle.folder / "data" / "treadle" / "memory.db") in empty.err
    assert not (treadle.folder / "data").exists()
    treadle("memory", "add", "here")
    assert stat.S_IMODE((treadle.folder / "data" / "treadle" / "memory.db").stat().st_mode) == 0o600
    treadle("memory", "add", "there", TREADLE_MEMORY=str(treadle.folder / "there.db"))
    assert [one["text"] for one in notes(treadle, "--file", str(treadle.folder / "there.db"))] == ["there"]
    assert [one["text"] for one in notes(treadle)] == ["here"]


def test_it_shows_what_an_agent_wrote_and_each_owner_apart(treadle: Any) -> None:
    path = treadle.folder / "shared.db"
    MemoryStore(path).add("ada", "\x1b[31mred\x1b[0m alert")
    where = ("--file", str(path))
    none = treadle("memory", "list", *where)
    assert (none.code, none.out) == (0, "")
    assert "ada (1)" in none.err
    assert treadle("memory", "list", "--owner", "ada", *where).out.splitlines()[1].endswith("red alert")
    assert treadle("memory", "forget", "1", *where).code == 2
    assert len(notes(treadle, "--owner", "ada", *where)) == 1


def test_any_words_may_be_looked_for(treadle: Any) -> None:
    treadle("memory", "add", "likes tea")
    for query in ('"', "tea AND", "text:*", "NEAR(", "-- -x"):
        done = treadle("memory", "search", "--", query)
        assert done.code == 0, done.err
    assert "no note of 'me'" in treadle("memory", "search", "coffee").err
    assert json.loads(treadle("memory", "search", "coffee", "--json").out) == []


def test_what_cannot_be_done_is_told(treadle: Any) -> None:
    (treadle.folder / "text.db").write_text("no database" * 1000, encoding="utf-8")
    for arguments, says in (
        (("edit", "1"), "say what is to change"),
        (("edit", "1", "x"), "no note 1"),
        (("forget", "one"), "is no whole number"),
        (("add", "  "), "needs a text"),
        (("add", "x" * 2001), "2000 characters"),
        (("add", "x", "--owner", ""), "whose notes"),
        (("list", "--file", "text.db"), "no SQLite database"),
        (("lsit",), "No such command"),
    ):
        done = treadle("memory", *arguments)
        assert done.code == 2, arguments
        assert says in done.err
        assert done.out == ""
