"""Unfinished: what a run that ended without an answer has changed, for whoever asked and may ask again.

Told to the run above, and to a client to which an agent is served.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from treadle.context.done import executed_as_told, made_below
from treadle.kernel.calls import CallRecord
from treadle.kernel.messages import ToolMessage
from treadle.tools import Tool
from treadle.tools.output import cut

MOST_CALLS = 20
"""Calls that are told of."""

LONGEST_CALL = 300
"""Characters of each."""

NOT_UNDONE = "What it has made is not undone; do not have it done again."

_NAMES: Final = {"made": "Calls that it has made", "unknown": "Calls of which the outcome is unknown"}

MAYBE_DONE = "What is unknown may or may not have been done; find out before you have it done again."


def changes_told(records: Iterable[CallRecord], tools: Mapping[str, Tool]) -> dict[str, Any]:
    """What is told of the last calls that a run has made, or may have made, of tools that do not only read."""
    made, unknown = _changes(records, tools)
    return _told(made[-MOST_CALLS:], unknown[-MOST_CALLS:])


def _told(made: list[str], unknown: list[str]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if made:
        told["made"] = made
    if unknown:
        told["unknown"] = unknown
    note = [*([NOT_UNDONE] if made else []), *([MAYBE_DONE] if unknown else [])]
    return {**told, "note": " ".join(note)} if note else told


def told_in_words(what: str, records: Iterable[CallRecord], tools: Mapping[str, Tool]) -> str:
    """The same as sentences after those that say `what` has happened, and how many there were before the last ones."""
    made, unknown = _changes(records, tools)
    told = _told(_latest(made), _latest(unknown))
    parts = [f"{name}: {'; '.join(told[key])}." for key, name in _NAMES.items() if key in told]
    return " ".join([what, *parts, *([told["note"]] if "note" in told else [])])


def _changes(records: Iterable[CallRecord], tools: Mapping[str, Tool]) -> tuple[list[str], list[str]]:
    """The calls of tools that do not only read: those that were made, those that may have been."""
    made: list[str] = []
    unknown: list[str] = []
    for record in records:
        last = _executed(record.result) if record.executed else True
        for place, call in enumerate(record.calls_run, 1 - len(record.calls_run)):
            # Those before the last came back, or no other would have been made in their place.
            executed = True if place else last
            # Its tool may say otherwise by now than when it was made.
            wrote, tool = record.writes and not place, tools.get(call.name)
            if executed is False or (not wrote and tool is not None and tool.effect == "read"):
                continue
            (made if executed is True else unknown).append(cut(f"{call.name}({call.arguments})", LONGEST_CALL))
        below = made_below(record.result)
        made += below.made
        unknown += below.unknown
    return made, unknown


def _latest(calls: list[str]) -> list[str]:
    """The last of these; and that there were others, which must not be taken for ones that were not made."""
    left = len(calls) - MOST_CALLS
    return calls if left <= 0 else [f"(at least {left} before these)", *calls[left:]]


def _executed(result: ToolMessage | None) -> bool | str:
    """Whether the call of `result` was executed, as the model was told: True where nothing else was said."""
    said = "unknown" if result is None else executed_as_told(result)
    return True if said is None else said
