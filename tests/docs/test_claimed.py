"""Claims of the pages that no other test shows by itself; `claims.toml` says which."""

import asyncio
import inspect
import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import treadle.journal
from treadle import (
    Agent,
    ClearToolResults,
    Conversation,
    KeepFirstAndRecent,
    Limits,
    MemoryJournal,
    Price,
    Retry,
    ShortenResult,
    SqliteJournal,
    Summarise,
    Text,
    Usage,
    ask_before,
    tool,
)
from treadle.journal import JournalError, PostgresJournal
from treadle.models import AssistantMessage, ModelReply, Overloaded, ToolCall
from treadle.testing import ScriptedModel


@tool(effect="read")
def look(page: int) -> str:
    """Looks at a page."""
    return f"page {page} is empty"


def tireless(request: Any) -> Any:
    return "Nothing." if request.tool_choice == "none" else [("look", {"page": request.step})]


@pytest.mark.parametrize("tokens", range(3000, 9000, 750))
def test_the_closing_reply_is_kept(tokens: int) -> None:
    limits = Limits(steps=None, tokens=tokens)
    result = Agent(ScriptedModel(tireless), tools=[look], limits=limits, watch_progress=False).run_sync(
        "What is there?"
    )
    assert (result.stop.reason, result.text) == ("max_tokens", "Nothing.")
    assert result.usage.total_tokens <= tokens


def test_a_tool_always_asks() -> None:
    paid: list[int] = []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    for amount in (0, 1, 10**6):
        result = Agent(ScriptedModel([[("pay", {"amount": amount})], "Done."]), tools=[pay]).run_sync("Pay.")
        assert (result.stop.reason, [one.tool for one in result.pending]) == ("waiting", ["pay"])
    assert paid == []


def test_a_call_is_made_again_three_times() -> None:
    made: list[int] = []

    @tool(effect="read")
    def search(words: str) -> str:
        """Searches."""
        made.append(1)
        return "nothing"

    agent = Agent(
        ScriptedModel([[("search", {"words": "a"})], "Nothing."]),
        tools=[search],
        on_tool_result=lambda call, result: Retry(),
    )
    assert agent.run_sync("Search.").text == "Nothing."
    assert len(made) == 1 + 3


def test_a_price_of_text_holds_for_sounds() -> None:
    price = Price(input=1, output=2)
    assert price.of(Usage(input_tokens=1000, audio_tokens=600)) == price.of(Usage(input_tokens=1000))


def test_another_hook_of_the_kind_will_do() -> None:
    async def run() -> str:
        journal = MemoryJournal()
        rules = {"tools": [look], "approvals": [ask_before(effect="read")], "journal": journal}
        script = [[("look", {"page": 1})], "Empty."]
        paused = await Agent(ScriptedModel(script), on_tool_result=lambda call, result: None, **rules).run("What?")

        def another(call: Any, result: Any) -> None:
            return None

        newer = Agent(ScriptedModel(["Empty."]), on_tool_result=another, **rules)
        return (await newer.resume(paused.run_id, approve=[paused.pending[0].key])).text

    assert asyncio.run(run()) == "Empty."


@pytest.mark.parametrize("journal", [MemoryJournal, SqliteJournal, PostgresJournal])
def test_every_journal_takes_redact(journal: type) -> None:
    assert "redact" in inspect.signature(journal).parameters


def test_every_error_of_a_journal_is_a_journal_error() -> None:
    errors = [one for one in vars(treadle.journal).values() if isinstance(one, type) and issubclass(one, Exception)]
    assert len(errors) > 5
    assert [one for one in errors if not issubclass(one, JournalError)] == []


def test_a_result_has_every_step_and_call() -> None:
    script = [[("look", {"page": 1}), ("look", {"page": 2})], [("look", {"page": 3}), ("no_such", {})], "Empty."]
    result = Agent(ScriptedModel(script), tools=[look]).run_sync("What is there?")
    assert [(step.number, len(step.calls), step.usage.output_tokens is not None) for step in result.steps] == [
        (0, 2, True),
        (1, 2, True),
        (2, 0, True),
    ]
    assert all(step.decision is not None and step.message is not None for step in result.steps)
    assert [(call.name, call.arguments) for call in result.tool_calls_made] == [
        ("look", {"page": 1}),
        ("look", {"page": 2}),
        ("look", {"page": 3}),
        ("no_such", {}),
    ]
    assert all(call.result.text for call in result.tool_calls_made)


def test_a_model_never_retries_by_itself() -> None:
    asked: list[int] = []

    def busy(request: Any) -> str:
        asked.append(request.step)
        raise Overloaded("busy")

    result = Agent(ScriptedModel(busy), retries=0).run_sync("Hello?")
    assert (result.stop.reason, asked) == ("model_error", [0])


def test_a_model_is_shown_no_traceback() -> None:
    @tool
    def breaks(page: int) -> str:
        """Breaks."""
        raise RuntimeError("the disk is gone")

    result = Agent(ScriptedModel([[("breaks", {"page": 1})], "It broke."]), tools=[breaks]).run_sync("Break.")
    shown = result.tool_calls_made[0].result.text
    assert "RuntimeError" in shown
    assert "the disk is gone" in shown
    assert "Traceback" not in shown
    assert __file__ not in shown


@pytest.mark.parametrize(
    ("policy", "cut"),
    [
        (ShortenResult(max_tokens=200), True),
        (ClearToolResults(high=100, low=50, keep=0), False),
        (KeepFirstAndRecent(high=100, low=50), False),
        (Summarise(ScriptedModel(["So it was."]), high=100, low=50), False),
    ],
)
def test_the_last_exchange_is_shortened_by_one_policy_alone(policy: Any, cut: bool) -> None:
    huge = "lorem ipsum " * 2000

    @tool(effect="read")
    def read_all(page: int) -> str:
        """Reads."""
        return huge

    model = ScriptedModel([[("read_all", {"page": 1})], [("read_all", {"page": 2})], "Read."])
    agent = Agent(model, tools=[read_all], context=[policy], limits=Limits(steps=5))
    assert agent.run_sync("Read all.").text == "Read."
    assert (model.requests[2].messages[-1].text != huge) is cut


def test_requests_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            choice = {"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}
            body = json.dumps({"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Proxy)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "http_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.server_port}")
        assert Agent("local:m@http://models.example/v1").run_sync("Is it cold?").text == "Yes."
        monkeypatch.setenv("NO_PROXY", "models.example")
        assert Agent("local:m@http://models.example/v1", retries=0).run_sync("Is it cold?").stop.reason == "model_error"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert seen == ["http://models.example/v1/chat/completions"]


def test_what_was_reported_is_not_estimated() -> None:
    sizes: list[int] = []

    def counts(request: Any) -> ModelReply:
        call = ToolCall(f"call_{request.step}", "look", json.dumps({"page": request.step}))
        message = AssistantMessage((Text("Done."),) if request.step == 3 else (call,))
        return ModelReply(message, Usage(input_tokens=1000 + request.step, output_tokens=5), "stop")

    class Watching:
        def edit(self, messages: Any, tokens: int, facts: Any) -> None:
            sizes.append(tokens)

    Agent(ScriptedModel(counts), tools=[look], context=[Watching()]).run_sync("What is there?")
    # The request of a step is what the one before was reported to take, and what is new since.
    assert len(sizes) > 2
    assert all(1000 <= size < 1100 for size in sizes[1:])


@pytest.mark.skipif(os.name != "posix", reason="files have other rights there")
def test_a_saved_conversation_is_its_owners(tmp_path: Path) -> None:
    talk = Conversation()
    talk.add_user("Hello?")
    talk.save(tmp_path / "talk.json")
    assert (tmp_path / "talk.json").stat().st_mode & 0o777 == 0o600
