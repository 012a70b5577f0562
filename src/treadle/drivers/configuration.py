"""Configuration: everything about an agent that a run of it needs, checked once. Holds no state of a run."""

import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from math import isnan
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple

from msgspec import Struct

from treadle.context.policies import ContextPolicy
from treadle.context.redacting import Redact
from treadle.drivers.approvals import ApprovalRule
from treadle.drivers.calls.change import OnToolCall
from treadle.drivers.calls.reaction import OnToolResult
from treadle.drivers.purse.budget import Budget
from treadle.drivers.watching import Observer
from treadle.journal.port import Journal
from treadle.judging.conditions import Condition
from treadle.kernel.errors import Misuse, Named
from treadle.kernel.messages import AssistantMessage, Json, Message, ModelSettings, SystemMessage, ToolSpec
from treadle.kernel.state import RunState
from treadle.kernel.step import Step
from treadle.kernel.stop import Limits, OnLimit
from treadle.misnamed import OF_STEPS, as_spelled_here
from treadle.models.errors import ModelError
from treadle.models.fixed import fixed_tokens
from treadle.models.port import Model
from treadle.models.profile import OutputMode
from treadle.tools import SkillRegistry, Tool
from treadle.tools.context import Deps
from treadle.tools.server import ToolServer

LONGEST_WAIT = 10.0**9
"""Seconds; what asks for more means never."""


class Retries(Struct, metaclass=Named, frozen=True):
    """How often and how soon a failed model call is tried again.

    The wait is what the provider asked for, else `base * 2 ** (attempt - 1)` seconds, at most `most`, of which a random
    half is taken off so that many runs do not come back at once. No wait goes past the run's deadline.

    Attributes:
        attempts: calls in all, the first included.
        base: seconds before the second.
        most: the longest wait in seconds; a provider that asks for more is not waited for.
    """

    attempts: int = 3
    base: float = 0.5
    most: float = 60.0

    def delay(self, error: ModelError, attempt: int, left: float | None) -> float | None:
        """Seconds to wait after the failed `attempt` (from 1), with `left` seconds to the deadline; None to give up."""
        if not error.retryable or attempt >= self.attempts:
            return None
        wait = asked_to_wait(error)
        if wait is None:
            wait = min(self.most, self.base * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        if wait > self.most or (left is not None and wait >= left):
            return None
        return wait


def asked_to_wait(error: ModelError) -> float | None:
    """The seconds that the provider asked for; None if it did not, or said what means nothing."""
    wait: object = error.retry_after
    if isinstance(wait, bool) or not isinstance(wait, (int, float)) or isnan(wait) or wait < 0:
        return None
    return float(min(wait, LONGEST_WAIT))


@dataclass(frozen=True, slots=True)
class RunContext(Generic[Deps]):
    """What a function of an agent's instructions is given: the run's id, the agent's name, the dependencies.

    `RunContext[Shop]` says of what type the dependencies are.
    """

    run_id: str
    agent: str
    deps: Deps


@dataclass(frozen=True, slots=True)
class StepContext(Generic[Deps]):
    """What `prepare_step` is given; `StepContext[Shop]` says of what type the dependencies are.

    Attributes:
        step_number: the number of the step, from 0.
        steps: the steps made so far.
        messages: the history that the model would be sent.
        model: the agent's model.
        state: the run's state.
        deps: the dependencies that the run was given.
        chosen: what the functions before this one have chosen for the step, where there are several.
        tools: the names of the agent's tools.
    """

    step_number: int
    steps: Sequence[Step]
    messages: Sequence[Message]
    model: Model
    state: RunState
    deps: Deps
    chosen: "StepSettings" = field(default_factory=lambda: StepSettings())
    tools: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSettings:
    """What `prepare_step` may change, for that step only; None leaves a thing as it is.

    Attributes:
        model: another model, or its name.
        instructions: another system prompt.
        tools: the names of the tools to offer, among the agent's.
        tool_choice: "auto", "none", "required", or the name of the one tool to call.
        messages: what to send in place of the history, after the instructions. It is completed to what every provider
            accepts: a tool result brings the call along that it answers, and there is always something to answer.
        settings: how to generate.
    """

    # Type checkers know the arguments from the fields, which a `__new__` would hide from them.
    if not TYPE_CHECKING:

        def __new__(cls, *given: Any, **named: Any) -> Any:
            """The settings. Raises `Misuse` where they have no such field."""
            for name in named:
                if name not in cls.__dataclass_fields__:
                    raise Misuse(
                        f"StepSettings takes no argument {name!r}; {_of_a_step(name, cls.__dataclass_fields__)}"
                    )
            return object.__new__(cls)

    model: Model | str | None = None
    instructions: str | None = None
    tools: Sequence[str] | None = None
    tool_choice: str | None = None
    messages: Sequence[Message] | None = None
    settings: ModelSettings | None = None


if not TYPE_CHECKING:
    # What it takes, which `help` would look for in `__new__`.
    StepSettings.__new__.__signature__ = signature(StepSettings.__init__)


def _of_a_step(name: str, known: Collection[str]) -> str:
    """What was probably meant by an argument that `StepSettings` does not take, or else what it takes."""
    word = as_spelled_here(name)
    setting = ModelSettings.called(word)
    meant = word if word in known else OF_STEPS.get(word, setting and f"settings=ModelSettings({setting}=…)")
    return f"did you mean {meant}?" if meant else f"it takes {', '.join(known)}"


Instructions = str | Callable[[RunContext[Deps]], str | Awaitable[str]] | None
PrepareStepFunction = Callable[[StepContext[Deps]], StepSettings | None | Awaitable[StepSettings | None]]
OnAnswer = Callable[[Any, StepContext[Deps]], str | None | Awaitable[str | None]]


class Answer(NamedTuple):
    """An answer as a value of its type, and the JSON that the value was read from."""

    value: Any
    json: Any


@dataclass(frozen=True, slots=True)
class AnswerType:
    """The type that an answer must have.

    Attributes:
        name: the type's name.
        instructions: what the model is told about it.
        read: finds the answer in a reply; raises ValueError with what is wrong.
        value: the answer as a value of the type, from its JSON; raises ValueError if it does not fit.
        kind: the type itself.
        schema: the JSON Schema that the reply's text must satisfy; None if the answer comes as a call of `tool`.
        tool: the final tool, whose arguments are the answer; None if the answer is text.
        in_words: whether the instructions alone ask for it: held to a schema, many a model could call no tool.
        chosen: the way to ask for it that the application chose; None for the model's own.
    """

    name: str
    instructions: str
    read: Callable[[AssistantMessage], Answer]
    value: Callable[[Any], Any]
    kind: Any
    schema: Json | None = None
    tool: ToolSpec | None = None
    in_words: bool = False
    chosen: OutputMode | None = None


Errors = Callable[[Any], bool | Awaitable[bool]]
"""Whether a value that a tool returned says that the call failed."""


def model_named(name: str) -> Model:
    """The model of that name. Raises `Misuse` or what its provider's module says if there is none."""
    from treadle.models.named import model_from_name

    return model_from_name(name)


@dataclass(frozen=True, slots=True)
class Configuration:
    """An agent, as runs see it. See `treadle.Agent` for what the fields mean.

    `redact` is that of the journal that has what is replayed, where the runs themselves are kept in none. `named`:
    was the model given by its name?
    """

    model: Model
    name: str = "agent"
    instructions: Instructions[Any] = None
    tools: Mapping[str, Tool] = field(default_factory=dict)
    limits: Limits = Limits()
    stop_when: Condition | None = None
    prepare_step: tuple[PrepareStepFunction[Any], ...] = ()
    tool_choice: str = "auto"
    settings: ModelSettings = ModelSettings()
    on_limit: OnLimit = "answer"
    output: AnswerType | None = None
    journal: Journal | None = None
    retries: Retries = Retries()
    on_interrupted: Literal["ask", "tell"] = "ask"
    specs: tuple[ToolSpec, ...] = ()
    tool_tokens: int = 0
    approvals: tuple[ApprovalRule, ...] = ()
    on_tool_call: tuple[OnToolCall, ...] = ()
    on_tool_result: tuple[OnToolResult, ...] = ()
    on_answer: tuple[OnAnswer[Any], ...] = ()
    tell_remaining: bool = False
    eager: bool = True
    watch: bool = True
    context: tuple[ContextPolicy, ...] | None = None
    errors: Errors | None = None
    model_named: Callable[[str], Model] = model_named
    rules: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    deps_type: type | None = None
    budgets: tuple[Budget, ...] = ()
    skills: SkillRegistry = field(default_factory=SkillRegistry)
    servers: tuple[ToolServer, ...] = ()
    telemetry: Observer | None = None
    redact: Redact | None = None
    named: bool = False

    def system(self, instructions: str | None, output: AnswerType | None) -> list[Message]:
        """The system message of `instructions`, with those of the skills and of the type of the answer."""
        system = self.skills.instructions(instructions or "")
        if output is not None:
            system = f"{system}\n\n{output.instructions}".strip()
        return [SystemMessage(system)] if system else []

    def counted(self) -> "Configuration":
        """The agent with the tokens that its tools, and the type of its answer, take of each request."""
        schema = None if self.output is None else self.output.schema
        return replace(self, tool_tokens=fixed_tokens(self.model, self.specs, schema))


def check_tool_choice(choice: str | None, names: Collection[str], where: str) -> None:
    """Raises `Misuse` if `choice` is neither a way to choose nor the name of a tool."""
    if choice is not None and choice not in ("auto", "none", "required") and choice not in names:
        known = ", ".join(["auto", "none", "required", *names])
        raise Misuse(f"{where}: tool_choice {choice!r} is none of {known}")
    if choice == "required" and not names:
        raise Misuse(f"{where}: tool_choice 'required' needs a tool that could be called, and none is offered")
