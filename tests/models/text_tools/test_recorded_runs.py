"""Calls that real models wrote, in the forms that they were written in, are read as what they were."""

import gzip
import json
from pathlib import Path

import pytest

from treadle.kernel.messages import AssistantMessage, ToolCall, ToolSpec
from treadle.models.text_tools.history import History
from treadle.models.text_tools.model import _form

RECORDED = Path(__file__).resolve().parents[4] / "shared" / "recordings" / "runs.jsonl.gz"
CHAT = RECORDED.with_name("openai_chat.jsonl.gz")

pytestmark = pytest.mark.skipif(
    not RECORDED.is_file(), reason=f"the recordings are kept outside the repository and are not at {RECORDED}"
)


def calls(corpora, most):
    taken = dict.fromkeys(corpora, 0)
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            for call in row["calls"] if row["corpus"] in taken else ():
                if taken[row["corpus"]] < most:
                    taken[row["corpus"]] += 1
                    yield call["name"], call["arguments"]


def one_argument(name):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    return ToolSpec(name, "", schema)


def test_actions_with_brackets_are_read_as_recorded(protocols):
    read = 0
    for name, text in calls(["HotpotQA ReAct", "WebShop ReAct"], 3000):
        if name == "?" or not text.strip() or "\n" in text or text[0] in "\"'{":
            continue
        reply = protocols.reply(f"Thought 1: So.\nAction 1: {name}[{text}]\n", "react", tools=(one_argument(name),))
        (call,) = reply.message.calls
        if "]" in text and "[" in text.partition("]")[2]:
            assert (call.name, "nothing else on its line" in call.arguments) == ("invalid_call", True), text
            continue
        assert (call.name, json.loads(call.arguments)) == (name, {"text": text.strip()}), text
        read += 1
    assert read > 2000


@pytest.mark.parametrize("format", ["json", "react", "tags"])
def test_recorded_code_and_queries_come_back_as_arguments(protocols, format):
    form, read = _form(format), 0
    corpora = ["InterCode sql", "InterCode bash", "InterCode python", "MINT 10 models", "InterCode ctf gpt-4"]
    for _, text in calls(corpora, 120):
        made = ToolCall("call_0_0", "run", json.dumps({"text": text}, ensure_ascii=False))
        (rendered,) = History(form).render("", [AssistantMessage((made,))])
        reply = protocols.reply(rendered.text, format, tools=(one_argument("run"),))
        assert reply.message == AssistantMessage((made,)), text
        read += 1
    assert read > 400


@pytest.mark.parametrize("format", ["json", "react", "tags"])
def test_recorded_thoughts_and_answers_are_no_calls(protocols, format):
    """Plain texts of many models: none tries to call one of our tools, and each is kept as it is."""
    read = 0
    with gzip.open(CHAT, "rt", encoding="utf-8") as lines:
        for line in lines:
            body = json.loads(line)["response"]
            choices = body.get("choices") if isinstance(body, dict) else None
            text = choices[0]["message"].get("content") if choices and "message" in choices[0] else None
            if isinstance(text, str) and text.strip() and "<think>" not in text:
                message = protocols.reply(text, format).message
                assert (message.text, message.calls) == (text, ())
                read += 1
    assert read > 30


def texts_and_tools(row):
    """What a model said in words in a recorded exchange, and the tools that it could have called."""
    body, asked = row["response"], row["request"] if isinstance(row["request"], dict) else {}
    if not isinstance(body, dict):
        return [], ()
    listed = [tool.get("function") or tool for tool in asked.get("tools") or [] if isinstance(tool, dict)]
    tools = {
        tool["name"]: ToolSpec(tool["name"], "", tool.get("parameters") or tool.get("input_schema") or {})
        for tool in listed
        if isinstance(tool, dict) and tool.get("name")
    }
    parts = body.get("content") if isinstance(body.get("content"), list) else []
    for item in body.get("output") or []:
        parts = [*parts, *(item.get("content") or [])]
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)], tools


@pytest.mark.parametrize("format", ["json", "react", "tags"])
def test_recorded_answers_of_models_with_tools_are_no_calls_of_these_tools(protocols, format):
    read = 0
    for name in ("anthropic_messages", "openai_responses"):
        with gzip.open(RECORDED.with_name(f"{name}.jsonl.gz"), "rt", encoding="utf-8") as lines:
            for line in lines:
                texts, tools = texts_and_tools(json.loads(line))
                for text in texts if tools else ():
                    message = protocols.reply(text, format, tools=(*protocols.specs, *tools.values())).message
                    assert (message.text, message.calls) == (text, ())
                    read += 1
    assert read > 100
