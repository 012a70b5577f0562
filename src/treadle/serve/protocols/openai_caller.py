"""What callers of both of OpenAI's protocols give: a model's name, tools of their own, results, what was said before.

The agent is called like a model, and is not one: how it generates, its instructions and its own tools are its own. So a
request's `temperature`, `max_tokens` and the like do not count; a system message is what the caller says, at a user's
authority and marked as such; and what would change the form of the answer is refused rather than left out. What was
said before is the caller's word, as with any model, but a result counts only for a tool that the caller carries out.

A call that the caller is to carry out is named by its run as well: `RUN:CALL`. Its result goes on with that run, of
which the server knows all else.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from treadle.kernel.messages import (
    AssistantMessage,
    Content,
    Json,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from treadle.kernel.stop import Stop
from treadle.result import Pending
from treadle.serve.protocols.wire import (
    Decisions,
    Verdict,
    approval_id,
    bad,
    list_at,
    media,
    object_at,
    outcome,
    text_at,
)
from treadle.serve.refused import Refused
from treadle.tools import BadTool, Tool, external_tool

NO_USAGE: Final = Usage()
_TYPES: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    409: "conflict_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
}


class Posted(Struct, frozen=True):
    """What a request asks for.

    Attributes:
        model: the name of the agent.
        history: what was said before the last message of the caller's.
        message: what the caller said last; None if a call's results come last.
        tools: those that the caller carries out.
        results: by call id, the results that come last.
        verdicts: by the id of an approval, what was decided.
        stream: whether the answer is wanted as it comes.
        usage: whether the stream ends with the tokens.
        before: the response that this goes on with, if one is named.
        conversation: the conversation that this goes on with, if one is named.
        typed: whether the answer is to be JSON.
    """

    model: str
    history: tuple[Message, ...]
    message: UserMessage | None
    tools: tuple[Tool, ...] = ()
    results: dict[str, str] = {}
    verdicts: dict[str, Verdict] = {}
    stream: bool = False
    usage: bool = False
    before: str = ""
    conversation: str = ""
    typed: bool = False


def error_form(error: Refused) -> Json:
    """A refusal as OpenAI's clients read it."""
    kind = _TYPES.get(error.status, "server_error")
    return {"error": {"message": error.words, "type": kind, "param": None, "code": error.kind}}


def no_model(message: str) -> Json:
    """The refusal of a model that there is not."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": "model", "code": "model_not_found"}}


def models_form(agents: Iterable[str]) -> Json:
    """The agents, as a list of models."""
    return {"object": "list", "data": [model_form(name) for name in agents]}


def model_form(agent: str) -> Json:
    """An agent, as a model."""
    return {"id": agent, "object": "model", "created": 0, "owned_by": "treadle"}


def call_name(run_id: str, pending: Pending) -> str:
    """What a call that the caller is to carry out is called."""
    return f"{run_id}:{pending.plain}"


def callers(pending: Pending) -> bool:
    """Whether a call is for the caller to carry out: one of a tool without a function, with nothing asked about it."""
    return pending.kind == "result" and not pending.question and not pending.run_id


def run_of(call_ids: Iterable[str]) -> str:
    """The run whose calls these are; empty if they are of none, or of several."""
    runs = {name.partition(":")[0] if ":" in name else "" for name in call_ids}
    return runs.pop() if len(runs) == 1 else ""


def decisions(posted: Posted, run_id: str, pending: Sequence[Pending]) -> Decisions:
    """What of a request decides on the calls that run `run_id` waits for."""
    results = {one.key: posted.results[name] for one in pending if (name := call_name(run_id, one)) in posted.results}
    verdicts = {
        one.key: posted.verdicts[name] for one in pending if (name := approval_id(run_id, one)) in posted.verdicts
    }
    return Decisions.of(pending, verdicts, {key: (text, False) for key, text in results.items()})


def together(posted: Posted) -> UserMessage:
    """What a caller said, with what came before it in the same request, to a run that goes on.

    Raises:
        Refused: there is nothing, or somebody else said some of it.
    """
    said = [*posted.history, *([] if posted.message is None else [posted.message])]
    if not said or not all(isinstance(one, UserMessage) for one in said):
        raise bad("request.input", "must be what the user says, where it goes on with what the server has")
    if len(said) == 1 and isinstance(said[0], UserMessage):
        return said[0]
    parts: list[Any] = []
    for one in said:
        if isinstance(one, UserMessage):
            parts += [Text(one.content)] if isinstance(one.content, str) else one.content
    return UserMessage(tuple(parts))


def waiting_words(run_id: str, pending: Sequence[Pending]) -> str:
    """What a person is told of calls that wait for one, where the protocol has no form for it."""
    asked = [str(one) for one in pending if not callers(one)]
    if not asked:
        return ""
    return "\n".join([f"Run {run_id} waits for a person:", *asked])


def treadle_form(run_id: str, pending: Sequence[Pending], stop: Stop | None) -> Json:
    """What the protocol has no place for, under a name of its own; `stop` is None before there is any."""
    waits = [one.to_dict() for one in pending if not callers(one)]
    why: Json = {}
    if stop is not None and outcome(stop, pending) in ("limit", "length", "filtered", "paused"):
        why = {"detail": stop.detail, "advice": stop.advice}
    return {"run": run_id, "stop": stop.reason if stop else "", **why, **({"pending": waits} if waits else {})}


def refuse(post: Json, names: Mapping[str, Collection[Any]]) -> None:
    """Refuses what would change the form of the answer; `names` says which values of a field change nothing."""
    for name, harmless in names.items():
        value = post.get(name)
        if value is not None and value not in harmless:
            raise bad(f"request.{name}", f"is {str(value)[:50]}, which an agent does not take", "Leave it out.")


def offered(post: Json, tools: tuple[Tool, ...], *, goes_on: bool) -> tuple[Tool, ...]:
    """Those of the caller's tools that a request offers; with `goes_on` its results go on with a run that has them."""
    if post.get("tool_choice") != "none":
        return tools
    if goes_on and tools:
        why = "is 'none', and the results go on with a run that has your tools"
        raise bad("request.tool_choice", why, "Leave it out, or say something after the results.")
    return ()


def external(name: Any, description: Any, schema: Any, where: str) -> Tool:
    """A tool that the caller declared."""
    declared: Json = {"name": name, "description": description}
    schema = object_at(schema or {"type": "object", "properties": {}}, f"{where}.parameters")
    try:
        return external_tool(
            text_at(declared, "name", where), text_at(declared, "description", where, ""), schema, True
        )
    except BadTool as error:
        raise bad(where, f"cannot be a tool: {error}") from error


def instructed(text: str) -> UserMessage:
    """What a caller gave as a system's words: said, and not obeyed as the agent's own instructions are."""
    return UserMessage(f"The application that asks says:\n{text}")


def content_of(message: Json, where: str, name: str = "content") -> tuple[Content, ...]:
    """The text, images and files of a message, in either protocol's form."""
    content = message.get(name)
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    return tuple([_part(one, f"{where}.{name}[{i}]") for i, one in enumerate(list_at(message, name, where))])


def _part(one: Any, where: str) -> Content:
    part = object_at(one, where)
    match part.get("type"):
        case "text" | "input_text" | "output_text":
            return Text(text_at(part, "text", where))
        case "refusal":
            return Text(text_at(part, "refusal", where))
        case "image_url":
            image = object_at(part.get("image_url"), f"{where}.image_url")
            return media(
                text_at(image, "url", f"{where}.image_url"), _image(image.get("url")), "", f"{where}.image_url"
            )
        case "input_image":
            link = text_at(part, "image_url", where)
            return media(link, _image(link), "", f"{where}.image_url")
        case "file" | "input_file" as kind:
            file = object_at(part.get("file"), f"{where}.file") if kind == "file" else part
            url = file.get("file_url") or file.get("file_data")
            if not isinstance(url, str):
                raise bad(where, "must bring the file as file_data or file_url")
            usual = None if url.startswith("data:") else "application/pdf"
            return media(url, usual, text_at(file, "filename", where, ""), where)
        case other:
            raise bad(f"{where}.type", f"is {other!r:.50}, which an agent does not take")


def _image(url: Any) -> str | None:
    """Of a data URL it says itself what it is."""
    return None if isinstance(url, str) and url.startswith("data:") else "image/png"


class History:
    """What was said before, put together: valid to continue from, whatever was posted."""

    def __init__(self, tools: Iterable[str]) -> None:
        self._tools = frozenset(tools)
        self.messages: list[Message] = []
        self._open: dict[str, ToolCall] = {}
        self.results: dict[str, str] = {}
        """Those that come last, with nothing said after them."""

    def said(self, message: UserMessage) -> None:
        """The caller, or the application, said something."""
        self.messages.append(message)
        self.results = {}

    def answered(self, parts: Iterable[Content], calls: Sequence[ToolCall], where: str) -> None:
        """The agent said something, or called tools of the caller's."""
        for call in calls:
            if call.name not in self._tools:
                raise bad(where, f"calls {call.name!r:.100}, which is no tool of yours", "Declare it in tools.")
        texts = [Text(part.text) for part in parts if isinstance(part, Text) and part.text]
        last = self.messages[-1] if self.messages else None
        if calls and isinstance(last, AssistantMessage) and not (set(self._open) & set(self.results)):
            # Calls of one reply may be posted one by one.
            self.messages[-1] = AssistantMessage((*last.content, *texts, *calls))
            self._open |= {call.id: call for call in calls}
            return
        if texts or calls:
            self.messages.append(AssistantMessage((*texts, *calls)))
            self._open, self.results = {call.id: call for call in calls}, {}

    def came(self, call_id: str, text: str, where: str) -> None:
        """What came of a call."""
        call = self._open.get(call_id)
        if call is None:
            raise bad(where, f"is the result of {call_id!r:.100}, which no call before it is called")
        if call_id in self.results:
            raise bad(where, f"is a second result of {call_id!r:.100}")
        self.messages.append(ToolMessage(call.id, call.name, text))
        self.results[call_id] = text


def usage_form(usage: Usage) -> Json:
    """Tokens, as chat completions tell them."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
