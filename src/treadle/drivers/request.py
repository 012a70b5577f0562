"""The request of a step: chosen from what the run decided and what `prepare_step` said, and made from what was chosen.

Pure but for the clock: the choice is an event (`StepPrepared`), and the request follows from it and the state alone.
"""

from collections.abc import Collection, Iterable, Sequence, Set
from decimal import Decimal
from typing import get_args

from msgspec.structs import replace

from treadle.context.chosen import rejoined
from treadle.context.frames import ACTIVATE
from treadle.context.stubs import READ_RESULT
from treadle.drivers.checks import require_takes_tools
from treadle.drivers.configuration import AnswerType, Configuration, StepSettings, check_tool_choice
from treadle.drivers.output import told_its_way
from treadle.drivers.purse.claims import Within
from treadle.drivers.purse.reckoning import Reached, fits, reckoned, require_price
from treadle.kernel.decide import PrepareStep, landing
from treadle.kernel.errors import Misuse
from treadle.kernel.events import StepPrepared
from treadle.kernel.history import instructed
from treadle.kernel.messages import AssistantMessage, Message, ToolSpec, UserMessage
from treadle.kernel.money import minus
from treadle.kernel.state import RunState
from treadle.kernel.stop import Stop, counted, stopped
from treadle.models.given import check_settings
from treadle.models.port import Model, ModelRequest, Usual
from treadle.models.profile import profile_of


def prepared(
    config: Configuration,
    within: Within,
    model: Model,
    command: PrepareStep,
    chosen: StepSettings | None,
    counted: Model | None = None,
    at: float = 0.0,
) -> StepPrepared:
    """The event that carries `command` out with what `prepare_step` chose, `within` the limits and what budgets leave.

    `counted` is the model that replied last, `at` the time that it has.

    Raises:
        Misuse: a tool was chosen that the agent does not have.
    """
    state = within.state
    event = StepPrepared(
        command.step,
        command.decision,
        command.landing,
        command.note,
        tool_choice="none" if command.landing is not None else None,
        stuck=command.stuck,
        withheld=command.withheld,
        at=at,
    )
    if chosen is not None:
        event = _with_choice(config, state, event, chosen, model)
    unwanted = (*command.withheld, *not_allowed(config, state, config.tools))
    if unwanted:
        event = _without(config, event, unwanted)
    choice = event.tool_choice or state.started.tool_choice
    if choice != "auto":
        names = config.tools if event.tools is None else event.tools
        met = _met(choice, [*names, *_final(config)])
        event = event if met == choice else replace(event, tool_choice=met)
    limits = state.limits
    if limits.tokens is not None or limits.usd is not None:
        require_price(model, event.settings or state.settings, limits)
        found = reckoned(config, state, event, model, counted)
        why = _used_up(within, found.short) if found.short and state.steps else None
        closing = None if why is None else landing(state, why)
        last = None if closing is None else prepared(config, within, model, closing, chosen, counted, at)
        # Where not even a closing reply can be paid, the step is refused for what it may take.
        event = found.event if last is None or not fits(state, last.reserve) else last
    return event


def _used_up(within: Within, reason: Reached) -> Stop:
    stop, state, limits = within.used_up(reason), within.state, within.state.limits
    if stop is not None:
        return stop
    used = f"{state.usage.total_tokens} of at most {limits.tokens} tokens are used"
    if reason == "max_cost":
        used = f"{state.cost or Decimal(0)} of at most {counted(limits.budget, 'dollar')} are spent"
    return stopped(reason, f"{used}, and what is left is kept for a closing reply.")


def require_tools(config: Configuration, names: Sequence[str] | None) -> None:
    """Refuses as the tools of a step what is no list of names of tools of the agent. Raises `Misuse`."""
    if names is not None and (isinstance(names, (str, bytes)) or not isinstance(names, (Sequence, Set))):
        raise Misuse(f"StepSettings takes tools as a list of names; it was given {names!r:.100}")
    for name in names or ():
        if name not in config.tools:
            known = ", ".join(config.tools) or "none"
            raise Misuse(f"prepare_step offers a tool {name!r:.100}; this agent has {known}")


def _with_choice(
    config: Configuration, state: RunState, event: StepPrepared, chosen: StepSettings, model: Model
) -> StepPrepared:
    require_tools(config, chosen.tools)
    if chosen.instructions is not None and not isinstance(chosen.instructions, str):
        raise Misuse(f"StepSettings takes instructions as a text; it was given {chosen.instructions!r:.100}")
    said: object = chosen.messages
    if said is not None and (
        isinstance(said, str)
        or not isinstance(said, Sequence)
        or not all(isinstance(one, get_args(Message)) for one in said)
    ):
        raise Misuse(f"StepSettings takes messages as a list out of context.messages; it was given {said!r:.100}")
    if chosen.tool_choice is not None and (not isinstance(chosen.tool_choice, str) or not chosen.tool_choice):
        raise Misuse(
            f"StepSettings takes tool_choice as 'auto', 'none', 'required' or a tool's name; it was given "
            f"{chosen.tool_choice!r:.100}"
        )
    if chosen.settings is not None:
        check_settings(chosen.settings)
    tools = None if chosen.tools is None else tuple(chosen.tools)
    choice = event.tool_choice or chosen.tool_choice
    offered = [*(config.tools if tools is None else tools), *_final(config)]
    # A run that began with another choice keeps it, where it can be met.
    own = config.tool_choice if config.tool_choice == state.started.tool_choice else None
    check_tool_choice(choice or own, offered, "prepare_step")
    if chosen.model is not None:
        require_takes_tools(model, offered)
    return replace(
        event,
        model=None if chosen.model is None else model.name,
        instructions=chosen.instructions,
        tools=tools,
        tool_choice=choice,
        settings=chosen.settings,
        messages=None if chosen.messages is None else tuple(rejoined(chosen.messages, state.messages, state.pinned)),
    )


def _final(config: Configuration) -> Sequence[str]:
    return () if config.output is None or config.output.tool is None else (config.output.tool.name,)


def _met(choice: str, offered: Collection[str]) -> str:
    """`choice`, where what is offered can meet it: a tool may be gone since the run began, and then nothing is wanted.

    A provider takes no request that is to call what it does not have.
    """
    if choice == "none" or choice in offered:
        return choice
    return choice if choice == "required" and offered else "auto"


def not_allowed(config: Configuration, state: RunState, names: Iterable[str]) -> Sequence[str]:
    """Those of the tools `names` that no active skill allows; what was shortened can be read in any case.

    It follows from what stands in the journal, so that an agent which takes the run up without the skill is held to it.
    """
    if ACTIVATE not in config.tools and ACTIVATE not in state.started.tools:
        return ()
    withheld = config.skills.withheld(state.messages, state.started.foreign_skills, names)
    return [name for name in withheld if name != READ_RESULT]


def _without(config: Configuration, event: StepPrepared, names: Sequence[str]) -> StepPrepared:
    """`event` with some tools not offered; where none would be left, with all of them turned off."""
    offered = config.tools if event.tools is None else event.tools
    left = tuple(name for name in offered if name not in names)
    return replace(event, tools=left) if left else replace(event, tool_choice="none")


def request_of(config: Configuration, state: RunState, model: Model | None = None) -> ModelRequest:
    """What the model is to be asked in the step under way.

    Args:
        model: who is asked; None for the agent's.

    Raises:
        Misuse: no step is prepared.
    """
    step = state.prepared
    if step is None:
        raise Misuse(f"run {state.run_id} has no step prepared: feed run.prepare(command) first")
    messages: Sequence[Message] = state.messages
    if step.messages is not None:
        messages = [*step.messages, UserMessage(step.note)] if step.note else step.messages
    passing = ""
    # A reply that its provider has paused is gone on with where it stands: nothing may come after it.
    if config.tell_remaining and not (messages and isinstance(messages[-1], AssistantMessage)):
        passing = remaining(state)
    if passing:
        messages = [*messages, UserMessage(passing)]
    if step.instructions is not None:
        messages = instructed(messages, _with_type(step.instructions, config.output))
    elif (told := told_its_way(config, messages)) is not None:
        messages = instructed(messages, told)
    tools = config.specs if step.tools is None else _offered(config, step.tools)
    choice = step.tool_choice or state.started.tool_choice
    if choice == "none" and config.output is not None and config.output.tool is not None:
        # A closing reply gives its answer by the final tool too; some models refuse to be held to one tool.
        tools, choice = (config.output.tool,), "auto"
    return ModelRequest(
        messages,
        tools,
        choice,
        step.settings or state.started.settings,
        None if config.output is None else config.output.schema,
        state.started.run_id,
        step.step,
        int(bool(passing)),
        _usual(config, state, step) if step.landing is not None or step.withheld else None,
        _is_held(state, step),
        _in_words(config, model, tools),
    )


def _with_type(instructions: str, kind: AnswerType | None) -> str:
    """Other instructions for a step, with what the model is told of the type of its answer: that stays what it was."""
    if kind is None or kind.instructions in instructions:
        return instructions
    return f"{instructions}\n\n{kind.instructions}".strip()


def _in_words(config: Configuration, model: Model | None, tools: Collection[ToolSpec]) -> bool:
    """Whether no provider is to hold the reply to the schema of the answer: one that the step chose may not be able to,
    or not beside tools."""
    kind = config.output
    if kind is None or kind.in_words or model is None or model is config.model:
        return kind is not None and kind.in_words
    return profile_of(model).output_mode(bool(tools)) != "native"


def _is_held(state: RunState, step: StepPrepared) -> bool:
    """Whether the length of the step's reply is what limits leave, or what is reckoned with where nobody says one."""
    most = None if step.settings is None else step.settings.max_tokens
    if step.reserve is None or most is None or most != step.reserve.reply:
        return False
    return step.reserve.limit is not None or state.started.settings.max_tokens is None


def _usual(config: Configuration, state: RunState, step: StepPrepared) -> Usual:
    """How the step would ask if the loop had taken nothing away.

    What `prepare_step` leaves out is not in it: of that the model is told nothing.
    """
    tools = config.specs if step.tools is None else _offered(config, {*step.tools, *step.withheld})
    return Usual(tools, state.started.tool_choice)


def _offered(config: Configuration, names: Collection[str]) -> tuple[ToolSpec, ...]:
    final = None if config.output is None else config.output.tool
    return tuple(spec for spec in config.specs if spec.name in names or spec is final)


def remaining(state: RunState) -> str:
    """What is left of a run's limits, in words for the model; empty if it has none of those that it could heed."""
    limits, budget, parts = state.limits, state.limits.budget, []
    if limits.steps is not None:
        parts.append(f"{counted(limits.steps - len(state.steps) - state.sub_steps, 'step')}, this one included")
    if limits.tool_calls is not None:
        parts.append(counted(max(0, limits.tool_calls - state.tool_calls), "tool call"))
    if limits.seconds is not None:
        parts.append(counted(round(max(0.0, limits.seconds - state.elapsed)), "second"))
    if budget is not None:
        parts.append(f"{max(Decimal(0), minus(budget, state.cost or Decimal(0))):.4f} dollars")
    if limits.tokens is not None:
        parts.append(f"{max(0, limits.tokens - state.usage.total_tokens)} tokens")
    return f"(What is left of this task's limits: {', '.join(parts)}.)" if parts else ""
