"""Whatever a run meets: what a provider has cached of it stays valid, unless somebody asked for another beginning."""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from trial import Trial
from worlds import examples, setups

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import cache_rules

from treadle.kernel.messages import AssistantMessage
from treadle.models import BadRequest, ModelRequest
from treadle.models.anthropic import AnthropicCodec
from treadle.models.bedrock import BedrockCodec
from treadle.models.google import GoogleCodec
from treadle.models.hosts import OPENAI
from treadle.models.openai_chat import ChatCodec
from treadle.models.openai_responses import ResponsesCodec
from treadle.models.port import Usual

DIALECTS: dict[str, Any] = {
    "anthropic": (AnthropicCodec, "claude-sonnet-4-5", lambda: cache_rules.AnthropicCache(minimum=0)),
    "bedrock": (BedrockCodec, "us.anthropic.claude-sonnet-4-5", lambda: cache_rules.ConverseCache(minimum=0)),
    "responses": (lambda: ResponsesCodec(host=OPENAI), "gpt-5", lambda: cache_rules.PrefixCache(1, 1)),
    "chat": (lambda: ChatCodec(host=OPENAI), "gpt-5", lambda: cache_rules.PrefixCache(1, 1)),
    "google": (GoogleCodec, "gemini-3-pro-preview", lambda: cache_rules.PrefixCache(1, 1)),
    "newer": (lambda: ChatCodec(host=OPENAI), "gpt-5.6", cache_rules.BreakpointCache),
}


def usual(request: ModelRequest) -> Usual:
    return request.usual or Usual(request.tools, request.tool_choice)


def goes_on(before: ModelRequest, request: ModelRequest) -> bool:
    """Whether nobody asked for more than to go on from the request before, and the choice can stay what it was."""
    lasting = list(before.messages)[: len(before.messages) - before.passing]
    told = (before.usual, request.usual) == (None, None) or usual(request).tool_choice == "auto"
    same = usual(before) == usual(request) and before.output_schema == request.output_schema
    return told and same and list(request.messages)[: len(lasting)] == lasting


def is_marked(dialect: str, before: ModelRequest) -> bool:
    """Whether the end of what lasts of a request could be marked: what a model said itself takes no breakpoint."""
    lasting = list(before.messages)[: len(before.messages) - before.passing]
    return dialect != "newer" or not before.passing or not isinstance(lasting[-1], AssistantMessage)


def breaks(dialect: str, trial: Trial) -> list[str]:
    """The requests of a trial that did not find what the ones before them had left."""
    make, model, cache = DIALECTS[dialect]
    runs: dict[str, list[tuple[int, ModelRequest]]] = defaultdict(list)
    for process, (_, _, player) in enumerate(trial.world.players):
        for request in player.requests:
            runs[request.run_id].append((process, request))
    found = []
    for requests in runs.values():
        rules, codecs, before = cache(), defaultdict(make), None
        # Where an agent has two models, they take turns.
        for process, request in sorted(requests, key=lambda one: one[1].step):
            try:
                body = json.loads(codecs[process].encode(request, model, True))
            except BadRequest:
                break
            charged = rules.ask(request, body)
            short = before is not None and charged.read < before[1].left
            if short and goes_on(before[0], request) and is_marked(dialect, before[0]):
                found.append(f"step {request.step} of {request.run_id} reads {charged.read} of {before[1].left}")
            before = request, charged
    return found


@examples(40, shrink=False)
@given(setups())
def test_no_run_breaks_a_prefix_that_nobody_asked_it_to(setup):
    trial = Trial.of(setup).carry_out()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("treadle.models.anthropic.SHORT", 0)
        patch.setattr("treadle.models.bedrock.SHORT", 0)
        assert {dialect: breaks(dialect, trial) for dialect in DIALECTS} == {dialect: [] for dialect in DIALECTS}
