"""Tags: a call is an element, as the Hermes and Qwen families write it, and in the other forms that models use.

Pure. `<tool_call>{json}</tool_call>`, `<tool name="x">{json}</tool>`, `<function=x>{json}</function>`, and
`<invoke name="x"><parameter name="a">1</parameter></invoke>` with or without what they are usually wrapped in.
Neighbours: `attempt.py`, `loose.py`.
"""

import re
from functools import cache
from typing import Final

import msgspec

from treadle.models.text_tools import fences, loose
from treadle.models.text_tools.attempt import arguments_from, broken, pieces_of
from treadle.models.text_tools.pieces import Call, Cut, Fault, Offer, Piece, Prose, Scanner
from treadle.models.text_tools.places import after
from treadle.models.text_tools.scan import FINAL, MAY_BE_FINAL, Scan

_CALL: Final = r"\|?(?:tool[_-]?call|function[_-]?call)\|?"
_CALLS: Final = r"\|?(?:tool[_-]?calls|function[_-]?calls)\|?"
_STARTS: Final = (
    r"(?P<open>(?<!`)<(?P<element>tool|invoke|function)(?:\s{1,9}+name\s{0,9}+=\s{0,9}+|=)"
    r"(?P<name>\"[^\"<>\n]{0,200}+\"|'[^'<>\n]{0,200}+'|[^\"'<>\s/]{1,200}+)\s{0,9}+(?P<empty>/?)>)"
    rf"|(?P<wrap>(?<!`)<{_CALL}>)|(?P<outer>(?<!`)</?(?:{_CALLS}|\w{{1,20}}+:(?:tool|function)[_-]?calls?)>)"
    rf"|(?P<close></(?:{_CALL}|tool|invoke|function)>)"
    r"|(?P<result><(?:tool_response|tool_result|tool_results|function_results|observation)[ >])"
    rf"|(?P<fence>{fences.LEAD}`{{3,}}+[ \t]*+(?>(?:xml|html|json|text|tool\w*+)?)\s*+"
    r"(?=</?(?:tool|function|invoke|\|(?:tool|function)[_-]?calls?\|)))"
    rf"|(?P<code>{fences.LEAD}(?:`{{3,}}+|~{{3,}}+)[^\n`]*+(?:\n|\Z))|(?P<quoted>^[ \t]*+>[^\n]*+(?:\n|\Z))|{FINAL}"
)
_STARTS_AT: Final = re.compile(_STARTS, re.MULTILINE | re.IGNORECASE)
_MAY_START: Final = re.compile(
    rf"{MAY_BE_FINAL}|`?<[^<>]{{0,200}}+\Z|`\Z|{fences.LEAD}(?:[-*+\d.)]{{0,4}}|~{{1,2}}|`{{1,2}}|>[^\n]*+"
    r"|`{3,}+[^\n`]*+(?:\n\s*+)?(?:</?\|?[\w-]{0,14}+)?|~{3,}+[^\n`]*+)\Z",
    re.MULTILINE,
)
_OPEN_LANGUAGES: Final = frozenset({"", "xml", "html", "json", "text", "tool_call", "tool_calls", "tool_code"})
_FENCE_END: Final = re.compile(r"[ \t]*+(?:`{3,}+|~{3,}+)[ \t]*+(?:\n|\Z)")
_PARAMETER: Final = re.compile(
    r"<(?:parameter|param|arg)(?:\s{1,9}+name\s{0,9}+=\s{0,9}+|=)[\"']?(?P<name>[^\"'<>\s]{1,200}+)[\"']?[^<>]{0,200}+>"
    r"(?P<value>.*?)(?:</(?:parameter|param|arg)>|(?=<(?:parameter|param|arg)[\s=])|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_SPACE: Final = re.compile(r"\s*+(?:`{3,}+\w*+\s*+)?")
_WORD: Final = re.compile(r"[\w.-]{1,100}+")
_GAP: Final = re.compile(r"[\s,;]*+")
_ENDS_CALL: Final = "tool[_-]?calls?|function[_-]?calls?|tool_response"
_ENDS_ELEMENT: Final = f"tool|invoke|function|{_ENDS_CALL}"
_MOST_UNCLOSED: Final = 8
_LONGEST: Final = 600
"""More characters than the beginning of an element has that names a tool."""


@cache
def _next_of(tags: str) -> re.Pattern[str]:
    return re.compile(rf"</?\|?(?:{tags})\b", re.IGNORECASE)


class TagsFormat:
    """Calls as elements; several calls are several elements."""

    stop: tuple[str, ...] = ()

    def how_to(self, offer: Offer, example: str) -> str:
        """The instructions on how to call a tool."""
        several = (
            " To call several tools at once, write several such elements."
            if offer.parallel
            else " Call one tool at a time."
        )
        return (
            "To call a tool, write its name and arguments as JSON between these tags, and nothing after them:\n\n"
            f"{example}\n\nThe result comes in the next message, between <tool_response> tags; never write it yourself."
            f"{several} When you need no tool, answer in plain words, without these tags."
        )

    def call(self, name: str, arguments: str) -> str:
        """A call as text."""
        named = msgspec.json.encode(name).decode()
        return f'<tool_call>\n{{"name": {named}, "arguments": {arguments}}}\n</tool_call>'

    def said(self, thoughts: str, text: str, calls: list[str]) -> str:
        """What an assistant message said, as text."""
        return "\n".join([*([text] if text else []), *calls])

    def result(self, name: str, number: int, count: int, content: str) -> str:
        """The result of a call, as text."""
        which = f' call="{number}"' if count > 1 else ""
        return f'<tool_response name="{name}"{which}>\n{content}\n</tool_response>'

    def scanner(self, offer: Offer) -> Scanner:
        """A scanner for one reply."""
        return _TagsScanner(offer)


class _TagsScanner(Scan):
    __slots__ = ("_fenced", "_unclosed")

    starts = _STARTS_AT
    may_start = _MAY_START

    def __init__(self, offer: Offer) -> None:
        super().__init__(offer)
        self._fenced = False
        self._unclosed = 0

    def started(self, start: re.Match[str], text: str, final: bool, pieces: list[Piece]) -> int:
        """See `Scan`."""
        match start.lastgroup:
            case "open":
                return self._element(text, start, final, pieces)
            case "wrap":
                return self._wrapped(text, start, final, pieces)
            case "result":
                pieces.append(Cut() if self.called else Prose(start.group()))
            case "outer" if start.group()[1] != "/":
                return self._around(text, start, final, pieces)
            case "close" | "outer":
                if not self.called:
                    pieces.append(Prose(start.group()))
            case "fence":
                self._fenced = True
            case "quoted":
                pieces.append(Prose(start.group()))
            case _:
                self._fence(start.group(), pieces)
        return start.end()

    def _fence(self, line: str, pieces: list[Piece]) -> None:
        if self._fenced and _FENCE_END.fullmatch(line):
            self._fenced = False  # it closes the fence around a call, which is no part of the answer either
            return
        fence = fences.OPEN.match(line)
        if fence is not None and fence["language"].lower() not in _OPEN_LANGUAGES:
            self.code = fences.closing(fence["fence"])
        pieces.append(Prose(line))

    def _until(self, text: str, at: int, tags: str, final: bool) -> int:
        """Where the next of `tags` is; without one, the end of the reply, or -1 if that has not come."""
        match = _next_of(tags).search(text, at)
        if match is not None and (final or match.end() < len(text)):
            return match.start()
        return len(text) if final else -1

    def _end_of(self, text: str, at: int, final: bool) -> int:
        """As `loose.end_of`; looked for a few times only where it is not found, as each time looks through the rest."""
        end = -1 if self._unclosed > _MOST_UNCLOSED else loose.end_of(text, at)
        self._unclosed += final and end < 0
        return end

    def _around(self, text: str, start: re.Match[str], final: bool, pieces: list[Piece]) -> int:
        """What stands around several calls: they are elements, or in one array. Around anything else it is said."""
        at = after(_SPACE, text, start.end())
        opens = text[at : at + _LONGEST]
        if not final and (not opens or (opens[0] == "<" and ">" not in opens and len(opens) < _LONGEST)):
            return start.start()
        if opens[:1] in ("{", "["):
            return self._wrapped(text, start, final, pieces)
        inner = _STARTS_AT.match(text, at)
        if inner is None or inner.lastgroup not in ("open", "wrap"):
            pieces.append(Prose(start.group()))
        return start.end()

    def _wrapped(self, text: str, start: re.Match[str], final: bool, pieces: list[Piece]) -> int:
        """A `<tool_call>` and what is in it: JSON, another element, or something else."""
        at = after(_SPACE, text, start.end())
        if not final and at + 20 > len(text):
            return start.start()
        inner = _STARTS_AT.match(text, at)
        if inner is not None and inner.lastgroup in ("open", "wrap"):
            return at
        if text[at : at + 1] not in ("{", "["):
            end = self._until(text, at, _ENDS_CALL, final)
            if end < 0:
                return start.start()
            written = text[start.start() : end].strip()
            first = _WORD.match(text, at)
            tool = "" if first is None else self.offer.known(first.group()) or ""
            self.take([Fault(written, "between the tags stands no JSON object that names a tool", tool)], pieces)
            return end
        found: list[Piece] = []
        while at < len(text) and text[at] in "{[":
            end = self._end_of(text, at, final)
            if end < 0:
                if not final:
                    return start.start()
                end = self._until(text, at, _ENDS_CALL, final)
                meant = broken(text[at:end].strip(), self.offer)
                found.append(meant or Fault(text[at:end].strip(), "the JSON between the tags has no end"))
                at = end
                break
            json = text[at:end]
            calls = pieces_of(json, self.offer)
            found += calls or [Fault(json, "the JSON between the tags does not name a tool and its arguments")]
            at = after(_GAP, text, end)
            if not final and at == len(text):
                return start.start()
        return self._taken(found, text, start, at, final, pieces)

    def _taken(
        self, found: list[Piece], text: str, start: re.Match[str], end: int, final: bool, pieces: list[Piece]
    ) -> int:
        """Takes what was found up to `end`, unless it is spoken of, and returns where it ends; `start` to wait."""
        sure = self.sure(found, text, start.start(), end, final)
        if sure is None:
            return start.start()
        self.take(sure, pieces)
        return end

    def _element(self, text: str, start: re.Match[str], final: bool, pieces: list[Piece]) -> int:
        """An element that names its tool, with JSON or parameters in it."""
        written = start["name"].strip("\"'")
        name = self.offer.known(written) or written
        if start["empty"]:
            return self._taken([Call(name, "{}")], text, start, start.end(), final, pieces)
        at = after(_SPACE, text, start.end())
        if not final and at == len(text):
            return start.start()
        if text[at : at + 1] == "{":
            end = self._end_of(text, at, final)
            if end < 0 and not final:
                return start.start()
            if end > 0:
                made = Call(name, arguments_from(text[at:end], self.offer.tools.get(name)))
                return self._taken([made], text, start, end, final, pieces)
        end = self._until(text, at, _ENDS_ELEMENT, final)
        if end < 0:
            return start.start()
        written = text[start.start() : end]
        # Whatever says that the reply is whole, a value that nothing closes may be the beginning of one.
        found = self._named(name, text[at:end], written) if text[end : end + 2] == "</" else _cut_off(written)
        return self._taken([found], text, start, end, final, pieces)

    def _named(self, name: str, body: str, written: str) -> Piece:
        if not name:
            return Fault(written.strip(), "the element does not name a tool")
        parameters = list(_PARAMETER.finditer(body))
        tool = self.offer.tools.get(name)
        if not parameters:
            return Call(name, arguments_from(body.strip().rstrip("`").rstrip(), tool))
        properties = self.offer.properties(name)
        written_in = {match["name"]: match["value"].removeprefix("\n").removesuffix("\n") for match in parameters}
        values = {key: loose.spelled(value, properties.get(key)) for key, value in written_in.items()}
        if len(values) < len(parameters):
            return Fault(written.strip(), "a parameter is given twice", "" if tool is None else name)
        if _PARAMETER.sub("", body).strip("` \t\r\n"):
            return Fault(written.strip(), "text stands beside the parameters", "" if tool is None else name)
        return Call(name, f"{{{', '.join(f'{loose.quoted(key)}: {value}' for key, value in values.items())}}}")


def _cut_off(written: str) -> Fault:
    return Fault(written.strip(), "the element is not closed, so what is in it may be cut off")
