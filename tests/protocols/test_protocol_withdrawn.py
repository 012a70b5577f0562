"""A reply that breaks off while somebody watches: each protocol takes back what it showed, or says so."""

from typing import Any

import pytest
from front_agents import agents

from treadle.serve.protocols import ag_ui, ag_ui_post, ai_sdk, openai_chat, openai_responses
from treadle.serve.protocols.narrator import Narrator
from treadle.serve.protocols.openai_caller import Posted

pytestmark = pytest.mark.anyio


async def written(writer: Any) -> list[dict[str, Any]]:
    narrator, parts = Narrator(), list[dict[str, Any]]()
    async with agents()["shop"].stream("withdrawn") as run:
        async for event in run:
            parts += [part for move in narrator.hear(event) for part in writer.write(move)]
    return parts


async def test_version_6_is_told_in_words_and_its_call_is_closed() -> None:
    parts = await written(ai_sdk.Writer("run", "run"))
    text = "".join([part["delta"] for part in parts if part["type"] == "text-delta"])
    assert text == "I was going to \n[The reply broke off.]\nI say it again."
    assert [part["toolCallId"] for part in parts if part["type"] == "tool-input-error"] == ["call_lost"]


async def test_version_7_takes_the_step_back() -> None:
    parts = await written(ai_sdk.Writer("run", "run", (), 7))
    kept = parts[[part["type"] for part in parts].index("reset-step") :]
    assert "".join([part["delta"] for part in kept if part["type"] == "text-delta"]) == "I say it again."


async def test_ag_ui_tells_the_thread_without_it() -> None:
    asked = {"id": "u", "role": "user", "content": "withdrawn"}
    body = {"threadId": "t", "runId": "r", "messages": [asked]}
    events = await written(ag_ui.Writer("run", ag_ui_post.posted(body)))
    (snapshot,) = [event for event in events if event["type"] == "MESSAGES_SNAPSHOT"]
    assert snapshot["messages"] == [asked]
    started = [event["toolCallId"] for event in events if event["type"] == "TOOL_CALL_START"]
    assert [event["toolCallId"] for event in events if event["type"] == "TOOL_CALL_END"] == started


async def test_chat_says_in_the_stream_that_it_broke_off_and_not_in_the_whole() -> None:
    writer = openai_chat.Writer("run", "shop", 0.0)
    chunks = await written(writer)
    text = "".join([one["choices"][0]["delta"].get("content") or "" for one in chunks])
    assert text == "I was going to \n[The reply broke off.]\nI say it again."
    assert writer.whole()["choices"][0]["message"]["content"] == "I say it again."


async def test_responses_keep_an_empty_message_that_is_incomplete() -> None:
    writer = openai_responses.Writer("run", 0, Posted("shop", (), None), 0.0)
    await written(writer)
    lost, kept = writer.whole()["output"]
    assert (lost["status"], lost["content"], kept["status"]) == ("incomplete", [], "completed")
