"""Two users of one server: what is the one's is not there for the other, in any protocol."""

import json
from collections.abc import Iterator
from typing import Any

import front_agents
import httpx2
import pytest
from front_agents import COLOUR, PAID

from treadle.serve import User


def who(request: Any) -> User | None:
    name = request.headers.get("x-user")
    return None if name is None else User(name, agents=["shop"] if name == "bob" else None)


@pytest.fixture(scope="module")
def shared() -> Iterator[str]:
    with front_agents.served(auth=who) as address:
        yield address


def post(url: str, path: str, user: str | None, body: Any) -> httpx2.Response:
    headers = {} if user is None else {"x-user": user}
    return httpx2.post(f"{url}{path}", json=body, headers=headers, timeout=30)


def chat(text: str, *more: Any) -> dict[str, Any]:
    said = {"id": "u", "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"id": "one-chat", "messages": [*more, said]}


def thread(text: str, **more: Any) -> dict[str, Any]:
    return {"threadId": "one-thread", "runId": "r", "messages": [{"id": "u", "role": "user", "content": text}], **more}


def test_another_users_chat_is_not_there(shared: str) -> None:
    assert "user:remember" not in post(shared, "/ai-sdk/shop", "ann", chat("hello")).text
    theirs = post(shared, "/ai-sdk/shop", "bob", chat("remember")).text
    assert "ello" not in theirs
    assert "rror" not in theirs
    post(shared, "/ag-ui/shop", "ann", thread("hello"))
    theirs = post(shared, "/ag-ui/shop", "bob", thread("remember")).text
    assert ("ello" not in theirs, "RUN_FINISHED" in theirs) == (True, True)


def test_another_users_approval_decides_nothing(shared: str) -> None:
    PAID.clear()
    asked = post(shared, "/v1/responses", "ann", {"model": "shop", "input": "pay"}).json()
    request = asked["output"][-1]["id"]
    answer = {"type": "mcp_approval_response", "approval_request_id": request, "approve": True}
    for body in ({"input": [answer], "previous_response_id": asked["id"]}, {"input": [answer]}):
        assert post(shared, "/v1/responses", "bob", {"model": "shop", **body}).status_code == 404
    entry = {"interruptId": request.removeprefix("mcpr_"), "status": "resolved", "payload": True}
    assert post(shared, "/ag-ui/shop", "bob", thread("x", threadId="t", resume=[entry])).status_code == 400
    assert PAID == []


def test_another_users_run_is_not_gone_on_with(shared: str) -> None:
    tool = {"type": "function", "function": {"name": "choose", "parameters": COLOUR}}
    asked: Any = {"role": "user", "content": "choose"}
    first = post(shared, "/v1/chat/completions", "ann", {"model": "shop", "messages": [asked], "tools": [tool]}).json()
    message = first["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "bob's"}
    body = {"model": "shop", "messages": [asked, message, result], "tools": [tool]}
    theirs = post(shared, "/v1/chat/completions", "bob", body)
    # For bob it is a history that he posts, and a run of his own.
    assert theirs.headers["x-treadle-run"] != first["treadle"]["run"]
    events = httpx2.get(f"{shared}/api/runs/{first['treadle']['run']}/events", headers={"x-user": "ann"}).text
    assert "bob's" not in events
    response = post(shared, "/v1/responses", "ann", {"model": "shop", "input": "hello"}).json()["id"]
    gone = {"model": "shop", "input": "remember", "previous_response_id": response}
    assert post(shared, "/v1/responses", "bob", gone).status_code == 404
    assert httpx2.get(f"{shared}/v1/responses/{response}", headers={"x-user": "bob"}).status_code == 404


def test_an_agent_that_a_user_may_not_use_is_not_there(shared: str) -> None:
    assert post(shared, "/v1/responses", "bob", {"model": "typed", "input": "n?"}).status_code == 404
    assert post(shared, "/ai-sdk/typed", "bob", chat("n?")).status_code == 404
    listed = httpx2.get(f"{shared}/v1/models", headers={"x-user": "bob"}).json()["data"]
    assert [one["id"] for one in listed] == ["shop"]


def test_nobody_is_let_in_who_is_not_known(shared: str) -> None:
    for path, body in (("/ai-sdk/shop", chat("x")), ("/ag-ui/shop", thread("x")), ("/v1/responses", {"model": "shop"})):
        assert post(shared, path, None, body).status_code == 401
    assert httpx2.get(f"{shared}/v1/models").status_code == 401


@pytest.mark.parametrize("question", ["delegate", "parallel", "fails", "withdrawn"])
def test_a_user_who_may_not_see_inside_is_told_the_same_but_for_that(shared: str, question: str) -> None:
    body = thread(question, threadId=question)
    events = [
        json.loads(line.removeprefix("data: "))
        for line in post(shared, "/ag-ui/shop", "bob", body).text.split("\n\n")
        if line
    ]
    kinds = [event["type"] for event in events]
    assert kinds[-1] == ("RUN_ERROR" if question == "fails" else "RUN_FINISHED")
    assert kinds.count("SUBAGENT_FINISHED") == (1 if question == "delegate" else 0)
    assert not any(word in str(events) for word in ("secret-key", "inner words", "You keep a shop"))
