"""Busy: a line at a terminal that says what is under way, how long, and how to stop it, and that disappears."""

import os
import sys
import threading
import time
from types import TracebackType
from typing import Self

from treadle.cli.story import record_of
from treadle.cli.terminal import shorten
from treadle.drivers.watching import RunEvent, SubRunEvent, ToolProgress
from treadle.kernel.events import (
    ContextEdited,
    ModelFailed,
    ModelReplied,
    RunFinished,
    RunPaused,
    StepPrepared,
    ToolFinished,
    ToolStarted,
)
from treadle.kernel.state import RunState
from treadle.models.port import TextDelta

_PATIENCE = 0.7
"""Seconds that pass before anything is shown."""
_TICK = 0.25


class Line:
    """A line on standard error that is written anew while time goes by. Without a terminal it shows nothing."""

    def __init__(self) -> None:
        self._changes = threading.Condition()
        self._what, self._since = "", 0.0
        self._drawn = ""
        self._over = not sys.stderr.isatty() or os.environ.get("TERM", "") == "dumb"
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def show(self, what: str, since: float) -> None:
        """Shows `what`, which has been under way since that moment (`time.monotonic`), from now on."""
        with self._changes:
            self._what, self._since = what, since
            if self._thread is None and not self._over:
                self._thread = threading.Thread(target=self._draw, name="treadle-busy", daemon=True)
                self._thread.start()
            self._changes.notify()

    def hide(self) -> None:
        """Takes the line away, so that others can write where it was."""
        with self._changes:
            self._what = ""
            self._write("")

    def end(self) -> None:
        """Takes the line away for good."""
        with self._changes:
            self._write("")
            self._over, self._what = True, ""
            self._changes.notify()
        if self._thread is not None:
            self._thread.join()

    def _draw(self) -> None:
        with self._changes:
            while not self._over:
                gone = time.monotonic() - self._since
                if self._what and gone >= _PATIENCE:
                    room = os.get_terminal_size(sys.stderr.fileno()).columns - 1
                    end = f" … {gone:.0f} s (Ctrl-C stops)"
                    self._write(shorten(self._what, max(8, room - len(end))) + end)
                self._changes.wait(_TICK if self._what else None)

    def _write(self, text: str) -> None:
        if self._over or text == self._drawn:
            return
        try:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
        except (OSError, ValueError):
            # Nobody can be shown anything there.
            self._over = True
        self._drawn = text


class Busy:
    """What a run is doing, as its events tell it."""

    def __init__(self) -> None:
        self._line = Line()
        self._asked: tuple[str, float] | None = None
        self._tools: dict[str, tuple[str, float]] = {}
        self._speaking = False

    def hide(self) -> None:
        """Takes the line away while an event is shown."""
        self._line.hide()

    def end(self) -> None:
        """Takes it away for good."""
        self._line.end()

    def see(self, event: RunEvent, after: RunState) -> None:
        """Shows what is under way after `event`; nothing while an answer is being written."""
        now = time.monotonic()
        match event:
            case StepPrepared(model=model):
                self._asked = (f"{model or after.model} is thinking", now)
            case TextDelta():
                self._speaking = True
            case ModelReplied() | RunFinished() | RunPaused():
                self._asked, self._speaking = None, False
            case ModelFailed(retry_in=wait):
                again = "asking again" if not wait else f"asking again in {wait:.0f} s"
                self._asked, self._speaking = (f"{after.model} failed; {again}", now), False
            case ContextEdited(reserve=reserve):
                self._asked = (f"{event.model} writes a summary" if reserve else f"{after.model} is thinking", now)
            case ToolStarted(step=step, call_id=call_id):
                self._tools[call_id] = (f"{record_of(after, step, call_id).doing.name} is working", now)
            case ToolProgress(call_id=call_id, name=name, update=update) if call_id in self._tools:
                self._tools[call_id] = (f"{name}: {update}", self._tools[call_id][1])
            case SubRunEvent(call_id=call_id, agent=agent, event=StepPrepared(step=step)) if call_id in self._tools:
                self._tools[call_id] = (f"{agent} is working, at step {step}", self._tools[call_id][1])
            case ToolFinished(call_id=call_id):
                self._tools.pop(call_id, None)
            case _:
                pass
        if isinstance(event, RunFinished | RunPaused):
            self._tools.clear()
        self._show()

    def _show(self) -> None:
        under_way = [*self._tools.values(), *([] if self._asked is None else [self._asked])]
        if under_way and not self._speaking:
            what, since = min(under_way, key=lambda one: one[1])
            more = f" (and {len(under_way) - 1} more)" if len(under_way) > 1 else ""
            self._line.show(f"{what}{more}", since)
