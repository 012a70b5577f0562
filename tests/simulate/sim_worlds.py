"""Generated worlds: agents that work for agents, with tools, rules, reactions, limits and budgets, all from a seed.

Each call has a label of its own ("t.0.2": the third call of the first step of the run at the top), which is the same
however often the model is asked; the call's id is another each time.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from random import Random
from typing import Any
from zlib import crc32

from sim_model import Actor
from sim_outside import Outside
from sim_stage import job

from treadle import (
    Agent,
    Alternative,
    AskUser,
    Budget,
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

FEATURES = (
    "batches", "reactions", "early calls", "approvals", "sub-runs", "two deep", "hand-offs", "limits", "deadlines",
    "budgets", "failing models", "strong wills", "shared budgets", "aborts",
)  # fmt: skip
DAILY = 12_000
"""Tokens of a budget of days; one of any other number is for all days together."""

WRITES = frozenset({"pay", "post", "brace", "send", "seal", "enter"})


class Upset(Exception):
    """What a function of the application's raises now and then."""


class Aborted(BaseException):
    """Likewise: no error, and none of Python's own ways out."""


def outside() -> Outside:
    """The outside of the world that is simulated."""
    found: Outside = job().process.stage.outside
    return found


async def acted(context: ToolContext, label: str, usual: float = 0.02, more: int = 0) -> str:
    """One effect, some time before and after it, and what the tool returns."""
    here = outside()
    entered, stage = here.enters(context, label, more), here.stage
    await asyncio.sleep(stage.delay(usual))
    said = here.happens(entered)
    await asyncio.sleep(stage.delay(usual))
    return said


@tool(effect="read")
async def look(label: str, more: int = 0, *, context: ToolContext) -> str:
    """Looks."""
    return await acted(context, label, more=more)


@tool(effect="read")
async def watch(label: str, *, context: ToolContext) -> str:
    """Looks for a while."""
    return await acted(context, label, 0.5)


@tool(effect="read", timeout=0.3)
async def late(label: str, *, context: ToolContext) -> str:
    """Looks, and does not always come back in time."""
    return await acted(context, label, 0.2)


@tool(effect="read")
async def down(label: str, *, context: ToolContext) -> str:
    """Fails at the first call, and gives an answer at the next."""
    found = await acted(context, label)
    if context.made == 1:
        raise ValueError("the server is down")
    return found


@tool(effect="read", resource="door")
async def peek(label: str, *, context: ToolContext) -> str:
    """Looks through a door."""
    return await acted(context, label)


@tool(effect="idempotent")
async def put(label: str, more: int = 0, *, context: ToolContext) -> str:
    """Puts."""
    return await acted(context, label, more=more)


@tool(effect="idempotent", resource="door")
async def keep(label: str, *, context: ToolContext) -> str:
    """Puts behind a door."""
    return await acted(context, label, 0.1)


@tool
async def pay(label: str, more: int = 0, *, context: ToolContext) -> str:
    """Pays."""
    return await acted(context, label, more=more)


@tool
async def post(label: str, *, context: ToolContext) -> str:
    """Posts, which takes a while."""
    return await acted(context, label, 0.4)


@tool
async def brace(label: str, *, context: ToolContext) -> str:
    """Posts too, and does not let itself be stopped in the middle of it."""
    here = outside()
    entered, stage = here.enters(context, label), here.stage
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(stage.delay(0.4))
    return here.happens(entered)


@tool(parallel=True)
async def send(label: str, more: int = 0, *, context: ToolContext) -> str:
    """Sends, beside others."""
    return await acted(context, label, 0.1, more=more)


@tool(alone=True)
async def seal(label: str, *, context: ToolContext) -> str:
    """Seals, with nothing beside it."""
    return await acted(context, label)


@tool(resource="door")
async def enter(label: str, more: int = 0, *, context: ToolContext) -> str:
    """Goes through a door."""
    return await acted(context, label, more=more)


ask = external_tool("ask", "Asks somebody.", {"type": "object", "properties": {"label": {"type": "string"}}}, wait=True)
TOOLS = (look, watch, late, down, peek, put, keep, pay, post, brace, send, seal, enter, ask)
READS = ("look", "watch", "look", "late")
EVERY = (*READS, "down", "down", "peek", "put", "put", "keep", "pay", "pay", "post", "send", "send", "seal", "enter")


@dataclass(frozen=True)
class Node:
    """An agent as data: `turns` are the names of the tools that it calls, a tuple a step."""

    name: str
    turns: tuple[tuple[str, ...], ...]
    kids: tuple["Node", ...] = ()
    other: "Node | None" = None
    early: bool = False
    fails: bool = False
    reacts: bool = False
    rules: bool = False
    tells: bool = False
    reports: bool = True
    on_limit: str = "answer"
    limits: Limits = field(default_factory=lambda: Limits(consecutive_errors=None))
    budget: int | None = None
    purse: str = ""
    aborts: bool = False

    def family(self) -> Iterator["Node"]:
        """This one, and all that work for it."""
        yield self
        for one in (*self.kids, *(() if self.other is None else (self.other,))):
            yield from one.family()


@dataclass(frozen=True)
class World:
    """One world: its agents, and what its runs are about."""

    seed: int
    top: Node
    runs: int

    @classmethod
    def of(cls, seed: int) -> "World":
        """The world of a seed."""
        rng = Random(f"world {seed}")
        wanted = {one for one in FEATURES if rng.random() < 0.4} or {rng.choice(FEATURES)}
        top = _node(rng, wanted, "t", 0)
        others = Random(f"others {seed}")
        more = {one for one in ("strong wills", "shared budgets", "aborts") if others.random() < 0.55}
        return cls(seed, _with_more(top, more), rng.choice([1, 1, 2]))

    @property
    def features(self) -> list[str]:
        """Which of `FEATURES` it has."""
        nodes = list(self.top.family())
        has = {
            "batches": any(len(turn) > 1 for node in nodes for turn in node.turns),
            "reactions": any(node.reacts for node in nodes),
            "early calls": any(node.early for node in nodes),
            "approvals": any(node.rules for node in nodes),
            "sub-runs": any(node.kids for node in nodes),
            "two deep": any(kid.kids or kid.other for kid in self.top.kids),
            "hand-offs": any(node.other for node in nodes),
            "limits": any(node.limits.tokens or node.limits.usd or node.limits.steps != 20 for node in nodes),
            "deadlines": any((node.limits.seconds or 300) < 300 for node in nodes),
            "budgets": any(node.budget for node in nodes),
            "failing models": any(node.fails for node in nodes),
            "strong wills": any("brace" in turn for node in nodes for turn in node.turns),
            "shared budgets": sum(node.budget is not None and node.purse == "shared" for node in nodes) > 1,
            "aborts": any(node.reacts and node.aborts for node in nodes),
        }
        return [one for one in FEATURES if has[one]]

    def agent(self, journal: Journal, budgets: dict[str, Budget]) -> Agent:
        """Its agent at the top."""
        return _agent(self, self.top, journal, budgets)

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
    turns = [[rng.choice(free) for _ in range(rng.randint(1, most))] for _ in range(rng.choice([1, 1, 2, 3]))]
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
        early=early,
        fails="failing models" in wanted and rng.random() < 0.7,
        reacts="reactions" in wanted and rng.random() < 0.8,
        rules="approvals" in wanted and not early and rng.random() < 0.8,
        tells=rng.random() < 0.3,
        reports=rng.random() < 0.7,
        on_limit=rng.choice(["answer", "answer", "stop", "raise"]),
        limits=_limits(rng, wanted),
        budget=rng.choice([None, 4000, DAILY, 60_000]) if "budgets" in wanted else None,
    )


def _with_more(node: Node, more: set[str]) -> Node:
    """`node` and all that work for it, with what was added to the worlds when there were others already."""
    turns = node.turns
    if "strong wills" in more:
        turns = tuple(tuple("brace" if name in ("post", "enter") else name for name in turn) for turn in turns)
    return replace(
        node,
        turns=turns,
        kids=tuple(_with_more(kid, more) for kid in node.kids),
        other=None if node.other is None else _with_more(node.other, more),
        purse="shared" if "shared budgets" in more else node.name,
        budget=60_000 if node.budget is not None and "shared budgets" in more else node.budget,
        aborts="aborts" in more,
    )


def _limits(rng: Random, wanted: set[str]) -> Limits:
    tight = "limits" in wanted
    return Limits(
        steps=rng.choice([2, 3, 5, 20]) if tight else 20,
        tool_calls=rng.choice([1, 2, 4, 100]) if tight else 100,
        seconds=rng.choice([0.2, 1, 3, 10]) if "deadlines" in wanted else None,
        tokens=rng.choice([None, 3000, 8000, 30_000]) if tight else None,
        usd=rng.choice([None, None, Decimal("0.05"), Decimal("0.3")]) if tight else None,
        consecutive_errors=None,
    )


def _agent(world: World, node: Node, journal: Journal | None, budgets: dict[str, Budget]) -> Agent:
    below = [_agent(world, kid, None, budgets).as_tool() for kid in node.kids]
    other = [] if node.other is None else [handoff(_agent(world, node.other, None, budgets))]
    # A tool that runs alone keeps every call from starting early.
    own = [one for one in TOOLS if one.name != "seal"] if node.early else list(TOOLS)
    rules = [ask_before("pay", "send"), deny("post", when=lambda given: world.draw(given["label"], 3) == 0)]
    budget = None
    if node.budget is not None:
        per = "day" if node.budget == DAILY else None
        budget = budgets.setdefault(node.purse, Budget(tokens=node.budget, name=node.purse, per=per))
    on_limit: Any = node.on_limit
    return Agent(
        Actor(world, node),
        name=node.name,
        tools=[*own, *below, *other],
        journal=journal,
        limits=node.limits,
        approvals=rules if node.rules else (),
        on_tool_result=_reaction(world, aborts=node.aborts) if node.reacts else None,
        on_interrupted="tell" if node.tells else "ask",
        on_limit=on_limit,
        retries=Retries(attempts=3, base=0.1),
        budget=budget,
    )


def _reaction(world: World, *, aborts: bool) -> Any:
    """What the application makes of results: the same of the same result, but for a fault of its own now and then."""

    async def react(call: Any, output: Any) -> Any:
        given, throw = call.doing, world.draw(call.doing.arguments, 6)
        label = label_in(given.arguments)
        await asyncio.sleep(0)
        here = outside()
        if throw == 5 and not here.stage.calm and here.counts.get(label, 0) < 2:
            here.counts[label] = here.counts.get(label, 0) + 1
            job().upset = True
            here.stage.note(job().name, "is upset", f"by on_tool_result at {label}")
            if aborts and here.counts[label] == 1:
                here.stage.note(job().name, "aborts")
                raise Aborted(f"on_tool_result aborts at {label}")
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
