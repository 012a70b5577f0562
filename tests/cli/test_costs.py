"""`treadle costs`, `treadle ask --dry-run`, and the running cost in `--trace`."""

import csv
import io
import json
import re
from typing import Any

import pytest

from treadle import Budget

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


BUDGETS = """
from treadle import Agent, Budget, Price, Usage, tool
from treadle.testing import ScriptedModel

@tool(needs_approval=True)
def pay(amount: int) -> str:
    \"\"\"Pays.\"\"\"
    return "paid"

def agent(turns=lambda request: "done", **budget):
    model = ScriptedModel(turns, name="m", usage=Usage(2, 8), price=Price(1, 1))
    return Agent(model, tools=[pay], budget=Budget(tokens=100_000, path="spend.db", **budget))

users = agent(per="user")
talks = agent(per="conversation")
pays = agent(lambda r: [("pay", {"amount": 1})] if r.step == 0 else "done", per="user", name="pays")
memory = Agent(pays.model, tools=[pay], budget=Budget(tokens=100_000, per="user"))
"""


@pytest.fixture
def budgeted(treadle: Any) -> Any:
    (treadle.folder / "shop.py").write_text(BUDGETS, encoding="utf-8")
    return treadle


def test_a_budget_of_users_is_told_whose_run_it_is(budgeted: Any) -> None:
    for more in ((), ("--dry-run",)):
        refused = budgeted("ask", "go", "--agent", "shop:users", *more)
        assert refused.code == 2
        assert "has a purse for each user: say whose run this is with --user NAME" in refused.err
        done = budgeted("ask", "go", "--agent", "shop:users", "--user", "anna", *more)
        assert done.code == 0
    assert "--user NAME" in budgeted("chat", "--agent", "shop:users", input="go\n").err
    assert budgeted("chat", "--agent", "shop:users", "--user", "ben", input="go\ngo\n").code == 0
    users = Budget(tokens=100_000, per="user", path=budgeted.folder / "spend.db")
    assert {name: users.spent(name).tokens for name in users.purses()} == {"anna": 10, "ben": 20}
    users.close()


def test_each_question_is_a_conversation_of_its_own(budgeted: Any) -> None:
    assert budgeted("ask", "go", "--agent", "shop:talks", "--dry-run").code == 0
    for _ in range(2):
        assert budgeted("ask", "go", "--agent", "shop:talks").code == 0
    assert budgeted("chat", "--agent", "shop:talks", input="go\ngo\n").code == 0
    talks = Budget(tokens=100_000, per="conversation", path=budgeted.folder / "spend.db")
    assert sorted(talks.spent(name).tokens for name in talks.purses()) == [10, 10, 20]
    talks.close()


@pytest.mark.parametrize("agent", ["pays", "memory"])
def test_a_decision_counts_for_the_user_who_asked(budgeted: Any, agent: str) -> None:
    waits = budgeted("ask", "go", "--agent", f"shop:{agent}", "--user", "anna")
    assert waits.code == 4
    assert f"--agent shop:{agent} --user anna" in waits.err
    other = budgeted("approve", "last", "--agent", f"shop:{agent}", "--user", "ben")
    assert (other.code, "counts for user 'anna'" in other.err) == (2, True)
    # Whose it is stands in the journal, for a budget in memory knows nothing of earlier processes.
    said = ["--user", "anna"] if agent == "pays" else []
    assert budgeted("approve", "last", "--agent", f"shop:{agent}", *said).code == 0


def test_a_budget_whose_file_cannot_be_used_is_no_fault_of_treadles(budgeted: Any) -> None:
    (budgeted.folder / "spend.db").mkdir()
    failed = budgeted("ask", "go", "--agent", "shop:talks")
    assert failed.code == 2
    assert failed.err.splitlines()[-1].startswith("Error: the budget ")
