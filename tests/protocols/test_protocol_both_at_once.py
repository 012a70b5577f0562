"""A post that decides on what waits, and says something beside it: both count, once, however often it comes."""

import json
from typing import Any

import front_agents
import httpx2
import pytest
from front_agents import COLOUR, PAID

CHOOSE = {"name": "choose", "description": "Chooses.", "parameters": COLOUR}
FLAT = {"type": "function", **CHOOSE}
PUT = 'A person put these arguments in place of yours: {"to":"Bob","amount":7}'
CORRECTED = [{"type": "text", "text": PUT}, {"type": "text", "text": "paid 7 to Bob"}]
WORDS = {"role": "user", "content": "and hurry"}


def told(url: str, run: str) -> list[Any]:
    """What happened in a run, from its first result on: results as they came, what was said, and how it ended."""
    found = httpx2.get(f"{url}/api/runs/{run}").json()
    said = [
        one["content"]
        for one in found["messages"]
        if one["role"] == "user" or (one["role"] == "tool" and one["name"] != "look_up")
    ]
    return [*said[1:], found["status"]]


def parts(response: httpx2.Response) -> list[Any]:
    """What a stream says, but for when it was said."""
    assert response.status_code == 200, response.text
    found = [json.loads(line[6:]) for line in response.text.split("\n\n") if line.startswith("data: {")]
    return [{name: value for name, value in one.items() if name != "timestamp"} for one in found]


def test_a_verdict_and_a_message_of_a_chat_both_count(url: str) -> None:
    def send(*more: Any, **fields: Any) -> httpx2.Response:
        question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "pay"}]}
        body = {"id": "both-at-once", "trigger": "submit-message", "messages": [question, *more], **fields}
        return httpx2.post(f"{url}/ai-sdk/shop", json=body, timeout=30)

    first, *asked = parts(send())
    (asks,) = [one for one in asked if one["type"] == "tool-approval-request"]
    part = {"type": "tool-pay", "toolCallId": asks["toolCallId"], "state": "approval-responded", "input": {}}
    part["approval"] = {"id": asks["approvalId"], "approved": True}
    shown = {"id": first["messageId"], "role": "assistant", "parts": [part]}
    words = {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "and hurry"}]}
    edits = {asks["approvalId"]: {"to": "Bob", "amount": 7}}

    done = send(shown, words, edits=edits)
    assert told(url, done.headers["x-treadle-run"]) == [CORRECTED, "and hurry", "finished"]
    assert parts(send(shown, words, edits=edits))[0] == parts(done)[0], "the same post once more is told again"
    assert PAID == [("Bob", 7)]
    kinds = [one["type"] for one in parts(done) if one.get("toolCallId")]
    assert kinds == ["tool-input-available", "tool-output-available"], "it is another message, with the call in it"
    kept = httpx2.get(f"{url}/ai-sdk/shop/both-at-once/messages").json()
    assert parts(done)[0]["messageId"] == kept[-1]["id"], "and the one that the chat has when it is opened again"


def test_a_result_and_a_message_of_a_thread_both_count(url: str) -> None:
    def send(run: str, *more: Any) -> list[Any]:
        messages = [{"id": "u1", "role": "user", "content": "choose"}, *more]
        body = {"threadId": "both-in-a-thread", "runId": run, "tools": [CHOOSE], "context": [], "state": {}}
        return parts(httpx2.post(f"{url}/ag-ui/shop", json={**body, "messages": messages}, timeout=30))

    (call,) = send("r1")[-1]["outcome"]["pendingToolCallIds"]
    result = {"id": "t", "role": "tool", "toolCallId": call, "content": "the red one"}
    done, run = send("r2", result, {"id": "u2", **WORDS}), call.partition(":")[0]
    assert done[-1]["outcome"] == {"type": "success"}, "nothing waits for what the client has carried out"
    assert told(url, run) == ["the red one", "and hurry", "finished"]
    assert send("r2", result, {"id": "u2", **WORDS})[-1] == done[-1], "the same post once more is told again"
    assert told(url, run) == ["the red one", "and hurry", "finished"]


@pytest.mark.parametrize("words_first", [False, True])
def test_an_approval_and_words_of_a_caller_both_count(url: str, words_first: bool) -> None:
    asked = post(url, input="pay")
    yes = {"type": "mcp_approval_response", "approval_request_id": asked["output"][-1]["id"], "approve": True}
    given = [WORDS, yes] if words_first else [yes, WORDS]
    done = post(url, input=given, previous_response_id=asked["id"], instructions="Be kind.")
    assert told(url, done["treadle"]["run"])[0] == "paid 500 to Bob"
    assert "and hurry" in str(told(url, done["treadle"]["run"])[1])
    response = answer(url, input=given, previous_response_id=asked["id"])
    assert (response.status_code, PAID) == (409, [("Bob", 500)]), "it is decided, and nothing is begun for it"


def test_a_result_and_words_of_a_caller_both_count(url: str) -> None:
    asked = post(url, input="choose", tools=[FLAT])
    result = {"type": "function_call_output", "call_id": asked["output"][-1]["call_id"], "output": "the red one"}
    body = {"input": [result, WORDS], "previous_response_id": asked["id"], "tools": [FLAT]}
    done = post(url, "both-at-once", **body)
    run = done["treadle"]["run"]
    assert told(url, run) == ["the red one", "and hurry", "finished"]
    assert post(url, "both-at-once", **body)["output"] == done["output"], "under its key it is told again"
    assert told(url, run) == ["the red one", "and hurry", "finished"]


def test_an_approval_after_what_was_said_before_it_is_taken(url: str) -> None:
    asked = post(url, input="pay")
    request = asked["output"][-1]
    yes = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
    history = [{"role": "user", "content": "pay"}, request]
    refused = answer(url, input=[*history, yes, WORDS])
    assert (refused.status_code, PAID) == (400, [])
    assert "previous_response_id" in refused.text
    done = post(url, input=[*history, yes], instructions="Be kind.")
    assert (done["status"], PAID) == ("completed", [("Bob", 500)])
    assert told(url, done["treadle"]["run"]) == ["paid 500 to Bob", "finished"]


def test_a_picture_for_a_run_that_waits_is_refused_and_not_left_out(url: str) -> None:
    asked = post(url, input="pay")
    picture = {"type": "input_image", "image_url": "https://example.com/a.png"}
    content = [{"type": "input_text", "text": "like this"}, picture]
    refused = answer(url, input=[{"role": "user", "content": content}], previous_response_id=asked["id"])
    assert refused.status_code == 409
    assert "text only" in refused.text
    assert told(url, asked["treadle"]["run"])[1:] == ["waiting"]


def test_a_post_that_decides_in_two_ways_decides_nothing(url: str) -> None:
    def chat(*shown: Any) -> httpx2.Response:
        question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "pay"}]}
        body = {"id": "in-two-ways", "trigger": "submit-message", "messages": [question, *shown]}
        return httpx2.post(f"{url}/ai-sdk/shop", json=body, timeout=30)

    def thread(run: str, **more: Any) -> httpx2.Response:
        said = [{"id": "u1", "role": "user", "content": "pay"}]
        body = {"threadId": "two-ways", "runId": run, "tools": [], "context": [], "state": {}, "messages": said}
        return httpx2.post(f"{url}/ag-ui/shop", json={**body, **more}, timeout=30)

    (asks,) = [one for one in parts(chat()) if one["type"] == "tool-approval-request"]
    part = {"type": "tool-pay", "toolCallId": asks["toolCallId"], "state": "approval-responded", "input": {}}
    both = [{**part, "approval": {"id": asks["approvalId"], "approved": yes}} for yes in (False, True)]
    assert chat({"id": "a1", "role": "assistant", "parts": both}).status_code == 400

    (interrupt,) = parts(thread("r1"))[-1]["outcome"]["interrupts"]
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": yes} for yes in (False, True)]
    assert thread("r2", resume=resume).status_code == 400

    asked = post(url, input="pay")
    answers = [
        {"type": "mcp_approval_response", "approval_request_id": asked["output"][-1]["id"], "approve": yes}
        for yes in (False, True)
    ]
    refused = answer(url, input=answers, previous_response_id=asked["id"])
    assert (refused.status_code, PAID) == (400, [])
    assert "in two ways at once" in refused.text


def answer(url: str, key: str = "", **body: Any) -> httpx2.Response:
    headers = {"idempotency-key": key} if key else {}
    return httpx2.post(f"{url}/v1/responses", json={"model": "shop", **body}, headers=headers, timeout=30)


def post(url: str, key: str = "", **body: Any) -> dict[str, Any]:
    response = answer(url, key, **body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_a_post_of_which_one_verdict_fits_nothing_decides_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(front_agents.SCRIPTS, "two", [TWO, "Both are decided."])

    def thread(run: str, **more: Any) -> httpx2.Response:
        body = {"threadId": "one-fits", "runId": run, "tools": [], "context": [], "state": {}, "messages": []}
        return httpx2.post(f"{url}/ag-ui/shop", json={**body, **more}, timeout=30)

    asked = parts(thread("r1", messages=[{"id": "u1", "role": "user", "content": "two"}]))[-1]["outcome"]["interrupts"]
    bob, ann = [{"interruptId": one["id"], "status": "resolved", "payload": True} for one in asked]
    forged = {**ann, "interruptId": f"{ann['interruptId']}0", "payload": False}
    assert thread("r2", resume=[bob, forged]).status_code == 409
    assert PAID == []
    parts(thread("r3", resume=[bob]))
    stale = thread("r4", resume=[{**bob, "payload": False}, ann])
    assert (stale.status_code, PAID) == (409, [("Bob", 1)]), "it was allowed meanwhile, and cannot be refused"
    assert parts(thread("r5", resume=[ann]))[-1]["outcome"] == {"type": "success"}
    assert thread("r6", resume=[bob, forged]).status_code == 409, "nor is it told again as if it had been taken"
    assert parts(thread("r7", resume=[bob, ann]))[-1]["outcome"] == {"type": "success"}
    assert PAID == [("Bob", 1), ("Ann", 2)]


TWO = [("pay", {"to": "Bob", "amount": 1}), ("pay", {"to": "Ann", "amount": 2})]


def decided_elsewhere(url: str, run: str, **verdicts: str) -> list[dict[str, Any]]:
    """The calls that a run waited for, of which some are decided by others."""
    waits: list[dict[str, Any]] = httpx2.get(f"{url}/api/runs/{run}").json()["pending"]
    found = [
        {"call": one["call"], "fingerprint": one["fingerprint"], "verdict": verdicts[one["arguments"]["to"]]}
        for one in waits
        if one["arguments"]["to"] in verdicts
    ]
    assert httpx2.post(f"{url}/api/runs/{run}/decisions", json={"decisions": found}).status_code == 200
    httpx2.get(f"{url}/api/runs/{run}/stream", params={"until": "pause"}, timeout=30)
    return waits


def chat_that_decides(url: str, name: str, elsewhere: dict[str, str], mine: dict[str, bool], *more: Any) -> Any:
    """What a browser is answered that decides on two calls of which others have decided some; and the run."""

    def send(*messages: Any) -> httpx2.Response:
        return httpx2.post(f"{url}/ai-sdk/shop", json={"id": name, "messages": [*messages]}, timeout=30)

    run = send({"id": "u1", "role": "user", "parts": [{"type": "text", "text": "two"}]}).headers["x-treadle-run"]
    shown: list[dict[str, Any]] = []
    for one in decided_elsewhere(url, run, **elsewhere):
        approval = {"id": f"{run}:{one['call']}#{one['fingerprint']}", "approved": mine[one["arguments"]["to"]]}
        part = {"type": "tool-pay", "toolCallId": one["call"], "input": one["arguments"], "approval": approval}
        shown.append({**part, "state": "approval-responded"})
    return send({"id": run, "role": "assistant", "parts": shown}, *more), run


@pytest.mark.parametrize("words", ["", "not Bob"])
@pytest.mark.parametrize(("allowed", "paid"), [("approve", [("Bob", 1)]), ("deny", [])])
def test_a_chat_of_whose_verdicts_one_was_decided_otherwise_decides_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch, allowed: str, paid: list[Any], words: str
) -> None:
    monkeypatch.setitem(front_agents.SCRIPTS, "two", [TWO, "Both are decided."])
    mine, name = {"Bob": allowed != "approve", "Ann": True}, f"otherwise-{allowed}-{words}"
    said = [{"id": "u2", "role": "user", "parts": [{"type": "text", "text": words}]}] if words else []
    late, run = chat_that_decides(url, name, {"Bob": allowed}, mine, *said)
    assert (late.status_code, PAID) == (409, paid), late.text
    assert (told(url, run)[-1], words in told(url, run)) == ("waiting", False)


def test_a_chat_of_whose_verdicts_one_was_decided_so_is_told_what_became_of_both(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(front_agents.SCRIPTS, "two", [TWO, "Both are decided."])
    done, _ = chat_that_decides(url, "decided-so", {"Bob": "approve"}, {"Bob": True, "Ann": True})
    outputs = [one["output"] for one in parts(done) if one["type"] == "tool-output-available"]
    assert (outputs, PAID) == (["paid 1 to Bob", "paid 2 to Ann"], [("Bob", 1), ("Ann", 2)])


def test_a_chat_that_refuses_too_late_is_told_what_became_of_the_calls(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(front_agents.SCRIPTS, "two", [TWO, "Both are decided."])
    elsewhere = {"Bob": "approve", "Ann": "deny"}
    late, _ = chat_that_decides(url, "too-late", elsewhere, {"Bob": False, "Ann": True})
    kinds = {one["type"] for one in parts(late)}
    assert ({"tool-output-available", "tool-output-denied"} <= kinds, PAID) == (True, [("Bob", 1)])


@pytest.mark.parametrize(("elsewhere", "approve"), [("approve", False), ("deny", True)])
def test_a_response_that_decides_otherwise_than_was_decided_is_refused(url: str, elsewhere: str, approve: bool) -> None:
    asked = post(url, input="pay")
    run, (name,) = asked["treadle"]["run"], [one["id"] for one in asked["output"] if "approval" in one["type"]]
    decided_elsewhere(url, run, Bob=elsewhere)
    item = {"type": "mcp_approval_response", "approval_request_id": name}
    before, paid = {"previous_response_id": asked["id"]}, [*PAID]
    assert answer(url, input=[{**item, "approve": approve}], **before).status_code == 409
    again = post(url, input=[{**item, "approve": not approve}], **before)
    assert (again["status"], PAID) == ("completed", paid), "and decided so, it is told"


@pytest.mark.parametrize("approve", [True, False])
def test_a_verdict_on_a_run_that_was_cancelled_is_refused(url: str, approve: bool) -> None:
    asked = post(url, input="pay")
    assert httpx2.post(f"{url}/api/runs/{asked['treadle']['run']}/cancel").status_code == 200
    item = {"type": "mcp_approval_response", "approval_request_id": asked["output"][-1]["id"], "approve": approve}
    late = answer(url, input=[item], previous_response_id=asked["id"])
    assert (late.status_code, PAID) == (409, [])


@pytest.mark.parametrize("words", [[], [WORDS]])
def test_a_response_of_which_one_answer_fits_nothing_decides_nothing(url: str, words: list[Any]) -> None:
    asked = post(url, input="mixed", tools=[FLAT])
    items = {one["type"]: one for one in asked["output"]}
    yes = {"type": "mcp_approval_response", "approve": True}
    yes["approval_request_id"] = items["mcp_approval_request"]["id"]
    result = {"type": "function_call_output", "call_id": items["function_call"]["call_id"], "output": "red"}
    wrong = [{**yes, "approval_request_id": f"{yes['approval_request_id']}0"}, {**result, "call_id": "x:y"}]
    given = {"previous_response_id": asked["id"], "tools": [FLAT]}
    for one in wrong:
        for right in (yes, result):
            refused = answer(url, input=[right, one, *words], **given)
            assert (refused.status_code, PAID) == (409, []), refused.text
    assert told(url, asked["treadle"]["run"])[-1] == "waiting"
    done = post(url, input=[yes, result, *words], **given)
    assert (done["status"], PAID) == ("completed", [("Bob", 500)])
