"""Scan: what the scanners of formats have in common whose calls may stand anywhere in a text but in its code.

Pure. Neighbours: `json.py` and `tags.py`, which say what may start and read it; `fences.py`.
"""

import re
from abc import ABC, abstractmethod
from typing import Final

from treadle.models.text_tools.fences import Tail, comes_first
from treadle.models.text_tools.pieces import Call, Cut, Fault, Offer, Piece, Prose
from treadle.models.text_tools.places import after, line_start

FINAL: Final = r"(?P<final>^[ \t]*+[*_#]{0,6}+[ \t]*+final[ _]answer[*_]{0,4}+[ \t]*+:)"
"""What a model writes before its answer, whatever format it was asked for; all that follows is the answer."""
MAY_BE_FINAL: Final = r"^[ \t]*+[*_#]{0,6}+[ \t]*+(?:[fF][a-zA-Z]{0,4}+[ _]?+[a-zA-Z]{0,6}+[*_]{0,4}+[ \t]*+)?\Z"
MENTIONED: Final = (
    "the call stands in a sentence, so that it may be meant or be spoken of; a call stands on a line of its own, or at "
    "the end"
)
_BEFORE: Final = 200
_WRAPPING: Final = re.compile(r"<[^<>]{0,100}+>|\[[^\[\]]{0,100}+\]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_AFTER: Final = re.compile(r"(?>(?:[^\w\n{\[<`]|</[^<>\n]{0,60}+>)*)")
_BEGUN: Final = re.compile(r"<(?:/[^<>\n]{0,60}+)?\Z")
_BLANK: Final = re.compile(r"(?>(?:\s|</[^<>\n]{0,60}+>)*)")


class Scan(ABC):
    """Reads a reply from one start of something to the next; see `Scanner`.

    Attributes:
        offer: what the model may call.
        called: whether a call was found.
        code: what closes the code that is being read.
        answer: whether the model said that what follows is its answer.
    """

    __slots__ = ("_tail", "answer", "called", "code", "offer")

    starts: re.Pattern[str]
    """Where something starts: a group of its pattern says what. The group `code` is for code."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.called = self.answer = False
        self.code: re.Pattern[str] | None = None
        self._tail = Tail()

    @property
    @abstractmethod
    def may_start(self) -> re.Pattern[str]:
        """What at the end of the text may become a start when more has come."""

    @abstractmethod
    def started(self, start: re.Match[str], text: str, final: bool, pieces: list[Piece]) -> int:
        """Reads what starts here, and returns where it ends; where it starts if more must come first."""

    def read(self, text: str, at: int, final: bool) -> tuple[list[Piece], int]:
        """See `Scanner`."""
        pieces: list[Piece] = []
        self._tail = Tail()
        while at < len(text):
            before = at
            at = self._step(text, at, final, pieces)
            if at == before or (pieces and isinstance(pieces[-1], Cut)):
                break
        return pieces, at

    def take(self, found: list[Piece], pieces: list[Piece]) -> None:
        """Adds what was found."""
        pieces += found
        self.called = self.called or any(isinstance(piece, Call | Fault) for piece in found)

    def spoken_of(self, text: str, start: int, end: int, final: bool) -> bool | None:
        """Whether the call from `start` to `end` is part of a sentence: words follow it on its line, or stand before it
        there and anything but another call follows. None if it takes more text to tell.
        """
        rest = after(_AFTER, text, end)
        if text[rest : rest + 1].isalnum():
            return True
        if not final and (rest == len(text) or _BEGUN.match(text, rest)):
            return None
        line = text[max(0, start - _BEFORE) : start].rpartition("\n")[2]
        if not _LETTER.search(_WRAPPING.sub("", line)):
            return False
        rest = after(_BLANK, text, end)
        if not final and (rest == len(text) or _BEGUN.match(text, rest)):
            return None
        if rest == len(text):
            return False
        return text[rest] not in "{[<`" and not self.made_up(text, rest)

    def sure(self, found: list[Piece], text: str, start: int, end: int, final: bool) -> list[Piece] | None:
        """What was `found` from `start` to `end`, or the fault for a call in a sentence; None to wait for more."""
        call = next((piece for piece in found if isinstance(piece, Call)), None)
        spoken = False if call is None else self.spoken_of(text, start, end, final)
        if spoken is None or not spoken or call is None:
            return None if spoken is None else found
        right = call if call.name in self.offer.tools else Call("", "")
        return [Fault(text[start:end].strip(), MENTIONED, right.name, right.arguments)]

    def made_up(self, text: str, at: int) -> bool:
        """Whether a result that the model makes up begins at `at`."""
        start = self.starts.match(text, at)
        return start is not None and start.lastgroup == "result"

    def _step(self, text: str, at: int, final: bool, pieces: list[Piece]) -> int:
        """Reads on from `at` as far as is certain, and returns where that is."""
        if self.code is not None:
            return self._in_code(self.code, text, at, final, pieces)
        if self.answer:
            pieces.append(Prose(text[at:]))
            return len(text)
        start = self.starts.search(text, at)
        held = len(text) if final else self._tail.start(self.may_start, text, at)
        if start is None or (not final and comes_first(held, start)):
            if held > at:
                pieces.append(Prose(text[at:held]))
            return held
        if start.start() > at:
            pieces.append(Prose(text[at : start.start()]))
            return start.start()
        if start.lastgroup == "final":
            self.answer = not self.called
            pieces.append(Prose(start.group()))
            return start.end()
        return self.started(start, text, final, pieces)

    def _in_code(self, code: re.Pattern[str], text: str, at: int, final: bool, pieces: list[Piece]) -> int:
        close = code.search(text, at)
        if close is not None and (final or close.group().endswith("\n")):
            self.code = None
            end = close.end()
        else:
            end = len(text) if final else line_start(text, at)
        if end > at:
            pieces.append(Prose(text[at:end]))
        return end
