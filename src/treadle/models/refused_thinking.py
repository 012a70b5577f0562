"""Refused thinking: what to send in place of a request whose earlier thinking its provider will not have back.

Claude's newest models tie what they thought to all that stood before it: instructions, tools and messages. A loop
changes these, by an edit of the context, a note for one request, a step with other tools, an agent that goes on. The
request is then refused, at no charge, on accounts that Anthropic holds to that, and on no others: so nothing is asked
for until it happens. The same words without those of a conversation say that a signature cannot be read at all, as of
another cloud's; Google and OpenAI say so, too, of what was signed or sealed under another key, project or model.
Source: https://platform.claude.com/docs/en/build-with-claude/preserved-thinking

The reverse is refused, too: models that think by a budget are not to think after a call that they made without, as
where it was forced, another model made it, or its thinking is left out.

Pure but for what is kept of a model. Neighbours: `treadle.models.http_model`, `treadle.models.refused_wishes`.
"""

import logging
import re
import sys
from collections.abc import Callable, Generator, Mapping
from typing import Final, TypeGuard

from msgspec.structs import replace

from treadle.context.shown import told_of
from treadle.kernel.messages import AssistantMessage, AssistantPart, Json, Message, Opaque, Text, Thinking
from treadle.models.anthropic_thinking import adaptive, thinking_fields
from treadle.models.errors import ModelError
from treadle.models.port import ModelRequest
from treadle.models.refused_wishes import RefusedWishes, Wish

BETA: Final = "thinking-binding-controls-2026-08-01"
DROP: Final[Json] = {"prefix_mismatch_behavior": "drop_block"}
# Anthropic; Google; OpenAI, of what is sealed, of what stands alone, with and without, and of what ran in a container
# that is gone; a gateway before it, which leaves out what is sealed.
REFUSED: Final = re.compile(
    r"invalid\W{1,4}signature\W{1,4}in\W{1,4}(?:redacted_)?thinking"
    r"|(?:corrupted|invalid) thought[ _]?signature|thought[ _]?signature is not valid"
    r"|encrypted content\b.{0,400}\bcould not be (?:verified|decrypted)"
    r"|'reasoning' was provided without its required following item|provided without its required 'reasoning' item"
    r"|Item with id 'rs_[^']{1,100}' not found|expected container_id\W{1,4}cntr_",
    re.IGNORECASE | re.DOTALL,
)
WANTED: Final = re.compile(r"must start with a thinking block", re.IGNORECASE)
BOUND: Final = re.compile(r"bound to a different conversation", re.IGNORECASE)
# The refusal of thinking that is bound names the field, too: who says it although the field was there has not read it.
UNASKED: Final = re.compile(r"block_binding|thinking-binding-controls")
OWN: Final = {"anthropic": "", "converse": "additionalModelRequestFields"}
"""The dialects in which it can be asked for, and where in `extra` they have the fields of Claude's."""

TIED: Final = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "image_generation_call"}
)
"""What OpenAI ran for a model, and refuses without the reasoning that led to it."""

CONTAINED: Final = "code_interpreter_call"
"""What it ran in a container, and refuses once that is gone, whether the model reasons or not."""

KEPT: Final = 100_000
"""How many thoughts that were left out are known at most."""

log = logging.getLogger("treadle")


class RefusedThinking:
    """What a model's provider has been found to refuse.

    Args:
        dialect: what the model speaks.
        name: the model, for the log.
        model: its name at the provider.
        refused: the wishes that it is known to refuse.
    """

    def __init__(self, dialect: str, name: str, model: str, refused: frozenset[Wish] = frozenset()) -> None:
        self._dialect = dialect
        self._name = name
        self._model = model
        self._asks = False
        self._cannot = False
        self._left_out: dict[int, None] = {}
        # A budget is not among what is reckoned with for a reply without thinking.
        lengthened = dialect == "anthropic" and not adaptive(model)
        self._wishes = RefusedWishes(name, None if lengthened else "low", refused)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of requests as they are sent now."""
        return {"anthropic-beta": BETA} if self._asks and self._dialect == "anthropic" else {}

    def ways(self, request: ModelRequest) -> Generator[ModelRequest, ModelError, None]:
        """What to send for `request`, and what in its place for each refusal that is sent in, while there is any."""
        wishes = self._wishes.ways(request)
        asked = next(wishes)
        while True:
            refusal = yield from self._thoughts(asked)
            try:
                asked = wishes.send(refusal)
            except StopIteration:
                return

    def _thoughts(self, request: ModelRequest) -> Generator[ModelRequest, ModelError, ModelError]:
        """What to send with less and less of what was thought earlier; returns the refusal that this does not help.

        First as it is; then with the wish that the provider drop from what has changed on, which it is asked for in
        each request from then on; then without any thinking. What was left out once stays out: put back, it would spoil
        what was thought without it. Where a call lacks the thinking that it must have, nothing is thought.
        """
        if self._left_out:
            request = without(request, lambda part: _key(part) in self._left_out)
        if "block_binding" in self._given(request):
            return (yield request)
        asking = self._asking(request) if self._asks else None
        if asking is None:
            refusal = yield request
            if WANTED.search(str(refusal)):
                return (yield self._silent(request))
            if not _refused(refusal):
                return refusal
            if BOUND.search(str(refusal)) and not self._cannot and (asking := self._asking(request)) is not None:
                self._asks = True
                self._tell(request, "is asked from now on to leave out what it thought before that")
        if asking is not None:
            refusal = yield asking
            if UNASKED.search(str(refusal)):
                self._asks, self._cannot = False, True
            elif not _refused(refusal):
                return refusal
        bare = without(request, self._leaves_out)
        if bare is not request:
            self._tell(request, "is sent this request without what it thought earlier")
            refusal = yield bare
            if WANTED.search(str(refusal)):
                refusal = yield self._silent(bare)
        return refusal

    def _leaves_out(self, part: Thinking | Opaque) -> bool:
        self._left_out[_key(part)] = None
        if len(self._left_out) > KEPT:
            del self._left_out[next(iter(self._left_out))]
        return True

    def _own(self, request: ModelRequest) -> Json:
        """Claude's fields in the request's own extra ones."""
        extra, place = request.settings.extra or {}, OWN.get(self._dialect)
        own = extra.get(place) if place else extra
        return own if isinstance(own, dict) else {}

    def _given(self, request: ModelRequest) -> Json:
        """What the caller says of thinking in Claude's own words."""
        given = self._own(request).get("thinking")
        return given if isinstance(given, dict) else {}

    def _asking(self, request: ModelRequest) -> ModelRequest | None:
        """`request` with that wish; None where it has no place, as where the model is not to think."""
        place = OWN.get(self._dialect)
        if place is None:
            return None
        settings, own = request.settings, self._own(request)
        said = thinking_fields(replace(settings, extra=own), self._model, sys.maxsize, False).get("thinking")
        # Such a model thinks so, too, where nothing is said.
        thinking = (said or {"type": "adaptive"}) | self._given(request)
        if thinking.get("type") not in ("adaptive", "enabled"):
            return None
        own = own | {"thinking": thinking | {"block_binding": DROP}}
        if place:
            betas = own.get("anthropic_beta")
            own["anthropic_beta"] = [*(betas if isinstance(betas, list) else ()), BETA]
            own = {**(settings.extra or {}), place: own}
        return replace(request, settings=replace(settings, extra=own))

    def _silent(self, request: ModelRequest) -> ModelRequest:
        """`request` of which nothing is to be thought."""
        extra, place, own = request.settings.extra, OWN.get(self._dialect), self._own(request)
        if "thinking" in own:
            own = own | {"thinking": {"type": "disabled"}}
            extra = {**(extra or {}), place: own} if place else own
        return replace(request, settings=replace(request.settings, thinking="none", extra=extra))

    def _tell(self, request: ModelRequest, what: str) -> None:
        log.warning(
            "%s will not have back what it thought earlier in this run, as after a change of what stood before it, and "
            "%s; see docs/context.md",
            self._name,
            what,
            extra={"run_id": request.run_id, "model": self._name},
        )


def without(request: ModelRequest, left_out: Callable[[Thinking | Opaque], bool]) -> ModelRequest:
    """`request` without what is `left_out`, of what was thought and what ran in a container, and without what is
    refused without that; the same object if that is none."""

    def spoken(message: Message) -> Message:
        if type(message) is not AssistantMessage:
            return message
        gone = [part for part in message.content if _is_held(part) and left_out(part)]
        if not gone:
            return message
        kept = [part for part in message.content if type(part) is not Thinking or not left_out(part)]
        said = [_untied(part, message) for part in kept]
        return replace(message, content=tuple([part for part in said if part is not None]))

    messages = [spoken(message) for message in request.messages]
    same = all([one is other for one, other in zip(messages, request.messages, strict=True)])
    return request if same else replace(request, messages=messages)


def _is_held(part: AssistantPart) -> TypeGuard[Thinking | Opaque]:
    """Whether `part` stands for what its provider alone has."""
    return type(part) is Thinking or (type(part) is Opaque and part.value.get("type") == CONTAINED)


def _untied(part: AssistantPart, message: AssistantMessage) -> AssistantPart | None:
    """`part` of a `message` whose thinking is left out; in words, or not at all, where it is refused without that."""
    if type(part) is not Opaque or part.value.get("type") not in TIED:
        return part
    told = told_of(part, message)
    return Text(told) if told else None


def _key(part: Thinking | Opaque) -> int:
    if type(part) is Opaque:
        return hash((str(part.value.get("id")), str(part.value.get("container_id"))))
    return hash((part.id, part.signature, part.data, part.text))


def _refused(refusal: ModelError) -> bool:
    words = str(refusal)
    return bool(REFUSED.search(words) or BOUND.search(words))
