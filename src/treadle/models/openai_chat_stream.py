"""What Chat Completions sends back: a decoder of its chunks, and of a whole completion as one of them.

Pure. The format is that of https://platform.openai.com/docs/api-reference/chat/streaming, read as a dozen other servers
write it: tool calls without an index, an id or arguments, content as a list, reasoning in fields of several names.
Neighbours: `treadle.models.openai_chat`, which writes requests and names errors; `treadle.models.openai_chat_calls`;
`treadle.models.openai_chat_usage`.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from msgspec.structs import replace

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
from treadle.models.counts import count_in, grown, name_in
from treadle.models.errors import ModelError, Overloaded
from treadle.models.guarded import ended_early, no_reply
from treadle.models.hosts import SIGNING
from treadle.models.once import as_told, told_once
from treadle.models.openai_chat_beside import Beside
from treadle.models.openai_chat_calls import ChatCalls
from treadle.models.openai_chat_usage import usage_in, usage_of
from treadle.models.port import (
    ModelEvent,
    ModelReply,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from treadle.models.terms import USUAL
from treadle.models.told_cost import cost_in

FINISHES: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "complete": "stop",
    "completed": "stop",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "safety": "content_filter",
    "sensitive": "content_filter",
    "recitation": "content_filter",
    "prohibited_content": "content_filter",
    "refusal": "refusal",
    "pause": "pause",
}
# Finish reasons that mean that the reply was broken off for the provider's own reasons.
BROKEN: Final = frozenset({"error", "network_error", "insufficient_system_resource"})


def _is_error(data: Json, under_way: bool) -> bool:
    """Whether a chunk is an error, which some servers put into a stream as it is in the body of a status."""
    if (
        under_way
        and "choices" not in data
        and any(isinstance(data.get(name), str) for name in ("message", "detail", "msg"))
    ):
        return True
    return bool(data.get("error")) or "error" in (data.get("object"), data.get("type"))


def _says(delta: Json) -> bool:
    return bool(delta.get("content") or delta.get("tool_calls"))


class ChatDecoder:
    """Reads one reply of Chat Completions; see `treadle.models.codec.Decoder`.

    Args:
        provider: the name that parts which only the provider understands are kept under.
        error: makes the typed error of an error object inside the stream.
        tells_cost: whether the server says what a reply cost.
    """

    def __init__(self, provider: str, error: Callable[[Json], ModelError], *, tells_cost: bool = False) -> None:
        self._provider = provider
        self._error = error
        self._tells_cost = tells_cost
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._thinking_field: str | None = None
        self._calls = ChatCalls()
        self._details: list[Json] = []
        self._kept: Json = {}
        self._beside = Beside()
        self._refused = False
        self._whole = self._chosen = self._body = False
        self._finish = ""
        self._told: Json = {}
        self._counts: Usage | None = None
        self._service = ""
        self._cost: Decimal | None = None
        self._id = self._now = ""
        self._goes_on = self._named = self._compared = self._ends_throughout = False
        self._ended: Json | None = None
        self._again = 0
        self._model = ""

    @property
    def reported(self) -> UsageReported | None:
        """What the provider has counted of it so far; None if nothing yet."""
        usage = self._usage
        return None if usage is None else UsageReported(usage, self._cost)

    @property
    def _usage(self) -> Usage | None:
        counts = self._counts
        return counts if counts is None or not self._service else replace(counts, service=self._service)

    def feed(self, data: Json) -> list[ModelEvent]:
        """The events in one chunk. Raises the typed error of an error chunk, `ProtocolError` for another shape."""
        events: list[ModelEvent] = []
        if data == DONE:
            self._whole = True
            self._complete(events, ended=True)
            return events
        self._about(data)
        try:
            # Words after the end of a reply take nothing of it back.
            if _is_error(data, not self._body and not self._finish):
                raise self._error(data)
            self._beside.cite(data)
            for choice in data.get("choices") or ():
                # Only one choice is ever asked for; a server that numbers it otherwise sends null.
                if not count_in(choice, "index"):
                    self._chosen = True
                    self._choice(choice, events)
        except ModelError as error:
            error.usage = self._come or error.usage
            raise
        return events

    def whole(self, body: Json) -> list[ModelEvent]:
        """The events of a whole completion, the reply last. Raises `ModelError` if it holds an error, or is none."""
        self._body = True
        events = self.feed(body)
        if not body.get("choices"):
            raise no_reply(self._provider, "no chat completion, for it has no choices", body)
        self.feed(DONE)
        return [*events, self.close()]

    def close(self) -> ModelReply:
        """The whole reply. Raises `ProtocolError` if neither a finish reason nor an end of the stream was seen."""
        # A proxy may end a stream that broke off in the very place where the arguments of a call were to come.
        bare = not self._body and any(not call.arguments for call in self._calls)
        if not self._finish and (bare or not (self._whole and self._chosen)):
            error = ended_early(self._provider, bool(self._text or self._thinking or self._calls))
            error.usage = self._come
            raise error
        if not self._finish:
            self._check_left_behind()
        # Some hosts give no reason at all; that the reply is whole its body or the stream's last word has said then.
        finish = FINISHES.get(self._finish.lower(), "unknown") if self._finish else "stop"
        if self._calls and finish == "stop":
            finish = "tool_calls"
        elif self._refused and finish == "stop":
            finish = "refusal"
        return ModelReply(
            AssistantMessage(tuple(self._parts())),
            usage=self._usage,
            finish=finish,
            finish_detail=self._finish,
            model=self._model,
            request_id=self._id,
            cost=self._cost,
        )

    @property
    def _come(self) -> Usage | None:
        """What has come, estimated: words beside an error, or a name before its arguments, were told to nobody."""
        calls = [f"{call.name}{call.arguments}" for call in self._calls]
        text = "".join([*self._thinking, *self._text, *calls])
        return Usage(output_tokens=estimate_text(text), estimated=True) if text else None

    def _about(self, data: Json) -> None:
        before, self._now = self._now, name_in(data, "id")
        self._goes_on = bool(before) and before == self._now
        self._named = self._named or self._goes_on
        self._id = self._id or self._now
        self._model = self._model or name_in(data, "model")
        if (tier := name_in(data, "service_tier")) not in USUAL:
            self._service = tier
        if usage := usage_in(data):
            self._told = grown(self._told, usage)
            self._counts = usage_of(self._told)
            self._cost = cost_in(self._told) if self._tells_cost else None

    def _choice(self, choice: Json, events: list[ModelEvent]) -> None:
        if choice == self._ended:
            self._again += 1  # a proxy sends the end anew
            return
        ended, again, self._ended, self._again = self._ended, self._again, None, 0
        begun = bool(self._text or self._thinking or self._calls)
        delta = choice.get("delta") or choice.get("message")
        if delta:
            self._beside.see(delta)
        told_again = self._is_told_again(choice, delta) if delta else False
        # Where something was said before the first end, not each chunk says that it is the last: another is one too.
        goes_on = (delta and _says(delta)) or (choice.get("finish_reason") and self._ends_throughout)
        if ended and not told_again and goes_on:
            for _ in range(again):
                self._choice(ended, events)  # it was no end
        if delta and not told_again:
            self._think(delta, events)
            content = delta.get("content")
            if content:
                self._say(content, events)
            if refusal := delta.get("refusal"):
                self._refused = True
                self._say(refusal, events)
            spoken = self._beside.hear(delta)
            if spoken and (self._beside.speaks or not self._text):
                self._beside.speaks = True
                self._say(spoken, events)
            for entry in self._calls.entries(delta):
                if not self._beside.takes(entry):
                    self._calls.hear(entry, self._now, events)
            for name in SIGNING:
                if name in delta:
                    self._kept[name] = delta[name]
        if choice.get("error"):
            raise self._error(choice)
        if finish := choice.get("finish_reason"):
            if finish in BROKEN:
                raise Overloaded(f"{self._provider} broke the reply off: {finish}")
            # Where each chunk says that it is the last, one like it is no repetition.
            if not self._finish:
                self._ended, self._ends_throughout = choice, not begun
            self._finish = finish
            says = bool(delta and _says(delta))
            self._check_left_behind(says)
            # Where each chunk says that it is the last, arguments come after it.
            self._complete(events, ended=self._body or not says)

    def _complete(self, events: list[ModelEvent], ended: bool) -> None:
        if FINISHES.get(self._finish.lower()) in ("stop", "tool_calls"):
            self._calls.complete(events, ended)

    def _is_told_again(self, choice: Json, delta: Json) -> bool:
        """Whether it is all of the reply once more, which some servers tell at its end, as a `message`."""
        if self._compared or choice.get("delta") or not (self._finish or choice.get("finish_reason")):
            return False
        again = ChatDecoder(self._provider, self._error)
        again._choice({"delta": delta}, [])
        told = again._told_so_far
        is_it = bool(told) and told == self._told_so_far
        # Once where it is another: each time would be all of the text.
        self._compared = bool(told) and not is_it
        return is_it

    @property
    def _told_so_far(self) -> list[tuple[str, str]]:
        parts = told_once(tuple(self._calls.parts()))
        # Calls that came by turns are told again one after the other.
        calls = sorted([(part.name, as_told(part.arguments)) for part in parts if isinstance(part, ToolCall)])
        return [("", "".join(self._text)), *calls] if self._text or calls else []

    def _say(self, content: str | Json | list[Any], events: list[ModelEvent]) -> None:
        if isinstance(content, str):
            self._text.append(content)
            events.append(TextDelta(content))
            return
        for part in [content] if isinstance(content, dict) else content:
            if isinstance(part, str):
                self._say(part, events)
            elif part.get("type") == "thinking":
                thought = part.get("thinking") or ""
                pieces = [thought] if isinstance(thought, str) else [piece.get("text") or "" for piece in thought]
                self._thought("thinking", "".join(pieces), events)
            elif text := part.get("text"):
                self._say(text, events)

    def _think(self, delta: Json, events: list[ModelEvent]) -> None:
        details = delta.get("reasoning_details")
        if details:
            self._keep_details(details)
        if text := delta.get("reasoning_content"):
            self._thought("reasoning_content", text, events)
        elif text := delta.get("reasoning"):
            self._thought("reasoning", text, events)
        elif details:
            self._thought(None, "".join(d.get("text") or d.get("summary") or "" for d in details), events)

    def _thought(self, field: str | None, text: str, events: list[ModelEvent]) -> None:
        if text:
            self._thinking_field = field
            self._thinking.append(text)
            events.append(ThinkingDelta(text))

    def _keep_details(self, details: list[Json]) -> None:
        """Joins the pieces of a detail: those after one another with the same index and type are one."""
        for detail in details:
            last = self._details[-1] if self._details else {}
            if last.get("index") != detail.get("index") or last.get("type") != detail.get("type"):
                self._details.append(dict(detail))
                continue
            for name, value in detail.items():
                joined = (
                    name in ("text", "summary", "data") and isinstance(last.get(name), str) and isinstance(value, str)
                )
                if joined:
                    last[name] += value
                elif value is not None:
                    last[name] = value

    def _check_left_behind(self, says_more: bool = False) -> None:
        """Raises `ValueError` for a call without arguments of another completion than the one that ends.

        A gateway that goes on with another model's completion has left it where the first broke off. Of a server that
        gives each chunk an id of its own none of this can be said. `says_more` is whether the chunk that ends it has
        something to say, as a completion of one chunk has.
        """
        ends = self._goes_on or (self._named and says_more)
        if ends and self._calls.are_left_behind(self._now):
            raise ValueError("another completion ends in the place of a call that has no arguments yet")

    def _parts(self) -> list[AssistantPart]:
        parts: list[AssistantPart] = []
        if self._thinking:
            parts.append(Thinking("".join(self._thinking), id=self._thinking_field))
        if text := "".join(self._text):
            parts.append(Text(text))
        parts += self._calls.parts()
        kept = self._kept | ({"reasoning_details": self._details} if self._details else {})
        kept_of_calls = {call.id: call.kept for call in self._calls if call.kept}
        beside = self._beside.whole()
        shown = "image" if "images" in beside else "sound" if "audio" in beside else ""
        if kept or kept_of_calls:
            parts.append(Opaque(self._provider, {"message": kept, "calls": kept_of_calls}))
        if beside:
            # A part of its own: an image that a journal's redact function has spoilt is sent to nobody.
            parts.append(Opaque(self._provider, beside, shown))
        if self._beside.cited and (text.strip() or shown):
            parts.append(Opaque(self._provider, self._beside.cited))
        return parts
