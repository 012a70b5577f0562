"""The items of a response of OpenAI's: what each says, and one under way, put together from its pieces. Pure.

Neighbours: `treadle.models.openai_responses_stream`, which reads the response; `treadle.models.openai_responses_usage`.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.json import decode

from treadle.context.texts import estimate_text
from treadle.kernel.messages import AssistantPart, Json, Opaque, Text, Thinking
from treadle.models.checked import is_object
from treadle.models.contents import arguments_in
from treadle.models.counts import list_in, name_in
from treadle.models.once import is_bare

READABLE: Final = "reasoning_text"
"""What the provider calls reasoning that is readable; such a `Thinking` part has it as its signature."""

CITING: Final = "output_text"
"""The type of what is kept of a text that cites something, which does not go back: the text does."""

CALLERS: Final = ("apply_patch_call", "computer_call", "custom_tool_call", "local_shell_call", "shell_call")
"""The calls, besides those of functions, that the caller carries out unless their output stands beside them."""
APPROVAL: Final = "mcp_approval_request"
DRAWN: Final = "image_generation_call"
DRAWN_FIELDS: Final = ("type", "id", "status", "result")
"""What the provider takes of a drawn image; it says more of it."""


class Item:
    """One output item under way: the last whole form of it, and the pieces that came since."""

    __slots__ = ("completed", "fields", "pieces", "readable", "streamed")

    def __init__(self, fields: Json) -> None:
        self.fields = fields
        self.pieces: list[str] = []
        self.streamed = False
        self.readable = False
        self.completed = False

    def is_lost(self) -> bool:
        """Whether it would be a call without arguments that has not ended, were nothing more to come of it."""
        bare = is_bare("".join(self.pieces) or self.fields.get("arguments") or "")
        return self.fields.get("type") == "function_call" and not self.completed and bare

    def is_call(self, fields: Json) -> bool:
        """Whether `fields` are of the call that it is: another of the same id has another name."""
        return call_id_of(self.fields) == fields.get("call_id") and self.fields.get("name") == fields.get("name")

    def is_silent(self) -> bool:
        """Whether nothing was said of its arguments, not even that there are none."""
        return not any(self.pieces) and not self.fields.get("arguments")

    def whole(self) -> Json:
        """The item as it was declared, with what its deltas added up to where it was never declared done."""
        return self.fields if self.completed or not self.pieces else self._with_pieces(self.fields)

    def last_word(self, fields: Json) -> Json:
        """`fields`, in which the server declares the item done, with what its deltas added up to if they lack it."""
        return fields if not any(self.pieces) or says(fields) else self._with_pieces(fields)

    def adds_up_to(self, arguments: str) -> bool:
        """Whether the pieces of a call, where any came, are the `arguments` with which it is declared done."""
        told = "".join(self.pieces)
        if not self.streamed or told == arguments:
            return True
        return is_object(told) and is_object(arguments) and decode(told) == decode(arguments)

    def _with_pieces(self, fields: Json) -> Json:
        text = "".join(self.pieces)
        match fields.get("type"):
            case "message":
                return fields | {"content": [{"type": "output_text", "text": text}]}
            case "reasoning" if self.readable:
                return fields | {"content": [{"type": READABLE, "text": text}]}
            case "reasoning":
                return fields | {"summary": [{"type": "summary_text", "text": text}]}
            case "function_call":
                return fields | {"arguments": text}
            case _:
                return fields


def says(fields: Json) -> bool:
    """Whether an item that is declared done has anything in it."""
    match fields.get("type"):
        case "message":
            return any(part.text for part in texts_in(fields))
        case "reasoning":
            return bool(thinking_in(fields).text)
        case _:
            return bool(fields.get("arguments"))


def said_once(items: Sequence[Json]) -> list[Json]:
    """`items` without those that are said again under their id: the provider refuses a history that has one twice."""
    named = [(item, item.get("id") or item.get("call_id")) for item in items]
    return [item for place, (item, name) in enumerate(named) if not (name and item in items[:place])]


def call_id_of(item: Json) -> str:
    """The id that a result must carry: `call_id`, or the item's own where a server knows only that."""
    return name_in(item, "call_id") or name_in(item, "id")


def texts_in(item: Json) -> list[Text]:
    """The texts of a message item; a refusal is one, for it is what the model said."""
    return [Text(part["refusal"] if part["type"] == "refusal" else part.get("text") or "") for part in parts_of(item)]


def said_in(item: Json, provider: str) -> list[AssistantPart]:
    """The texts of a message item, each with what it cites after it, for people to read."""
    parts: list[AssistantPart] = []
    for text, part in zip(texts_in(item), parts_of(item), strict=True):
        if text.text:
            parts.append(text)
        if text.text.strip() and (cited := list_in(part, "annotations")):
            parts.append(Opaque(provider, {"type": CITING, "text": text.text, "annotations": cited}))
    return parts


def parts_of(item: Json) -> list[Json]:
    """The parts of a message item, of which some servers give the only one as it is, or its text alone."""
    content = item.get("content") or []
    if isinstance(content, str):
        return [{"type": "output_text", "text": content}]
    return [content] if isinstance(content, dict) else content


def thinking_in(item: Json, place: str | None = None) -> Thinking:
    """A reasoning item: the reasoning itself, which open models show and want back, or its summary and sealed form.

    What is sealed has `place`, where it is, as its signature: no other can open it, and who cannot refuses the request.
    """
    summary, content = ["\n\n".join(part["text"] for part in item.get(field) or ()) for field in ("summary", "content")]
    sealed = item.get("encrypted_content") or None
    if content and sealed is None:
        # Never without an id, by which the other dialects know that it is not theirs.
        return Thinking(content, signature=READABLE, id=item.get("id") or "")
    return Thinking(summary or content, signature=place if sealed else None, data=sealed, id=item.get("id"))


def in_text(item: Json) -> Json:
    """`item`, if it is a call of a function with its arguments and ids as text: some give an object, and numbers."""
    if item.get("type") != "function_call":
        return item
    arguments = item.get("arguments")
    written = {"arguments": arguments_in(arguments)} if isinstance(arguments, dict) else {}
    written |= {name: name_in(item, name) for name in ("id", "call_id") if type(item.get(name)) is int}
    return {**item, **written} if written else item


def is_phase(value: Json) -> bool:
    """Whether an `Opaque` part's value is the label of the message that follows.

    Models that label their messages ("commentary", "final_answer") want the label back with them.
    """
    return value.get("type") == "message" and "content" not in value


def waits_for(output: Sequence[Json]) -> str:
    """What the items of a response leave to the caller that nobody here can do, and what to do; empty if nothing."""
    ended = {item.get("call_id") for item in output if str(item.get("type")).endswith("_output")}
    for item in output:
        kind, name = item.get("type"), item.get("name")
        if kind == APPROVAL:
            server = item.get("server_label")
            return (
                f"wants an approval before it calls {name!r} of the MCP server {server!r}, and none can be given here: "
                'ask for that server with "require_approval": "never", or give the agent MCP tools of its own'
            )
        searches = kind == "tool_search_call" and item.get("execution") == "client"
        if (kind in CALLERS or searches) and item.get("call_id") not in ended:
            return f"calls a tool that it leaves to the caller ({kind}), which is not carried out here: use functions"
    return ""


def tokens_of(output: Iterable[Json]) -> int:
    """The tokens of the messages among the items of `output`, at most."""
    texts = [part.text for item in output if item.get("type") == "message" for part in texts_in(item)]
    return estimate_text("".join(texts)) if texts else 0


def taken_back(item: Json) -> Json:
    """An item as it goes back to the provider that gave it."""
    return {name: item[name] for name in DRAWN_FIELDS if name in item} if item.get("type") == DRAWN else item
