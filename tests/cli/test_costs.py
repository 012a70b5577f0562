"""`treadle costs`, `treadle ask --dry-run`, and the running cost in `--trace`."""

import csv
import io
import json
import re
from typing import Any

import pytest

SCRIPT = """
from treadle import Agent, Limits, Price, Usage, tool
from treadle.testing import ScriptedModel

@tool(effect="read")
def look(what: str) -> str:
    \"\"\"Looks at something.\"\"\"
    return "seen"

def model(turns, name, price=Price(3, 15), usage=Usage(100, 10)):
    return ScriptedModel(turns, name=name, usage=usage, price=price)

low = Agent(model(lambda _: "low", "small", usage=Usage(7, 3)), name="low", instructions="You know.")
turns = lambda r: [("low", {"task": "a"}), ("look", {"what": "b"})] if r.step == 0 else "done"
agent = Agent(model(turns, "top"), name="boss", tools=[low.as_tool(), look])

free = Agent(model(lambda _: "low", "=small", price=None, usage=None), name="low", instructions="You know.")
unknown = Agent(model(turns, "top"), name="boss", tools=[free.as_tool(), look])
"""


@pytest.fixture
def bought(treadle: Any) -> Any:
    (treadle.folder / "shop.py").write_text(SCRIPT, encoding="utf-8")
    return treadle


def test_the_bill_of_a_run(bought: Any) -> None:
    assert bought("ask", "go", "--agent", "shop:agent").code == 0
    done = bought("costs", "last")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["step", "for", "model", "agent", "below", "in", "out", "cost"]
    assert lines[1] == ["0", "reply", "top", "boss", "100", "10", "$0.00045"]
    assert lines[2] == ["0", "reply", "small", "low", "low", "7", "3", "$0.000066"]
    assert done.out.splitlines()[-1] == "in all 207 tokens in, 23 out, $0.000966"


def test_the_bill_by_tool_model_agent_and_step(bought: Any) -> None:
    bought("ask", "go", "--agent", "shop:agent")
    tool = [line.split() for line in bought("costs", "last", "--by", "tool").out.splitlines()]
    assert tool[:4] == [
        ["tool", "calls", "in", "out", "cost"],
        ["(the", "run", "itself)", "200", "20", "$0.00090"],
        ["low", "1", "7", "3", "$0.000066"],
        ["look", "1", "0", "0", "$0"],
    ]
    for by, names in (("model", ["top", "small"]), ("agent", ["boss", "low"]), ("step", ["0", "1"])):
        lines = bought("costs", "last", "--by", by).out.splitlines()
        assert lines[0].split() == [by, "in", "out", "cost"]
        assert [line.split()[0] for line in lines[1:3]] == names


def test_what_is_unknown_or_an_estimate_is_said(bought: Any) -> None:
    bought("ask", "go", "--agent", "shop:unknown")
    done = bought("costs", "last", "--by", "model")
    (line,) = [line.split() for line in done.out.splitlines() if line.startswith("=small")]
    assert line[1].startswith("~")
    assert line[3] == "unknown"
    assert done.out.splitlines()[-1].startswith("in all about ")
    assert done.out.splitlines()[-1].endswith(", at a cost that is not known")


def test_the_bill_as_csv_and_json(bought: Any) -> None:
    bought("ask", "go", "--agent", "shop:unknown")
    rows = list(csv.DictReader(io.StringIO(bought("costs", "last", "--csv").out)))
    assert [row["model"] for row in rows] == ["top", "'=small", "top"]
    assert [row["cost"] for row in rows] == ["0.00045", "", "0.00045"]
    assert [row["estimated"] for row in rows] == ["false", "true", "false"]
    by_tool = bought("costs", "last", "--csv", "--by", "tool").out.splitlines()
    assert by_tool[0].startswith("tool,calls,input_tokens,output_tokens,")
    found = json.loads(bought("costs", "last", "--json", "--by", "agent").out)
    assert [part["agent"] for part in found["by_agent"]] == ["boss", "low"]
    assert found["total"]["cost"] is None
    assert len(json.loads(bought("costs", "last", "--json").out)["charges"]) == 3


def test_a_bill_that_cannot_be_made(bought: Any) -> None:
    missing = bought("costs", "last")
    assert (missing.code, missing.out) == (2, "")
    assert "there is no run" in missing.err
    bought("ask", "go", "--agent", "shop:agent")
    assert bought("costs", "last", "--csv", "--json").code == 2
    assert bought("costs", "last", "--by", "day").code == 2


def test_a_dry_run_says_what_the_first_request_may_take(bought: Any) -> None:
    done = bought("ask", "go", "--agent", "shop:agent", "--dry-run")
    assert done.code == 0
    first, cost, allowed = done.out.splitlines()
    assert re.fullmatch(
        r"The first request to top takes [\d,]+ tokens at most, and the reply 8,192, to which nothing holds it; "
        r"a limit would\.",
        first,
    )
    assert cost.startswith("What that costs: $0.12")
    assert allowed == "The limits allow it. Nothing was asked, and no tool was run."
    assert not bought.journal.exists()
    unpriced = bought("ask", "go", "--agent", "shop:free", "--dry-run")
    assert unpriced.out.splitlines()[1] == "What that costs: the price is not known."


def test_a_dry_run_says_why_it_would_not_be_asked(bought: Any) -> None:
    done = bought("ask", "go", "--agent", "shop:agent", "--dry-run", "--max-tokens", "20")
    assert done.code == 3
    assert "It would not be asked: max_tokens: 0 tokens are used" in done.out
    found = json.loads(bought("ask", "go", "--agent", "shop:agent", "--dry-run", "--json", "--max-tokens", "20").out)
    assert (found["allowed"], found["stop"]["reason"]) == (False, "max_tokens")
    assert found["tokens"] == found["request_tokens"] + found["reply_tokens"]


def test_the_trace_says_what_was_spent_so_far(bought: Any) -> None:
    done = bought("ask", "go", "--agent", "shop:agent", "--trace", "--max-cost", "1")
    so_far = [line.strip() for line in done.err.splitlines() if "so far" in line]
    assert so_far == [
        "so far 110 tokens, $0.00045; left: $0.99955",
        "so far 120 tokens, $0.000516; left: $0.999484",
        "so far 230 tokens, $0.000966; left: $0.999034",
    ]
