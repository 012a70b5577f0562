"""Models: the port that they all speak, the errors that they raise, and the models themselves.

What needs an HTTP client or a library of its own is imported when it is first used.
"""

from typing import TYPE_CHECKING, Any

from treadle.kernel.messages import (
    AssistantMessage,
    File,
    FinishReason,
    Image,
    Message,
    ModelSettings,
    Opaque,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from treadle.models.errors import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    ContentFiltered,
    ContextOverflow,
    ModelError,
    ModelTimeout,
    Overloaded,
    ProtocolError,
    QuotaExceeded,
    RateLimited,
    ReplyTooLong,
    ToolUseFailed,
    UnfinishedReply,
)
from treadle.models.port import (
    AttemptFailed,
    Model,
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
    Usual,
)
from treadle.models.price import Price
from treadle.models.price_table import PriceTable
from treadle.models.profile import ModelProfile

if TYPE_CHECKING:
    from treadle.models.anthropic_model import AnthropicModel
    from treadle.models.bedrock_model import BedrockModel
    from treadle.models.fallback import FallbackModel
    from treadle.models.google_model import GoogleModel
    from treadle.models.langchain import LangChainModel
    from treadle.models.named import model_from_name
    from treadle.models.offline import OfflineModel
    from treadle.models.openai_model import OpenAIChatModel, OpenAIResponsesModel
    from treadle.models.text_tools import TextTools
    from treadle.models.timeouts import Timeouts

_LATER = {
    "AnthropicModel": "anthropic_model",
    "BedrockModel": "bedrock_model",
    "OpenAIChatModel": "openai_model",
    "OpenAIResponsesModel": "openai_model",
    "FallbackModel": "fallback",
    "GoogleModel": "google_model",
    "LangChainModel": "langchain",
    "OfflineModel": "offline",
    "TextTools": "text_tools",
    "Timeouts": "timeouts",
    "model_from_name": "named",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "AnthropicModel", "AssistantMessage", "AttemptFailed", "AuthenticationFailed", "BadRequest",
    "BedrockModel", "ConnectionFailed",
    "ContentFiltered", "ContextOverflow", "FallbackModel", "File", "FinishReason", "Image", "LangChainModel", "Message",
    "GoogleModel",
    "Model", "ModelError", "ModelEvent", "ModelProfile", "ModelReply", "ModelRequest", "ModelSettings", "ModelTimeout",
    "OfflineModel", "Opaque", "OpenAIChatModel", "OpenAIResponsesModel", "Overloaded", "Price", "PriceTable",
    "ProtocolError", "QuotaExceeded", "RateLimited", "ReplyTooLong", "SystemMessage", "Text", "TextDelta", "TextTools",
    "Thinking", "ThinkingDelta", "Timeouts", "ToolCall", "ToolCallCompleted", "ToolCallDelta", "ToolCallStarted",
    "ToolMessage", "ToolSpec", "ToolUseFailed", "UnfinishedReply", "Usage", "UsageReported", "UserMessage", "Usual",
    "model_from_name",
]  # fmt: skip
