"""A tool that a person must agree to. The run pauses, the program may end, and another one goes on with it."""

import asyncio

from treadle import Agent, SqliteJournal, tool
from treadle.testing import ScriptedModel


@tool(needs_approval=lambda arguments: arguments["amount"] > 100)
def refund(customer: str, amount: int) -> str:
    """Pays money back to a customer."""
    return f"{amount} paid back to {customer}"


def clerk(request):
    """Stands in for a language model: asks for one refund, then says what came of it."""
    last = request.messages[-1]
    return last.text if last.role == "tool" else [("refund", {"customer": "Ada", "amount": 250})]


async def first_program():
    async with SqliteJournal("runs.db") as journal:
        agent = Agent(ScriptedModel(clerk), tools=[refund], journal=journal)
        result = await agent.run("Ada wants her 250 back.")
        print("stopped:", result.stop.reason)
        for call in result.pending:
            print("asks for:", call.tool, call.arguments)
        return result.run_id, [call.call_id for call in result.pending]


async def second_program(run_id, call_ids):
    """Next week, on another machine that has the journal: nothing is left of the first but the file."""
    async with SqliteJournal("runs.db") as journal:
        agent = Agent(ScriptedModel(clerk), tools=[refund], journal=journal)
        result = await agent.resume(
            run_id, approve={call_id: {"customer": "Ada", "amount": 200} for call_id in call_ids}
        )
        print("stopped:", result.stop.reason)
        print(result.text)


run_id, call_ids = asyncio.run(first_program())
asyncio.run(second_program(run_id, call_ids))
