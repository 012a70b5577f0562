"""Wrappings: the forms in which models write calls, whatever they were asked for, where one stands on its own.

A wrapping is read exactly, or it is none: `{"name": …}`, a fence of any language around it, `[TOOL_CALLS] […]`,
`name({…})`, `name(a=1)`, `[name(a=1)]`, `name[argument]`, `<tool-call>` and the other elements, `Action:`. Pure.
Neighbours: `neighbours.py`, which says what a call that was found means; `attempt.py`, `python.py`, the formats.
"""

import re
from typing import Final

from treadle.models.text_tools import fences, loose, named, pairs
from treadle.models.text_tools.attempt import arguments_from, broken, names_argument, names_call, pieces_of
from treadle.models.text_tools.peeled import SPACES, WAIT, Found, Peeled
from treadle.models.text_tools.pieces import Call, Cut, Fault, Format, Offer, Piece, Prose, Thought, unsure
from treadle.models.text_tools.places import after, end_of_brackets
from treadle.models.text_tools.python import Unreadable, arguments_of, end_of_call
from treadle.models.text_tools.react import ReactFormat
from treadle.models.text_tools.tags import TagsFormat

_LEAD: Final = fences.LEAD.removeprefix("^")
_NAME: Final = r"[A-Za-z_][\w.-]{0,99}+"
_ELEMENT: Final = (
    r"<\|?(?:tool[_-]?calls?|function[_-]?calls?|tool|invoke|function)(?![\w-])[^<>\n]{0,200}+>"
    r"|<\w{1,20}+:(?:tool|function)[_-]?calls?>"
)
MARKER: Final = (
    r"(?:\[TOOL_(?:CALLS?|REQUEST)\]|<\|python_tag\|>|<\|tool_call_start\|>"
    r"|<[|｜]tool[▁_ ]calls?[▁_ ](?:section_)?begin[|｜]>|<[|｜]DSML[|｜]\w{1,40}+(?=[\s>｜|])[^<>\n]{0,200}+>"
    r"|<start_function_call>|<\|tools_prefix\|>)"
)
"""The marks that models write before calls and nowhere else, but where somebody asks about them."""
_OPEN: Final = re.compile(
    r"(?P<fence>`{3,}+|~{3,}+)[ \t]*+(?P<language>[\w+.-]*+)[ \t]*+(?:\n\s*+)?(?=\S)"
    r"|(?P<ticks>`{1,2}+)(?=[^`\s])"
    rf"|(?P<marker>{MARKER})|(?P<element>{_ELEMENT})"
    r"|(?P<object>(?=\{|\[\s*+\{))"
    rf"|(?P<list>\[\s*+(?={_NAME}\())"
    r"|(?P<action>(?=[*_#]{0,6}+[ \t]*+action[ \t]*+\d{0,6}+[ \t]*+[*_]{0,4}+[ \t]*+:))"
    rf"|(?P<name>{_NAME})(?P<open>[(\[]|\s{{0,2}}+(?=\{{))",
    re.IGNORECASE,
)
_FIRST: Final = re.compile(_LEAD)
_MAY_OPEN: Final = re.compile(
    r"(?:[-*+\d.)]{0,4}+|`{1,}+[ \t]*+[\w+.-]*+\s*+|~{1,}+[ \t]*+[\w+.-]*+\s*+|<[^<>\n]{0,200}+|\[[^\]\n({]{0,100}+"
    rf"|[*_#]{{0,6}}+[ \t]*+(?:a|ac|act|acti|actio|action[ \t\d*_]*+)?|(?P<name>{_NAME})\s{{0,2}}+)\Z",
    re.IGNORECASE,
)
_ACTION: Final = re.compile(
    r"[*_#]{0,6}+[ \t]*+action[ \t]*+\d{0,6}+[ \t]*+[*_]{0,4}+[ \t]*+:[*_]{0,4}+"
    r"\s*+[`\"'*]{0,4}+(?P<name>[\w.-]{1,100}+)?",
    re.IGNORECASE,
)
_MARKED: Final = re.compile(rf"\s*+(?P<name>{_NAME})\s*+(?:\[CALL_ID\][\w-]{{0,100}}+)?(?:\[ARGS\])?\s*+(?=\{{)")
_CALLS: Final = re.compile(r"<\|?(?:tool|function)[_-]?calls?", re.IGNORECASE)
GAP: Final = re.compile(
    r"(?>(?:[\s,;]|</s>|<[|｜](?!tool|function|python)[\w▁]{1,40}+[|｜]>|\[/TOOL_CALLS?\]|\[END_TOOL_REQUEST\]"
    r"|<\|tool(?:_call_end|s_suffix)\|>)*)"
)
_SPOKEN_OF: Final = re.compile(r"(?<!python_tag\|>)[ \t]++[^\W\d_]++[ \t]++\w", re.IGNORECASE)
"""What follows a mark that is spoken of: "[TOOL_CALLS] is what it writes". Code may follow that for Python."""
_WORD: Final = re.compile(_NAME)
_REST: Final = re.compile(r"[ \t]*+(?:\r?\n|\Z)")
_MORE_MARKS: Final = re.compile(r"[^\w\s`,;]")
_STRAY: Final = re.compile(r"[}\])\s]++\Z")
"""Brackets that a model closes once too often."""
_MOST_FAILURES: Final = 8


class Wrappings:
    """Reads the wrappings of one reply.

    Args:
        offer: what may be called.
    """

    __slots__ = ("_failures", "_offer", "_peeled")

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._failures = 0
        self._peeled = Peeled(offer, self._whole)

    def read(self, text: str, at: int, final: bool, *, alone: bool = True) -> Found | None:
        """The calls that stand from `at`, the beginning of a line, and where what follows them begins.

        `alone` says that the reply said nothing before them.

        Returns:
            The calls and the place; `WAIT` if it takes more text to tell; None if no call stands there.
        """
        if self._failures > _MOST_FAILURES:
            return None  # each looked through the rest of the reply
        failures = self._failures, self._peeled.failures
        found = self._found(text, at, final, alone)
        if found is None and not final and self.may_open(text, at):
            found = WAIT
        if found is WAIT:
            # It is read again when more has come: what fails then counts, however often it was looked at.
            self._failures, self._peeled.failures = failures
        return found

    def _found(self, text: str, at: int, final: bool, alone: bool) -> Found | None:
        self._peeled.alone = alone
        found: list[Piece] = []
        while True:
            one = self._one(text, after(_FIRST, text, at), final)
            if one is WAIT or (one is None and found and not final and self.may_open(text, at)):
                return WAIT
            if one is None and found and _STRAY.match(text, at):
                return (found, len(text)) if final else WAIT
            if one is None:
                return (found, at) if found else None
            found += one[0]
            at = after(GAP, text, one[1])
            if at == len(text):
                return (found, at) if final else WAIT

    def may_open(self, text: str, at: int) -> bool:
        """Whether a call may begin at `at` when more has come."""
        at = after(_FIRST, text, at)
        match = _MAY_OPEN.match(text, at)
        if match is not None and match["name"] is None:
            return True
        last = "" if match is None else match["name"].rpartition(".")[2]
        begun = match is not None and any(name.startswith(last) for name in self._offer.tools)
        return begun or named.may_open(text, at, self._offer)

    def _whole(self, text: str) -> list[Piece] | None:
        """The calls in a text that holds nothing else."""
        found = self._in_form(text, 0, final=True)
        return found[0] if found is not None and not text[found[1] :].strip() else None

    def _one(self, text: str, at: int, final: bool) -> Found | None:
        found = self._in_words(text, at, final)
        if found is None or (found is not WAIT and _MORE_MARKS.match(text, found[1])):
            return self._peeled.read(text, at, final) or found
        return found

    def _in_words(self, text: str, at: int, final: bool) -> Found | None:
        if named.opens(text, at, self._offer):
            if not final:
                return WAIT
            found = named.read(text, at, self._offer, lambda inside, place: self._in_form(inside, place, final=True))
            self._failures += found is None
            if found is not None:
                return found
            return self._in_form(text, at, final=final) or named.unread(text, at, self._offer)
        return self._in_form(text, at, final=final)

    def _in_form(self, text: str, at: int, *, final: bool) -> Found | None:
        """As `_one`, in a form that says of itself that it is a call."""
        opened = _OPEN.match(text, at)
        if opened is None:
            return None
        match opened.lastgroup:
            case "language":
                return self._fenced(text, opened, final)
            case "ticks":
                return self._quoted(text, opened, final)
            case "marker":
                return self._marked(text, opened, final)
            case "object":
                return self._object(text, at, final)
            case "list":
                return self._list(text, opened, final)
            case "element":
                return self._in_format(TagsFormat(), text, at) if final else WAIT
            case "action":
                return self._action(text, at, final)
            case _:
                return self._named(text, opened, final)

    def _fenced(self, text: str, opened: re.Match[str], final: bool) -> Found | None:
        """A fence with calls in it and nothing else."""
        fence, at = opened["fence"], opened.end()
        if named.is_code(text, at) and not opened["language"].lower().startswith("tool"):
            return None
        first = _OPEN.match(text, at)
        if first is not None and first.lastgroup in ("language", "ticks"):
            return None
        if first is not None and first.lastgroup in ("element", "action", "marker"):
            close = fences.closing(fence).search(text, at)
            if not final and (close is None or close.end() == len(text)):
                return WAIT  # what looks like the end may be the beginning of another fence
            content = text[at : len(text) if close is None else close.start()]
            inside = self._one(content, 0, True)
            if inside is None or inside[1] < len(content.rstrip()):
                return None
            return inside[0], len(text) if close is None else close.end()
        found: list[Piece] = []
        while not text.startswith(fence, at):
            if not final and fence.startswith(text[at : at + len(fence)]):
                return WAIT
            one = self._one(text, at, final)
            if one is None:
                return WAIT if not final and self.may_open(text, at) else None
            if one is WAIT:
                return WAIT
            found += one[0]
            at = after(GAP, text, one[1])
            if at == len(text):
                return (found, at) if final else WAIT
        if (first is None or first.lastgroup in ("open", "list")) and not opened["language"].lower().startswith("tool"):
            found = [unsure(piece, text[opened.start() : at]) for piece in found]
        return found, at + len(fence)

    def _quoted(self, text: str, opened: re.Match[str], final: bool) -> Found | None:
        """A call in backticks, alone on its line."""
        inner = _OPEN.match(text, opened.end())
        if inner is not None and inner.lastgroup in ("language", "ticks"):
            return None
        one = self._one(text, opened.end(), final)
        if one is None or one is WAIT:
            return one
        end = one[1] + len(opened["ticks"])
        if not final and len(text) <= end:
            return WAIT
        return (one[0], end) if text[one[1] : end] == opened["ticks"] and _REST.match(text, end) else None

    def _object(self, text: str, at: int, final: bool) -> Found | None:
        end = loose.end_of(text, at)
        if end < 0 and not final:
            return WAIT
        if end < 0:
            self._failures += 1
            meant = broken(text[at:], self._offer)
            return ([meant], len(text)) if isinstance(meant, Call) and meant.name in self._offer.tools else None
        found = pieces_of(text[at:end], self._offer)
        if found is None and (json := loose.strict(text[at:end])) is not None:
            found = named.calls_by_key(json, self._offer)
        if found is not None:
            found = [self._lacking(piece, text[at:end]) for piece in found]
        if found and all(self._exact(piece) for piece in found):
            return found, end
        unknown = found and isinstance(found[0], Call) and found[0].name not in self._offer.tools
        return (found, end) if found and unknown and names_call(text[at:end]) else None

    def _lacking(self, piece: Piece, written: str) -> Piece:
        """`piece`, or a fault for a call without any of the arguments that its tool must have."""
        if not isinstance(piece, Call) or piece.name not in self._offer.tools or self._exact(piece):
            return piece
        return Fault(written, f"arguments of {piece.name} are missing", piece.name)

    def _exact(self, piece: Piece) -> bool:
        """Whether a piece calls, or plainly means to call, a tool that there is, or says that it is the answer."""
        match piece:
            case Call(name, arguments):
                empty = not loose.members(loose.strict(arguments) or '{"": 0}')
                return name in self._offer.tools and not (empty and self._offer.required(name))
            case Fault(tool=tool):
                return bool(tool)
            case Prose(answer=answer):
                return answer
            case _:
                return False

    def _named(self, text: str, opened: re.Match[str], final: bool) -> Found | None:
        """`name(…)`, `name[…]` or `name {…}`."""
        name = self._offer.known(opened["name"])
        if name is None or (name != opened["name"] and opened["name"].partition(".")[0] not in SPACES):
            return None
        if opened["open"].strip() == "":
            return self._with_object(text, name, opened.end(), final)
        start = opened.end() - 1
        end = end_of_call(text, start) if opened["open"] == "(" else end_of_brackets(text, start)
        if end < 0:
            if final:
                self._failures += 1
            return None if final else WAIT
        inside, written = text[start + 1 : end - 1].strip(), text[opened.start() : end]
        made = self._called(name, inside, written) if opened["open"] == "(" else self._bracketed(name, inside, written)
        return None if made is None else ([made], end)

    def _called(self, name: str, inside: str, written: str) -> Piece | None:
        tool = self._offer.tools[name]
        says_name = names_argument(inside, self._offer.properties(name))
        try:
            arguments = arguments_of(inside, tool)
        except Unreadable as error:
            return Fault(written, str(error), name) if says_name and not pairs.is_signature(inside) else None
        given = loose.members(arguments) or {}
        return Call(name, arguments) if says_name or given.keys() >= self._offer.required(name) else None

    def _bracketed(self, name: str, inside: str, written: str) -> Piece | None:
        """`name[argument]` is no more than a way to write, so it is never read where nothing says that it is a call."""
        properties = self._offer.properties(name)
        if not inside or (len(properties) != 1 and len(self._offer.required(name)) != 1 and inside[0] != "{"):
            return None
        right = arguments_from(inside, self._offer.tools[name])
        return unsure(Call(name, right), written)

    def _with_object(self, text: str, name: str, at: int, final: bool) -> Found | None:
        end = loose.end_of(text, at)
        if end < 0:
            if final:
                self._failures += 1
            return None if final else WAIT
        json = loose.strict(text[at:end]) or ""
        given, properties = loose.members(json), self._offer.properties(name)
        if given is None or not self._offer.required(name) <= given.keys() <= properties.keys():
            return None
        return [Call(name, json)], end

    def _list(self, text: str, opened: re.Match[str], final: bool) -> Found | None:
        """`[name(a=1), name(b=2)]`, as models of the Llama family write calls."""
        found: list[Piece] = []
        at = opened.end()
        while not text.startswith("]", at):
            named = _OPEN.match(text, at)
            if named is None or named.lastgroup != "open" or named["open"] != "(":
                return WAIT if not final and self.may_open(text, at) else None
            one = self._named(text, named, final)
            if one is None or one is WAIT:
                return one
            found += one[0]
            at = after(GAP, text, one[1])
            if at == len(text):
                return None if final else WAIT
        return (found, at + 1) if found else None

    def _marked(self, text: str, opened: re.Match[str], final: bool) -> Found | None:
        """What follows a mark that models write before calls and nowhere else."""
        found: list[Piece] = []
        at = after(GAP, text, opened.end())
        while at < len(text):
            marked = _MARKED.match(text, at)
            start = at if marked is None else marked.end()
            if text[start : start + 1] not in ("{", "["):
                break
            end = loose.end_of(text, start)
            if end < 0:
                break
            json = text[start:end]
            if marked is None:
                calls = pieces_of(json, self._offer) or named.calls_by_key(json, self._offer)
                found += calls or [Fault(json, "what follows the mark does not call a tool")]
            else:
                name = self._offer.known(marked["name"]) or marked["name"]
                found.append(Call(name, arguments_from(json, self._offer.tools.get(name))))
            at = after(GAP, text, end)
        if not final:
            return WAIT
        if found:
            return found, at
        written = text[opened.start() :]
        if _SPOKEN_OF.match(text, opened.end()) and not self.names_tool(written):
            self._failures += 1
            return None
        return [Fault(written, "what follows the mark is no JSON")], len(text)

    def names_tool(self, text: str) -> bool:
        """Whether a tool that there is is named anywhere in a text."""
        return any(map(self._offer.known, _WORD.findall(text)))

    def _action(self, text: str, at: int, final: bool) -> Found | None:
        named = _ACTION.match(text, at)
        if named is None or (not final and named.end() >= len(text) - 1):
            return None if named is None else WAIT
        if named["name"] is None:
            known = text[named.end() : named.end() + 1] == "{"
        else:
            known = self._offer.known(named["name"].rstrip(".")) is not None
        if not known:
            return None
        return self._in_format(ReactFormat(), text, at) if final else WAIT

    def _in_format(self, form: Format, text: str, at: int) -> Found | None:
        """The rest of the reply in the format `form`, if it is calls and nothing else."""
        if self._failures > _MOST_FAILURES:
            return None  # each looked through the rest, and there may be as many as calls before it
        pieces, _ = form.scanner(self._offer).read(text[at:], 0, True)
        marked = _CALLS.match(text, at) is not None
        found: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, Prose):
                if piece.answer or piece.text.strip():
                    self._failures += 1
                    return None
            elif isinstance(piece, Cut | Thought) or (marked and isinstance(piece, Call)) or self._exact(piece):
                found.append(piece)
            else:
                self._failures += 1
                return None
        return (found, len(text)) if any(isinstance(piece, Call | Fault) for piece in found) else None
