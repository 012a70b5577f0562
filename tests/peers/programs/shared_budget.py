"""The same with pydantic-ai: the runs share a usage, which is looked at before each call and added to after it."""

import asyncio

from played import answers
from pydantic_ai import Agent, RunUsage, UsageLimitExceeded, UsageLimits

model = answers("Done.")

usage, limits = RunUsage(), UsageLimits(total_tokens_limit=8_000, request_limit=None)
agent = Agent(model)


async def run(number: int) -> bool:
    try:
        await agent.run(f"Sort letter {number}.", usage=usage, usage_limits=limits)
    except UsageLimitExceeded:
        return False
    return True


async def main() -> None:
    results = await asyncio.gather(*(run(number) for number in range(200)))
    done = sum(results)
    print(f"{done} are done, {len(results) - done} were stopped by the limit, {usage.total_tokens} tokens")


if __name__ == "__main__":
    asyncio.run(main())
