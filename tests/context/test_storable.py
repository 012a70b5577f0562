"""Storable events: whatever comes in from outside, a journal keeps it and gives it back as it is in the state."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle import MemoryJournal, SqliteJournal
from treadle.context.storable import storable, storable_event, storable_text
from treadle.kernel.calls import Awaited
from treadle.kernel.events import (
    ApprovalDecided,
    ApprovalRequested,
    ContextEdited,
    ErrorInfo,
    Event,
    MessageAdded,
    ModelFailed,
    ModelReplied,
    NudgeGiven,
    ResultAwaited,
    RunFinished,
    RunPaused,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolReacted,
    ToolStarted,
    decode_event,
    encode_event,
)
from treadle.kernel.messages import (
    AssistantMessage,
    File,
    Image,
    ModelSettings,
    Opaque,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from treadle.kernel.stop import Check, Decision, stopped

BAD = "caf\udce9"
GOOD = "caf?"
STOP = stopped("answered", BAD)


def hard(text: str) -> list[Event]:
    """Every kind of event that carries text from outside, with `text` wherever it may stand."""
    parts = (Text(text), Image(url=text), File(url=text, name=text))
    said = AssistantMessage((Text(text), Thinking(text, text, text, text), ToolCall(text, text, text, text)))
    messages = (SystemMessage(text), UserMessage(parts), said, ToolMessage(text, text, parts, whole=text))
    decision = Decision("stop", text, conditions=(Check(text, text, text),))
    stop = stopped("answered", text)
    settings = ModelSettings(stop=(text,), extra={text: [text]})
    return [
        RunStarted("r", messages, 1, agent=text, model=text, tools=(text,), polling=(text,), settings=settings),
        RunStarted("r", messages, 1, writes=(text,), rules=(text,), hooks=(text,)),
        StepPrepared(0, decision, stop, text, text, text, (text,), text, settings, messages, withheld=(text,)),
        ModelReplied(0, AssistantMessage((*said.content, Opaque(text, {text: text}))), finish_detail=text, model=text),
        ModelFailed(0, ErrorInfo("k", text, request_id=text), text=text, model=text),
        ToolStarted(0, text, text, text),
        ToolFinished(0, text, parts, app={text: [text, {"a": text}]}),
        ToolFinished(0, text, text, provisional=True, raised=text),
        ToolReacted(0, text, "replace", parts, app={text: text}, call=ToolCall(text, text, text), reason=text),
        ApprovalRequested(0, text, reason=text),
        ApprovalDecided(0, text, True, text, text),
        ResultAwaited(0, text, True, "r", (Awaited(text, text, text, "result"),), text),
        MessageAdded(UserMessage(parts)),
        ContextEdited("p", 0, 1, messages, detail=text),
        NudgeGiven(text),
        RunPaused(stop),
        RunFinished(stop, decision, {text: text}),
    ]


@pytest.mark.parametrize("number", range(len(hard(""))))
def test_lone_surrogates_become_question_marks_wherever_they_stand(number):
    event = storable_event(hard(BAD)[number])
    assert event == hard(GOOD)[number]
    assert decode_event(encode_event(event)) == event


@pytest.mark.parametrize("text", ["hello", "Größe", "漢字 🙂", ""])
@pytest.mark.parametrize("number", range(len(hard(""))))
def test_an_event_that_can_be_kept_is_the_same_object(number, text):
    event = hard(text)[number]
    assert storable_event(event) is event


def test_a_message_likewise():
    message = AssistantMessage((Text(BAD), Thinking(BAD, signature=BAD), Opaque("p", {"a": BAD})))
    assert storable(message) == AssistantMessage((Text(GOOD), Thinking(GOOD, signature=GOOD), Opaque("p", {"a": GOOD})))
    sound = AssistantMessage((Text("Größe"),))
    assert storable(sound) is sound


class Secret:
    def __repr__(self) -> str:
        raise AssertionError("it was shown")


class Count(int):
    """A number like NumPy's."""


@dataclass
class Row:
    name: str
    day: date


HOLDS_ITSELF: list[Any] = []
HOLDS_ITSELF.append(HOLDS_ITSELF)
DEEP: dict[str, Any] = {}
for _ in range(5000):
    DEEP = {"a": DEEP}
NO_FORM = ", which has no JSON form)"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (Secret(), f"({__name__}.Secret{NO_FORM}"),
        ({"a": Secret(), "b": 1}, {"a": f"({__name__}.Secret{NO_FORM}", "b": 1}),
        ([1, 1j, BAD], [1, f"(complex{NO_FORM}", GOOD]),
        ({(1, 2): "x"}, {f"(tuple{NO_FORM}": "x"}),
        (dict.fromkeys([chr(0xD800), chr(0xDFFF)], 1), {"?": 1, "??": 1}),
        ({1: BAD}, {1: GOOD}),
        (Count(3), 3),
        ({"n": Count(3)}, {"n": 3}),
        (Row(BAD, date(2026, 1, 2)), {"name": GOOD, "day": "2026-01-02"}),
        ([Decimal("1.10"), BAD], [Decimal("1.10"), GOOD]),
        (HOLDS_ITSELF, f"(list{NO_FORM}"),
        (DEEP, {"unstorable": f"(dict{NO_FORM}"}),
        ((BAD, Secret()), (GOOD, f"({__name__}.Secret{NO_FORM}")),
    ],
    ids=range(13),
)
def test_what_has_no_json_form_is_named_and_never_an_exception(value, kept):
    event = storable_event(ToolFinished(0, "c", "done", app=value, at=1.0))
    assert event.app == kept
    assert encode_event(event)


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(), max_size=5),
        st.builds(Secret),
        st.builds(Count),
        st.binary(max_size=2),
        st.complex_numbers(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(st.text(st.characters(), max_size=2), st.integers(), st.none()), inner, max_size=3),
    ),
    max_leaves=10,
)


@given(VALUES)
def test_any_value_of_the_applications_can_be_kept_and_read_again(value):
    event = storable_event(RunFinished(STOP, output=value))
    assert storable_event(event) is event
    assert encode_event(decode_event(encode_event(event))) == encode_event(event)


@given(st.text(st.characters(), max_size=20))
def test_any_text_is_kept_as_storable_text_says(text):
    events = zip(hard(text), hard(storable_text(text)), strict=True)
    assert all(storable_event(event) == kept for event, kept in events)


@pytest.mark.anyio
async def test_a_journal_keeps_what_was_made_storable(tmp_path):
    events = [storable_event(event) for event in hard(BAD)]
    async with SqliteJournal(tmp_path / "runs.db") as journal, MemoryJournal() as memory:
        await journal.append("r", 0, events)
        await memory.append("r", 0, events)
        assert await journal.read("r") == await memory.read("r")
    assert msgspec.json.encode(events)


def nested(levels):
    value = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def deep_in_calls(frames, do):
    return do() if frames == 0 else deep_in_calls(frames - 1, do)


@pytest.mark.parametrize("levels", [150, 800])
def test_what_is_stored_at_the_top_can_be_read_by_who_is_deep_in_calls_of_its_own(levels):
    event = storable_event(ToolFinished(0, "c", "done", app=nested(levels), at=1.0))
    assert (event.app == nested(levels)) is (levels == 150)
    stored = encode_event(event)
    assert deep_in_calls(500, lambda: decode_event(stored)) == event


def test_brackets_in_texts_and_beside_each_other_are_no_levels():
    value = {"text": "[{" * 500 + '\\"[', "rows": [[1], [2]] * 500}
    assert storable_event(ToolFinished(0, "c", "done", app=value, at=1.0)).app == value
