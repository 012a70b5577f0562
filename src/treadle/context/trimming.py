"""What context policies are made of: the exchanges of a history, which of them may go, and what each message weighs."""

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct

from treadle.context.tokens import estimate_tokens
from treadle.kernel.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage


class Weighed(Struct, frozen=True):
    """What each message takes of a request whose size is known: the estimates, scaled so that they add up to it."""

    factor: float
    tokens: tuple[float, ...]

    @classmethod
    def of(cls, messages: Sequence[Message], tokens: int, fixed: int) -> "Weighed":
        """The weights of `messages` in a request of `tokens` tokens, `fixed` of which (by estimate) are not in them."""
        estimates = [estimate_tokens(message) for message in messages]
        factor = tokens / max(1, fixed + sum(estimates))
        return cls(factor, tuple([factor * estimate for estimate in estimates]))


def exchanges(messages: Sequence[Message]) -> list[range]:
    """`messages` in the pieces that stay together or go together.

    A piece is an assistant message with its results, or one message of another kind. An assistant message right after
    another belongs to it: the provider interrupted a turn of the model there.
    """
    starts: list[int] = []
    for i, message in enumerate(messages):
        follows = isinstance(message, AssistantMessage) and i > 0 and isinstance(messages[i - 1], AssistantMessage)
        if not isinstance(message, ToolMessage) and not follows:
            starts.append(i)
    return [range(a, b) for a, b in zip(starts, [*starts[1:], len(messages)], strict=True)]


def last_exchange(messages: Sequence[Message]) -> int:
    """Where the last exchange with the model begins, which always stays, with all after it."""
    i = len(messages) - 1
    while i > 0 and not isinstance(messages[i], AssistantMessage):
        i -= 1
    while i > 0 and isinstance(messages[i - 1], AssistantMessage):
        i -= 1
    return max(0, i)


def expendable(
    messages: Sequence[Message], pinned: Collection[UserMessage], keeps: Callable[[Message], bool] = lambda _: False
) -> list[range]:
    """The exchanges that may go, oldest first; notices of what went before are among them.

    One with a result that `keeps` says to stay goes nowhere, and neither do the instructions of a skill.
    """
    kept, recent = frozenset(pinned), last_exchange(messages)
    out: list[range] = []
    first = True
    for exchange in exchanges(messages):
        message = messages[exchange[0]]
        if exchange[0] >= recent:
            break
        if isinstance(message, UserMessage) and not message.left_out:
            if not first and message not in kept and not message.skill:
                out.append(exchange)
            first = False
        elif not isinstance(message, SystemMessage) and not any(keeps(messages[i]) for i in exchange):
            out.append(exchange)
    return out
