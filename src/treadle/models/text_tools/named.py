"""Named: calls in which the tool's name is the tag, the key or the label: `<search>…</search>`, `{"search": {…}}`,
`Tool: search` and `Input: …` on the next line, `print(search(…))`, `to=functions.search {…}`.

Nothing but the name says that these are calls, so they are looked at only where the reply is whole, and are read only
where the arguments are a JSON object, or elements, that fit the tool; else they are faults. Pure. Neighbours:
`wrappings.py`, which has the forms that say of themselves that they are calls.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from treadle.models.text_tools import loose, pairs
from treadle.models.text_tools.attempt import arguments_from
from treadle.models.text_tools.pieces import MEANT, Call, Cut, Fault, Offer, Piece, unsure
from treadle.models.text_tools.places import after

Found = tuple[list[Piece], int]
Inner = Callable[[str, int], Found | None]
"""Reads the call that stands at a place of a whole reply in a form of `wrappings.py`."""

_NAME: Final = r"[A-Za-z_][\w.-]{0,99}+"
_MARKS: Final = r"[*_#]{0,6}+[ \t]*+"
_VARIABLES: Final = ("result", "results", "response", "output", "answer", "data", "res", "r", "out")
_LABELS: Final = ("tool", "tool name", "function", "function name", "name", "action")
_SPOKEN: Final = ("call", "calling", "tool call", "function call")
_LABEL: Final = re.compile(
    rf"{_MARKS}(?P<label>tool(?:[ _]name)?|function(?:[ _]name)?|name|action)[ \t]*+[*_]{{0,4}}+[ \t]*+:[*_]{{0,4}}+"
    rf"[ \t]*+[`\"'*]{{0,3}}+(?P<name>{_NAME})[`\"'*]{{0,3}}+[ \t]*+(?:\n|\Z)",
    re.IGNORECASE,
)
_INPUT: Final = re.compile(
    rf"\s*+(?:[-*+][ \t]++)?{_MARKS}(?:(?:tool|function)[ _])?(?:input|arguments|args|parameters|params|kwargs)"
    r"[ \t]*+[*_]{0,4}+[ \t]*+:[*_]{0,4}+",
    re.IGNORECASE,
)
_ELEMENT: Final = re.compile(rf"<(?P<name>{_NAME})(?P<attributes>(?:\s[^<>]{{0,2000}}+)?)>")
_ATTRIBUTE: Final = re.compile(r"\s*+(?P<key>[\w-]{1,100}+)\s*+=\s*+(?:\"(?P<double>[^\"]*+)\"|'(?P<single>[^']*+)')")
_VARIABLE: Final = f"(?:{'|'.join(sorted(_VARIABLES, reverse=True))})"
_BEFORE: Final = rf"{_VARIABLE}[ \t]*+=[ \t]*+|return[ \t]++|await[ \t]++|"
_BEFORE_CALL: Final = re.compile(rf"{_BEFORE}print\([ \t]*+")
_BEFORE_EQUALS: Final = re.compile(rf"(?:{_VARIABLE}|print)[ \t]*+")
_CODE: Final = re.compile(rf"(?>(?:{_BEFORE}(?P<print>print\([ \t]*+))+)(?P<name>{_NAME})\(")
_CALLING: Final = re.compile(
    rf"{_MARKS}(?:tool[ _-]?|function[ _-]?)?call(?:ing)?[*_]{{0,4}}+(?:[ \t]*+:[ \t]*+|[ \t]++)"
    rf"(?={_NAME}[(\[{{]|[{{\[])",
    re.IGNORECASE,
)
_HARMONY: Final = re.compile(
    rf"(?:<\|start\|>assistant[ \t]*+)?(?:<\|channel\|>\w{{1,40}}+[ \t]*+)?to=(?P<name>{_NAME})"
    rf"(?P<between>[^{{]{{0,80}}+)"
)
_HEADED: Final = re.compile(rf"(?P<name>{_NAME})[ \t]*+\n[ \t]*+`{{3}}\w*+\s*+(?=\{{)")
_WRAPPER: Final = re.compile(
    r"<\|?(?P<wrapper>(?:use_)?tool(?:[_-](?:use|code|call))?|function|action|execute|call|invoke)\|?>", re.IGNORECASE
)
_WORD: Final = re.compile(_NAME)
_FENCE: Final = re.compile(r"`{3,}+\w*+\s*+")
_FENCE_END: Final = re.compile(r"\s*+`{3,}+[ \t]*+(?=\n|\Z)")
_END: Final = re.compile(r"(?>(?:[\s`]|<\|\w{1,40}+\|>)*)\Z")
_OVER: Final = re.compile(r"\s*+<\|call\|>")
"""What ends a call of gpt-oss's, and its turn: what follows is made up."""


def calls_by_key(json: str, offer: Offer) -> list[Piece] | None:
    """The calls in an object, or an array of such, whose keys are tools: `{"search": {"query": "x"}}`; else None."""
    items = loose.items(json) if json.startswith("[") else [json]
    found: list[Piece] = []
    for item in items or ():
        members = loose.members(item)
        if not members or not members.keys() <= offer.tools.keys() or members.keys() <= offer.answer_keys:
            return None
        for name, value in members.items():
            made = _of_object(name, value, item, offer)
            if made is None:
                return None
            found.append(made)
    return found or None


def opens(text: str, at: int, offer: Offer) -> bool:
    """Whether one of these forms, but for an object, begins at `at`; what it means is told when the reply is whole."""
    for pattern in (_LABEL, _ELEMENT, _CODE, _HARMONY, _HEADED):
        match = pattern.match(text, at)
        if match is not None:
            return offer.known(match["name"]) is not None or (pattern is _ELEMENT and _is_wrapper(text, at))
    return _CALLING.match(text, at) is not None or _is_wrapper(text, at)


def may_open(text: str, at: int, offer: Offer) -> bool:
    """Whether one of these forms may begin at `at` when more has come; an element and an object are known elsewhere."""
    line = text[at : at + 300].lstrip("*_#").lstrip()
    if "\n" in line:
        head, _, rest = line.partition("\n")
        return offer.known(head.strip()) is not None and "```".startswith(rest.strip()[:3]) and len(rest) < 40
    if line.startswith(("<|start|>", "<|channel|>")) or (line and ("to=".startswith(line) or line.startswith("to="))):
        return len(line) < 200
    word, colon, name = (part.strip() for part in line.partition(":"))
    word = word.lower().replace("_", " ").rstrip("* ")
    if not colon:
        # "Calling search(" has no colon, code has none either.
        return any(one.startswith(word) for one in (*_LABELS, *_SPOKEN)) or _may_be_code(line, offer)
    return word in (*_LABELS, *_SPOKEN) and _begins_a_name(name.strip("`\"'* "), offer)


def read(text: str, at: int, offer: Offer, inner: Inner) -> Found | None:
    """The call that stands at `at` of a whole reply in one of these forms, an object excepted, and where it ends."""
    if (label := _LABEL.match(text, at)) is not None:
        return _labelled(text, label, offer)
    if (element := _ELEMENT.match(text, at)) is not None and element["name"] in offer.tools:
        return _element(text, element, offer)
    if (code := _CODE.match(text, at)) is not None:
        made = inner(text, code.start("name"))
        end = 0 if made is None else made[1]
        if made is None or code["print"] is None:
            return None if made is None else ([unsure(one, text[at:end]) for one in made[0]], end)
        if text[end : end + 1] != ")":
            return None
        return [unsure(one, text[at : end + 1]) for one in made[0]], end + 1
    if (calling := _CALLING.match(text, at)) is not None:
        made = inner(text, calling.end())
        return None if made is None else ([unsure(one, text[at : made[1]]) for one in made[0]], made[1])
    if (before := _HARMONY.match(text, at) or _HEADED.match(text, at)) is not None:
        return _before_object(text, before, offer)
    return None


def is_code(text: str, at: int) -> bool:
    """Whether a call with something of a program around it begins at `at`: `print(search("x"))`."""
    return _CODE.match(text, at) is not None


def _labelled(text: str, label: re.Match[str], offer: Offer) -> Found | None:
    name = offer.known(label["name"])
    given = _INPUT.match(text, label.end())
    if name is None or (
        given is None and (text[label.end() :].strip() or label["label"].lower() in ("name", "action"))
    ):
        return None
    written = text[label.start() :].strip()
    if given is None:
        return [Fault(written, MEANT.format(name), name)], len(text)
    start = given.end() + len(text[given.end() :]) - len(text[given.end() :].lstrip())
    if text[start : start + 1] not in ("{", "`") and pairs.read(text, given.end(), name, offer, final=True) is not None:
        return None  # lines of `key: value`, which end where no such line follows
    fence = _FENCE.match(text, start)
    start = after(_FENCE, text, start)
    end = loose.end_of(text, start) if text[start : start + 1] == "{" else -1
    if end > 0:
        made = _of_object(name, text[start:end], text[label.start() : end], offer)
        return None if made is None else ([made], after(_FENCE_END, text, end))
    value = text[start:].rstrip("` \t\n" if fence is not None else None)
    made = Fault(written, "the arguments are not valid JSON", name) if value.startswith("{") else None
    if made is None:
        right = arguments_from(value, offer.tools[name])
        made = Fault(written, MEANT.format(name), name, right if loose.members(right) else "")
    return [made], len(text)


def _element(text: str, element: re.Match[str], offer: Offer) -> Found | None:
    name, attributes = element["name"], element["attributes"]
    properties = offer.properties(name)
    empty = attributes.endswith("/") or text[element.end() - 2] == "/"
    given = {one["key"]: one["double"] or one["single"] or "" for one in _ATTRIBUTE.finditer(attributes)}
    close = text.find(f"</{name}>", element.end())
    end = element.end() if empty else len(text) if close < 0 else close + len(name) + 3
    body = "" if empty else text[element.end() : len(text) if close < 0 else close].strip()
    written = text[element.start() : end]
    if given or attributes.strip(" /\t\n"):
        if not given or not given.keys() <= properties.keys():
            return None
        return [Fault(written, MEANT.format(name), name, msgspec.json.encode(given).decode())], end
    if not body:
        if close < 0 and not empty:
            return None
        return [Fault(written, MEANT.format(name), name) if properties else Call(name, "{}")], end
    made: Piece | None = None
    if body.startswith("{"):
        made = _of_object(name, body, written, offer)
    elif "<" in body:
        made = _of_children(name, body, written, offer)
    elif _takes_one_text(name, offer):
        made = Fault(written, MEANT.format(name), name, arguments_from(body, offer.tools[name]))
    if close < 0 and isinstance(made, Call):
        made = Fault(written, "the element is not closed, so what is in it may be cut off", name)
    return None if made is None else ([made], end)


def _of_children(name: str, body: str, written: str, offer: Offer) -> Piece | None:
    """The call whose arguments are elements of their own; None if the first of them is no parameter of the tool."""
    properties = offer.properties(name)
    values: dict[str, str] = {}
    at = 0
    while at < len(body):
        opened = _ELEMENT.match(body, at)
        key = "" if opened is None else opened["name"]
        if opened is None or key not in properties:
            return Fault(written, MEANT.format(name), name) if values else None
        close = body.find(f"</{key}>", opened.end())
        if close < 0 or key in values:
            return Fault(written, "an argument of it is not closed, or is given twice", name)
        values[key] = loose.spelled(body[opened.end() : close], properties[key])
        at = close + len(key) + 3
        at += len(body[at:]) - len(body[at:].lstrip())
    if not offer.required(name) <= values.keys():
        return Fault(written, MEANT.format(name), name)
    return Call(name, loose.object_of(values))


def _before_object(text: str, before: re.Match[str], offer: Offer) -> Found | None:
    """A name that stands right before its arguments: after `to=`, or over a fence, which may be shown."""
    name = offer.known(before["name"])
    end = loose.end_of(text, before.end()) if text[before.end() : before.end() + 1] == "{" else -1
    if name is None or end < 0:
        return None
    rest = _END.match(text, end)
    over = before.re is _HARMONY and _OVER.match(text, end) is not None
    if rest is None and not over:
        return None
    made = _of_object(name, text[before.end() : end], text[before.start() : end], offer)
    if made is not None and before.re is _HEADED:
        made = unsure(made, text[before.start() : end])
    if made is None:
        return None
    return ([made] if rest is not None else [made, Cut()]), len(text)


def _is_wrapper(text: str, at: int) -> bool:
    return _WRAPPER.match(text, at) is not None


def unread(text: str, at: int, offer: Offer) -> Found | None:
    """An element that says that a tool is called, in which something stands that nobody can read, but for the name."""
    opened = _WRAPPER.match(text, at)
    if opened is None or not re.search(r"</[^<>\n]{1,60}+>\s*+\Z", text[-100:]):
        return None
    words = _WORD.findall(text[opened.end() : opened.end() + 200])
    name = next((known for word in words if (known := offer.known(word)) is not None), None)
    if name is None:
        return None
    return [Fault(text[at:].strip(), f"the element is not read as a call of {name}", name)], len(text)


def _of_object(name: str, json: str, written: str, offer: Offer) -> Piece | None:
    """The call with the object `json` as its arguments; a fault where it lacks some; None if it is something else."""
    strict = loose.strict(json)
    given = loose.members(strict or "")
    properties = offer.properties(name)
    if given is None:
        opened = json.lstrip().startswith("{") and strict is None
        return Fault(written, "the arguments are not valid JSON", name) if opened else None
    if not given.keys() <= properties.keys() or (not given and not properties):
        return None if given else Fault(written, MEANT.format(name), name)
    if not offer.required(name) <= given.keys():
        return Fault(written, f"arguments of {name} are missing", name)
    return Call(name, strict or "{}") if given else Fault(written, MEANT.format(name), name)


def _takes_one_text(name: str, offer: Offer) -> bool:
    properties = offer.properties(name)
    return len(properties) == 1 or len(offer.required(name)) == 1


def _may_be_code(line: str, offer: Offer) -> bool:
    rest = line
    while (before := _BEFORE_CALL.match(rest)) is not None:
        rest = rest[before.end() :]
    if not rest:
        return True
    words = (*_VARIABLES, "return", "await", "print(")
    begun = any(one.startswith(rest) for one in words) or _BEFORE_EQUALS.fullmatch(rest) is not None
    return begun or (rest != line and _begins_a_name(rest, offer)) or _begins_call(line, offer)


def _begins_call(line: str, offer: Offer) -> bool:
    """Whether a line may go on as "Calling search("."""
    word, space, name = line.partition(" ")
    if word.lower() in ("tool", "function") and space:
        word, space, name = name.partition(" ")
        if not space:
            return any(one.startswith(word.lower()) for one in ("call", "calling"))
    return bool(space) and word.lower() in ("call", "calling") and _begins_a_name(name.strip(), offer)


def _begins_a_name(text: str, offer: Offer) -> bool:
    last = text.rpartition(".")[2]
    return any(name.startswith(last) for name in offer.tools) or any(
        space.startswith(text) for space in ("functions.", "tools.", "default_api.")
    )
