"""What Gemini sends back: a decoder of the chunks of a stream, and of a whole response as the only one of them.

Pure. The format is that of https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse. Each chunk is a
response of its own, whose parts go on with the reply: pieces of text in a row are one text, until one of them carries a
signature; a call comes in one part, or in pieces where that was asked for. A part of another kind (the code that
Google runs, its result, an image) is kept whole, so that it goes back as it came. Neighbours: `treadle.models.google`,
which writes requests and names errors; `treadle.models.google_pieces`, arguments in pieces.
"""

from collections.abc import Callable, Mapping
from typing import Final
from uuid import uuid4

from treadle.context.texts import estimate_text
from treadle.kernel.messages import (
    AssistantMessage,
    AssistantPart,
    FinishReason,
    Json,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from treadle.models.codec import DONE
from treadle.models.contents import arguments_in
from treadle.models.counts import count_in, fields_in, list_in, name_in
from treadle.models.errors import AuthenticationFailed, BadRequest, ModelError, ProtocolError, ToolUseFailed
from treadle.models.failures import redact
from treadle.models.google_names import named, unbegun
from treadle.models.google_pieces import Pieces
from treadle.models.google_thinking import generation
from treadle.models.google_usage import counted, usage_of
from treadle.models.guarded import ended_early, no_reply
from treadle.models.media import shown_in
from treadle.models.once import is_bare
from treadle.models.port import (
    ModelEvent,
    ModelReply,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)

FINISHES: Final[Mapping[str, FinishReason]] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "ESCALATION": "content_filter",
    "MODEL_ARMOR": "content_filter",
}
"""What a reply's last word means. Any other is not known to mean that the reply is whole."""

MISCALLED: Final = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"})
"""The words for a call, or a reply, that the model wrote and Google could not read; the next may be better."""

THOUGHT: Final = "google-thought"
"""The `Thinking.id` of what Gemini thought, by which the other dialects know that it is not theirs."""

SIGNS: Final = "google-signature"
"""The `Thinking.id` of a signature that belongs to the text or the call after it, which have no place for one."""

CITED: Final = ("groundingMetadata", "citationMetadata", "urlContextMetadata")
"""What a reply rests on, for people to read; it does not go back."""

MADE: Final = "made_"
"""How the ids begin of calls that came without one."""


class _Words:
    """Pieces of text in a row, spoken or thought, and the signature that the last of them carried."""

    __slots__ = ("pieces", "signature", "thought")

    def __init__(self, thought: bool) -> None:
        self.thought = thought
        self.pieces: list[str] = []
        self.signature: str | None = None


class _Call:
    """One call; `pieces` while its arguments are still coming."""

    __slots__ = ("arguments", "given", "id", "name", "pieces", "signature")

    def __init__(self, call_id: str, given: str, name: str, signature: str | None) -> None:
        self.id = call_id
        self.given = given
        self.name = name
        self.signature = signature
        self.arguments = ""
        self.pieces: Pieces | None = None


class GoogleDecoder:
    """Reads one reply; see `treadle.models.codec.Decoder`.

    Args:
        provider: the provider's name, for `Opaque` parts.
        error: makes the typed error of a chunk that holds an error.
    """

    def __init__(self, provider: str, error: Callable[[Json], ModelError]) -> None:
        self._provider = provider
        self._error = error
        self._parts: list[_Words | _Call | Opaque] = []
        self._ids: set[str] = set()
        self._finish = ""
        self._message = ""
        self._blocked = ""
        self._counts: Json = {}
        self._searches = 0
        self._cited: Json = {}
        self._model = ""
        self._id = ""
        self._responses: dict[str, bool] = {}
        self._goes_on = False
        self._whole = False
        self._last: Json | None = None

    @property
    def reported(self) -> UsageReported | None:
        """What the provider has counted of it so far; None if nothing yet."""
        usage = usage_of(self._counts, self._searches, so_far=not self._finish)
        return None if usage is None else UsageReported(usage)

    def feed(self, data: Json) -> list[ModelEvent]:
        """The events in one chunk. Raises `ModelError` for an error inside the stream."""
        events: list[ModelEvent] = []
        if data == DONE or data == self._last:
            return events
        self._last = data if _ends_in_call(data) else None
        self._about(data)
        parts = len(self._parts)
        try:
            if data.get("error") or (_is_wordy(data) and not (self._finish or self._whole)):
                raise self._error(data)
            for candidate in data.get("candidates") or ():
                # Several are never asked for.
                if not count_in(candidate, "index"):
                    self._candidate(candidate, events)
            self._check_response(_response_id(data), bool(events) or len(self._parts) > parts)
        except ModelError as error:
            if words := [one for one in self._parts if isinstance(one, _Words)]:
                said = "".join([piece for one in words for piece in one.pieces])
                error.usage = Usage(output_tokens=estimate_text(said), estimated=True)
            raise
        return events

    def whole(self, body: Json) -> list[ModelEvent]:
        """The events of a whole response, the reply last. Raises `ModelError` if it holds an error, or is none."""
        self._whole = True
        events = self.feed(body)
        if not (body.get("candidates") or self._blocked):
            raise no_reply(self._provider, "no reply, for it has no candidates", body)
        return [*events, self.close()]

    def close(self) -> ModelReply:
        """The whole reply, once the stream has ended.

        Raises:
            ProtocolError: it ended too early to be trusted.
            ToolUseFailed: the model wrote a call that Google could not read.
            ModelError: the reply ended in another error.
        """
        finish = FINISHES.get(self._finish, "unknown")
        if not self._finish:
            if self._blocked and not self._parts:
                return self._reply("content_filter", self._blocked)
            raise ended_early(self._provider, bool(self._parts))
        self._check_ending(finish)
        if finish == "stop" and any(isinstance(part, _Call) for part in self._parts):
            finish = "tool_calls"
        detail = self._finish if not self._message or finish == "tool_calls" else f"{self._finish}: {self._message}"
        return self._reply(finish, detail)

    def _check_ending(self, finish: FinishReason) -> None:
        """Raises what the last word of the reply means, where that is an error."""
        said = f"{self._provider} ended its reply with {self._finish}"
        told = redact(self._message)[:500]
        words = f"{said}: {told}" if told else said
        if self._finish in MISCALLED:
            raise ToolUseFailed(f"{words}; the model wrote a call that cannot be read", failed_text=self._message)
        if self._finish == "MISSING_THOUGHT_SIGNATURE":
            raise BadRequest(words)
        if self._finish == "PUP_LIMITED_DISABLED":
            raise AuthenticationFailed(f"{words}; the account is limited or disabled")
        if any(isinstance(part, _Call) and part.pieces is not None for part in self._parts):
            raise ProtocolError(f"{said}, before the arguments of a call were closed")
        last = self._parts[-1] if self._parts else None
        if finish == "stop" and not self._whole and isinstance(last, Opaque) and named(last.value, "executableCode"):
            # Google says STOP when its model has written the code, and again when it has seen what came of it.
            raise ProtocolError(f"the stream of {self._provider} ended before the result of the code that it runs")

    def _about(self, data: Json) -> None:
        self._id = self._id or _response_id(data)
        self._model = self._model or name_in(data, "modelVersion") or name_in(data, "model_version")
        usage = named(data, "usageMetadata")
        if isinstance(usage, dict):
            self._counts = counted(self._counts, usage)
        feedback = named(data, "promptFeedback")
        if isinstance(feedback, dict) and (reason := named(feedback, "blockReason")):
            message = named(feedback, "blockReasonMessage")
            self._blocked = f"{reason}: {message}" if message else str(reason)

    def _check_response(self, response: str, says: bool) -> None:
        """Raises `ProtocolError` where another response says something, in the place of the first or after it.

        A proxy has asked again: what is said in both, and called, would count twice. Of a server that gives each chunk
        an id of its own nothing can be said.
        """
        if not response:
            return
        self._goes_on = self._goes_on or response in self._responses
        self._responses[response] = says or self._responses.get(response, False)
        if self._goes_on and sum(self._responses.values()) > 1:
            raise ProtocolError(f"{self._provider}: another response began in the stream of the first")

    def _candidate(self, candidate: Json, events: list[ModelEvent]) -> None:
        content = candidate.get("content")
        if content:
            for part in content.get("parts") or ():
                self._part(part, events)
        if reason := named(candidate, "finishReason"):
            self._finish = reason.upper()
            self._message = str(named(candidate, "finishMessage") or "")
        for name in CITED:
            if (told := named(candidate, name)) and isinstance(told, dict):
                self._cited[name] = fields_in(self._cited, name) | told
        grounding = named(candidate, "groundingMetadata")
        queries = named(grounding, "webSearchQueries") if isinstance(grounding, dict) else None
        if queries and isinstance(queries, list):
            # Before Gemini 3, a reply is charged for once, however many searches it rests on.
            self._searches = max(self._searches, len(queries) if generation(self._model) not in (1, 2) else 1)

    def _part(self, part: Json, events: list[ModelEvent]) -> None:
        text = part.get("text")
        if text:
            self._finish = ""
            self._say(text, named(part, "thoughtSignature"), part.get("thought") is True, events)
        elif (call := named(part, "functionCall")) is not None:
            self._finish = ""
            self._call(call, named(part, "thoughtSignature"), events)
        elif part.keys() - {"text", "thought"}:
            self._finish = ""
            # A signature may come by itself; the API refuses a part that holds nothing else.
            bare = part.keys() <= {"thoughtSignature", "thought_signature", "thought"}
            self._parts.append(Opaque(self._provider, {"text": "", **part} if bare else part, shown_in(part)))

    def _say(self, text: str, signature: str | None, thought: bool, events: list[ModelEvent]) -> None:
        """Goes on with the text before, or begins another: what carries a signature is not joined to what has none."""
        last = self._parts[-1] if self._parts else None
        words = last if isinstance(last, _Words) and last.thought == thought else None
        if words is None or words.signature is not None or (signature is not None and words.pieces):
            words = _Words(thought)
            self._parts.append(words)
        words.pieces.append(text)
        words.signature = signature
        events.append(ThinkingDelta(text) if thought else TextDelta(text))

    def _call(self, fields: Json, signature: str | None, events: list[ModelEvent]) -> None:
        going_on, pieces = bool(named(fields, "willContinue")), named(fields, "partialArgs")
        last = self._parts[-1] if self._parts else None
        call = last if isinstance(last, _Call) and last.pieces is not None and not fields.get("name") else None
        if call is None and not (going_on or pieces) and self._said_twice(fields):
            return
        if call is None:
            call = self._begin(fields, signature, events)
            if going_on or pieces:
                call.pieces = Pieces()
        call.signature = call.signature or signature
        if call.pieces is None:
            arguments = fields.get("args")
            call.arguments = "" if arguments is None else arguments_in(_object(arguments))
        else:
            call.pieces.take(fields.get("args"), pieces or ())
            if going_on:
                return
            call.arguments, call.pieces = arguments_in(call.pieces.whole()), None
        if call.arguments:
            events.append(ToolCallDelta(call.id, call.arguments))
        events.append(ToolCallCompleted(call.id))

    def _said_twice(self, fields: Json) -> bool:
        """Whether a call with the id, the name and the arguments of this one has come before."""
        arguments = fields.get("args")
        text = "" if arguments is None else arguments_in(_object(arguments))
        same = (name_in(fields, "id"), unbegun(fields["name"]), text)
        return bool(same[0]) and any(
            isinstance(one, _Call) and one.pieces is None and (one.id, one.name, one.arguments) == same
            for one in self._parts
        )

    def _begin(self, fields: Json, signature: str | None, events: list[ModelEvent]) -> _Call:
        given = name_in(fields, "id")
        call_id = given if given and given not in self._ids else f"{MADE}{uuid4().hex[:24]}"
        self._ids.add(call_id)
        call = _Call(call_id, given, unbegun(fields["name"]), signature)
        self._parts.append(call)
        events.append(ToolCallStarted(call.id, call.name))
        return call

    def _reply(self, finish: FinishReason, detail: str) -> ModelReply:
        parts: list[AssistantPart] = []
        calls = [part for part in self._parts if isinstance(part, _Call) and part.given and not is_bare(part.arguments)]
        whole = {(call.given, call.name) for call in calls}
        for part in self._parts:
            if isinstance(part, Opaque):
                parts.append(part)
            elif isinstance(part, _Call):
                if is_bare(part.arguments) and (part.given, part.name) in whole:
                    continue  # It was begun anew; see `treadle.models.once`.
                parts += [*_signed(part.signature), ToolCall(part.id, part.name, part.arguments)]
            elif part.thought:
                parts.append(Thinking("".join(part.pieces), signature=part.signature, id=THOUGHT))
            else:
                parts += [*_signed(part.signature), Text("".join(part.pieces))]
        message = AssistantMessage(tuple(parts))
        if self._cited and (message.text.strip() or message.shown):
            message = AssistantMessage((*parts, Opaque(self._provider, self._cited)))
        return ModelReply(
            message,
            usage=usage_of(self._counts, self._searches),
            finish=finish,
            finish_detail=detail,
            model=self._model,
            request_id=self._id,
        )


def _is_wordy(data: Json) -> bool:
    """Whether a chunk has but words, as the error of a proxy has that does not say what it is."""
    return "candidates" not in data and any(isinstance(data.get(name), str) for name in ("message", "detail", "msg"))


def _response_id(data: Json) -> str:
    return name_in(data, "responseId") or name_in(data, "response_id")


def _ends_in_call(data: Json) -> bool:
    """Whether a chunk holds a call, says that it is the last, and what all took: the same again is that one again.

    Where calls have no ids, nothing else tells so.
    """
    (candidate,) = list_in(data, "candidates")[:1] or [{}]
    parts = list_in(fields_in(candidate, "content"), "parts")
    called = any(named(part, "functionCall") for part in parts)
    return bool(called and named(candidate, "finishReason") and named(data, "usageMetadata"))


def _signed(signature: str | None) -> list[Thinking]:
    """The signature of the part that follows."""
    return [] if signature is None else [Thinking(signature=signature, id=SIGNS)]


def _object(arguments: object) -> Json:
    if not isinstance(arguments, dict):
        raise TypeError(f"the arguments of a call are no object: {str(arguments)[:100]}")
    return arguments
