"""Responses: https://developers.openai.com/api/reference/resources/responses. An agent is called like a model.

The agent's own tools are told as calls of a remote MCP server of the agent's name, which is the protocol's form for
tools that run inside, and a call that a person must allow is its `mcp_approval_request`. Calls for the caller are
`function_call`. `previous_response_id` goes on with a response's run, and `conversation` with a conversation.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from treadle.kernel.messages import Json, Usage
from treadle.result import Pending
from treadle.serve.protocols import moves
from treadle.serve.protocols.moves import Move
from treadle.serve.protocols.openai_caller import (
    NO_USAGE,
    Posted,
    call_name,
    callers,
    treadle_form,
    waiting_words,
)
from treadle.serve.protocols.openai_responses_post import APPROVAL, response_id
from treadle.serve.protocols.wire import approval_id, failed, outcome, text_result, unfinished


class Writer:
    """Writes moves as events of a response, and keeps the whole of it.

    Args:
        run_id: the run.
        number: the number of the event after which this response begins.
        posted: the request that this answers.
        created: when the answer began, in Unix seconds.
        externals: the agent's own tools that callers carry out.
        before: tokens of the run that an earlier response told.
        typed: whether the run's answer is typed, and alone is a message.
    """

    def __init__(
        self,
        run_id: str,
        number: int,
        posted: Posted,
        created: float,
        externals: Iterable[str] = (),
        before: Usage = NO_USAGE,
        typed: bool = False,
    ) -> None:
        self._run_id, self._posted, self._before, self._typed = run_id, posted, before, typed
        self._callers = {*externals, *(tool.name for tool in posted.tools)}
        self._output: list[Json] = []
        self._places: dict[str, int] = {}
        self._count = 0
        self._pending: tuple[Pending, ...] = ()
        self._whole: Json = {
            "id": response_id(run_id, number),
            "object": "response",
            "created_at": int(created),
            "status": "in_progress",
            "model": posted.model,
            "output": [],
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "previous_response_id": posted.before or None,
            "temperature": None,
            "top_p": None,
            "tool_choice": "auto",
            "tools": [_tool_form(tool) for tool in posted.tools],
            "usage": None,
        }

    def open(self) -> Iterator[Json]:
        """The events that a stream begins with."""
        yield self._event("response.created", response=dict(self._whole))
        yield self._event("response.in_progress", response=dict(self._whole))

    def write(self, move: Move) -> Iterator[Json]:
        """The events that say `move`."""
        match move:
            case moves.PartBegan(kind=kind, id=part_id) if kind == "thinking" or not self._typed:
                yield from self._part_began(kind, part_id)
            case moves.PartPiece(id=part_id, text=text) if part_id in self._places:
                yield from self._piece(part_id, text)
            case moves.PartEnded(id=part_id) if part_id in self._places:
                yield from self._part_ended(part_id)
            case moves.CallStarted(id=call_id, name=name, arguments=arguments):
                yield from self._call_began(call_id, name, arguments)
            case moves.CallReturned(id=call_id, name=name) if name not in self._callers:
                yield from self._call_began(call_id, name, move.arguments)
                yield from self._call_ended(call_id, text_result(move.content), move.is_error)
            case moves.CallRefused(returned=moves.CallReturned() as returned):
                yield from self.write(returned)
            case moves.CallRefused(id=call_id, name=name, reason=reason):
                yield from self._call_began(call_id, name, move.arguments)
                yield from self._call_ended(call_id, f"not approved: {reason}" if reason else "not approved", True)
            case moves.Answered(parts=whole):
                for piece in whole:
                    yield from self.write(piece)
            case moves.Withdrawn(parts=parts):
                for part in parts:
                    if part in self._places:
                        # What a client adds up of the whole response has nothing of it.
                        item = self._output[self._places[part]]
                        item |= {"status": "incomplete", "summary" if item["type"] == "reasoning" else "content": []}
            case moves.Asked(pending=pending):
                self._pending = pending
            case moves.Ended():
                yield from self._ended(move)

    def _event(self, kind: str, **fields: Any) -> Json:
        self._count += 1
        return {"type": kind, "sequence_number": self._count - 1, **fields}

    def _added(self, name: str, item: Json) -> Json:
        self._places[name] = len(self._output)
        self._output.append(item)
        return self._event("response.output_item.added", output_index=self._places[name], item=_copy(item))

    def _at(self, name: str) -> Json:
        return {"item_id": self._output[self._places[name]]["id"], "output_index": self._places[name]}

    def _done(self, name: str) -> Json:
        item = self._output[self._places[name]]
        return self._event("response.output_item.done", output_index=self._places[name], item=_copy(item))

    def _part_began(self, kind: str, part_id: str) -> Iterator[Json]:
        name = f"{self._run_id}_{part_id}"
        if kind == "thinking":
            yield self._added(part_id, {"id": f"rs_{name}", "type": "reasoning", "summary": []})
            part = {"type": "summary_text", "text": ""}
            yield self._event("response.reasoning_summary_part.added", **self._at(part_id), summary_index=0, part=part)
            self._output[-1]["summary"] = [dict(part)]
            return
        message = {"id": f"msg_{name}", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        yield self._added(part_id, message)
        text: Json = {"type": "output_text", "text": "", "annotations": []}
        yield self._event("response.content_part.added", **self._at(part_id), content_index=0, part=dict(text))
        self._output[-1]["content"] = [text]

    def _piece(self, part_id: str, text: str) -> Iterator[Json]:
        item, at = self._output[self._places[part_id]], self._at(part_id)
        if item["type"] == "reasoning":
            item["summary"][0]["text"] += text
            yield self._event("response.reasoning_summary_text.delta", **at, summary_index=0, delta=text)
        else:
            item["content"][0]["text"] += text
            yield self._event("response.output_text.delta", **at, content_index=0, delta=text, logprobs=[])

    def _part_ended(self, part_id: str) -> Iterator[Json]:
        item, at = self._output[self._places[part_id]], self._at(part_id)
        if item["type"] == "reasoning":
            part = item["summary"][0]
            yield self._event("response.reasoning_summary_text.done", **at, summary_index=0, text=part["text"])
            yield self._event("response.reasoning_summary_part.done", **at, summary_index=0, part=dict(part))
        else:
            item["status"], part = "completed", item["content"][0]
            text = part["text"]
            yield self._event("response.output_text.done", **at, content_index=0, text=text, logprobs=[])
            yield self._event("response.content_part.done", **at, content_index=0, part=dict(part))
        yield self._done(part_id)

    def _call_began(self, call_id: str, name: str, arguments: str) -> Iterator[Json]:
        if call_id in self._places:
            return
        item: Json = {"id": f"mcp_{self._run_id}_{call_id}", "type": "mcp_call", "server_label": self._posted.model}
        item |= {"name": name, "arguments": arguments or "{}", "status": "in_progress", "output": None, "error": None}
        yield self._added(call_id, item)
        at = self._at(call_id)
        yield self._event("response.mcp_call.in_progress", **at)
        yield self._event("response.mcp_call_arguments.done", **at, arguments=item["arguments"])

    def _call_ended(self, call_id: str, text: str, is_error: bool) -> Iterator[Json]:
        item = self._output[self._places[call_id]]
        if is_error:
            item |= {"status": "failed", "error": {"type": "mcp_tool_execution_error", "content": text}}
        else:
            item |= {"status": "completed", "output": text}
        kind = "failed" if is_error else "completed"
        yield self._event(f"response.mcp_call.{kind}", **self._at(call_id))
        yield self._done(call_id)

    def _ended(self, end: moves.Ended) -> Iterator[Json]:
        how = outcome(end.stop, self._pending)
        if self._typed and end.answer and how not in ("failed", "cancelled", "paused"):
            yield from self._says("answer", end.answer)
        yield from self._asks(end)
        for item in self._output:
            if item.get("status") == "in_progress":
                item["status"] = "incomplete"
        used, treadle = end.usage - self._before, treadle_form(self._run_id, self._pending, end.stop)
        self._whole |= {"output": self._output, "usage": _usage_form(used), "treadle": treadle}
        status: str = {"failed": "failed", "paused": "failed", "cancelled": "cancelled"}.get(how, "completed")
        if how in ("limit", "length", "filtered"):
            status = "incomplete"
            reason = "content_filter" if how == "filtered" else "max_output_tokens"
            self._whole["incomplete_details"] = {"reason": reason}
        if how == "failed":
            self._whole["error"] = {"code": "server_error", "message": failed(end.failure)}
        elif how == "paused":
            self._whole["error"] = {"code": "server_error", "message": unfinished(end.stop)}
        self._whole["status"] = status
        kind = {"cancelled": "failed"}.get(status, status)
        yield self._event(f"response.{kind}", response=self._whole)

    def _says(self, name: str, text: str) -> Iterator[Json]:
        yield from self._part_began("text", name)
        yield from self._piece(name, text)
        yield from self._part_ended(name)

    def _asks(self, end: moves.Ended) -> Iterator[Json]:
        for one in self._pending:
            if callers(one):
                yield from self._function_call(call_name(self._run_id, one), one.tool, one.arguments_json)
            elif one.kind != "result":
                name = f"{APPROVAL}{approval_id(self._run_id, one)}"
                item = {"id": name, "type": "mcp_approval_request", "server_label": self._posted.model}
                yield self._added(name, {**item, "name": one.tool, "arguments": one.arguments_json})
                yield self._done(name)
        words = waiting_words(self._run_id, [one for one in self._pending if one.kind == "result"])
        if words:
            yield from self._says("waiting", words)
        for call_id, tool, arguments in end.unanswered:
            yield from self._function_call(f"{self._run_id}:{call_id}", tool, arguments)

    def _function_call(self, name: str, tool: str, arguments: str) -> Iterator[Json]:
        item = {"id": f"fc_{name}", "type": "function_call", "call_id": name, "name": tool, "arguments": ""}
        yield self._added(name, {**item, "status": "in_progress"})
        text, at = arguments or "{}", self._at(name)
        yield self._event("response.function_call_arguments.delta", **at, delta=text)
        yield self._event("response.function_call_arguments.done", **at, arguments=text, name=tool)
        self._output[-1] |= {"arguments": text, "status": "completed"}
        yield self._done(name)

    def whole(self) -> Json:
        """The whole response, once all moves are written."""
        return self._whole


def _copy(item: Json) -> Json:
    """`item` as it is now; it grows."""
    return {name: [dict(one) for one in value] if isinstance(value, list) else value for name, value in item.items()}


def _tool_form(tool: Any) -> Json:
    spec = tool.spec
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.input_schema,
        "strict": False,
    }


def _usage_form(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }
