"""A server of tools: what lists tools and carries their calls out elsewhere, and may change its list meanwhile.

Nothing of the house knows what protocol it speaks. What it listed is recorded in the run's journal, and the tools of a
run are always made of that record: so a run can be read, resumed and replayed without starting a server.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from treadle.kernel.messages import ListedTool
from treadle.tools.tool import Tool

JOINT = "__"
"""What stands between the name of a server and that of its tool, in the name that the model calls."""


class ServerFailed(RuntimeError):
    """A server of tools cannot be used: it does not start, does not answer, or says what nobody can use."""


@runtime_checkable
class ToolServer(Protocol):
    """A server of tools."""

    @property
    def name(self) -> str:
        """What it is called here; its tools' names begin with it."""

    async def listed(self, known: Sequence[ListedTool], first: Sequence[ListedTool]) -> Sequence[ListedTool]:
        """The tools that it has now; `known` are those that it had when the run last asked, and `first` all that it had
        in this run, as they were at first.

        Raises:
            ServerFailed: it cannot say, and nothing is known.
        """

    def tool(self, listed: ListedTool) -> Tool | None:
        """The tool that was listed so, whether the server runs or not; None for one that is not to be used by now.

        What the application says of it holds as it says it now, whatever it said when the tool was listed.
        """

    def held(self) -> AbstractAsyncContextManager[object]:
        """Keeps it running from its first use on, until the last that holds it lets go."""


@runtime_checkable
class Ruled(Protocol):
    """A server of tools that has rules of its own on what is called of it."""

    @property
    def rules(self) -> Sequence[str]:
        """What it was given of them here, a line a rule, whatever it lists."""


def is_of(server: str, tool: str) -> bool:
    """Whether a tool of that name is, or could be, one of the server's: no other may have such a name."""
    return tool.startswith(f"{server}{JOINT}")
