"""`treadle memory`: the notes that agents keep across runs, shown and edited by the person they are about."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treadle.cli.table import print_table
from treadle.cli.terminal import clean, note, print_json

if TYPE_CHECKING:
    from treadle.tools.builtin.memory_store import MemoryStore, Note

OWNER = "me"
"""Whose notes the command line means when none is named."""


def memory_path(named: str | None = None) -> Path:
    """The file of notes: `named`, else TREADLE_MEMORY, else `memory.db` in the user's data folder."""
    path = named or os.environ.get("TREADLE_MEMORY", "").strip()
    if path:
        return Path(path).expanduser()
    from platformdirs import user_data_path

    return user_data_path("treadle", appauthor=False) / "memory.db"


_file = click.option("--file", metavar="FILE", type=click.Path(), help="The file of notes (TREADLE_MEMORY).")
_owner = click.option("--owner", default=OWNER, show_default=True, metavar="NAME", help="Whose notes.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_tags = click.option("--tag", "tags", multiple=True, metavar="WORD", help="A word to find it by too; repeatable.")


def _with_store(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command --file, --owner and --json; it is called with the open store in place of the file."""

    @wraps(command)
    def opened(file: str | None, **given: Any) -> Any:
        from treadle.tools.builtin.memory_store import MemoryStore

        with _told():
            return command(store=MemoryStore(memory_path(file)), **given)

    decorated: Callable[..., Any] = opened
    for option in (_json, _owner, _file):
        decorated = option(decorated)
    return decorated


@contextmanager
def _told() -> Iterator[None]:
    """What the store refuses is the caller's to put right."""
    from treadle.tools import BadTool, ToolError

    try:
        yield
    except (BadTool, ToolError) as error:
        raise click.UsageError(clean(str(error))) from error


@click.group(short_help="Show and edit the notes that agents keep.")
def memory() -> None:
    """Show and edit the notes that agents with the memory skill keep across runs."""


@memory.command("list", short_help="List the notes, the last written first.")
@_with_store
def list_notes(store: "MemoryStore", owner: str, as_json: bool) -> int:
    """List the notes, the last written first."""
    _show(store, owner, store.newest(owner), as_json)
    return 0


@memory.command(short_help="Find notes by their words, the best first.")
@click.argument("query", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many at most.")
@_with_store
def search(store: "MemoryStore", query: tuple[str, ...], limit: int, owner: str, as_json: bool) -> int:
    """Find notes with words of QUERY, the best first, as the agent's recall does."""
    found = store.search(owner, " ".join(query), limit)
    if not found and not as_json and store.newest(owner, 1):
        note(f"no note of {owner!r} has any of these words")
    else:
        _show(store, owner, found, as_json)
    return 0


@memory.command(short_help="Write a note.")
@click.argument("text")
@_tags
@_with_store
def add(store: "MemoryStore", text: str, tags: tuple[str, ...], owner: str, as_json: bool) -> int:
    """Write the note TEXT."""
    number, is_new = store.add(owner, text, tags)
    if as_json:
        print_json({"id": number, "saved": is_new})
    else:
        click.echo(f"saved as note {number}" if is_new else f"this text is note {number} already")
    return 0


@memory.command(short_help="Change a note's text or tags.")
@click.argument("id", type=int)
@click.argument("text", required=False)
@_tags
@_with_store
def edit(store: "MemoryStore", id: int, text: str | None, tags: tuple[str, ...], owner: str, as_json: bool) -> int:
    """Give note ID the text TEXT. With --tag its tags are replaced; --tag "" leaves it without any."""
    if text is None and not tags:
        raise click.UsageError("say what is to change: a TEXT, --tag, or both")
    changed = store.edit(owner, id, text, tags or None)
    if as_json:
        print_json(_plain(changed))
    else:
        click.echo(f"note {id} is changed")
    return 0


@memory.command(short_help="Remove notes for good.")
@click.argument("ids", metavar="ID...", type=int, nargs=-1, required=True)
@_with_store
def forget(store: "MemoryStore", ids: tuple[int, ...], owner: str, as_json: bool) -> int:
    """Remove the notes with these IDs: all of them, or none if one is not there. There is no way back."""
    store.forget(owner, *ids)
    if as_json:
        print_json({"forgotten": list(dict.fromkeys(ids))})
    else:
        for number in dict.fromkeys(ids):
            click.echo(f"note {number} is forgotten")
    return 0


def _show(store: "MemoryStore", owner: str, notes: "Sequence[Note]", as_json: bool) -> None:
    if as_json:
        print_json([_plain(one) for one in notes])
    elif notes:
        rows = [(one.id, _when(one), ", ".join(one.tags), " ".join(one.text.split())) for one in notes]
        print_table(["note", "saved", "tags", "text"], rows, whole=["saved"])
    else:
        others = [f"{name} ({count})" for name, count in store.owners().items()]
        note(f"{owner!r} has no notes in {store.path}")
        if others:
            note(f"these have, see --owner: {', '.join(others)}")


def _plain(one: "Note") -> dict[str, Any]:
    return {
        "id": one.id,
        "text": one.text,
        "tags": list(one.tags),
        "saved": datetime.fromtimestamp(one.saved).astimezone().isoformat(timespec="seconds"),
    }


def _when(one: "Note") -> str:
    return datetime.fromtimestamp(one.saved).strftime("%Y-%m-%d %H:%M")
