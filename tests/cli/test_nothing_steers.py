"""What a model or a tool says steers no terminal, in whatever form it is printed."""

import json
from typing import Any

HOSTILE = """
from treadle import tool
from treadle.testing import ScriptedModel

@tool(name="look", description="Looks \\x1b[2Jat \\u202esomething, in a few words.", effect="read")
def look(at: str) -> str:
    return "seen"

model = ScriptedModel(["\\x1b[31mred\\x1b[0m \\u202e12\\u200f.50 \\x07alarm"])
"""


def test_neither_the_answer_alone_nor_events_nor_descriptions_do(treadle: Any) -> None:
    (treadle.folder / "mine.py").write_text(HOSTILE, "utf-8")
    quiet = treadle("ask", "Say it.", "--model", "mine.py:model", "--quiet").out
    assert quiet == "red 12.50 alarm\n"
    watched = treadle("watch", "last", "--json").out
    told = treadle("tools", "--tools", "mine.py", "--prompt", "json").out
    for text in (quiet, watched, told):
        assert not {"\x1b", "\u202e", "\u200f", "\x07"} & set(text)
    events = [json.loads(line) for line in watched.splitlines()]
    (reply,) = [one for one in events if one["event"] == "model_replied"]
    assert "\u202e12\u200f.50" in json.dumps(reply, ensure_ascii=False)
