"""Histories to try policies on: made by hand, and generated."""

from collections.abc import Iterable

from hypothesis import strategies as st

from treadle.context.policies import ClearToolResults, KeepFirstAndRecent, ShortenResult, Summarise
from treadle.context.texts import LIKELY
from treadle.context.tokens import estimate_tokens
from treadle.kernel.messages import (
    AssistantMessage,
    Image,
    Message,
    Opaque,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)


def exchange(name: str, *results: str) -> list[Message]:
    """An assistant message with a call for each of `results`, and these."""
    calls = tuple(ToolCall(f"{name}_{i}", "look", "{}") for i in range(len(results)))
    return [
        AssistantMessage((Text(f"step {name}"), *calls)),
        *(ToolMessage(call.id, "look", result) for call, result in zip(calls, results, strict=True)),
    ]


def history(exchanges: int, result: str = "word " * 100) -> list[Message]:
    """Instructions, a question, and as many exchanges."""
    messages: list[Message] = [SystemMessage("be brief"), UserMessage("the question")]
    for i in range(exchanges):
        messages += exchange(f"c{i}", f"result {i}: {result}")
    return messages


def tokens_of(messages: list[Message], fixed: int = 0) -> int:
    return round(LIKELY * (fixed + sum(estimate_tokens(message) for message in messages)))


def notices(messages: Iterable[Message]) -> list[UserMessage]:
    """What in `messages` stands for earlier ones that a policy left out or summarised."""
    return [message for message in messages if isinstance(message, UserMessage) and message.left_out]


texts = st.builds(
    lambda word, times: word * times,
    st.sampled_from(["word ", "Wörter ", '{"amount": 1}', "数字", "x"]),
    st.sampled_from([0, 1, 3, 30, 300]),
)
contents = st.one_of(
    texts, texts, texts, st.builds(lambda text: (Text(text), Image(b"png")), texts), st.just((Image(url="u"),))
)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """A valid history: instructions or none, then anything that may follow on something."""
    messages: list[Message] = [SystemMessage("instructions " * 20)] if draw(st.booleans()) else []
    ids = st.sampled_from([0, 0, 0, 1])
    for number in range(draw(st.integers(1, 14))):
        match draw(st.sampled_from(["user", "reply", "calls", "calls", "calls", "interrupted"])):
            case "user":
                messages.append(UserMessage(draw(contents.filter(bool))))
            case "reply":
                messages.append(AssistantMessage((Text(f"reply {number} {draw(texts)}"),)))
            case "interrupted":
                messages.append(AssistantMessage((Opaque("anthropic", {"n": number}),)))
                messages.append(AssistantMessage((Text("and so on"),)))
            case _:
                name = "again" if draw(ids) else f"c{number}"
                results = draw(st.lists(st.tuples(contents, st.booleans()), min_size=1, max_size=3))
                calls = tuple(ToolCall(f"{name}_{i}", "look", draw(texts)) for i in range(len(results)))
                messages.append(AssistantMessage((Thinking("hm", "signed"), *calls)))
                for call, (content, is_error) in zip(calls, results, strict=True):
                    messages.append(ToolMessage(call.id, "look", content, is_error))
    return messages


marks = st.tuples(st.integers(1, 4000), st.integers(0, 3999)).filter(lambda pair: pair[1] < pair[0])
policies = st.one_of(
    marks.map(lambda pair: KeepFirstAndRecent(*pair)),
    st.tuples(marks, st.integers(0, 4)).map(lambda one: ClearToolResults(*one[0], keep=one[1])),
    st.integers(100, 800).map(ShortenResult),
    marks.map(lambda pair: Summarise("a model", *pair)),
)
chains = st.lists(policies, min_size=1, max_size=4)
