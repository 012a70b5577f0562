"""What type checkers know of agents, their runs and results. Read by them, never run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, assert_type

from treadle import (
    Agent,
    Condition,
    Limits,
    LiveRun,
    RunContext,
    RunResult,
    RunState,
    StepContext,
    StepSettings,
    Tool,
    ToolContext,
    ToolSearch,
    condition,
    handoff,
    has_tool_call,
    step_count,
    tool,
)
from treadle.kernel.messages import Content, Image, Text, UserMessage


@dataclass
class Shop:
    customer: str


@dataclass
class Branch(Shop):
    town: str


@dataclass
class Invoice:
    number: str
    total: float


class Row(TypedDict):
    key: str


@tool
def order(product: str, context: ToolContext[Shop]) -> str:
    return context.deps.customer


def greeting(context: RunContext[Shop]) -> str:
    assert_type(context.deps, Shop)
    print(context.deps.custmer)  # expect-error
    return context.deps.customer


async def slow_greeting(context: RunContext[Shop]) -> str:
    return context.deps.customer


def cheaper(context: StepContext[Shop]) -> StepSettings | None:
    assert_type(context.deps, Shop)
    print(context.deps.custmer)  # expect-error
    return None


def untyped(context: RunContext) -> str:
    assert_type(context.deps, Any)
    return context.run_id


plain = Agent("offline")
typed = Agent("offline", output=Invoice)
shop = Agent("offline", output=Invoice, deps_type=Shop, tools=[order])


def inferred() -> None:
    assert_type(plain, Agent[Any, Any])
    assert_type(typed, Agent[Any, Invoice])
    assert_type(shop, Agent[Shop, Invoice])
    assert_type(Agent("offline", output=list[str]), Agent[Any, list[str]])
    assert_type(Agent("offline", output=Row), Agent[Any, Row])
    assert_type(Agent("offline", output=bool, output_mode="tool"), Agent[Any, bool])
    # The functions that are given the dependencies say of what type they are, too.
    assert_type(Agent("offline", instructions=greeting), Agent[Shop, Any])
    assert_type(Agent("offline", instructions=slow_greeting), Agent[Shop, Any])
    assert_type(Agent("offline", prepare_step=cheaper, output=Invoice), Agent[Shop, Invoice])
    assert_type(Agent("offline", instructions=untyped), Agent[Any, Any])
    Agent("offline", instructions=lambda context: context.deps.customer, deps_type=Shop)
    Agent("offline", instructions=lambda context: context.deps.custmer, deps_type=Shop)  # expect-error
    Agent("offline", prepare_step=lambda context: StepSettings() if context.deps.customer else None, deps_type=Shop)
    Agent("offline", instructions=lambda context: context.run_id)


def said() -> None:
    # What is no class can be said where the agent is named.
    either: Agent[Any, Invoice | Row] = Agent("offline", output=Invoice | Row)
    assert_type(either.run_sync("go").output, Invoice | Row | None)
    word: Agent[Any, Literal["yes", "no"]] = Agent("offline", output=Literal["yes", "no"])
    assert_type(word.run_sync("go").output, Literal["yes", "no"] | None)
    for_shop: Agent[Shop] = Agent("offline")
    assert_type(for_shop.run_sync("go", deps=Shop("Ada")), RunResult[Any])
    # Who takes any shop takes a branch; an invoice is an answer where any object is one.
    branch: Agent[Branch, object] = shop
    branch.run_sync("go", deps=Branch("Ada", "Ulm"))
    wide: Agent[object, Invoice] = shop  # expect-error
    wide.run_sync("go")


def results() -> None:
    result = typed.run_sync("go")
    assert_type(result, RunResult[Invoice])
    assert_type(result.output, Invoice | None)
    # There is no output where the run did not finish.
    print(result.output.total)  # expect-error
    if result.output is not None:
        print(result.output.total)
        print(result.output.totl)  # expect-error
    assert_type(result.require(), RunResult[Invoice])
    assert_type(result.to_dict(), dict[str, Any])
    assert_type(result.message, str)
    assert_type(plain.run_sync("go"), RunResult[Any])


async def runs() -> None:
    assert_type(await shop.run("go", deps=Shop("Ada")), RunResult[Invoice])
    assert_type(await shop.run("go"), RunResult[Invoice])
    assert_type(await shop.resume("run", deps=Shop("Ada"), limits=Limits(), message="go on"), RunResult[Invoice])
    picture: list[Content] = [Text("and this?"), Image(b"1")]
    await shop.resume("run", message=picture)
    await shop.fork("run", at=0, message=picture)
    await shop.fork("run", at=0, message=UserMessage("and now?"))
    await shop.resume("run", message=3)  # expect-error
    assert_type(await shop.step([UserMessage("go")], deps=Shop("Ada")), RunResult[Invoice])
    async with shop.stream("go", deps=Shop("Ada")) as live:
        assert_type(live, LiveRun[Invoice])
        await live.send(picture)
        assert_type(live.result, RunResult[Invoice])
        assert_type(await live.pause(), RunResult[Invoice])
        assert_type(await live.cancel(), RunResult[Invoice])
    shop.start("go", deps=Shop("Ada"))


async def wrong() -> None:
    await shop.run("go", deps="Ada")  # expect-error
    shop.run_sync("go", deps=3)  # expect-error
    shop.stream("go", deps=Invoice("a", 1))  # expect-error
    shop.start("go", deps=[Shop("Ada")])  # expect-error
    await shop.resume("run", deps="Ada")  # expect-error
    await shop.step([], deps="Ada")  # expect-error
    Agent("offline", instructions=greeting).run_sync("go", deps="Ada")  # expect-error
    Agent("offline", instructions=greeting, deps_type=Invoice)  # expect-error
    Agent("offline", output=3)  # expect-error
    Agent("offline", deps_type=Shop("Ada"))  # expect-error
    Agent("offline", system_prompt="be brief")  # expect-error
    Agent("offline", limits=20)  # expect-error


def below() -> None:
    assert_type(shop.as_tool(), Tool)
    assert_type(handoff(shop), Tool)
    Agent("offline", tools=[shop.as_tool(), handoff(typed), order, plain_function])


def plain_function(product: str) -> int:
    return len(product)


def enough(state: RunState) -> bool:
    return len(state.steps) > 3


async def enough_later(state: RunState) -> bool:
    return enough(state)


def conditions() -> None:
    assert_type(step_count(3) | has_tool_call("order"), Condition)
    assert_type(~condition(enough), Condition)
    for stop_when in (enough, enough_later, step_count(3)):
        Agent("offline", stop_when=stop_when)
    Agent("offline", stop_when=[enough, step_count(3)])
    Agent("offline", stop_when=3)  # expect-error


def made(make: Callable[[], Agent]) -> None:
    assert_type(make(), Agent[Any, Any])


async def choose_later(context: StepContext[Shop]) -> StepSettings | None:
    return None


def choose_now(context: StepContext[Shop]) -> StepSettings | None:
    return None


def objects(answer: str, context: StepContext[Shop]) -> str | None:
    return context.deps.customer


search = ToolSearch([order], most=3)
several = Agent("offline", prepare_step=[choose_now, choose_later, search], tools=search.tools, on_answer=[objects])
several.run_sync("What?", deps=Shop("Ada"))
several.run_sync("What?", deps=3)  # expect-error
