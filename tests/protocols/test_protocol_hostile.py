"""Posts that are wrong somewhere: refused in words, whatever is wrong; and nothing that they name is fetched."""

import copy
import socket
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from front_agents import COLOUR
from hypothesis import given
from hypothesis import strategies as st

from treadle.serve.protocols import ag_ui, ag_ui_post, ai_sdk, openai_chat, openai_responses, openai_responses_post
from treadle.serve.refused import Refused

PNG = "data:image/png;base64,aGk="
PDF = "data:application/pdf;base64,aGk="
FUNCTION = {"name": "choose", "description": "Chooses.", "parameters": COLOUR}
CALL = {"id": "q", "type": "function", "function": {"name": "choose", "arguments": "{}"}}
TOOL_PARTS = [
    {"type": "tool-pay", "toolCallId": "x", "state": "approval-responded", "approval": {"id": "x", "approved": True}},
    {"type": "tool-x", "toolCallId": "y", "state": "output-available", "output": 3},
    {"type": "dynamic-tool", "toolCallId": "z", "state": "output-error", "errorText": "no"},
]
POSTS: dict[str, Any] = {
    "ai_sdk": {
        "id": "c", "trigger": "submit-message", "edits": {"x": {"a": 1}},
        "messages": [
            {"id": "a", "role": "assistant", "parts": TOOL_PARTS},
            {"id": "u", "role": "user", "parts": [
                {"type": "text", "text": "hello"},
                {"type": "file", "mediaType": "image/png", "url": PNG, "filename": "x"},
            ]},
        ],
    },
    "ag_ui": {
        "threadId": "t", "runId": "r", "protocolVersion": "1.0", "state": {},
        "messages": [
            {"id": "a", "role": "assistant", "toolCalls": [CALL]},
            {"id": "t", "role": "tool", "toolCallId": "q", "content": "c", "error": "e"},
            {"id": "u", "role": "user", "content": [
                {"type": "text", "text": "hello"},
                {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}},
            ]},
        ],
        "tools": [FUNCTION], "context": [{"description": "d", "value": "v"}],
        "resume": [{"interruptId": "i", "status": "resolved", "payload": {"approved": True}}],
    },
    "chat": {
        "model": "shop", "stream": False, "stream_options": {"include_usage": True}, "tool_choice": "auto",
        "tools": [{"type": "function", "function": FUNCTION}], "response_format": {"type": "text"},
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "assistant", "content": "c", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "q", "content": "r"},
            {"role": "user", "content": [
                {"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": PNG}},
                {"type": "file", "file": {"file_data": PDF, "filename": "f"}},
            ]},
        ],
    },
    "responses": {
        "model": "shop", "instructions": "i", "stream": False, "text": {"format": {"type": "text"}},
        "tools": [{"type": "function", **FUNCTION}], "previous_response_id": None, "conversation": {"id": "c"},
        "input": [
            {"type": "function_call", "call_id": "q", "name": "choose", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "q", "output": "r"},
            {"type": "reasoning", "summary": []},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_x", "approve": True, "reason": "r"},
            {"role": "user", "content": [
                {"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": PNG},
                {"type": "input_file", "file_data": PDF},
            ]},
        ],
    },
}  # fmt: skip
WRONG: list[Any] = [
    None, True, 0, -1, 1e308, 2**70, "", " ", "\ud800", "\x00", "__proto__", [], {}, [[]], [{}], {"type": 3},
    {"type": "nonsense"}, {"type": "object", "required": "a"},
    {"type": "object", "properties": {"a": {"pattern": "("}}},
    "data:,", "data:image/png;base64,%%%", "http://[::1", "file:///etc/passwd", "system", "tool", "user", "assistant",
]  # fmt: skip


def read_ag_ui(post: Any) -> object:
    return ag_ui.Writer("run", ag_ui_post.posted(post))


def read_responses(post: Any) -> object:
    return openai_responses.Writer("run", 0, openai_responses_post.posted(post), 0.0)


READ: dict[str, Callable[[Any], object]] = {
    "ai_sdk": ai_sdk.posted, "ag_ui": read_ag_ui, "chat": openai_chat.posted, "responses": read_responses,
}  # fmt: skip


def read(protocol: str, post: Any) -> tuple[int, str]:
    """The status that a post would have, and the words for it."""
    try:
        READ[protocol](post)
    except Refused as refused:
        return refused.status, refused.message
    return 200, "read"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from places(inner, (*path, key))


@pytest.mark.parametrize("protocol", POSTS)
def test_the_posts_themselves_are_right(protocol: str) -> None:
    assert read(protocol, POSTS[protocol]) == (200, "read")


@given(st.sampled_from(sorted(POSTS)), st.data())
def test_a_post_that_is_wrong_anywhere_is_read_or_refused(protocol: str, data: st.DataObject) -> None:
    post = copy.deepcopy(POSTS[protocol])
    for _ in range(data.draw(st.integers(1, 2))):
        *way, last = data.draw(st.sampled_from(list(places(post))))
        inner = post
        for key in way:
            inner = inner[key]
        inner[last] = copy.deepcopy(data.draw(st.sampled_from(WRONG)))
    status, words = read(protocol, post)
    assert status in (200, 400)
    assert words


def test_nothing_that_a_schema_names_is_fetched(url: str) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.settimeout(0.3)
        there = f"http://127.0.0.1:{listening.getsockname()[1]}/schema"
        for schema in ({"$ref": there}, {"type": "object", "properties": {"of": {"$ref": there}}}):
            tool = {"type": "function", "function": {**FUNCTION, "parameters": schema}}
            body = {"model": "shop", "messages": [{"role": "user", "content": "choose"}], "tools": [tool]}
            assert httpx2.post(f"{url}/v1/chat/completions", json=body).status_code < 500
        with pytest.raises(TimeoutError):
            listening.accept()


@pytest.mark.parametrize("path", ["/ai-sdk/shop", "/ag-ui/shop", "/v1/chat/completions", "/v1/responses"])
def test_what_is_no_json_or_too_large_is_refused(url: str, path: str) -> None:
    for body, kind, status in (
        (b"{", "application/json", 400),
        (b'{"id": ' + b"[" * 100_000, "application/json", 400),
        (b"[]", "application/json", 422),
        (b'{"id": "\xff"}', "application/json", 400),
        (b"{}", "text/plain", 415),
        (b'"' + b"x" * 5_000_000 + b'"', "application/json", 413),
    ):
        answer = httpx2.post(f"{url}{path}", content=body, headers={"content-type": kind})
        assert answer.status_code == status, (body[:20], answer.text)
