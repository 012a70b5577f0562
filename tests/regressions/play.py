"""What the named regressions share: tools that record what they did, streams that wait, and crashes.

A crash is a copy of what the journal held at one moment: `copied` takes it, and a run is taken up from the copy.
"""

import asyncio

from treadle import MemoryJournal, tool
from treadle.models import AssistantMessage, ModelReply, ToolCall, ToolCallCompleted, ToolCallDelta, ToolCallStarted


class Bank:
    """Tools that record what they did in `ran`, in order."""

    def __init__(self):
        self.ran = ran = []

        @tool
        async def pay(amount: int) -> str:
            """Pay."""
            ran.append(f"pay {amount}")
            return f"paid {amount}"

        @tool
        async def wipe() -> str:
            """Wipe everything."""
            ran.append("wipe")
            return "wiped"

        @tool(effect="read")
        async def look(key: str) -> str:
            """Look something up."""
            ran.append(f"look {key}")
            return f"value of {key}"

        @tool(effect="read")
        async def down(key: str) -> str:
            """Look something up where nothing answers."""
            ran.append(f"down {key}")
            raise ValueError("the server is down")

        self.pay, self.wipe, self.look, self.down = pay, wipe, look, down
        self.tools = [pay, wipe, look, down]

    def times(self, beginning):
        """How often a tool of this beginning ran."""
        return sum(one.startswith(beginning) for one in self.ran)


async def within(coroutine, seconds=10):
    """What `coroutine` returns; a run that never comes to an end fails here."""
    async with asyncio.timeout(seconds):
        return await coroutine


def apart(main):
    """What `main()` returns in an event loop of its own; what escapes from it fails the test, and not the session."""
    try:
        return asyncio.run(within(main()))
    except (SystemExit, KeyboardInterrupt, GeneratorExit) as escaped:
        raise AssertionError(f"{escaped!r} ended the event loop") from escaped


async def copied(journal, **options):
    """What `journal` holds now: all that a process that dies here leaves behind, in one with these `options`."""
    left = MemoryJournal(**options)
    for info in await journal.list(500):
        await left.append(info.run_id, 0, list(await journal.read(info.run_id)))
    return left


async def cut(run_id, events):
    """A journal that holds only `events` of the run."""
    left = MemoryJournal()
    await left.append(run_id, 0, list(events))
    return left


def pieces(id, name, json):
    """The pieces of a whole call, as they are streamed."""
    return [ToolCallStarted(id, name), ToolCallDelta(id, json), ToolCallCompleted(id)]


def reply(*calls, finish="tool_calls"):
    """A reply that asks for `(id, name, json)` calls."""
    return ModelReply(AssistantMessage(tuple(ToolCall(*call) for call in calls)), finish=finish)


def told(result):
    """What the model was shown of each call, in order."""
    return [message.text for message in result.messages if message.role == "tool"]


def kinds(events):
    """The names of the events' types, in order."""
    return [type(event).__name__ for event in events]
