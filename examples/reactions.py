"""A look at each result before the model sees it: try again, take another tool, put it otherwise, ask the person."""

import asyncio

from treadle import Agent, Alternative, AskUser, Retry, tool
from treadle.testing import ScriptedModel

asked = []


@tool(effect="read")
def rate(currency: str) -> str:
    """Tells today's rate of a currency; its server is busy at first."""
    asked.append(currency)
    if len(asked) == 1:
        raise ConnectionError("the server is busy")
    return f"1 EUR = 1.08 {currency}"


@tool(effect="read")
def search(words: str) -> str:
    """Searches the archive of the last year."""
    return "no hits"


@tool(effect="read")
def search_all(words: str) -> str:
    """Searches the archive of all years."""
    return "two letters of 1848"


@tool(effect="read")
def read_amount(page: int) -> dict:
    """Reads the amount on a scanned page."""
    return {"amount": 7113, "confidence": 0.4}


def look_twice(call, result):
    """What becomes of a result. `call.name` is the tool that the model asked for."""
    if result.is_error:
        return Retry(delay=0.01)
    if result.content == "no hits":
        return Alternative("search_all", {"words": call.arguments["words"]})
    if call.name == "read_amount":
        return AskUser("Page 3 is hard to read. What is the amount?")
    if call.name == "rate":
        return f"{result.content} (as of today)"
    return None


script = [
    [("rate", {"currency": "USD"}), ("search", {"words": "letters"}), ("read_amount", {"page": 3})],
    "All is found.",
]
agent = Agent(ScriptedModel(script), tools=[rate, search, search_all, read_amount], on_tool_result=look_twice)


async def main():
    waiting = await agent.run("Get me the rate, the letters and the amount.")
    for call in waiting.pending:
        print("asks:", call.question, "It read:", call.found)

    result = await agent.resume(waiting, results={call.call_id: "7118" for call in waiting.pending})
    for call in result.tool_calls_made:
        print(call.name, "->", call.result.text)
    print(result.text)


asyncio.run(main())
