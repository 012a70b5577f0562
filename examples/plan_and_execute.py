"""Plan-and-Execute as a recipe: one agent writes a plan, another carries out its steps, and the first sums up.

Both draw on one budget, so that a long plan cannot run up a bill. Replace the scripts by models to have it done.
"""

import asyncio
from dataclasses import dataclass

from treadle import Agent, Budget, tool
from treadle.testing import ScriptedModel


@dataclass
class Plan:
    """The steps of a plan, in their order."""

    steps: list[str]


@tool(effect="read")
def look_up(city: str) -> int:
    """Tells how many people live in a city."""
    return {"Bonn": 336_000, "Cologne": 1_087_000}[city]


async def main():
    budget = Budget(tokens=50_000)
    planner = Agent(
        ScriptedModel(['{"steps": ["Look up Bonn", "Look up Cologne"]}', "Cologne is larger, by 751,000 people."]),
        instructions="Make a plan of a few steps, or sum up what was found.",
        output=Plan,
        output_mode="prompted",
        budget=budget,
    )
    worker = Agent(
        ScriptedModel([[("look_up", {"city": "Bonn"})], "336,000", [("look_up", {"city": "Cologne"})], "1,087,000"]),
        instructions="Carry out the one step that you are given. Answer with the result.",
        tools=[look_up],
        budget=budget,
    )
    task = "Which of Bonn and Cologne is larger, and by how many people?"
    plan = (await planner.run(task)).require().output
    found = []
    for step in plan.steps:
        result = (await worker.run(f"Task: {task}\nFound so far: {found}\nYour step: {step}")).require()
        found.append(f"{step}: {result.text}")
        print(found[-1])
    summary = Agent(planner.model, instructions="Answer the task from what was found.", budget=budget)
    print((await summary.run(f"Task: {task}\nFound: {found}")).require().text)


asyncio.run(main())
