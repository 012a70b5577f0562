"""Below: an agent that works on the calls of a tool. What makes a tool of it; `calls/subrun.py` carries it out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import UnionType
from typing import Any, Union, get_args, get_origin

from msgspec import Struct

from treadle.drivers.configuration import AnswerType, Configuration
from treadle.drivers.output import answer_type
from treadle.kernel.names import escaped
from treadle.models.profile import profile_of
from treadle.tools import Tool
from treadle.tools.server import Ruled


def run_id_below(run_id: str, step: int, call_id: str, made: int) -> str:
    """The name of the run that works on a call of run `run_id`; `made` is how many calls were made for it so far."""
    again = "" if made == 1 else f"+{made}"
    return f"{run_id}.{step}.{escaped(call_id)}{again}"


def parts_below(config: Configuration) -> Iterator[str]:
    """The servers of an agent, and the agents that work on calls of its tools, with theirs, by the names that lead to
    them, such as "mid/low"."""
    for server in config.servers:
        yield server.name
    for name, below in agents_in(config.tools):
        yield name
        for further in parts_below(below.config):
            yield f"{name}/{further}"


def rules_below(config: Configuration) -> Iterator[tuple[str, Sequence[str]]]:
    """The rules of the servers of an agent, and of the agents below it with theirs, by their names there.

    A server and the tool that an agent works for may have the same.
    """
    for server in config.servers:
        if isinstance(server, Ruled):
            yield server.name, tuple(server.rules)
    for name, below in agents_in(config.tools):
        yield name, below.config.rules


class Below(Struct, frozen=True):
    """An agent that works on the calls of a tool.

    Attributes:
        config: the agent.
        final: whether the conversation is handed on to it, so that its answer is the run's.
    """

    config: Configuration
    final: bool

    def config_below(self, above: Configuration) -> Configuration:
        """The agent as it works below one that is `above`: at a hand-off its answer is also that one's."""
        checks = (*self.config.on_answer, *above.on_answer) if self.final else self.config.on_answer
        output = self.output_below(above.output)
        config = replace(self.config, output=output, on_answer=checks)
        # A schema that is not the agent's own takes tokens too.
        return config if output is self.config.output else config.counted()

    def output_below(self, above: AnswerType | None) -> AnswerType | None:
        """The type of answer of a run below one that was asked for `above`: its own, or at a hand-off that one."""
        if self.config.output is not None or above is None or not self.final:
            return self.config.output
        own = self.config
        native = profile_of(own.model).output_mode(bool(own.tools or own.servers)) == "native"
        # A final tool would have to be among its tools.
        return answer_type(above.kind, "native" if native else "prompted", own.tools)

    def answer_types(self, above: AnswerType | None) -> Iterator[AnswerType]:
        """What an answer may be of that a run which was asked for `above` has handed on to it.

        Its own type comes first, then those of agents to which it may have handed on in turn.
        """
        if not self.final:
            return
        mine = self.output_below(above)
        if mine is not None:
            yield mine
        for _, below in agents_in(self.config.tools):
            yield from below.answer_types(mine)

    def other_than(self, above: AnswerType) -> Configuration | None:
        """The agent that may answer a run that was asked for `above`, and with another type; None if there is none."""
        own = self.config.output
        if not self.final:
            return None
        if own is not None:
            return None if is_kind_of(own.kind, above.kind) else self.config
        handed = (below.other_than(above) for _, below in agents_in(self.config.tools))
        return next((other for other in handed if other is not None), None)


def below_of(tool: Tool | None) -> Below | None:
    """The agent that works on the calls of a tool; None if none does."""
    return tool.agent if tool is not None and isinstance(tool.agent, Below) else None


def agents_in(tools: Mapping[str, Tool]) -> Iterator[tuple[str, Below]]:
    """The agents that work on the calls of some of these tools, by the names of those."""
    for name, tool in tools.items():
        if isinstance(tool.agent, Below):
            yield name, tool.agent


def is_kind_of(kind: Any, other: Any) -> bool:
    """Whether a value of type `kind` is one of type `other`."""
    if kind == other:
        return True
    if _is_union(kind):
        return all(is_kind_of(one, other) for one in get_args(kind))
    if _is_union(other):
        return any(is_kind_of(kind, one) for one in get_args(other))
    try:
        return issubclass(kind, other)
    except TypeError:
        # One of them is no class, but such as `list[str]`.
        return False


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType)
