"""One tool, one question, no key: `offline` plans tool calls without a language model."""

from typing import Literal

from treadle import Agent, tool

Day = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


@tool(effect="read")
def opening_hours(day: Day) -> str:
    """Tells the opening hours of the shop on a day of the week.

    Args:
        day: the day of the week.
    """
    return "closed" if day == "Sunday" else "9:00 to 18:00"


agent = Agent("offline", tools=[opening_hours])
result = agent.run_sync("What are the opening hours on Monday?")

for call in result.tool_calls_made:
    print(call.name, call.arguments, "->", call.result.text)
print(result.text)
