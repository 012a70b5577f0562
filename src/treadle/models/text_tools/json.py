"""JSON: a call is an object that names the tool and has its arguments, bare or fenced, after prose or alone.

Pure. Neighbours: `attempt.py` says whether an object is a call, `fences.py` knows code that is none.
"""

import re
from typing import Final

import msgspec

from treadle.models.text_tools import fences, loose
from treadle.models.text_tools.attempt import broken, pieces_of
from treadle.models.text_tools.pieces import Cut, Offer, Piece, Prose, Scanner
from treadle.models.text_tools.places import after
from treadle.models.text_tools.scan import FINAL, MAY_BE_FINAL, Scan

_LANGUAGES: Final = r"(?:json\w*+|tool\w*+|function\w*+|action|)"
_FENCED: Final = rf"(?P<fence>(?<!`)`{{3,}}+|(?<!~)~{{3,}}+)[ \t]*+{_LANGUAGES}\s*+(?=[\[{{])"
_STARTS: Final = re.compile(
    rf"(?P<fenced>(?:{fences.LEAD})?{_FENCED})|(?P<code>{fences.LEAD}(?:`{{3,}}+|~{{3,}}+)[^\n`]*+\n)"
    r"|(?P<quoted>^[ \t]*+>[^\n]*+(?:\n|\Z)|(?<!`)(?P<ticks>`{1,2})(?!`)[^`\n]++(?P=ticks)(?!`))"
    r"|(?P<object>\{|\[\s*+\{)"
    r"|(?P<result>^[ \t]*+(?:results? of [\w.-]{1,100}+[^\n:]{0,30}+|tool (?:results?|outputs?|responses?)|observation)"
    rf"[ \t]*+:)|{FINAL}",
    re.MULTILINE | re.IGNORECASE,
)
_MAY_START: Final = re.compile(
    rf"{MAY_BE_FINAL}|\[\s*+\Z|(?:{fences.LEAD})?(?:(?<!`)`{{1,2}}(?!`)(?:[^`\n]++`?)?|(?<!~)~{{1,2}}(?!~)"
    rf"|(?:(?<!`)`{{3,}}+|(?<!~)~{{3,}}+)[^\n`]*+(?:\n\s*+)?)\Z|{fences.LEAD}(?:[-*+\d.)]{{0,4}}|>[^\n]*+)\Z",
    re.MULTILINE,
)
_MAY_START_AFTER_CALL: Final = re.compile(
    rf"{_MAY_START.pattern}|^[ \t]*+[rto][^\n:]{{0,160}}+\Z", re.MULTILINE | re.IGNORECASE
)
_GAP: Final = re.compile(r"[\s,;]*+")
_CLOSE: Final = re.compile(r"\s*+(?:`{3,}+|~{3,}+)[ \t]*+")
_MAY_CLOSE: Final = re.compile(r"\s*+(?:`++|~++)?[ \t]*+\Z")
_MOST_UNCLOSED: Final = 8


class JsonFormat:
    """Calls as JSON objects; several calls are several objects."""

    stop: tuple[str, ...] = ()

    def how_to(self, offer: Offer, example: str) -> str:
        """The instructions on how to call a tool."""
        several = (
            " To call several tools at once, write several such objects, each on a line of its own."
            if offer.parallel
            else " Call one tool at a time."
        )
        return (
            f"To call a tool, write a JSON object with its name and arguments, and nothing after it:\n\n{example}\n\n"
            f"The result comes in the next message; never write it yourself.{several} When you need no tool, answer in "
            "plain words, without such an object."
        )

    def call(self, name: str, arguments: str) -> str:
        """A call as text."""
        return f'{{"name": {msgspec.json.encode(name).decode()}, "arguments": {arguments}}}'

    def said(self, thoughts: str, text: str, calls: list[str]) -> str:
        """What an assistant message said, as text."""
        return "\n".join([*([text] if text else []), *calls])

    def result(self, name: str, number: int, count: int, content: str) -> str:
        """The result of a call, as text."""
        which = f" (call {number} of {count})" if count > 1 else ""
        return f"Result of {name}{which}:\n{content}"

    def scanner(self, offer: Offer) -> Scanner:
        """A scanner for one reply."""
        return _JsonScanner(offer)


class _JsonScanner(Scan):
    __slots__ = ("_unclosed",)

    starts = _STARTS

    def __init__(self, offer: Offer) -> None:
        super().__init__(offer)
        self._unclosed = 0

    @property
    def may_start(self) -> re.Pattern[str]:
        """See `Scan`."""
        return _MAY_START_AFTER_CALL if self.called else _MAY_START

    def started(self, start: re.Match[str], text: str, final: bool, pieces: list[Piece]) -> int:
        """See `Scan`."""
        match start.lastgroup:
            case "code":
                fence = fences.OPEN.match(text, start.start())
                self.code = fences.closing(fence["fence"]) if fence else None
                pieces.append(Prose(start.group()))
                return start.end()
            case "result":
                pieces.append(Cut() if self.called else Prose(start.group()))
                return start.end()
            case "quoted" | "ticks":
                pieces.append(Prose(start.group()))
                return start.end()
            case "object":
                return self._object(text, start.start(), final, pieces)
            case _:
                return self._fenced(text, start, final, pieces)

    def _object(self, text: str, at: int, final: bool, pieces: list[Piece]) -> int:
        end = loose.end_of(text, at)
        if end < 0:
            return self._never_closed(text, at, at, pieces) if final else at
        found = pieces_of(text[at:end], self.offer)
        sure = self.sure(found or [], text, at, end, final)
        if sure is None:
            return at
        self.take(sure or [Prose(text[at:end])], pieces)
        return end

    def _fenced(self, text: str, start: re.Match[str], final: bool, pieces: list[Piece]) -> int:
        """Reads a fence that holds JSON: if there is a call in it, the fence is no part of the answer."""
        found: list[Piece] = []
        at, calls = start.end(), False
        while at < len(text) and text[at] in "{[":
            end = loose.end_of(text, at)
            if end < 0:
                if not final:
                    return start.start()
                self.take(found, pieces)
                return self._never_closed(text, at, at if calls else start.start(), pieces)
            inside = pieces_of(text[at:end], self.offer)
            calls = calls or inside is not None
            found += inside or [Prose(text[at:end])]
            at = after(_GAP, text, end)
        if not final and _MAY_CLOSE.match(text, at):
            return start.start()
        close = _CLOSE.match(text, at)
        if not calls:
            self.code = fences.closing(start["fence"]) if close is None else None
            end = at if close is None else close.end()
            pieces.append(Prose(text[start.start() : end]))
            return end
        self.take(found, pieces)
        return at if close is None else close.end()

    def _never_closed(self, text: str, at: int, since: int, pieces: list[Piece]) -> int:
        """Reads an object that has no end, at the end of the reply."""
        meant = broken(text[at:], self.offer)
        if meant is not None:
            self.take([meant], pieces)
            return len(text)
        self._unclosed += 1
        end = len(text) if self._unclosed > _MOST_UNCLOSED else at + 1
        pieces.append(Prose(text[since:end]))
        return end
