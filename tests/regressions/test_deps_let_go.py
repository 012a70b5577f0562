"""What a tool works with is let go of when its call is over."""

import gc
import sys
import weakref
from types import FrameType

from treadle import Agent, tool
from treadle.testing import ScriptedModel


class Client:
    """What an application's tool works with; it keeps who called it, as debuggers and tracers do."""

    def __init__(self) -> None:
        self.callers: list[FrameType] = []


def _client_of_a_run() -> "weakref.ref[Client]":
    client = Client()

    @tool
    async def look(q: str) -> str:
        """Looks."""
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            client.callers.append(frame)
            frame = frame.f_back
        return q

    result = Agent(ScriptedModel([[("look", {"q": "a"})], "done"]), tools=[look]).run_sync("Look.")
    assert result.stop.reason == "answered"
    assert client.callers
    return weakref.ref(client)


def test_what_a_tool_works_with_is_let_go_of_though_it_keeps_who_called_it() -> None:
    client = _client_of_a_run()
    gc.collect()
    assert client() is None
