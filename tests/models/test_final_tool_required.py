"""An answer that is given by a tool can be required where there is no other tool."""

from dataclasses import dataclass

import pytest

from treadle import Agent, Misuse, StepSettings
from treadle.testing import ScriptedModel


@dataclass
class Trip:
    city: str


def test_a_final_tool_can_be_required_where_it_is_the_only_one():
    model = ScriptedModel([[("final_answer", {"city": "Rome"})]])
    result = Agent(model, output=Trip, output_mode="tool", tool_choice="required").run_sync("Where to?")
    assert (result.output, model.requests[0].tool_choice) == (Trip("Rome"), "required")


def test_it_can_be_required_in_one_step_too():
    model = ScriptedModel([[("final_answer", {"city": "Rome"})]])
    step = StepSettings(tool_choice="required", instructions="Be quick.")
    agent = Agent(model, output=Trip, output_mode="tool", prepare_step=lambda context: step)
    assert (agent.run_sync("Where to?").output, model.requests[0].tool_choice) == (Trip("Rome"), "required")


def test_without_any_tool_nothing_can_be_required():
    with pytest.raises(Misuse, match="needs a tool that could be called"):
        Agent(ScriptedModel(["x"]), output=Trip, output_mode="prompted", tool_choice="required")
