"""Loose: JSON as models write it (single quotes, Python literals, trailing commas, comments, bare keys) made strict.

Pure. Values are never changed: numbers keep their digits, strings their characters. What cannot be read without
guessing at a value is not read at all. Neighbours: `attempt.py`, the formats.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw

_STRINGS: Final = r"\"[^\"\\]*(?:\\.[^\"\\]*)*\""
_BRACKETS: Final = re.compile(
    rf"{_STRINGS}?|[{{\[(,:=]\s*'[^'\\]*(?:\\.[^'\\]*)*'?|//[^\n]*|\#[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?|[{{}}\[\]]",
    re.DOTALL,
)
_TOKEN: Final = re.compile(
    rf"(?P<space>\s+|//[^\n]*|\#[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)|(?P<string>{_STRINGS}|'[^'\\]*(?:\\.[^'\\]*)*')"
    r"|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))|(?P<word>[A-Za-z_$][\w$-]*)|(?P<mark>[{}\[\]:,()=])",
    re.DOTALL,
)
_INSIDE: Final = re.compile(r"\\u[0-9a-fA-F]{4}|\\(.)|[\"\x00-\x1f]", re.DOTALL)
_BARE_POINT: Final = re.compile(r"^(\d+)\.(?!\d)")
_WORDS: Final = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
_DEEPEST: Final = 200


def end_of(text: str, start: int) -> int:
    """Where the object or array that begins at `start` ends; -1 if it does not, or lies deeper than 200 levels.

    Brackets in strings and comments do not count.
    """
    depth = 0
    for match in _BRACKETS.finditer(text, start):
        first = text[match.start()]
        if first in "{[":
            depth += 1
            if depth > _DEEPEST:
                return -1
        elif first in "}]":
            depth -= 1
            if depth == 0:
                return match.end()
    return -1


def at_top(text: str, start: int, place: int) -> bool:
    """Whether a key of the object that begins at `start` may stand at `place`: not in a string, nor deeper."""
    depth = 0
    for match in _BRACKETS.finditer(text, start):
        if match.start() >= place:
            break
        first = text[match.start()]
        depth += (first in "{[") - (first in "}]")
        if match.end() > place:
            return depth == 1 and first in "{," and not text[match.start() + 1 : place].strip()
    return depth == 1


def strict(text: str, *, keywords: bool = False) -> str | None:
    """`text` as strict JSON, unchanged if it is that already; None if it cannot be read.

    Args:
        text: one JSON value, strictly or loosely written.
        keywords: whether "=" may stand for ":", as in the arguments of a Python call.
    """
    text = text.strip()
    if _valid(text):
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        at = match.end()
        written = match.group()
        match match.lastgroup:
            case "space":
                continue
            case "string":
                out.append(_string(written))
            case "number":
                out.append(number(written))
            case "word":
                ahead = _TOKEN.match(text, at)
                while ahead is not None and ahead.lastgroup == "space":
                    ahead = _TOKEN.match(text, ahead.end())
                is_key = ahead is not None and (ahead.group() == ":" or (keywords and ahead.group() == "="))
                if not is_key and written not in _WORDS:
                    return None
                out.append(f'"{written}"' if is_key else _WORDS[written])
            case _:
                if written == "=" and not keywords:
                    return None
                if written in "}])" and out and out[-1] == ",":
                    out.pop()
                out.append({"(": "[", ")": "]", "=": ":"}.get(written, written))
    made = "".join(out)
    return made if _valid(made) else None


def members(json: str) -> dict[str, str] | None:
    """The JSON texts of an object's values by key; None if `json` is no object."""
    try:
        found = msgspec.json.decode(json, type=dict[str, Raw])
    except (ValueError, RecursionError):
        return None
    return {key: bytes(raw).decode().strip() for key, raw in found.items()}


def items(json: str) -> list[str] | None:
    """The JSON texts of an array's values; None if `json` is no array."""
    try:
        return [bytes(raw).decode().strip() for raw in msgspec.json.decode(json, type=list[Raw])]
    except (ValueError, RecursionError):
        return None


def string(json: str) -> str | None:
    """The text that a JSON string holds; None if `json` is no string."""
    try:
        return msgspec.json.decode(json, type=str)
    except (ValueError, RecursionError):
        return None


def quoted(text: str) -> str:
    """The JSON string that holds `text`."""
    return msgspec.json.encode(text.encode("utf-8", "replace").decode()).decode()


def object_of(values: Mapping[str, str]) -> str:
    """The JSON object of `values`, each as JSON text."""
    return msgspec.json.encode({key: Raw(value.encode()) for key, value in values.items()}).decode()


def spelled(written: str, schema: object) -> str:
    """The JSON text of what is `written` without quotes: a text where `schema` wants one, else the value."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    json = None if kind == "string" else strict(written)
    return quoted(written) if json is None else json


def _valid(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _string(token: str) -> str:
    return f'"{_INSIDE.sub(_character, token[1:-1])}"'


def _character(match: re.Match[str]) -> str:
    whole, escaped = match.group(), match.group(1)
    if escaped is None:
        return whole if len(whole) > 1 else '\\"' if whole == '"' else f"\\u{ord(whole):04x}"
    if escaped == "'":
        return "'"
    if escaped in '"\\/bfnrt':
        return whole
    # An escape that JSON has not got stands for itself, backslash included, as it does in Python.
    return "\\\\" + (escaped if escaped >= " " else f"\\u{ord(escaped):04x}")


def number(token: str) -> str:
    """A number as JSON has it: digits on both sides of the point, no plus sign."""
    sign, digits = ("-", token[1:]) if token[0] == "-" else ("", token.removeprefix("+"))
    if digits.startswith("."):
        digits = f"0{digits}"
    return sign + _BARE_POINT.sub(r"\1.0", digits)
