"""Beginning: how a run begins, in an event loop or by hand."""

import asyncio
import inspect
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from treadle.conversation import Conversation
from treadle.drivers.checks import (
    Input,
    OnEvent,
    asked_of,
    check_limits,
    check_whose,
    kind,
    require_dependencies,
    watcher_of,
    with_budgets,
)
from treadle.drivers.clock import Clock
from treadle.drivers.configuration import Configuration, RunContext
from treadle.drivers.drive import DRIVER
from treadle.drivers.instructing import instructions_of
from treadle.drivers.lifted import tell_lifted
from treadle.drivers.purse.drawing import Budgets, whose_run
from treadle.drivers.run import Run
from treadle.event_loop import running_loop
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event
from treadle.kernel.messages import ToolMessage, UserMessage
from treadle.kernel.stop import Limits
from treadle.result import RunResult, conversation_part, history, result_of


class Asked(NamedTuple):
    """What a run is begun with; see `treadle.Agent.run`. To be driven `elsewhere`, it needs no dependencies; one
    that is `untold` is not carried out, and nobody is told of it.

    `nonce` is 0 where none is given: of a run whose name follows from what is asked one below 0 is taken, so that to a
    service what is asked again is the same again.
    """

    input: Input = None
    conversation: Conversation | None = None
    deps: Any = None
    limits: Limits | None = None
    on_event: OnEvent = None
    one_step: bool = False
    budget: Budgets = None
    user: str | None = None
    run_id: str | None = None
    elsewhere: bool = False
    origin: str = ""
    nonce: int = 0
    untold: bool = False


class Begun(NamedTuple):
    """A run that is there to be driven.

    Attributes:
        run: the run.
        earlier: its events that this process has not added.
        to_do: whether there is anything to do for it.
    """

    run: Run
    earlier: Sequence[Event] = ()
    to_do: bool = True

    @property
    def result(self) -> RunResult[Any]:
        """What has come of it so far, in all."""
        return self.run.result_after(self.earlier)


async def begun_anew(config: Configuration, asked: Asked, on_event: OnEvent) -> Begun:
    """A new run that `on_event` watches. Raises as `begun`."""
    return Begun(await begun(config, asked._replace(on_event=on_event)))


async def begun(config: Configuration, asked: Asked) -> Run:
    """A run that has begun, and that nothing has been done for yet.

    Raises:
        Misuse: the question, the conversation or the limits cannot be right, or the tools want dependencies.
        TimeoutError: the function of the instructions took longer than the run has.
    """
    running_loop()
    if not asked.elsewhere:
        require_dependencies(config.tools, asked.deps)
    config = _allowed(config, asked)
    clock, limits = Clock(), asked.limits or config.limits
    run_id, task = asked.run_id or new_run_id(), asyncio.current_task()
    cancels = 0 if task is None else task.cancelling()
    if cancels:
        # One that was told and is yet to come is not the function's.
        await asyncio.sleep(0)
    try:
        told = await instructions_of(config, RunContext(run_id, config.name, asked.deps), limits.seconds)
    except asyncio.CancelledError as error:
        if task is None or task.cancelling() > cancels:
            raise
        raise RuntimeError("the function of the instructions cancelled itself") from error
    return _begun(config, run_id, told, asked, clock)


def begun_now(config: Configuration, asked: Asked) -> Run:
    """Likewise, where nothing can be waited for.

    Raises:
        Misuse: as above, or the agent's instructions are an asynchronous function.
    """
    require_dependencies(config.tools, asked.deps)
    if config.servers:
        raise Misuse(
            f"agent.start cannot wait for what {config.servers[0].name} lists as its tools: use agent.run or "
            "agent.stream"
        )
    config, clock = _allowed(config, asked), Clock()
    run_id, given = new_run_id(), config.instructions
    instructions: Any = given(RunContext(run_id, config.name, asked.deps)) if callable(given) else given
    if inspect.isawaitable(instructions):
        if inspect.iscoroutine(instructions):
            instructions.close()
        raise Misuse("agent.start cannot wait for asynchronous instructions: use agent.run or agent.stream")
    return _begun(config, run_id, instructions, asked, clock)


def lent(conversation: Conversation | None) -> Callable[[Run], None] | None:
    """What gives `conversation` back when the run that it was lent to is over."""
    if conversation is None:
        return None

    def over(run: Run) -> None:
        state = run.told
        said = None if state.phase == "new" else conversation_part(history(state, result_of(state).stop))
        conversation.end(said, run.run_id)

    return over


def new_run_id() -> str:
    """Sorts by time, is typed with ease, and differs from every other: 40 random bits within a second."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(5)}"


def by_chance() -> int:
    """A number that tells a run from an earlier one of its name."""
    return 1 + secrets.randbelow(2**40)


def _allowed(config: Configuration, asked: Asked) -> Configuration:
    """The configuration with the budgets of the run. Raises Misuse where its limits cannot be right."""
    config = with_budgets(config, asked.budget)
    if asked.limits is not None:
        check_limits(config, asked.limits)
    return config


def _begun(config: Configuration, run_id: str, instructions: Any, asked: Asked, clock: Clock) -> Run:
    """The run, which is under way since its instructions were asked for: since `clock` began."""
    conversation, limits = asked.conversation, asked.limits
    kind("instructions", instructions, lambda it: isinstance(it, str), "a text, or a function that returns one")
    kind("conversation", conversation, lambda it: isinstance(it, Conversation), "a Conversation(…)")
    question, watcher = asked_of(asked.input), watcher_of(asked.on_event)
    # The messages of a step by itself are no conversation that anybody could name again.
    named = None if conversation is None or asked.one_step else conversation.name
    whose = whose_run(asked.user, named, asked.origin)
    check_whose(config, whose)
    before = [] if conversation is None else conversation.begin()
    run = Run(config, DRIVER, deps=asked.deps, on_event=watcher, over=lent(conversation))
    run.clock = clock
    if asked.untold:
        run.audience.leave()
    run.draw_on(run_id, whose)
    if question is None and not (before and isinstance(before[-1], (UserMessage, ToolMessage))):
        run.release()
        raise Misuse(
            "there is nothing to answer: give run(…) a question, or a conversation that ends with one or with tool "
            "results"
        )
    tell_lifted(run_id, config.limits, limits, "agent.limits")
    said = [*before, *([] if question is None else [question])]
    run.start(
        run_id,
        [*config.system(instructions, config.output), *said],
        limits,
        one_step=asked.one_step,
        origin=asked.origin,
        nonce=asked.nonce or (0 if asked.run_id is None else -by_chance()),
        at=clock.began,
    )
    return run
