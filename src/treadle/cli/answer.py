"""The answer: what the model says, on standard output as it arrives."""

from typing import Any

from treadle.cli.markdown import Page
from treadle.cli.terminal import answers, clean, note
from treadle.drivers.watching import RunEvent, ToolProgress
from treadle.kernel.events import ModelFailed, ModelReplied, ToolFinished, ToolStarted
from treadle.kernel.state import RunState
from treadle.models.port import TextDelta
from treadle.result import RunResult, arguments_shown


class AnswerView:
    """Writes text as it arrives; what is said in different steps stands on lines of its own."""

    def __init__(self) -> None:
        self._shown = ""
        self._open = False
        self._page = Page.at_terminal()

    def see(self, event: RunEvent, before: RunState, after: RunState) -> None:
        """Writes what `event` adds to the text."""
        match event:
            case TextDelta(text=text):
                self._write(text)
            case ModelReplied(message=message):
                # Not every model sends its text in pieces.
                if not self._open and message.text:
                    self._write(message.text)
                self._end_line()
            case ModelFailed(text=text, retry_in=wait):
                if self._page is not None:
                    self._page.leave()
                self._end_line()
                if text and wait is not None:
                    note("(the reply broke off; what was shown of it does not count, and it is asked for again)")
            case ToolStarted() | ToolFinished() | ToolProgress() if self._page is not None and self._open:
                # It may have written something itself, below a reply that is still arriving.
                self._page.leave()
            case _:
                pass

    def end(self, result: RunResult[Any]) -> None:
        """Writes what is left of the answer: the text, unless it was shown, and an external tool's arguments."""
        self.complete(result.text)
        self.complete(arguments_shown(result))

    def complete(self, text: str) -> None:
        """Writes `text`, the run's, unless it is what was shown last."""
        if text and clean(text).strip() != self._shown.strip():
            self._write(text)
            self._end_line()

    def _write(self, text: str) -> None:
        if not self._open:
            self._shown = ""
        self._open = True
        shown = clean(text)
        self._shown += shown
        self._print(shown)

    def _end_line(self) -> None:
        if self._open and not self._shown.endswith("\n"):
            self._print("\n")
        if self._open and self._page is not None:
            self._page.end()
        self._open = False

    def _print(self, text: str) -> None:
        if self._page is None:
            answers().write(text)
        else:
            self._page.write(text)
        answers().flush()
