"""Lines of a story on the terminal: a label on the left, in colour where that can be shown."""

from collections.abc import Callable

from treadle.cli.story import Story
from treadle.cli.terminal import clean, console

_COLOURS = {"perceive": "cyan", "think": "magenta", "act": "yellow", "verdict": "green"}


def trace(*, texts: bool) -> Story:
    """The story of a run under way, on standard error; with what the model says, if that is not shown otherwise."""
    return Story(teller(err=True), texts=texts)


def teller(*, err: bool) -> Callable[[str, str], None]:
    """What prints a story's lines on standard error, or on standard output."""
    from rich.text import Text

    out = console(err=err)

    def say(label: str, text: str) -> None:
        heading = label == "step"
        line = Text("step " if heading else "", style="bold" if heading else "")
        if not heading:
            line.append(f"  {label:<10}", style=_COLOURS.get(label, ""))
        line.append(" ".join(clean(text).split("\n")), style="bold" if heading else "")
        out.print(line, soft_wrap=True)

    return say
