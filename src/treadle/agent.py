"""Agent: the configuration of a loop, and the ways to run it."""

import asyncio
import copy
import dataclasses
import inspect
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Never, Self

import msgspec

from treadle.context.policies import ContextPolicy
from treadle.context.tokens import estimate_text
from treadle.conversation import Conversation
from treadle.drivers.answers import Answers, answer
from treadle.drivers.approvals import ApprovalRule, named, require_rules, rules_of
from treadle.drivers.below import Below
from treadle.drivers.calls.early import any_may_start_early
from treadle.drivers.calls.reaction import OnToolResult
from treadle.drivers.checks import (
    Input,
    OnEvent,
    approvals_of,
    asked_of,
    ceiling,
    check_limits,
    kind,
    model_of,
    one_of,
    refuse_unknown,
    require_dependencies_injected,
    watcher_of,
)
from treadle.drivers.compact import chosen_policies, reads_results
from treadle.drivers.configuration import (
    Configuration,
    Errors,
    Instructions,
    Output,
    PrepareStepFunction,
    Retries,
    RunContext,
    check_tool_choice,
    require_price,
)
from treadle.drivers.drive import DRIVER, drive
from treadle.drivers.live import LiveRun
from treadle.drivers.output import output_type
from treadle.drivers.run import Run, RunEvent
from treadle.journal import Journal
from treadle.judging.conditions import Condition, StopWhen, condition
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, MessageAdded, NudgeGiven
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import AssistantMessage, Message, ModelSettings, SystemMessage, ToolMessage, UserMessage
from treadle.kernel.stop import LIMIT_REASONS, Limits, OnLimit
from treadle.models.port import Model, OutputMode, output_mode_of
from treadle.result import RunResult, conversation_part, history, result_of
from treadle.tools import Skill, SkillRegistry, Tool, tool
from treadle.tools.external import agent_tool
from treadle.tools.read_result import read_result


class Agent:
    """A model, its instructions and tools, and what its runs may do. Holds no state of a run; many may run at once.

    Args:
        model: a name such as "anthropic:claude-sonnet-4-5", "openai:gpt-5" or "offline", or any `Model`.
        instructions: the system prompt, or a function of the run's `RunContext` that returns it.
        tools: tools, or plain functions to make tools of.
        skills: named bundles of instructions and tools.
        limits: what a run may use at most.
        stop_when: when enough has been done: a condition, several combined by `|`, `&`, `~`, or a list (any of them).
        prepare_step: called before each step with a `StepContext`; may return `StepSettings` for that step.
        tool_choice: "auto", "none", "required", or the name of the one tool to call.
        on_limit: at a limit: "answer" makes one last call without tools that writes up what was found, "stop" returns
            what there is, "raise" raises `RunStopped` with it.
        output: the type that the answer must have; `result.output` is then a value of it.
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
        on_tool_result: called with each call and its result; may return another result, `Retry`, `Alternative` or
            `AskUser`; None leaves the result as it is.
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

    Raises:
        Misuse: something does not fit; the message says what would.
    """

    def __init__(
        self,
        model: str | Model,
        *,
        instructions: Instructions = None,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        skills: Iterable[Skill] = (),
        limits: Limits | None = None,
        stop_when: StopWhen | None = None,
        prepare_step: PrepareStepFunction | None = None,
        tool_choice: str = "auto",
        on_limit: OnLimit = "answer",
        output: Any = None,
        output_mode: OutputMode | None = None,
        journal: Journal | None = None,
        name: str | None = None,
        settings: ModelSettings | None = None,
        retries: Retries | int | None = None,
        approvals: Iterable[ApprovalRule] = (),
        on_tool_result: OnToolResult | None = None,
        tell_remaining: bool = False,
        watch_progress: bool = True,
        eager: bool = True,
        on_interrupted: Literal["ask", "tell"] = "ask",
        context: ContextPolicy | Iterable[ContextPolicy] | None = None,
        errors: Errors | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, inspect.signature(Agent).parameters)
        if isinstance(tools, (Tool, str)) or isinstance(skills, (Skill, str)):
            raise Misuse("tools and skills take lists: tools=[my_tool], skills=[my_skill]")
        chosen = model_of(model)
        policies = chosen_policies(context, chosen, model_of)
        reading = [read_result] if context is not None and reads_results(policies or ()) else []
        given = [one if isinstance(one, Tool) else tool(one) for one in tools]
        registry = SkillRegistry(skills=skills, tools=[*given, *reading])
        by_name = {one.name: one for one in registry.tools}
        check_tool_choice(tool_choice, by_name, "Agent")
        one_of("on_limit", on_limit, ("answer", "stop", "raise"))
        one_of("on_interrupted", on_interrupted, ("ask", "tell"))
        kind("instructions", instructions, lambda it: isinstance(it, str) or callable(it), "a text or a function")
        kind("prepare_step", prepare_step, callable, "a function of a StepContext")
        rules = approvals_of(approvals, by_name)
        require_dependencies_injected(registry.tools)
        kind("errors", errors, callable, "a function of the value that a tool returned")
        enough = None if stop_when is None else condition(stop_when)
        kind("on_tool_result", on_tool_result, callable, "a function of a call and its result")
        kind("settings", settings, lambda it: isinstance(it, ModelSettings), "ModelSettings(…)")
        kind("journal", journal, lambda it: isinstance(it, Journal), "a journal such as SqliteJournal(path)")
        if output is None and output_mode is not None:
            raise Misuse("output_mode says how an answer of a type is asked for; give the type too: output=…")
        mode = output_mode or output_mode_of(chosen, bool(by_name))
        one_of("output_mode", mode, ("native", "tool", "prompted"))
        typed = None if output is None else output_type(output, mode, by_name)
        specs = tuple(one.spec for one in registry.tools)
        specs += () if typed is None or typed.tool is None else (typed.tool,)
        self._registry = registry
        self._config = Configuration(
            model=chosen,
            name=name or "agent",
            instructions=instructions,
            tools=by_name,
            limits=ceiling(limits, enough),
            stop_when=enough,
            prepare_step=prepare_step,
            tool_choice=tool_choice,
            settings=settings or ModelSettings(),
            on_limit=on_limit,
            output=typed,
            journal=journal,
            retries=Retries(attempts=1 + retries) if isinstance(retries, int) else retries or Retries(),
            on_interrupted=on_interrupted,
            context=policies,
            approvals=rules,
            on_tool_result=on_tool_result,
            tell_remaining=tell_remaining,
            watch=watch_progress,
            eager=eager and not rules and any_may_start_early(registry.tools),
            specs=specs,
            tool_tokens=sum(estimate_text(msgspec.json.encode(spec).decode()) for spec in specs),
            errors=errors,
            model_named=model_of,
            rules=rules_of(rules, registry.tools),
            hooks=_hooks(on_tool_result, prepare_step, enough, typed),
        )
        check_limits(self._config.model, self._config.limits)

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
    def limits(self) -> Limits:
        """What its runs may use, unless a run is given limits of its own."""
        return self._config.limits

    def with_journal(self, journal: Journal | None) -> Self:
        """This agent with another journal, and all else as it is."""
        other = copy.copy(self)
        other._config = dataclasses.replace(self._config, journal=journal)
        return other

    async def run(
        self,
        input: Input = None,
        *,
        conversation: Conversation | None = None,
        deps: Any = None,
        limits: Limits | None = None,
        on_event: OnEvent = None,
    ) -> RunResult:
        """Runs the loop on `input` until it is done or a limit says stop.

        Args:
            input: the question: text, a `UserMessage`, or text with images and files; None if the conversation ends
                with it already.
            conversation: what was said before; it is continued.
            deps: given to tools as `deps`, and to functions of instructions and steps.
            limits: in place of the agent's.
            on_event: a plain function that is called with every event as it happens.

        Raises:
            Misuse: the call cannot be right.
            RunStopped: a limit was reached and `on_limit` is "raise".
            asyncio.CancelledError: this task was cancelled. The run is recorded as `cancelled`.
        """
        run_id = _run_id()
        instructions = await self._instructions(run_id, deps)
        return await self._driven(self._started(run_id, instructions, input, conversation, deps, limits, on_event))

    def run_sync(
        self,
        input: Input = None,
        *,
        conversation: Conversation | None = None,
        deps: Any = None,
        limits: Limits | None = None,
        on_event: OnEvent = None,
    ) -> RunResult:
        """`run`, for code that is not asynchronous.

        Raises:
            Misuse: an event loop is running in this thread; use `await agent.run(…)` there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(input, conversation=conversation, deps=deps, limits=limits, on_event=on_event))
        raise Misuse("run_sync cannot be used where an event loop is running: use await agent.run(…)")

    def stream(
        self,
        input: Input = None,
        *,
        conversation: Conversation | None = None,
        deps: Any = None,
        limits: Limits | None = None,
        partial_arguments: bool = False,
    ) -> LiveRun:
        """The run, under way in the background: `async with agent.stream(…) as run: async for event in run: …`.

        With `partial_arguments` a `PartialArguments` event says what can be read of a tool call's arguments while they
        are still arriving. The other arguments are those of `run`. With `on_limit="raise"` nothing is raised here;
        `run.result.require()` does.
        """

        async def begin(on_event: Callable[[RunEvent], None]) -> Run:
            run_id = _run_id()
            instructions = await self._instructions(run_id, deps)
            return self._started(run_id, instructions, input, conversation, deps, limits, on_event)

        return LiveRun(begin, partial_arguments=partial_arguments)

    def start(
        self,
        input: Input = None,
        *,
        conversation: Conversation | None = None,
        deps: Any = None,
        limits: Limits | None = None,
        on_event: OnEvent = None,
    ) -> Run:
        """A run to be carried out by hand; see `treadle.drivers.run` for the loop that a person writes with it.

        Raises:
            Misuse: the agent's instructions are an asynchronous function.
        """
        instructions: Any = self._config.instructions
        run_id = _run_id()
        if callable(instructions):
            found = instructions(RunContext(run_id, self.name, deps))
            if inspect.iscoroutine(found):
                found.close()
            if inspect.isawaitable(found):
                raise Misuse("agent.start cannot wait for asynchronous instructions: use agent.run or agent.stream")
            instructions = found
        return self._started(run_id, instructions, input, conversation, deps, limits, on_event)

    async def resume(
        self,
        run: str | RunResult,
        *,
        approve: Iterable[str] | Mapping[str, Mapping[str, Any] | None] = (),
        deny: Iterable[str] | Mapping[str, str] = (),
        results: Mapping[str, Any] | None = None,
        message: str | None = None,
        conversation: Conversation | None = None,
        deps: Any = None,
        limits: Limits | None = None,
        on_event: OnEvent = None,
    ) -> RunResult:
        """Goes on with a run that is paused, that a limit stopped, or whose process died.

        A run that has finished goes on if `limits` or `message` is given; without, its result is returned as it is. One
        that was answered takes a message only.

        Args:
            run: the run's id in the agent's journal, or the result of the run when it paused.
            approve: the calls to allow, by their `call_id` in what is pending, or by their `key`, which holds for its
                arguments only; as a mapping, with the arguments to use in place of the model's, or None to use those.
            deny: the calls not to allow; as a mapping, with the reason that the model is shown.
            results: the results of calls that are made outside.
            message: something to say to the run; the model is shown it at its next call.
            conversation: the conversation that the run belongs to, as it was when the run paused.
            deps: as in `run`; not kept in the journal.
            limits: in place of the limits that the run was under.
            on_event: as in `run`.

        Raises:
            UnknownRun: the journal has no such run.
            Misuse: a decision names a call that does not wait for it, the run was started under stricter rules than
                this agent's, or more was said in the conversation meanwhile.
        """
        if limits is not None:
            check_limits(self._config.model, limits)
        events = await self._events_of(run)
        state = fold_all(events)
        answers = Answers.of(approve, deny, results or {})
        if answers and state.phase != "paused":
            now = "has finished" if state.phase == "finished" else "is not paused"
            raise Misuse(f"run {state.run_id} {now}: no call of it waits to be decided ({', '.join(answers.calls)})")
        answered = state.stop is not None and state.stop.finished
        over = state.phase == "finished" and message is None and (limits is None or answered)
        kept = run.sub_runs if isinstance(run, RunResult) else None
        if over:
            return Run(self._config, DRIVER, state=state, journal=kept).result_after(events)
        config, started = self._config, state.started
        require_rules(state.run_id, started.rules, started.hooks, config.rules, config.hooks)
        if conversation is not None:
            conversation.begin(conversation_part(history(state, result_of(state).stop)))
        watcher = watcher_of(on_event)
        driven = Run(config, DRIVER, deps=deps, on_event=watcher, state=state, over=_lent(conversation), journal=kept)
        try:
            require_price(config.model, limits or state.limits)
            await answer(driven, answers, limits)
            if message is not None:
                driven.feed(MessageAdded(asked_of(message) or UserMessage(message)))
            elif state.phase == "finished" and isinstance(state.messages[-1], AssistantMessage):
                driven.feed(NudgeGiven("There is room to go on now. Go on with the task."))
        except BaseException:
            driven.release()
            raise
        return await self._driven(driven, earlier=events)

    async def step(self, messages: Sequence[Message], *, deps: Any = None, on_event: OnEvent = None) -> RunResult:
        """One model call on `messages` and the tool calls that it asks for: a step of a loop that you write yourself.

        `result.messages` is what to call it with again, for as long as `result.tool_calls_made` is not empty. Nothing
        is kept between one call and the next; the agent's instructions go before the messages.
        """
        limits = msgspec.structs.replace(self._config.limits, steps=1)
        said = Conversation(messages)
        run_id = _run_id()
        instructions = await self._instructions(run_id, deps)
        run = self._started(run_id, instructions, None, said, deps, limits, on_event)
        await drive(run)
        result = run.result
        return dataclasses.replace(result, messages=conversation_part(result.messages))

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
            self._below(final=False),
            needs_approval=needs_approval,
        )

    def _described(self, description: str | None) -> str:
        instructions = self._config.instructions
        if description is not None:
            return description
        return instructions if isinstance(instructions, str) else f"Gives a task to the agent {self.name}."

    def _below(self, *, final: bool) -> Below:
        """How runs of this agent are made below another run."""
        return Below(self._config, self._system_of, final, self._typed)

    def _typed(self, above: Output) -> Output:
        """The type of the answer of the run above, as this agent's model is best asked for it."""
        config = self._config
        return output_type(above.kind, "prompted", config.tools)

    def _system_of(self, instructions: str | None, output: Output | None) -> list[Message]:
        system = self._registry.instructions(instructions or "")
        if output is not None:
            system = f"{system}\n\n{output.instructions}".strip()
        return [SystemMessage(system)] if system else []

    async def _events_of(self, run: str | RunResult) -> Sequence[Event]:
        journal = self._config.journal
        if journal is None and isinstance(run, RunResult):
            journal = run.sub_runs
            if journal is None:
                return run.events
        if journal is not None:
            return await journal.read(run if isinstance(run, str) else run.run_id)
        raise Misuse(
            f"run {run!r} cannot be found: this agent keeps no journal. Give it one (journal=SqliteJournal(path)), "
            "or resume from the result of the run"
        )

    async def _instructions(self, run_id: str, deps: Any) -> str | None:
        instructions = self._config.instructions
        if not callable(instructions):
            return instructions
        found = instructions(RunContext(run_id, self.name, deps))
        return await found if inspect.isawaitable(found) else found

    def _started(
        self,
        run_id: str,
        instructions: str | None,
        input: Input,
        conversation: Conversation | None,
        deps: Any,
        limits: Limits | None,
        on_event: OnEvent,
    ) -> Run:
        if limits is not None:
            check_limits(self._config.model, limits)
        kind("instructions", instructions, lambda it: isinstance(it, str), "a text, or a function that returns one")
        kind("conversation", conversation, lambda it: isinstance(it, Conversation), "a treadle.Conversation")
        asked, watcher = asked_of(input), watcher_of(on_event)
        before = [] if conversation is None else conversation.begin()
        run = Run(self._config, DRIVER, deps=deps, on_event=watcher, over=_lent(conversation))
        if asked is None and not (before and isinstance(before[-1], (UserMessage, ToolMessage))):
            run.release()
            raise Misuse(
                "there is nothing to answer: give run(…) a question, or a conversation that ends with one or with tool results"
            )
        run.start(
            run_id,
            [*self._system_of(instructions, self._config.output), *before, *([] if asked is None else [asked])],
            limits,
        )
        return run

    async def _driven(self, run: Run, earlier: Sequence[Event] = ()) -> RunResult:
        try:
            await drive(run)
        finally:
            run.release()
        result = run.result_after(earlier)
        if run.state.on_limit == "raise" and result.stop.reason in LIMIT_REASONS:
            result.require()
        return result


def handoff(agent: Agent, name: str | None = None, description: str | None = None) -> Tool:
    """A tool that passes the conversation on to `agent`, whose answer is then the answer of the run.

    Args:
        agent: who goes on. It sees what was said so far, under its own instructions.
        name: the tool's name; by default "transfer_to_" and the agent's.
        description: what the model is told it is for; by default the agent's instructions, if they are a text.
    """
    told = agent._described(description)
    reason = {"type": "string", "default": "", "description": "Why, in a few words, for the one who goes on."}
    return agent_tool(
        name or f"transfer_to_{agent.name}",
        f"Hands the conversation on. {told}",
        {"type": "object", "properties": {"reason": reason}, "additionalProperties": False},
        agent._below(final=True),
        alone=True,
    )


def _hooks(
    on_tool_result: OnToolResult | None,
    prepare_step: PrepareStepFunction | None,
    stop_when: Condition | None,
    output: Output | None,
) -> tuple[str, ...]:
    """What else of the application's takes part in runs, by name."""
    lines = [
        f"{what} {named(one)}"
        for what, one in (("on_tool_result", on_tool_result), ("prepare_step", prepare_step))
        if one
    ]
    lines += [] if stop_when is None else [f"stop_when {stop_when}"]
    return (*lines, *([] if output is None else [f"output {output.name}"]))


def _run_id() -> str:
    """Sorts by time, is typed with ease, and differs from every other: 40 random bits within a second."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(5)}"


def _lent(conversation: Conversation | None) -> Callable[[Run], None] | None:
    """What gives `conversation` back when the run that it was lent to is over."""
    if conversation is None:
        return None

    def over(run: Run) -> None:
        state = run.state
        conversation.end(None if state.phase == "new" else conversation_part(history(state, result_of(state).stop)))

    return over
