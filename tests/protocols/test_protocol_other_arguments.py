"""A call that was allowed with other arguments meanwhile is decided otherwise.

- who allowed it as it was, or with arguments of their own, was told that this held: it was only looked whether it was
  allowed -> the tests of this file
"""

import json
from typing import Any

import httpx2
import pytest
from front_agents import PAID

MINE = {"to": "Bob", "amount": 5}


def waits(url: str, name: str) -> tuple[str, dict[str, Any]]:
    """A run that waits, and its interrupt as AG-UI has it."""
    said = [{"id": "u1", "role": "user", "content": "pay"}]
    asked = thread(url, name, "r1", messages=said)
    last = json.loads([line for line in asked.text.split("\n\n") if line][-1].removeprefix("data: "))
    (interrupt,) = last["outcome"]["interrupts"]
    return asked.headers["x-treadle-run"], interrupt


def thread(url: str, name: str, run: str, **more: Any) -> httpx2.Response:
    body = {"threadId": name, "runId": run, "tools": [], "context": [], "state": {}, "messages": []}
    return httpx2.post(f"{url}/ag-ui/shop", json={**body, **more}, timeout=30)


def allowed(url: str, run: str, arguments: dict[str, Any] | None) -> None:
    """Somebody else allows the call, with other arguments if there are any."""
    (one,) = httpx2.get(f"{url}/api/runs/{run}").json()["pending"]
    verdict: dict[str, Any] = {"call": one["call"], "fingerprint": one["fingerprint"], "verdict": "approve"}
    verdict |= {"verdict": "edit", "arguments": arguments} if arguments else {}
    assert httpx2.post(f"{url}/api/runs/{run}/decisions", json={"decisions": [verdict]}).status_code == 200
    httpx2.get(f"{url}/api/runs/{run}/stream", params={"until": "pause"}, timeout=30)


@pytest.mark.parametrize(
    ("theirs", "mine", "holds"),
    [
        ({"to": "Bob", "amount": 7}, None, False),
        ({"to": "Bob", "amount": 7}, MINE, False),
        (None, MINE, False),
        ({"amount": 5, "to": "Bob"}, MINE, True),
        (None, {"to": "Bob", "amount": 500}, True),
        (None, None, True),
    ],
)
def test_an_interrupt_whose_call_was_allowed_with_other_arguments_is_a_conflict(
    url: str, theirs: dict[str, Any] | None, mine: dict[str, Any] | None, holds: bool
) -> None:
    name = f"other-arguments-{theirs}-{mine}".replace("/", "")
    run, interrupt = waits(url, name)
    allowed(url, run, theirs)
    paid = [*PAID]
    payload = {"approved": True} | ({"arguments": mine} if mine else {})
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": payload}]
    late = thread(url, name, "r2", resume=resume)
    assert (late.status_code, PAID) == (200 if holds else 409, paid), late.text


def respond(url: str, **body: Any) -> httpx2.Response:
    return httpx2.post(f"{url}/v1/responses", json={"model": "shop", **body}, timeout=30)


@pytest.mark.parametrize("theirs", [None, {"to": "Bob", "amount": 7}])
def test_a_response_that_allows_what_was_allowed_with_other_arguments_is_a_conflict(
    url: str, theirs: dict[str, Any] | None
) -> None:
    asked = respond(url, input="pay").json()
    (name,) = [one["id"] for one in asked["output"] if "approval" in one["type"]]
    allowed(url, asked["treadle"]["run"], theirs)
    item = {"type": "mcp_approval_response", "approval_request_id": name, "approve": True}
    late = respond(url, input=[item], previous_response_id=asked["id"])
    assert late.status_code == (409 if theirs else 200), late.text
