"""A team: dependencies, an answer of a type that is checked, retries, and a hand-off to an expert."""

from dataclasses import dataclass

from pydantic import BaseModel

from treadle import Agent, Injected, Retries, StepContext, handoff, tool
from treadle.models import Overloaded
from treadle.testing import ScriptedModel

front_model = ScriptedModel([Overloaded("busy"), [("transfer_to_billing", {"reason": "it is about a bill"})]])
billing_model = ScriptedModel(
    [[("open_amount", {"bill": "A-17"})], '{"bill": "A-18", "amount": 0}', '{"bill": "A-17", "amount": 20}']
)


@dataclass
class Shop:
    open_bills: dict[str, int]


class Reminder(BaseModel):
    bill: str
    amount: int


@tool(effect="read")
def open_amount(bill: str, shop: Injected[Shop]) -> int:
    """Tells what is still to be paid of a bill."""
    return shop.open_bills[bill]


def is_right(answer: Reminder, context: StepContext[Shop]) -> str | None:
    owed = context.deps.open_bills.get(answer.bill)
    return None if answer.amount == owed else f"Of {answer.bill} {owed or 'nothing'} is to be paid."


billing = Agent(billing_model, name="billing", tools=[open_amount], output=Reminder, on_answer=is_right)
front = Agent(front_model, tools=[handoff(billing)], output=Reminder, retries=Retries(base=0.01), deps_type=Shop)

if __name__ == "__main__":
    result = front.run_sync("Remind Ada of bill A-17.", deps=Shop({"A-17": 20}))
    print(result.require().output)
