"""Made: how often a run has made a call, with the same arguments, for the rules that say how often it may be."""

from collections import Counter

from treadle.drivers.run import Run
from treadle.judging.sameness import arguments_key
from treadle.kernel.calls import CallRecord
from treadle.kernel.messages import ToolCall


class MadeCalls:
    """The calls that a run has made, counted when somebody first asks, and as they begin from then on.

    Each counts that was run or given to somebody outside: those of the model, those in place of them, and those made
    again.
    """

    __slots__ = ("_counts", "_run")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._counts: Counter[tuple[str, int]] | None = None

    def begun(self, record: CallRecord) -> None:
        """Counts a call that begins now; one that was under way when a process died has been counted."""
        if self._counts is not None and not record.executed:
            self._counts[_key(record.doing)] += 1

    def times(self, record: CallRecord) -> int:
        """How often the call that `record` is about was made before."""
        counts = self._counts
        if counts is None:
            state = self._run.state
            steps = state.steps if state.step is None else (*state.steps, state.step)
            counts = self._counts = Counter(
                _key(call) for step in steps for one in step.calls for call in one.calls_run
            )
        return counts[_key(record.doing)] - record.executed


def _key(call: ToolCall) -> tuple[str, int]:
    return call.name, arguments_key(call.arguments)
