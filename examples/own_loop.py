"""The loop is yours: `agent.step` is one model call and its tools, over your own list of messages."""

import asyncio

from treadle import Agent, tool
from treadle.testing import ScriptedModel


@tool(effect="read")
def check_stock(product: str) -> int:
    """Tells how many pieces of a product are in stock."""
    return {"widget": 150, "gadget": 75}[product]


def clerk(request):
    """Stands in for a language model: looks both products up, one after the other, then answers."""
    asked = sum(message.role == "assistant" for message in request.messages)
    return [[("check_stock", {"product": "widget"})], [("check_stock", {"product": "gadget"})], "225 pieces."][asked]


async def main():
    agent = Agent(ScriptedModel(clerk), tools=[check_stock])
    messages = "How many pieces do we have in all?"
    while True:
        result = await agent.step(messages)
        messages = result.messages
        for call in result.tool_calls_made:
            print(call.name, call.arguments, "->", call.result.text)
        if result.stop.reason != "max_steps":  # the step was the last, for whatever reason
            break
    print(result.require().text)


asyncio.run(main())
