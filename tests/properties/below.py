"""Sub-agents of generated runs: called as a tool or handed on to, with all of their own."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from likely import mostly

from treadle import Tool, handoff

HELPER, PASS_ON = "helper", "pass_on"


@dataclass(frozen=True)
class Below:
    """An agent that works for another: called as `helper`, or by `pass_on`; `guarded` if a person must agree first."""

    setup: Any
    name: str = HELPER
    guarded: bool = False

    def tool(self, world: Any, tools: Any, path: str, journal: Any) -> Tool:
        """The tool by which it is called."""
        path = f"{path}/{self.name}"
        agent = self.setup.agent(self.setup.player(world, path), journal, tools, world, path)
        if self.name == PASS_ON:
            return handoff(agent, PASS_ON, "Somebody else.")
        return agent.as_tool(HELPER, "Somebody who helps.", needs_approval=self.guarded)


def belows(setups: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Below, ...]]:
    """None, one or both."""
    helper = st.builds(Below, setups, st.just(HELPER), st.sampled_from([False, False, True]))
    passed = st.builds(Below, setups, st.just(PASS_ON))
    return mostly(
        st.just(()), helper.map(lambda one: (one,)), passed.map(lambda one: (one,)), st.tuples(helper, passed), times=2
    )
