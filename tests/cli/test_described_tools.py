"""Tools by a description file and a module, agents as tools, and keys of a file `.env`."""

import json
from typing import Any

import pytest

DESCRIBED = [
    {
        "name": "check_stock",
        "description": "Says how many of an item there are.",
        "effect": "read",
        "input_schema": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
    }
]
FUNCTIONS = "def check_stock(item):\n    return {'item': item, 'left': 3}\n"
AGENTS = """
from treadle import Agent
from treadle.testing import ScriptedModel

clerk = Agent(ScriptedModel(["three"]), name="clerk", instructions="Counts what is in stock.")
asks = ScriptedModel([[("check_stock", {"item": "nut"})], "There are 3."])
delegates = ScriptedModel([[("clerk", {"task": "count"})], "The clerk says three."])
"""


@pytest.fixture
def shop(treadle: Any) -> Any:
    (treadle.folder / "shop.json").write_text(json.dumps(DESCRIBED))
    (treadle.folder / "functions.py").write_text(FUNCTIONS)
    (treadle.folder / "agents.py").write_text(AGENTS)
    return treadle


@pytest.mark.parametrize("functions", ["functions.py", "functions"])
def test_a_description_file_and_a_module_are_tools(shop: Any, functions: str) -> None:
    done = shop("ask", "How many?", "--model", "agents:asks", "--tools", f"shop.json:{functions}", "--json")
    assert done.code == 0, done.err
    (call,) = json.loads(done.out)["tool_calls"]
    assert (call["tool"], json.loads(call["result"])) == ("check_stock", {"item": "nut", "left": 3})


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("shop.json:nothing_here", "there is no module 'nothing_here'"),
        ("none.json:functions.py", "none.json: the tool descriptions cannot be read"),
        ("shop.json:agents", "has no function 'check_stock'"),
    ],
)
def test_what_is_wrong_with_the_pair_is_said(shop: Any, target: str, words: str) -> None:
    done = shop("ask", "How many?", "--model", "agents:asks", "--tools", target)
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err


def test_an_agent_is_a_tool_too(shop: Any) -> None:
    done = shop("ask", "How many?", "--model", "agents:delegates", "--tools", "agents:clerk", "--json")
    assert done.code == 0, done.err
    (call,) = json.loads(done.out)["tool_calls"]
    assert (call["tool"], call["result"]) == ("clerk", "three")


def test_a_key_of_a_file_beside_the_project_is_taken_and_never_shown(shop: Any) -> None:
    (shop.folder / ".env").write_text("export GROQ_API_KEY='gsk-very-secret' # mine\n")
    done = shop("doctor")
    assert "set: GROQ_API_KEY (GROQ_API_KEY from " in " ".join(done.out.split())
    assert "gsk-very-secret" not in done.out + done.err
    assert "groq:" in done.out


def test_nothing_but_keys_is_taken_from_a_file_that_came_with_a_folder(shop: Any) -> None:
    (shop.folder / ".env").write_text(
        "OPENAI_BASE_URL=http://127.0.0.1:9\nTREADLE_MODEL=agents:asks\nPYTHONPATH=/nowhere\nPATH=/nowhere\n"
    )
    done = shop("doctor")
    assert "agents:asks" not in done.out
    assert "none of ANTHROPIC_API_KEY" in done.out


def test_what_the_process_has_goes_before_the_file(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (shop.folder / ".env").write_bytes(b"\xff\xfeG")
    done = shop("models")
    assert done.code == 0
    assert ".env cannot be read, and is left aside" in done.err
