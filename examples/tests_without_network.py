"""Tests of an agent with pytest and no network: which tools are called, with what, and what goes wrong.

With TREADLE_FORBID_MODELS set no model outside this process can be called, whatever an agent has.
"""

import os

from treadle import Agent, tool
from treadle.models import Overloaded
from treadle.testing import ScriptedModel

os.environ["TREADLE_FORBID_MODELS"] = "1"


@tool(effect="read")
def stock(product: str) -> int:
    """Tells how many there are of a product."""
    return {"tea": 3}[product]


shop = Agent("local:my-model@http://127.0.0.1:8080/v1", tools=[stock], retries=0)


def test_the_stock_is_looked_up() -> None:
    model = ScriptedModel([[("stock", {"product": "tea"})], "There are three."])
    result = shop.with_model(model).run_sync("How much tea is there?")
    assert result.text == "There are three."
    assert [(call.name, call.arguments) for call in result.tool_calls_made] == [("stock", {"product": "tea"})]
    assert model.requests[1].messages[-1].text == "3"


def test_what_is_not_there_is_told_to_the_model() -> None:
    model = ScriptedModel([[("stock", {"product": "wine"})], "There is no wine."])
    result = shop.with_model(model).run_sync("How much wine is there?")
    assert result.tool_calls_made[0].is_error


def test_a_busy_model_is_told() -> None:
    result = shop.with_model(ScriptedModel([Overloaded("busy")])).run_sync("How much tea is there?")
    assert result.stop.reason == "model_error"


# --- the program ends here

if __name__ == "__main__":
    import subprocess
    import sys

    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    raise SystemExit(subprocess.run(command).returncode)
