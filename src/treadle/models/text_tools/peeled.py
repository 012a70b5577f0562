"""Peeled: a tool's name beside its arguments, whatever marks stand around them.

One rule in place of a list of forms: of the end of a reply all marks are peeled off, and labels such as "tool:". If
what remains is the name of a tool and next to it something that reads as its arguments, it is a call: `@search {…}`,
`**search("x")**`, `[TOOL: search {…}]`, `{{search("x")}}`, `search: {…}`, lines of `key: value`, a JSON string that
holds a call. Any other word makes it prose. An object that fits the tool is certain, and so is a Python call in
nothing but emphasis; the rest is a fault.

Pure. Neighbours: `wrappings.py`, which has the forms that say of themselves that they are calls; `pairs.py`.
"""

import re
from collections.abc import Callable
from typing import Final

from treadle.models.text_tools import loose, pairs
from treadle.models.text_tools.attempt import names_argument
from treadle.models.text_tools.pieces import Call, Fault, Offer, Piece, unsure
from treadle.models.text_tools.places import after
from treadle.models.text_tools.python import Unreadable, arguments_of, end_of_call

Found = tuple[list[Piece], int]
WAIT: Final[Found] = ([], -1)
"""More must come before it can be told."""

_MARKS: Final = re.compile(r"(?>(?:[^\w\r\n]|_){0,60})")
_GAP: Final = re.compile(r"[^\w{(\[\"']{0,40}+")
_WORD: Final = re.compile(r"[^\W_](?>(?:[\w-]|\.(?=\w)){0,99})")
_LABELLED: Final = re.compile(r"[*_`\"']{0,4}+[ \t]{0,4}+(?:[:=<>\[\](){}|\u2192\uff1a]|\n)")
_SPACE: Final = re.compile(r"[ \t]{1,9}+")
_OBJECT: Final = re.compile(r"[ \t]{0,9}+\{")
_BREAK: Final = re.compile(r"[ \t]{0,20}+\n\s{0,20}+")
_TAG: Final = r"</[\w|:-]{1,60}+>|<[|\uff5c][\w\u2581]{1,40}+[|\uff5c]>"
_CLOSE: Final = re.compile(
    rf"(?>(?:{_TAG}|[^\w\n{{(\[<]|_)*)(?>(?:\n[ \t]*+(?:{_TAG}|[\])}}>*;,\"'~=-]{{1,4}}+)[ \t]*+(?=\n|\Z))*)(?=\n|\Z)"
)
_CLOSING: Final = re.compile(
    rf"(?>(?:{_TAG}|[^\w{{(\[<]|_)*)<(?>(?:/[\w|:-]{{0,60}}+|[|\uff5c][\w\u2581]{{0,40}}+[|\uff5c]?+)?)\Z"
)
_HOLDER: Final = re.compile(
    r"[^\w{(\[\n]{0,40}+(?>(?:with|and)?)[^\w{(\[\n]{0,40}+(?:the[ \t]++)?"
    r"(?:arguments?|args|kwargs|inputs?|parameters?|params|json)\b[^\w{(\[\"']{0,40}+(?=\{)",
    re.IGNORECASE,
)
_MAY_HOLD: Final = re.compile(
    r"[^\w{(\[\n]{1,40}+(?:(?:w(?:i(?:th?)?)?|a(?:n(?:d)?)?|with|and)?[^\w{(\[\n]{0,40}+(?:the[ \t])?)"
    r"[a-z]{0,10}[^\w{(\[\"']{0,40}\Z",
    re.IGNORECASE,
)
SPACES: Final = frozenset({"functions", "function", "tools", "tool", "default_api"})
"""What stands before a tool's name and a dot; with anything else before it, a name is not the tool's."""
_VERBS: Final = frozenset({"call", "calling", "invoke", "invoking", "execute", "executing"})
_EMPHASIS: Final = re.compile(r"(?>(?:[*_~`#\s]|[-+](?=\s)|[@/!$]|[\w ]{1,40}+[*_]{0,4}+:)*)\Z")
_BETWEEN: Final = re.compile(r"[*_`]{0,4}+[ \t]?")
_STRING: Final = re.compile(
    r"\"\s{0,9}(?:\\[nrt]|\s){0,9}(?=[\[{<]|[\w.]{1,100}+\()(?>(?:[^\"\\\n]|\\.)*)(?P<closed>\")?"
)
_LABELS: Final = frozenset(
    re.findall(
        r"[^\s]+",
        "tool tools tool_name toolname tool-name function functions function_name fn func name call calls calling "
        "tool_call toolcall tool-call function_call function-call action act use using usage invoke invoking "
        "invocation run running execute executing exec command cmd request api method operation step next "
        "werkzeug aufruf funktion aktion outil appel fonction herramienta llamada función acción ferramenta chamada "
        "função ação strumento chiamata funzione azione инструмент вызов функция действие 工具 函数 调用 操作 "
        "ツール 関数 도구 함수",
    )
)
_MOST_LABELS: Final = 6
_MOST_FAILURES: Final = 8

Inner = Callable[[str], list[Piece] | None]
"""Reads a text that is a call and nothing else, in any form."""


class Peeled:
    """Reads the calls of one reply that only a tool's name beside its arguments makes calls.

    Args:
        offer: what may be called.
        inner: reads a call that stands in a string.
    """

    __slots__ = ("_by_letters", "_inner", "_offer", "_words", "alone", "failures")

    def __init__(self, offer: Offer, inner: Inner) -> None:
        self._offer, self._inner = offer, inner
        self.alone = True
        """Whether nothing was said before what is read."""
        self.failures = 0
        """How often something was looked for in the rest of the reply in vain."""
        self._by_letters: dict[str, str] = {}
        for name in offer.tools:
            # Two tools that differ in nothing else cannot be told apart, so that neither is meant.
            letters = _letters(name)
            self._by_letters[letters] = "" if letters in self._by_letters else name
        self._words = (*self._by_letters, *_LABELS)

    def read(self, text: str, at: int, final: bool) -> Found | None:
        """The call that stands from `at`, the beginning of a line, up to the end of a line, and where it ends.

        Returns:
            The call and the place; `WAIT` if it takes more text to tell; None if no call stands there.
        """
        if self.failures > _MOST_FAILURES or text.startswith(">", at):
            return None
        if text.startswith('"', at):
            found = self._in_string(text, at, final)
            if found is not None:
                return found
        head = self._head(text, at, final)
        if head is None or isinstance(head[0], list):
            return None if head is None else WAIT
        name, place = head
        return self._beside(text, at, name, place, final)

    def _head(self, text: str, at: int, final: bool) -> tuple[str, int] | Found | None:
        """The tool that is named here and the place after its name, past marks and labels."""
        place = at
        for _ in range(_MOST_LABELS):
            place = after(_MARKS, text, place)
            broken = _BREAK.match(text, place)
            if broken is not None and place > at:
                place = after(_MARKS, text, broken.end())
            word = _WORD.match(text, place)
            if word is None:
                return WAIT if not final and place >= len(text) - 1 else None
            whole = word.group().rstrip("_-.")
            if not final and word.end() >= len(text) - 1:
                begun = _letters(whole.rpartition(".")[2])
                return WAIT if any(one.startswith(begun) for one in self._words) else None
            name = self._named(whole)
            if name:
                return name, word.start() + len(whole)
            if whole.lower() not in _LABELS:
                return None
            place = word.end()
            labelled = _LABELLED.match(text, place)
            if labelled is None and not self._label_follows(text, place, whole.lower()):
                return WAIT if not final and self._may_follow(text, place) else None
        return None

    def _label_follows(self, text: str, place: int, word: str) -> bool:
        """Whether the next word is of the same label, "use tool:", or is a tool that is called, "call search {…}"."""
        space = _SPACE.match(text, place)
        follows = None if space is None else _WORD.match(text, space.end())
        if follows is None:
            return False
        verb = word in _VERBS and self._named(follows.group()) != "" and _OBJECT.match(text, follows.end()) is not None
        return verb or (follows.group().lower() in _LABELS and self._named(follows.group()) == "")

    def _may_follow(self, text: str, place: int) -> bool:
        """Whether a mark, another word of the label or a tool may follow the label when more has come."""
        rest = text[place : place + 120].lstrip("*_`\"' \t")
        word = _letters(rest.rstrip(" \t"))
        return not rest or any(one.startswith(word) for one in self._words)

    def _named(self, word: str) -> str:
        """The tool that a word names, in whatever letters; empty if none."""
        space, _, last = word.rpartition(".")
        known = self._offer.known(word) if not space or space.lower() in SPACES or word in self._offer.tools else None
        return known or "" if known is not None or space else self._by_letters.get(_letters(last), "")

    def _unclosed(self, final: bool) -> Found | None:
        """For what has no end: that was looked for in all of the text, which is done a few times only."""
        self.failures += final
        return None if final else WAIT

    def _beside(self, text: str, at: int, name: str, place: int, final: bool) -> Found | None:
        """The call of `name`, with what stands at `place` as its arguments."""
        exact = text.endswith(name, at, place)
        if not exact and text.endswith("=", at, place - len(name)):
            return None  # a formula, as of a table
        start = after(_BETWEEN, text, place)
        if text[start : start + 1] == "(" and (exact or start == place):
            return self._in_parentheses(text, at, name, place, start, final)
        gap = after(_GAP, text, place)
        if not final and gap >= len(text) - 1:
            return WAIT
        holder = _HOLDER.match(text, place)
        gap = gap if holder is None else holder.end()
        if not final and _MAY_HOLD.match(text, place):
            return WAIT
        if text[gap : gap + 1] == "{" and (found := self._object(text, at, name, gap, final)) is not None:
            return found
        if not exact:
            return None
        if text[start : start + 1] == "[" and " " not in text[place:start]:  # "search [1]" has a reference
            return self._in_brackets(text, at, name, start, final)
        if text.startswith("/>", start) and text[at:place].strip().startswith("<"):
            return self._element(text, at, name, start + 2, final)
        return self._in_pairs(text, at, name, gap, place, final)

    def _in_parentheses(self, text: str, at: int, name: str, place: int, start: int, final: bool) -> Found | None:
        end = end_of_call(text, start)
        if end < 0:
            return self._unclosed(final)
        tool, inside = self._offer.tools[name], text[start + 1 : end - 1].strip()
        try:
            arguments = arguments_of(inside, tool)
        except Unreadable as error:
            says_name = names_argument(inside, self._offer.properties(name))
            if not says_name or pairs.is_signature(inside):
                return None
            return self._closed(text, end, Fault(text[at:end].strip(), str(error), name), final)
        if not self._fits(name, arguments):
            return None
        plain = _EMPHASIS.match(text[at : place - len(name)]) is not None and text.endswith(name, at, place)
        return self._closed(text, end, Call(name, arguments), final, shown="" if plain else text[at:end])

    def _object(self, text: str, at: int, name: str, start: int, final: bool) -> Found | None:
        end = loose.end_of(text, start)
        if end < 0:
            return self._unclosed(final)
        json = loose.strict(text[start:end]) or ""
        held = loose.members(json) or {}
        if len(held) == 1 and not self._fits(name, json) and next(iter(held)) in pairs.HOLDERS:
            json = next(iter(held.values()))
        if not self._fits(name, json) or json == "{}":
            return None
        exact = text[at:start].rstrip(" \t\n:=>-|*_`").endswith(name)
        return self._closed(text, end, Call(name, json), final, shown="" if exact else text[at:end])

    def _in_brackets(self, text: str, at: int, name: str, start: int, final: bool) -> Found | None:
        end = end_of_call(text, start)
        if end < 0:
            return self._unclosed(final)
        inside = text[start + 1 : end - 1].strip()
        right = pairs.only(inside.strip("\"'"), name, self._offer)
        if not inside or not right:
            return None
        return self._closed(text, end, Call(name, right), final, shown=text[at:end])

    def _element(self, text: str, at: int, name: str, end: int, final: bool) -> Found | None:
        """`<name/>`: a call of a tool that takes nothing."""
        shown = text[at:end] if self._offer.properties(name) else ""
        return self._closed(text, end, Call(name, "{}"), final, shown=shown)

    def _in_pairs(self, text: str, at: int, name: str, gap: int, place: int, final: bool) -> Found | None:
        """`name` and lines of `key: value`, `key=value` and `--key value`, or the quoted text of its one argument."""
        found = pairs.read(text, place, name, self._offer, final=final)
        if found is not None and not final:
            return WAIT
        labelled = _WORD.search(text[at : place - len(name)]) is not None
        if found is not None and not (found[2] or labelled or self.alone):
            return None  # a list of what the tool takes
        if found is None and self.alone and gap > place and text[gap : gap + 1] in ('"', "'"):
            if not final:
                return WAIT
            string = pairs.quoted(text, gap, name, self._offer)
            found = None if string is None else (*string, True)
        if found is None or not self._fits(name, found[0]):
            self.failures += found is not None
            return None
        return self._closed(text, found[1], Call(name, found[0]), final, shown=text[at : found[1]])

    def _in_string(self, text: str, at: int, final: bool) -> Found | None:
        """A JSON string that holds a call and nothing else."""
        string = _STRING.match(text, at)
        if string is None or (string["closed"] is None and final):
            return None
        if string["closed"] is None or (not final and string.end() == len(text)):
            return WAIT
        inside = loose.string(string.group())
        found = None if inside is None else self._inner(inside)
        return None if found is None or text[string.end() :].strip(" \t\r\n`") else (found, len(text))

    def _fits(self, name: str, arguments: str) -> bool:
        given = loose.members(arguments)
        return given is not None and self._offer.required(name) <= given.keys() <= self._offer.properties(name).keys()

    def _closed(self, text: str, end: int, piece: Piece, final: bool, *, shown: str = "") -> Found | None:
        """`piece`, if nothing but marks follows it on its line; a fault where the text `shown` may be no call."""
        if not final and _CLOSING.match(text, end):
            return WAIT
        closed = _CLOSE.match(text, end)
        if closed is None:
            return None
        if not final and closed.end() == len(text):
            return WAIT
        return [unsure(piece, shown.strip()) if shown else piece], closed.end()


def _letters(name: str) -> str:
    return name.casefold().replace("-", "_").replace("_", "")
