"""New runs: the ways to have an agent begin a run, be it here, by hand, a step of it, in a queue, or as an estimate."""

import asyncio
import dataclasses
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Generic, Never

from treadle.conversation import Conversation
from treadle.drivers.answers import Answers
from treadle.drivers.assembly import Stock
from treadle.drivers.beginning import Asked, begun, begun_anew, begun_now
from treadle.drivers.checks import Input, OnEvent, refuse_unknown
from treadle.drivers.dispatch import Dispatcher, queued_as, submitted
from treadle.drivers.drive import driven
from treadle.drivers.estimate import Estimate, estimated
from treadle.drivers.live import LiveRun
from treadle.drivers.plain_messages import Said, said_in
from treadle.drivers.purse.drawing import Budgets
from treadle.drivers.run import Run
from treadle.drivers.taking_up import GoingOn, taken_up
from treadle.event_loop import is_any_running
from treadle.kernel.errors import Misuse
from treadle.kernel.stop import Limits
from treadle.recorded_runs import Deps
from treadle.result import Output, Pending, RunResult, conversation_part


class NewRuns(Generic[Deps, Output]):
    """What `treadle.Agent` does with runs that are yet to begin."""

    _stock: Stock

    async def run(
        self,
        input: Input = None,
        *,
        conversation: Conversation | None = None,
        deps: Deps | None = None,
        limits: Limits | None = None,
        budget: Budgets = None,
        user: str | None = None,
        on_event: OnEvent = None,
        **unknown: Never,
    ) -> RunResult[Output]:
        """Runs the loop on `input` until it is done or a limit says stop.

        Args:
            input: the question: text, a `UserMessage`, or text with images and files; None if the conversation ends
                with it already.
            conversation: what was said before; it is continued.
            deps: given to tools as `deps`, and to functions of instructions and steps.
            limits: in place of the agent's.
            budget: budgets that it draws on beside the agent's.
            user: whose run it is, for budgets that have a purse for each user.
            on_event: a plain function that is called with every event as it happens.

        Raises:
            Misuse: the call cannot be right.
            RunStopped: a limit was reached and `on_limit` is "raise".
            asyncio.CancelledError: this task was cancelled. The run is recorded as `cancelled`.
        """
        refuse_unknown(self.run, unknown, type(self))
        return await driven(
            await begun(self._stock.config, Asked(input, conversation, deps, limits, on_event, False, budget, user))
        )

    def run_sync(
        self,
        input: Input = None,
        *,
        conversation: Conversation | None = None,
        deps: Deps | None = None,
        limits: Limits | None = None,
        budget: Budgets = None,
        user: str | None = None,
        on_event: OnEvent = None,
        **unknown: Never,
    ) -> RunResult[Output]:
        """`run`, for code that is not asynchronous.

        Raises:
            Misuse: an event loop is running in this thread; use `await agent.run(…)` there.
        """
        refuse_unknown(self.run_sync, unknown, type(self))
        if is_any_running():
            raise Misuse(
                "run_sync cannot be used where an event loop is running: use await agent.run(…); in trio, await "
                "trio.to_thread.run_sync(agent.run_sync, question)"
            )
        return asyncio.run(
            self.run(
                input,
                conversation=conversation,
                deps=deps,
                limits=limits,
                budget=budget,
                user=user,
                on_event=on_event,
            )
        )

    def stream(
        self,
        input: Input = None,
        *,
        conversation: Conversation | None = None,
        deps: Deps | None = None,
        limits: Limits | None = None,
        budget: Budgets = None,
        user: str | None = None,
        partial_arguments: bool = False,
        resume: str | RunResult[Any] | None = None,
        approve: Iterable[str | Pending] | Mapping[str, Mapping[str, Any] | None] = (),
        deny: Iterable[str | Pending] | Mapping[str, str] = (),
        results: Mapping[str, Any] | Mapping[Pending, Any] | None = None,
        message: Input = None,
        takeover: bool = False,
        **unknown: Never,
    ) -> LiveRun[Output]:
        """The run, under way in the background: `async with agent.stream(…) as run: async for event in run: …`.

        With `partial_arguments` a `PartialArguments` event says what can be read of a tool call's arguments while they
        are still arriving. The other arguments are those of `run`. With `on_limit="raise"` nothing is raised here;
        `run.result.require()` does.

        `agent.stream(resume=run, approve=…)` goes on with a run in the same way: `approve`, `deny`, `results`,
        `message` and `takeover` are those of `resume`, and there is no `input`. What is seen are the events from then
        on; the result is that of the whole run. Of a run for which there is nothing to do no event is seen.

        Raises:
            Misuse: it was given both an input and a run to resume, or decisions without one. What `run` and `resume`
                raise is raised as it is entered.
        """
        refuse_unknown(self.stream, unknown, type(self))
        answers = Answers.of(approve, deny, results or {})
        if resume is None:
            if answers or message is not None or takeover:
                raise Misuse(
                    "approve, deny, results, message and takeover go on with a run: name it with stream(resume=run, …)"
                )
            asked = Asked(input, conversation, deps, limits, None, False, budget, user)
            return LiveRun(partial(begun_anew, self._stock.config, asked), partial_arguments=partial_arguments)
        if input is not None:
            raise Misuse("stream takes a question or a run to resume; what is said to that one is message=")
        going_on = GoingOn(answers, message, conversation, deps, limits, None, budget, user, takeover=takeover)
        return LiveRun(partial(taken_up, self._stock.config, resume, going_on), partial_arguments=partial_arguments)

    def start(
        self,
        input: Input = None,
        *,
        conversation: Conversation | None = None,
        deps: Deps | None = None,
        limits: Limits | None = None,
        budget: Budgets = None,
        user: str | None = None,
        on_event: OnEvent = None,
        **unknown: Never,
    ) -> Run:
        """A run to be carried out by hand; see `treadle.drivers.run` for the loop that a person writes with it.

        Nobody holds it, as nobody says when it is left: another process may take it up, and its next `commit` then
        raises `JournalConflict`.

        Raises:
            Misuse: the agent's instructions are an asynchronous function.
        """
        refuse_unknown(self.start, unknown, type(self))
        return begun_now(self._stock.config, Asked(input, conversation, deps, limits, on_event, False, budget, user))

    async def step(
        self,
        messages: Said,
        *,
        deps: Deps | None = None,
        user: str | None = None,
        on_event: OnEvent = None,
        **unknown: Never,
    ) -> RunResult[Output]:
        """One model call on `messages` and the tool calls that it asks for: a step of a loop that you write yourself.

        `result.messages` is what to call it with again, for as long as `result.stop.reason` is "max_steps". Nothing is
        kept between one call and the next; the agent's instructions go before the messages, and its limits hold for the
        step alone, with the runs that it begins.

        Args:
            messages: a question, or what was said so far: messages, or dicts of OpenAI's shape with text content. Those
                of the system are left out.
            deps: as in `run`.
            user: as in `run`.
            on_event: as in `run`.

        Raises:
            Misuse: they are no messages, or hold nothing to answer.
        """
        refuse_unknown(self.step, unknown, type(self))
        run = await begun(
            self._stock.config, Asked(None, said_in("step", messages), deps, None, on_event, True, None, user)
        )
        result: RunResult[Output] = await driven(run)
        return dataclasses.replace(result, messages=conversation_part(result.messages))

    async def submit(
        self,
        input: Input,
        *,
        to: Dispatcher,
        key: str | None = None,
        priority: int = 0,
        at: datetime | None = None,
        run_id: str | None = None,
        deps: Deps | None = None,
        limits: Limits | None = None,
        user: str | None = None,
        **unknown: Never,
    ) -> str:
        """Records a run and has a worker drive it: its id. Nothing of it happens in this process.

        It stands in the journal before it is queued. If this process dies in between, the run is listed as queued, and
        a worker queues it within two minutes, or `resubmit` does at once.

        Args:
            input: the question, as in `run`.
            to: the queue, such as `treadle.workers.PostgresQueue(url)`.
            key: in whose turn it runs; by default the user. How many of one key run at once the queue may limit.
            priority: those with a higher one are begun first.
            at: when to begin it, a time with its zone; None for as soon as a worker is free.
            run_id: a name of your own for it, such as that of an order, with no dot in it. Submitting it again with the
                same question begins no second run.
            deps: given to a function of the instructions; the worker has its own for the tools.
            limits: in place of the agent's.
            user: whose run it is, for budgets that have a purse for each user.

        Raises:
            Misuse: the call cannot be right, or the agent keeps no journal.
            QueueFull: too many runs wait; nothing was recorded.
        """
        refuse_unknown(self.submit, unknown, type(self))
        asked = Asked(input, None, deps, limits, None, False, None, user, run_id, True)
        return await submitted(self._stock.config, asked, to, queued_as(key if key is not None else user, priority, at))

    async def estimate(
        self,
        input: Input = None,
        *,
        conversation: Conversation | None = None,
        deps: Deps | None = None,
        limits: Limits | None = None,
        budget: Budgets = None,
        user: str | None = None,
        **unknown: Never,
    ) -> Estimate:
        """What the first request of `run` with these arguments may take, and whether they allow it: a dry run.

        No model is called, no tool runs, and nothing is kept; the conversation stays as it is. Functions of yours that
        shape the request are called as a run calls them: the instructions, `stop_when`, `prepare_step`, and context
        policies of your own. What `Summarise` would have a model write first is not written, and not in the estimate.

        Raises:
            Misuse: the call cannot be right.
        """
        refuse_unknown(self.estimate, unknown, type(self))
        return await estimated(self._stock.config, Asked(input, conversation, deps, limits, None, False, budget, user))
