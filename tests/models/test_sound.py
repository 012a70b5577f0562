"""What a model of one's own replies: taken, put right beyond doubt, or refused with what would be right."""

from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.kernel.messages import AssistantMessage, Opaque, Text, Thinking, ToolCall, Usage, UserMessage
from treadle.models import (
    AttemptFailed,
    ModelError,
    ModelReply,
    ModelRequest,
    Overloaded,
    ProtocolError,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)
from treadle.models.errors import UnfinishedReply, UnsoundReply
from treadle.models.fallback import FallbackModel
from treadle.models.sound import cost_of, sound_event, sound_reply
from treadle.testing import ScriptedModel

SAID = AssistantMessage((Text("hi"),))
CALL = ToolCall("c1", "add", '{"a": 1}')


class Word(StrEnum):
    STOP = "stop"


class Name(str):
    def __str__(self) -> str:
        return "Name.ADD"


class Number:
    """A whole number like NumPy's: no int, but one that may stand for it."""

    def __index__(self) -> int:
        return 7


@pytest.mark.parametrize(
    "reply",
    [
        ModelReply(SAID),
        ModelReply(AssistantMessage()),
        ModelReply(
            AssistantMessage((Thinking("hm", "sig", "data", "id"), CALL)), Usage(1, 2, 3, 4, 5, True), "tool_calls"
        ),
        ModelReply(AssistantMessage((Opaque("p", {"a": [1]}),)), Usage(), "stop", "w", "m", "r", Decimal("0.1")),
        ModelReply(AssistantMessage((Text("\ud800"), Opaque("p", {"a": "\ud800"}))), cost=Decimal(0)),
    ],
)
def test_a_reply_with_nothing_wrong_is_the_same_object(reply):
    assert sound_reply(reply) is reply
    assert sound_event(reply) is reply


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (ModelReply("hi"), ModelReply(SAID)),
        (ModelReply(AssistantMessage("hi")), ModelReply(SAID)),
        (ModelReply(AssistantMessage("")), ModelReply(AssistantMessage())),
        (ModelReply(AssistantMessage(["hi", CALL])), ModelReply(AssistantMessage((Text("hi"), CALL)))),
        (ModelReply(SAID, Usage(12.0, Number())), ModelReply(SAID, Usage(12, 7))),
        (ModelReply(SAID, cost=0.1), ModelReply(SAID, cost=Decimal("0.1"))),
        (ModelReply(SAID, cost=2), ModelReply(SAID, cost=Decimal(2))),
        (ModelReply(SAID, finish=Word.STOP), ModelReply(SAID)),
        (
            ModelReply(AssistantMessage((ToolCall("c", Name("add")),)), model=Name("add")),
            ModelReply(AssistantMessage((ToolCall("c", "add"),)), model="add"),
        ),
    ],
)
def test_what_is_meant_beyond_doubt_is_put_right(given, meant):
    sound = sound_reply(given)
    assert sound == meant
    assert stored_and_read(sound) == meant


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (ModelReply(SAID, finish="end_turn"), r"ModelReply.finish takes one of 'stop', .*'unknown', .*finish_detail"),
        (ModelReply(SAID, finish=None), "ModelReply.finish takes"),
        (ModelReply(SAID, finish=["stop"]), "ModelReply.finish takes"),
        (ModelReply(UserMessage("hi")), "ModelReply.message takes an AssistantMessage"),
        (ModelReply(None), "ModelReply.message takes"),
        (ModelReply(AssistantMessage(None)), "AssistantMessage.content takes a tuple of parts"),
        (ModelReply(AssistantMessage({"text": "hi"})), "AssistantMessage.content takes a tuple of parts"),
        (ModelReply(AssistantMessage(({"type": "text"},))), "takes parts that are Text, Thinking, ToolCall or Opaque"),
        (ModelReply(AssistantMessage((Text(None),))), "Text.text takes text"),
        (ModelReply(AssistantMessage((Thinking("x", signature=b"x"),))), "Thinking.signature takes text, or None"),
        (ModelReply(AssistantMessage((ToolCall("c", "f", {"a": 1}),))), r"ToolCall.arguments takes .*json.dumps"),
        (ModelReply(AssistantMessage((ToolCall("c", "f", None),))), "ToolCall.arguments takes JSON text"),
        (ModelReply(AssistantMessage((ToolCall(7, "f"),))), "ToolCall.id takes text; it was given 7, of type int"),
        (ModelReply(AssistantMessage((ToolCall("c", None),))), "ToolCall.name takes text"),
        (ModelReply(AssistantMessage((ToolCall("c", "f", item_id=3),))), "ToolCall.item_id takes text, or None"),
        (
            ModelReply(AssistantMessage((Opaque("p", {"a": object()}),))),
            "Opaque.value takes a dict that has a JSON form",
        ),
        (ModelReply(AssistantMessage((Opaque("p", "x"),))), "Opaque.value takes a dict"),
        (ModelReply(SAID, {}), r"ModelReply.usage takes a Usage\("),
        (ModelReply(SAID, (1, 2)), r"ModelReply.usage takes a Usage\("),
        (ModelReply(SAID, Usage(1.5, 2)), "Usage.input_tokens takes a whole number of tokens, 0 or more"),
        (ModelReply(SAID, Usage(1, "2")), "Usage.output_tokens takes"),
        (ModelReply(SAID, Usage(1, 2, -3)), "Usage.cache_read_tokens takes"),
        (ModelReply(SAID, Usage(1, 2, 0, None)), "Usage.cache_write_tokens takes"),
        (ModelReply(SAID, Usage(1, 2, reasoning_tokens=True)), "Usage.reasoning_tokens takes"),
        (ModelReply(SAID, Usage(float("inf"), 2)), "Usage.input_tokens takes"),
        (ModelReply(SAID, Usage(1, 10**30)), "Usage.output_tokens takes"),
        (ModelReply(SAID, Usage(1, 2, estimated="no")), "Usage.estimated takes True or False"),
        (ModelReply(SAID, cost="0.1"), "ModelReply.cost takes dollars as a Decimal"),
        (ModelReply(SAID, cost=Decimal("NaN")), "ModelReply.cost takes"),
        (ModelReply(SAID, cost=float("inf")), "ModelReply.cost takes"),
        (ModelReply(SAID, cost=Decimal(-1)), "ModelReply.cost takes"),
        (ModelReply(SAID, finish_detail=None), "ModelReply.finish_detail takes text"),
        (ModelReply(SAID, model=None), "ModelReply.model takes text"),
        (ModelReply(SAID, request_id=3), "ModelReply.request_id takes text"),
    ],
)
def test_everything_else_is_an_error_that_says_what_would_be_right(reply, words):
    with pytest.raises(ProtocolError, match=words) as caught:
        sound_reply(reply)
    assert isinstance(caught.value, UnsoundReply)
    assert not caught.value.retryable


RUBBISH: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.text(st.characters(codec="utf-8"), max_size=4),
    st.binary(max_size=3),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=2), st.integers(0, 9), max_size=2),
)


def often(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(right, right, right, RUBBISH)


TEXTS = often(st.text(st.characters(codec="utf-8"), max_size=4))
COUNTS = often(st.integers(0, 99))
PARTS = often(
    st.one_of(
        st.builds(Text, TEXTS),
        st.builds(Thinking, TEXTS, TEXTS, TEXTS, TEXTS),
        st.builds(ToolCall, TEXTS, TEXTS, TEXTS, TEXTS),
        st.builds(Opaque, TEXTS, often(st.just({"a": 1}))),
    )
)
REPLIES = st.builds(
    ModelReply,
    often(st.builds(AssistantMessage, often(st.one_of(st.lists(PARTS, max_size=2), st.tuples(PARTS))))),
    often(st.one_of(st.none(), st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, often(st.booleans())))),
    often(st.sampled_from(["stop", "tool_calls", "length", "unknown"])),
    TEXTS,
    TEXTS,
    TEXTS,
    often(st.one_of(st.none(), st.decimals(0, 10))),
)


@given(REPLIES)
def test_a_reply_is_refused_or_can_be_stored_and_read_again(reply):
    try:
        sound = sound_reply(reply)
    except UnsoundReply:
        with pytest.raises(UnsoundReply, match=r"the model.s reply cannot be used: .* takes "):
            sound_reply(reply)
        return
    except UnfinishedReply:
        assert reply.finish == "unknown"
        return
    assert stored_and_read(sound) == sound
    assert sound_reply(sound) is sound


def stored_and_read(reply: ModelReply) -> ModelReply:
    return msgspec.json.decode(msgspec.json.encode(reply, order=None), type=ModelReply)


@pytest.mark.parametrize(
    "event",
    [
        TextDelta("x"),
        ThinkingDelta("x"),
        ToolCallStarted("a", "b"),
        ToolCallDelta("a", "b"),
        ToolCallCompleted("a"),
        AttemptFailed("m", Overloaded("busy")),
    ],
    ids=lambda event: type(event).__name__,
)
def test_a_piece_of_a_reply_is_taken_as_it_is_and_refused_if_it_is_no_text(event):
    assert sound_event(event) is event
    for name in event.__struct_fields__:
        with pytest.raises(UnsoundReply, match=type(event).__name__):
            sound_event(msgspec.structs.replace(event, **{name: None}))


@pytest.mark.parametrize("event", ["hello", None, {"type": "text"}, SAID])
def test_what_is_no_event_of_a_model_is_refused(event):
    with pytest.raises(UnsoundReply, match=r"stream\(request\) takes events to yield, such as TextDelta"):
        sound_event(event)


class Priced:
    name = "priced"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def cost(self, usage: Usage) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Async:
    name = "later"

    async def cost(self, usage: Usage) -> Decimal:
        return Decimal(1)


@pytest.mark.parametrize(
    ("answer", "cost"), [(None, None), (Decimal("0.5"), Decimal("0.5")), (0.1, Decimal("0.1")), (3, Decimal(3))]
)
def test_what_a_model_says_it_costs(answer, cost):
    assert cost_of(Priced(answer), Usage(1, 1)) == cost
    assert cost_of(object(), Usage(1, 1)) is None


@pytest.mark.parametrize(
    "answer",
    ["0.1", float("nan"), Decimal("Infinity"), Decimal(-1), [], True, 1e300, KeyError("rate"), ZeroDivisionError()],
)
def test_a_cost_that_raises_or_is_rubbish_is_an_error_of_the_model(answer):
    with pytest.raises(ModelError, match=r"the price of priced cannot be told: its cost\(usage\) r") as caught:
        cost_of(Priced(answer), Usage(1, 1))
    assert not caught.value.retryable


def test_a_cost_that_has_to_be_awaited_is_an_error_of_the_model():
    with pytest.raises(ModelError, match="it may not be async"):
        cost_of(Async(), Usage(1, 1))


@pytest.mark.anyio
async def test_a_fallback_model_asks_the_next_where_one_replies_nonsense():
    nonsense = ScriptedModel(lambda request: ModelReply(AssistantMessage(()), finish="end_turn"), name="a")
    model = FallbackModel([nonsense, ScriptedModel(["hi"], name="b")])
    *_, failed, piece, reply = [event async for event in model.stream(ModelRequest([UserMessage("hello")]))]
    assert isinstance(failed, AttemptFailed)
    assert isinstance(failed.error, UnsoundReply)
    assert (piece, reply.model) == (TextDelta("hi"), "b")
