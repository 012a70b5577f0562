"""The servers of an `mcp.json` at the command line: looked at, used, and gone on with in another process."""

import json
import sys
from pathlib import Path
from typing import Any

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
