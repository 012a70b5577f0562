"""A rule that refuses the third identical call before it runs. The model is told why, and takes another way."""

from treadle import Agent, deny, tool
from treadle.testing import ScriptedModel


@tool(effect="read")
def search(words: str) -> str:
    """Searches the archive."""
    print(f"searching for {words!r}")
    return "no hits"


again = [("search", {"words": "1848"})]
script = [again, again, again, [("search", {"words": "revolution"})], "There is nothing about it."]

agent = Agent(
    ScriptedModel(script),
    tools=[search],
    approvals=[deny(repeats=2, reason="it was made twice, and its result will not change")],
)
result = agent.run_sync("What is there of 1848?")

for call in result.tool_calls_made:
    print(call.arguments["words"], "->", "made" if call.executed else call.result.text)
print(result.text)
