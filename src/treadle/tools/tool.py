"""A tool: something that a model can ask for, with its schema, its check of arguments and its call.

A `Tool` never changes after it was made (by `tool`, `Tool.from_schema`, `external_tool` or `load_tools`) and holds
nothing of a run. Its `call` raises nothing of the function's: whatever goes wrong becomes an output that the model can
read. Scheduling, approval and the journal are the driver's; the fields here tell it what it may do.
"""

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, cast

from msgspec import Struct
from msgspec.structs import replace
from typing_extensions import ParamSpec, TypeVar

from treadle.kernel.messages import Json, ToolSpec
from treadle.tools.arguments import Arguments
from treadle.tools.by_name import by_name, copied
from treadle.tools.context import Cancellation, ToolContext, from_thread
from treadle.tools.described import described
from treadle.tools.errors import AsksPerson, BadTool, OutcomeUnknown, ToolError, passing, place_of_exception
from treadle.tools.failure import SaysError, is_failure
from treadle.tools.limit import TimedOut, is_cancelled, within
from treadle.tools.options import Effect, NeedsApproval, ToolOptions, check_name
from treadle.tools.output import ToolOutput, encode, encode_error
from treadle.tools.raised import Redact, log_raised
from treadle.tools.reconcile import Reconcile
from treadle.tools.signature import Injection
from treadle.tools.threads import ThreadCall

P = ParamSpec("P", default=...)
R = TypeVar("R", covariant=True, default=Any)

_log = logging.getLogger("treadle")
NOTHING: Mapping[str, object] = MappingProxyType({})
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


class Tool(Struct, Generic[P, R], frozen=True, eq=False, kw_only=True):
    """Something that a model can ask for; `Tool[P, R]` has a function that takes `P` and returns `R`.

    Attributes:
        spec: what the model is told: name, description, schemas.
        arguments: the check of what the model writes.
        function: what is called; None for an external tool, and for one that is an agent.
        where: the place of the function, as "file:line", for errors.
        is_async: whether the function is a coroutine function.
        injected: the function's parameters that are filled with the context or the dependencies.
        deps_types: the classes that those parameters say the dependencies to be, that of None among them.
        needs_deps: the type of dependencies that a run must be given, as it is written; empty if it may be given none.
        filled: the function's parameters that the model fills, each with its type.
        effect: "read" (may run beside others and again), "idempotent" (may run again with the same key), "write"
            (once).
        says_effect: whether the effect was said, and is not only taken to be the most careful one.
        timeout: seconds that one attempt may take; None for no limit.
        retries: further attempts after an exception or a timeout; only where the effect allows them.
        alone: whether nothing else may run beside it.
        resource: the name of something that two calls must not use at the same time.
        max_output: the most characters of text that the model is shown; the middle of what is longer is left out.
        needs_approval: whether a person must agree first; a function of the validated arguments, sync or async, may
            decide. One that raises, or returns None, is taken for yes.
        polling: whether calling it again with the same arguments is progress (it waits for something).
        parallel: for a tool that writes, whether it may run beside others that write, in any order.
        thread: for a sync function, whether it runs in a thread. One that is quick and waits for nothing may do
            without, and spares some 25 µs; while it runs nothing else does, and no time limit can end it.
        errors: tells, of what the function returned, whether the call failed; None to leave it to the agent.
        reconcile: for a tool that writes, finds out what came of a call that was under way when a process died: given
            the call's `ToolContext`, it gives `Done(result)`, `NotDone()` (the call is made again) or None (unknown).
            Plain or asynchronous, within `timeout`; it may be called more than once for a call.
        keep: whether its results stay in the history, whole, whatever a context policy takes away.
        agent: the agent that works on its calls, for a tool that is one; the driver knows what it is.
        external: whether it has no function: calling it ends or pauses the run.
        suspect: why a person must look at each call of it, whatever rules say; empty if nothing is suspected.
        wait: for an external tool, whether the run pauses for a result instead of ending.
    """

    spec: ToolSpec
    arguments: Arguments
    function: Callable[P, R] | None = None
    where: str = ""
    is_async: bool = False
    injected: tuple[tuple[str, Injection], ...] = ()
    deps_types: tuple[type, ...] = ()
    needs_deps: str = ""
    filled: tuple[tuple[str, Any], ...] = ()
    effect: Effect = "write"
    says_effect: bool = False
    timeout: float | None = 60.0
    retries: int = 0
    alone: bool = False
    resource: str | None = None
    max_output: int = 50_000
    needs_approval: NeedsApproval = False
    polling: bool = False
    parallel: bool = False
    thread: bool = True
    errors: SaysError | None = None
    reconcile: Reconcile | None = None
    keep: bool = False
    agent: object | None = None
    external: bool = False
    wait: bool = False
    suspect: str = ""

    @property
    def name(self) -> str:
        """The name under which the model calls it."""
        return self.spec.name

    @property
    def description(self) -> str:
        """What the model is told it is for."""
        return self.spec.description

    @property
    def input_schema(self) -> Json:
        """The JSON Schema of its arguments; not to be changed."""
        return self.spec.input_schema

    @property
    def output_schema(self) -> Json | None:
        """The JSON Schema of what it returns, where that is known; not to be changed."""
        return self.spec.output_schema

    @classmethod
    def from_schema(
        cls, name: str, description: str, input_schema: Any, function: Callable[..., Any], **options: Any
    ) -> "Tool":
        """A tool whose arguments are described apart from its function.

        Args:
            name: the name that the model calls.
            description: what the model is told it is for.
            input_schema: a JSON Schema of an object, or a type that has one: a Pydantic model, dataclass or TypedDict.
            function: takes the schema's properties as keywords, or, for a type, one value of that type.
            options: the options of `tool`, and `output_schema`.

        Raises:
            BadTool: schema and function do not fit each other, or an option is wrong.
        """
        if isinstance(function, Tool) and function.function is not None:
            function = function.function
        output_schema = options.pop("output_schema", None)
        fields = described(name, description, input_schema, function, output_schema, cast(ToolOptions, options))
        return cls(**fields)

    def named(self, name: str) -> "Tool":
        """This tool under another name.

        Raises:
            BadTool: no model takes the name.
        """
        check_name(name, f"{self.name} ({self.where})")
        spec, arguments = replace(self.spec, name=name), replace(self.arguments, tool=name)
        return self if name == self.name else replace(self, spec=spec, arguments=arguments)

    def validate(self, arguments: str) -> dict[str, Any]:
        """The function's keyword arguments, from the JSON text that the model wrote; for an external tool JSON's own
        types.

        Raises:
            InvalidArguments: the text is not JSON, or does not fit the schema. Nothing else is ever raised.
        """
        return self.arguments.parse(arguments)

    async def call(
        self,
        arguments: dict[str, Any],
        context: ToolContext | None = None,
        cancelled: Callable[[], bool] = is_cancelled,
        errors: SaysError | None = None,
        about: Mapping[str, object] = NOTHING,
        redact: Redact | None = None,
    ) -> ToolOutput:
        """Runs the function with validated arguments and gives its output, an error output if it failed.

        Whatever the function raises is an error output, `SystemExit`, `KeyboardInterrupt` and a `CancelledError` of its
        own included.

        Args:
            arguments: as `validate` gave them.
            context: the call that is served.
            cancelled: whether whoever calls was told to stop; then a `CancelledError` is not the function's own. By
                default whether the current task was told so.
            errors: tells of a returned value whether the call failed; for a tool that has no `errors` of its own.
            about: the fields of what is logged of it, such as `run_id` and `call_id`.
            redact: given the text of a traceback, returns what is logged in its place.

        Raises:
            asyncio.CancelledError: the caller was cancelled.
            PassesThrough: the run cannot go on in this process.
        """
        function = self.function
        if function is None:
            why = "its result comes from outside"
            if self.agent is not None:
                why = "an agent can only be called as a tool from a run of another agent"
            return encode_error(ToolError(f"{self.name} has no function here; {why}"))
        attempt = 1
        while True:
            thread = None if self.is_async or not self.thread else ThreadCall(function)
            try:
                # A copy, where there may be another attempt: the function may change what it is given.
                given, seen = arguments, context
                if attempt <= self.retries:
                    given = deepcopy(arguments)
                    seen = context and replace(context, arguments=MappingProxyType(given))
                work = self._work(function, thread, given, seen, attempt)
                value = await (work if self.timeout is None else within(self.timeout, work))
            except GeneratorExit as error:  # whoever waited is gone, and a coroutine that is closed must not wait again
                return encode_error(error, self.max_output)
            except BaseException as error:
                told = self._timed_out(thread) if isinstance(error, TimedOut) else error
                output = self._failed(told, attempt, cancelled, about, redact)
                if output is not None:
                    return output
            else:
                break
            await asyncio.sleep(min(_FIRST_PAUSE * 2 ** (attempt - 1), _LONGEST_PAUSE))
            attempt += 1
        if errors is None and self.errors is None:
            return encode(value, self.max_output)
        return await self.returned(value, cancelled, errors, about, redact)

    async def returned(
        self,
        value: Any,
        cancelled: Callable[[], bool] = is_cancelled,
        errors: SaysError | None = None,
        about: Mapping[str, object] = NOTHING,
        redact: Redact | None = None,
    ) -> ToolOutput:
        """The output of a call that returned `value`. The other arguments are those of `call`."""
        says = errors if self.errors is None else self.errors
        failed = says is not None and await is_failure(says, value, self.name, cancelled, about, redact)
        return encode(value, self.max_output, failed)

    async def reconciled(
        self, context: ToolContext, cancelled: Callable[[], bool] = is_cancelled, redact: Redact | None = None
    ) -> ToolOutput:
        """What `reconcile` says of the call of `context`, as the output's `value`; an error output if it failed.

        Raises:
            asyncio.CancelledError: the caller was cancelled.
            BadTool: it has no `reconcile`.
        """
        function = self.reconcile
        if function is None:
            raise BadTool(f"{self.name} has no reconcile= to ask")
        asked: Tool = Tool(
            spec=replace(self.spec, name=f"{self.name}'s reconcile"),
            arguments=self.arguments,
            function=partial(_with_context, function),
            is_async=inspect.iscoroutinefunction(function),
            effect="read",
            injected=(("context", "context"),),
            timeout=self.timeout,
            thread=self.thread,
        )
        begun = time.monotonic()
        output = await asked.call({}, context, cancelled, redact=redact)
        # One that goes on though it was stopped has cut off its own question.
        late = self.timeout is not None and time.monotonic() - begun >= self.timeout
        return replace(output, value=None) if late and not output.is_error else output

    def _failed(
        self,
        error: BaseException,
        attempt: int,
        cancelled: Callable[[], bool],
        about: Mapping[str, object],
        redact: Redact | None,
    ) -> ToolOutput | None:
        """The output of an attempt that raised `error`; None if there is to be another."""
        final = passing(error)
        if final is not None:
            raise final
        if isinstance(error, asyncio.CancelledError | KeyboardInterrupt) and cancelled():
            raise error
        self._tell(error, about, redact)
        if attempt <= self.retries and (not isinstance(error, ToolError) or isinstance(error, _TimedOut)):
            return None
        output = encode_error(error, self.max_output)
        if isinstance(error, asyncio.CancelledError):
            told = encode_error(ToolError(f"{self.name} cancelled itself: {error!r}"), self.max_output)
            return replace(output, content=told.content)
        if isinstance(error, AsksPerson):
            return replace(output, asks=(error.question, error.again))
        return replace(output, in_doubt=True) if isinstance(error, OutcomeUnknown) else output

    def _tell(self, error: BaseException, about: Mapping[str, object], redact: Redact | None) -> None:
        """Logs what an attempt raised; the arguments may be secret, and so may the words of a `ToolError`."""
        if isinstance(error, _TimedOut):
            _log.info("%s", error.message, extra=about)
        elif isinstance(error, ToolError):
            _log.info("tool %s: %s", self.name, place_of_exception(error), extra=about)
        else:
            log_raised(f"tool {self.name}: {place_of_exception(error)}", error, redact, about)

    def _work(
        self,
        function: Callable[..., Any],
        thread: ThreadCall | None,
        arguments: dict[str, Any],
        context: ToolContext | None,
        attempt: int,
    ) -> Any:
        """The coroutine of one attempt."""
        if thread is not None:
            return self._in_thread(thread, arguments, context, attempt)
        given = self._injecting(arguments, context, attempt) if self.injected else arguments
        return function(**given) if self.is_async else _here(function, given)

    async def _in_thread(
        self, thread: ThreadCall, arguments: dict[str, Any], context: ToolContext | None, attempt: int
    ) -> Any:
        if self.injected:
            cancellation = Cancellation()
            context = context or ToolContext(tool_name=self.name)
            progress = from_thread(context.progress, cancellation)
            context = replace(context, cancellation=cancellation, progress=progress)
            arguments = self._injecting(arguments, context, attempt)
            try:
                value = await thread.result(arguments)
            except BaseException:
                cancellation.requested = True
                raise
        else:
            value = await thread.result(arguments)
        return await value if inspect.isawaitable(value) else value

    def _injecting(self, arguments: dict[str, Any], context: ToolContext | None, attempt: int) -> dict[str, Any]:
        if not self.injected:
            return arguments
        if context is None:
            context = ToolContext(tool_name=self.name)
        if context.attempt != attempt:
            context = replace(context, attempt=attempt)
        given = {name: context if kind == "context" else context.deps for name, kind in self.injected}
        return {**arguments, **given}

    def _timed_out(self, thread: ThreadCall | None) -> "_TimedOut":
        seconds = f"{self.timeout:g} s"
        # Of what changes something nobody knows how far it came; the words are those of a call that a crash cut off.
        executed: dict[str, object] = {} if self.effect == "read" else {"executed": "unknown"}
        if thread is None:
            told = f"{self.name} was stopped after its time limit of {seconds}"
            told += "; it may or may not have taken effect" if executed else ""
        elif thread.begun:
            told = (
                f"{self.name} was given up after its time limit of {seconds}; it runs in a thread, which cannot be "
                "stopped from outside and may still be running"
            )
        else:
            told = (
                f"{self.name} was not started within its time limit of {seconds}: no thread was free for it, as many "
                "sync tools are running, or the machine is busy"
            )
            executed = {"executed": False}
        return _TimedOut(told, timeout_seconds=self.timeout, **executed)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the plain function, without validation, limits or threads; for tests and for use from other code.

        Raises:
            BadTool: the tool has no function.
        """
        if self.function is None:
            kind = "an external tool" if self.external else "the work of an agent"
            raise BadTool(f"{self.name} is {kind}: it has no function to call")
        return self.function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name(self, self.name, self.function)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Tool[P, R]":
        return copied(self, memo)

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, effect={self.effect!r})"


class _TimedOut(ToolError):
    """An attempt took too long; unlike what a tool says itself, it may be tried again."""


def _with_context(function: Callable[[ToolContext[Any]], Any], context: ToolContext[Any]) -> Any:
    return function(context)


async def _here(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    value = function(**arguments)
    return await value if inspect.isawaitable(value) else value
