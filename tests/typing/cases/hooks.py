"""Hooks: functions of the right form are taken, one or several, plain or asynchronous."""

from typing import Any

from treadle import Agent, CallRecord, StepContext


def more(call: CallRecord) -> dict[str, Any] | None:
    return {**call.arguments, "amount": 1} if call.name == "pay" else None


async def later(call: CallRecord) -> dict[str, int]:
    return {"amount": 2}


def wrong(call: CallRecord) -> int:
    return 3


def polite(answer: str, context: StepContext[Any]) -> str | None:
    return None if "please" in answer else "Say please."


Agent("offline", on_tool_call=more, on_answer=polite)
Agent("offline", on_tool_call=[more, later], on_answer=[polite])
Agent("offline", on_tool_call=wrong)  # expect-error
