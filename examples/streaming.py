"""Watch a run as it happens: text as it is written, tool calls as they start and finish."""

import asyncio

from treadle import Agent, ToolContext, ToolProgress, tool
from treadle.kernel.events import RunFinished, ToolFinished, ToolStarted
from treadle.models import TextDelta
from treadle.testing import ScriptedModel


@tool(effect="read")
async def download(name: str, context: ToolContext) -> str:
    """Downloads a report."""
    for percent in (50, 100):
        context.report(f"{percent} %")
        await asyncio.sleep(0)
    return f"the text of {name}"


async def main():
    script = [("Let me get it.", [("download", {"name": "the yearly report"})]), "The report is short and friendly."]
    agent = Agent(ScriptedModel(script, chunk=8), tools=[download])
    async with agent.stream("What does the yearly report say?") as run:
        async for event in run:
            match event:
                case TextDelta(text=text):
                    print(f"[{text}]", end="")
                case ToolStarted(call_id=call_id):
                    print(f"\nstarted {call_id}")
                case ToolProgress(update=update):
                    print(f"  {update}")
                case ToolFinished(content=content):
                    print(f"finished: {content}")
                case RunFinished(stop=stop):
                    print(f"\nthe run ended: {stop.reason}")
    print(run.result.text)


asyncio.run(main())
