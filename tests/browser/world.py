"""The agents that are walked through in the browser, by models that follow a script.

    cd tests/browser; treadle serve --agent world:desk --agent world:shop --agent world:manager

What is to last until somebody has looked waits for a file `open.NAME` in the folder that `TREADLE_WALK` names.
"""

import asyncio
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

from treadle import Agent, Limits, Price, ToolContext, Usage, tool
from treadle.analyst import analyst_skill
from treadle.kernel.messages import AssistantMessage, Text, Thinking, ToolCall
from treadle.models.port import ModelReply, ModelRequest, TextDelta
from treadle.testing import ScriptedModel
from treadle.tools.builtin import SKILLS

USAGE = Usage(input_tokens=1200, output_tokens=80, cache_read_tokens=900)
PRICE = Price(input=Decimal("3"), output=Decimal("15"), cache_read=Decimal("0.3"))
HOSTILE = """# <script>document.title = "owned"</script>

<img src="http://127.0.0.1:9/pixel.png" onerror="document.title='owned'">

![pixel](http://127.0.0.1:9/pixel.png) and [click me](javascript:document.title='owned') and
[a shop](http://127.0.0.1:9/shop?q=1), **bold** and `code <b>` &amp; &lt;i&gt;

Pay \u202eeciohcerp\u202c to\u200b Ada.

| item | amount |
|:-----|-------:|
| <iframe src="http://127.0.0.1:9/"></iframe> | 9007199254740993 |
"""
LARGE = '{"iban":"AT02\u202e 1904","amount":12345678901234567890.10,"note":"three\u200bhidden"}'


@tool(effect="write", needs_approval=True)
def pay(iban: str, amount: Decimal, note: str = "") -> str:
    """Pays an amount to an account."""
    return f"paid {amount} to {iban} ({note})"


@tool(effect="read")
def look_up(customer: str) -> dict[str, Any]:
    """What is known of a customer."""
    return {"customer": customer, "balance": "9007199254740993.10", "since": 2019, "note": HOSTILE}


@tool(effect="read")
async def slow_search(topic: str, context: ToolContext) -> str:
    """Searches for long."""
    for part in range(3):
        context.report(f"searched {part + 1} of 3 shelves")
    await _opened("search")
    return f"three books about {topic}"


@tool(effect="write")
async def send(parcel: str) -> str:
    """Sends a parcel."""
    await _opened("send")
    return f"sent {parcel}"


@tool(effect="read")
def broken(word: str) -> str:
    """Fails."""
    raise ValueError(f"no such word: {word}")


FOLDER = Path(os.environ.get("TREADLE_WALK", "."))


async def _opened(name: str) -> None:
    # Another process opens it.
    while not (FOLDER / f"open.{name}").exists():  # noqa: ASYNC110
        await asyncio.sleep(0.02)


def clerk(request: ModelRequest) -> Any:
    """Stands in for a language model: what it does follows from what it was asked."""
    asked = next((one.text.lower() for one in reversed(request.messages) if one.role == "user"), "")
    last = request.messages[-1]
    if last.role == "tool" and "count" not in asked:
        results = [one.text for one in request.messages if one.role == "tool"]
        return _reply(Text(f"It is done: {results[-1][:120]}"))
    if "pay" in asked:
        return _reply(Thinking("They want money to be sent. I have to ask."), ToolCall("pay_1", "pay", LARGE))
    if "send" in asked:
        return _reply(ToolCall("send_1", "send", '{"parcel": "a shuttle"}'))
    if "hostile" in asked:
        return _reply(Text(HOSTILE))
    if "tiresome" in asked:
        return _reply(Text("_a" * 40_000))
    if "look" in asked:
        calls = [ToolCall(f"look_{at}", "look_up", f'{{"customer": "Ada {at}"}}') for at in range(2)]
        return _reply(Text("I look both up."), *calls, ToolCall("broken_1", "broken", '{"word": "x"}'))
    if "search" in asked:
        return _reply(Text("I search."), ToolCall("search_1", "slow_search", '{"topic": "weaving"}'))
    if "stream" in asked:
        return _streamed()
    if "count to" in asked:
        made = sum(one.role == "assistant" for one in request.messages)
        upto = int("".join(filter(str.isdigit, asked.partition("count to")[2])) or 3)
        if made < upto:
            return _reply(
                Text(f"Number {made + 1}."), ToolCall(f"count_{made}", "look_up", f'{{"customer": "Nr {made}"}}')
            )
    return _reply(Text(f"You said **{asked}**. There is nothing to do."))


async def _streamed() -> Any:
    text = "Once a shuttle went through the warp, and came back with a story. "
    for word in text.split(" "):
        yield TextDelta(word + " ")
        await asyncio.sleep(0.01)
    await _opened("stream")
    yield TextDelta("The end.")
    yield ModelReply(AssistantMessage((Text(f"{text} The end."),)), USAGE, "stop")


def _reply(*parts: Any) -> ModelReply:
    calls = any(isinstance(part, ToolCall) for part in parts)
    return ModelReply(AssistantMessage(parts), USAGE, "tool_calls" if calls else "stop")


def _manage(request: ModelRequest) -> Any:
    last = request.messages[-1]
    if last.role == "tool":
        return _reply(Text(f"The shop says: {last.text[:80]}"))
    task = "please pay Ada" if "pay" in last.text else "look Ada up"
    return _reply(ToolCall("shop_1", "ask_shop", f'{{"task": "{task}"}}'))


desk = Agent("offline", skills=[analyst_skill(), *SKILLS.values()], name="desk")
shop = Agent(
    ScriptedModel(clerk, chunk=8, name="script", usage=USAGE, price=PRICE, keep_requests=False),
    tools=[pay, send, look_up, slow_search, broken],
    name="shop",
    limits=Limits(steps=2500, tool_calls=5000),
    watch_progress=False,
    instructions="You work in a shop for looms. Ask before you pay.",
)
manager = Agent(
    ScriptedModel(_manage, name="manager-script", usage=USAGE, price=PRICE, keep_requests=False),
    tools=[shop.as_tool("ask_shop", "Asks the shop.")],
    name="manager",
)
