"""Neighbours: calls in another form than the one that was asked for, where a reply is or ends in one.

One rule: a reply that consists of nothing but exact calls of tools that there are, in whatever form, calls them. One
that says something and then ends in such a call is a fault, for nobody can tell whether the call is meant or shown; the
model is told, and shown the right form. A call that anything follows is spoken of, and is part of the answer. What the
format itself takes for a call or, in so many words, for the answer never comes here.

Pure. Neighbours: `wrappings.py` knows the forms, `reader.py` hands over what a format took for prose.
"""

import re
from typing import Final

from treadle.models.text_tools import fences
from treadle.models.text_tools.peeled import WAIT
from treadle.models.text_tools.pieces import Call, Cut, Fault, Offer, Piece, Prose, Thought
from treadle.models.text_tools.places import line_start
from treadle.models.text_tools.wrappings import MARKER, Wrappings

_THOUGHT: Final = re.compile(r"[ \t]*+[*_#]{0,6}+thoughts?[ \t]*+\d{0,4}+[*_]{0,4}+:", re.IGNORECASE)
_ANSWER: Final = re.compile(r"[ \t]*+[*_#]{0,6}+final[ _]answer[*_]{0,4}+[ \t]*+:", re.IGNORECASE)
_MAY_BE_LABEL: Final = re.compile(
    r"[ \t]*+[*_#]{0,6}+(?P<word>[a-z]{0,8}+[ _]?[a-z]{0,6}+)[ \t\d*_]{0,8}+\Z", re.IGNORECASE
)
_LABELS: Final = ("thoughts", "final answer")
_MADE_UP: Final = re.compile(
    r"(?:[*_]{0,4}+observation[ \t]*+\d{0,4}+[*_]{0,4}+:"
    r"|<(?:tool_response|tool_results?|function_results|observation)[ >]"
    r"|results? of [\w.-]{1,100}+[^\n:]{0,30}+:)",
    re.IGNORECASE,
)
_MAY_BE_MADE_UP: Final = re.compile(
    r"(?:[*_]{0,4}+[a-z]{0,11}+[ \t\d*_]{0,8}+|<\w{0,18}+|results? .{0,140}+)\Z", re.IGNORECASE
)
_TAGS: Final = re.compile(
    r"(?>(?:\s|<\|?(?:tool|function)[\w -]{0,20}+\|?>|<[|｜][\w▁]{1,40}+[|｜]>"
    r"|\[/?TOOL_CALLS?\]|\[(?:END_)?TOOL_REQUEST\])*)"
)
_QUOTED: Final = re.compile(r"[ \t]*+>")
_MARK: Final = re.compile(MARKER, re.IGNORECASE)
_MAY_BE_MARK: Final = re.compile(r"(?:<(?:[|｜][^<>\n]{0,260}+|s[a-z_]{0,20}+)?|\[[a-z_]{0,12}+)\Z", re.IGNORECASE)
_SHOWN: Final = frozenset("`\"'“")
"""What stands before a mark that is spoken of."""
_MARKS: Final = re.compile(rf"{MARKER}(?>(?:\s|<[|｜](?!DSML)[^<>\n]{{0,200}}+>)*)", re.IGNORECASE)
_CALLED: Final = re.compile(
    r"(?P<data>[\[{]|<[|｜]DSML)|(?>(?:call:|function<[|｜][^<>\n]{0,40}+>)?)"
    r"(?P<name>[A-Za-z_][\w-]{0,99}+(?>(?:\.[\w-]{1,99}+)*))(?:(?P<code>\()|[\[{<]|:\d|\s{1,2}+(?:\{|```))"
)
"""What follows a mark in a line where that is one: data, or a name as calls have it. Else it is spoken of."""
_MAY_BE_CALLED: Final = re.compile(
    r"(?:<[^<>\n]{0,200}+|function<[^<>\n]{0,40}+|call:?|(?>(?:call:|function<[|｜][^<>\n]{0,40}+>)?)"
    r"[\w.-]{0,999}+(?>(?::|\s{1,2}+`{0,2}+)?))\Z"
)
_EAGERNESS: Final = 32
"""As in `reader.py`: what is held back is looked at again when it has grown by this share of itself."""


class Neighbours:
    """Goes through the pieces of one reply, as they come, and holds prose back where a call may begin.

    Args:
        offer: what may be called.
    """

    __slots__ = ("_chunks", "_code", "_last", "_look_at", "_over", "_size", "_spoke", "_thinking", "_wrappings")

    def __init__(self, offer: Offer) -> None:
        self._wrappings = Wrappings(offer)
        self._chunks: list[str] = []
        self._size = self._look_at = 0
        self._code: re.Pattern[str] | None = None
        self._last = ""
        self._spoke = self._thinking = False
        self._over = not offer.tools

    def read(self, pieces: list[Piece], final: bool) -> list[Piece]:
        """`pieces`, with calls for the prose that is one; `final` with the last pieces of the reply."""
        out: list[Piece] = []
        for piece in pieces:
            if self._over:
                out.append(piece)
            elif isinstance(piece, Prose) and not piece.answer:
                self._chunks.append(piece.text)
                self._size += len(piece.text)
                if self._size >= self._look_at:
                    out += self._looked_through(False)
            elif isinstance(piece, Thought):
                out += self._looked_through(False)
                held, self._last = self._taken_out(), ""
                out += [Prose(held), piece] if held else [piece]
            else:
                out += self._looked_through(False)
                out += [*self._before(piece), piece]
                self._over = True
        if final and not self._over:
            out += self._looked_through(True)
        return out

    def _looked_through(self, final: bool) -> list[Piece]:
        text = "".join(self._chunks)
        out: list[Piece] = []
        at = 0
        while at < len(text) and not self._over:
            end = self._step(text, at, final, out)
            if end == at:
                break
            at = end
        if self._over and at < len(text):
            out.append(Prose(text[at:]))
            at = len(text)
        self._chunks = [text[at:]] if at < len(text) else []
        self._size = len(text) - at
        self._look_at = self._size + self._size // _EAGERNESS
        return out

    def _step(self, text: str, at: int, final: bool, out: list[Piece]) -> int:
        """Reads on from `at` as far as is certain, and returns where that is."""
        if self._code is not None:
            return self._in_code(self._code, text, at, final, out)
        if self._is_in_line:
            marked = self._is_mark(text, at)
            called = marked and self._is_called(text, at, final)
            if not called:
                return at if called is None else self._said_through(text, at, at + marked, final, out)
        says_answer = _ANSWER.match(text, at) is not None
        if says_answer or (not self._thinking and not self._spoke and _THOUGHT.match(text, at)):
            self._over, self._thinking = says_answer, True
            return self._said_through(text, at, at, final, out)
        if not final and (self._may_be_label(text, at) or (_QUOTED.match(text, at) and text.find("\n", at) < 0)):
            return at
        found = self._wrappings.read(text, at, final, alone=not self._spoke)
        if found is WAIT:
            return at
        if found is None or (self._is_in_line and not self._wrappings.names_tool(text[at:])):
            fence = fences.OPEN.match(text, at)
            if fence is not None and not final and not fence.group().endswith("\n"):
                return at
            if fence is not None:
                self._code = fences.closing(fence["fence"])
            return self._said_through(text, at, at + 1, final, out)
        calls, end = found
        if end < len(text) and _MADE_UP.match(text, end):
            out += [*self._meant(calls, text[at:end]), Cut()]
            self._over = True
            return len(text)
        if end == len(text) or (not final and _MAY_BE_MADE_UP.match(text, end)):
            if not final:
                return at
            out += self._meant(calls, text[at:end])
            self._over = True
            return end
        return self._said(text, at, end, out)

    def _may_be_label(self, text: str, at: int) -> bool:
        match = _MAY_BE_LABEL.match(text, at)
        word = "" if match is None else match["word"].lower().replace("_", " ")
        labels = _LABELS[self._spoke :]  # of the two, only an answer is said after words
        return match is not None and any(label.startswith(word) for label in labels)

    def _in_code(self, code: re.Pattern[str], text: str, at: int, final: bool, out: list[Piece]) -> int:
        close = code.search(text, at)
        if close is not None and (final or close.group().endswith("\n")):
            self._code = None
            return self._said(text, at, close.end(), out)
        return self._said(text, at, len(text) if final else line_start(text, at), out)

    def _said_through(self, text: str, at: int, since: int, final: bool, out: list[Piece]) -> int:
        """What stands on this line is said, as far as it has come, but for a mark of a call from `since` on."""
        line = text.find("\n", at)
        end = len(text) if line < 0 else line + 1
        marks = [one for one in _MARK.finditer(text, since, end) if self._is_mark(text, one.start())]
        held = _MAY_BE_MARK.search(text, since) if line < 0 and not final and not marks else None
        if held is not None and self._before_of(text, held.start()) not in _SHOWN:
            end = held.start()
        return self._said(text, at, marks[0].start() if marks else end, out)

    @property
    def _is_in_line(self) -> bool:
        """Whether something was said before on the line that is read."""
        return self._last not in ("", "\n")

    def _before_of(self, text: str, at: int) -> str:
        return text[at - 1] if at else self._last

    def _is_mark(self, text: str, at: int) -> bool:
        """Whether a mark stands there that is not shown in quotes."""
        return self._before_of(text, at) not in _SHOWN and _MARK.match(text, at) is not None

    def _is_called(self, text: str, at: int, final: bool) -> bool | None:
        """Whether what follows the mark in a line is a call's beginning; None if it takes more text to tell."""
        marks = _MARKS.match(text, at)
        if marks is None or (not final and _MAY_BE_CALLED.match(text, marks.end())):
            return None if marks else False
        begun = _CALLED.match(text, marks.end())
        if begun is None or begun["data"] or begun["code"]:
            return begun is not None
        return self._wrappings.names_tool(begun["name"])

    def _said(self, text: str, at: int, end: int, out: list[Piece]) -> int:
        if end > at:
            out.append(Prose(text[at:end]))
            self._last = text[end - 1]
            self._spoke = self._spoke or (not self._thinking and not text[at:end].isspace())
        return end

    def _meant(self, calls: list[Piece], written: str) -> list[Piece]:
        """What `calls`, with which the reply ends, come to."""
        if not self._spoke:
            return calls
        first = next((piece for piece in calls if isinstance(piece, Call | Fault)), None)
        if first is None:
            return [Prose(written)]
        if not isinstance(first, Call):
            return calls
        what = (
            f"it ends in a call of {first.name} in another form than the one that was asked for, after other text, so "
            "that it may be meant or only be shown. To call the tool, write the call in the right form; to show it, "
            "write something after it"
        )
        return [Fault(written.strip(), what, first.name, first.arguments)]

    def _before(self, piece: Piece) -> list[Piece]:
        """What was held back, now that the format has found `piece` after it."""
        text = self._taken_out()
        if (
            isinstance(piece, Call | Fault | Cut)
            and self._code is None
            and text
            and not (self._is_in_line and not self._is_mark(text, 0))
        ):
            match = _TAGS.match(text)
            if match is not None and match.end() == len(text):
                return []  # the wrapping of what follows
            found = self._wrappings.read(text, 0, True, alone=not self._spoke)
            if isinstance(found, tuple) and found[1] == len(text):
                return self._meant(found[0], text)
        return [Prose(text)] if text else []

    def _taken_out(self) -> str:
        """What was held back, which is no longer."""
        text = "".join(self._chunks)
        self._chunks, self._size, self._look_at = [], 0, 0
        return text
