"""An agent and tools that the tests serve."""

from treadle import Agent, Image, ToolContext, ToolError, ask_before, tool
from treadle.testing import ScriptedModel
from treadle.tools.builtin import ask_user


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool(needs_approval=True)
def pay(amount: int, context: ToolContext) -> str:
    """Pays an amount."""
    context.report("paying")
    print("on its way")
    return f"paid {amount} under {context.idempotency_key.rpartition('-')[2]}"


@tool(effect="read")
def fails() -> str:
    """Fails, and says what would be right."""
    raise ToolError("there is no such thing", available=["a", "b"])


@tool(effect="read")
def breaks() -> str:
    """Breaks for a reason that is nobody's business."""
    raise ValueError("the password is 1234")


@tool(effect="read")
def picture() -> Image:
    """Shows a picture."""
    return Image(b"\x89PNG")


@tool(effect="read")
async def slow() -> str:
    """Takes its time."""
    import asyncio

    await asyncio.sleep(60)
    return "never"


tools = [add, pay, fails, breaks, picture, slow, ask_user]


def says(request):
    told = [one.text for one in request.messages if one.role == "tool"]
    if "fail" in request.messages[-1].text:
        raise RuntimeError("the password is 1234")
    return f"The tools said: {told}" if told else [("add", {"a": 1, "b": 2}), ("pay", {"amount": 5})]


agent = Agent(ScriptedModel(says), tools=[add, pay], approvals=[ask_before("pay", reason="it is money")], name="clerk")
