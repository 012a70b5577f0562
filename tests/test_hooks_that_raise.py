"""Hooks that raise what is no `Exception`, such as what pytest skips a test by: it reaches the caller as it is."""

import asyncio
from typing import Any

import pytest

from treadle import Agent, MemoryJournal, deny, tool
from treadle.testing import ScriptedModel


@tool(effect="read")
def look(n: int) -> str:
    """Looks at a number of things."""
    return f"seen {n}"


class NoException(BaseException):
    """Such as pytest skips a test by."""


def _raises(*given: Any) -> Any:
    raise NoException("not here")


HOOKS: dict[str, dict[str, Any]] = {
    "prepare_step": {"prepare_step": _raises},
    "on_tool_call": {"on_tool_call": _raises},
    "on_tool_result": {"on_tool_result": _raises},
    "on_answer": {"on_answer": _raises},
    "stop_when": {"stop_when": _raises},
    "instructions": {"instructions": _raises},
    "a rule": {"approvals": [deny("look", when=_raises)]},
    "a hook below": {},
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("where", HOOKS)
def test_what_a_hook_raises_is_raised_as_it_is_though_it_is_no_exception(where: str, streamed: bool) -> None:
    below = Agent(ScriptedModel([[("look", {"n": 1})], "seen"]), tools=[look], name="below", on_answer=_raises)
    script = [("below", {"task": "look"})] if where == "a hook below" else [("look", {"n": 1}), ("look", {"n": 2})]
    agent = Agent(ScriptedModel([script, "seen"]), tools=[look, below.as_tool()], **HOOKS[where])

    async def go() -> None:
        if not streamed:
            await agent.run("go")
            return
        async with agent.stream("go") as run:
            async for _ in run:
                pass

    with pytest.raises(NoException, match="not here"):
        asyncio.run(go())


def test_a_call_beside_one_whose_hook_raises_what_is_no_exception_comes_to_its_end() -> None:
    written: list[int] = []
    journal = MemoryJournal()

    @tool(effect="write", parallel=True)
    async def write(n: int) -> str:
        """Writes."""
        await asyncio.sleep(0.02 * n)
        written.append(n)
        return f"wrote {n}"

    def after(call: Any, result: Any) -> None:
        if call.id == "call_0_0" and len(written) == 1:
            raise NoException("not here")

    script = ScriptedModel(lambda request: "all" if request.step else [("write", {"n": 0}), ("write", {"n": 1})])
    agent = Agent(script, tools=[write], on_tool_result=after, journal=journal)

    async def go() -> Any:
        with pytest.raises(NoException):
            await agent.run("go")
        (run,) = await journal.list()
        return await agent.resume(run.run_id)

    result = asyncio.run(go())
    assert (result.text, written) == ("all", [0, 1])


def test_a_call_before_one_whose_rule_raises_what_is_no_exception_is_made() -> None:
    """It was recorded as begun and never was: a person was asked whether it is to run again."""
    written: list[int] = []
    journal = MemoryJournal()

    @tool(effect="write", parallel=True)
    async def write(n: int) -> str:
        """Writes."""
        written.append(n)
        return f"wrote {n}"

    def forbidden(arguments: Any) -> bool:
        if arguments["n"] == 1 and not raised:
            raised.append(arguments)
            raise NoException("not here")
        return False

    raised: list[Any] = []
    script = ScriptedModel(lambda request: "all" if request.step else [("write", {"n": 0}), ("write", {"n": 1})])
    agent = Agent(script, tools=[write], approvals=[deny("write", when=forbidden)], journal=journal)

    async def go() -> Any:
        with pytest.raises(NoException):
            await agent.run("go")
        (run,) = await journal.list()
        return await agent.resume(run.run_id)

    result = asyncio.run(go())
    assert (result.text, written) == ("all", [0, 1])
