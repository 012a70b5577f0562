"""`treadle resume` of a run that a budget stopped: it goes on once there is more in the budget, as its advice says."""

from typing import Any

AGENT = """
from treadle import Agent, Budget, ModelSettings, Price, Usage
from treadle.testing import ScriptedModel

model = ScriptedModel(["Good morning."], usage=Usage(input_tokens=1000, output_tokens=1000), price=Price(1, 1))
agent = Agent(
    model,
    name="clerk",
    budget=Budget(usd={usd}, name="purse", path="purse.db"),
    settings=ModelSettings(max_tokens=1000),
)
"""


def test_a_run_that_a_budget_stopped_goes_on_when_the_budget_is_raised(treadle: Any) -> None:
    agent = treadle.folder / "clerk.py"
    agent.write_text(AGENT.format(usd="0.000001"), encoding="utf-8")
    stopped = treadle("ask", "Hello?", "--agent", "clerk.py")
    assert (stopped.code, stopped.out.strip()) == (3, "")
    assert "Raise Budget(usd=…), now 0.000001" in stopped.err

    # Of another length: Python knows a changed file by its size and the second in which it was written.
    agent.write_text(AGENT.format(usd="0.00001"), encoding="utf-8")
    still = treadle("resume", "last", "--agent", "clerk.py")
    assert still.code == 3
    assert "Raise Budget(usd=…), now 0.00001," in still.err

    agent.write_text(AGENT.format(usd="1"), encoding="utf-8")
    gone_on = treadle("resume", "last", "--agent", "clerk.py")
    assert (gone_on.code, gone_on.out.strip()) == (0, "Good morning.")


def test_a_run_that_its_own_limit_stopped_is_not_run_again(treadle: Any) -> None:
    (treadle.folder / "clerk.py").write_text(AGENT.format(usd="1"), encoding="utf-8")
    assert treadle("ask", "Hello?", "--agent", "clerk.py", "--max-cost", "0.000001").code == 3
    before = treadle("show", "last", "--json").out
    assert treadle("resume", "last", "--agent", "clerk.py").code == 3
    assert treadle("show", "last", "--json").out == before
