"""Several runs in one conversation, kept in a file between them."""

from treadle import Agent, Conversation, tool
from treadle.testing import ScriptedModel


@tool(effect="read")
def population(city: str) -> int:
    """Tells how many people live in a city."""
    return {"Bonn": 336_000, "Cologne": 1_087_000}[city]


first = Agent(
    ScriptedModel([[("population", {"city": "Bonn"})], "336,000 people live in Bonn."]),
    instructions="Be brief.",
    tools=[population],
)
talk = Conversation()
print(first.run_sync("How many people live in Bonn?", conversation=talk).text)
talk.save("talk.json")

# Another program, another agent: the conversation brings what was said, the agent brings its own instructions.
later = Conversation.load("talk.json")
model = ScriptedModel([[("population", {"city": "Cologne"})], "1,087,000, about three times as many."])
second = Agent(model, instructions="Compare where you can.", tools=[population])
print(second.run_sync("And in Cologne?", conversation=later).text)

for message in later.messages:
    print(f"{message.role:>9}: {message.text or [call.name for call in message.calls]}")
print("the model was sent:", [message.role for message in model.requests[0].messages])
