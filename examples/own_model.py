"""A model of one's own: a name, and `stream(request)`, whose last event is the whole reply."""

from decimal import Decimal

from treadle import Agent, Limits, Text, Usage
from treadle.models import AssistantMessage, ModelReply, TextDelta


class Shout:
    """Says what it is told, loudly. It has a price, so runs of it can be limited in money."""

    name = "shout"
    max_output_tokens = 200

    def cost(self, usage):
        return usage.output_tokens * Decimal("0.001")

    async def stream(self, request):
        words = request.messages[-1].text.upper().split()
        for word in words:
            yield TextDelta(f"{word} ")
        message = AssistantMessage((Text(" ".join(words)),))
        yield ModelReply(message, usage=Usage(len(words), len(words)), finish="stop")


agent = Agent(Shout(), limits=Limits(usd=0.50))
result = agent.run_sync("can you hear me")
print(result.text)
print(f"{result.usage.total_tokens} tokens, {result.cost} dollars")

poor = agent.run_sync("and now", limits=Limits(usd=0))
print(poor.stop.reason)
