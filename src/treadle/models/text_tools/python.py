"""Python: calls written as Python writes them, `name(1, tags=["x"])`, to the JSON text of their arguments.

Pure. Python's own `ast` reads them, literals only, and the tool's schema says which parameter a place means. Nothing is
evaluated, and what is not a literal is not read. Neighbours: `attempt.py`, `react.py`, `neighbours.py`.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from treadle.kernel.messages import Json, ToolSpec
from treadle.models.text_tools import loose

_STRING: Final = (
    r"'''(?>(?:[^'\\]|\\.|'(?!''))*)(?:''')?|\"\"\"(?>(?:[^\"\\]|\\.|\"(?!\"\"))*)(?:\"\"\")?"
    r"|'(?>(?:[^'\\\n]|\\.)*)'?|\"(?>(?:[^\"\\\n]|\\.)*)\"?"
)
_BRACKETS: Final = re.compile(rf"(?P<string>{_STRING})|(?P<comment>\#[^\n]*)|[()\[\]{{}}]", re.DOTALL)
_STRINGS: Final = re.compile(rf"(?P<prefix>(?<!\w)[A-Za-z]{{1,2}})?(?P<string>{_STRING})", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = frozenset("\n\\'\"abfnrtvxNuU01234567")
# The parser warns of these, and would do so on the standard error of whoever uses us.
_WARNED: Final = re.compile(r"\d(?:and|else|for|if|in|is|not|or)\b")
_WARNED_IN_TEXT: Final = re.compile(r"\\[4-7][0-7][0-7]")
_WORDS: Final = frozenset({"true", "false", "null"})
_LINES: Final = re.compile(rb"\r\n|\r|\n")
_MOST_CHARACTERS: Final = 200_000
_DEEPEST: Final = 40
_PAIRS: Final = {"(": ")", "[": "]", "{": "}"}


class Unreadable(ValueError):
    """What stands there is no call with literal arguments that fit the tool; its text says why."""


def end_of_call(text: str, start: int) -> int:
    """Where the parenthesis or bracket that opens at `start` is closed; -1 if it is not. Strings do not count."""
    opened: list[str] = []
    for match in _BRACKETS.finditer(text, start):
        if match.lastgroup == "string":
            if not _closed(match.group()):
                return -1
        elif match.lastgroup != "comment":
            bracket = match.group()
            if bracket in _PAIRS:
                opened.append(_PAIRS[bracket])
            elif opened.pop() != bracket:
                return -1
            if len(opened) > _DEEPEST:
                return -1
            if not opened:
                return match.end()
    return -1


def arguments_of(inside: str, tool: ToolSpec | None) -> str:
    """The JSON text of the arguments in `inside`, which stands between the parentheses of a call of `tool`.

    Raises:
        Unreadable: it is not Python, holds something else than literals, or has places that the tool has not.
    """
    call, lines = _parsed(inside)
    keywords: dict[str, str] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise Unreadable("** is no argument")
        if keyword.arg in keywords:
            raise Unreadable(f"the argument {keyword.arg} was given twice")
        keywords[keyword.arg] = _json(keyword.value, lines)
    places = [_json(node, lines) for node in call.args]
    if not keywords and len(places) == 1 and places[0].startswith("{") and _is_whole(places[0], tool):
        return places[0]
    return bound(places, keywords, tool)


def bound(places: Sequence[str], keywords: Mapping[str, str], tool: ToolSpec | None) -> str:
    """The JSON text of an object of arguments that were given by place and by name, each as JSON text.

    Raises:
        Unreadable: there are more places than `tool` has parameters, or one of them was given by name as well.
    """
    names = list(_properties(tool))
    if len(places) > len(names):
        takes = f"{len(names)} argument{'' if len(names) == 1 else 's'}" if names else "no argument by place"
        raise Unreadable(f"{tool.name if tool else 'the tool'} takes {takes}, and {len(places)} were given by place")
    values = dict(zip(names, places, strict=False))
    for name, value in keywords.items():
        if name in values:
            raise Unreadable(f"the argument {name} was given twice")
        values[name] = value
    return loose.object_of(values)


def _properties(tool: ToolSpec | None) -> Json:
    found = {} if tool is None else tool.input_schema.get("properties", {})
    return found if isinstance(found, dict) else {}


def _is_whole(json: str, tool: ToolSpec | None) -> bool:
    """Whether an object that stands alone is all the arguments, and not the first of them."""
    properties = _properties(tool)
    first = next(iter(properties.values()), None)
    is_object = isinstance(first, dict) and first.get("type") == "object"
    if not is_object:
        return True
    inside = loose.members(json) or {}
    if inside and inside.keys() <= properties.keys():
        raise Unreadable("the object may be all the arguments or the first of them; give them by name")
    return False


def _parsed(inside: str) -> tuple[ast.Call, list[bytes]]:
    source = f"_({_with_plain_escapes(inside)}\n)"
    if len(source) > _MOST_CHARACTERS:
        raise Unreadable("it is too long to be read as a call")
    bare = _STRINGS.sub("''", source)
    if "\\" in bare or _WARNED.search(bare) or _WARNED_IN_TEXT.search(source) or end_of_call(source, 1) != len(source):
        raise Unreadable("the brackets and quotes in it do not match")
    try:
        found = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unreadable("it is not Python: texts stand in quotes, and commas between arguments") from None
    if not isinstance(found, ast.Call) or not isinstance(found.func, ast.Name) or found.func.id != "_":
        raise Unreadable("it is not one call")
    return found, _LINES.split(source.encode())


def _with_plain_escapes(source: str) -> str:
    """`source`, in which an escape that Python has not got stands for itself, as it does in Python, but unwarned."""
    if "\\" not in source:
        return source

    def plain(match: re.Match[str]) -> str:
        if "r" in (match["prefix"] or "").lower():
            return match.group()
        body = _ESCAPE.sub(lambda one: one.group() if one[1] in _ESCAPES else f"\\\\{one[1]}", match["string"])
        return f"{match['prefix'] or ''}{body}"

    return _STRINGS.sub(plain, source)


def _closed(string: str) -> bool:
    quote = string[:3] if string[:3] in ("'''", '"""') else string[0]
    return len(string) >= 2 * len(quote) and string.endswith(quote)


def _json(node: ast.expr, lines: list[bytes]) -> str:
    """The JSON text of a literal; numbers keep the digits that they were written in."""
    match node:
        case ast.Constant(value=float()):
            written = lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()
            return loose.number(written.replace("_", ""))
        case ast.Constant(value=bool() | None | str() | int() as value):
            return _constant(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if value is not True:
            return f"-{_json(node.operand, lines)}"
        case ast.Name(id=word) if word in _WORDS:
            return word
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return f"[{','.join(_json(item, lines) for item in items)}]"
        case ast.Dict(keys=keys, values=values):
            named = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
            if len(named) != len(keys) or len(set(named)) != len(named):
                raise Unreadable("the keys of an object are texts, each once")
            pairs = zip(named, values, strict=True)
            return f"{{{','.join(f'{_constant(key)}:{_json(value, lines)}' for key, value in pairs)}}}"
        case ast.Name(id=word):
            raise Unreadable(f"{word} stands there without quotes")
        case _:
            raise Unreadable("an argument is no literal: a text in quotes, a number, True, False, None, a list, a dict")


def _constant(value: bool | int | str | None) -> str:
    try:
        return str(value) if type(value) is int else msgspec.json.encode(value).decode()
    except ValueError:  # half of a surrogate pair, or more digits than Python writes
        raise Unreadable("a value in it cannot be written as JSON") from None
