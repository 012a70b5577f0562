"""A run as a file: what it says is what was said, digit by digit, and nothing in it hides or turns round."""

from decimal import Decimal

import pytest
from served import run_when, serving

from treadle import Agent, MemoryJournal, ask_before, tool
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool
def pay(iban: str, amount: Decimal) -> str:
    """Pays."""
    return f"paid {amount} to {iban}\u202e now </pre><script>alert(1)</script>"


ARGUMENTS = '{"iban":"AT02\u202e4091","amount":12345678901234567890.10}'


@pytest.mark.parametrize("format", ["html", "markdown"])
async def test_nothing_in_a_file_is_shown_backwards_or_loses_a_digit(format):
    model = ScriptedModel([[("pay", ARGUMENTS)], "done\u200b, ![x](http://127.0.0.1:9/x.png)"])
    async with serving(app([Agent(model, tools=[pay], name="payer")], journal=MemoryJournal())) as client:
        body = {"agent": "payer", "input": "pay \u202eAda"}
        run_id = (await client.post("/api/runs", json=body)).json()["id"]
        await run_when(client, run_id, "finished")
        text = (await client.get(f"/api/runs/{run_id}/export", params={"format": format})).text
    assert "12345678901234567890.10" in text
    assert not {"\u202e", "\u200b"} & set(text)
    assert text.count("\\u202e") >= 3
    if format == "html":
        assert "<script" not in text
        assert "default-src 'none'" in text


@pytest.mark.parametrize("format", ["html", "markdown", "jsonl"])
async def test_a_call_that_is_nested_too_deep_to_be_laid_out_is_told_as_it_stands(format):
    deep = "[" * 100_000 + "]" * 100_000
    model = ScriptedModel([[("pay", deep)], "done"])
    async with serving(app([Agent(model, tools=[pay], name="payer")], journal=MemoryJournal())) as client:
        run_id = (await client.post("/api/runs", json={"agent": "payer", "input": "pay"})).json()["id"]
        await run_when(client, run_id, "finished")
        answer = await client.get(f"/api/runs/{run_id}/export", params={"format": format})
    assert answer.status_code == 200
    assert deep in answer.text


@pytest.mark.parametrize("format", ["html", "markdown"])
async def test_what_was_said_to_a_run_later_stands_before_what_answers_it(format):
    """It was left out: the answer stood there as one to the question."""
    model = ScriptedModel([[("pay", ARGUMENTS)], "It was paid.", "You are welcome."])
    agent = Agent(model, tools=[pay], name="payer", approvals=[ask_before("pay")], journal=MemoryJournal())
    async with serving(app([agent])) as client:
        run_id = (await client.post("/api/runs", json={"agent": "payer", "input": "Pay Ada."})).json()["id"]
        await run_when(client, run_id, "waiting")
        await client.post(f"/api/runs/{run_id}/resume", json={"message": "Without a fee!"})
        (call,) = (await run_when(client, run_id, "waiting"))["pending"]
        decision = {"call": call["call"], "fingerprint": call["fingerprint"], "verdict": "approve"}
        await client.post(f"/api/runs/{run_id}/decisions", json={"decisions": [decision]})
        await run_when(client, run_id, "finished")
        fork = await client.post(f"/api/runs/{run_id}/fork", json={"at": 2, "message": "Thank you!"})
        fork_id = fork.json()["id"]
        await run_when(client, fork_id, "finished")
        text = (await client.get(f"/api/runs/{fork_id}/export", params={"format": format})).text
    said = ["Question", "paid 12345", "Without a fee!", "It was paid.", "Thank you!", "You are welcome."]
    found = [text.index(one) for one in said]
    assert found == sorted(found), text
    assert text.count("local adds") == 2
