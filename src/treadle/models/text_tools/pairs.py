"""Pairs: arguments as `key: value`, `key=value` or `--key value`, as YAML, a command line or a query has them.

Nothing here is certain enough to be carried out: what is read is shown to the model as the call that it may have meant.
Pure. Neighbours: `peeled.py`.
"""

import re
from typing import Final

from treadle.models.text_tools import loose
from treadle.models.text_tools.pieces import Offer
from treadle.models.text_tools.places import after

HOLDERS: Final = frozenset(
    {"arguments", "args", "kwargs", "input", "inputs", "parameters", "params", "tool_input", "action_input", "with"}
)
_NAMES: Final = frozenset({"tool", "tool_name", "name", "function", "function_name", "action"})
_BESIDE: Final = frozenset({"id", "type", "call_id", "thought", "reasoning", "reason"})
_KEY: Final = re.compile(
    r"(?P<lead>[\s,;&|>*`?+-]{1,200}+|[\s:=>*_`{(?-]{1,200}+)[\"'`*_]{0,3}+(?P<key>[A-Za-z_][\w-]{0,99}+)"
    r"[\"'`*]{0,3}+[ \t]{0,9}+(?P<sign>:|=>?)?[*_]{0,4}+[ \t]{0,99}+"
)
_MAY_BE_KEY: Final = re.compile(r"[^\w]{0,200}+[\w-]{0,100}+[\"'`*]{0,3}+[ \t]{0,9}+\Z")
_QUOTED: Final = re.compile(r"\"(?>(?:[^\"\\]|\\.)*)\"|'(?>(?:[^'\\]|\\.)*)'", re.DOTALL)
_WORD: Final = re.compile(r"[^\s,;&]{1,10000}+")
_LINE: Final = re.compile(r"[^\n]*+")
_MORE: Final = re.compile(r"(?>(?:\n(?:[ \t]++(?![ \t]*[\w-]{1,60}[ \t]{0,9}[:=])[^\n]*+|[ \t]*+(?=\n)))*)")
_TYPES: Final = re.compile(
    r"any|array|bool(?:ean)?|bytes|date|dict|float|int(?:eger)?|list|num(?:ber)?|object|optional|str(?:ing)?|text",
    re.IGNORECASE,
)
_TYPE: Final = re.compile(r"\w{1,100}+[ \t]{0,3}[:=][ \t]{0,3}(?P<type>\w{1,40}+|\.\.\.)")


def is_signature(inside: str) -> bool:
    """Whether what stands in parentheses declares arguments, as documentation does: `query: str, limit: int = 5`."""
    declared = _TYPE.match(inside)
    return declared is not None and (declared["type"] == "..." or _TYPES.fullmatch(declared["type"]) is not None)


def read(text: str, at: int, name: str, offer: Offer, *, final: bool) -> tuple[str, int, bool] | None:
    """The arguments of the tool `name` that stand from `at` on.

    Returns:
        The JSON text of an object, where it ends, and whether no value in it is that of a line `key: value`; with
        less than a whole reply an empty text where more pairs may come; None if something else stands there.
    """
    properties = offer.properties(name)
    values: dict[str, str] = {}
    dense, end = True, at
    while (pair := _KEY.match(text, end)) is not None:
        key = pair["key"] if pair["key"] in properties else pair["key"].replace("-", "_")
        dashes = pair["lead"].endswith("--")
        if pair["sign"] is None and not dashes:
            break
        if key in values:
            return None
        if key not in properties:
            after = _aside(text, pair, name)
            if after < 0:
                break
            end = after
            continue
        value = _value(text, pair.end(), properties[key], by_word=dashes or pair["sign"] == "=")
        if value is None:
            return ("", end, dense) if not final and _may_grow(text, pair.end()) else None
        values[key], end, in_line = value
        dense = dense and not in_line
    if not final:
        return ("", end, dense) if end == len(text) or _MAY_BE_KEY.match(text, end) else None
    return (loose.object_of(values), end, dense) if values else None


def _may_grow(text: str, at: int) -> bool:
    """Whether the value at `at` has not ended yet, or not begun."""
    string = _QUOTED.match(text, at)
    if text[at : at + 1] in ('"', "'"):
        return string is None
    if text[at : at + 1] in ("{", "["):
        return loose.end_of(text, at) < 0
    line = _LINE.match(text, at)
    return line is not None and line.end() == len(text)


def only(written: str, name: str, offer: Offer) -> str:
    """The JSON text of the arguments of a tool whose one argument that counts is `written`; empty if it is not so."""
    schema = offer.schema(name)
    properties, required = schema.get("properties", {}), schema.get("required", ())
    if len(required) != 1 and len(properties) != 1:
        return ""
    key = required[0] if len(required) == 1 else next(iter(properties))
    value = _typed(written, properties.get(key, {}))
    return "" if value is None else loose.object_of({key: value})


def quoted(text: str, at: int, name: str, offer: Offer) -> tuple[str, int] | None:
    """The arguments, if what is quoted at `at` can be the one that counts, and where it ends."""
    string = _QUOTED.match(text, at)
    right = "" if string is None else only(string.group()[1:-1], name, offer)
    return None if string is None or not right else (right, string.end())


def _aside(text: str, pair: re.Match[str], name: str) -> int:
    """Where a pair ends that is none of the arguments, but belongs to a call; -1 if it does not."""
    line = _LINE.match(text, pair.end())
    rest = "" if line is None else line.group().strip(" \t\r|>{\"'`")
    end = pair.end() if line is None else line.end()
    key = pair["key"].lower()
    belongs = (key in HOLDERS and not rest) or (key in _NAMES and rest == name) or key in _BESIDE
    return end if belongs else -1


def _value(text: str, at: int, schema: object, *, by_word: bool) -> tuple[str, int, bool] | None:
    """The JSON text of the value at `at`, where it ends, and whether it is that of a line; None if it is none."""
    string = _QUOTED.match(text, at)
    if string is not None:
        json, end = loose.strict(string.group()), string.end()
        return None if json is None else (json, end, not by_word)
    if text[at : at + 1] in ("{", "["):
        end = loose.end_of(text, at)
        json = loose.strict(text[at:end]) if end > 0 else None
        return None if json is None else (json, end, not by_word)
    plain = (_WORD if by_word else _LINE).match(text, at)
    if plain is None:
        return None
    end = plain.end()
    if not by_word:
        end = after(_MORE, text, end)
    written = text[at:end].strip()
    if written[:1] in ("|", ">") and "\n" in written:
        written = "\n".join(line.strip() for line in written.split("\n")[1:])
    value = _typed(written, schema)
    return None if value is None or not written else (value, end, not by_word)


def _typed(written: str, schema: object) -> str | None:
    """The JSON text of what is `written` without quotes; None if the schema wants no such thing."""
    kind = schema.get("type", "string") if isinstance(schema, dict) else "string"
    json = loose.strict(written)
    if kind == "string" or (json is None and kind not in ("integer", "number", "boolean", "array", "object", "null")):
        return loose.quoted(written)
    return json
