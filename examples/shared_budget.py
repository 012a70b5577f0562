"""Two hundred runs at once under one budget: what does not fit is not asked, and the budget is not passed.

Before each call its worst case is set aside, so that runs which ask at the same moment cannot overshoot together.
"""

import asyncio

from treadle import Agent, Budget, ModelSettings, Usage
from treadle.testing import ScriptedModel

model = ScriptedModel(lambda request: "Done.", usage=Usage(input_tokens=40, output_tokens=10))

budget = Budget(tokens=8_000)
agent = Agent(model, budget=budget, settings=ModelSettings(max_tokens=20))


async def main() -> None:
    results = await asyncio.gather(*(agent.run(f"Sort letter {number}.") for number in range(200)))
    done = sum(result.finished for result in results)
    print(f"{done} are done, {len(results) - done} were stopped by the budget, {budget.spent().tokens} tokens")


if __name__ == "__main__":
    asyncio.run(main())
