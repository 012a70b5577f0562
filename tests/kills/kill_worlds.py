"""Generated worlds to be killed in: agents that work for agents, their tools, and models that play a script.

A world follows from its seed alone, so that every process builds the same one. Each call has a label of its own
("t.0.2": the third call of the first step of the run at the top), each tool's result follows from its arguments, and
the last reply of every run is a digest of the results of all its calls: whoever dies when, the answer is the same.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any
from zlib import crc32

from kill_stage import Upset, stage

from treadle import (
    Agent,
    Alternative,
    AskUser,
    Limits,
    Retries,
    Retry,
    ToolContext,
    ask_before,
    deny,
    external_tool,
    handoff,
    tool,
)
from treadle.journal import Journal
from treadle.models import (
    AssistantMessage,
    ModelEvent,
    ModelReply,
    ModelRequest,
    Overloaded,
    Text,
    ToolCall,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    Usage,
)
from treadle.models.profile import OutputMode

FEATURES = ("batches", "reactions", "early calls", "approvals", "sub-runs", "two deep", "hand-offs", "output types")
WRITES = frozenset({"pay", "post", "send", "seal", "enter"})


def said(name: str, label: str, amount: int = 1) -> str:
    """What a tool returns."""
    return f"{name}({label}, {amount})"


async def acted(context: ToolContext, label: str, amount: int, wait: float = 0.0) -> str:
    """One effect, and what the tool returns."""
    await asyncio.sleep(0)
    stage().effect(context, label)
    await asyncio.sleep(wait)
    return said(context.tool_name, label, amount)


@tool(effect="read")
async def look(label: str, *, context: ToolContext) -> str:
    """Looks."""
    return await acted(context, label, 1)


@tool(effect="read")
async def watch(label: str, *, context: ToolContext) -> str:
    """Looks for a while."""
    return await acted(context, label, 1, 0.002)


@tool(effect="read")
def search(label: str, *, context: ToolContext) -> str:
    """Looks, in a thread."""
    stage().effect(context, label)
    return said("search", label)


@tool(effect="read")
async def down(label: str, *, context: ToolContext) -> str:
    """Fails at the first call, and gives an answer at the next."""
    found = await acted(context, label, 1)
    if context.made == 1:
        raise ValueError("the server is down")
    return found


@tool(effect="read", resource="door")
async def peek(label: str, *, context: ToolContext) -> str:
    """Looks through a door."""
    return await acted(context, label, 1, 0.001)


@tool(effect="idempotent")
async def put(label: str, *, context: ToolContext) -> str:
    """Puts."""
    return await acted(context, label, 1)


@tool
async def pay(label: str, amount: int = 1, *, context: ToolContext) -> str:
    """Pays."""
    return await acted(context, label, amount, 0.001)


@tool
def post(label: str, amount: int = 1, *, context: ToolContext) -> str:
    """Posts, in a thread."""
    stage().effect(context, label)
    return said("post", label, amount)


@tool(parallel=True)
async def send(label: str, amount: int = 1, *, context: ToolContext) -> str:
    """Sends, beside others."""
    return await acted(context, label, amount, 0.001)


@tool(alone=True)
async def seal(label: str, amount: int = 1, *, context: ToolContext) -> str:
    """Seals, with nothing beside it."""
    return await acted(context, label, amount)


@tool(resource="door")
async def enter(label: str, amount: int = 1, *, context: ToolContext) -> str:
    """Goes through a door."""
    return await acted(context, label, amount)


ask = external_tool("ask", "Asks somebody.", {"type": "object", "properties": {"label": {"type": "string"}}}, wait=True)
TOOLS = (look, watch, search, down, peek, put, pay, post, send, seal, enter, ask)
MODES: tuple[OutputMode, ...] = ("prompted", "tool")
READS = ("look", "watch", "search")
EVERY = (*READS, "look", "down", "down", "peek", "put", "put", "pay", "pay", "post", "send", "send", "seal", "enter")


@dataclass
class Answer:
    """The type that a run may be asked for."""

    digest: str


@dataclass(frozen=True)
class Node:
    """An agent as data: `turns` are the names of the tools that it calls, a tuple a step."""

    name: str
    turns: tuple[tuple[str, ...], ...]
    kids: tuple["Node", ...] = ()
    other: "Node | None" = None
    slow: bool = False
    breaks: bool = False
    reacts: bool = False
    rules: bool = False
    output: OutputMode | None = None

    def family(self) -> Iterator["Node"]:
        """This one, and all that work for it."""
        yield self
        for one in (*self.kids, *(() if self.other is None else (self.other,))):
            yield from one.family()


@dataclass(frozen=True)
class World:
    """One world: its agents, and what it has of what can go wrong."""

    seed: int
    top: Node

    @classmethod
    def of(cls, seed: int) -> "World":
        """The world of a seed."""
        rng = Random(f"world {seed}")
        wanted = {one for one in FEATURES if rng.random() < 0.45} or {rng.choice(FEATURES)}
        return cls(seed, _node(rng, wanted, "t", 0))

    @property
    def features(self) -> list[str]:
        """Which of `FEATURES` it has."""
        nodes = list(self.top.family())
        has = {
            "batches": any(len(turn) > 1 for node in nodes for turn in node.turns),
            "reactions": any(node.reacts for node in nodes),
            "early calls": any(node.slow and not node.rules for node in nodes),
            "approvals": any(node.rules for node in nodes),
            "sub-runs": any(node.kids for node in nodes),
            "two deep": any(kid.kids or kid.other for kid in self.top.kids),
            "hand-offs": any(node.other for node in nodes),
            "output types": any(node.output for node in nodes),
        }
        return [one for one in FEATURES if has[one]]

    def agent(self, journal: Journal) -> Agent:
        """Its agent at the top, with fresh models."""
        return _agent(self, self.top, journal)

    def draw(self, label: str, sides: int) -> int:
        """A throw that is the same whenever it is made about this label."""
        return crc32(f"{self.seed} {label}".encode()) % sides


def _node(rng: Random, wanted: set[str], name: str, level: int) -> Node:
    deepest = 2 if "two deep" in wanted else 1 if "sub-runs" in wanted else 0
    kids: tuple[Node, ...] = ()
    if level < deepest:
        kids = tuple(_node(rng, wanted, f"{name}{i}", level + 1) for i in range(rng.choice([1, 1, 2])))
    other = None
    if "hand-offs" in wanted and level < 2 and rng.random() < (0.8 if level == 0 else 0.4):
        other = _node(rng, wanted - {"sub-runs", "two deep"}, f"{name}h", level + 1)
    early = "early calls" in wanted and rng.random() < 0.8
    free = (*READS, *READS, "put", "pay", "send") if early else EVERY
    most = 5 if "batches" in wanted else 2
    turns = [[rng.choice(free) for _ in range(rng.randint(1, most))] for _ in range(rng.choice([1, 1, 2]))]
    for kid in kids:
        turns[rng.randrange(len(turns))].insert(0, kid.name)
    if "approvals" in wanted and rng.random() < 0.3:
        turns[-1].append("ask")
    if other is not None:
        turns[-1].append(f"transfer_to_{other.name}")
    return Node(
        name,
        tuple(map(tuple, turns)),
        kids,
        other,
        slow=early,
        breaks=early and rng.random() < 0.3,
        reacts="reactions" in wanted and rng.random() < 0.8,
        rules="approvals" in wanted and not early and rng.random() < 0.8,
        output=rng.choice(MODES) if "output types" in wanted and rng.random() < 0.7 else None,
    )


def _agent(world: World, node: Node, journal: Journal | None) -> Agent:
    below = [_agent(world, kid, None).as_tool() for kid in node.kids]
    other = [] if node.other is None else [handoff(_agent(world, node.other, None))]
    # A tool that runs alone keeps every call from starting early.
    own = [one for one in TOOLS if one.name != "seal"] if node.slow else list(TOOLS)
    rules = [ask_before("pay", "send"), deny("post", when=lambda given: world.draw(given["label"], 3) == 0)]
    return Agent(
        Script(world, node),
        name=node.name,
        tools=[*own, *below, *other],
        journal=journal,
        limits=Limits(steps=200, tool_calls=2000, seconds=None, consecutive_errors=None),
        approvals=rules if node.rules else (),
        on_tool_result=_reaction(world) if node.reacts else None,
        retries=Retries(attempts=4, base=0.0),
        output=None if node.output is None else Answer,
        output_mode=node.output,
    )


def _reaction(world: World) -> Any:
    """What the application makes of results: the same of the same result, but for a fault of its own now and then."""

    async def react(call: Any, output: Any) -> Any:
        given, throw = call.doing, world.draw(call.doing.arguments, 6)
        label = label_in(given.arguments)
        await asyncio.sleep(0)
        if throw == 5 and stage().upset():
            raise Upset(f"on_tool_result fails at {label}")
        if output.is_error and given.name == "down":
            return (Retry(), Alternative("pay", {"label": label}), Alternative("put", {"label": label}), None)[
                throw % 4
            ]
        if "task" in given.arguments and call.made == 1 and throw == 0:
            return Retry(arguments={"task": f"<{label}~>"})
        if throw == 1:
            return f"seen: {output.content}"
        return AskUser("Is that so?") if throw == 2 and not output.is_error else None

    return react


def label_in(text: str) -> str:
    """The label in a task, a reason, or the JSON of a call's arguments."""
    found = re.findall(r"<([^>]*)>", text) or re.findall(r'"label": ?"([^"]*)"', text)
    return str(found[-1]) if found else ""


class Script:
    """A model that plays the turns of a node, with other call ids each time that it is asked, as real ones do."""

    def __init__(self, world: World, node: Node) -> None:
        self.name = f"script-{node.name}"
        self._world, self._node = world, node
        self._failed: set[tuple[str, int]] = set()

    def cost(self, usage: Usage) -> None:
        """Nothing is known of its price."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The turn of the request's step, or the answer."""
        turns, step = self._node.turns, request.step
        texts = [message.text for message in request.messages if message.role == "user"]
        root = next(label for text in reversed(texts) if (label := label_in(text)))
        if step >= len(turns):
            yield self._answer(root, request)
            return
        calls = [self._call(name, f"{root}.{step}.{i}", i) for i, name in enumerate(turns[step])]
        for call in calls:
            yield ToolCallStarted(call.id, call.name)
            yield ToolCallDelta(call.id, call.arguments)
            yield ToolCallCompleted(call.id)
            await asyncio.sleep(0.001 if self._node.slow else 0)
        if self._node.breaks and (root, step) not in self._failed:
            self._failed.add((root, step))
            raise Overloaded("busy")
        await asyncio.sleep(0.002 if self._node.slow else 0)
        yield ModelReply(AssistantMessage(tuple(calls)), Usage(10, 10), "tool_calls")

    def _call(self, name: str, label: str, place: int) -> ToolCall:
        rng = stage().rng
        given = {"label": label}
        if name.startswith("transfer_to_"):
            given = {"reason": f"<{label}>"}
        elif name not in EVERY and name != "ask":
            given = {"task": f"<{label}>"}
        return ToolCall(
            f"{rng.choice(['c', 'c', 'c/', 'c#', 'c%2F'])}{rng.randrange(10**6)}_{place}", name, json.dumps(given)
        )

    def _answer(self, root: str, request: ModelRequest) -> ModelReply:
        replies = [place for place, message in enumerate(request.messages) if message.role == "assistant"]
        # What was called beside a hand-off may wait for a person or not, as its process dies or not.
        own = request.messages[replies[-request.step] :] if request.step else ()
        shown = "\n".join(message.text for message in own if message.role == "tool")
        text = json.dumps({"digest": f"{root}:{hashlib.sha256(shown.encode()).hexdigest()[:12]}"})
        if any(one.name == "final_answer" for one in request.tools):
            call = ToolCall(f"final_{stage().rng.randrange(10**6)}", "final_answer", text)
            return ModelReply(AssistantMessage((call,)), Usage(10, 10), "tool_calls")
        return ModelReply(AssistantMessage((Text(text),)), Usage(10, 10), "stop")
