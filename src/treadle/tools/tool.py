"""A tool: something that a model can ask for, with its schema, its check of arguments and its call.

A `Tool` never changes after it was made (by `tool`, `Tool.from_schema`, `external_tool` or `load_tools`) and holds
nothing of a run. Its `call` never raises an `Exception`: whatever goes wrong becomes an output that the model can read.
Scheduling, approval and the journal are the driver's; the fields here tell it what it may do.
"""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel.messages import Json, ToolSpec
from treadle.tools.arguments import Arguments
from treadle.tools.context import Cancellation, ToolContext
from treadle.tools.errors import BadTool, ToolError
from treadle.tools.limit import TimedOut, within
from treadle.tools.output import ToolOutput, encode, encode_error
from treadle.tools.signature import Injected
from treadle.tools.threads import in_thread

Effect = Literal["read", "idempotent", "write"]
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


class Tool(Struct, frozen=True, eq=False, kw_only=True):
    """Something that a model can ask for.

    Attributes:
        spec: what the model is told: name, description, schemas.
        arguments: the check of what the model writes.
        function: what is called; None for an external tool.
        where: the place of the function, as "file:line", for errors.
        is_async: whether the function is a coroutine function; others run in threads.
        injected: the function's parameters that are filled with the context or the dependencies.
        effect: "read" (may run beside others and again), "idempotent" (may run again with the same key), "write"
            (once).
        timeout: seconds that one attempt may take; None for no limit.
        retries: further attempts after an exception or a timeout; only where the effect allows them.
        alone: whether nothing else may run beside it.
        resource: the name of something that two calls must not use at the same time.
        max_output: the most characters of text that the model is shown; the middle of what is longer is left out.
        needs_approval: whether a person must agree first; a function of the validated arguments may decide.
        polling: whether calling it again with the same arguments is progress (it waits for something).
        external: whether it has no function: calling it ends or pauses the run.
        wait: for an external tool, whether the run pauses for a result instead of ending.
    """

    spec: ToolSpec
    arguments: Arguments
    function: Callable[..., Any] | None = None
    where: str = ""
    is_async: bool = False
    injected: tuple[tuple[str, Injected], ...] = ()
    effect: Effect = "write"
    timeout: float | None = 60.0
    retries: int = 0
    alone: bool = False
    resource: str | None = None
    max_output: int = 50_000
    needs_approval: bool | Callable[[dict[str, Any]], bool] = False
    polling: bool = False
    external: bool = False
    wait: bool = False

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
        from treadle.tools.function import from_schema

        return from_schema(name, description, input_schema, function, **options)

    def validate(self, arguments: str) -> dict[str, Any]:
        """The function's keyword arguments, from the JSON text that the model wrote; for an external tool JSON's own
        types.

        Raises:
            InvalidArguments: the text is not JSON, or does not fit the schema. Nothing else is ever raised.
        """
        return self.arguments.parse(arguments)

    async def call(self, arguments: dict[str, Any], context: ToolContext | None = None) -> ToolOutput:
        """Runs the function with validated arguments and gives its output, an error output if it failed.

        Raises:
            asyncio.CancelledError: the caller was cancelled. An `Exception` is never raised.
        """
        if self.function is None:
            return encode_error(ToolError(f"{self.name} has no function here; its result comes from outside"))
        attempt = 1
        while True:
            try:
                value = await self._attempt(arguments, context, attempt)
            except Exception as error:
                if attempt > self.retries or (isinstance(error, ToolError) and not isinstance(error, _TimedOut)):
                    return encode_error(error, self.max_output)
            except asyncio.CancelledError as error:
                if _is_cancelled():
                    raise
                if attempt > self.retries:
                    return encode_error(ToolError(f"{self.name} cancelled itself: {error!r}"), self.max_output)
            else:
                return encode(value, self.max_output)
            await asyncio.sleep(min(_FIRST_PAUSE * 2 ** (attempt - 1), _LONGEST_PAUSE))
            attempt += 1

    async def _attempt(self, arguments: dict[str, Any], context: ToolContext | None, attempt: int) -> Any:
        function = self.function
        assert function is not None  # noqa: S101  (call() has answered for external tools)
        if self.is_async:
            work = function(**(self._injecting(arguments, context, attempt) if self.injected else arguments))
        else:
            work = self._in_thread(function, arguments, context, attempt)
        if self.timeout is None:
            return await work
        try:
            return await within(self.timeout, work)
        except TimedOut as error:
            raise self._timed_out() from error

    async def _in_thread(
        self, function: Callable[..., Any], arguments: dict[str, Any], context: ToolContext | None, attempt: int
    ) -> Any:
        if self.injected:
            cancellation = Cancellation()
            context = replace(context or ToolContext(tool_name=self.name), cancellation=cancellation)
            context = replace(context, progress=_from_thread(context.progress, cancellation))
            arguments = self._injecting(arguments, context, attempt)
            try:
                value = await in_thread(function, arguments)
            except BaseException:
                cancellation.requested = True
                raise
        else:
            value = await in_thread(function, arguments)
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

    def _timed_out(self) -> "_TimedOut":
        seconds = f"{self.timeout:g} s"
        if self.is_async:
            return _TimedOut(f"{self.name} was stopped after its time limit of {seconds}", timeout_seconds=self.timeout)
        return _TimedOut(
            f"{self.name} was given up after its time limit of {seconds}; it runs in a thread, which cannot be stopped "
            "from outside and may still be running",
            timeout_seconds=self.timeout,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the plain function, without validation, limits or threads; for tests and for use from other code.

        Raises:
            BadTool: the tool has no function.
        """
        if self.function is None:
            raise BadTool(f"{self.name} is an external tool: it has no function to call")
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, effect={self.effect!r})"


class _TimedOut(ToolError):
    """An attempt took too long; unlike what a tool says itself, it may be tried again."""


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _from_thread(progress: Callable[[str | Json], None], cancellation: Cancellation) -> Callable[[str | Json], None]:
    """`progress`, called on the event loop whichever thread reports; silent once the call was given up."""
    loop = asyncio.get_running_loop()

    def report(news: str | Json) -> None:
        if not cancellation.requested and not loop.is_closed():
            loop.call_soon_threadsafe(progress, news)

    return report
