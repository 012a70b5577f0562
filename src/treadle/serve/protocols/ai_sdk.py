"""The UI message stream of the AI SDK (`x-vercel-ai-ui-message-stream: v1`), which `useChat` reads and posts.

The formats are those of https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol and of `uiMessageChunkSchema` of npm's `ai`.
Version 6.0 refuses a part with a field or type that it does not know, so those of version 7 are sent only to a client
that says that it reads them.

Of what is posted three things count: what the person said last; verdicts, each on an approval that the run waits for
now; and results, each of a call that the run waits for now. The rest of the history is the browser's own copy, and is
not read: not its system messages, its answers, nor its results. An approval's id names the run, the call, and a
fingerprint of the arguments, so a verdict holds for what the person was shown and for nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from treadle.drivers.live import WITHDRAWN
from treadle.kernel.messages import Content, Json, Text, UserMessage
from treadle.kernel.names import escaped
from treadle.result import Pending
from treadle.serve.protocols import moves
from treadle.serve.protocols.moves import Move, PartKind, has_output
from treadle.serve.protocols.wire import (
    Decisions,
    Outcome,
    Verdict,
    approval_id,
    arguments_of,
    bad,
    decide,
    failed,
    flag_at,
    list_at,
    media,
    name_of,
    object_at,
    outcome,
    result_of,
    said,
    text_at,
    text_result,
    unfinished,
)
from treadle.serve.refused import Refused

HEADERS: Final[Mapping[str, str]] = {"x-vercel-ai-ui-message-stream": "v1"}
VERSIONS: Final = (6, 7)
END: Final = "[DONE]"
"""The data of the last line of a stream."""

SETTLED: Final[Mapping[str, bool]] = {"providerExecuted": True}
"""Of what came of a call: a client posts again, on its own, when the calls of the last step have come to something that
are the browser's; one that the run has already is none, though the run ended with it.
"""

_KINDS: Final[Mapping[PartKind, str]] = {"text": "text", "thinking": "reasoning"}
_FINISH: Final[Mapping[Outcome, str]] = {
    "done": "stop",
    "waits": "tool-calls",
    "paused": "other",
    "calls": "tool-calls",
    "limit": "other",
    "length": "length",
    "filtered": "content-filter",
    "cancelled": "other",
    "failed": "error",
}


class Posted(Struct, frozen=True):
    """What a post of `useChat` asks for.

    Attributes:
        chat: the id of the chat, which names the conversation.
        anew: whether what was answered is to be answered anew, or was said in other words: after `after`.
        message: what the person said; None if they said nothing new.
        name: the id of that message; empty if it has none.
        after: the id of the last message of the assistant that the browser has; empty if it has none.
        verdicts: by approval id.
        results: by call id: what came of the call in the browser, and whether it is an error.
    """

    chat: str
    anew: bool
    message: UserMessage | None
    name: str
    after: str
    verdicts: dict[str, Verdict]
    results: dict[str, tuple[Any, bool]]


def posted(body: Any) -> Posted:
    """What the body of a post asks for.

    Raises:
        Refused: it is none of `useChat`.
    """
    post = object_at(body, "the request")
    chat = text_at(post, "id", "request")
    if not chat.strip():
        raise bad("request.id", "is empty; it names the chat")
    trigger = text_at(post, "trigger", "request", "submit-message")
    if trigger not in ("submit-message", "regenerate-message"):
        raise bad("request.trigger", f"must be submit-message or regenerate-message, and is {trigger!r:.50}")
    messages = [object_at(one, f"request.messages[{i}]") for i, one in enumerate(list_at(post, "messages", "request"))]
    edits = object_at(post.get("edits") or {}, "request.edits")
    verdicts, results, after = dict[str, Verdict](), dict[str, tuple[Any, bool]](), ""
    for i, one in enumerate(messages):
        if one.get("role") == "assistant":
            after = text_at(one, "id", f"request.messages[{i}]", "")
            _read_tools(one, f"request.messages[{i}]", edits, verdicts, results)
    for edited in edits:
        if edited not in verdicts or not verdicts[edited].approved:
            raise bad("request.edits", f"names {edited!r:.100}, which is no approval that is given here")
    last, about = messages[-1] if messages else {}, text_at(post, "messageId", "request", "")
    anew = trigger == "regenerate-message" or (about != "" and about == last.get("id"))
    # A message that is named, and is not the last, has the approvals that are answered here.
    is_new = last.get("role") == "user" and (anew or not about)
    at = f"request.messages[{len(messages) - 1}]"
    message, name = (_read_message(last, at), text_at(last, "id", at, "")) if is_new else (None, "")
    return Posted(chat, anew and is_new, message, name, after, verdicts, results)


def _read_message(message: Json, where: str) -> UserMessage:
    parts: list[Content] = []
    for i, one in enumerate(list_at(message, "parts", where)):
        part, at = object_at(one, f"{where}.parts[{i}]"), f"{where}.parts[{i}]"
        match part.get("type"):
            case "text":
                parts.append(Text(text_at(part, "text", at)))
            case "file":
                kind, name = text_at(part, "mediaType", at), text_at(part, "filename", at, "")
                parts.append(media(text_at(part, "url", at), kind, name, f"{at}.url"))
    return UserMessage(said(parts, where))


def _read_tools(
    message: Json, where: str, edits: Json, verdicts: dict[str, Verdict], results: dict[str, tuple[Any, bool]]
) -> None:
    for i, one in enumerate(list_at(message, "parts", where)):
        part, at = object_at(one, f"{where}.parts[{i}]"), f"{where}.parts[{i}]"
        kind = part.get("type")
        if not isinstance(kind, str) or not (kind.startswith("tool-") or kind == "dynamic-tool"):
            continue
        match part.get("state"):
            case "approval-responded":
                approval = object_at(part.get("approval"), f"{at}.approval")
                name = text_at(approval, "id", f"{at}.approval")
                edit = None if edits.get(name) is None else object_at(edits[name], "request.edits of an approval")
                approved = flag_at(approval, "approved", f"{at}.approval")
                verdict = Verdict(approved, text_at(approval, "reason", f"{at}.approval", ""), edit)
                decide(verdicts, name, verdict, f"{at}.approval")
            case "output-available" if part.get("preliminary") is not True:
                results[text_at(part, "toolCallId", at)] = (part.get("output"), False)
            case "output-error":
                results[text_at(part, "toolCallId", at)] = (text_at(part, "errorText", at, ""), True)


def decisions(posted: Posted, run_id: str, pending: Iterable[Pending]) -> Decisions:
    """What of a post decides on the calls that run `run_id` waits for; all else that it says of calls is history."""
    pending = tuple(pending)
    verdicts = {one.key: approval_id(run_id, one) for one in pending}
    results = {one.key: name_of(one) for one in pending}
    return Decisions.of(
        pending,
        {key: posted.verdicts[name] for key, name in verdicts.items() if name in posted.verdicts},
        {key: posted.results[name] for key, name in results.items() if name in posted.results},
    )


def trouble(error: Refused) -> Json:
    """What is told where a stream cannot go on."""
    return {"type": "error", "errorText": f"{error.message}. {error.advice}" if error.advice else error.message}


class Writer:
    """Writes moves as parts of a UI message.

    Args:
        run_id: the run.
        message_id: the id of the message that they make up.
        known: the names of the calls that the browser's message has already, where this goes on with it.
        version: the newest version of the AI SDK whose parts may be sent.
        typed: whether the run's answer is typed.
    """

    def __init__(
        self, run_id: str, message_id: str, known: Iterable[str] = (), version: int = 6, typed: bool = False
    ) -> None:
        self._run_id, self._message_id, self._typed = run_id, message_id, typed
        self._newer = version >= 7
        self._started = False
        self._parts = set(known)
        self._asked: dict[str, str] = {}
        self._waits: tuple[Pending, ...] = ()
        self._withdrawn = 0

    def write(self, move: Move) -> Iterator[Json]:
        """The parts that say `move`."""
        match move:
            case moves.Began(agent=agent):
                if not self._started:
                    self._started = True
                    metadata = {"run": self._run_id, "agent": agent}
                    yield {"type": "start", "messageId": self._message_id, "messageMetadata": metadata}
            case moves.StepBegan():
                yield {"type": "start-step"}
            case moves.StepEnded():
                yield {"type": "finish-step"}
            case moves.PartBegan(kind=kind, id=part_id):
                yield {"type": f"{_KINDS[kind]}-start", "id": part_id}
            case moves.PartPiece(kind=kind, id=part_id, text=text):
                yield {"type": f"{_KINDS[kind]}-delta", "id": part_id, "delta": text}
            case moves.PartEnded(kind=kind, id=part_id):
                yield {"type": f"{_KINDS[kind]}-end", "id": part_id}
            case moves.Below():
                yield from self._below(move)
            case moves.Answered(parts=whole):
                for piece in whole:
                    yield from self.write(piece)
            case moves.Withdrawn() if self._newer:
                yield {"type": "reset-step"}
            case moves.Withdrawn():
                yield from self._without_calls(move, "")
                yield from self._broke_off(move)
            case moves.Said(number=number, text=text):
                yield self._said(number, text)
            case moves.Asked(pending=pending):
                for one in pending:
                    yield from self._asks(one)
                yield from self._above(pending)
                self._waits = pending
            case moves.Ended():
                yield from self._ended(move)
            case _:
                yield from self._call(move, "", "")

    def _below(self, below: moves.Below) -> Iterator[Json]:
        """Of a run below the calls are shown; what it says comes as the result of the call that it works on."""
        if isinstance(below.move, moves.Withdrawn):
            yield from self._without_calls(below.move, below.path)
        else:
            yield from self._call(below.move, below.path, below.agent)

    def _call(self, move: Move, path: str, agent: str) -> Iterator[Json]:
        """The parts for a call: of the run, or of one below it, whose calls are named by the path to them."""

        def named(call_id: str) -> str:
            return _named(path, call_id)

        match move:
            case moves.CallBegan(id=call_id, name=name):
                self._parts.add(named(call_id))
                yield {"type": "tool-input-start", "toolCallId": named(call_id), "toolName": name} | _nested(
                    path, agent, name
                )
            case moves.CallPiece(id=call_id, json=json):
                yield {"type": "tool-input-delta", "toolCallId": named(call_id), "inputTextDelta": json}
            case moves.CallReady(id=call_id, name=name, arguments=arguments):
                yield self._input(named(call_id), name, arguments, _nested(path, agent, name))
            case moves.CallEdited(id=call_id, name=name, arguments=arguments):
                yield from self._answered(named(call_id), True, "")
                if name:
                    yield self._input(named(call_id), name, arguments, _nested(path, agent, name))
            case moves.CallRefused(id=call_id, reason=reason) if self._has(named(call_id), move.name):
                yield from self._there(named(call_id), move.name, move.arguments, _nested(path, agent, move.name))
                yield from self._answered(named(call_id), False, reason)
                if move.returned is None:
                    yield {"type": "tool-output-denied", "toolCallId": named(call_id)}
                else:
                    yield _output(named(call_id), move.returned)
            case moves.CallReturned(id=call_id) if self._has(named(call_id), move.name):
                yield from self._there(named(call_id), move.name, move.arguments, _nested(path, agent, move.name))
                yield from self._answered(named(call_id), True, "")
                yield _output(named(call_id), move)
            case moves.Progress(id=call_id, name=name, update=update):
                data = {"toolCallId": named(call_id), "toolName": name, "update": update}
                yield {"type": "data-progress", "id": named(call_id), "data": data}

    def _has(self, call_id: str, name: str) -> bool:
        """Whether the message has a part for the call, or can be given one; a part that is missing ends the client."""
        return bool(name) or call_id in self._parts

    def _there(self, call_id: str, name: str, arguments: str, more: Json) -> Iterator[Json]:
        if call_id not in self._parts:
            yield self._input(call_id, name, arguments, more)

    def _input(self, call_id: str, name: str, arguments: str, more: Json) -> Json:
        self._parts.add(call_id)
        told = {"toolCallId": call_id, "toolName": name, "input": arguments_of(arguments)}
        return {"type": "tool-input-available", **told, **more}

    def _asks(self, one: Pending) -> Iterator[Json]:
        call_id, name = name_of(one), approval_id(self._run_id, one)
        more = {"dynamic": True, "title": one.tool} if one.run_id else {}
        yield from self._there(call_id, one.tool, one.arguments_json, more)
        if one.kind != "result":
            self._asked[call_id] = name
            asks: Json = {"type": "tool-approval-request", "approvalId": name, "toolCallId": call_id}
            yield {**asks, "reason": _why(one)} if self._newer and _why(one) else asks
        data = {"toolCallId": call_id, "toolName": one.tool, "kind": one.kind, "question": one.question}
        yield {"type": "data-waiting", "id": name, "data": {**data, "found": one.found}}

    def _above(self, pending: Iterable[Pending]) -> Iterator[Json]:
        """The calls that those that wait belong to. A client sends verdicts when nothing else in the step is open."""
        parts = {escaped(one): one for one in self._parts if "/" not in one} | {one: one for one in self._parts}
        for one in pending:
            path = name_of(one).split("/")[:-1] if one.run_id else []
            for depth in range(1, len(path) + 1):
                above = parts.pop("/".join([*path[: depth - 1], path[depth - 1].partition("+")[0]]), None)
                if above is not None:
                    yield {"type": "tool-output-available", "toolCallId": above, "output": {"waits": True}}

    def _answered(self, call_id: str, approved: bool, reason: str) -> Iterator[Json]:
        """A verdict, where this message has the question and the client reads that it was answered."""
        name = self._asked.pop(call_id, None)
        if name is not None and self._newer:
            answer: Json = {"type": "tool-approval-response", "approvalId": name, "approved": approved}
            yield {**answer, "reason": reason} if reason else answer

    def _without_calls(self, move: moves.Withdrawn, path: str) -> Iterator[Json]:
        why = "The reply broke off; this call is not made."
        if move.taken_over:
            why = "Another process took the run over, which knows nothing of this call."
        for call_id, name in move.calls:
            told = {"type": "tool-input-error", "toolCallId": _named(path, call_id), "toolName": name, "input": None}
            yield {**told, "errorText": why, **SETTLED}

    def _broke_off(self, move: moves.Withdrawn) -> Iterator[Json]:
        if move.parts:
            self._withdrawn += 1
            part_id = f"withdrawn-{self._withdrawn}"
            yield {"type": "text-start", "id": part_id}
            yield {"type": "text-delta", "id": part_id, "delta": WITHDRAWN}
            yield {"type": "text-end", "id": part_id}

    def _said(self, number: int, text: str) -> Json:
        if self._newer:
            return {"type": "steering-message", "id": f"said-{number}", "parts": [{"type": "text", "text": text}]}
        return {"type": "data-said", "id": f"said-{number}", "data": {"text": text}}

    def _ended(self, move: moves.Ended) -> Iterator[Json]:
        how, usage = outcome(move.stop, self._waits), move.usage
        if has_output(move, self._typed) and how != "calls":
            yield {"type": "data-output", "data": move.output}
        if how == "failed":
            yield {"type": "error", "errorText": failed(move.failure)}
        elif how in ("limit", "length", "filtered", "paused"):
            # Also keeps a client from asking on its own for what a limit does not allow.
            yield {"type": "error", "errorText": unfinished(move.stop)}
        if how == "cancelled":
            yield {"type": "abort"}
            return
        stop = {"reason": move.stop.reason, "detail": "" if how == "failed" else move.stop.detail}
        tokens = {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens}
        metadata: Json = {"stop": {**stop, "advice": move.stop.advice}, "usage": tokens}
        if move.cost is not None:
            metadata["cost"] = str(move.cost)
        yield {"type": "finish", "finishReason": _FINISH[how], "messageMetadata": metadata}


def _named(path: str, call_id: str) -> str:
    return path + escaped(call_id) if path else call_id


def _nested(path: str, agent: str, name: str) -> Json:
    return {"dynamic": True, "title": f"{agent}: {name}"} if path else {}


def _why(one: Pending) -> str:
    if one.kind == "interrupted":
        return "This call was under way when the server stopped, and nobody knows what it did. May it run again?"
    return one.question


def _output(name: str, returned: moves.CallReturned) -> Json:
    if returned.is_error:
        told: Json = {"type": "tool-output-error", "errorText": text_result(returned.content)}
    else:
        told = {"type": "tool-output-available", "output": result_of(returned.content)}
    return {**told, "toolCallId": name, **SETTLED}
