"""The terminal: text that is safe to print, and lines beside the answer.

Standard output is for what was asked for, standard error for what is said about it. Without a terminal, and with
NO_COLOR, nothing but plain text is printed.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO

import click

from treadle.outlet import is_read
from treadle.visible import clean as clean
from treadle.visible import visible as visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


# Standard output, while code of others has standard error in its place.
_ANSWERS: ContextVar[TextIO | None] = ContextVar("answers", default=None)


@contextmanager
def apart() -> Iterator[None]:
    """What tools and other code of the user print meanwhile goes to standard error: `answering` has the output."""
    kept = _ANSWERS.set(answers())
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _ANSWERS.reset(kept)


@contextmanager
def answering() -> Iterator[None]:
    """What is printed meanwhile goes to standard output, also where code of others is kept `apart`."""
    with redirect_stdout(answers()):
        yield


def answers() -> TextIO:
    """Standard output, also where code of others is kept `apart`."""
    return _ANSWERS.get() or sys.stdout


def set_off(text: str) -> str:
    """`text` with its further lines set off, so that none of what others wrote is taken for a line of ours."""
    return "\n  | ".join(clean(text).split("\n"))


def shorten(text: str, most: int) -> str:
    """`text` on one line, cut to `most` cells of a terminal, of which a wide character takes two."""
    line = " ".join(clean(text).split())
    if len(line) <= most and line.isascii():
        return line
    from rich.cells import cell_len, set_cell_size

    return line if cell_len(line) <= most else f"{set_cell_size(line, most - 1).rstrip()}…"


def showable(text: str) -> bool:
    """Whether standard output can show the text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def prose(text: str, *, err: bool = False, indent: str = "", most: int = 100_000) -> str:
    """`text` as it is printed: at a terminal its lines end between words. Not for commands, which are to be copied.

    Args:
        text: what is printed.
        err: whether it goes to standard error.
        indent: what a line that goes on begins with.
        most: the cells of a line at most, if the terminal has more.
    """
    out = console(err=err)
    if not out.is_terminal:
        return text
    from rich.text import Text

    width, lines = max(1, min(out.width, most)), list[str]()
    for line in text.split("\n"):
        first = wrapped(Text(line), width)[0].plain
        rest = wrapped(Text(line[len(first) :].lstrip()), max(1, width - len(indent)))
        lines += [first, *(f"{indent}{part.plain}" for part in rest if part.plain)]
    return "\n".join(lines)


def say(text: str) -> None:
    """Prints a text on standard output that others had a part in."""
    click.echo(prose(clean(text)))


_WORD = re.compile(r"\s*\S*\d (?:%|s\b)\S*\s*|\s*\S+\s*|\s+")
"""What stays on one line: a word, a percentage with its sign, and seconds with theirs."""
_PIECE = re.compile(r"[^,;]*[,;]+\s*|[^,;]+")


def wrapped(text: "Text", width: int) -> "list[Text]":
    """The lines of a text, as those that fit into `width` cells and end between words.

    A word that is too long for a line, such as JSON, ends after a comma in it, so that no figure is broken; only a
    piece that is too long itself is broken anywhere.
    """
    return [part for line in [*text.split(allow_blank=True)] or [text] for part in _fitted(line, width)]


def _fitted(line: "Text", width: int) -> "list[Text]":
    from rich.cells import cell_len, chop_cells

    breaks, at, used = list[int](), 0, 0
    for word in _WORD.findall(line.plain):
        for piece in [word] if cell_len(word.rstrip()) <= width else _PIECE.findall(word):
            size = cell_len(piece.rstrip())
            if used and used + size > width:
                breaks.append(at)
                used = 0
            if size > width:
                *whole, last = chop_cells(piece, width)
                for chopped in whole:
                    at += len(chopped)
                    breaks.append(at)
                piece = last
            at += len(piece)
            used += cell_len(piece)
    parts = list(line.divide(breaks))
    for part in parts:
        part.rstrip()
    return parts


@contextmanager
def heard(*, gone: bool = True) -> Iterator[None]:
    """Around what is printed on standard error: where that cannot be written, nobody can be told.

    Args:
        gone: whether that holds too where whoever read it has gone, and standard output is read by nobody either.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) and not gone and not _answer_is_read():
            raise


def _answer_is_read() -> bool:
    """Whether somebody reads standard output, which is what was asked for, whatever has become of standard error."""
    try:
        return is_read(answers().fileno())
    except (OSError, ValueError):
        return True


def note(text: str) -> None:
    """Prints a line about the answer, on standard error."""
    with heard(gone=False):
        click.echo(clean(text), err=True)


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


def print_json(value: Any) -> None:
    """Prints `value` as JSON on standard output; decimals as text, so that no digit is lost."""
    import msgspec

    data = msgspec.json.Encoder(enc_hook=_plain, decimal_format="string").encode(value)
    click.echo(plain_letters(msgspec.json.format(data, indent=2).decode()))


def plain_letters(text: str) -> str:
    """JSON with escapes for what steers a terminal, turns the writing direction or cannot be seen; it says the same."""
    if text.isascii() and "\x7f" not in text:
        return text
    return "\n".join(map(visible, text.split("\n")))


def _plain(value: Any) -> Any:
    """What has no JSON form of its own, such as an answer of a type of the user's."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=str)
