"""Models: the port that they all speak, and the errors that they raise."""

from treadle.kernel.messages import (
    AssistantMessage,
    File,
    Finish,
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
    RateLimited,
)
from treadle.models.port import (
    Model,
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)

__all__ = [
    "AssistantMessage", "AuthenticationFailed", "BadRequest", "ConnectionFailed", "ContentFiltered", "ContextOverflow",
    "File", "Finish", "Image", "Message", "Model", "ModelError", "ModelEvent", "ModelReply", "ModelRequest",
    "ModelSettings", "ModelTimeout", "Opaque", "Overloaded", "ProtocolError", "RateLimited", "SystemMessage", "Text",
    "TextDelta", "Thinking", "ThinkingDelta", "ToolCall", "ToolCallCompleted", "ToolCallDelta", "ToolCallStarted",
    "ToolMessage", "ToolSpec", "Usage", "UserMessage",
]  # fmt: skip
