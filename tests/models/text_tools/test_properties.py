"""Whatever a model writes, and however it arrives: the reply is valid, and the same."""

import json

import pytest
from depth import deep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.kernel.messages import AssistantMessage, ModelSettings, Text, Thinking, ToolCall, UserMessage
from treadle.models.port import (
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)
from treadle.models.text_tools.history import History
from treadle.models.text_tools.model import _form

FORMATS = ("json", "react", "tags")
QUICK = settings(max_examples=deep(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FRAGMENTS = [
    *('{"name":"search",', '"arguments":', '{"query":"x"}', "}", "{", "[", "]", "[{", "'", '"', ",", "//", "/*", "\\"),
    *("{'tool': 'add', 'args': {'a': 1, 'b': 2,}}", '{"name":"nope",', "Result of x:", "None", " ", "\n", "\n\n", "1"),
    *(
        "```json\n",
        "```\n",
        "```",
        "`",
        "~~~",
        "```python\n",
        "```xml\n",
        "<think>",
        "</think>",
        "hello",
        "\u00e9\U0001f600",
    ),
    *("Thought:", " I know", "Action:", " search", "[x]", '(query="x")', "Action Input:", "Observation:", "**", "T"),
    *("Final Answer:", " get_time\n", "nope", "<tool_call>", "</tool_call>", '<tool name="add">', "</tool>", "<"),
    *("<function=search>", "</function>", '<invoke name="get_time">', "</invoke>", '<parameter name="query">'),
    *(
        "</parameter>",
        "<tool_response>",
        "<function_calls>",
        '<tool name="get_time"/>',
        '{"a":1,"b":2}',
        "<parameter=a>",
    ),
]
TEXTS = st.one_of(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join), st.text(max_size=60))


def cut(text, places):
    at = sorted({place % (len(text) + 1) for place in places})
    return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]


def check_events(events):
    """The pieces that were streamed make up the reply."""
    message = events[-1].message
    joined = "".join(event.text for event in events if isinstance(event, TextDelta))
    thought = "".join(event.text for event in events if isinstance(event, ThinkingDelta))
    assert joined == message.text
    assert thought == "".join(part.text for part in message.content if isinstance(part, Thinking))
    calls = []
    for i, event in enumerate(events):
        if isinstance(event, ToolCallStarted):
            delta, completed = events[i + 1 : i + 3]
            assert isinstance(delta, ToolCallDelta)
            assert completed == ToolCallCompleted(event.id)
            calls.append(ToolCall(event.id, event.name, delta.json))
    assert tuple(calls) == message.calls
    assert len({call.id for call in calls}) == len(calls)
    assert all(call.name for call in calls)


@QUICK
@given(format=st.sampled_from(FORMATS), text=TEXTS, places=st.lists(st.integers(0, 500), max_size=20))
def test_any_text_in_any_pieces_gives_the_same_valid_reply(protocols, format, text, places):
    whole = protocols.events(text, format)
    check_events(whole)
    for pieces in ([], list(text), cut(text, places)):
        events = protocols.events(text, format, pieces)
        check_events(events)
        assert events[-1] == whole[-1]


@QUICK
@given(format=st.sampled_from(FORMATS), text=TEXTS, choice=st.sampled_from(["none", "required", "search"]))
def test_a_choice_never_lets_another_call_through(protocols, format, text, choice):
    events = protocols.events(text, format, tool_choice=choice)
    check_events(events)
    names = {call.name for call in events[-1].message.calls} - {"invalid_call"}
    assert not names or choice == "required" or names == {choice}
    assert events[-1].message.calls or choice == "none"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
TRAPS = st.sampled_from(
    ["</tool_call>", "\nAction: add", "```", "'", '"', "}", "{[", "Observation: x", "\\", "// no", "\nFinal Answer: 1"]
)
ARGUMENTS = st.dictionaries(st.text() | TRAPS, VALUES | TRAPS, max_size=5)


@QUICK
@given(
    format=st.sampled_from(FORMATS),
    calls=st.lists(
        st.tuples(st.sampled_from(["search", "get_time", "add", "unknown-tool"]), ARGUMENTS), min_size=1, max_size=3
    ),
    indent=st.sampled_from([None, 2]),
    prose=st.sampled_from(["", "I will look.", "First,\n\nthis:"]),
)
def test_a_call_that_is_written_out_is_read_back_unchanged(protocols, format, calls, indent, prose):
    made = [
        ToolCall(f"call_0_{i}", name, json.dumps(arguments, indent=indent, ensure_ascii=False))
        for i, (name, arguments) in enumerate(calls)
    ]
    parts = ((Text(prose),) if prose else ()) + tuple(made)
    (rendered,) = History(_form(format)).render("", [AssistantMessage(parts)])
    assert protocols.reply(rendered.text, format).message == AssistantMessage(parts)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "text",
    [
        "{" * 50_000,
        '{"a":' * 20_000,
        "[{" * 20_000,
        '{"a:' * 20_000,
        "`" * 50_000,
        "``` \n" * 10_000,
        "<" * 50_000,
        "<tool_call>" * 5_000,
        '<tool name="a">' * 3_000,
        "Action:" * 5_000,
        "\nAction: a" * 2_000,
        "Action: a[" * 5_000,
        " " * 50_000,
        "/*" * 20_000,
        '{"name":"search","arguments":{"query":"' + "x" * 50_000,
        "\n" * 50_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_texts_made_to_be_slow_are_read_at_once(protocols, format, text):
    # Something quadratic would take minutes here, and the test run with it.
    check_events(protocols.events(text, format, cut(text, range(0, len(text), 97))))


@pytest.mark.parametrize("format", FORMATS)
def test_an_answer_streams_as_it_comes(protocols, format):
    pieces = ["Hello", ", here is", " a", " longer answer", " of one line."]
    events = protocols.events("".join(pieces), format, pieces, settings=ModelSettings())
    deltas = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(deltas) == "".join(pieces)
    assert len(deltas) > 3


@pytest.mark.parametrize(
    ("format", "call"),
    [
        ("json", '{"name":"get_time","arguments":{}}\n'),
        ("react", "Action: get_time\nAction Input: {}\n"),
        ("tags", '<tool_call>{"name":"get_time","arguments":{}}</tool_call>\n'),
    ],
)
def test_a_call_is_complete_before_the_reply_is(protocols, format, call):
    events = protocols.events(call * 2, format, [call, call])
    kinds = [type(event) for event in events if not isinstance(event, UsageReported)]
    assert kinds[:3] == [ToolCallStarted, ToolCallDelta, ToolCallCompleted]

    from treadle.models.text_tools.manual import example
    from treadle.models.text_tools.pieces import Offer
    from treadle.models.text_tools.reader import Names, Reader

    offer = Offer({tool.name: tool for tool in protocols.specs})
    reader = Reader(_form(format), offer, Names("", 0), example(_form(format), offer))
    assert ToolCallCompleted("call_0_0") in reader.feed(call + call[:12])


def test_what_is_read_of_a_request_does_not_change_it(protocols):
    messages = [UserMessage("?")]
    before = list(messages)
    History(_form("json")).render("run", messages)
    assert messages == before
