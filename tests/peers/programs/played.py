"""Models that play a script, for the programs of pydantic-ai beside this file."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import ModelMessage, ModelResponse, RequestUsage, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel


def calls_then(call: tuple[str, dict[str, Any]], text: str) -> FunctionModel:
    """A model that calls a tool, and says `text` once it has seen the result."""

    async def streamed(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        if _answered(messages):
            yield text
        else:
            yield {0: DeltaToolCall(name=call[0], json_args=call[1], tool_call_id="call_0")}

    def whole(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart(text)] if _answered(messages) else [ToolCallPart(*call, tool_call_id="call_0")])

    return FunctionModel(whole, stream_function=streamed)


def plays(*turns: Any) -> FunctionModel:
    """A model that gives one turn after the other: a text, or the call of a tool."""
    left = list(turns)

    def whole(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = left.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return ModelResponse([TextPart(turn)] if isinstance(turn, str) else [ToolCallPart(*turn)])

    return FunctionModel(whole)


def _answered(messages: list[ModelMessage]) -> bool:
    return any(part.part_kind == "tool-return" for message in messages for part in message.parts)


def answers(text: str) -> FunctionModel:
    """A model that takes 50 tokens for each answer, after a moment."""

    async def whole(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await asyncio.sleep(0.01)
        return ModelResponse([TextPart(text)], usage=RequestUsage(input_tokens=40, output_tokens=10))

    return FunctionModel(whole)


class Busy(Exception):
    """A provider that is too busy for the moment."""


def by_results(turns: list[Any]) -> FunctionModel:
    """A model that gives the turn that comes after as many results as it has seen."""

    def whole(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = turns[sum(part.part_kind == "tool-return" for message in messages for part in message.parts)]
        return ModelResponse([TextPart(turn)] if isinstance(turn, str) else [ToolCallPart(*turn)])

    return FunctionModel(whole)
