"""History: what is kept of a run gives the same as making it afresh, whatever became of the run's messages."""

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.kernel.errors import Misuse
from treadle.kernel.log import Log
from treadle.kernel.messages import (
    AssistantMessage,
    Image,
    Message,
    ModelSettings,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from treadle.models.anthropic import AnthropicCodec
from treadle.models.bedrock import BedrockCodec
from treadle.models.codec import Codec
from treadle.models.google import GoogleCodec
from treadle.models.history import History
from treadle.models.openai_chat import ChatCodec
from treadle.models.openai_responses import ResponsesCodec
from treadle.models.port import ModelRequest

CODECS = [
    pytest.param(AnthropicCodec, "claude-sonnet-4-5", id="anthropic"),
    pytest.param(BedrockCodec, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", id="bedrock"),
    pytest.param(ResponsesCodec, "gpt-5", id="responses"),
    pytest.param(ChatCodec, "gpt-5", id="chat"),
    pytest.param(GoogleCodec, "gemini-3-pro-preview", id="google"),
]
SAID: list[Message] = [
    SystemMessage("rules"),
    UserMessage("gö"),
    UserMessage(" "),
    AssistantMessage((Thinking("hm", signature="s"),)),
    AssistantMessage((Text("I look"), ToolCall("c", "look", "{}"))),
    ToolMessage("c", "look", "seen"),
    ToolMessage("c", "look", (Image(data=b"x"),)),
]
messages = st.lists(st.sampled_from(SAID), max_size=5)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, Sequence[Message]]]:
    """The messages of requests, one after the other, of two runs: grown, forked, cut, edited, as a log or as copies."""
    kept: list[Log[Message]] = [Log(draw(messages))]
    asked: list[tuple[str, Sequence[Message]]] = []
    for _ in range(draw(st.integers(1, 8))):
        log = draw(st.sampled_from(kept))
        match draw(st.sampled_from(["grow", "grow", "fork", "back", "cut", "edit"])):
            case "grow":
                log = kept[-1].append(*draw(messages))
            case "fork":
                log = log.append(*draw(messages))
            case "back":
                pass
            case "cut":
                log = Log(log[: draw(st.integers(0, len(log)))])
            case _:
                place = draw(st.integers(0, len(log)))
                log = Log([*log[:place], *draw(messages), *log[place + 1 :]])
        kept.append(log)
        asked.append((draw(st.sampled_from("ab")), draw(st.sampled_from([log, log, tuple(log), list(log)]))))
    return asked


GO, ON, CALL, RESULT = SAID[1], UserMessage("on"), SAID[4], SAID[5]
BEGUN: Log[Message] = Log([GO])
EDITS: dict[str, list[Sequence[Message]]] = {
    "what ended a group is gone, and the group goes on": [[GO, CALL, RESULT], [GO, ON, CALL, RESULT]],
    "an older log of the same lineage": [BEGUN.append(CALL, RESULT, ON), BEGUN],
    "shorter, and other after it": [[GO, CALL, RESULT, ON], [GO], [GO, ON]],
    "a system message within a turn": [[GO, SAID[0]], [GO, SAID[0], ON], [GO, SAID[0], ON, CALL], [SAID[0], GO, ON]],
    "nothing to say, then nothing at all": [[SAID[2], SAID[3]], [SAID[2], SAID[3], GO, CALL], [], [GO]],
}


@pytest.mark.parametrize(("codec_class", "model"), CODECS)
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_history_gives_the_same_bytes_as_encoding_afresh(codec_class: Any, model: str, edit: str) -> None:
    codec: Codec = codec_class()
    for history in EDITS[edit]:
        request = ModelRequest(history, run_id="run")
        assert codec.encode(request, model, True) == codec_class().encode(request, model, True)


@pytest.mark.parametrize(("codec_class", "model"), CODECS)
@given(asked=histories())
def test_what_is_kept_gives_the_same_bytes_as_encoding_afresh(codec_class: Any, model: str, asked: Any) -> None:
    codec: Codec = codec_class()
    for run_id, history in asked:
        request = ModelRequest(history, run_id=run_id)
        assert codec.encode(request, model, True) == codec_class().encode(request, model, True)


@pytest.mark.parametrize("take", [pytest.param(lambda log: log, id="log"), tuple, list])
def test_a_group_is_made_while_it_is_the_last_and_once_more_when_it_is_not(take: Any) -> None:
    made: list[str] = []
    history = History[list[Any]](list, lambda group, out: made.extend(message.text for message in group))
    log: Log[Message] = Log()
    for step in range(50):
        log = log.append(UserMessage(f"{step}a"), UserMessage(f"{step}b"))
        with history.follow("run", take(log)):
            pass
    assert {text: made.count(text) for text in made} == {f"{i}a": 1 for i in range(50)} | {
        f"{i}b": 2 if i < 49 else 1 for i in range(50)
    }


def test_a_log_that_grew_is_not_looked_through() -> None:
    class Watched(list[Message]):
        looks = 0

        def __iter__(self) -> Any:
            Watched.looks += 1
            return super().__iter__()

    log: Log[Message] = Log()
    log._items = Watched()
    history = History[list[Any]](list, lambda group, out: out.extend(group))
    for _ in range(10):
        log = log.append(UserMessage("x"))
        with history.follow("run", log) as trail:
            assert len(trail.made) == len(log)
    assert Watched.looks == 1, "when nothing was known of it"


def test_what_is_kept_of_a_log_does_not_hold_what_the_run_said_later() -> None:
    log: Log[Message] = Log([UserMessage("x")])
    history = History[list[Any]](list, lambda group, out: out.extend(group))
    with history.follow("run", log):
        pass
    items = log._items
    del log
    assert sys.getrefcount(items) == 2


def test_two_that_work_on_one_run_at_once_do_not_see_each_other() -> None:
    history = History[list[Any]](list, lambda group, out: out.extend(message.text for message in group))
    log: Log[Message] = Log([UserMessage("a"), UserMessage("b")])
    with history.follow("run", log):
        pass
    with history.follow("run", log.append(UserMessage("c"))) as one:
        with history.follow("run", log.append(UserMessage("d"))) as other:
            assert (one.made, other.made) == (["a", "b", "c"], ["a", "b", "d"])
        assert one.made == ["a", "b", "c"]
    assert history._size == sum(trail.size for trail in history._trails.values()) == 3


def test_what_failed_to_be_made_is_made_afresh_in_the_next_step() -> None:
    def put(group: Sequence[Message], out: list[Any]) -> None:
        out.extend(message.text for message in group)
        if failing:
            raise ValueError("no place for it")

    failing, history = True, History[list[Any]](list, put)
    with pytest.raises(ValueError, match="no place"), history.follow("run", [UserMessage("a")]):
        pass
    failing = False
    with history.follow("run", [UserMessage("a"), UserMessage("b")]) as trail:
        assert trail.made == ["a", "b"]


def test_system_messages_are_found_wherever_they_stand() -> None:
    history = History[list[Any]](list, lambda group, out: None)
    said: list[Message] = [SystemMessage("a"), UserMessage("x"), SystemMessage("b"), UserMessage("y")]
    for end, expected in ((2, ["a"]), (3, ["a", "b"]), (4, ["a", "b"]), (2, ["a"]), (0, []), (4, ["a", "b"])):
        with history.follow("run", said[:end]) as trail:
            assert trail.system == expected


@pytest.mark.parametrize(("codec_class", "model"), CODECS)
def test_half_a_character_beside_a_call_does_not_break_the_request(codec_class: Any, model: str) -> None:
    said = AssistantMessage((Text("a\ud83d"), ToolCall("c", "look", '{"a": 1}')))
    history = [UserMessage("go"), said, ToolMessage("c", "look", "\udc00")]
    body = codec_class().encode(ModelRequest(history), model, True)
    assert b'"a?"' in body
    assert body.decode().count("\\u") == 0


@pytest.mark.parametrize(("codec_class", "model"), CODECS)
def test_the_history_cannot_be_given_as_an_extra_field(codec_class: Any, model: str) -> None:
    name = {ResponsesCodec: "input", GoogleCodec: "contents"}.get(codec_class, "messages")
    request = ModelRequest([UserMessage("go")], settings=ModelSettings(extra={name: []}))
    with pytest.raises(Misuse, match=f"settings.extra has a field '{name}', which holds the run's messages"):
        codec_class().encode(request, model, True)
