"""Reflexion as a recipe: an attempt, a check that is code and not a model, a reflection, and another attempt.

What was learnt goes into the next attempt's instructions; a fixed number of attempts keeps it from going on for ever.
"""

import asyncio

from treadle import Agent
from treadle.testing import ScriptedModel

ATTEMPTS = 3


def check(answer: str) -> str:
    """What is wrong with an answer; empty if nothing is."""
    words = answer.split()
    return "" if len(words) == 5 else f"It has {len(words)} words, and must have 5."


async def main():
    writer = ScriptedModel(["Spring rain falls on the old pond.", "Spring rain wakes the pond."])
    critic = ScriptedModel(["I wrote a whole sentence. Count the words before you answer."])
    lessons: list[str] = []
    for attempt in range(1, ATTEMPTS + 1):
        learnt = "\n".join(f"- {lesson}" for lesson in lessons)
        agent = Agent(writer, instructions=f"Write a line of exactly five words about spring.\n{learnt}")
        answer = (await agent.run("Write it.")).require().text
        wrong = check(answer)
        print(f"attempt {attempt}: {answer} {wrong}".strip())
        if not wrong:
            return
        reflection = await Agent(critic).run(f"You wrote: {answer}\nWhat is wrong: {wrong}\nWhat do you learn from it?")
        lessons.append(reflection.require().text)
    print("given up")


asyncio.run(main())
