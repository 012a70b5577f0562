"""Lines of a story on the terminal: a label on the left, in colour where that can be shown."""

from collections.abc import Callable
from contextlib import nullcontext

from treadle.cli.story import Story
from treadle.cli.terminal import clean, console, heard, wrapped

_COLOURS = {"perceive": "cyan", "think": "magenta", "act": "yellow", "verdict": "green", "error": "bold red"}
_INDENT = 12


def trace(*, texts: bool) -> Story:
    """The story of a run under way, on standard error; with what the model says, if that is not shown otherwise."""
    return Story(teller(err=True), texts=texts)


def teller(*, err: bool) -> Callable[[str, str], None]:
    """What prints a story's lines on standard error, or on standard output; at a terminal they end between words."""
    from rich.text import Text

    out = console(err=err)

    def put(text: Text) -> None:
        with heard(gone=False) if err else nullcontext():
            out.print(text, soft_wrap=True)

    def say(label: str, text: str) -> None:
        told = " ".join(clean(text).split("\n"))
        if label == "step":
            put(Text(f"step {told}", style="bold"))
            return
        colour = _COLOURS.get(label, "")
        line = Text(told, style=colour if label == "error" else "")
        parts = wrapped(line, max(_INDENT, out.width - _INDENT)) if out.is_terminal else [line]
        for at, part in enumerate(parts):
            part.rstrip()
            heading = Text(f"  {label:<10}" if not at else " " * _INDENT, style=colour)
            put(Text.assemble(heading, part))

    return say
