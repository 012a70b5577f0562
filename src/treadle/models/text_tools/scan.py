"""Scan: what the scanners of formats have in common whose calls may stand anywhere in a text but in its code.

Pure. Neighbours: `json.py` and `tags.py`, which say what may start and read it; `fences.py`.
"""

import re
from abc import ABC, abstractmethod

from treadle.models.text_tools import fences
from treadle.models.text_tools.fences import Tail, comes_first
from treadle.models.text_tools.pieces import Call, Cut, Fault, Offer, Piece, Prose


class Scan(ABC):
    """Reads a reply from one start of something to the next; see `Scanner`.

    Attributes:
        offer: what the model may call.
        called: whether a call was found.
        code: what closes the code that is being read.
    """

    __slots__ = ("_tail", "called", "code", "offer")

    starts: re.Pattern[str]
    """Where something starts: a group of its pattern says what. The group `code` is for code."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.called = False
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

    def _step(self, text: str, at: int, final: bool, pieces: list[Piece]) -> int:
        """Reads on from `at` as far as is certain, and returns where that is."""
        if self.code is not None:
            return self._in_code(self.code, text, at, final, pieces)
        start = self.starts.search(text, at)
        held = len(text) if final else self._tail.start(self.may_start, text, at)
        if start is None or (not final and comes_first(held, start)):
            if held > at:
                pieces.append(Prose(text[at:held]))
            return held
        if start.start() > at:
            pieces.append(Prose(text[at : start.start()]))
            return start.start()
        return self.started(start, text, final, pieces)

    def _in_code(self, code: re.Pattern[str], text: str, at: int, final: bool, pieces: list[Piece]) -> int:
        close = code.search(text, at)
        if close is not None and (final or close.group().endswith("\n")):
            self.code = None
            end = close.end()
        else:
            end = len(text) if final else fences.line_start(text, at)
        if end > at:
            pieces.append(Prose(text[at:end]))
        return end
