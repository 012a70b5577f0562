"""A question that is nothing but the call of a tool, with each argument by its name: `release(plot="C-14")`.

Called by `planner`, which makes that call, and by `model`. What is written so has one reading, so each argument is
passed as it stands; what does not fit the tool's parameters is read as other questions are.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from treadle.kernel.messages import Json
from treadle.models.offline.grammar.words import is_function_word
from treadle.models.offline.plan.choice import is_final
from treadle.models.offline.plan.led import NO_NAMES
from treadle.models.offline.plan.toolbox import KnownTool, Param
from treadle.models.offline.plan.transcript import LONGEST

_LEAD = r"\s*(?i:please\s+)?(?P<order>(?i:(?:call|use|run|invoke|execute)\s+(?:the\s+)?(?:(?:tool|function)\s+)?))?"
_AND = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")
_KEY = re.compile(r"[\"'`]?(\w+)[\"'`]?(\s*[=:]\s*|\s+)")
_BARE = re.compile(r"[\w.@:/+#-]*[\w+#](?![^\s,;)}.])")
# What stands for a value, as in "<name>", "..." and `door: str`.
_MARKED = r"\W*(?:<[^<>]*>|\{[^{}]*\}|\[[^\[\]]*\])\W*|[$%]\w+"
_PLACE = re.compile(rf"\W*|{_MARKED}|str(?:ing)?|int(?:eger)?|number|float|bool(?:ean)?|object|array|value")
_INNER_PLACE = re.compile(rf"{_MARKED}|\.\.\.|…")
_SINGLE = re.compile(r"'([^'\\]*)'(?![\w'])")
_GROUPED = re.compile(r"-?\d{1,3}(?:\.\d{3})+")
_WORDS = {"True": True, "true": True, "False": False, "false": False, "None": None, "none": None, "null": None}
_UNREAD = object()
_JSON = json.JSONDecoder(parse_constant=lambda _: _UNREAD)


def literal_call(question: str, tools: Sequence[KnownTool]) -> tuple[KnownTool, Json] | None:
    """The tool that a question calls literally, and with what; None if it is no such call.

    Args:
        question: what was asked.
        tools: those that are offered.
    """
    if len(question) > LONGEST:
        return None
    for tool in sorted(tools, key=lambda each: -len(each.name)):
        if tool.name not in question or is_final(tool):
            continue
        head = re.compile(rf"{_LEAD}([\"'`]?){re.escape(tool.name)}\2(?:\s+(?:tool|function)\b)?(?!\w)").match(question)
        if head is not None:
            given = _arguments(question[head.end() :].rstrip().rstrip(";.").rstrip(), head["order"] is not None, tool)
            if given is not None:
                return tool, given
    return None


def _arguments(text: str, ordered: bool, tool: KnownTool) -> Json | None:
    """What stands behind the name: `(a=1, b="x")`, `{"a": 1}`, `a=1 b=x`, or "with a 1 and b x" of an order."""
    led = re.match(r"\s+with\s+(?:(?:the\s+)?arguments?\s+)?", text)
    text = text[led.end() :] if led is not None and ordered else text.lstrip()
    closed = text[:1] == "(" and text[-1:] == ")"
    text = text[1:-1].strip() if closed else text
    if text[:1] == "{":
        return _pairs(text[1:-1].strip(), ":", _AND, tool) if text[-1:] == "}" else None
    if closed:
        return _pairs(text, "=", _AND, tool)
    if not text:
        return None
    signs = "=" if led is None or not ordered else "= "
    return _pairs(text, signs, _AND if " " in signs else re.compile(rf"{_AND.pattern}|\s+"), tool)


def _pairs(text: str, signs: str, between: re.Pattern[str], tool: KnownTool) -> Json | None:
    """The arguments that are written as pairs, if each is one of the tool's, and fits."""
    found: dict[str, Any] = {}
    at = 0
    while at < len(text):
        key = _KEY.match(text, at)
        param = next((each for each in tool.params if key is not None and each.name == key[1]), None)
        if key is None or param is None or param.name in found or (key[2].strip() or " ") not in signs:
            return None
        value, at = _value(text, key.end(), param)
        # "1.200" has two readings, but in JSON.
        grouped = tool.may_change and signs != ":" and _GROUPED.fullmatch(text[key.end() : at]) is not None
        if value is _UNREAD or grouped or not _fits(value, param, tool):
            return None
        found[param.name] = value
        joint = between.match(text, at)
        if at < len(text) and (joint is None or joint.end() == len(text)):
            return None
        at = at if joint is None else joint.end()
    return found if all(param.name in found for param in tool.required) and _can_be_told(found) else None


def _can_be_told(given: Json) -> bool:
    """Whether arguments can be written down: not "1e999", nor `[NaN]`, nor half a character."""
    try:
        return bool(json.dumps(given, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, TypeError):
        return False


def _value(text: str, at: int, param: Param) -> tuple[Any, int]:
    """The value that starts at `at`, and where it ends."""
    if (single := _SINGLE.match(text, at)) is not None:
        return single[1], single.end()
    bare = _BARE.match(text, at)
    if bare is not None and bare[0] in _WORDS:
        return _WORDS[bare[0]], bare.end()
    if bare is not None and "string" in param.types:
        # A word that leads another, as in "with name the vase", is no value.
        return (_UNREAD if is_function_word(bare[0]) or bare[0].lower() in NO_NAMES else bare[0]), bare.end()
    try:
        return _JSON.raw_decode(text, at)
    except (ValueError, RecursionError):
        return _UNREAD, at


def _stands_for_another(value: Any, form: re.Pattern[str] = _PLACE) -> bool:
    """Whether what is written is no value, or holds what is none: of quoted words in a list fewer say so."""
    if isinstance(value, str):
        return form.fullmatch(value) is not None
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_stands_for_another(one, _INNER_PLACE) for one in inner)


def _fits(value: Any, param: Param, tool: KnownTool) -> bool:
    """Whether a value is of a parameter's type, and one of its choices; no change is made by less than nothing."""
    if param.enum and value not in param.enum:
        return False
    if _stands_for_another(value) or (value == param.name and tool.may_change):
        return False
    if isinstance(value, int | float) and not isinstance(value, bool):
        whole = isinstance(value, int) or not param.types.isdisjoint({"number"})
        return whole and not param.types.isdisjoint({"number", "integer"}) and (value >= 0 or not tool.may_change)
    kinds = {str: "string", bool: "boolean", dict: "object", list: "array", type(None): "null"}
    return kinds[type(value)] in param.types
