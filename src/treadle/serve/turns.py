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


class Turn(NamedTuple):
    """An answer of a run.

    Attributes:
        paused: the number of the pause after which it was asked for; 0 for the first.
        end: the number of the event that asks for the next; None for the last.
        said: what had been said by its end, with what came of its calls, though that may have come later.
    """

    paused: int
    end: int | None
    said: Sequence[Message]


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
    asked = list(asked_in_pauses(events))
    found, begun, state, waiting = list[Turn](), 0, RunState(), list(asked)
    for number, event in enumerate(events, 1):
        state = fold(state, event)
        while waiting and waiting[0][1] <= number and (at := _place(state, waiting[0][2])) is not None:
            paused, end, _ = waiting.pop(0)
            found.append(Turn(begun, end, conversation_part(list(state.messages)[:at])))
            begun = paused
    return [*found, Turn(begun, None, conversation_part(history(state, state.stop or stopped("running"))))]


def _place(state: RunState, message: UserMessage) -> int | None:
    """Where a message stands; None while it waits for the end of a step."""
    messages = list(state.messages)
    return next((i for i in range(len(messages) - 1, -1, -1) if messages[i] is message), None)
