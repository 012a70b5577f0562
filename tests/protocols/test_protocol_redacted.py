"""A journal that redacts: what a client says is known again though it is kept in other words."""

import json
from collections.abc import Iterator
from typing import Any

import front_agents
import httpx2
import pytest
from front_agents import GATE

from treadle import MemoryJournal


@pytest.fixture
def url() -> Iterator[str]:
    with front_agents.served(journal=MemoryJournal(redact=lambda text: text.replace("4711", "[CARD]"))) as address:
        yield address


def parts(response: httpx2.Response) -> list[Any]:
    assert response.status_code == 200, response.text
    return [json.loads(line[6:]) for line in response.text.split("\n\n") if line.startswith("data: {")]


def test_whoever_says_a_secret_to_a_run_that_waits_is_not_told_it(url: str) -> None:
    def send(*said: str) -> list[Any]:
        messages = [{"id": one, "role": "user", "parts": [{"type": "text", "text": one}]} for one in said]
        body = {"id": "a-chat", "trigger": "submit-message", "messages": messages}
        return parts(httpx2.post(f"{url}/ai-sdk/shop", json=body, timeout=30))

    send("pay")
    told = send("remember 4711")
    assert [one for one in told if one["type"] == "data-said"] == []
    (run,) = {one["messageMetadata"]["run"] for one in told if one["type"] == "start"}
    assert "remember [CARD]" in httpx2.get(f"{url}/api/runs/{run}").text


def test_a_question_with_a_secret_that_comes_again_is_not_said_to_its_run(url: str) -> None:
    def body(run: str) -> dict[str, Any]:
        said = [{"id": "u", "role": "user", "content": "slow 4711"}]
        return {"threadId": "a-thread", "runId": run, "messages": said, "tools": [], "context": [], "state": {}}

    with httpx2.stream("POST", f"{url}/ag-ui/shop", json=body("r1"), timeout=30) as first:
        run = first.headers["x-treadle-run"]
        assert GATE.entered.wait(10)
    with httpx2.stream("POST", f"{url}/ag-ui/shop", json=body("r2"), timeout=30) as again:
        assert again.headers["x-treadle-run"] == run
        GATE.open.set()
        again.read()
    said = [one["content"] for one in httpx2.get(f"{url}/api/runs/{run}").json()["messages"] if one["role"] == "user"]
    assert said == ["slow [CARD]"]
