"""Bare calls: those of a reply whose blocks have ended without arguments. Pure.

What cuts a reply off ends its last block too, so that the end of a block tells only of arguments that were closed; what
comes after it tells of none. Neighbours: the decoders of Claude's and of Bedrock's streams.
"""

from treadle.models.port import ModelEvent, ToolCallCompleted


class BareCalls:
    """The calls of which it is not known yet whether they are complete."""

    __slots__ = ("_ids",)

    def __init__(self) -> None:
        self._ids: list[str] = []

    def ended(self, call_id: str) -> None:
        """Takes in a call whose block has ended without arguments."""
        self._ids.append(call_id)

    def left_out(self) -> None:
        """Nothing will come of those there are."""
        self._ids.clear()

    def moved_on(self, again: str | None = None) -> list[ModelEvent]:
        """Completes them, as the reply went on or was whole, but for the one that begins `again`."""
        events: list[ModelEvent] = [ToolCallCompleted(call_id) for call_id in self._ids if call_id != again]
        self._ids.clear()
        return events
