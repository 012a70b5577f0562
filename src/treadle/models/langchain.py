"""LangChain: any chat model of LangChain as a `Model`, and messages to and from LangChain's.

Needs the extra `langchain` (`pip install "treadle[langchain]"`), which is imported where it is used. Neighbours:
`treadle.models.langchain_messages`, the conversion of messages; `treadle.models.langchain_reply`, the reading of
replies; `treadle.models.failures`, which tells errors by status and words.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import AssistantMessage, Json, Message, ModelSettings, ToolSpec, Usage
from treadle.models.codec import answerable
from treadle.models.errors import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    ContextOverflow,
    ModelError,
    ModelTimeout,
    Overloaded,
    RateLimited,
)
from treadle.models.extra import REPLIES, check_extra
from treadle.models.failures import codes_of, error_for, redact, text_of_error
from treadle.models.fixed import billed
from treadle.models.guarded import ended_early
from treadle.models.history import History
from treadle.models.hosts import Host, takes_turns
from treadle.models.langchain_messages import from_langchain, to_langchain
from treadle.models.langchain_reply import Reading
from treadle.models.lost_calls import LostCalls
from treadle.models.order import SILENT, Order
from treadle.models.permission import require_permission
from treadle.models.port import ModelEvent, ModelRequest
from treadle.models.price import Price
from treadle.models.price_table import PriceTable, own_price
from treadle.models.profile import ModelProfile, OutputMode, profile_with_window
from treadle.models.sound import reported_of
from treadle.models.terms import Terms, asked_terms, named_terms
from treadle.models.tool_schema import as_taken

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

NO_TOOLS: Final[Mapping[str, Any]] = {"anthropic-chat": {"type": "none"}}
"""By the kind of chat model: how to offer tools and have none called, where a history with calls must have tools."""

NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "chat-ollama": {"max_tokens": "num_predict"},
    "chat-google-generative-ai": {"max_tokens": "max_output_tokens"},
    "vertexai": {"max_tokens": "max_output_tokens"},
}
"""By the kind of chat model: what it calls a setting, if not as most do."""

TELL_THE_END: Final = frozenset({
    "openai-chat", "azure-openai-chat", "anthropic-chat", "chat-google-generative-ai", "groq-chat", "mistralai-chat",
    "fireworks-chat", "chat-deepseek", "xai-chat", "chat-ollama", "amazon_bedrock_converse_chat",
})  # fmt: skip
"""The kinds of chat models that say why each reply ended, as their packages have it: one that does not broke off."""

OWN_SETTINGS: Final = ("service_tier", "context_management", "mcp_servers")
"""What chat models are given themselves that changes the bill."""

KINDS: Final[Mapping[str, type[ModelError]]] = {
    "ContextOverflowError": ContextOverflow,
    "ModelRateLimitError": RateLimited,
    "ModelAuthenticationError": AuthenticationFailed,
    "ModelPermissionDeniedError": AuthenticationFailed,
    "ModelInvalidRequestError": BadRequest,
    "ModelNotFoundError": BadRequest,
    "ModelTimeoutError": ModelTimeout,
    "ModelConnectionError": ConnectionFailed,
    "ModelAPIError": Overloaded,
    "APITimeoutError": ModelTimeout,
    "TimeoutException": ModelTimeout,
    "TimeoutError": ModelTimeout,
    "APIConnectionError": ConnectionFailed,
    "TransportError": ConnectionFailed,
    "ConnectionError": ConnectionFailed,
}
"""Errors by the name of a class: LangChain's own, the official clients', httpx's and Python's."""


class LangChainModel:
    """A chat model of LangChain.

    Tools are bound as JSON Schemas and replies are streamed where the chat model can. The history is converted message
    by message and what was converted is sent again in the next step, so nothing may change the messages that a chat
    model is given. Retries belong to the run: give the chat model `max_retries=0`.

    An `output=` type is asked for by a final tool, or in words of a chat model that takes no tools; never by the
    provider's own means. LangChain has one form for them all, `response_format` for the models whose profile has
    `structured_output`, but beside tools it does not hold: `ChatOpenAI` then refuses tools that are not strict, and
    some providers take either tools or a schema. Its `with_structured_output` gives the parsed value in place of the
    reply as it is streamed.

    Args:
        chat_model: a `BaseChatModel`, not one that tools are bound to.
        name: what it is called in results and journals; by default "langchain:" and the model's name.
        price: what it costs, or a table of prices in which its name stands; by default as the file has it that the
            environment variable TREADLE_PRICES names. Without one the cost of a run is unknown.
        setting_names: what the chat model calls our settings, such as {"max_tokens": "num_predict"}, if not the same.

    Raises:
        Misuse: it is no chat model.
    """

    def __init__(
        self,
        chat_model: "BaseChatModel",
        *,
        name: str | None = None,
        price: Price | PriceTable | None = None,
        setting_names: Mapping[str, str] | None = None,
    ) -> None:
        try:
            from langchain_core.language_models.chat_models import BaseChatModel
        except ImportError as error:
            raise Misuse('LangChainModel needs langchain-core: pip install "treadle[langchain]"') from error
        if not isinstance(chat_model, BaseChatModel):
            raise Misuse(
                f"LangChainModel takes a chat model, such as ChatOpenAI(…), without tools bound to it; it was given a "
                f"{type(chat_model).__name__}"
            )
        self.chat_model = chat_model
        self.name = name or f"langchain:{_model_name(chat_model)}"
        self.price = own_price(self.name, price)
        self._kind = chat_model._llm_type
        self._names = {**NAMES.get(self._kind, {}), **(setting_names or {})}
        is_strict = takes_turns(Host(), _model_name(chat_model))
        self._order = Order() if is_strict else None
        self._history = _history_for(self._kind, is_strict)
        self._tells_end = self._kind in TELL_THE_END
        self._lost_calls = LostCalls(self.name)

    def __repr__(self) -> str:
        return f"LangChainModel({type(self.chat_model).__name__}, name={self.name!r})"

    @property
    def profile(self) -> ModelProfile:
        """What the chat model can do, as far as its own profile has it.

        An answer of a type is asked for by a final tool, if the chat model takes tools; else in words.
        """
        from langchain_core.language_models.chat_models import BaseChatModel

        tools = type(self.chat_model).bind_tools is not BaseChatModel.bind_tools
        mode: OutputMode = "tool" if tools else "prompted"
        profile = ModelProfile(output=mode, output_beside_tools=mode, tools=tools, thinking=False)
        return profile_with_window(profile, self._profile("max_input_tokens"))

    @property
    def max_output_tokens(self) -> int | None:
        """The longest reply, if the chat model's profile has it."""
        return self._profile("max_output_tokens")

    def fixed_tokens(self, tools: Sequence[ToolSpec], output_schema: Json | None) -> int:
        """Tokens that a request with these has besides its messages: nobody knows which host adds what, so the most."""
        return billed(Host(), tools, output_schema)

    def cost(self, usage: Usage) -> Decimal | None:
        """What `usage` costs, if the model was given a price."""
        return None if self.price is None else self.price.of(usage)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Replies to `request`, the whole reply last.

        Raises:
            ModelError: what went wrong outside, told by LangChain's own errors, or else by HTTP status and words.
            Misuse: the chat model cannot take tools, or a setting has no common name among chat models.
        """
        require_permission(self.name)
        if "anthropic" not in self._kind:
            request = answerable(request)
        options = self._options(request.settings)
        bound = self._bound(request)
        reading = Reading(self.name, tells_end=self._tells_end, kind=self._kind, model=_model_name(self.chat_model))
        try:
            ordered = None if self._order is None else self._order.of(request.run_id, request.messages)
            with self._history.follow(request.run_id, request.messages if ordered is None else ordered) as trail:
                converted = list(trail.made)
            chunks: Any = bound.astream(converted, **options)
            async with aclosing(_closable(chunks)) as pieces:
                async for chunk in pieces:
                    for event in reading.feed(chunk):
                        yield event
            completed, reply = reading.close()
            try:
                self._lost_calls.check(reply, request)
            except ModelError:
                yield reported_of(reply)
                raise
            # Who has said once why a reply ended says it of each that did.
            self._tells_end = self._tells_end or bool(reply.finish_detail)
        except (ModelError, Misuse):
            raise
        except Exception as error:
            raise told(self.name, error) from error
        for event in completed:
            yield event
        yield reply

    def terms(self, settings: ModelSettings) -> Terms:
        """On what terms a request with `settings` is billed, what the chat model itself asks for included."""
        own = {name: value for name in OWN_SETTINGS if (value := getattr(self.chat_model, name, None)) is not None}
        extra = {**own, **(getattr(self.chat_model, "model_kwargs", None) or {}), **(settings.extra or {})}
        return named_terms(asked_terms(ModelSettings(extra=extra), hour=True), _model_name(self.chat_model))

    def _profile(self, name: str) -> int | None:
        profile = getattr(self.chat_model, "profile", None)
        value: int | None = profile.get(name) if isinstance(profile, Mapping) else None
        return value

    def _bound(self, request: ModelRequest) -> Any:
        """The chat model with the request's tools bound to it."""
        choice = request.tool_choice
        if not request.tools or (choice == "none" and self._kind not in NO_TOOLS):
            return self.chat_model
        options: dict[str, Any] = {}
        if choice == "none":
            options["tool_choice"] = NO_TOOLS[self._kind]
        elif choice != "auto":
            options["tool_choice"] = "any" if choice == "required" else choice
        if request.settings.parallel_tool_calls is not None:
            options["parallel_tool_calls"] = request.settings.parallel_tool_calls
        try:
            return self.chat_model.bind_tools([_tool(spec) for spec in request.tools], **options)
        except NotImplementedError as error:
            raise Misuse(
                f"{type(self.chat_model).__name__} cannot take tools (it has no bind_tools); wrap it: "
                "TextTools(LangChainModel(…)) asks for them in words"
            ) from error

    def _options(self, settings: ModelSettings) -> dict[str, Any]:
        if settings.thinking is not None:
            raise Misuse("settings.thinking has no common name among chat models: give it to the chat model itself")
        options: dict[str, Any] = {}
        for name in ("max_tokens", "temperature", "top_p", "seed"):
            if (value := getattr(settings, name)) is not None:
                options[self._names.get(name, name)] = value
        if settings.stop is not None:
            options["stop"] = list(settings.stop)
        own = {name: getattr(self.chat_model, name, None) for name in REPLIES}
        check_extra({**own, **(getattr(self.chat_model, "model_kwargs", None) or {})}, "the chat model")
        check_extra(settings.extra)
        return options | (settings.extra or {})


def told(name: str, error: Exception) -> ModelError:
    """The typed error for what a chat model raised."""
    words = redact(f"{error}" or type(error).__name__)
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    headers = {str(key).lower(): str(value) for key, value in (getattr(response, "headers", None) or {}).items()}
    if isinstance(error, ValueError) and "No generation chunks" in words:
        # What LangChain says of a stream without any chunk.
        return ended_early(name, begun=False)
    kind = next((KINDS[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in KINDS), None)
    if isinstance(status, int) and status >= 400 and kind is not ContextOverflow:
        return error_for(name, words, status=status, headers=headers)
    body = getattr(error, "body", None)
    if kind is None and isinstance(body, dict):
        # The official clients have no class of their own for what a provider says in its stream.
        inner = body.get("error")
        return error_for(name, text_of_error(body), code=codes_of(inner if isinstance(inner, dict) else body))
    if kind is None:
        return ModelError(f"{name} raised {type(error).__name__}: {words}")
    return kind(f"{name}: {words}", status=status if isinstance(status, int) else None)


async def _closable(chunks: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
    """The chunks of a stream that is closed with this one."""
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()


def _history_for(kind: str, is_strict: bool) -> History[list[Any]]:
    """A history kept as LangChain's messages for a chat model of `kind`; bounded, by about the bytes that they hold."""
    from langchain_core.messages import AIMessage

    def put(group: Sequence[Message], made: list[Any]) -> None:
        for message in group:
            converted = to_langchain([message], sendable=True, kind=kind)
            silent = type(message) is AssistantMessage and not any(one.content or message.calls for one in converted)
            # Where sides take turns, one that says nothing has its turn, also where it thought.
            made += [AIMessage(SILENT)] if is_strict and silent else converted

    def weigh(made: list[Any], start: int) -> int:
        return sum(len(str(one.content)) + len(str(getattr(one, "tool_calls", ""))) for one in made[start:])

    return History(list, put, weigh=weigh)


def _tool(spec: ToolSpec) -> Json:
    """The form of tools that every integration's `bind_tools` takes."""
    words, schema = as_taken(spec)
    return {"type": "function", "function": {"name": spec.name, "description": words, "parameters": schema}}


def _model_name(chat_model: "BaseChatModel") -> str:
    names: Sequence[str] = [str(getattr(chat_model, name, None) or "") for name in ("model_name", "model", "model_id")]
    return next(filter(None, names), type(chat_model).__name__)


__all__ = ["LangChainModel", "from_langchain", "to_langchain"]
