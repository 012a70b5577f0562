"""Veil: what of a run a user is shown who may not see its inside: not what the agent was told, nor the words of
providers and exceptions, which are for whoever runs it. Pure; numbers, kinds and order of events stay as they are.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace as dressed
from typing import Final

from msgspec.structs import replace

from treadle.drivers.below import Below
from treadle.drivers.configuration import Configuration
from treadle.drivers.watching import RunEvent, SubRunEvent
from treadle.journal.info import RunInfo
from treadle.kernel.events import (
    ContextEdited,
    ErrorInfo,
    Event,
    Happened,
    ModelFailed,
    ModelReplied,
    ResultAwaited,
    RunFinished,
    RunForked,
    RunPaused,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolsListed,
)
from treadle.kernel.messages import ListedTool, Message, SystemMessage
from treadle.kernel.stop import Stop
from treadle.tools.tool import Tool

WORDS: Final = "the model could not be asked"
"""What stands in the place of a provider's words."""

NOT_SHOWN: Final = "(not shown)"
"""What stands in the place of the instructions, of what a tool is given back with an answer, and of what a server says
of its tools. Something has to: an edit of the context names the messages that it replaces by their places, only a call
that is given something back is taken up by an answer, and no tool is made without a description; whoever folds the
events refuses what does not fit."""

_NO_SUMMARY: Final = re.compile(r"(no summary: [a-z_]+): .*", re.DOTALL)
"""Why there is no summary: the kind of what went wrong, and what the provider said."""

_ONE_WORD: Final = re.compile(r"[\w.-]{1,60}(?=:|$)")
"""Some providers say more behind a colon."""


def veiled(event: Event) -> Event:
    """The event without what is for whoever runs the agent."""
    match event:
        case RunStarted():
            return replace(event, messages=_untold(event.messages))
        case StepPrepared():
            messages = None if event.messages is None else _untold(event.messages)
            return replace(event, messages=messages, instructions=None)
        case RunForked():
            return replace(event, instructions=event.instructions and NOT_SHOWN)
        case ModelFailed():
            return replace(event, error=_error(event.error))
        case ModelReplied():
            return replace(event, finish_detail=_word(event.finish_detail))
        case ContextEdited(detail=detail):
            return replace(event, detail=_NO_SUMMARY.sub(r"\1", detail))
        case ToolFinished():
            return replace(event, raised="")
        case ResultAwaited():
            return replace(event, again=event.again and NOT_SHOWN)
        case ToolsListed(listed=tools):
            return replace(event, listed=tuple(map(_named, tools)))
        case RunPaused():
            return replace(event, stop=veiled_stop(event.stop))
        case RunFinished(stop=stop, decision=decision):
            if decision is not None and stop.reason == "model_error":
                decision = replace(decision, why=WORDS)
            return replace(event, stop=veiled_stop(stop), decision=decision)
        case _:
            return event


def veiled_piece(event: RunEvent) -> RunEvent | None:
    """What is shown live, likewise; None for what is not shown at all."""
    if isinstance(event, SubRunEvent):
        inner = veiled_piece(event.event)
        return None if inner is None else replace(event, event=inner)
    return veiled(event) if isinstance(event, Happened) else event


def veiled_stop(stop: Stop) -> Stop:
    """Why a run ended, without the words of a provider."""
    match stop.reason:
        case "model_error":
            return replace(stop, detail=WORDS)
        case "content_filter" | "refusal" | "length":
            return replace(stop, detail=_word(stop.detail))
        case _:
            return stop


def veiled_line(line: RunInfo) -> RunInfo:
    """A run in one line, likewise."""
    return line if line.stop is None else replace(line, stop=veiled_stop(line.stop))


def veiled_tools(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """An agent's tools, without the instructions of agents among them: these describe them where nothing else does."""
    return {name: _undescribed(one) for name, one in tools.items()}


def veiled_agent(config: Configuration) -> Configuration:
    """An agent, as far as it is shown beside a run: what it tells a model of its tools likewise."""
    tools = veiled_tools(config.tools)
    specs = [
        replace(spec, description=tools[spec.name].description) if spec.name in tools else spec for spec in config.specs
    ]
    return dressed(config, tools=tools, specs=tuple(specs))


def _undescribed(tool: Tool) -> Tool:
    told = tool.agent.config.instructions if isinstance(tool.agent, Below) else None
    if not isinstance(told, str) or not told or not tool.description.endswith(told):
        return tool
    return replace(tool, spec=replace(tool.spec, description=tool.description.removesuffix(told) + NOT_SHOWN))


def _named(tool: ListedTool) -> ListedTool:
    """A tool of a server without what the server says of it."""
    shown, takes = (tool.name, tool.server, tool.remote, NOT_SHOWN), {"type": "object"}
    return ListedTool(*shown, takes, effect=tool.effect, says_effect=tool.says_effect)


def _word(detail: str) -> str:
    """The word for how a reply ended, without what its provider says of it; empty if it is no single word."""
    found = _ONE_WORD.match(detail)
    return "" if found is None else found[0]


def _error(error: ErrorInfo) -> ErrorInfo:
    return replace(error, message=WORDS, request_id="")


def _untold(messages: Iterable[Message]) -> tuple[Message, ...]:
    hidden = SystemMessage(NOT_SHOWN)
    return tuple([hidden if isinstance(message, SystemMessage) else message for message in messages])
