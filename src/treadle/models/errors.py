"""What can go wrong between treadle and a model, by type. No message here ever holds a key."""

from typing import Any, ClassVar

from treadle.kernel.messages import Usage


class ModelError(Exception):
    """A model call failed.

    Attributes:
        kind: the error's name in journals and results.
        retryable: whether the same call may succeed a little later.
        retry_after: seconds that the provider asked to wait, if it did.
        status: the HTTP status, if there was one.
        request_id: the provider's name for the exchange, if it gave one.
        usage: what the provider says that the failed call took, if it does.
        model: the model that failed, where it is one of several that another stands for.
        gave_up: whether it was not waited for any longer: its provider had the request, and may have gone on with it.
    """

    kind: ClassVar[str] = "model_error"
    retryable: ClassVar[bool] = False
    usage: Usage | None = None
    model: Any = None
    gave_up: bool = False

    def __init__(
        self, message: str, *, retry_after: float | None = None, status: int | None = None, request_id: str = ""
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.status = status
        self.request_id = request_id


class RateLimited(ModelError):
    """Too many requests or tokens in a time; try again later."""

    kind = "rate_limited"
    retryable = True


class QuotaExceeded(RateLimited):
    """What the account may use is used up; it takes a payment, or another month, and not another attempt."""

    kind = "quota_exceeded"
    retryable = False


class Overloaded(ModelError):
    """The provider cannot serve the request now."""

    kind = "overloaded"
    retryable = True


class ContextOverflow(ModelError):
    """The request is longer than the model's context."""

    kind = "context_overflow"


class AuthenticationFailed(ModelError):
    """The key is missing, wrong, or not allowed to use the model."""

    kind = "authentication_failed"


class BadRequest(ModelError):
    """The provider rejected the request; the message has its words."""

    kind = "bad_request"


class ToolUseFailed(BadRequest):
    """The provider would not pass on the tool call that its model wrote; asked again, the model may write a better one.

    Attributes:
        failed_text: what the model wrote, as far as the provider showed it.
    """

    kind = "tool_use_failed"
    retryable = True

    def __init__(
        self,
        message: str,
        *,
        failed_text: str = "",
        retry_after: float | None = None,
        status: int | None = None,
        request_id: str = "",
    ) -> None:
        super().__init__(message, retry_after=retry_after, status=status, request_id=request_id)
        self.failed_text = failed_text


class ContentFiltered(ModelError):
    """The provider refused the content of the request."""

    kind = "content_filtered"


class ConnectionFailed(ModelError):
    """The provider could not be reached, or the connection broke."""

    kind = "connection_failed"
    retryable = True


class ModelTimeout(ModelError):
    """The model took longer than its time limit."""

    kind = "model_timeout"
    retryable = True
    gave_up = True


class ProtocolError(ModelError):
    """What came back is not what the protocol allows."""

    kind = "protocol_error"
    retryable = True


class ReplyTooLong(ModelError):
    """A reply that goes on and on: it was given up at `treadle.models.bounds.LONGEST_REPLY`."""

    kind = "reply_too_long"


class UnfinishedReply(ProtocolError):
    """A reply that ended with a word that nobody knows to mean that it is whole, or with calls that are not there.

    Nothing of it is used or carried out. It was paid for all the same, and is counted.
    """

    kind = "unfinished_reply"


class UnsoundReply(ProtocolError):
    """A reply that holds what no reply may hold, such as a finish that treadle has no word for.

    It is a mistake of whoever wrote the model, which would be made again.
    """

    kind = "unsound_reply"
    retryable = False
