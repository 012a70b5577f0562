"""Relay: a model that asks for the one call that somebody else asked for.

So a tool that is served is called in a run of one step, by the same door as any other call: its arguments are checked,
rules and approvals hold, and it stands in the journal.
"""

import json
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import AssistantMessage, ToolCall, Usage, UserMessage
from treadle.models.bounds import LONGEST_REPLY
from treadle.models.port import ModelEvent, ModelReply, ModelRequest

CALL_ID = "call"
"""What the one call of such a run is called."""


class Relay:
    """Asks for what the last thing that was said to it names, which is a call as `asked` writes it."""

    name = "relay"

    def cost(self, usage: Usage) -> Decimal:
        """Nothing: nobody thinks."""
        return Decimal(0)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The call, as the whole reply."""
        said = next(one for one in reversed(request.messages) if isinstance(one, UserMessage))
        yield ModelReply(called(said), Usage(), "tool_calls")


def asked(tool: str, arguments: Any) -> str:
    """A call, as it is said to the relay.

    Raises:
        Misuse: it is longer than a model may say.
    """
    if len(json.dumps(arguments)) + len(tool) > LONGEST_REPLY:
        raise Misuse(f"the arguments have more than {LONGEST_REPLY:,} characters as JSON in ASCII: nothing was done")
    return json.dumps({"tool": tool, "arguments": arguments}, ensure_ascii=False)


def called(said: UserMessage) -> AssistantMessage:
    """The call that `said` names, which is one as `asked` writes it."""
    found = json.loads(said.text)
    return AssistantMessage((ToolCall(CALL_ID, found["tool"], json.dumps(found["arguments"])),))
