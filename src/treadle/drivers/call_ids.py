"""Call ids: every call of a run has one of its own, whatever its model says."""

from treadle.context.ids_apart import distinct_ids
from treadle.kernel.history import have_distinct_ids
from treadle.kernel.messages import AssistantMessage
from treadle.kernel.state import RunState


class CallIds:
    """The ids of a run's calls, gathered from its history when somebody first asks."""

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used: set[str] | None = None

    def used(self, state: RunState) -> set[str]:
        """The ids that calls of the run have had."""
        if self._used is None:
            said = [one for one in state.messages if isinstance(one, AssistantMessage)]
            made = [record.call for step in state.steps for record in step.calls]
            self._used = {call.id for call in (*made, *(call for one in said for call in one.calls))}
        return self._used

    def given(self, state: RunState, message: AssistantMessage) -> AssistantMessage:
        """`message` with call ids that the run has not had yet: some servers begin to count anew in each reply."""
        calls = message.calls
        if not calls:
            return message
        used = self.used(state)
        if state.early:
            # A reply that was withdrawn may have begun another call under an id of this one.
            same = {(call.id, call.name, call.arguments) for call in calls}
            begun = [(one.stale, one.call) for one in state.early]
            used |= {call.id for stale, call in begun if stale or (call.id, call.name, call.arguments) not in same}
        if len(calls) == 1 and calls[0].id and calls[0].id not in used:
            used.add(calls[0].id)
            return message
        ids = [call.id for call in calls]
        if not have_distinct_ids(calls) or not used.isdisjoint(ids):
            message = distinct_ids(message, used)
            ids = [call.id for call in message.calls]
        used.update(ids)
        return message
