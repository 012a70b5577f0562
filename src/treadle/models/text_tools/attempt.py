"""Attempt: is this JSON in a model's reply a tool call, an attempt at one, or part of an answer?

A call names a tool and has arguments, by any of the keys that models use. An object that names a known tool, or has
the shape of a call with the name of an unknown one, is a call: the loop then says what is wrong with it. An object of
any other shape is part of the answer. Pure; neighbours: `loose.py`, the formats.
"""

import re
from typing import Final

import msgspec

from treadle.kernel.messages import ToolSpec
from treadle.models.text_tools import loose
from treadle.models.text_tools.pieces import Call, Fault, Offer, Piece, Prose

_NAMES: Final = ("name", "tool", "tool_name", "toolName", "function", "function_name", "action")
_PLAIN: Final = ("arguments", "tool_input", "tool_args", "action_input", "args", "kwargs")
_ARGUMENTS: Final = (*_PLAIN, "input", "parameters", "params")
_BESIDE: Final = frozenset(
    {"id", "type", "call_id", "tool_call_id", "index", "role", "content", "thought", "thoughts", "reasoning", "reason"}
)
_WRAPPERS: Final = ("tool_calls", "function_calls", "tool_call", "function_call", "calls", "actions")
_FINAL: Final = frozenset({"finalanswer", "finish"})

_NAME_AT: Final = re.compile(rf"[\"']?\b(?:{'|'.join(_NAMES)})[\"']?\s*:\s*[\"']([\w./-]{{1,100}})[\"']")
_ARGUMENTS_AT: Final = re.compile(rf"[\"']?\b({'|'.join(_ARGUMENTS)})[\"']?\s*:\s*")
_NAME_WITHIN: Final = 300


def is_final(name: str) -> bool:
    """Whether `name`, in a tool's place, says that the answer follows: "Final Answer", "finish"."""
    return name.casefold().replace(" ", "").replace("_", "") in _FINAL


def pieces_of(text: str, offer: Offer) -> list[Piece] | None:
    """The calls in `text`, an object or an array that is closed; None if it is part of the answer."""
    json = loose.strict(text)
    if json is None:
        guessed = broken(text, offer)
        return None if guessed is None else [guessed]
    return _in_array(json, offer) if json.startswith("[") else _in_object(json, offer)


def _in_array(json: str, offer: Offer) -> list[Piece] | None:
    found: list[Piece] = []
    for item in loose.items(json) or []:
        inner = _in_object(item, offer)
        if inner is None:
            return None
        found += inner
    return found or None


def _in_object(json: str, offer: Offer, depth: int = 0) -> list[Piece] | None:
    members = loose.members(json)
    if not members or depth > 3:
        return None
    for key in _WRAPPERS:
        if key in members and members.keys() <= _BESIDE | {key}:
            inside = loose.items(members[key])
            found: list[Piece] = []
            for item in [members[key]] if inside is None else inside:
                inner = _in_object(item, offer, depth + 1)
                if inner is None:
                    return [Fault(json, f'"{key}" does not hold tool calls')] if key in _WRAPPERS[:4] else None
                found += inner
            return found or None
    nested = loose.members(members.get("function", ""))
    if nested is not None and "name" in nested and members.keys() <= _BESIDE | {"function"}:
        return _in_object(members["function"], offer, depth + 1)
    return _one(json, members, offer)


def _one(json: str, members: dict[str, str], offer: Offer) -> list[Piece] | None:
    name_key = next((key for key in _NAMES if key in members and loose.string(members[key]) is not None), None)
    given = next((key for key in _ARGUMENTS if key in members), None)
    if name_key is None:
        if given in _PLAIN[:4] and members.keys() <= _BESIDE | set(_NAMES) | {given}:
            return [Fault(json, "the object has arguments, but does not name a tool")]
        return None
    name = (loose.string(members[name_key]) or "").strip()
    known = offer.known(name)
    rest = {key: value for key, value in members.items() if key != name_key and key not in _BESIDE}
    if known is None and is_final(name) and given is not None and rest.keys() == {given}:
        answer = loose.string(members[given])
        return [Prose(members[given] if answer is None else answer)]
    if given is not None and (known is not None or (rest.keys() == {given} and not _answers(members, offer))):
        value = members[given]
        takes_text = loose.members(value) is not None or given in _PLAIN or known is not None
        return [Call(known or name, arguments_in(value, offer.tools.get(known or name)))] if takes_text else None
    if known is None:
        return None
    properties = offer.schema(known).get("properties", {})
    if not rest or name_key != "name" or rest.keys() <= properties.keys():
        return [
            Call(known, msgspec.json.encode({key: msgspec.Raw(raw.encode()) for key, raw in rest.items()}).decode())
        ]
    return None


def _answers(members: dict[str, str], offer: Offer) -> bool:
    return bool(offer.answer_keys) and members.keys() <= offer.answer_keys


def arguments_in(value: str, tool: ToolSpec | None) -> str:
    """The JSON text of the arguments in `value`, the JSON text of an object, or of a string that holds one."""
    if value == "null":
        return "{}"
    text = loose.string(value)
    return value if text is None else arguments_from(text, tool)


def arguments_from(text: str, tool: ToolSpec | None) -> str:
    """The JSON text of the arguments that were written as `text`.

    An object is made strict. Anything else is the value of the tool's one argument, where it has one that counts; where
    it does not, it is left as it is, and the check of the arguments says what is wrong.
    """
    text = text.strip()
    if not text or text.startswith("{"):
        made = loose.strict(text) if text else "{}"
        return text if made is None else made
    properties = {} if tool is None else tool.input_schema.get("properties", {})
    required = [] if tool is None else tool.input_schema.get("required", [])
    if len(properties) != 1 and len(required) != 1:
        return text
    name = required[0] if len(required) == 1 else next(iter(properties))
    schema = properties.get(name, {})
    json = loose.strict(text)
    is_text = not isinstance(schema, dict) or schema.get("type", "string") == "string"
    if json is None or (is_text and loose.string(json) is None):
        json = msgspec.json.encode(text.encode("utf-8", "replace").decode()).decode()
    return f"{{{msgspec.json.encode(name).decode()}:{json}}}"


def broken(text: str, offer: Offer) -> Piece | None:
    """What `text`, an object without an end or beyond reading, was meant to be; None if it is part of the answer."""
    named = _NAME_AT.search(text, 0, _NAME_WITHIN)
    given = _ARGUMENTS_AT.search(text)
    if named is None:
        if given is not None and given.group(1) in _PLAIN[:4]:
            return Fault(text, "the object is not valid JSON, and it does not name a tool")
        return None
    name = named.group(1)
    known = offer.known(name)
    if known is None and given is None:
        return None
    written = text if given is None else text[given.end() :]
    if given is not None and written[:1] in ("{", "["):
        end = loose.end_of(written, 0)
        if end > 0:
            whole = loose.strict(written[:end])
            return Call(known or name, written[:end] if whole is None else whole)
    # What cannot be read must not pass for arguments: the check of the arguments is to fail on it.
    raw = written.strip().rstrip("`").rstrip() or text
    return Call(known or name, raw if loose.strict(raw) is None or raw.startswith("{") else text)
