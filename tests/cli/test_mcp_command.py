"""The servers of an `mcp.json` at the command line: looked at, used, and gone on with in another process."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

RAW = Path(__file__).parent.parent / "mcp" / "raw_server.py"
MODEL = """
from treadle.testing import ScriptedModel

def says(request):
    told = [m.text for m in request.messages if m.role == "tool"]
    return f"It said: {told}" if told else [("raw__count", {}), ("raw__env", {})]

counting = ScriptedModel(says)
"""


def described(folder: Path) -> str:
    (folder / "counting.py").write_text(MODEL, encoding="utf-8")
    entry = {"command": sys.executable, "args": [str(RAW), "."], "env": {"API_KEY": "${THE_KEY}"}}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"raw": entry}}), encoding="utf-8")
    return "mcp.json"


def test_a_server_of_a_file_is_asked_about_used_and_gone_on_with(treadle: Any) -> None:
    options = ("--mcp", described(treadle.folder), "--model", "counting:counting")
    assert "has no THE_KEY" in treadle("ask", "count", *options).err
    key = {"THE_KEY": "sk-very-secret"}
    asked = treadle("ask", "count", *options, **key)
    assert asked.code == 4
    assert "raw__count({}) [write] asks for approval" in asked.err
    assert "--mcp mcp.json" in asked.err
    assert not (treadle.folder / "calls").exists()
    missing = treadle("approve", "last", "--model", "counting:counting")
    assert (missing.code, "with --mcp" in missing.err) == (2, True)
    done = treadle("approve", "last", *options, **key)
    assert done.code == 0
    assert "[API_KEY]" in done.out
    assert "very-secret" not in done.out + done.err
    assert b"very-secret" not in treadle.journal.read_bytes()
    assert (treadle.folder / "calls").read_text().splitlines() == ["count {}", "env {}"]


def test_doctor_looks_at_servers(treadle: Any) -> None:
    described(treadle.folder)
    found = json.loads((treadle.folder / "mcp.json").read_text())
    found["mcpServers"]["raw"].pop("env")
    found["mcpServers"]["my gone one"] = {"command": "/no/such/program"}
    found["mcpServers"]["off"] = {"command": "/no/such/program", "disabled": True}
    (treadle.folder / "mcp.json").write_text(json.dumps(found))
    looked = treadle("doctor", "--mcp", "mcp.json", "--json")
    assert looked.code == 2
    rows = {
        row["what"]: (row["state"], row["found"]) for row in json.loads(looked.out) if row["what"].startswith("mcp")
    }
    assert rows["mcp raw"] == ("ok", "raw 1, protocol 2025-11-25; 11 tools (11 write)")
    assert rows["mcp my_gone_one"][0] == "bad"
    assert len(rows) == 2
    assert not (treadle.folder / "calls").exists()


SERVED = '''
from treadle import tool

@tool(effect="read")
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b

@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pays an amount."""
    return f"paid {amount}"
'''


def called_over_mcp(treadle: Any, name: str, **arguments: Any) -> None:
    """A call of a tool of `treadle mcp`, by a client that cannot ask its person."""
    (treadle.folder / "served.py").write_text(SERVED, encoding="utf-8")
    program = [sys.executable, "-m", "treadle", "mcp", "--tools", "served:add", "--tools", "served:pay"]

    async def call() -> None:
        options = StdioServerParameters(
            command=program[0], args=program[1:], env=treadle.environment, cwd=treadle.folder
        )
        async with Client(stdio_client(options), mode="legacy") as client:
            await client.call_tool(name, arguments)

    asyncio.run(call())


def test_a_call_that_was_served_is_listed_and_shown_as_what_it_is(treadle: Any) -> None:
    """It stood as max_steps, which is a limit's stop."""
    called_over_mcp(treadle, "add", a=1, b=2)
    (line,) = json.loads(treadle("runs", "--json").out)
    assert (line["status"], line["stop"]["reason"]) == ("finished", "answered")
    shown = treadle("show", "last", "--why")
    assert "the call of add was answered with its result" in shown.out
    assert "max_steps" not in shown.out + treadle("stats").out + treadle("runs").out


def test_a_call_that_was_served_and_is_approved_here_is_done(treadle: Any) -> None:
    called_over_mcp(treadle, "pay", amount=5)
    done = treadle("approve", "last", "--tools", "served:add", "--tools", "served:pay")
    assert done.code == 0, done.err
    (line,) = json.loads(treadle("runs", "--json").out)
    assert (line["status"], line["stop"]["reason"]) == ("finished", "answered")


def test_a_run_that_is_left_as_its_server_cannot_be_used_is_named(treadle: Any) -> None:
    """It stood in the list as under way for ever, and nobody had been told of it."""
    servers = treadle.folder / "mcp.json"
    servers.write_text(json.dumps({"mcpServers": {"shop": {"command": "no-such-program"}}}), encoding="utf-8")
    asked = treadle("ask", "What is 2 + 2?", "--mcp", "mcp.json", "--skill", "basics")
    assert asked.code == 2
    told = next(line for line in asked.err.splitlines() if line.startswith("the run has begun, and was left"))
    command = told.rpartition("to go on with it: treadle ")[2].split()
    servers.write_text(json.dumps({"mcpServers": {}}), encoding="utf-8")
    gone_on = treadle(*command)
    assert (gone_on.code, gone_on.out.splitlines()[0]) == (0, "2 + 2 = 4"), gone_on.err
    assert "was left" not in treadle("ask", "What is 2 + 2?", "--mcp", "none.json").err
