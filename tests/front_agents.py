"""What the tests of the protocols share: agents that do what the last question names, and a real server for them."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from treadle import Agent, Limits, ToolContext, deny, external_tool, tool
from treadle.journal import Journal
from treadle.kernel.messages import AssistantMessage, Text, Thinking, ToolCall, ToolMessage, Usage, UserMessage
from treadle.models.errors import BadRequest, Overloaded
from treadle.models.port import ModelReply, TextDelta, ToolCallDelta, ToolCallStarted
from treadle.testing import ScriptedModel

HOSTILE = 'a/b#c "d" <script>'
"""An id of a call, as a model might give it."""

BIG = 9_007_199_254_740_993
"""A number that JavaScript rounds."""

PAID: list[tuple[str, int]] = []
"""Every payment that was really made."""


class Gate:
    """Holds tools called `slow` until it is opened."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.entered = threading.Event()
        self.cancelled = threading.Event()

    def shut(self) -> None:
        """As at the beginning."""
        for one in (self.open, self.entered, self.cancelled):
            one.clear()


GATE = Gate()


@tool(effect="read")
def look_up(word: str) -> dict[str, str]:
    """Looks a word up."""
    return {"word": word, "meaning": f"the meaning of {word}"}


@tool(needs_approval=True)
def pay(to: str, amount: int) -> str:
    """Pays somebody."""
    PAID.append((to, amount))
    return f"paid {amount} to {to}"


@tool(effect="read")
def breaks() -> str:
    """Fails."""
    raise RuntimeError("the shelf fell down")


@tool(effect="read")
async def slow(context: ToolContext) -> str:
    """Takes long."""
    context.report({"done": 1, "of": 2})
    GATE.entered.set()
    try:
        while not GATE.open.is_set():  # noqa: ASYNC110 - it is opened by another thread
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        GATE.cancelled.set()
        raise
    return "at last"


COLOUR = {"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]}
pick_colour = external_tool("pick_colour", "Has the person pick a colour.", COLOUR, wait=True)


async def broken(then: str) -> Any:
    """A reply that breaks off after some of its text, and of a call."""
    yield TextDelta("I was going to ")
    yield ToolCallStarted("call_lost", "look_up")
    yield ToolCallDelta("call_lost", '{"wo')
    raise Overloaded("a provider's inner words")


def thinks(_: Any) -> ModelReply:
    parts = (Thinking("Hm, let me think."), Text("I thought about it."))
    return ModelReply(AssistantMessage(parts), Usage(10, 5, reasoning_tokens=3))


def hostile(_: Any) -> ModelReply:
    call = ToolCall(HOSTILE, "pay", '{"to":"Bob","amount":1}')
    return ModelReply(AssistantMessage((Text("<img src=x onerror=alert(1)>"), call)), finish="tool_calls")


def big(_: Any) -> ModelReply:
    call = ToolCall("call_big", "pay", f'{{"to":"Bob","amount":{BIG}}}')
    return ModelReply(AssistantMessage((call,)), finish="tool_calls")


def last_result(request: Any) -> str:
    """Says what the last result was."""
    return f"It says: {next(one.text for one in reversed(request.messages) if isinstance(one, ToolMessage))}"


def remembers(request: Any) -> str:
    """Says what it was shown of the conversation."""
    said = [f"{one.role}:{one.text}" for one in request.messages if one.role != "system"]
    return " | ".join(said)


PAY = ("pay", {"to": "Bob", "amount": 500})
LOOK = ("look_up", {"word": "tea"})
SCRIPTS: dict[str, list[Any]] = {
    "hello": ["Hello there."],
    "think": [thinks],
    "parallel": [("Let me see.", [LOOK, ("look_up", {"word": "cup"})]), "I know both."],
    "pay": [("I shall pay.", [PAY, LOOK]), last_result],
    "hostile": [hostile, last_result],
    "big": [big, last_result],
    "forbidden": [[("pay", {"to": "Eve", "amount": 1})], last_result],
    "break": [[("breaks", {})], "It broke."],
    "slow": [[("slow", {})], "Done at last."],
    "loop": [[LOOK]] * 9,
    "delegate": [[("researcher", {"task": "look up"})], "The researcher knows."],
    "clerk": [[("researcher", {"task": "spend"})], "The researcher paid."],
    "colour": [[("pick_colour", {"of": "the door"}), LOOK], last_result],
    "choose": [[("choose", {"of": "wine"}), LOOK], last_result],
    "mixed": [[("choose", {"of": "wine"}), PAY], "Both are done."],
    "withdrawn": [broken, "I say it again."],
    "fails": [BadRequest("secret-key-in-the-message")],
    "remember": [remembers],
    "look up": [[LOOK], "Tea is a drink."],
    "spend": [[PAY], last_result],
}


def plays(request: Any) -> Any:
    """The next turn of the script that the last question names."""
    asked = max(i for i, one in enumerate(request.messages) if isinstance(one, UserMessage) and _script(one.text))
    turns = SCRIPTS[_script(request.messages[asked].text)]
    said = sum(isinstance(one, AssistantMessage) for one in request.messages[asked:])
    if turns[0] is broken:
        # The second attempt of a step has the same messages.
        BROKEN[request.run_id] = BROKEN.get(request.run_id, 0) + 1
        return broken("") if BROKEN[request.run_id] == 1 else turns[1]
    return turns[min(said, len(turns) - 1)]


BROKEN: dict[str, int] = {}


def _script(text: str) -> str:
    """The script that a question names: the longest name that it begins with."""
    return max([name for name in SCRIPTS if text.startswith(name)], key=len, default="")


@dataclass
class Answer:
    """A typed answer."""

    n: int


def agents() -> dict[str, Agent[Any, Any]]:
    """The agents that are served."""
    from treadle import Retries

    model = ScriptedModel(plays, chunk=4, usage=Usage(10, 5))
    researcher = Agent(model, name="researcher", tools=[look_up, pay], limits=Limits(steps=5))
    shop = Agent(
        model,
        name="shop",
        instructions="You keep a shop.",
        tools=[look_up, pay, breaks, slow, pick_colour, researcher.as_tool()],
        approvals=[deny("pay", when=no_eve, reason="Eve is blocked")],
        limits=Limits(steps=4),
        on_limit="stop",
        retries=Retries(attempts=2, base=0.01),
    )
    typed = Agent(ScriptedModel(lambda _: '{"n": 3}', chunk=2, usage=Usage(10, 5)), name="typed", output=Answer)
    return {"shop": shop, "typed": typed}


def no_eve(arguments: Any) -> bool:
    """Whether Eve would be paid."""
    return bool(arguments.get("to") == "Eve")


@contextmanager
def served(
    made: Callable[[], dict[str, Agent[Any, Any]]] = agents, journal: Journal | None = None, **options: Any
) -> Iterator[str]:
    """A real server on a port of its own: its address."""
    import uvicorn

    from treadle.serve import app
    from treadle.serve.access import Bounds

    bounds = Bounds(requests_per_minute=1_000_000, starts_per_minute=1_000_000)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            app(made(), journal=journal, grace=1.0, bounds=bounds, **options),
            log_level="warning",
            lifespan="on",
            ws="none",
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the server did not start")
            threading.Event().wait(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            GATE.open.set()
            server.should_exit = True
            thread.join(30)
