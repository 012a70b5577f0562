"""Redaction: a function of the application's that is given each text of a run before it is written to a journal.

What is kept as it is, is listed here by name; every other text is passed through it, so that what is new is passed too.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import replace

from treadle.context import corrected
from treadle.context.frames import ACTIVATE, beside_frame
from treadle.context.redacting import kept_arguments, kept_text
from treadle.context.storable import each_by_name
from treadle.journal.errors import RedactionFailed
from treadle.kernel.calls import Awaited
from treadle.kernel.errors import Misuse
from treadle.kernel.events import (
    ApprovalDecided,
    ApprovalRequested,
    ContextEdited,
    ErrorInfo,
    Event,
    Happened,
    MessageAdded,
    ModelFailed,
    ModelReplied,
    Parent,
    Queued,
    Reserve,
    ResultAwaited,
    RunForked,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolReacted,
    ToolStarted,
)
from treadle.kernel.messages import (
    File,
    Image,
    ListedTool,
    ModelSettings,
    Opaque,
    Thinking,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from treadle.kernel.stop import Check, Decision, Stop

S = TypeVar("S", bound=Struct)

Redact = Callable[[str], str]
"""Given a text, returns what is written in its place."""


def checked_redact(redact: Redact | None) -> Redact | None:
    """The function, as it was given.

    Raises:
        Misuse: it is no plain function.
    """
    if redact is not None and (not callable(redact) or iscoroutinefunction(redact)):
        raise Misuse(f"redact= takes a plain function of a text that returns a text; it was given {redact!r:.100}")
    return redact


_KEPT: dict[type[Struct], str] = {
    RunStarted: "run_id on_limit agent model tools polling tool_choice writes rules hooks user conversation origin "
    "foreign_skills",
    StepPrepared: "model tools tool_choice withheld",
    ModelReplied: "finish model request_id early",
    ModelFailed: "model",
    ToolStarted: "call_id name",
    ToolFinished: "call_id",
    ToolReacted: "call_id action",
    ApprovalRequested: "call_id why",
    ApprovalDecided: "call_id",
    ResultAwaited: "call_id run_id again",
    MessageAdded: "origin",
    ContextEdited: "policy model",
    ListedTool: "name server remote effect digest",
    RunForked: "run_id model origin taken",
    RunResumed: "budgets",
    ToolMessage: "call_id name",
    UserMessage: "skill",
    Image: "media_type",
    File: "media_type",
    Thinking: "signature data id",
    ToolCall: "id name item_id",
    Opaque: "provider shown",
    ModelSettings: "stop thinking",
    Parent: "run_id call_id",
    Decision: "verdict",
    Check: "name",
    Stop: "reason",
    Reserve: "limit",
    Usage: "service",
    ErrorInfo: "kind request_id",
    Awaited: "call_id name kind run_id",
    Queued: "key",
}

KEPT: Mapping[type[Struct], frozenset[str]] = {
    kind: frozenset([*fields.split(), *(["by"] if issubclass(kind, Happened) else [])])
    for kind, fields in (dict.fromkeys(get_args(Event), "") | _KEPT).items()
}
"""By kind, the fields that are not passed through it: ids, names of tools, agents, models and rules, fixed words."""

SIGNED: frozenset[str] = frozenset({"signature", "thoughtSignature", "thought_signature"})
OWN_KEPT: frozenset[str] = SIGNED | {
    *("type", "id", "call_id", "tool_use_id", "toolUseId", "approval_request_id", "container_id", "file_id"),
    "redactedContent",
}
"""Of what only the provider understands, what is not passed through it: words, ids, what it encrypted and signed."""
ENCRYPTED = "encrypted"
"""How what it encrypted is called, as `encrypted_content`; or the kind of a part that has it as its `data`."""
BY_ID = "calls"
"""Of that, what goes back with calls, each by the id of its call."""
GIVEN: frozenset[str] = frozenset(
    {"input", "arguments", "args", "output", "response", "result", "attributes", "metadata", "env"}
)
"""Of that, where a tool that the provider ran, or whoever gave it files, has data of their own, with whatever names."""

ARGUMENTS: frozenset[type[Struct]] = frozenset({ToolCall, ToolStarted, ToolReacted, ApprovalDecided, Awaited})
"""Whose `arguments` are JSON, in which each text is passed through it."""


def redacted(run_id: str, seq: int, events: Sequence[Event], redact: Redact | None, where: str) -> Sequence[Event]:
    """The events, the first of which is number `seq`, as they are to be written.

    Raises:
        RedactionFailed: `redact` raised, or did not return a text.
    """
    if redact is None:
        return events
    found: list[Event] = []
    for number, event in enumerate(events, seq):
        try:
            found.append(_struct(event, redact))
        except (Exception, asyncio.CancelledError) as error:
            # It is a plain function: a cancellation can only be its own.
            raise RedactionFailed(run_id, number, type(event).__name__, error, where) from error
    return found


def as_kept(message: UserMessage, redact: Redact | None) -> UserMessage:
    """What somebody says, as a journal that redacts has it: what is held against what is read from there.

    Raises:
        RedactionFailed: `redact` raised, or did not return a text.
    """
    (event,) = redacted("", 0, [MessageAdded(message)], redact, "")
    return event.message if isinstance(event, MessageAdded) else message


def text_as_kept(text: str, redact: Redact | None) -> str:
    """A text that is no event's, as a journal that redacts would have it. Raises `RedactionFailed`, as above."""
    try:
        return text if redact is None else kept_text(text, redact)
    except (Exception, asyncio.CancelledError) as error:
        raise RedactionFailed("", 0, "", error, "") from error


def _struct(value: S, redact: Redact) -> S:
    kind = type(value)
    kept = KEPT.get(kind, frozenset())
    changed: dict[str, Any] = {}
    for name in value.__struct_fields__:
        before = getattr(value, name)
        if before is None or name in kept:
            continue
        if name == "arguments" and kind in ARGUMENTS:
            after: Any = kept_arguments(before, redact)
        elif name == "value" and kind is Opaque:
            after = _own(before, redact)
        else:
            after = _any(before, beside_frame(redact) if name == "content" and _may_be_framed(value) else redact)
        if after is not before:
            changed[name] = after
    if not changed:
        return value
    if isinstance(value, Thinking):
        # What the provider signed or encrypted no longer goes with it, and a provider refuses what does not fit.
        changed |= {"signature": None, "data": None, "id": None}
    elif isinstance(value, Opaque) and value.shown:
        # An image of which a part was replaced is none: it is sent back to nobody.
        changed["provider"] = ""
    return replace(value, **changed)


def _own(value: Any, redact: Redact) -> Any:
    """What only the provider understands, which knows it again by its ids and by what it encrypted.

    What it signed loses its signature where it is changed: a provider refuses what does not fit.
    """
    if isinstance(value, (list, tuple)):
        items = [_own(one, redact) for one in value]
        return value if all(map(_is, items, value)) else type(value)(items)
    if not isinstance(value, Mapping):
        return _any(value, redact)
    sealed = {"data"} if str(value.get("type")).endswith(ENCRYPTED) else set[str]()
    pairs = each_by_name(
        (_any(name, redact), one if name in sealed and isinstance(one, str) else _field(name, one, redact))
        for name, one in value.items()
    )
    return value if pairs == value else {name: one for name, one in pairs.items() if name not in SIGNED}


def _field(name: str, value: Any, redact: Redact) -> Any:
    if (name in OWN_KEPT or name.startswith(ENCRYPTED)) and isinstance(value, str):
        return value
    if name == BY_ID and isinstance(value, Mapping):
        return {call_id: _own(one, redact) for call_id, one in value.items()}
    return _any(value, redact) if name in GIVEN else _own(value, redact)


def _any(value: Any, redact: Redact) -> Any:
    """The value with each text in it passed through; the same object where nothing changed."""
    if isinstance(value, str):
        found = kept_text(value, redact)
        return value if found == value else found
    if isinstance(value, ToolMessage) and value.edited is not None:
        passed = beside_frame(redact) if _may_be_framed(value) else redact
        kept = corrected.as_kept(value, redact, lambda content: _any(content, passed))
        return value if kept == value else kept
    if isinstance(value, Struct):
        return _struct(value, redact)
    if isinstance(value, (list, tuple)):
        items = [_any(one, redact) for one in value]
        return value if all(map(_is, items, value)) else type(value)(items)
    if isinstance(value, Mapping):
        pairs = each_by_name((_any(name, redact), _any(one, redact)) for name, one in value.items())
        return value if pairs == value else pairs
    return value


def _may_be_framed(value: object) -> bool:
    """Whether the instructions of a skill may stand in its `content`; of a result alone nobody knows whose it is."""
    if isinstance(value, UserMessage):
        return bool(value.skill)
    return isinstance(value, ToolFinished | ToolReacted) or (isinstance(value, ToolMessage) and value.name == ACTIVATE)


def _is(one: object, other: object) -> bool:
    return one is other
