"""What an AG-UI client posts: https://docs.ag-ui.com/concepts/agents.

It posts the whole thread each time, its own copy of it. Of that count what the person said last, results of tools that
the client declared and that the run waits for, and answers to interrupts, each under an id that names the run, the call
and a fingerprint of its arguments.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from treadle.kernel.messages import Content, Json, Text, UserMessage
from treadle.result import Pending
from treadle.serve.protocols.wire import (
    Decisions,
    Verdict,
    approval_id,
    bad,
    decide,
    list_at,
    media,
    name_of,
    object_at,
    said,
    text_at,
)
from treadle.tools import BadTool, Tool, external_tool

PROTOCOL: Final = "1.0"

ANSWER: Final[Json] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string", "description": "what the model is told, where it is not approved"},
        "arguments": {"type": "object", "description": "in place of the call's own"},
    },
    "required": ["approved"],
}
"""What the payload that resolves an approval looks like; `true` and `false` will do."""

AGAIN: Final[Json] = {**ANSWER, "properties": {k: v for k, v in ANSWER["properties"].items() if k != "arguments"}}
"""Likewise of a call that may have been done, and runs again as it was."""


class Posted(Struct, frozen=True):
    """What a post asks for.

    Attributes:
        thread: the id of the thread, which names the conversation.
        run: the client's own id for this run.
        message: what the person said last; None if they said nothing new.
        tools: those that the client carries out.
        results: by call id, as it was told to the client: what came of it there, and whether it is an error.
        verdicts: by interrupt id: what resolves it; None for one that was abandoned.
        state: the client's state; None if it is no object.
        messages: the thread as the client has it.
    """

    thread: str
    run: str
    message: UserMessage | None
    tools: tuple[Tool, ...]
    results: dict[str, tuple[Any, bool]]
    verdicts: dict[str, Any]
    state: Json | None
    messages: tuple[Json, ...]


def posted(body: Any) -> Posted:
    """What the body of a post asks for.

    Raises:
        Refused: it is no `RunAgentInput`.
    """
    post = object_at(body, "the request")
    version = text_at(post, "protocolVersion", "request", PROTOCOL)
    if version.partition(".")[0] != "1":
        raise bad("request.protocolVersion", f"is {version!r:.50}; this server speaks {PROTOCOL}")
    names = [text_at(post, name, "request") for name in ("threadId", "runId")]
    if not all(name.strip() for name in names):
        raise bad("request.threadId and runId", "must not be empty")
    messages = [object_at(one, f"request.messages[{i}]") for i, one in enumerate(list_at(post, "messages", "request"))]
    for i, one in enumerate(messages):
        for call in list_at(one, "toolCalls", f"request.messages[{i}]"):
            text_at(object_at(call, f"request.messages[{i}].toolCalls"), "id", f"request.messages[{i}].toolCalls")
    verdicts = dict[str, Any]()
    for i, one in enumerate(list_at(post, "resume", "request")):
        entry, at = object_at(one, f"request.resume[{i}]"), f"request.resume[{i}]"
        status = text_at(entry, "status", at)
        if status not in ("resolved", "cancelled"):
            raise bad(f"{at}.status", f"must be resolved or cancelled, and is {status!r:.50}")
        if status == "resolved" and "payload" not in entry:
            # JSON leaves out what is `undefined`: a form that gave nothing has approved nothing.
            raise bad(f"{at}.payload", "is missing: say true or false to an approval, and to a question its answer")
        payload = None if status == "cancelled" else entry["payload"]
        decide(verdicts, text_at(entry, "interruptId", at), payload, at)
    state = post.get("state")
    thread, run = names
    return Posted(
        thread,
        run,
        _last_said(messages, list_at(post, "context", "request")),
        tuple([_tool(one, f"request.tools[{i}]") for i, one in enumerate(list_at(post, "tools", "request"))]),
        _results(messages),
        verdicts,
        state if isinstance(state, dict) else None if state is not None else {},
        tuple(messages),
    )


def _last_said(messages: Sequence[Json], context: Sequence[Any]) -> UserMessage | None:
    """What the person said since anybody else did, with the context that the application gives for it."""
    first = len(messages)
    while first and messages[first - 1].get("role") == "user":
        first -= 1
    parts: list[Content] = []
    for i in range(first, len(messages)):
        parts += _content(messages[i], f"request.messages[{i}]")
    if not parts:
        return None
    lines: list[str] = []
    for i, one in enumerate(context):
        item, at = object_at(one, f"request.context[{i}]"), f"request.context[{i}]"
        lines.append(f"- {text_at(item, 'description', at)}: {text_at(item, 'value', at)}")
    around = [Text("\n".join(["What the application adds:", *lines]))] if lines else []
    return UserMessage(said([*parts, *around], f"request.messages[{first}]"))


def _content(message: Json, where: str) -> list[Content]:
    content = message.get("content")
    if isinstance(content, str):
        return [Text(content)]
    found: list[Content] = []
    for i, one in enumerate(list_at(message, "content", where)):
        part, at = object_at(one, f"{where}.content[{i}]"), f"{where}.content[{i}]"
        if part.get("type") == "text":
            found.append(Text(text_at(part, "text", at)))
            continue
        if part.get("type") == "binary":
            # Clients from before 1.0 send images and files so.
            kind, data = text_at(part, "mimeType", at), text_at(part, "data", at, "")
            url = f"data:{kind};base64,{data}" if data else text_at(part, "url", at)
            found.append(media(url, kind, text_at(part, "filename", at, ""), at))
            continue
        source = object_at(part.get("source"), f"{at}.source")
        kind, value = text_at(source, "mimeType", f"{at}.source", ""), text_at(source, "value", f"{at}.source")
        match source.get("type"):
            case "data":
                found.append(media(f"data:{kind};base64,{value}", kind, "", f"{at}.source"))
            case "url":
                usual = {"image": "image/png", "document": "application/pdf"}.get(str(part.get("type")), "")
                found.append(media(value, kind or usual, "", f"{at}.source.value"))
            case other:
                raise bad(f"{at}.source.type", f"must be data or url, and is {other!r:.50}")
    return found


def _tool(one: Any, where: str) -> Tool:
    declared = object_at(one, where)
    schema = declared.get("parameters") or {"type": "object", "properties": {}}
    try:
        name, description = text_at(declared, "name", where), text_at(declared, "description", where, "")
        return external_tool(name, description, object_at(schema, f"{where}.parameters"), wait=True)
    except BadTool as error:
        raise bad(where, f"cannot be a tool: {error}") from error


def _results(messages: Sequence[Json]) -> dict[str, tuple[Any, bool]]:
    found = dict[str, tuple[Any, bool]]()
    for i, message in enumerate(messages):
        if message.get("role") == "tool":
            where = f"request.messages[{i}]"
            text = "\n".join([one.text for one in _content(message, where) if isinstance(one, Text)])
            error = message.get("error")
            found[text_at(message, "toolCallId", where)] = (str(error), True) if error else (text, False)
    return found


def decisions(posted: Posted, run_id: str, pending: Iterable[Pending]) -> Decisions:
    """What of a post decides on the calls that run `run_id` waits for; all else that it says of calls is history.

    Raises:
        Refused: what resolves an approval is no verdict.
    """
    declared = {tool.name for tool in posted.tools}
    verdicts, results = dict[str, Verdict](), dict[str, tuple[Any, bool]]()
    pending = tuple(pending)
    for one in pending:
        name = approval_id(run_id, one)
        given = posted.results.get(call_name(run_id, one))
        if one.kind == "result" and one.tool in declared and given is not None:
            results[one.key] = given
        elif name in posted.verdicts and one.kind == "result":
            answer = posted.verdicts[name]
            results[one.key] = ("No answer was given.", True) if answer is None else (answer, False)
        elif name in posted.verdicts:
            verdicts[one.key] = _verdict(posted.verdicts[name])
    return Decisions.of(pending, verdicts, results)


def _verdict(payload: Any) -> Verdict:
    match payload:
        case None:
            return Verdict(False, "nobody decided")
        case bool():
            return Verdict(payload)
        case {"approved": bool(approved), **more}:
            edit, reason = more.pop("arguments", None), more.pop("reason", None)
            fits = not more and (edit is None or approved)
            if fits and (edit is None or isinstance(edit, dict)) and (reason is None or isinstance(reason, str)):
                return Verdict(approved, reason or "", edit)
    raise bad(
        "request.resume payload",
        "must be true, false, or an object with approved (and a reason, which is a text, or the arguments that are "
        "approved, which are an object) alone",
    )


def call_name(run_id: str, pending: Pending) -> str:
    """What the call of `pending` is called in the thread."""
    return f"{run_id}:{name_of(pending)}"


def answers(posted: Posted, run_id: str, pending: Pending) -> list[str]:
    """By what names the post answers what `pending` waits for, or waited for once."""
    verdict, result = approval_id(run_id, pending), call_name(run_id, pending)
    return [*([verdict] if verdict in posted.verdicts else []), *([result] if result in posted.results else [])]
