"""A default that JSON has no number for is not told to the model: as null it would be of another type."""

from treadle import Agent, tool
from treadle.testing import ScriptedModel


@tool(effect="read")
def cheapest(most: float = float("inf"), between: list[float] = [0, float("inf")], least: float = 1.5) -> str:  # noqa: B006
    """Finds the cheapest below a price."""
    return f"{most} {between} {least}"


def test_a_default_of_infinity_is_left_out_of_the_schema_and_holds() -> None:
    told = cheapest.input_schema["properties"]
    assert "default" not in told["most"]
    assert "default" not in told["between"]
    assert told["least"]["default"] == 1.5
    assert "required" not in cheapest.input_schema
    result = Agent(ScriptedModel([[("cheapest", {})], "Done."]), tools=[cheapest]).run_sync("Which?")
    assert result.tool_calls_made[0].result.text == "inf [0, inf] 1.5"
