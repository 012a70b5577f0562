"""AG-UI 1.0, the protocol of CopilotKit and other front ends: https://docs.ag-ui.com.

The formats are those of npm's `@ag-ui/core`, whose client checks that what is opened is closed and that no id is told
twice. A client posts the whole thread each time, its own copy of it; of that count what the person said last, results
of tools that the client declared and that the run waits for, and answers to interrupts, each under an id that names the
run, the call and a fingerprint of its arguments. Ids of calls and messages begin with the run's, as a model may count
its calls anew in each run of a thread.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from treadle.kernel.messages import Content, Json, Text, UserMessage
from treadle.kernel.names import escaped
from treadle.result import Pending
from treadle.serve.protocols import moves
from treadle.serve.protocols.moves import Move
from treadle.serve.protocols.wire import (
    Decisions,
    Verdict,
    approval_id,
    bad,
    failed,
    list_at,
    media,
    object_at,
    outcome,
    said,
    text_at,
    text_result,
    unfinished,
)
from treadle.serve.refused import Refused
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
    verdicts = dict[str, Any]()
    for i, one in enumerate(list_at(post, "resume", "request")):
        entry, at = object_at(one, f"request.resume[{i}]"), f"request.resume[{i}]"
        status = text_at(entry, "status", at)
        if status not in ("resolved", "cancelled"):
            raise bad(f"{at}.status", f"must be resolved or cancelled, and is {status!r:.50}")
        verdicts[text_at(entry, "interruptId", at)] = None if status == "cancelled" else entry.get("payload", True)
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
            edit, reason = more.get("arguments"), more.get("reason")
            if edit is None or isinstance(edit, dict):
                return Verdict(approved, reason if isinstance(reason, str) else "", edit)
    raise bad("request.resume payload", "must be true, false, or an object with approved (and reason, or arguments)")


def call_name(run_id: str, pending: Pending) -> str:
    """What the call of `pending` is called in the thread."""
    return f"{run_id}:{pending.call_id if pending.run_id else pending.plain}"


def answers(posted: Posted, run_id: str, pending: Pending) -> bool:
    """Whether the post answers what `pending` waits for, or waited for once."""
    return approval_id(run_id, pending) in posted.verdicts or call_name(run_id, pending) in posted.results


def trouble(error: Refused) -> Json:
    """What is told where a stream cannot go on."""
    return _event("RUN_ERROR", {}, message=f"{error.message}. {error.advice}".strip(), code=error.kind)


class Writer:
    """Writes moves as AG-UI events.

    Args:
        run_id: the run.
        posted: the post that this answers.
        again: whether the run went on with it, and what it begins with was told before.
    """

    def __init__(self, run_id: str, posted: Posted, known: Iterable[str] = ()) -> None:
        self._run_id, self._posted = run_id, posted
        self._declared = {tool.name for tool in posted.tools}
        self._started = False
        calls = [call for one in posted.messages for call in one.get("toolCalls") or () if isinstance(call, dict)]
        self._known = {*known, *(str(call.get("id")) for call in calls)}
        self._answered = {str(one.get("toolCallId")) for one in posted.messages if one.get("role") == "tool"}
        self._open: dict[tuple[str, str], Json] = {}
        self._messages = list(posted.messages)
        self._carrier: dict[str, str] = {}
        self._suspended: list[str] = []
        self._steps = 0

    def write(self, move: Move) -> Iterator[Json]:
        """The events that say `move`."""
        if isinstance(move, moves.Below):
            yield from self._below(move)
        else:
            yield from self._of(move, "", {}, self._run_id)

    def _of(self, move: Move, path: str, whose: Json, run_id: str) -> Iterator[Json]:
        match move:
            case moves.Began(agent=agent) if not path:
                yield from self._began(agent)
            case moves.StepBegan(step=step):
                yield self._opened("step", whose, f"step {step + 1}", "STEP_STARTED", "STEP_FINISHED", "stepName")
            case moves.StepEnded(step=step):
                yield from self._closed("step", whose, f"step {step + 1}")
                if not path:
                    self._steps = step + 1
                    yield from self._state("replace", "/steps", self._steps)
            case moves.PartBegan() | moves.PartPiece() | moves.PartEnded():
                yield from self._part(move, whose, f"{run_id}:{move.id}", path)
            case moves.CallBegan() | moves.CallPiece() | moves.CallReady() | moves.CallReturned() | moves.CallRefused():
                yield from self._call(move, path, whose)
            case moves.Withdrawn():
                yield from self._withdrawn(move, path, run_id)
            case moves.Progress(id=call_id, name=name, update=update):
                content = {"toolCallId": self._named(path, call_id), "toolName": name, "update": update}
                yield _event("ACTIVITY_SNAPSHOT", whose, messageId=f"{content['toolCallId']}:progress") | {
                    "activityType": "PROGRESS",
                    "content": content,
                    "replace": True,
                }
            case moves.Said(number=number, text=text):
                yield from self._said(f"{run_id}:said-{number}", text, whose)
            case moves.Ended() if not path:
                yield from self._ended(move)
            case moves.Asked(pending=pending) if not path:
                self._pending = tuple(pending)

    _pending: tuple[Pending, ...] = ()

    def _began(self, agent: str) -> Iterator[Json]:
        if self._started:
            return
        self._started = True
        yield _event("RUN_STARTED", {}, **self._names(), protocolVersion=PROTOCOL)
        if self._posted.state is not None:
            ours = {"run": self._run_id, "agent": agent, "status": "running", "steps": 0}
            yield _event("STATE_SNAPSHOT", {}, snapshot={**self._posted.state, "treadle": ours})

    def _names(self) -> Json:
        return {"threadId": self._posted.thread, "runId": self._posted.run}

    def _state(self, op: str, path: str, value: Any) -> Iterator[Json]:
        if self._posted.state is not None:
            yield _event("STATE_DELTA", {}, delta=[{"op": op, "path": f"/treadle{path}", "value": value}])

    # What is opened is closed by the one that opened it, or at the end.

    def _opened(self, kind: str, whose: Json, name: str, opens: str, closes: str, field: str, **more: Any) -> Json:
        self._open[(kind + whose.get("subagentRunId", ""), name)] = _event(closes, whose, **{field: name})
        return _event(opens, whose, **{field: name}, **more)

    def _closed(self, kind: str, whose: Json, name: str) -> Iterator[Json]:
        closing = self._open.pop((kind + whose.get("subagentRunId", ""), name), None)
        if closing is not None:
            yield closing

    def _part(
        self, move: moves.PartBegan | moves.PartPiece | moves.PartEnded, whose: Json, name: str, path: str
    ) -> Iterator[Json]:
        thinking = move.kind == "thinking"
        if isinstance(move, moves.PartPiece):
            kind = "REASONING_MESSAGE_CONTENT" if thinking else "TEXT_MESSAGE_CONTENT"
            yield _event(kind, whose, messageId=name, delta=move.text)
            self._messages[-1]["content"] += move.text
        elif isinstance(move, moves.PartEnded):
            yield from self._closed(move.kind, whose, name)
            yield from self._closed("span", whose, name)
        elif thinking:
            yield self._opened("span", whose, name, "REASONING_START", "REASONING_END", "messageId")
            start = ("REASONING_MESSAGE_START", "REASONING_MESSAGE_END", "messageId")
            yield self._opened(move.kind, whose, name, *start, role="reasoning")
            self._messages.append({"id": name, "role": "reasoning", "content": "", **whose})
        else:
            start = ("TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "messageId")
            yield self._opened(move.kind, whose, name, *start, role="assistant")
            self._messages.append({"id": name, "role": "assistant", "content": "", **whose})
            self._carrier[path] = name

    def _named(self, path: str, call_id: str) -> str:
        return f"{self._run_id}:{path}{escaped(call_id) if path else call_id}"

    def _call(
        self,
        move: moves.CallBegan | moves.CallPiece | moves.CallReady | moves.CallReturned | moves.CallRefused,
        path: str,
        whose: Json,
    ) -> Iterator[Json]:
        name = self._named(path, move.id)
        match move:
            case moves.CallBegan(name=tool):
                yield self._call_began(name, tool, path, whose)
            case moves.CallPiece(json=json):
                yield _event("TOOL_CALL_ARGS", whose, toolCallId=name, delta=json)
                self._call_of(name)["function"]["arguments"] += json
            case moves.CallReady():
                yield from self._closed("call", whose, name)
            case moves.CallRefused(reason=reason):
                told = f"not approved: {reason}" if reason else "not approved"
                yield from self._result(name, move.name, move.arguments, told, path, whose)
            case moves.CallReturned(content=content):
                yield from self._result(name, move.name, move.arguments, text_result(content), path, whose)

    def _call_began(self, name: str, tool: str, path: str, whose: Json) -> Json:
        carrier = self._carrier.setdefault(path, f"{name}:calls")
        start = ("TOOL_CALL_START", "TOOL_CALL_END", "toolCallId")
        self._known.add(name)
        told = self._opened("call", whose, name, *start, toolCallName=tool, parentMessageId=carrier)
        call = {"id": name, "type": "function", "function": {"name": tool, "arguments": ""}}
        message = next((one for one in self._messages if one.get("id") == carrier), None)
        if message is None:
            message = {"id": carrier, "role": "assistant", **whose}
            self._messages.append(message)
        message.setdefault("toolCalls", []).append(call)
        return told

    def _call_of(self, name: str) -> Json:
        calls = [call for message in self._messages for call in message.get("toolCalls") or () if call["id"] == name]
        found: Json = calls[-1]
        return found

    def _result(self, name: str, tool: str, arguments: str, text: str, path: str, whose: Json) -> Iterator[Json]:
        """The result of a call. One that the client has not been told of is told first, if it is known."""
        if name not in self._known:
            if not tool:
                return
            yield self._call_began(name, tool, path, whose)
            if arguments:
                yield _event("TOOL_CALL_ARGS", whose, toolCallId=name, delta=arguments)
            yield from self._closed("call", whose, name)
        self._carrier.pop(path, None)
        if name in self._answered:
            # The client brought it.
            return
        told: Json = {"messageId": f"{name}:result", "toolCallId": name, "content": text, "role": "tool"}
        yield _event("TOOL_CALL_RESULT", whose, **told)
        self._messages.append({"id": told["messageId"], "role": "tool", "content": text, "toolCallId": name, **whose})

    def _withdrawn(self, move: moves.Withdrawn, path: str, run_id: str) -> Iterator[Json]:
        """Takes what was shown back, by telling what the thread is without it."""
        calls = {self._named(path, call_id) for call_id, _ in move.calls}
        gone = {f"{run_id}:{part}" for part in move.parts}
        yield from self._close_all([key for key in self._open if key[1] in calls])
        kept: list[Json] = []
        for message in self._messages:
            left = [call for call in message.get("toolCalls") or () if call["id"] not in calls]
            if message.get("id") in gone or (message.get("toolCalls") and not left and not message.get("content")):
                continue
            kept.append({**message, "toolCalls": left} if "toolCalls" in message else message)
        self._messages = [{k: v for k, v in one.items() if k != "toolCalls" or v} for one in kept]
        self._carrier.pop(path, None)
        yield _event("MESSAGES_SNAPSHOT", {}, messages=[dict(one) for one in self._messages])

    def _said(self, name: str, text: str, whose: Json) -> Iterator[Json]:
        yield _event("TEXT_MESSAGE_START", whose, messageId=name, role="user")
        yield _event("TEXT_MESSAGE_CONTENT", whose, messageId=name, delta=text)
        yield _event("TEXT_MESSAGE_END", whose, messageId=name)
        self._messages.append({"id": name, "role": "user", "content": text, **whose})

    # Runs below, and the end.

    def _below(self, below: moves.Below) -> Iterator[Json]:
        run_id, whose = below.run_id, {"subagentRunId": below.run_id}
        key = ("subagent", run_id)
        match below.move:
            case moves.Began():
                if key not in self._open and run_id not in self._known:
                    self._known.add(run_id)
                    self._open[key] = _event("SUBAGENT_ERROR", whose, message="It was cut off.")
                    started = _event("SUBAGENT_STARTED", whose, name=below.agent)
                    if below.parent:
                        started["parentSubagentRunId"] = below.parent
                    yield {**started, "parentToolCallId": f"{self._run_id}:{below.call_id}"}
            case moves.Ended(stop=stop, text=text):
                yield from self._close_all([one for one in self._open if one[0].endswith(run_id) and one != key])
                if self._open.pop(key, None) is None:
                    return
                if outcome(stop) == "waits":
                    yield _event("SUBAGENT_FINISHED", whose, outcome={"type": "suspended"})
                elif stop.finished:
                    yield _event("SUBAGENT_FINISHED", whose, result=text)
                else:
                    yield _event("SUBAGENT_ERROR", whose, message=f"It stopped: {stop.reason}.", code=stop.reason)
            case move if key in self._open:
                yield from self._of(move, below.path, whose, run_id)

    def _close_all(self, keys: Sequence[tuple[str, str]]) -> Iterator[Json]:
        for key in keys:
            yield self._open.pop(key)

    def _ended(self, move: moves.Ended) -> Iterator[Json]:
        yield from self._close_all(list(reversed(self._open)))
        usage, how = move.usage, outcome(move.stop)
        yield from self._state("replace", "/status", move.stop.reason)
        counts = {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens}
        tokens = [counts | {"totalTokens": usage.total_tokens, "reasoningTokens": usage.reasoning_tokens}]
        finished: Json = {**self._names(), "usage": tokens}
        match how:
            case "failed":
                code = move.failure[0] if move.failure else move.stop.reason
                yield _event("RUN_ERROR", {}, message=failed(move.failure), code=code, usage=tokens)
            case "limit" | "length" | "filtered":
                yield _event("RUN_ERROR", {}, message=unfinished(move.stop), code=move.stop.reason, usage=tokens)
            case "cancelled":
                yield _event("RUN_FINISHED", {}, **finished, outcome={"type": "cancelled"})
            case "waits":
                yield _event("RUN_FINISHED", {}, **finished, outcome=self._waiting())
            case _:
                result = move.output if move.output is not None else move.text
                calls = [self._named("", call_id) for call_id, _, _ in move.unanswered]
                done: Json = {"type": "success", **({"pendingToolCallIds": calls} if calls else {})}
                yield _event("RUN_FINISHED", {}, **finished, result=result, outcome=done)

    def _waiting(self) -> Json:
        """How a run ends that waits: with interrupts for people, or with calls that the client carries out."""
        calls = [call_name(self._run_id, one) for one in self._pending if self._clients(one)]
        interrupts = [self._interrupt(one) for one in self._pending if not self._clients(one)]
        if interrupts:
            return {"type": "interrupt", "interrupts": interrupts}
        return {"type": "success", "pendingToolCallIds": calls} if calls else {"type": "cancelled"}

    def _clients(self, one: Pending) -> bool:
        return one.kind == "result" and one.tool in self._declared and not one.run_id

    def _interrupt(self, one: Pending) -> Json:
        reason = {"approval": "approval", "interrupted": "interrupted", "result": "input_required"}[one.kind]
        told: Json = {"id": approval_id(self._run_id, one), "reason": reason, "message": one.question or str(one)}
        told |= {"toolCallId": call_name(self._run_id, one)}
        if one.kind != "result":
            told["responseSchema"] = ANSWER
        if one.run_id:
            told["subagentRunId"] = one.run_id
        call = {"tool": one.tool, "arguments": one.arguments_json, "found": one.found}
        return {**told, "metadata": {"call": call}}


def _event(kind: str, whose: Mapping[str, Any], **fields: Any) -> Json:
    return {"type": kind, **fields, **whose}
