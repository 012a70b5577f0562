"""Agent: the configuration of a loop, with the ways to run it.

What it does with runs stands in two files of its own: those that are yet to begin in `new_runs.py`, those that have
begun in `recorded_runs.py`.
"""

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from types import UnionType
from typing import Any, Literal, Never, Self, _SpecialForm

from treadle.context.policies import ContextPolicy
from treadle.drivers.approvals import ApprovalRule
from treadle.drivers.assembly import Tools, retries_of, stocked
from treadle.drivers.below import Below
from treadle.drivers.calls.change import OnToolCall
from treadle.drivers.calls.reaction import OnToolResult
from treadle.drivers.checks import ceiling, model_of, refuse_unknown, rules_in
from treadle.drivers.configuration import Configuration, Errors, Instructions, OnAnswer, PrepareStepFunction, Retries
from treadle.drivers.hooks import hooks_in
from treadle.drivers.purse.drawing import Budgets
from treadle.drivers.watching import Observer
from treadle.journal import Journal
from treadle.journal.ones_own import check_journal
from treadle.judging.conditions import StopWhen, condition
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import ModelSettings
from treadle.kernel.stop import Limits, OnLimit
from treadle.misnamed import OF_AGENTS, Misnamed
from treadle.models.port import Model
from treadle.models.profile import OutputMode
from treadle.new_runs import NewRuns
from treadle.recorded_runs import Deps, RecordedRuns
from treadle.result import Output
from treadle.timetravel.forking import with_model
from treadle.tools import Skill, SkillRegistry, Tool
from treadle.tools.external import agent_tool

TypeOf = type[Output] | UnionType | _SpecialForm
"""The type of an answer. A special form is `Literal[…]` and the like; of these and of unions not every checker can tell
the type."""


class Agent(NewRuns[Deps, Output], RecordedRuns[Deps, Output], Misnamed):
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

    _other_names = OF_AGENTS

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
        output: TypeOf[Output] | None = None,
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
        enough = None if stop_when is None else condition(stop_when)
        given = Configuration(
            model=model_of(model),
            name=name or "agent",
            instructions=instructions,
            limits=ceiling(limits, enough),
            stop_when=enough,
            prepare_step=hooks_in("prepare_step", prepare_step, "a function of a StepContext", None),
            tool_choice=tool_choice,
            settings=settings or ModelSettings(),
            on_limit=on_limit,
            journal=journal,
            retries=retries_of(retries),
            on_interrupted=on_interrupted,
            approvals=rules_in(approvals),
            on_tool_call=hooks_in("on_tool_call", on_tool_call, "a function of a call", None),
            on_tool_result=hooks_in("on_tool_result", on_tool_result, "a function of a call and a result", None, None),
            on_answer=hooks_in("on_answer", on_answer, "a function of an answer and its StepContext", None, None),
            tell_remaining=tell_remaining,
            watch=watch_progress,
            eager=eager,
            errors=errors,
            deps_type=deps_type,
            telemetry=telemetry,
            named=isinstance(model, str),
        )
        self._stock = stocked(given, tools, skills, context, output, output_mode, budget)

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
        """This agent with another journal, and all else as it is.

        Raises:
            Misuse: it is no journal, such as the path of one.
        """
        if journal is not None:
            check_journal("with_journal", journal)
        return self._with(lambda config: dataclasses.replace(config, journal=journal))

    def with_model(self, model: str | Model) -> Self:
        """This agent with another model, and all else as it is.

        Raises:
            Misuse: it is no model, or cannot be used with what the agent has, such as its limits in dollars.
        """
        return self._with(lambda config: with_model(config, model))

    def _with(self, change: Callable[[Configuration], Configuration]) -> Self:
        other = copy.copy(self)
        other._stock = self._stock.changed(change)
        return other

    def as_tool(
        self,
        name: str | None = None,
        description: str | None = None,
        *,
        needs_approval: bool = False,
        **unknown: Never,
    ) -> Tool:
        """This agent as a tool of another: it is given a task, and its answer is the result.

        Its runs draw on the limits of the run that called it (steps, tool calls, seconds, dollars, tokens), are kept in
        that run's journal, and are taken up again with it. What they wait for, that run waits for, and its rules hold
        for them too.

        Args:
            name: the tool's name; by default the agent's.
            description: what the model is told it is for; by default the agent's instructions, if they are a text.
            needs_approval: whether a person must agree before it is called.

        Raises:
            Misuse: it takes no such argument; says what was probably meant.
        """
        refuse_unknown(self.as_tool, unknown, type(self))
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


def handoff(agent: Agent[Any, Any], name: str | None = None, description: str | None = None, **unknown: Never) -> Tool:
    """A tool that passes the conversation on to `agent`, whose answer is then the answer of the run.

    Args:
        agent: who goes on. It sees what was said so far, under its own instructions.
        name: the tool's name; by default "transfer_to_" and the agent's.
        description: what the model is told it is for; by default the agent's instructions, if they are a text.

    Raises:
        Misuse: it is no agent, or there is no such argument.
    """
    refuse_unknown(handoff, unknown, Agent)
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
