"""What OpenAI Responses sends back: a decoder of its stream events, and of a whole response as the last of them.

Pure. The format is that of https://developers.openai.com/api/reference/resources/responses/streaming-events. A response
is a list of items. Each is taken as it was declared done; where a server does not declare them, the list in the closing
event is taken, and where it leaves that out too, what the deltas add up to. A call that is in that list alone counts as
well. Events name their item by `output_index`, `item_id` or both, and some servers give neither or change the id from
event to event. Neighbours: `treadle.models.openai_responses`, which writes requests and names errors;
`treadle.models.openai_responses_usage`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from treadle.kernel.messages import (
    AssistantMessage,
    AssistantPart,
    FinishReason,
    Json,
    Opaque,
    ToolCall,
    Usage,
)
from treadle.models.checked import is_object
from treadle.models.counts import fields_in, grown, list_in, name_in
from treadle.models.errors import ModelError, Overloaded
from treadle.models.failures import unnamed_error
from treadle.models.guarded import ended_early, no_reply
from treadle.models.once import is_bare
from treadle.models.openai_responses_items import (
    DRAWN,
    Item,
    call_id_of,
    in_text,
    parts_of,
    said_in,
    said_once,
    says,
    texts_in,
    thinking_in,
    tokens_of,
)
from treadle.models.openai_responses_usage import is_search, usage_of_response
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
from treadle.models.told_cost import cost_in

CLOSING: Final = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done"}
)
WHOLE: Final = frozenset({"completed", "complete", "incomplete"})
"""The words for a response that nothing more comes of; one that was cut off for a reason is `incomplete`."""
DELTAS: Final = {"message": "response.output_text.delta", "function_call": "response.function_call_arguments.delta"}
INCOMPLETE: Final[dict[str, FinishReason]] = {
    "max_output_tokens": "length",
    "max_messages": "length",
    "content_filter": "content_filter",
}


class ResponsesDecoder:
    """Reads one streamed reply.

    Args:
        provider: the provider's name, for `Opaque` parts.
        error: what makes a typed error of an error object.
        tells_cost: whether the server says what a reply cost.
        place: where reasoning is sealed.
    """

    def __init__(
        self, provider: str, error: Callable[[Any], ModelError], *, tells_cost: bool = False, place: str | None = None
    ) -> None:
        self._provider = provider
        self._place = place
        self._error = error
        self._tells_cost = tells_cost
        self._items: list[Item] = []
        self._by_index: dict[int, Item] = {}
        self._by_id: dict[str, Item] = {}
        self._response: Json | None = None
        self._output: list[Json] = []
        self._told: Json = {}
        self._reported: UsageReported | None = None

    @property
    def reported(self) -> UsageReported | None:
        """What the provider has counted of it so far; None if nothing yet.

        The searches that were seen to end count also where the stream breaks off before its end.
        """
        if self._reported is None and (searches := sum(is_search(item.fields) for item in self._items)):
            return UsageReported(Usage(web_searches=searches, estimated=True))
        return self._reported

    def feed(self, data: Json) -> list[ModelEvent]:
        """The events in one stream event's data. Raises `ModelError` for an error inside the stream."""
        if data.get("type") == "response.output_text.delta":
            piece: str = data["delta"]
            self._item(data, "message").pieces.append(piece)
            return [TextDelta(piece)] if piece else []
        return self._event(data)

    def close(self) -> ModelReply:
        """The whole reply, once the stream has ended. Raises `ProtocolError` if it ended too early to be trusted."""
        if self._response is None:
            raise ended_early(self._provider, bool(self._items))
        output = self._output or [item.whole() for item in self._items]
        reply = _reply(self._response | {"usage": self._told}, output, self._provider, self._place)
        told = self._reported
        return reply if told is None or told.cost is None else replace(reply, cost=told.cost)

    def whole(self, response: Json) -> list[ModelEvent]:
        """The events of a response that came as one JSON body, the reply last."""
        if not isinstance(response.get("output"), list) and not response.get("error"):
            self._hear(response)
            raise no_reply(self._provider, "no response, for it has no output", response)
        return [*self._close(response), self.close()]

    def _event(self, data: Json) -> list[ModelEvent]:
        kind = data.get("type")
        for holder in (data, fields_in(data, "response")):
            # It is told in the last event's response; servers tell it beside that, or before.
            if holder.get("usage"):
                self._hear(holder)
        match kind:
            case "response.function_call_arguments.delta":
                item = self._item(data, "function_call")
                item.pieces.append(data["delta"])
                item.streamed = True
                return [ToolCallDelta(call_id_of(item.fields), data["delta"])] if data["delta"] else []
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                item = self._item(data, "reasoning")
                item.pieces.append(data["delta"])
                item.readable = kind == "response.reasoning_text.delta"
                return [ThinkingDelta(data["delta"])] if data["delta"] else []
            case "response.reasoning_summary_part.added":
                return self._between(self._item(data, "reasoning"), data.get("summary_index"))
            case "response.refusal.delta":
                self._item(data, "message").pieces.append(data["delta"])
                return [TextDelta(data["delta"])] if data["delta"] else []
            case "response.output_text.done" | "response.function_call_arguments.done":
                return self._told_whole(data)
            case "response.output_item.added":
                return self._added(data)
            case "response.output_item.done":
                return self._done(data)
            case "error" | "response.error" | None if self._response is not None:
                return []  # what goes wrong after it is whole takes nothing back
            case "error" | "response.error":
                raise self._error(data.get("error") or data)
            case None:
                # Proxies put their own errors into a stream without saying what they are.
                raise self._error(unnamed_error(data))
        if kind not in CLOSING:
            return []
        return self._close(data["response"])

    def _told_whole(self, data: Json) -> list[ModelEvent]:
        """The events of a text, or of arguments, of which no piece came before they were told whole."""
        kind, name = ("message", "text") if "text" in data else ("function_call", "arguments")
        item = self._find(data)
        if item is None or item.pieces or item.completed or item.fields.get("type") != kind or not data.get(name):
            return []
        return self.feed({**data, "type": DELTAS[kind], "delta": data[name]})

    def _hear(self, response: Json) -> None:
        output = list_in(response, "output") or [item.fields for item in self._items]
        self._told = grown(self._told, fields_in(response, "usage"))
        if (usage := usage_of_response(response | {"usage": self._told}, output)) is not None:
            told = cost_in(self._told) if self._tells_cost else None
            self._reported = UsageReported(usage, told)

    def _between(self, item: Item, index: int | None) -> list[ModelEvent]:
        """The blank line between two parts of a summary."""
        if not index or not item.pieces:
            return []
        item.pieces.append("\n\n")
        return [ThinkingDelta("\n\n")]

    def _find(self, data: Json) -> Item | None:
        index, item_id = data.get("output_index"), data.get("item_id") or (data.get("item") or {}).get("id")
        found = self._by_index.get(index) if index is not None else None
        return found or (self._by_id.get(item_id) if item_id else None)

    def _item(self, data: Json, kind: str) -> Item:
        """The item that a delta belongs to: the one it names, else the last of its kind, else one begun by it."""
        if found := self._find(data):
            return found
        for item in reversed(self._items):
            if item.fields.get("type") == kind and not item.completed:
                return item
        if kind == "function_call":
            raise ValueError("arguments of a function call that was never announced")
        return self._begin(data, {"type": kind, "id": data.get("item_id")})

    def _begin(self, data: Json, fields: Json) -> Item:
        item, item_id = Item(fields), fields.get("id")
        self._items.append(item)
        if data.get("output_index") is not None:
            self._by_index[data["output_index"]] = item
        if item_id:
            self._by_id[item_id] = item
        return item

    def _added(self, data: Json) -> list[ModelEvent]:
        fields = in_text(data["item"])
        same, begun = self._find(data), self._by_index.get(data.get("output_index", -1))
        if same is not None and not same.completed and same.fields == fields:
            return []  # said twice
        if (
            begun is not None
            and begun.is_lost()
            and call_id_of(begun.fields) not in (fields.get("call_id"), fields.get("id"))
        ):
            raise ValueError("another item begins in the place of a call that has neither arguments nor an end")
        self._begin(data, fields)
        return [ToolCallStarted(call_id_of(fields), fields["name"])] if fields["type"] == "function_call" else []

    def _done(self, data: Json) -> list[ModelEvent]:
        fields = in_text(data["item"])
        item = self._find(data)
        if item is not None and item.completed and item.fields == item.last_word(fields):
            return []  # said twice
        if item is None or item.completed or item.fields.get("type") != fields["type"]:
            item = self._unfinished(fields) or self._begin(data, fields)
        return self._finish(item, fields)

    def _unfinished(self, fields: Json) -> Item | None:
        """The item under way that is meant where an event names none: the oldest of its kind (and call id)."""
        for item in self._items:
            same = item.fields.get("type") == fields["type"] and item.fields.get("call_id") == fields.get("call_id")
            if same and not item.completed:
                return item
        return None

    def _finish(self, item: Item, fields: Json) -> list[ModelEvent]:
        """Makes `fields` the item's last word, and gives the events that its deltas have not given."""
        fields = item.last_word(fields)
        begun, item.fields, item.completed = item.fields, fields, True
        if fields["type"] == "function_call":
            call_id = call_id_of(fields)
            events: list[ModelEvent] = [] if begun is not fields else [ToolCallStarted(call_id, fields["name"])]
            if not item.streamed and fields.get("arguments"):
                events.append(ToolCallDelta(call_id, fields["arguments"]))
            # A call that was cut off is not complete, whether the server says so or not: nothing may start it.
            # Nor may pieces that are not the call, as where one of them was lost.
            arguments = fields.get("arguments") or ""
            whole = fields.get("status") != "incomplete" and is_object(arguments or "{}") and item.adds_up_to(arguments)
            return [*events, ToolCallCompleted(call_id)] if whole else events
        if item.pieces:
            return []
        if fields["type"] == "message":
            return [TextDelta(part.text) for part in texts_in(fields) if part.text]
        if fields["type"] == "reasoning" and (thought := thinking_in(fields).text):
            return [ThinkingDelta(thought)]
        return []

    def _close(self, response: Json) -> list[ModelEvent]:
        self._hear(response)
        told = map(in_text, response.get("output") or ())
        output = said_once([self._last_word(place, fields) for place, fields in enumerate(told)])
        if (status := response.get("status") or "completed") not in WHOLE or response.get("error"):
            failed = status == "failed" or response.get("error")
            fault = response.get("error") or {"message": "the response failed without a reason"}
            error = self._error(fault) if failed else _not_whole(self._provider, response, status)
            if self._reported is not None:
                self._reported = replace(self._reported, whole=True)
            if output or not failed:
                error.usage = Usage(output_tokens=tokens_of(output), estimated=True)
            raise error
        self._response = response
        events: list[ModelEvent] = []
        if not self._items:
            for index, fields in enumerate(output):
                events += self._finish(self._begin({"output_index": index}, fields), fields)
        events += self._only_told_here(output)
        is_whole = all(item.completed for item in self._items)
        begun = [item for item in self._items if item.fields.get("type") == "function_call"]
        calls = [fields for fields in output if fields.get("type") == "function_call"]
        # Servers name calls there that they never declared done, or leave out what they did declare.
        leaves_out = len(calls) < len({call_id_of(item.fields) for item in begun})
        # One that was cut off leaves out what it had no room for.
        is_promised = leaves_out and status != "incomplete"
        for item in begun:
            given = next((fields for fields in calls if item.is_call(fields)), None)
            if item.completed and given is not None and is_bare(item.fields.get("arguments") or ""):
                item.fields = given
            elif not item.completed and given is None and is_promised and item.is_silent():
                raise ValueError("a call that was begun has neither arguments nor an end, and no part in the response")
            elif not item.completed:
                events += self._finish(item, given or item.whole() | {"status": response.get("status")})
        leaves_out = self._leaves_words_out(output) or leaves_out
        self._output = [] if is_whole or leaves_out else output
        return events

    def _leaves_words_out(self, output: Sequence[Json]) -> bool:
        """Whether less was thought or said in the closing event than was told; what it has of that is its last word."""
        left_out = False
        for kind in ("reasoning", "message"):
            told = [fields for fields in output if fields.get("type") == kind]
            items = [item for item in self._items if item.fields.get("type") == kind]
            for item in items:
                if not item.completed:
                    same = (fields for fields in told if fields.get("id") and fields["id"] == item.fields.get("id"))
                    item.completed = (last := next(same, None)) is not None
                    item.fields = last or item.fields
            left_out = left_out or sum(says(item.whole()) for item in items) > len(told)
        return left_out

    def _last_word(self, place: int, fields: Json) -> Json:
        """An item of the closing event, with what its deltas added up to where the server leaves that out."""
        # Its place is another than it was where something before it is left out.
        named = (one for one in self._items if fields.get("call_id") and one.is_call(fields))
        item = next(named, None) or self._find({"output_index": place, "item": fields})
        if item is None or any(item.fields.get(name) != fields.get(name) for name in ("type", "call_id", "name")):
            return fields
        if item.completed and not fields.get("arguments") and item.fields.get("arguments"):
            return fields | {"arguments": item.fields["arguments"]}
        return item.last_word(fields)

    def _only_told_here(self, output: Sequence[Json]) -> list[ModelEvent]:
        """The events of the calls in the closing event that no event has declared, and of its messages if none was.

        Servers that change the ids of calls from event to event declare none there that is new.
        """
        calls = [fields for fields in output if fields.get("type") == "function_call"]
        told = {(call_id, fields.get("name")): fields for fields in calls if (call_id := call_id_of(fields))}
        begun = [item.fields for item in self._items if item.fields.get("type") == "function_call"]
        declared = {(call_id_of(fields), fields.get("name")) for fields in begun}
        spoken = any(item.fields.get("type") == "message" for item in self._items)
        new = [] if spoken else [fields for fields in output if fields.get("type") == "message"]
        if declared < told.keys():
            new += [fields for call, fields in told.items() if call not in declared]
        return [event for fields in new for event in self._finish(self._begin({}, fields), fields)]


def _reply(response: Json, output: Sequence[Json], provider: str, place: str | None) -> ModelReply:
    parts: list[AssistantPart] = []
    called = refused = False
    output = said_once(output)
    for item in output:
        match item["type"]:
            case "message":
                if item.get("phase"):
                    parts.append(Opaque(provider, {"type": "message", "phase": item["phase"]}))
                parts += said_in(item, provider)
                refused = refused or any(part["type"] == "refusal" for part in parts_of(item))
            case "reasoning":
                parts.append(thinking_in(item, place))
            case "function_call":
                called = True
                arguments = item.get("arguments") or ""
                parts.append(ToolCall(call_id_of(item), item["name"], arguments, item_id=item.get("id")))
            case _:
                drawn = item["type"] == DRAWN and item.get("result")
                parts.append(Opaque(provider, item, shown="image" if drawn else ""))
    finish, detail = _finish_of(response, output, called, refused)
    return ModelReply(
        AssistantMessage(tuple(parts)),
        usage=usage_of_response(response, output),
        finish=finish,
        finish_detail=detail,
        model=name_in(response, "model"),
        request_id=name_in(response, "id"),
    )


def _finish_of(response: Json, output: Sequence[Json], called: bool, refused: bool) -> tuple[FinishReason, str]:
    status = response.get("status") or "completed"
    if status == "incomplete":
        reason = (response.get("incomplete_details") or {}).get("reason") or status
        return INCOMPLETE.get(reason, "unknown"), reason
    if any(item["type"] == "function_call" and item.get("status") == "incomplete" for item in output):
        # The response ended, but of a call in it the server says that it did not.
        return "unknown", "incomplete"
    if called:
        return "tool_calls", status
    return ("refusal" if refused else "stop"), status


def _not_whole(provider: str, response: Json, status: object) -> ModelError:
    """The error for a response that is none yet, or never will be one; another request may be answered."""
    words = f"{provider} gave a response that is not whole: its status is {status!r}"
    if status in ("queued", "in_progress"):
        words += "; one that is made in the background is not waited for"
    name = response.get("id")
    return Overloaded(words, request_id=name if isinstance(name, str) else "")
