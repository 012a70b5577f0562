"""What many runs may take together: a dollar for each user, kept in a file, with a word when half of it is used."""

import asyncio
from decimal import Decimal

from treadle import Agent, Budget, Price, Usage
from treadle.testing import ScriptedModel


def say(share, spent):
    print(f"{spent.key} has used {share:.0%} of the allowance: {spent.usd} dollars")


# A model that takes 1,000 tokens for the question and 500 for the answer, at 100 and 400 dollars a million: 30 cents.
model = ScriptedModel(
    lambda request: "42.", usage=Usage(1000, 500), price=Price(Decimal(100), Decimal(400)), name="oracle"
)
model.max_output_tokens = 500

allowance = Budget(usd=1, per="user", path="allowance.db", warn=[0.5], on_warning=say)
oracle = Agent(model, budget=allowance)
question = "What is the answer? " * 150


async def main():
    for user in ("anna", "anna", "ben", "anna", "anna"):
        result = await oracle.run(question, user=user)
        print(f"{user}: {result.stop.reason}, {result.text or result.stop.advice}")
    for user in allowance.purses():
        spent = allowance.spent(user)
        print(f"{user} has used {spent.usd} dollars; {spent.left_usd} are left")
    allowance.close()


asyncio.run(main())
