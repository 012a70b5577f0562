"""Attempt: is this JSON in a model's reply a tool call, an attempt at one, or part of an answer?

A call names a tool and has arguments, by any of the keys that models use. An object that names a known tool, or has
the shape of a call with the name of an unknown one, is a call: the loop then says what is wrong with it. An object of
any other shape is part of the answer. Pure; neighbours: `loose.py`, the formats.
"""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

from treadle.kernel.messages import Json, ToolSpec
from treadle.models.text_tools import loose
from treadle.models.text_tools.pieces import Call, Fault, Offer, Piece, Prose
from treadle.models.text_tools.python import Unreadable, arguments_of, bound

_NAMES: Final = ("name", "tool", "tool_name", "toolName", "function", "function_name", "recipient_name", "action")
_PLAIN: Final = ("arguments", "tool_input", "tool_args", "action_input", "args", "kwargs")
_ARGUMENTS: Final = (*_PLAIN, "input", "inputs", "parameters", "params")
_BESIDE: Final = frozenset(
    {"id", "type", "call_id", "tool_call_id", "index", "role", "content", "thought", "thoughts", "reasoning", "reason"}
)
_CALLS: Final = ("tool_calls", "function_calls", "tool_call", "function_call")
_WRAPPERS: Final = (*_CALLS, "toolCalls", "functionCalls", "toolCall", "functionCall", "calls", "actions")
_FINAL: Final = frozenset({"finalanswer", "finish"})

_NAME_AT: Final = re.compile(rf"[\"']?\b(?:{'|'.join(_NAMES)})[\"']?\s*:\s*[\"']([\w./-]{{1,100}})[\"']")
_ARGUMENTS_AT: Final = re.compile(rf"[\"']?\b({'|'.join(_ARGUMENTS)})[\"']?\s*:\s*")
_NAME_WITHIN: Final = 300
_MOST_KEYS: Final = 8
_NOTHING_MORE: Final = re.compile(r"[\s}\]`,;)]*")
_NAMED: Final = re.compile(r"(?P<name>\w{1,100})[ \t]{0,3}(?:=(?!=)|:)")
_NOTHING: Final = frozenset({"None", "none", "null", '""', "''", "()", "[]", "N/A"})


def is_final(name: str) -> bool:
    """Whether `name`, in a tool's place, says that the answer follows: "Final Answer", "finish"."""
    return name.casefold().replace(" ", "").replace("_", "") in _FINAL


def pieces_of(text: str, offer: Offer) -> list[Piece] | None:
    """The calls in `text`, an object or an array that is closed; None if it is part of the answer."""
    json = loose.strict(text)
    if json is None:
        guessed = broken(text, offer)
        return None if guessed is None else [guessed]
    return _in_array(json, offer) if json.startswith("[") else _unless_answer(json, offer)


def names_call(json: str) -> bool:
    """Whether an object has a name and "arguments" and nothing else: a call, though there be no such tool."""
    members = loose.members(loose.strict(json) or "")
    own = (members or {}).keys() - _BESIDE
    return "arguments" in own and len(own) == 2 and any(name in own for name in _NAMES)


def _in_array(json: str, offer: Offer) -> list[Piece] | None:
    found: list[Piece] = []
    for item in loose.items(json) or []:
        inner = _unless_answer(item, offer)
        if inner is None:
            return None
        found += inner
    return found or None


def _unless_answer(json: str, offer: Offer) -> list[Piece] | None:
    """As `_in_object`, but what has the shape of the answer that was asked for is no call, or no certain one."""
    found = _in_object(json, offer)
    if found is None or not offer.answer_keys or not (loose.members(json) or {"": ""}).keys() <= offer.answer_keys:
        return found
    named = next((piece for piece in found if isinstance(piece, Call) and piece.name in offer.tools), None)
    if named is None:
        return None
    what = (
        f'the object may be a call of {named.name} or the answer. Write a call as {{"tool_calls": [...]}}, '
        'and the answer as {"action": "Final Answer", "action_input": ...}'
    )
    return [Fault(json, what, named.name)]


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
                    return [Fault(json, f'"{key}" does not hold tool calls')] if key in _CALLS else None
                found += inner
            return found or None
    nested = loose.members(members.get("function", ""))
    if nested is not None and "name" in nested and members.keys() <= _BESIDE | {"function"}:
        return _in_object(members["function"], offer, depth + 1)
    return _one(json, members, offer)


def _one(json: str, members: dict[str, str], offer: Offer) -> list[Piece] | None:
    """The call that an object is, whatever its tool and its arguments are called in it."""
    said = {key: _said(members[key]) for key in _NAMES if key in members}
    names = [key for key, name in said.items() if name]
    tools = {key: known for key in names if (known := offer.known(said[key])) is not None}
    given = [key for key in _ARGUMENTS if key in members]
    if not names:
        if given and given[0] in _PLAIN[:4] and members.keys() <= _BESIDE | {*_NAMES, given[0]}:
            return [Fault(json, "the object has arguments, but does not name a tool")]
        return None
    if tools:
        return _of_tool(json, members, next(iter(tools)), offer, given)
    name, rest = said[names[0]], members.keys() - {names[0]} - _BESIDE
    if len(given) != 1 or rest != set(given):
        return None
    value = members[given[0]]
    if is_final(name):
        answer = loose.string(value)
        return [Prose(value if answer is None else answer, answer=True)]
    if offer.answer_keys and members.keys() <= offer.answer_keys:
        return None
    return [Call(name, arguments_in(value, None))] if given[0] in _PLAIN or loose.members(value) is not None else None


def _of_tool(json: str, members: dict[str, str], named: str, offer: Offer, given: Sequence[str]) -> list[Piece] | None:
    """The call of a tool that the key `named` names; None if the object merely has a name."""
    name = offer.known(_said(members[named])) or ""
    tool, properties = offer.tools[name], offer.properties(name)
    own = {key: raw for key, raw in members.items() if key != named and (key not in _BESIDE or key in properties)}
    others = {offer.known(_said(own[key])) for key in _NAMES if key in own and key not in properties} - {None, name}
    if others:
        return [Fault(json, f"the object names two tools, {name} and {others.pop()}", name)]
    holders = [key for key in given if key in own]
    inside = (loose.members(own[holders[0]]) or {}) if holders else {}
    if "type" in inside and ({"description"} & own.keys() | {"properties"} & inside.keys()) - properties.keys():
        return None  # the tool is described, not called
    if not holders or (own.keys() <= properties.keys() and not _holds(own, holders[0], properties)):
        if not own or named != "name" or own.keys() <= properties.keys():
            return [Call(name, loose.object_of(own))]
        return None
    astray = sorted(own.keys() & properties.keys() - set(holders))
    if astray:
        return [Fault(json, f'"{astray[0]}" stands beside the arguments of {name} instead of among them', name)]
    try:
        return [Call(name, _from_holders({key: own[key] for key in holders}, tool))]
    except Unreadable as error:
        return [Fault(json, str(error), name)]


def _holds(own: dict[str, str], holder: str, properties: Json) -> bool:
    """Whether the only key of a call, which is the name of a parameter too, holds all the arguments."""
    inside = loose.members(own[holder])
    return len(own) == 1 and inside is not None and inside.keys() <= properties.keys()


def _from_holders(held: dict[str, str], tool: ToolSpec) -> str:
    """The arguments, from the value of "arguments" or a word like it, or from "args" by place and "kwargs" by name."""
    filled = {key: raw for key, raw in held.items() if raw not in ("null", "{}", "[]")} or held
    places = [key for key, raw in filled.items() if raw.startswith("[")]
    if len(filled) - len(places) > 1 or len(places) > 1:
        raise Unreadable(f"it has arguments in two places, {' and '.join(filled)}")
    if not places:
        return arguments_in(next(iter(filled.values())), tool)
    keywords = next((loose.members(raw) or {} for raw in filled.values() if not raw.startswith("[")), {})
    first = next(iter(tool.input_schema.get("properties", {}).values()), None)
    if not keywords and isinstance(first, dict) and first.get("type") == "array":
        raise Unreadable("the list may be one argument or all of them; give an object with the arguments by name")
    return bound(loose.items(filled[places[0]]) or [], keywords, tool)


def _said(json: str) -> str:
    return (loose.string(json) or "").strip()


def arguments_in(value: str, tool: ToolSpec | None) -> str:
    """The JSON text of the arguments in `value`, the JSON text of an object, or of a string that holds one."""
    if value == "null":
        return "{}"
    text = loose.string(value)
    return value if text is None else arguments_from(text, tool)


def arguments_from(text: str, tool: ToolSpec | None) -> str:
    """The JSON text of the arguments that were written as `text`.

    An object is made strict. Anything else is the value of the tool's one argument, where it has one that counts: as it
    stands, without the quotes if all of it is one quoted text. Where it has none, or the text names an argument, it is
    left as it is if it is no Python, and the check of the arguments says what is wrong.
    """
    text = text.strip()
    properties = {} if tool is None else tool.input_schema.get("properties", {})
    if not text or text.startswith("{") or (tool is not None and not properties and text in _NOTHING):
        made = loose.strict(text) if text.startswith("{") else "{}"
        return text if made is None else made
    required = [] if tool is None else tool.input_schema.get("required", [])
    if names_argument(text, properties):
        try:
            return arguments_of(text, tool)
        except Unreadable:
            return text
    if len(properties) != 1 and len(required) != 1:
        return text
    name = required[0] if len(required) == 1 else next(iter(properties))
    schema = properties.get(name, {})
    json = loose.strict(text)
    is_text = not isinstance(schema, dict) or schema.get("type", "string") == "string"
    if json is None or (is_text and loose.string(json) is None):
        json = loose.quoted(text)
    return loose.object_of({name: json})


def names_argument(text: str, properties: Json) -> bool:
    """Whether `text` begins with the name of an argument and an equals sign or a colon, so that it is no plain text."""
    named = _NAMED.match(text)
    return named is not None and named["name"] in properties


def broken(text: str, offer: Offer) -> Piece | None:
    """What `text`, an object without an end or beyond reading, was meant to be; None if it is part of the answer."""
    named = _at_top(_NAME_AT, text, _NAME_WITHIN)
    given = _at_top(_ARGUMENTS_AT, text, len(text))
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
        if end > 0 and _NOTHING_MORE.fullmatch(written, end):
            whole = loose.strict(written[:end])
            return Call(known or name, written[:end] if whole is None else whole)
    # What cannot be read must not pass for arguments: the check of the arguments is to fail on it.
    raw = written.strip().rstrip("`").rstrip() or text
    return Call(known or name, raw if loose.strict(raw) is None else text)


def _at_top(pattern: re.Pattern[str], text: str, end: int) -> re.Match[str] | None:
    """The first match that is a key of the object `text`, of the first few."""
    for match in islice(pattern.finditer(text, 0, end), _MOST_KEYS):
        if loose.at_top(text, 0, match.start()):
            return match
    return None
