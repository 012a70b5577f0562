"""Refused wishes: what to send in place of a request that asks for what its model will not do.

Some models cannot be made to call a tool: Claude's newest and GLM never, those of others where they think. GLM is not
to be told to call none either. The loop holds a step to its choice whatever the provider does, so such a request goes
again with the choice left to the model. And some cannot be told not to think, which are asked to think little. Names do
not tell which they are, on gateways least, and the same model takes at one cloud what it refuses at another: so each is
asked, and what it refuses is kept in mind.

Templates of open models (Gemma's, Mistral's) and others refuse a history in which the user speaks twice, as after a run
that failed, or right after results, as where a run is told of its limit. What the user said in a row is one message
then, and a word of the model's stands after results.

Behind gateways, too, DeepSeek and Kimi refuse a history in which the model did not think, or thought in another field.
Source: https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5

Pure but for what is kept of a model. Neighbour: `treadle.models.refused_thinking`, which puts it to use.
"""

import logging
import re
from collections.abc import Generator, Sequence
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from treadle.kernel.messages import AssistantMessage, Message, Thinking
from treadle.models.errors import BadRequest, ModelError, Overloaded
from treadle.models.order import Order
from treadle.models.port import ModelRequest

# Providers say it in many words, which name the choice all of them.
UNTAKEN: Final = re.compile(r"tool.?choice", re.IGNORECASE)
# Claude; OpenAI, in both its dialects; Gemini, by level and by budget; OpenRouter, of most that it serves; Groq.
UNSILENCED: Final = re.compile(
    r"thinking\.type\.disabled\W{1,3}is not supported|'none' is not supported with|'reasoning_effort' does not support"
    r"|thinking level minimal is not supported|only works in thinking mode|reasoning is mandatory for this"
    r"|reasoning_effort\W{1,3}must be one of",
    re.IGNORECASE,
)

# vLLM, llama.cpp and others in the words of the templates; Perplexity; Mistral; Converse, of some makers' models.
UNORDERED: Final = re.compile(
    r"(?:must|should) alternate|unexpected role 'user' after role 'tool'"
    r"|tool result blocks cannot be provided in the same turn",
    re.IGNORECASE,
)
UNTHOUGHT: Final = re.compile(r"reasoning_content\b.{0,60}(?:must be passed back|is missing)", re.IGNORECASE)
ECHO: Final = "reasoning_content"
SILENCE: Final = ("none", 0)

Wish: TypeAlias = Literal["silence", "order", "no echo"] | tuple[str, str | int | None]

log = logging.getLogger("treadle")


class RefusedWishes:
    """Which wishes a model's provider has been found to refuse.

    Args:
        name: the model, for the log.
        little: how it is asked to think little; None if not at all, as where that would lengthen its reply.
        refused: what it is known to refuse.
    """

    def __init__(
        self, name: str, little: Literal["low"] | None = "low", refused: frozenset[Wish] = frozenset()
    ) -> None:
        self._name = name
        self._little = little
        self._refused = refused
        self._order = Order()

    def granted(self, request: ModelRequest) -> ModelRequest:
        """`request` without the wishes that are known to be refused."""
        if "silence" in self._refused and request.settings.thinking in SILENCE:
            request = replace(request, settings=replace(request.settings, thinking=self._little))
        usual = request.usual
        if usual is not None and _choice(usual.tool_choice, request) in self._refused:
            request = replace(request, usual=replace(usual, tool_choice="auto"))
        if _choice(request.tool_choice, request) in self._refused:
            request = replace(request, tool_choice="auto")
        if "order" in self._refused and (messages := self._order.of(request.run_id, request.messages)) is not None:
            request = replace(request, messages=messages, passing=0)
        if "no echo" in self._refused and (messages := _echoed(request.messages)) is not None:
            request = replace(request, messages=messages)
        return request

    def ways(self, request: ModelRequest) -> Generator[ModelRequest, ModelError, None]:
        """What to send for `request`; and what in its place, for the refusal that is sent in, as long as there is any.

        What its model will not do is not asked for again. Words that name a wish may be of something else, which may
        quote them: where the request is refused without it, too, it is asked for again.
        """
        found: set[Wish] = set()
        sent = self.granted(request)
        while True:
            refusal = yield sent
            wish, what = _told(sent, str(refusal))
            if wish is None:
                break
            if wish not in self._refused:
                found.add(wish)
                self._refused |= {wish}
            last, sent = sent, self.granted(sent)
            if sent is last:
                break
            log.warning("%s %s", self._name, what, extra={"run_id": request.run_id, "model": self._name})
        self._refused -= found


def may_be_answered(error: ModelError) -> bool:
    """Whether a call that failed with `error` may do with another request in its place.

    Not a reply that is refused, whose words stand in the error, and which is paid for. llama.cpp says with status 500
    that the model's template refuses the order of a history.
    """
    if isinstance(error, Overloaded):
        return UNORDERED.search(str(error)) is not None
    return isinstance(error, BadRequest) and not error.retryable


def _told(request: ModelRequest, words: str) -> tuple[Wish | None, str]:
    """Which wish of `request` is refused by such `words`, and what is done then; None if that is of no such wish."""
    if request.tool_choice != "auto" and UNTAKEN.search(words):
        return _choice(request.tool_choice, request), (
            f"cannot be held to the tool choice {request.tool_choice!r} as it is asked here, and is left to choose"
        )
    if request.settings.thinking in SILENCE and UNSILENCED.search(words):
        return "silence", "cannot be told not to think, and is asked to think little, where that can be asked"
    if UNORDERED.search(words):
        return (
            "order",
            "takes no message of the user after another, or after results, and is sent them joined, or apart",
        )
    if UNTHOUGHT.search(words):
        return (
            "no echo",
            f"takes no message of its own without {ECHO}, and is sent a blank one where it thought nothing",
        )
    return None, ""


def _choice(choice: str, request: ModelRequest) -> Wish:
    """Which choice, with how much thinking: most models that cannot be made to call can where they do not think."""
    return _kind(choice), request.settings.thinking


def _kind(choice: str) -> str:
    return choice if choice in ("auto", "none") else "a call"


def _echoed(messages: Sequence[Message]) -> Sequence[Message] | None:
    """`messages` in which each of the model's has its thinking in that field, or a blank; None where all have."""
    found: list[Message] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            thought = [part for part in message.content if isinstance(part, Thinking)]
            if all(part.id != ECHO for part in thought):
                echo = Thinking("".join(part.text for part in thought) or " ", id=ECHO)
                message = AssistantMessage((echo, *message.content))
        found.append(message)
    return None if all(one is other for one, other in zip(found, messages, strict=True)) else found
