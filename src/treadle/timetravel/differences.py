"""Differences: two events held against each other field by field, and what differs in plain words."""

from collections.abc import Collection, Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.drivers.approvals import BUDGET, own_lines
from treadle.kernel.events import Event, RunStarted
from treadle.kernel.messages import Message, SystemMessage

SHOWN = 200
"""Characters of a value that are shown."""


class Change(Struct, frozen=True):
    """A field that differs: its name, what was `recorded`, and what it is `now`, both as plain data."""

    field: str
    recorded: Any
    now: Any

    def __str__(self) -> str:
        if isinstance(self.recorded, str) and isinstance(self.now, str) and "\n" not in self.recorded + self.now:
            return (
                f"{self.field}: recorded {_around(self.recorded, self.now)!r}, now {_around(self.now, self.recorded)!r}"
            )
        return f"{self.field}: recorded {_shown(self.recorded)}, now {_shown(self.now)}"


class Difference(Struct, frozen=True):
    """The first event of a run that comes out otherwise.

    Attributes:
        run_id: the run, or one below it.
        event: the number of the event in that run's journal, from 0; one after the last where the run would go on.
        step: the step that was under way, or is next.
        recorded: the event in the journal; None where it has no more.
        now: what comes of it now; None where nothing would be done.
        changes: the fields that differ, where both are events of one kind.
        why: what there is to say beside that.
    """

    run_id: str
    event: int
    step: int
    recorded: Event | None
    now: Event | None
    changes: tuple[Change, ...] = ()
    why: str = ""

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """What differs, a line each."""
        yield f"run {self.run_id} differs first at event {self.event}, in step {self.step}:"
        if self.why:
            yield f"  {self.why}"
        if self.changes:
            yield f"  {_kind(self.recorded)}:"
            yield from (f"    {change}" for change in self.changes)
        elif self.recorded is not None or self.now is not None:
            yield f"  recorded: {in_words(self.recorded)}"
            yield f"  now:      {in_words(self.now)}"


def changes_between(recorded: Struct, now: Struct, *, but: Collection[str] = ("at",)) -> tuple[Change, ...]:
    """The fields that differ between two structs of one class, those of structs in them one by one.

    Args:
        recorded, now: the structs.
        but: names of fields that are not looked at.
    """
    return tuple(_changes(recorded, now, "", frozenset(but)))


def _changes(one: Any, other: Any, name: str, but: frozenset[str]) -> Iterator[Change]:
    if one == other:
        return
    if isinstance(one, Struct) and type(one) is type(other):
        for field in one.__struct_fields__:
            if field not in but:
                inner = f"{name}.{field}" if name else field
                yield from _changes(getattr(one, field), getattr(other, field), inner, but)
    elif isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        for number, (mine, others) in enumerate(zip(one, other, strict=True)):
            yield from _changes(mine, others, f"{name}[{number}]", but)
    else:
        yield Change(name, plain(one), plain(other))


def plain(value: Any) -> Any:
    """`value` as data of JSON's types; decimals as text."""
    return msgspec.to_builtins(value, builtin_types=(), enc_hook=str) if value is not None else None


def instructions_of(messages: Collection[Message]) -> str:
    """The text of the system message; empty if there is none."""
    return next((message.text for message in messages if isinstance(message, SystemMessage)), "")


def in_words(event: Event | None) -> str:
    """An event on a line: its kind, and its fields that are not as they are by default."""
    if event is None:
        return "nothing more"
    given = {name: value for name, value in plain(event).items() if name not in ("at", "event")}
    return f"{_kind(event)}({', '.join(f'{name}={_shown(value)}' for name, value in given.items())})"


def _kind(event: Event | None) -> str:
    return "" if event is None else type(event).__name__


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = repr(text) if isinstance(value, str) else text
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _around(text: str, other: str) -> str:
    """`text` from a little before the first letter in which it differs from `other`, as far as it is shown."""
    if len(text) <= SHOWN:
        return text
    same = next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))
    start = max(0, same - SHOWN // 4)
    part = text[start : start + SHOWN]
    return f"{'…' if start else ''}{part}{'…' if start + SHOWN < len(text) else ''}"


_NOT_OF_THE_AGENT = ("at", "run_id", "messages", "format", "parent", "one_step")


def agent_changes(recorded: RunStarted, now: RunStarted) -> tuple[Change, ...]:
    """What of the agent is other than what the run began with."""
    but = (*_NOT_OF_THE_AGENT, *(("rules", "hooks") if recorded.rules is None else ()))
    told, tells = instructions_of(recorded.messages), instructions_of(now.messages)
    if recorded.hooks is not None:
        # A budget that the agent has not was the run's own, as far as anybody knows; a replay is given none.
        has = now.hooks or ()
        hooks = tuple([hook for hook in recorded.hooks if hook in has or not hook.startswith(f"{BUDGET} ")])
        recorded = replace(recorded, hooks=hooks)
    lines = (*(recorded.rules or ()), *(recorded.hooks or ()))
    if own_lines(lines) == lines:
        # Journals of before did not tell of the agents below.
        now = replace(now, rules=own_lines(now.rules or ()), hooks=own_lines(now.hooks or ()))
    changes = [] if told == tells else [Change("instructions", told, tells)]
    return (*changes, *changes_between(recorded, now, but=but))
