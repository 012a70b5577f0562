"""Messages and events as data: they survive their stored form unchanged, and refuse what they cannot be."""

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle import Decision, Limits, ModelSettings, Stop, Usage
from treadle.kernel.events import (
    ErrorInfo,
    MessageAdded,
    ModelFailed,
    ModelReplied,
    Reserve,
    RunFinished,
    RunStarted,
    StepPrepared,
    ToolFinished,
    decode_event,
    encode_event,
)
from treadle.kernel.messages import (
    AssistantMessage,
    File,
    Image,
    Opaque,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), texts
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
content = st.one_of(
    st.builds(Text, texts),
    st.builds(Image, data=st.binary(max_size=8)),
    st.builds(Image, url=texts),
    st.builds(File, data=st.binary(max_size=8), name=texts),
)
parts = st.one_of(
    st.builds(Text, texts),
    st.builds(Thinking, texts, st.one_of(st.none(), texts), st.one_of(st.none(), texts)),
    st.builds(ToolCall, texts, texts, texts, st.one_of(st.none(), texts)),
    st.builds(Opaque, texts, st.dictionaries(texts, json_values, max_size=2)),
)
either = st.one_of(texts, st.lists(content, max_size=3).map(tuple))
messages = st.one_of(
    st.builds(SystemMessage, texts),
    st.builds(UserMessage, either),
    st.builds(AssistantMessage, st.lists(parts, max_size=4).map(tuple)),
    st.builds(ToolMessage, texts, texts, either, st.booleans()),
)
seconds = st.floats(0, 2e9)
usages = st.builds(Usage, *[st.integers(0, 10**9)] * 5, st.booleans())
costs = st.one_of(st.none(), st.decimals(0, 1000, places=9))
events = st.one_of(
    st.builds(
        RunStarted,
        texts,
        st.lists(messages, max_size=4).map(tuple),
        st.just(1),
        st.builds(Limits, usd=st.one_of(st.none(), st.just(1.5), st.just(Decimal("0.10")))),
        settings=st.builds(ModelSettings, extra=st.one_of(st.none(), st.dictionaries(texts, json_values, max_size=2))),
        at=seconds,
    ),
    st.builds(
        StepPrepared,
        st.integers(0, 99),
        st.builds(Decision, st.sampled_from(["go", "land"]), usd=costs),
        st.one_of(st.none(), st.just(Stop("max_steps", "x", "y"))),
        texts,
        messages=st.one_of(st.none(), st.lists(messages, max_size=3).map(tuple)),
        reserve=st.one_of(st.none(), st.builds(Reserve, st.integers(0, 9), costs)),
        at=seconds,
    ),
    st.builds(
        ModelReplied,
        st.integers(0, 99),
        st.lists(parts, max_size=4).map(lambda parts: AssistantMessage(tuple(parts))),
        usages,
        cost=costs,
        at=seconds,
    ),
    st.builds(ModelFailed, st.integers(0, 9), st.builds(ErrorInfo, texts, texts), text=texts, retry_in=st.just(0.5)),
    st.builds(ToolFinished, st.integers(0, 99), texts, either, st.booleans(), json_values, at=seconds),
    st.builds(MessageAdded, st.builds(UserMessage, either), at=seconds),
    st.builds(RunFinished, st.just(Stop("answered")), output=json_values, at=seconds),
)


@given(events)
def test_an_event_is_the_same_after_it_was_stored(event):
    stored = encode_event(event)
    assert decode_event(stored) == event
    assert decode_event(stored.decode()) == event
    assert b"\n" not in stored


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"event": "nothing_known"}', b'{"event": "tool_started", "step": "x"}', b"[]"]
)
def test_what_is_no_event_is_refused(data):
    with pytest.raises(msgspec.DecodeError):
        decode_event(data)


def test_a_field_that_a_later_version_added_is_passed_over():
    assert decode_event(b'{"event":"nudge_given","text":"x","mood":"kind","at":1.0}').text == "x"


@pytest.mark.parametrize("kind", [Image, File])
@pytest.mark.parametrize("wrong", [{}, {"data": b"x", "url": "y"}])
def test_media_takes_exactly_one_of_data_and_url(kind, wrong):
    with pytest.raises(ValueError, match="exactly one"):
        kind(**wrong)


def test_the_text_of_each_message():
    assert UserMessage((Text("a"), Image(url="x"), Text("b"))).text == "a\nb"
    assert AssistantMessage((Text("a"), Thinking("hm"), ToolCall("1", "t"), Text("b"))).text == "ab"
    assert AssistantMessage().text == ""
    assert ToolMessage("1", "t", (Text("a"),)).text == "a"


@pytest.mark.parametrize(
    ("content", "says"),
    [((), False), ((Text(""),), False), ((Text(" \n"), Text("")), False), ((Text("x"),), True), 
     ((Thinking("x"),), True),
     ((Text(""), ToolCall("1", "t")), True), ((Opaque("p", {}),), True)],
)  # fmt: skip
def test_whether_a_message_says_something(content, says):
    assert AssistantMessage(content).says_something is says


@given(usages, usages)
def test_usage_adds_up(one, other):
    total = one + other
    assert total.total_tokens == one.total_tokens + other.total_tokens
    assert total.estimated == (one.estimated or other.estimated)
    assert one + Usage() == one


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        (Usage(1, service="flex"), Usage(1, service="flex"), "flex"),
        (Usage(1, service="flex"), Usage(1, service="batch"), ""),
        (Usage(1, service="flex"), Usage(1), ""),
        (Usage(1), Usage(1, service="flex"), ""),
        (Usage(), Usage(1, service="flex"), "flex"),
        (Usage(1, service="flex"), Usage(), "flex"),
        (Usage(service="batch"), Usage(1, service="flex"), "flex"),
        (Usage(1, service="flex"), Usage(service="batch"), "flex"),
        (Usage(1), Usage(1), ""),
    ],
)
def test_the_service_of_several_calls_is_theirs_where_they_agree(one, other, together):
    assert (one + other).service == together
    assert (one - other).service == one.service


def test_all_kinds_of_tokens_are_subtracted():
    many, few = (
        Usage(20, 19, 18, 17, 16, True, 15, 14, "flex", 13, 12),
        Usage(9, 8, 7, 6, 5, False, 4, 3, "batch", 2, 1),
    )
    assert many - few == Usage(11, 11, 11, 11, 11, True, 11, 11, "flex", 11, 11)
    assert (few - few).estimated is False
    assert few + replace(few, service="batch") == Usage(18, 16, 14, 12, 10, False, 8, 6, "batch", 4, 2)
    assert (many + few).estimated
    assert (few + many).estimated


@pytest.mark.parametrize(("kind", "named"), [(Image, "an Image"), (File, "a File")])
def test_what_an_attachment_takes_is_said_by_its_name(kind, named):
    for each in ({}, {"data": b"x", "url": "u"}):
        with pytest.raises(ValueError, match=rf"^{named} takes exactly one of data= \(bytes\) and url=$"):
            kind(**each)
    with pytest.raises(
        ValueError, match=rf"^{named} takes data= as bytes, as they are, not in base64; it was given str$"
    ):
        kind(data="eHg=")
    with pytest.raises(ValueError, match=rf"^{named} takes its address, media type and name as texts$"):
        kind(url=7)
    with pytest.raises(ValueError, match="as texts"):
        kind(url="u", media_type=None)
