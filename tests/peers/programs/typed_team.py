"""The same with pydantic-ai: the hand-off is an output function, a busy model is asked again by a wrapper around it."""

from dataclasses import dataclass

from played import Busy, plays
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.models.fallback import FallbackModel

front_model = plays(Busy("busy"), ("final_result_hand_off", {"reason": "it is about a bill"}))
billing_model = plays(
    ("open_amount", {"bill": "A-17"}), ("final_result", {"bill": "A-18", "amount": 0}),
    ("final_result", {"bill": "A-17", "amount": 20}),
)  # fmt: skip


@dataclass
class Shop:
    open_bills: dict[str, int]


class Reminder(BaseModel):
    bill: str
    amount: int


billing = Agent(billing_model, deps_type=Shop, output_type=Reminder)


@billing.tool
def open_amount(ctx: RunContext[Shop], bill: str) -> int:
    """Tells what is still to be paid of a bill."""
    return ctx.deps.open_bills[bill]


@billing.output_validator
def is_right(ctx: RunContext[Shop], answer: Reminder) -> Reminder:
    owed = ctx.deps.open_bills.get(answer.bill)
    if answer.amount != owed:
        raise ModelRetry(f"Of {answer.bill} {owed or 'nothing'} is to be paid.")
    return answer


async def hand_off(ctx: RunContext[Shop], reason: str) -> Reminder:
    """Hands the conversation on to billing."""
    done = await billing.run(deps=ctx.deps, usage=ctx.usage, message_history=ctx.messages[:-1])
    return done.output


model = FallbackModel(front_model, front_model, front_model, fallback_on=(Busy,))
front = Agent(model, deps_type=Shop, output_type=[hand_off, Reminder])

if __name__ == "__main__":
    result = front.run_sync("Remind Ada of bill A-17.", deps=Shop({"A-17": 20}))
    print(repr(result.output))
