"""Below: an agent that works on the calls of a tool. What makes a tool of an agent; `calls/subrun.py` carries it out."""

from collections.abc import Callable

from msgspec import Struct

from treadle.drivers.configuration import Configuration, Output
from treadle.kernel.messages import Message


class Below(Struct, frozen=True):
    """An agent that works on the calls of a tool.

    Attributes:
        config: the agent.
        system: makes the system message of its instructions, with those of its skills and of the type of its answer.
        final: whether the conversation is handed on to it, so that its answer is the run's.
        typed: how its model is asked for an answer of the type that the run above was asked for.
    """

    config: Configuration
    system: Callable[[str | None, Output | None], list[Message]]
    final: bool
    typed: Callable[[Output], Output]

    def output_below(self, above: Output | None) -> Output | None:
        """The type of answer of a run below one that was asked for `above`: its own, or at a hand-off that one."""
        if self.config.output is not None or above is None or not self.final:
            return self.config.output
        return self.typed(above)
