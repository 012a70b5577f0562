"""Bedrock's Converse: requests written, errors named; what comes back is read by `treadle.models.bedrock_stream`.

Pure. The format is that of https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html, one for
the models of many makers: what only some of them take is in `treadle.models.bedrock_makers`. Neighbours:
`treadle.models.bedrock_blocks`, what messages become; `treadle.models.codec` (the port, and the history kept encoded);
`treadle.models.bedrock_model`, which has the region and the key.
"""

import re
import reprlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import AssistantMessage, Json, Message, ModelSettings, ToolSpec
from treadle.models.anthropic_thinking import held_thinking, longest_thinking, thinking_fields
from treadle.models.bedrock_blocks import DOCUMENT, LONGEST_NAME, Blocks, TextBlock, reasoning_tag, user_blocks
from treadle.models.bedrock_makers import CachePlace, Maker, maker_of
from treadle.models.bedrock_stream import BedrockDecoder
from treadle.models.codec import Decoder, body_bytes, json_bytes
from treadle.models.efforts import effort_of
from treadle.models.errors import BadRequest, ModelError
from treadle.models.extra import add_extra, longest
from treadle.models.failures import error_for, error_for_page, text_of_error
from treadle.models.guarded import Guarded
from treadle.models.history import History, Trail
from treadle.models.identifiers import identifier
from treadle.models.output_schema import anthropic_schema
from treadle.models.port import ModelEvent, ModelRequest
from treadle.models.profile import ModelProfile
from treadle.models.tool_schema import CLAUDES, as_taken
from treadle.models.turns import SHORT, marks, passing_blocks, same_turn, size_of

OWN: Final = "additionalModelRequestFields"
"""The field for what only the model knows."""
TURN_END: Final = b"]},"
"""How a turn ends in the history after its last block."""

SKEWED: Final = re.compile(r"signature (?:expired|not yet current)|request ?(?:has )?expired", re.IGNORECASE)
"""How AWS says that the time in a signature is not that of its own clock."""


class BedrockCodec:
    """The Converse dialect; see `treadle.models.codec.Codec`.

    Args:
        model: the model whose replies are read, where one codec is for one model: whose reasoning it is.
        provider: the provider's name, for errors and `Opaque` parts.
        max_tokens: tokens that a reply of a Claude model may have where the request's settings do not say; what it
            thinks comes on top. Other models are left to the provider.
        cache: how long the provider is to keep the prefix of a run, or None for no prompt caching. The cache points
            stand at the end of the tools, of the system text and of the last two user turns, before messages that
            pass, as far as the model's maker takes them.
    """

    def __init__(
        self,
        model: str = "",
        provider: str = "bedrock",
        *,
        max_tokens: int = 16_000,
        cache: Literal["5m", "1h"] | None = "5m",
    ) -> None:
        self.provider = provider
        self.max_tokens = max_tokens
        self.cache = cache
        self._tag = reasoning_tag(provider, maker_of(model))
        self._histories: dict[Maker, History[bytearray]] = {}

    def path(self, model: str, stream: bool) -> str:
        """Where requests go, below the base URL. Raises `Misuse` for a name that cannot be part of an address."""
        if not model.strip(".") or len(model) > 2048:
            raise Misuse(f"Bedrock has no model that is called {model[:100]!r}; give its id or its ARN")
        # What a name holds never changes which address it is: a slash and all else that means something is quoted.
        return (
            f"/model/{quote(model.encode('utf-8', 'replace'), safe='')}/{'converse-stream' if stream else 'converse'}"
        )

    def profile(self, model: str) -> ModelProfile:
        """What `model` can do. Which models are held to a schema differs by region, and the rest refuse the request."""
        maker = maker_of(model)
        return ModelProfile(
            output="tool",
            output_beside_tools="tool",
            tools=True,
            prefix_cache=self.cache is not None if maker.cache else None,
            thinking=True if maker.thinking is not None else None,
        )

    def longest(self, settings: ModelSettings, model: str) -> int | None:
        """The most tokens that a reply of `model` may have under `settings`; None if only the provider knows."""
        check_extra_fields(settings.extra)
        if maker_of(model).thinking != "claude":
            return longest(settings)
        return longest(settings) or longest_thinking(_of_model(settings), model, self.max_tokens)

    def held(self, settings: ModelSettings, model: str, tokens: int) -> ModelSettings:
        """`settings` under which a reply has at most `tokens`, with room for an answer beside its thinking."""
        settings = replace(settings, max_tokens=tokens)
        if maker_of(model).thinking != "claude":
            return settings
        inner = _of_model(settings)
        held = held_thinking(inner, model, tokens)
        extra = settings.extra
        if held.extra != inner.extra:
            extra = {**(extra or {}), OWN: held.extra}
        return replace(held, extra=extra)

    def encode(self, request: ModelRequest, model: str, stream: bool) -> bytes:
        """The request body. Raises `BadRequest` for what this API or this model has no place for."""
        maker = maker_of(model)
        settings, extra = request.settings, dict(request.settings.extra or {})
        check_extra_fields(extra)
        with self._history(maker).follow((request.run_id, model), request.messages) as trail:
            body: Json = {"inferenceConfig": self._inference(settings, model, maker)}
            own_tools: Json = extra.pop("toolConfig", {})
            tools, choice = self._tools(request, trail, maker)
            described = [_tool(spec) for spec in tools]
            described += own_tools.get("tools", [])
            if described:
                body["toolConfig"] = {**own_tools, "tools": self._ended(described, "tools", maker)}
            fields = self._choose(body, choice, settings, maker) if tools else {}
            fields |= self._thinking(body, settings, model, maker, choice not in ("auto", "none"))
            if request.output_schema is not None:
                # Claude's own field for an effort is the one that this becomes: what it says must be said here.
                effort: Json = fields.pop("output_config", {})
                body["outputConfig"] = {"textFormat": _text_format(request.output_schema), **effort}
            if fields:
                body[OWN] = fields
            system: list[Json] = [{"text": content} for content in trail.system if content.strip()]
            if system:
                body["system"] = self._ended(system, "system", maker)
            add_extra(body, extra)
            # What is written with a choice that no other step has is never read.
            alone = request.usual is not None and choice != request.usual.tool_choice
            point = None if alone or not self._keeps(maker, "messages") else self._point(maker)
            put = () if point is None else marks(b"," + json_bytes(point), trail, TURN_END, _passing(request))
            return body_bytes(body, "messages", trail.made, put)

    def decoder(self) -> Decoder:
        """A decoder for one streamed reply."""
        decoder = BedrockDecoder(self.provider, self._stream_error, tag=self._tag, hour=self.cache == "1h")
        return Guarded(self.provider, decoder)

    def decode_body(self, body: Json) -> list[ModelEvent]:
        """The same events from a whole JSON body, the reply last. Raises `ModelError` if it holds an error."""
        return self.decoder().whole(body)

    def error(self, status: int, headers: Mapping[str, str], body: Json | str) -> ModelError:
        """The typed error that an HTTP error response means; `headers` have lower-case names."""
        code = headers.get("x-amzn-errortype", "").partition(":")[0]
        if not isinstance(body, str):
            words = _words(body)
            if SKEWED.search(words):
                words = (
                    f"{words} The clock of this machine, or of who signed, is off: signatures count for five minutes"
                )
            return error_for(self.provider, words, status=status, code=code or _code(body), headers=headers)
        if code and body.lstrip()[:1] != "<":
            return error_for(self.provider, body, status=status, code=code, headers=headers)
        return error_for_page(self.provider, status, headers, body)

    def _stream_error(self, error: Any) -> ModelError:
        if not isinstance(error, dict):
            return error_for(self.provider, text_of_error(error))
        return error_for(self.provider, _words(error), code=_code(error))

    def _history(self, maker: Maker) -> History[bytearray]:
        """What is kept encoded for the models of one maker."""
        kept = self._histories.get(maker)
        if kept is None:
            blocks = Blocks(self.provider, maker)

            def put(group: Sequence[Message], made: bytearray) -> None:
                for turn in blocks.turns(group, not made, partial(made.count, DOCUMENT)):
                    made += json_bytes(turn)
                    made += b","

            kept = self._histories[maker] = History(bytearray, put, same_turn)
        return kept

    def _inference(self, settings: ModelSettings, model: str, maker: Maker) -> Json:
        most = settings.max_tokens
        if most is None and maker.thinking == "claude":
            most = longest_thinking(_of_model(settings), model, self.max_tokens)
        fields = {
            "maxTokens": most,
            "temperature": settings.temperature,
            "topP": settings.top_p,
            "stopSequences": list(settings.stop) if settings.stop else None,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def _thinking(self, body: Json, settings: ModelSettings, model: str, maker: Maker, forced: bool) -> Json:
        """The model's own fields that say how hard to think, in a reply of as many tokens as `body` has."""
        wish = settings.thinking
        if wish is None:
            return {}
        none = wish in ("none", 0)
        match maker.thinking:
            case "claude":
                return thinking_fields(_of_model(settings), model, body["inferenceConfig"]["maxTokens"], forced)
            case "nova":
                on: Json = {"type": "enabled", "maxReasoningEffort": effort_of(wish)}
                return {"reasoningConfig": {"type": "disabled"} if none else on}
            case "openai":
                return {"reasoning_effort": effort_of(wish)}
            case None if none:
                return {}
        raise BadRequest(
            f"nobody here knows how {model} is told at Bedrock how hard to think; leave thinking out, or give the "
            f"field that it has: ModelSettings(extra={{{OWN!r}: {{…}}}})"
        )

    def _tools(self, request: ModelRequest, trail: Trail[bytearray], maker: Maker) -> tuple[Sequence[ToolSpec], str]:
        """The tools to describe and the choice among them.

        Converse has no word for a choice of none, and takes no history with calls in it without any tool. So tools stay
        described while there are calls, and a step that takes them away tells the model in words. Where a prefix is
        kept, what a step takes away is left as it was: other tools drop all that is cached, another choice the
        messages.
        """
        usual, choice = request.usual, request.tool_choice
        called = b'"toolUse":' in trail.made
        tools = request.tools if usual is None else usual.tools
        if usual is not None and self._keeps(maker, "messages"):
            kept = ("auto",) if choice == "none" else ("auto", "required")
            if usual.tool_choice in kept and len(trail.made) >= SHORT:
                choice = usual.tool_choice
        if not called and choice == "none":
            return (), choice
        return tools or (_called(trail.messages) if called else ()), choice

    def _choose(self, body: Json, choice: str, settings: ModelSettings, maker: Maker) -> Json:
        """Puts the choice among the tools into `body`; where it goes among the model's own fields, returns these."""
        word: Literal["any", "tool"] | None = None
        if choice not in ("auto", "none"):
            wanted: Literal["any", "tool"] = "any" if choice == "required" else "tool"
            word = wanted if wanted in maker.forced else maker.forced[0] if maker.forced else None
        if maker.thinking == "claude" and settings.parallel_tool_calls is False:
            # Converse has no field for it, and takes Claude's in place of its own.
            named = {"name": choice} if word == "tool" else {}
            return {"tool_choice": {"type": word or "auto", **named, "disable_parallel_tool_use": True}}
        if word is not None:
            body["toolConfig"]["toolChoice"] = {word: {"name": choice} if word == "tool" else {}}
        return {}

    def _keeps(self, maker: Maker, place: CachePlace) -> bool:
        return self.cache is not None and place in maker.cache

    def _ended(self, blocks: list[Json], place: CachePlace, maker: Maker) -> list[Json]:
        """`blocks` with a cache point at the end, if one may stand there."""
        return [*blocks, self._point(maker)] if self._keeps(maker, place) else blocks

    def _point(self, maker: Maker) -> Json:
        return {"cachePoint": {"type": "default"} | ({"ttl": "1h"} if self.cache == "1h" and maker.hour else {})}


def check_extra_fields(extra: Json | None) -> None:
    """Refuses fields of the caller's own that would go round what a reply may cost, or cannot be joined to others.

    Raises:
        Misuse: `extra` bounds the reply in a field that no limit knows of, or a field of it is no object.
    """
    for place in ("inferenceConfig", OWN, "toolConfig"):
        inside = (extra or {}).get(place, {})
        if not isinstance(inside, dict):
            raise Misuse(f"settings.extra takes {place!r} as an object; it was given {reprlib.repr(inside)}")
        if not isinstance(inside.get("tools", []), list):
            raise Misuse(f"settings.extra[{place!r}] takes 'tools' as a list; it was given {reprlib.repr(inside)}")
        if name := next((name for name in ("maxTokens", "max_tokens", "max_gen_len") if name in inside), None):
            raise Misuse(
                f"settings.extra[{place!r}] has a field {name!r}: give ModelSettings(max_tokens=…), which counts"
            )


def _of_model(settings: ModelSettings) -> ModelSettings:
    """`settings` with the model's own fields as its extra ones, as its maker has them."""
    own = (settings.extra or {}).get(OWN)
    return replace(settings, extra=own if isinstance(own, dict) else None)


def _words(error: Json) -> str:
    """The words of an error; of one that the model gave, its own too."""
    error = {name[:1].lower() + name[1:]: value for name, value in error.items()}
    said = text_of_error(error)
    own = error.get("originalMessage")
    return f"{said}: {own}" if isinstance(own, str) and own and own not in said else said


def _code(error: Json) -> str:
    """The name of an exception: "com.amazon.coral.service#ThrottlingException" is one."""
    found = error.get("__type") or error.get("type") or error.get("code") or ""
    return str(found).rpartition("#")[2]


def _called(messages: Sequence[Message]) -> list[ToolSpec]:
    """The tools that were called, of which no more is known than that they are no longer there."""
    names = dict.fromkeys(call.name for one in messages if isinstance(one, AssistantMessage) for call in one.calls)
    return [ToolSpec(identifier(name, LONGEST_NAME), "No longer available.", {"type": "object"}) for name in names]


def _tool(spec: ToolSpec) -> Json:
    words, schema = as_taken(spec, CLAUDES)
    description = {"description": words} if words.strip() else {}
    return {"toolSpec": {"name": spec.name, **description, "inputSchema": {"json": schema}}}


def _text_format(schema: Json) -> Json:
    text = msgspec.json.encode(anthropic_schema(schema)).decode()
    return {"type": "json_schema", "structure": {"jsonSchema": {"name": "output", "schema": text}}}


def _passing(request: ModelRequest) -> int | None:
    """How many bytes at the end of the last turn are of messages that pass, the commas before their blocks counted.

    None where they hold more than text: what a document becomes depends on what is before it.
    """
    blocks = passing_blocks(request, user_blocks)
    return size_of(blocks) if all([type(block) is TextBlock for block in blocks]) else None
