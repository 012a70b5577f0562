"""The terminal: text that is safe to print, lines beside the answer, and tables.

Standard output is for what was asked for, standard error for what is said about it. Without a terminal, and with
NO_COLOR, nothing but plain text is printed.
"""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


_BLANK = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that show nothing; Unicode calls them printable."""


def clean(text: str) -> str:
    """`text` without control characters, also those that turn the writing direction.

    What a model, a tool or a source says must not be able to steer the terminal, nor to show a figure backwards.
    """
    return _CONTROL.sub("", text)


def visible(text: str) -> str:
    """`text` with every character that cannot be seen as it is written as an escape, such as \\u202e.

    For what a person decides on: control, invisible and bidirectional characters, blanks that are none, and lone
    surrogates, each as JSON writes it.
    """
    return "".join(one if one.isprintable() and not _BLANK.match(one) else _escape(one) for one in text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def set_off(text: str) -> str:
    """`text` with its further lines set off, so that none of what others wrote is taken for a line of ours."""
    return "\n  | ".join(clean(text).split("\n"))


def shorten(text: str, most: int) -> str:
    """`text` on one line, cut to `most` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def note(text: str) -> None:
    """Prints a line about the answer, on standard error; where that cannot be written, nobody can be told."""
    try:
        click.echo(clean(text), err=True)
    except BrokenPipeError:
        raise
    except OSError:
        pass


def console(*, err: bool = False) -> "Console":
    """A rich console for standard output or standard error.

    Without a terminal it is as wide as its widest line, so that other programs get whole lines.
    """
    from rich.console import Console

    class Told(Console):
        def on_broken_pipe(self) -> None:
            # Rich would end the process with a code of its own.
            raise

    stream = sys.stderr if err else sys.stdout
    plain = bool(os.environ.get("NO_COLOR"))
    made = Told(file=stream, markup=False, highlight=False, emoji=False, color_system=None if plain else "auto")
    if not made.is_terminal:
        made.width = 100_000
    return made


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
    styles: Mapping[str, str] | None = None,
) -> None:
    """Prints a table on standard output.

    Args:
        columns: their headings.
        rows: their cells.
        right: the headings of the columns that are aligned to the right.
        whole: the headings of the columns that are not wrapped at a narrow terminal, besides the first and those.
        styles: how cells that hold just such a word are shown, where colours are.
    """
    from rich import box
    from rich.cells import cell_len
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    out = console()
    table = Table(box=box.SIMPLE_HEAD if out.is_terminal else None, pad_edge=False, show_edge=False)
    if out.is_terminal:
        # The divider is one of the two blanks between columns.
        table.padding = (0, 1, 0, 0)
    shown = [[clean("" if cell is None else str(cell)) for cell in row] for row in rows]
    for number, column in enumerate(columns):
        is_whole = column in (columns[0], *right, *whole)
        # A width that is only preferred is cut where columns compete for it, digits included.
        needed = max(cell_len(text) for text in (column, *[row[number] for row in shown])) if is_whole else None
        table.add_column(
            column, justify="right" if column in right else "left", overflow="fold", no_wrap=is_whole, min_width=needed
        )
    for texts in shown:
        table.add_row(*(Text(text, style=(styles or {}).get(text, "")) for text in texts))
    if out.is_terminal:
        # A column that must stay whole is wrapped by the terminal itself rather than cut: no digit may be lost.
        free = out.options.update(max_width=100_000)
        out.width = max(out.width, Measurement.get(out, free, table).minimum)
        out.print(table, soft_wrap=True)
        return
    with out.capture() as capture:
        out.print(table)
    for line in capture.get().splitlines():
        print(line.rstrip())


def print_json(value: Any) -> None:
    """Prints `value` as JSON on standard output; decimals as text, so that no digit is lost."""
    import msgspec

    data = msgspec.json.Encoder(enc_hook=_plain, decimal_format="string").encode(value)
    click.echo(msgspec.json.format(data, indent=2))


def _plain(value: Any) -> Any:
    """What has no JSON form of its own, such as an answer of a type of the user's."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=str)
