"""Once: a call that a reply tells twice under one id is one call, and is made once. Pure.

The id of a call says which call it is: a server, or a proxy before it, that sends the same name and arguments under the
same id has sent one call twice, and one that sends them again without any has only begun it anew. Under another id, or
without any, it is another call. Neighbours: `treadle.models.sound`, through which every reply goes; the decoders of
streams that give each call an id of its own.
"""

import json
from collections.abc import Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Any, Final

import msgspec

from treadle.kernel.messages import AssistantPart, ToolCall

_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)

Told = tuple[str, str, str]
"""The id that a call was given, its name and its arguments."""


def is_bare(arguments: str) -> bool:
    """Whether a call has no arguments, as one has that was begun and no more."""
    return not arguments.strip(" \t\r\n{}")


def are_told_again(pieces: Sequence[str], piece: str) -> bool:
    """Whether a piece of the arguments of a call is all of those that have come in `pieces` once more.

    What is whole has no more pieces. Gateways add such a one at the end, some as the JSON text of the JSON text.
    """
    most = 2 * len(piece) + 64
    if not pieces or not piece.startswith(("{", '"{')) or len(pieces) > most or sum(map(len, pieces)) > most:
        return False
    value = _value(piece)
    again = _value(value) if isinstance(value, str) else value
    return isinstance(again, dict) and _value("".join(pieces)) == again


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def told_once(parts: tuple[AssistantPart, ...]) -> tuple[AssistantPart, ...]:
    """`parts`, the same object unless a call stands there again under its id, which is one call and is made once."""
    if len(parts) < 2:
        return parts
    calls = [(part.id, part.name, part.arguments) for part in parts if isinstance(part, ToolCall) and part.id]
    if len(calls) < 2 or len({call_id for call_id, _, _ in calls}) == len(calls):
        return parts
    kept: list[AssistantPart] = []
    seen = {(call_id, name, "") for call_id, name, arguments in calls if not is_bare(arguments)}
    for part in parts:
        if isinstance(part, ToolCall) and part.id:
            same = _same(part.id, part.name, part.arguments)
            if same in seen:
                continue
            seen.add(same)
        kept.append(part)
    return tuple(kept) if len(kept) < len(parts) else parts


def ids_told(calls: Sequence[Told], ids: Sequence[str]) -> list[str]:
    """The ids of `calls`, each its own of `ids` but where it is one that was told before: then that one's.

    `told_once` leaves one of those out. A call that was only begun anew is the one that has arguments.
    """
    said = [given for given, _, _ in calls if given]
    if len(set(said)) == len(said):
        return list(ids)
    first: dict[Told, str] = {}
    for (given, name, arguments), own in zip(calls, ids, strict=True):
        if given:
            first.setdefault(_same(given, name, arguments), own)
    for (given, name, arguments), own in zip(calls, ids, strict=True):
        if given and not is_bare(arguments):
            first[given, name, ""] = own
    return [first.get(_same(*call), own) for call, own in zip(calls, ids, strict=True)]


def as_told(arguments: str) -> str:
    """What arguments say, however it is written.

    A gateway that reads and writes them sets other spaces and escapes, and may write 10.0 as 10.
    """
    if is_bare(arguments):
        return ""
    try:
        value = json.loads(arguments, parse_int=_number, parse_float=_number)
        return json.dumps(value, sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _number(digits: str) -> str:
    """What the digits of a number come to; unlike every text that somebody would write."""
    try:
        value = Decimal(digits)
    except InvalidOperation:
        return f"\0{digits}"
    return f"\0{value.normalize(_EXACT) if value else 0}"


def _same(call_id: str, name: str, arguments: str) -> Told:
    return call_id, name, as_told(arguments)
