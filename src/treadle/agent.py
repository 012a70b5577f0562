"""Agent: the configuration of a loop, and the ways to run it."""

import asyncio
import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from os import PathLike
from types import UnionType
from typing import Any, Generic, Literal, Never, Self, _SpecialForm

from typing_extensions import TypeVar

from treadle.context.policies import ContextPolicy
from treadle.conversation import Conversation
from treadle.drivers.answers import Answers
from treadle.drivers.approvals import ApprovalRule
from treadle.drivers.assembly import Stock, Tools, assembled, toolbox_of
from treadle.drivers.beginning import Asked, begun, begun_anew, begun_now
from treadle.drivers.below import Below
from treadle.drivers.calls.change import OnToolCall
from treadle.drivers.calls.reaction import OnToolResult
from treadle.drivers.checks import Input, OnEvent, ceiling, model_of, refuse_unknown, rules_in, with_budgets
from treadle.drivers.configuration import Configuration, Errors, Instructions, OnAnswer, PrepareStepFunction, Retries
from treadle.drivers.dispatch import (
    Dispatcher,
    Pausing,
    cancelled,
    carried,
    queued_as,
    submitted,
    submitted_again,
)
from treadle.drivers.drive import driven
from treadle.drivers.estimate import Estimate, estimated
from treadle.drivers.hooks import hooks_in
from treadle.drivers.live import LiveRun
from treadle.drivers.plain_messages import Said, said_in
from treadle.drivers.purse.drawing import Budgets
from treadle.drivers.purse.spending import Spending, spending_of
from treadle.drivers.run import Run
from treadle.drivers.taking_up import GoingOn, recorded, taken_up
from treadle.drivers.watching import Observer
from treadle.journal import Journal
from treadle.judging.conditions import StopWhen, condition
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import ModelSettings
from treadle.kernel.stop import Limits, OnLimit
from treadle.models.port import Model
from treadle.models.profile import OutputMode
from treadle.result import Output, Pending, RunResult, conversation_part
from treadle.timetravel.forking import Forked, begin_fork, forked, with_model
from treadle.timetravel.replay import Replay, replayed
from treadle.tools import Skill, SkillRegistry, Tool
from treadle.tools.external import agent_tool

Deps = TypeVar("Deps", contravariant=True, default=Any)
"""The type of what runs are given as `deps=`."""


class Agent(Generic[Deps, Output]):
    """A model, its instructions and tools, and what its runs may do. Holds no state of a run; many may run at once.

    `Agent[Shop, Invoice]` is given a `Shop` as `deps=` and answers with an `Invoice`; type checkers know both from
    `deps_type=` (or the functions of instructions and steps) and `output=`.

    Args:
        model: a name such as "anthropic:claude-sonnet-4-5", "openai:gpt-5" or "offline", or any `Model`.
        instructions: the system prompt, or a function of the run's `RunContext` that returns it.
        tools: tools, or plain functions to make tools of; or these by the name that the model is to call. In a list
            also servers of tools, such as `treadle.mcp.MCPServer`, which are asked before each step what they have.
        skills: named bundles of instructions and tools, and folders with a `SKILL.md`, or of such folders, by their
            paths; or a `SkillRegistry`: what is registered later counts for the runs that begin after that.
        limits: what a run may use at most: by default 20 steps (a step is a model call with the tool calls that it asks
            for; others say iteration or turn), 100 tool calls, 300 seconds, and 3 steps in a row that went wrong.
        stop_when: when enough has been done: a condition, several combined by `|`, `&`, `~`, or a list (any of them).
        prepare_step: called before each step with a `StepContext`; may return `StepSettings` for that step. A function,
            or several in their order.
        tool_choice: "auto", "none", "required", or the name of the one tool to call.
        on_limit: at a limit: "answer" makes one last call without tools that writes up what was found, "stop" returns
            what there is, "raise" raises `RunStopped` with it.
        output: the type that the answer must have; `result.output` is then a value of it, or None without an answer.
        deps_type: the class of what runs are given as `deps=`. It tells type checkers, and tools that want something
            else are refused.
        output_mode: how the model is asked for it: "native" (its provider holds it to a schema), "tool" (a final tool
            whose arguments are the answer) or "prompted" (the instructions say it). By default what the model says of
            itself, with the tools that the agent has.
        journal: where the events of runs are kept; None keeps them with the result only.
        name: what the agent is called in journals.
        settings: how the model is to generate.
        retries: how often and how soon a failed model call is tried again.
        watch_progress: whether a run that repeats itself is told so, then has the tools concerned withheld for a step,
            and then ends with `no_progress`.
        approvals: rules on which calls a person must decide and which are never made: `ask_before(…)`, `deny(…)`,
            `allow(…)`, beside what each tool says of itself.
        on_tool_call: called with each call that the model makes, before anybody judges it; may return other arguments,
            which are judged, recorded and run in place of the model's. A function, or several in their order.
        on_tool_result: called with each call and its result; may return another result, `Retry`, `Alternative` or
            `AskUser`; None leaves the result as it is. A function, or several in their order.
        on_answer: called with an answer (of its type, else its text) and a `StepContext` before the run ends with it;
            may return what is wrong, which the model is told, to answer again. A function, or several in their order.
        tell_remaining: whether the model is told at each step what is left of the limits; at the end of the request,
            where it breaks no cached prefix.
        eager: whether a call of a `read` tool may start as soon as its own arguments are complete, while the reply is
            still arriving. Never where a tool asks to run alone.
        on_interrupted: what becomes of a call of a `write` tool that was under way when the process died: "ask" pauses
            for a person, "tell" tells the model that its outcome is unknown.
        context: what is done when the history grows too long: policies such as `KeepFirstAndRecent()`, in their order.
            By default, where the model says how large its context window is, old tool results are cleared and then old
            exchanges left out at 80 % of it, down to 50 %. A request that the provider finds too long is made shorter
            and sent once more, whatever is given here; only with `[]` is the history never touched.
        errors: whether a value that a tool returned says that the call failed, such as `says_error`; it is shown as it
            is. A tool's own `errors` goes before it.
        budget: what all of its runs may take together, beside the limits of each: a `Budget`, or a list of them.
        telemetry: what its runs are told to as they go, such as `treadle.telemetry.Telemetry()`; it holds for the runs
            below them too, but those of agents that have their own.

    Raises:
        Misuse: something does not fit; the message says what would.
    """

    def __init__(
        self,
        model: str | Model,
        *,
        instructions: Instructions[Deps] = None,
        tools: Tools = (),
        skills: Iterable[Skill | str | PathLike[str]] | SkillRegistry = (),
        limits: Limits | None = None,
        stop_when: StopWhen | None = None,
        prepare_step: PrepareStepFunction[Deps] | Sequence[PrepareStepFunction[Deps]] | None = None,
        tool_choice: str = "auto",
        on_limit: OnLimit = "answer",
        # A special form is `Literal[…]` and the like; of these and of unions not every checker can tell the type.
        output: type[Output] | UnionType | _SpecialForm | None = None,
        output_mode: OutputMode | None = None,
        deps_type: type[Deps] | None = None,
        journal: Journal | None = None,
        name: str | None = None,
        settings: ModelSettings | None = None,
        retries: Retries | int | None = None,
        approvals: Iterable[ApprovalRule] = (),
        on_tool_call: OnToolCall | Sequence[OnToolCall] | None = None,
        on_tool_result: OnToolResult | Sequence[OnToolResult] | None = None,
        on_answer: OnAnswer[Deps] | Sequence[OnAnswer[Deps]] | None = None,
        tell_remaining: bool = False,
        watch_progress: bool = True,
        eager: bool = True,
        on_interrupted: Literal["ask", "tell"] = "ask",
        context: ContextPolicy | Iterable[ContextPolicy] | None = None,
        errors: Errors | None = None,
        budget: Budgets = None,
        telemetry: Observer | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(Agent, unknown, Agent)
        chosen = model_of(model)
        toolbox, policies, servers = toolbox_of(tools, skills, context, chosen)
        enough = None if stop_when is None else condition(stop_when)
        given = Configuration(
            model=chosen,
            name=name or "agent",
            instructions=instructions,
            limits=ceiling(limits, enough),
            stop_when=enough,
            prepare_step=hooks_in("prepare_step", prepare_step, "a function of a StepContext"),
            tool_choice=tool_choice,
            settings=settings or ModelSettings(),
            on_limit=on_limit,
            journal=journal,
            retries=Retries(attempts=1 + retries) if isinstance(retries, int) else retries or Retries(),
            on_interrupted=on_interrupted,
            context=policies,
            approvals=rules_in(approvals),
            on_tool_call=hooks_in("on_tool_call", on_tool_call, "a function of a call"),
            on_tool_result=hooks_in("on_tool_result", on_tool_result, "a function of a call and its result"),
            on_answer=hooks_in("on_answer", on_answer, "a function of an answer and its StepContext"),
            tell_remaining=tell_remaining,
            watch=watch_progress,
            eager=eager,
            errors=errors,
            model_named=model_of,
            deps_type=deps_type,
            telemetry=telemetry,
            servers=servers,
        )
        self._stock = Stock(
            lambda stock: with_budgets(assembled(given, stock, output, output_mode), budget), toolbox, skills
        )

    @property
    def _config(self) -> Configuration:
        return self._stock.config

    @property
    def name(self) -> str:
        """What the agent is called in journals."""
        return self._config.name

    @property
    def model(self) -> Model:
        """The model that its runs call."""
        return self._config.model

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Its tools and those of its skills, by name."""
        return self._config.tools

    @property
    def skills(self) -> SkillRegistry:
        """Its skills and tools."""
        return self._config.skills

    @property
    def limits(self) -> Limits:
        """What its runs may use, unless a run is given limits of its own."""
        return self._config.limits

    @property
    def journal(self) -> Journal | None:
        """Where the events of its runs are kept; None if they are kept with their results only."""
        return self._config.journal

    def with_journal(self, journal: Journal | None) -> Self:
        """This agent with another journal, and all else as it is."""
        return self._with(lambda config: dataclasses.replace(config, journal=journal))

    def with_model(self, model: str | Model) -> Self:
        """This agent with another model, and all else as it is.

        Raises:
            Misuse: the model cannot be used with what the agent has, such as its limits in dollars.
        """
        return self._with(lambda config: with_model(config, model))

    def _with(self, change: Callable[[Configuration], Configuration]) -> Self:
        other = copy.copy(self)
        other._stock = self._stock.changed(change)
        return other

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
        refuse_unknown(Agent.run, unknown, Agent)
        return await driven(
            await begun(self._config, Asked(input, conversation, deps, limits, on_event, False, budget, user))
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
        refuse_unknown(Agent.run_sync, unknown, Agent)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
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
        raise Misuse("run_sync cannot be used where an event loop is running: use await agent.run(…)")

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
        results: Mapping[str, Any] | None = None,
        message: str | None = None,
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
        refuse_unknown(Agent.stream, unknown, Agent)
        answers = Answers.of(approve, deny, results or {})
        if resume is None:
            if answers or message is not None or takeover:
                raise Misuse(
                    "approve, deny, results, message and takeover go on with a run: name it with stream(resume=run, …)"
                )
            asked = Asked(input, conversation, deps, limits, None, False, budget, user)
            return LiveRun(partial(begun_anew, self._config, asked), partial_arguments=partial_arguments)
        if input is not None:
            raise Misuse("stream takes a question or a run to resume; what is said to that one is message=")
        going_on = GoingOn(answers, message, conversation, deps, limits, None, budget, user, takeover=takeover)
        return LiveRun(partial(taken_up, self._config, resume, going_on), partial_arguments=partial_arguments)

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
        refuse_unknown(Agent.start, unknown, Agent)
        return begun_now(self._config, Asked(input, conversation, deps, limits, on_event, False, budget, user))

    async def resume(
        self,
        run: str | RunResult[Any],
        *,
        approve: Iterable[str | Pending] | Mapping[str, Mapping[str, Any] | None] = (),
        deny: Iterable[str | Pending] | Mapping[str, str] = (),
        results: Mapping[str, Any] | None = None,
        message: str | None = None,
        conversation: Conversation | None = None,
        deps: Deps | None = None,
        limits: Limits | None = None,
        budget: Budgets = None,
        user: str | None = None,
        takeover: bool = False,
        on_event: OnEvent = None,
        **unknown: Never,
    ) -> RunResult[Output]:
        """Goes on with a run that is paused, that a limit stopped, or whose process died.

        A run that has finished goes on if `limits`, `budget` or `message` is given; without, its result is returned as
        it is. One that was answered takes a message only.

        Args:
            run: the run's id in the agent's journal, or the result of the run when it paused.
            approve: the calls to allow: what is in `pending`, or by `call_id`, or by `key`, which holds for these
                arguments only; as a mapping, with the arguments to use in place of the model's, or None to use those.
            deny: the calls not to allow; as a mapping, with the reason that the model is shown.
            results: the results of calls that are made outside.
            message: something to say to the run; the model is shown it at its next call.
            conversation: the conversation that the run belongs to, as it was when the run paused.
            deps: as in `run`; not kept in the journal.
            limits: in place of the limits that the run was under.
            budget: as in `run`; a run that a budget stopped goes on if one is given.
            user: as in `run`; needed only where no budget has it in a file or in this process.
            takeover: whether to take the run from a process, or a task of this one, that is driving it. That one stops
                at its next append, with a `TakenOver`. From one that is gone or silent it is taken in any case.
            on_event: as in `run`.

        Raises:
            UnknownRun: the journal has no such run.
            RunHeld: it is under way, and not to be taken over; says where.
            Misuse: a decision names a call that does not wait for it, the run was started under stricter rules than
                this agent's, or more was said in the conversation meanwhile.
        """
        refuse_unknown(Agent.resume, unknown, Agent)
        answers = Answers.of(approve, deny, results or {})
        going_on = GoingOn(answers, message, conversation, deps, limits, on_event, budget, user, takeover=takeover)
        gone_on = await taken_up(self._config, run, going_on)
        return await driven(gone_on.run, gone_on.earlier) if gone_on.to_do else gone_on.result

    async def fork(
        self,
        run: str | RunResult[Any],
        *,
        at: int,
        message: str | None = None,
        tool_results: Mapping[str, Any] | None = None,
        model: str | Model | None = None,
        instructions: str | None = None,
        limits: Limits | None = None,
        deps: Deps | None = None,
        budget: Budgets = None,
        user: str | None = None,
        on_event: OnEvent = None,
        **unknown: Never,
    ) -> RunResult[Output]:
        """Goes on from the beginning of step `at` of a run as a run of its own, and leaves the run as it is.

        What the steps before did is done and not repeated. What they took counts against the limits and stands in the
        result; it is the run that paid it (`spending` tells the two apart). Calls of the step before whose results are
        replaced are not made again either.

        Args:
            run: the run's id in the agent's journal, or its result.
            at: the step, from 0; one after the last, to go on where the run ended.
            message: something to say at that point; the model is shown it at its next call.
            tool_results: other results of calls of the step before, by call id.
            model: in place of the agent's.
            instructions: in place of those that the run was begun with; empty for none.
            limits: in place of those that the run was under.
            deps: as in `run`.
            budget: as in `run`.
            user: as in `resume`.
            on_event: as in `run`.

        Raises:
            UnknownRun: the journal has no such run.
            Misuse: it has no such step or call, works for another run, was started under stricter rules than this
                agent's, or had ended there and nothing is said to it.
        """
        refuse_unknown(Agent.fork, unknown, Agent)
        asked = Forked(
            at, message, tool_results, model, limits, deps, on_event, budget, user, instructions=instructions
        )
        return await driven(*await forked(self._config, run, asked))

    async def begin_fork(
        self,
        run: str,
        *,
        at: int,
        message: str | None = None,
        tool_results: Mapping[str, Any] | None = None,
        model: str | Model | None = None,
        instructions: str | None = None,
        limits: Limits | None = None,
        deps: Deps | None = None,
        budget: Budgets = None,
        user: str | None = None,
        **unknown: Never,
    ) -> str:
        """`fork`, recorded and not carried out: its id. Whoever resumes it, here or elsewhere, carries it out.

        Raises:
            UnknownRun, Misuse: as `fork`; and if the agent keeps no journal.
        """
        refuse_unknown(Agent.begin_fork, unknown, Agent)
        asked = Forked(at, message, tool_results, model, limits, deps, None, budget, user, instructions=instructions)
        begun = await begin_fork(self._config, run, asked)
        if not isinstance(begun, str):
            raise Misuse("begin_fork needs a journal to keep the fork in: give the agent one, or use fork")
        return begun

    async def replay(
        self,
        run: str | RunResult[Any],
        *,
        deps: Deps | None = None,
        limits: Limits | None = None,
        recorded_limits: bool = False,
        **unknown: Never,
    ) -> Replay:
        """Carries a run out again from its journal, with no model and no tool, and says where it comes out otherwise.

        What came from outside is taken as it was recorded; what the agent decides is decided anew at the same place:
        the first request, each step, nudge, edit of the history, pause and end, and whether each call is made. Of your
        functions those are called that choose: the instructions, `prepare_step`, `stop_when`, context policies of your
        own, rules, and checks of arguments and answers; never a tool, `on_tool_call`, `on_tool_result` or `on_event`.

        Args:
            run: the run's id in the agent's journal, or its result.
            deps: what these functions are given as dependencies.
            limits: in place of the agent's, for a run that was begun with limits of its own.
            recorded_limits: whether the limits are those that the run began with.

        Raises:
            UnknownRun: the journal has no such run.
        """
        refuse_unknown(Agent.replay, unknown, Agent)
        events, journal = await recorded(self._config, "replay", run)
        return await replayed(events, journal, self._config, deps=deps, limits=limits, recorded_limits=recorded_limits)

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
        the next worker that starts, or `resubmit`, queues it.

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
        refuse_unknown(Agent.submit, unknown, Agent)
        asked = Asked(input, None, deps, limits, None, False, None, user, run_id, True)
        return await submitted(self._config, asked, to, queued_as(key if key is not None else user, priority, at))

    async def resubmit(
        self,
        run: str,
        *,
        to: Dispatcher,
        approve: Iterable[str | Pending] | Mapping[str, Mapping[str, Any] | None] = (),
        deny: Iterable[str | Pending] | Mapping[str, str] = (),
        results: Mapping[str, Any] | None = None,
        message: str | None = None,
        limits: Limits | None = None,
        user: str | None = None,
        **unknown: Never,
    ) -> str:
        """Records what was decided of a run that waits, and has a worker go on with it: its id.

        With no decision it queues a run anew that says that it is queued or running, and whose worker or place in the
        queue is gone; twice is not wrong. The run keeps its key and priority. The arguments are those of `resume`.

        Raises:
            UnknownRun: the journal has no such run.
            RunHeld: something is decided of it, and it is under way.
            Misuse: it waits for a decision and none is given, or one that is given does not fit.
        """
        refuse_unknown(Agent.resubmit, unknown, Agent)
        answers = Answers.of(approve, deny, results or {})
        going_on = GoingOn(answers, message, limits=limits, user=user, elsewhere=True)
        return await submitted_again(self._config, run, going_on, to)

    async def drive(
        self, run_id: str, *, deps: Deps | None = None, on_event: OnEvent = None, pausing: Pausing | None = None
    ) -> RunResult[Output]:
        """Drives a submitted run to its end or a pause. What a worker calls; it may be called late, twice or at once.

        A run that has finished or waits for a person is left as it is, and its result returned; one whose process died
        is taken up. With `pausing` the run can be paused before its next step, to be driven on elsewhere.

        Raises:
            UnknownRun: the journal has no such run.
            RunHeld: somebody else drives it. Call again later: that one may die.
            JournalConflict: somebody else has taken it over meanwhile.
            Misuse: the run was begun under stricter rules than this agent's.
        """
        return await carried(self._config, run_id, GoingOn(deps=deps, on_event=on_event), pausing)

    async def cancel(self, run_id: str) -> RunResult[Output]:
        """Ends a run as `cancelled`, whoever drives it: that one stops at the next thing that it records.

        Raises:
            UnknownRun: the journal has no such run.
            JournalConflict: the run goes on too fast to be caught; ask again.
        """
        return await cancelled(self._config, run_id)

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
        refuse_unknown(Agent.step, unknown, Agent)
        run = await begun(self._config, Asked(None, said_in("step", messages), deps, None, on_event, True, None, user))
        result: RunResult[Output] = await driven(run)
        return dataclasses.replace(result, messages=conversation_part(result.messages))

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
        refuse_unknown(Agent.estimate, unknown, Agent)
        return await estimated(self._config, Asked(input, conversation, deps, limits, None, False, budget, user))

    async def spending(self, run: str | RunResult[Any]) -> Spending:
        """What a run has spent so far, by model, agent, tool and step, with all that worked below it.

        Args:
            run: the run's id in the agent's journal, or its result. Where there is a journal it is read anew.

        Raises:
            UnknownRun: the journal has no such run.
            Misuse: it is no run, or the agent keeps no journal and was given an id.
        """
        return await spending_of(*await recorded(self._config, "spending", run))

    def as_tool(self, name: str | None = None, description: str | None = None, *, needs_approval: bool = False) -> Tool:
        """This agent as a tool of another: it is given a task, and its answer is the result.

        Its runs draw on the limits of the run that called it (steps, tool calls, seconds, dollars, tokens), are kept in
        that run's journal, and are taken up again with it. What they wait for, that run waits for, and its rules hold
        for them too.

        Args:
            name: the tool's name; by default the agent's.
            description: what the model is told it is for; by default the agent's instructions, if they are a text.
            needs_approval: whether a person must agree before it is called.
        """
        parameters = {"task": {"type": "string", "description": "The whole task; the agent sees nothing else."}}
        return agent_tool(
            name or self.name,
            self._described(description),
            {"type": "object", "properties": parameters, "required": ["task"], "additionalProperties": False},
            Below(self._config, final=False),
            needs_approval=needs_approval,
        )

    def _described(self, description: str | None) -> str:
        instructions = self._config.instructions
        if description is not None:
            return description
        return instructions if isinstance(instructions, str) else f"Gives a task to the agent {self.name}."


def handoff(agent: Agent[Any, Any], name: str | None = None, description: str | None = None) -> Tool:
    """A tool that passes the conversation on to `agent`, whose answer is then the answer of the run.

    Args:
        agent: who goes on. It sees what was said so far, under its own instructions.
        name: the tool's name; by default "transfer_to_" and the agent's.
        description: what the model is told it is for; by default the agent's instructions, if they are a text.

    Raises:
        Misuse: it is no agent.
    """
    if not isinstance(agent, Agent):
        raise Misuse(f"handoff takes the Agent that is to go on: handoff(agent); it was given {agent!r:.100}")
    told = agent._described(description)
    reason = {"type": "string", "default": "", "description": "Why, in a few words, for the one who goes on."}
    return agent_tool(
        name or f"transfer_to_{agent.name}",
        f"Hands the conversation on. {told}",
        {"type": "object", "properties": {"reason": reason}, "additionalProperties": False},
        Below(agent._config, final=True),
        alone=True,
    )
