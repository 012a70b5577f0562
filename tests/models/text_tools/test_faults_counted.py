"""What a model is told of an attempt at a call is counted in the size of the next request, and shown to people."""

import sys
from pathlib import Path

import pytest

from treadle import Agent, Limits, tool
from treadle.kernel.events import StepPrepared
from treadle.kernel.messages import Usage
from treadle.models import ModelReply, TextTools
from treadle.testing import ScriptedModel

sys.path.append(str(Path(__file__).resolve().parents[2]))
from vocabulary import VOCABULARIES, count

ATTEMPTS = [
    'I look.\n\nsearch("x")',
    "tool: search\nquery: x",
    'Action: search("x", "y", "z")',
    "<tool_call>search</tool_call>",
    'SEARCH("x")',
]


class Counted(ScriptedModel):
    max_output_tokens = 200

    def __init__(self, turns, vocabulary):
        super().__init__(turns)
        self.vocabulary = vocabulary

    def size(self, request):
        return sum(count(one.text, self.vocabulary) + 6 for one in request.messages)

    async def stream(self, request):
        async for event in super().stream(request):
            if isinstance(event, ModelReply):
                said = count(event.message.text, self.vocabulary) + 6
                event = ModelReply(event.message, Usage(self.size(request), said), event.finish)
            yield event


@tool(effect="read")
def search(query: str) -> str:
    """Search the web."""
    return "found"


def run(format, vocabulary="voyage3", **options):
    model = Counted([*ATTEMPTS, "Final Answer: done" if format == "react" else "done"], vocabulary)
    limits = Limits(tokens=500_000, consecutive_errors=None)
    return model, Agent(TextTools(model, format), tools=[search], limits=limits, **options).run_sync("go")


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("format", ["json", "react", "tags"])
def test_no_request_after_a_fault_is_larger_than_it_was_reckoned(format, vocabulary):
    model, result = run(format, vocabulary)
    assert result.text == "done"
    reserves = [event.reserve for event in result.events if isinstance(event, StepPrepared)]
    reckoned = [one.tokens - one.reply for one in reserves]
    asked = [model.size(request) for request in model.requests]
    assert len(asked) > len(ATTEMPTS) // 2
    assert [most - size for most, size in zip(reckoned, asked, strict=True) if most < size] == []


def test_the_result_of_an_attempt_says_what_was_wrong_with_it():
    model = Counted(['{"arguments": {"query": "x"}}', "done"], "voyage3")
    result = Agent(TextTools(model), tools=[search]).run_sync("go")
    first = result.steps[0].calls[0]
    assert first.call.name == "invalid_call"
    assert "does not name a tool" in first.result.content
    assert "There is no tool" not in first.result.content
    assert "does not name a tool" in model.requests[1].messages[-1].text
    assert '{"error"' not in model.requests[1].messages[-1].text
