"""Made: how often a run has made a call, with the same arguments, for the rules that say how often it may be.

Arguments are the same if the tool is given the same, however they are written: a default that is written out, or a
number as a text, makes no other call of it. Of a call that was made before the run was taken up, a journal that redacts
has what it was allowed to keep: one that would be kept alike is taken for the same.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace
from pydantic_core import PydanticSerializationError, to_json

from treadle.context.redacting import kept_arguments
from treadle.drivers.run import Run
from treadle.judging.sameness import SHORT, arguments_key
from treadle.kernel.calls import CallRecord
from treadle.kernel.messages import ToolCall
from treadle.tools import Tool, ToolError


class MadeCalls:
    """The calls that a run has made, counted when somebody first asks, and as they are let in from then on.

    Each counts that was run or given to somebody outside: those of the model, those in place of them, and those made
    again.
    """

    __slots__ = ("_counts", "_let_in", "_run")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._let_in: list[CallRecord] = []
        self._counts: Counter[tuple[str, int]] | None = None

    def let_in(self, record: CallRecord) -> None:
        """Counts a call that may begin now; one that was under way when a process died has been counted."""
        if record.executed:
            return
        if self._counts is None:
            self._let_in.append(record)
        else:
            self._counts[self._key(record.doing)] += 1

    def times(self, record: CallRecord) -> int:
        """How often the call that `record` is about was made before."""
        counts = self._counts
        if counts is None:
            run = self._run
            calls = [call for one in records_of(run) for call in one.calls_run]
            calls += [one.doing for one in self._let_in if self._is_to_begin(one)]
            # A tool that is gone is not called again.
            counts = self._counts = Counter(self._key(call) for call in calls if call.name in run.config.tools)
        call, redact = record.doing, self._run.redact
        keys = {self._key(call)}
        if redact is not None:
            keys.add(self._key(replace(call, arguments=kept_arguments(call.arguments, redact))))
        return sum(counts[key] for key in keys) - record.executed

    def _is_to_begin(self, record: CallRecord) -> bool:
        step = self._run.state.step
        now = None if step is None else step.calls.find(record.id)
        return now is not None and now.made == record.made and not now.executed

    def _key(self, call: ToolCall) -> tuple[str, int]:
        tool, text = self._run.config.tools[call.name], call.arguments
        return call.name, _known(tool, text) if len(text) <= SHORT else _given(tool, text)


def records_of(run: Run) -> list[CallRecord]:
    """The calls of all steps of a run."""
    return [*(record for step in run.state.steps for record in step.calls), *calls_so_far(run)]


def calls_so_far(run: Run) -> Sequence[CallRecord]:
    """The calls of the step under way; none while its reply arrives."""
    return () if run.state.step is None else run.state.step.calls


def _given(tool: Tool, text: str) -> int:
    """The same number for arguments of which `tool` is given the same."""
    try:
        return arguments_key(to_json(tool.validate(text)).decode())
    except (ToolError, PydanticSerializationError):
        # What does not fit is never run, and what has no form in JSON is known by what was written.
        return arguments_key(text)


_known = lru_cache(maxsize=1024)(_given)
