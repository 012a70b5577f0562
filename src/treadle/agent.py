"""Agent: the configuration of a loop, and the ways to run it."""

import asyncio
import inspect
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from treadle.conversation import Conversation
from treadle.drivers.configuration import (
    Configuration,
    Instructions,
    PrepareStepFunction,
    Retries,
    RunContext,
    require_price,
)
from treadle.drivers.decisions import Decisions, decided
from treadle.drivers.drive import drive
from treadle.drivers.live import LiveRun
from treadle.drivers.output import output_type
from treadle.drivers.run import Run, RunEvent, check_tool_choice
from treadle.journal import Journal
from treadle.kernel.conditions import StopWhen, condition
from treadle.kernel.context import storable_text
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import Content, File, Image, Message, ModelSettings, SystemMessage, Text, UserMessage
from treadle.kernel.stop import LIMIT_REASONS, Limits, OnLimit
from treadle.kernel.tokens import estimate_text
from treadle.models.port import Model
from treadle.result import RunResult, conversation_part, history, result_of
from treadle.tools import Skill, SkillRegistry, Tool, tool

Input = str | UserMessage | Sequence[Content] | None
OnEvent = Callable[[RunEvent], object] | None


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
        journal: where the events of runs are kept; None keeps them with the result only.
        name: what the agent is called in journals.
        settings: how the model is to generate.
        retries: how often and how soon a failed model call is tried again.
        watch_progress: whether a run that repeats itself is told so, then has the tools concerned withheld for a step,
            and then ends with `no_progress`.
        eager: whether a call of a `read` tool may start as soon as its own arguments are complete, while the reply is
            still arriving.
        on_interrupted: what becomes of a call of a `write` tool that was under way when the process died: "ask" pauses
            for a person, "tell" tells the model that its outcome is unknown.

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
        journal: Journal | None = None,
        name: str | None = None,
        settings: ModelSettings | None = None,
        retries: Retries | int | None = None,
        watch_progress: bool = True,
        eager: bool = True,
        on_interrupted: Literal["ask", "tell"] = "ask",
    ) -> None:
        if isinstance(tools, (Tool, str)) or isinstance(skills, (Skill, str)):
            raise Misuse("tools and skills take lists: tools=[my_tool], skills=[my_skill]")
        registry = SkillRegistry(skills=skills, tools=[one if isinstance(one, Tool) else tool(one) for one in tools])
        by_name = {one.name: one for one in registry.tools}
        check_tool_choice(tool_choice, by_name, "Agent")
        _one_of("on_limit", on_limit, ("answer", "stop", "raise"))
        _one_of("on_interrupted", on_interrupted, ("ask", "tell"))
        _kind("instructions", instructions, lambda it: isinstance(it, str) or callable(it), "a text or a function")
        _kind("prepare_step", prepare_step, callable, "a function of a StepContext")
        _kind("settings", settings, lambda it: isinstance(it, ModelSettings), "ModelSettings(…)")
        _kind("journal", journal, lambda it: isinstance(it, Journal), "a journal such as SqliteJournal(path)")
        specs = tuple(one.spec for one in registry.tools)
        self._registry = registry
        self._config = Configuration(
            model=_model(model),
            name=name or "agent",
            instructions=instructions,
            tools=by_name,
            limits=limits or Limits(),
            stop_when=None if stop_when is None else condition(stop_when),
            prepare_step=prepare_step,
            tool_choice=tool_choice,
            settings=settings or ModelSettings(),
            on_limit=on_limit,
            output=None if output is None else output_type(output),
            journal=journal,
            retries=Retries(attempts=1 + retries) if isinstance(retries, int) else retries or Retries(),
            on_interrupted=on_interrupted,
            watch=watch_progress,
            eager=eager and any(one.effect == "read" and not one.needs_approval for one in registry.tools),
            specs=specs,
            tool_tokens=sum(estimate_text(msgspec.json.encode(spec).decode()) for spec in specs),
        )
        _check_limits(self._config.model, self._config.limits)

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
    ) -> LiveRun:
        """The run, under way in the background: `async with agent.stream(…) as run: async for event in run: …`.

        The arguments are those of `run`. With `on_limit="raise"` nothing is raised here; `run.result.require()` does.
        """

        async def begin(on_event: Callable[[RunEvent], None]) -> Run:
            run_id = _run_id()
            instructions = await self._instructions(run_id, deps)
            return self._started(run_id, instructions, input, conversation, deps, limits, on_event)

        return LiveRun(begin)

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
        conversation: Conversation | None = None,
        deps: Any = None,
        limits: Limits | None = None,
        on_event: OnEvent = None,
    ) -> RunResult:
        """Goes on with a run that is paused, or whose process died.

        A run that has finished is not run again: its result is returned as it is.

        Args:
            run: the run's id in the agent's journal, or the result of the run when it paused.
            approve: the ids of the calls to allow; as a mapping, with the arguments to use in place of the model's, or
                None to use those.
            deny: the ids of the calls not to allow; as a mapping, with the reason that the model is shown.
            results: the results of calls that are made outside, by call id.
            conversation: the conversation that the run belongs to, as it was when the run paused.
            deps: as in `run`; not kept in the journal.
            limits: in place of the limits that the run was under.
            on_event: as in `run`.

        Raises:
            UnknownRun: the journal has no such run.
            Misuse: a decision names a call that does not wait for it, or more was said in the conversation meanwhile.
        """
        if limits is not None:
            _check_limits(self._config.model, limits)
        events = await self._events_of(run)
        state = fold_all(events)
        if state.phase == "finished":
            return result_of(state, None, events)
        if conversation is not None:
            conversation.begin(conversation_part(history(state, result_of(state).stop)))
        driven = Run(self._config, deps=deps, on_event=_checked(on_event), state=state, over=_lent(conversation))
        try:
            require_price(self._config.model, limits or state.limits)
            decided(driven, Decisions.of(approve, deny, results or {}), limits)
        except BaseException:
            driven.release()
            raise
        return await self._driven(driven, earlier=events)

    async def _events_of(self, run: str | RunResult) -> Sequence[Event]:
        journal = self._config.journal
        if journal is not None:
            return await journal.read(run if isinstance(run, str) else run.run_id)
        if isinstance(run, RunResult):
            return run.events
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
            _check_limits(self._config.model, limits)
        _kind("instructions", instructions, lambda it: isinstance(it, str), "a text, or a function that returns one")
        _kind("conversation", conversation, lambda it: isinstance(it, Conversation), "a treadle.Conversation")
        asked, watcher = _asked(input), _checked(on_event)
        before = [] if conversation is None else conversation.begin()
        run = Run(self._config, deps=deps, on_event=watcher, over=_lent(conversation))
        if asked is None and not (before and isinstance(before[-1], UserMessage)):
            run.release()
            raise Misuse("there is nothing to answer: give run(…) a question, or a conversation that ends with one")
        system = self._registry.instructions(instructions or "")
        if self._config.output is not None:
            system = f"{system}\n\n{self._config.output.instructions}".strip()
        messages: list[Message] = [SystemMessage(system)] if system else []
        run.start(run_id, [*messages, *before, *([] if asked is None else [asked])], limits)
        return run

    async def _driven(self, run: Run, earlier: Sequence[Event] = ()) -> RunResult:
        try:
            await drive(run)
        finally:
            run.release()
        result = result_of(run.state, run.error, [*earlier, *run.events])
        if run.state.on_limit == "raise" and result.stop.reason in LIMIT_REASONS:
            result.require()
        return result


def _model(model: str | Model) -> Model:
    if isinstance(model, str):
        from treadle.models.names import model_from_name

        return model_from_name(model)
    if not callable(getattr(model, "stream", None)) or not isinstance(getattr(model, "name", None), str):
        raise Misuse(
            "model takes a name such as 'anthropic:claude-sonnet-4-5' or 'offline', or an object with a name and "
            f"stream(request); it was given {model!r}"
        )
    return model


def _check_limits(model: Model, limits: Limits) -> None:
    _kind("limits", limits, lambda it: isinstance(it, Limits), "Limits(steps=…, usd=…, …)")
    require_price(model, limits)


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise Misuse(f"{name} takes one of {', '.join(map(repr, known))}; it was given {value!r}")


def _kind(name: str, value: object, fits: Callable[[Any], bool], wanted: str) -> None:
    if value is not None and not fits(value):
        raise Misuse(f"{name} takes {wanted}; it was given {value!r}")


def _asked(input: Input) -> UserMessage | None:
    if input is None or isinstance(input, UserMessage):
        return input
    if isinstance(input, str):
        if not input.strip():
            raise Misuse("the question is empty")
        return UserMessage(storable_text(input))
    if isinstance(input, (list, tuple)) and input and all(isinstance(part, (Text, Image, File)) for part in input):
        return UserMessage(tuple(input))
    raise Misuse(f"the question is a text, or a list of Text, Image and File parts; it was given {input!r}")


def _checked(on_event: OnEvent) -> OnEvent:
    if on_event is not None and (inspect.iscoroutinefunction(on_event) or not callable(on_event)):
        raise Misuse("on_event takes a plain function; for an asynchronous one, iterate over agent.stream(…)")
    return on_event


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
