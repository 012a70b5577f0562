"""What happens at a limit: the same agent, which never comes to an end by itself, with each value of `on_limit`."""

from treadle import Agent, Limits, RunStopped, tool
from treadle.testing import ScriptedModel


@tool(effect="read")
def search(page: int) -> str:
    """Looks at one page of the archive."""
    return f"nothing on page {page}"


def tireless(request):
    """A model that would go on for ever; with tools off it writes up what it has."""
    if request.tool_choice == "none":
        return "I have looked at some pages and found nothing yet."
    return ("Next page.", [("search", {"page": request.step + 1})])


for on_limit in ("answer", "stop", "raise"):
    agent = Agent(ScriptedModel(tireless), tools=[search], limits=Limits(steps=3), on_limit=on_limit)
    try:
        result = agent.run_sync("Is there anything in the archive?")
    except RunStopped as stopped:
        print(f"{on_limit}: raised: {stopped}")
        result = stopped.result
    print(f"{on_limit}: {len(result.steps)} steps, {len(result.tool_calls_made)} calls, {result.stop.reason}")
    print(f"{on_limit}: {result.text}")
