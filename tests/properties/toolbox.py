"""Tools of every temper for generated runs, and the record of what they did."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from treadle import (
    Injected,
    ToolContext,
    ToolError,
    external_tool,
    tool,
)


@dataclass
class World:
    """What the tools did: every execution by tool, step and call id."""

    executed: list[tuple[str, int, str]] = field(default_factory=list)
    in_door: int = 0
    most_in_door: int = 0
    under_way: set[str] = field(default_factory=set)
    beside_alone: list[str] = field(default_factory=list)

    def note(self, context: ToolContext) -> None:
        self.executed.append((context.tool_name, context.step, context.call_id))


@tool(effect="read")
async def look(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Look."""
    deps.note(context)
    deps.under_way.add(context.call_id)
    try:
        for _ in range(3):
            await asyncio.sleep(0)
    finally:
        deps.under_way.discard(context.call_id)
    return f"saw {n}"


@tool(effect="read")
def look_in_thread(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> dict[str, int]:
    """Look, in a thread."""
    deps.note(context)
    return {"n": n}


@tool(effect="idempotent")
async def put(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> int:
    """Put."""
    deps.note(context)
    await asyncio.sleep(0)
    return n


@tool(effect="write")
async def write(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Write."""
    deps.note(context)
    await asyncio.sleep(0)
    return "written"


@tool(alone=True)
async def write_alone(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> None:
    """Write with nothing beside it."""
    deps.note(context)
    deps.beside_alone += deps.under_way
    await asyncio.sleep(0)
    deps.beside_alone += deps.under_way


@tool(resource="door")
async def through_door(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Go through a door that takes one at a time."""
    deps.note(context)
    deps.in_door += 1
    deps.most_in_door = max(deps.most_in_door, deps.in_door)
    try:
        await asyncio.sleep(0)
    finally:
        deps.in_door -= 1
    return "through"


@tool
async def fails(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Fail."""
    deps.note(context)
    raise ValueError(f"cannot do {n}")


@tool(effect="read")
async def refuses(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Say what would be right."""
    deps.note(context)
    raise ToolError("there is no such thing", available=["a", "b"], given=n)


@tool(effect="read", timeout=0.001)
async def too_slow(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Take too long."""
    deps.note(context)
    await asyncio.sleep(30)
    return "never"


@tool(effect="read")
async def not_json(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> object:
    """Return what has no JSON form."""
    deps.note(context)
    return object()


@tool
async def cancels_itself(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Raise CancelledError of its own."""
    deps.note(context)
    raise asyncio.CancelledError("mine")


@tool(needs_approval=True)
async def guarded(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Do what a person must agree to."""
    deps.note(context)
    await asyncio.sleep(0)
    return "done with leave"


def _cannot_say(arguments: dict[str, Any]) -> bool:
    return bool(1 // arguments.get("n", 0))


@tool(needs_approval=_cannot_say, effect="read")
async def guarded_sometimes(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Do what a person must agree to when n is 0 (the question fails) or 1."""
    deps.note(context)
    return "done"


@tool
async def hangs(n: int = 0, *, context: ToolContext, deps: Injected[World]) -> str:
    """Wait for ever."""
    deps.note(context)
    await asyncio.get_running_loop().create_future()
    return "never"


done = external_tool("done", "Give the answer.", {"type": "object", "properties": {"n": {"type": "integer"}}})
ask = external_tool("ask", "Ask outside.", {"type": "object", "properties": {"n": {"type": "integer"}}}, wait=True)

TOOLS = (
    look, look_in_thread, put, write, write_alone, through_door, fails, refuses, too_slow, not_json, cancels_itself,
    guarded, guarded_sometimes, done, ask,
)  # fmt: skip
NAMES = tuple(one.name for one in TOOLS)
QUICK = tuple(one for one in TOOLS if one.name not in ("look_in_thread", "too_slow"))
"""Tools that need neither a thread nor a timer: a run of them takes the same turns of the event loop every time."""
