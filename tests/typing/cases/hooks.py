"""Hooks: functions of the right form are taken, one or several, plain or asynchronous."""

from typing import Any

from treadle import Agent, CallRecord, Retry, StepContext
from treadle.models import ModelRequest
from treadle.testing import ScriptedModel, Turn
from treadle.tools import ToolOutput


def more(call: CallRecord) -> dict[str, Any] | None:
    return {**call.arguments, "amount": 1} if call.name == "pay" else None


async def later(call: CallRecord) -> dict[str, int]:
    return {"amount": 2}


def wrong(call: CallRecord) -> int:
    return 3


def polite(answer: str, context: StepContext[Any]) -> str | None:
    return None if "please" in answer else "Say please."


async def again(call: CallRecord, result: ToolOutput) -> Retry | str | None:
    return Retry() if result.is_error else result.text.upper()


def says(request: ModelRequest) -> Turn:
    return [("pay", {"amount": request.step})] if request.step < 2 else "paid"


Agent(ScriptedModel(says), on_tool_result=[again])
Agent("offline", on_tool_call=more, on_answer=polite)
Agent("offline", on_tool_call=[more, later], on_answer=[polite])
Agent("offline", on_tool_call=wrong)  # expect-error
