"""Recent: which calls the latest steps of a run made, kept from one look at it to the next.

Every step of every run is looked at; so each call is only looked at once. What is kept follows from the steps alone: a
run that is taken up again is judged as it would have been.
"""

from collections.abc import Sequence

from treadle.judging.progress import WINDOW
from treadle.judging.sameness import arguments_key
from treadle.kernel.step import Step

MOST = 4096
"""Calls that are kept before those that no window holds any more are dropped."""


class Recent:
    """The calls of the steps before the last, by tool and arguments, with the step that made each last."""

    __slots__ = ("_at", "_next")

    def __init__(self) -> None:
        self._at: dict[tuple[str, int], int] = {}
        self._next = 0

    def made(self, steps: Sequence[Step], name: str, arguments: str) -> bool:
        """Whether a step of the window before the last of `steps` made this call."""
        last, at = len(steps) - 1, self._at
        before = last - WINDOW
        for number in range(max(self._next, before + 1), last):
            for record in steps[number].calls:
                at[record.call.name, arguments_key(record.arguments_json)] = number
        self._next = last
        if len(at) > MOST:
            self._at = at = {call: number for call, number in at.items() if number > before}
        return at.get((name, arguments_key(arguments)), before) > before
