"""What type checkers know of tools. Read by them, never run; `# expect-error` marks a line that each must refuse."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, assert_type

from treadle import Injected, Tool, ToolContext, external_tool, says_error, tool


@dataclass
class Shop:
    customer: str


@tool
def count(shelf: str, most: int = 3) -> int:
    return most


@tool(effect="read", timeout=None, thread=False)
async def look(shelf: str) -> list[str]:
    return [shelf]


@tool(parallel=True, errors=says_error)
def order(product: str, context: ToolContext[Shop]) -> str:
    assert_type(context, ToolContext[Shop])
    assert_type(context.deps, Shop)
    print(context.deps.custmer)  # expect-error
    return context.deps.customer


@tool
def pay(amount: Annotated[int, "in cents"], shop: Injected[Shop]) -> str:
    assert_type(shop, Shop)
    print(shop.custmer)  # expect-error
    return shop.customer


@tool
def anything(context: ToolContext) -> str:
    assert_type(context.deps, Any)
    return context.run_id


def needs_shop(context: ToolContext[Shop]) -> str:
    return context.deps.customer


def calls() -> None:
    # A tool can be called as the function that it was, and is checked as such.
    assert_type(count("north"), int)
    assert_type(count("north", most=2), int)
    count(7)  # expect-error
    count("north", moost=2)  # expect-error
    order("tea", ToolContext(deps=Shop("Ada")))
    pay(3, Shop("Ada"))
    pay(3, "Ada")  # expect-error
    assert_type(ToolContext(deps=Shop("Ada")), ToolContext[Shop])
    needs_shop(ToolContext(deps=3))  # expect-error


async def awaits() -> None:
    assert_type(await look("north"), list[str])
    await look(7)  # expect-error


def takes_tools(tools: list[Tool]) -> None: ...


def made(plain: Callable[[str], int]) -> None:
    assert_type(tool(plain), Tool[[str], int])
    assert_type(tool(plain, name="length"), Tool[[str], int])
    takes_tools([count, look, order, external_tool("done", "")])
    tool(plain, efect="read")  # expect-error
    tool(plain, effect="reed")  # expect-error
    tool(errors=3)(plain)  # expect-error


async def approves(arguments: dict[str, Any]) -> bool:
    return bool(arguments)


async def says(value: object) -> bool:
    return value is None


@tool(needs_approval=approves, errors=says)
def wipe() -> None: ...


@tool(needs_approval=lambda arguments: bool(arguments))
def clean() -> None: ...
