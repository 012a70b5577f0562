"""Chat Completions: https://developers.openai.com/api/reference/resources/chat. An agent is called like a model.

It has no place for a tool that runs inside, for a person's decision, or for a reply that is taken back. So of the
agent's own tools nothing is told; a run that waits for a person says so in words, and beside them in `treadle`; and
where a reply broke off, the stream says that. All that the agent says is content, a blank line between two replies;
where its answer is typed, the answer alone is.
"""

from collections.abc import Collection, Iterator
from typing import Any, Final

from treadle.drivers.live import WITHDRAWN
from treadle.kernel.messages import Json, Text, ToolCall, Usage, UserMessage
from treadle.result import Pending
from treadle.serve.protocols import moves
from treadle.serve.protocols.moves import Move
from treadle.serve.protocols.openai_caller import (
    NO_USAGE,
    History,
    Posted,
    call_name,
    callers,
    content_of,
    external,
    instructed,
    offered,
    refuse,
    treadle_form,
    usage_form,
    waiting_words,
)
from treadle.serve.protocols.wire import bad, failed, flag_at, list_at, object_at, outcome, said, text_at, unfinished

_HARMLESS: Final[dict[str, Collection[Any]]] = {
    "n": (1,),
    "logprobs": (False,),
    "modalities": (["text"],),
    "audio": (),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "tool_choice": ("none", "auto"),
    "prediction": (),
    "web_search_options": (),
}


def posted(body: Any, externals: Collection[str] = ()) -> Posted:
    """What the body of a request asks for; `externals` are the agent's own tools that callers carry out.

    Raises:
        Refused: it cannot be right, or asks for what an agent does not do.
    """
    post = object_at(body, "the request")
    refuse(post, _HARMLESS)
    tools = tuple([_tool(one, f"request.tools[{i}]") for i, one in enumerate(list_at(post, "tools", "request"))])
    history = History({*externals, *(tool.name for tool in tools)})
    messages = list_at(post, "messages", "request")
    if not messages:
        raise bad("request.messages", "is empty")
    for i, one in enumerate(messages):
        _read(history, object_at(one, f"request.messages[{i}]"), f"request.messages[{i}]")
    last = history.messages[-1] if history.messages else None
    message = last if isinstance(last, UserMessage) else None
    if message is None and not history.results:
        raise bad("request.messages", "must end with what the user says, or with the results of your tools")
    options = object_at(post.get("stream_options") or {}, "request.stream_options")
    wanted = object_at(post.get("response_format") or {"type": "text"}, "request.response_format")
    return Posted(
        text_at(post, "model", "request"),
        tuple(history.messages if message is None else history.messages[:-1]),
        message,
        offered(post, tools, goes_on=message is None),
        history.results,
        stream=flag_at(post, "stream", "request", False),
        usage=flag_at(options, "include_usage", "request.stream_options", False),
        typed=wanted.get("type") != "text",
    )


def _tool(one: Any, where: str) -> Any:
    declared = object_at(one, where)
    if declared.get("type") != "function":
        raise bad(f"{where}.type", f"must be function, and is {declared.get('type')!r:.50}")
    function = object_at(declared.get("function"), f"{where}.function")
    return external(function.get("name"), function.get("description"), function.get("parameters"), f"{where}.function")


def _read(history: History, message: Json, where: str) -> None:
    match message.get("role"):
        case "system" | "developer":
            text = "\n".join([part.text for part in content_of(message, where) if isinstance(part, Text)])
            if text.strip():
                history.said(instructed(text))
        case "user":
            history.said(UserMessage(said(content_of(message, where), where)))
        case "assistant":
            calls = [
                _call(one, f"{where}.tool_calls[{i}]") for i, one in enumerate(list_at(message, "tool_calls", where))
            ]
            # What was refused is said there, as it was in the answer.
            refused = content_of(message, where, "refusal") if not message.get("content") else ()
            history.answered(refused or content_of(message, where), calls, where)
        case "tool":
            text = "\n".join([part.text for part in content_of(message, where) if isinstance(part, Text)])
            history.came(text_at(message, "tool_call_id", where), text, where)
        case other:
            raise bad(f"{where}.role", f"is {other!r:.50}; it must be system, developer, user, assistant or tool")


def _call(one: Any, where: str) -> ToolCall:
    call = object_at(one, where)
    function = object_at(call.get("function"), f"{where}.function")
    name, arguments = text_at(function, "name", where), text_at(function, "arguments", where, "")
    return ToolCall(text_at(call, "id", where), name, arguments)


class Writer:
    """Writes moves as chunks of a completion, and adds them up to a whole one.

    Args:
        run_id: the run.
        model: what the agent was called by.
        created: when the answer began, in Unix seconds.
        before: tokens of the run that an earlier answer told.
        typed: whether the run's answer is typed, and alone is content.
    """

    def __init__(self, run_id: str, model: str, created: float, before: Usage = NO_USAGE, typed: bool = False) -> None:
        self._run_id = run_id
        self._head: Json = {"id": f"chatcmpl-{run_id}", "created": int(created), "model": model}
        self._before, self._typed = before, typed
        self._texts: dict[str, str] = {}
        self._thoughts: dict[str, str] = {}
        self._calls: list[Json] = []
        self._pending: tuple[Pending, ...] = ()
        self._began = False
        self._end: moves.Ended | None = None
        self._finish = "stop"
        self.failure: Json | None = None
        """What is told in place of an answer, where there is none."""

    def write(self, move: Move) -> Iterator[Json]:
        """The chunks that say `move`."""
        match move:
            case moves.Began() if not self._began:
                self._began = True
                yield self._chunk({"role": "assistant", "content": ""})
            case moves.PartBegan(kind="text", id=part_id):
                if any(self._texts.values()):
                    yield from self._content("\n\n")
                self._texts[part_id] = ""
            case moves.PartPiece(kind="text", id=part_id, text=text):
                self._texts[part_id] += text
                yield from self._content(text)
            case moves.PartPiece(id=part_id, text=text):
                self._thoughts[part_id] = self._thoughts.get(part_id, "") + text
                yield self._chunk({"reasoning_content": text})
            case moves.Answered(parts=whole):
                for piece in whole:
                    yield from self.write(piece)
            case moves.Withdrawn(parts=parts):
                if any([self._texts.pop(part, "") for part in parts]):
                    yield from self._content(WITHDRAWN)
                for part in parts:
                    self._thoughts.pop(part, None)
            case moves.Asked(pending=pending):
                self._pending = pending
            case moves.Ended():
                yield from self._ended(move)

    def _content(self, text: str) -> Iterator[Json]:
        if not self._typed:
            yield self._chunk({"content": text})

    def _chunk(self, delta: Json, finish: str | None = None, **more: Any) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice], **more}

    def _ended(self, end: moves.Ended) -> Iterator[Json]:
        how, self._end = outcome(end.stop, self._pending), end
        if how in ("failed", "cancelled", "paused"):
            words = failed(end.failure) if how == "failed" else "The run was cancelled."
            words = unfinished(end.stop) if how == "paused" else words
            code = end.failure[0] if end.failure else "paused" if how == "paused" else end.stop.reason
            self.failure = {"error": {"message": words, "type": "server_error", "param": None, "code": code}}
            yield self.failure
            return
        if self._typed and end.answer:
            self._texts = {"answer": end.answer}
            yield self._chunk({"content": end.answer})
        words = waiting_words(self._run_id, self._pending)
        if words:
            words = f"\n\n{words}" if any(self._texts.values()) else words
            self._texts["waiting"] = words
            yield self._chunk({"content": words})
        self._calls = [*self._asked(), *[_call_form(f"{self._run_id}:{i}", n, a) for i, n, a in end.unanswered]]
        if self._calls:
            yield self._chunk({"tool_calls": [{"index": i, **call} for i, call in enumerate(self._calls)]})
        finish = {"limit": "length", "length": "length", "filtered": "content_filter"}.get(how, "stop")
        self._finish = "tool_calls" if self._calls else finish
        yield self._chunk({}, self._finish, treadle=self._more())

    def _asked(self) -> list[Json]:
        calls = [one for one in self._pending if callers(one)]
        return [_call_form(call_name(self._run_id, one), one.tool, one.arguments_json) for one in calls]

    def _more(self) -> Json:
        return treadle_form(self._run_id, self._pending, None if self._end is None else self._end.stop)

    @property
    def has_answer(self) -> bool:
        """Whether all of an answer is written, and not what is told in place of one."""
        return self._end is not None and self.failure is None

    def usage(self) -> Json:
        """The chunk that ends a stream with the tokens of this answer."""
        return {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": self._used()}

    def _used(self) -> Json:
        return usage_form(Usage() if self._end is None else self._end.usage - self._before)

    def whole(self) -> Json:
        """The whole answer, once all moves are written."""
        texts = [text for name, text in self._texts.items() if text and name != "waiting"]
        content = "\n\n".join(texts) + self._texts.get("waiting", "")
        message: Json = {"role": "assistant", "content": content or None, "refusal": None}
        if self._thoughts:
            message["reasoning_content"] = "\n\n".join(self._thoughts.values())
        if self._calls:
            message["tool_calls"] = self._calls
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish}
        more = {"usage": self._used(), "treadle": self._more()}
        return {**self._head, "object": "chat.completion", "choices": [choice], **more}


def _call_form(name: str, tool: str, arguments: str) -> Json:
    return {"id": name, "type": "function", "function": {"name": tool, "arguments": arguments or "{}"}}
