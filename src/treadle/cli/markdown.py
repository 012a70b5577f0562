"""Markdown at a terminal: text is written as it arrives, and set block by block once each is whole.

What is set says the same: a block of which a letter or a digit would be lost, or whose figures could read otherwise,
stays as it was written.
"""

import os
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING

from treadle.cli.terminal import clean, console, wrapped

if TYPE_CHECKING:
    from markdown_it.token import Token

_WITHIN = re.compile(r"\w[*~]+\w")
"""An asterisk within a word is a sign of its own more often than emphasis: 2*3*4."""
_JOINED = re.compile("[\u200d\ufe0f\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]")
"""Parts of signs that terminals show in different widths, so that nobody knows where a line was broken."""
_FIGURE = re.compile(r"[-+−]?\d+(?:[.,]\d+)*")


class Page:
    """Standard output at a terminal, as far as it shows Markdown."""

    def __init__(self) -> None:
        self._pending = ""
        self._width = 0
        self._left = False

    @classmethod
    def at_terminal(cls) -> "Page | None":
        """The page, if standard output is a terminal that can set text and is to."""
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "") == "dumb"
        return None if plain or not sys.stdout.isatty() else cls()

    def write(self, text: str) -> None:
        """Writes `text`, and sets what it completes."""
        if not self._pending:
            self._width = _columns()
        for piece in text.splitlines(keepends=True):
            self._pending += piece
            sys.stdout.write(piece)
            before, _, line = self._pending[:-1].rpartition("\n")
            if piece.endswith("\n") and line.strip() and (before.endswith("\n") or line.startswith(("#", "`"))):
                self._set_all_but_last()

    def leave(self) -> None:
        """Something else was written in between: what is there stays as it is."""
        self._left = True

    def end(self) -> None:
        """Sets the rest, of which the last line has been ended."""
        if self._pending:
            self._set(self._pending, "")
        self._pending, self._left = "", False

    def _set_all_but_last(self) -> None:
        starts = [token.map[0] for token in _parsed(self._pending) if token.level == 0 and token.map]
        if len(starts) > 1:
            lines = [f"{line}\n" for line in self._pending.removesuffix("\n").split("\n")]
            self._set("".join(lines[: starts[-1]]), "".join(lines[starts[-1] :]))

    def _set(self, block: str, rest: str) -> None:
        """Shows `block` as Markdown in place of its text, and what was written after it."""
        self._pending = rest
        told, rows = None if self._left else _set_off(block), _rows(block + rest, self._width)
        # What has left the screen cannot be written over, nor what another width has broken otherwise.
        if told is not None and rows < _lines() and _columns() == self._width and not _JOINED.search(block + rest):
            sys.stdout.write(f"\x1b[{rows}A\r\x1b[J{told}{rest}")
            sys.stdout.flush()


def _parsed(text: str) -> "list[Token]":
    from markdown_it import MarkdownIt

    return MarkdownIt().enable("strikethrough").enable("table").parse(text)


def _set_off(block: str) -> str | None:
    """The block as it is set; None if it stays as it was written, or could be read otherwise then."""
    inline = [child.type for token in _parsed(block) for child in token.children or ()]
    kinds = {token.type for token in _parsed(block)}
    if kinds <= {"paragraph_open", "inline", "paragraph_close"} and set(inline) <= {"text", "softbreak", "hardbreak"}:
        return _between_words(block)
    fenced = bool(kinds & {"fence", "code_block"})
    if not fenced and _WITHIN.search(re.sub(r"`[^`]*`", "", block).replace("**", "")):
        return None
    # Lines stay lines.
    text = block if fenced else "".join(f"{line}  \n" for line in block.rstrip().splitlines())
    out = console()
    with out.capture() as captured:
        out.print(_document(text))
    told = "\n".join(line.rstrip() for line in captured.get().strip("\n").splitlines()) + "\n"
    kept = _letters(clean(told)) == _letters(block)
    return told + "\n" * (len(block) - len(block.rstrip("\n")) - 1) if kept else None


def _between_words(block: str) -> str | None:
    """Plain text whose lines end between words; None if they fit as they are."""
    from rich.text import Text

    parts = [wrapped(Text(line), console().width) for line in block.removesuffix("\n").split("\n")]
    if all(len(lines) == 1 for lines in parts):
        return None
    return "".join(f"{part.plain}\n" for lines in parts for part in lines)


def _document(text: str) -> object:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import CodeBlock, Heading, Markdown
    from rich.text import Text

    class LeftHeading(Heading):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            yield Text.assemble(self.text, style="bold underline" if self.tag == "h1" else "bold")

    class BareCode(CodeBlock):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            # Not indented nor padded: code is copied.
            yield Text(str(self.text).rstrip("\n"), style="cyan")

    class Document(Markdown):
        elements = {**Markdown.elements, "heading_open": LeftHeading, "fence": BareCode, "code_block": BareCode}

    return Document(text, hyperlinks=False)


def _letters(text: str) -> Counter[str]:
    """The letters and digits of a text, and its figures with their signs."""
    return Counter(filter(str.isalnum, text)) + Counter(_FIGURE.findall(text))


def _rows(text: str, width: int) -> int:
    """How many rows of a terminal `text` takes, which ends with the end of a line."""
    from rich.cells import cell_len

    rows = 0
    for line in text.removesuffix("\n").split("\n"):
        rows, used = rows + 1, 0
        for character in line.expandtabs(8):
            size = cell_len(character)
            if used + size > width:
                rows, used = rows + 1, 0
            used += size
    return rows


def _columns() -> int:
    return os.get_terminal_size(sys.stdout.fileno()).columns


def _lines() -> int:
    return os.get_terminal_size(sys.stdout.fileno()).lines
