"""The loop by hand: `agent.run` does the same, with deadlines, retries and parallel tools on top."""

import asyncio

from treadle import Agent, CallModel, Finish, Nudge, Pause, PrepareStep, RunTools, tool
from treadle.testing import ScriptedModel


@tool(effect="read")
def times(a: int, b: int) -> int:
    """Multiplies two numbers."""
    return a * b


async def main():
    agent = Agent(ScriptedModel([[("times", {"a": 6, "b": 7})], "It is 42."]), tools=[times])
    run = agent.start("What is 6 times 7?")
    while command := run.next():
        print(f"{run.state.phase:>9} -> {type(command).__name__}")
        match command:
            case PrepareStep():
                run.feed(run.prepare(command))
            case CallModel():
                async for event in agent.model.stream(run.request()):
                    reply = event  # the last event is the whole reply
                run.feed(reply)
            case RunTools(records=records):
                for record in records:
                    await run.call_tool(record)
            case Nudge() | Pause() | Finish():
                run.feed(command.event())
    print(f"{run.state.phase:>9}")
    print(run.result.text)


asyncio.run(main())
