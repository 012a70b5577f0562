"""Turns: a run as the answers that a chat shows of it. Somebody may speak to a run that waits, and what it says then is
another answer. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from treadle.kernel.events import Event, MessageAdded, RunPaused, StepPrepared
from treadle.kernel.fold import fold
from treadle.kernel.messages import Message, UserMessage
from treadle.kernel.state import RunState
from treadle.kernel.stop import stopped
from treadle.result import conversation_part, history


class Place(NamedTuple):
    """Where a conversation is gone on with that has gone on from there before.

    Attributes:
        answer: after which answer: a run, and, where somebody spoke to that while it waited, a colon and the number of
            its events then; empty for from the beginning.
        message: what names the message that is said anew, or in other words (`Posting.message`). Where the run was
            under way when that was said, it is gone on with before it.
    """

    answer: str
    message: str = ""


class Turn(NamedTuple):
    """An answer of a run, or as much of it as was there when somebody spoke to the run under way.

    Attributes:
        paused: the number of the pause after which it was asked for; 0 for the first.
        asked: the number of the event that says what is answered next; None for the last.
        end: that of the first event that is no part of it: later, where that was said while a step was under way.
        said: what had been said by its end, with what came of its calls, though that may have come later.
        origin: that of what was said next; empty for the last.
    """

    paused: int
    asked: int | None
    end: int | None
    said: Sequence[Message]
    origin: str = ""


def answer_of(name: str) -> tuple[str, int]:
    """The run of an answer by its name, and the number of the run's events when it was asked for; 0 for the first."""
    run_id, _, number = name.partition(":")
    return run_id, int(number) if number.isdecimal() and len(number) < 16 else 0


def asked_in_pauses(events: Iterable[Event]) -> Iterator[tuple[int, int, UserMessage]]:
    """What was said to a run while it waited: the number of the pause, that of the event, and the message."""
    paused = 0
    for number, event in enumerate(events, 1):
        if isinstance(event, MessageAdded) and paused:
            yield paused, number, event.message
        if isinstance(event, RunPaused):
            paused = number
        elif isinstance(event, MessageAdded | StepPrepared):
            paused = 0


def turns(events: Sequence[Event]) -> list[Turn]:
    """The answers of a run that has these events, which follow on each other; at least one."""
    pauses = {asked: paused for paused, asked, _ in asked_in_pauses(events)}
    found, begun, state, waiting = list[Turn](), 0, RunState(), list[tuple[int, MessageAdded]]()
    for number, event in enumerate(events, 1):
        state = fold(state, event)
        if isinstance(event, MessageAdded):
            waiting.append((number, event))
        while waiting and (at := _place(state, waiting[0][1].message)) is not None:
            asked, said = waiting.pop(0)
            end = asked if asked in pauses or asked == number else number + 1
            found.append(Turn(begun, asked, end, conversation_part(list(state.messages)[:at]), said.origin))
            begun = pauses.get(asked, begun)
    return [*found, Turn(begun, None, None, conversation_part(history(state, state.stop or stopped("running"))))]


def turn_at(turns: Sequence[Turn], number: int, message: str) -> Turn:
    """The answer that was under way when a run had so many events, up to the message of that name, if it is there."""
    until = [one for one in turns if one.paused <= number]
    named = [one for one in until if message and message in one.origin.split()]
    return [*until, *named][-1]


def _place(state: RunState, message: UserMessage) -> int | None:
    """Where a message stands; None while it waits for the end of a step."""
    messages = list(state.messages)
    return next((i for i in range(len(messages) - 1, -1, -1) if messages[i] is message), None)
