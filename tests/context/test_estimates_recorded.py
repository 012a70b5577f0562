"""How far estimates are off, on recorded traffic: the request as a whole, and the next one after a reported one.

The figures that the documentation gives are printed by `pytest -s`; what is asserted are bounds around them.
"""

import gzip
import json
import statistics
from itertools import pairwise
from pathlib import Path

import pytest
from histories import tokens_of
from recorded_histories import anthropic, has_media, openai_chat, openai_responses

from treadle.context.tokens import context_tokens, estimate_tokens, next_tokens
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.events import MessageAdded, ModelReplied, RunStarted, StepPrepared, ToolFinished
from treadle.kernel.fold import fold, fold_all
from treadle.kernel.messages import AssistantMessage, ToolMessage, ToolSpec, UserMessage
from treadle.kernel.stop import Decision
from treadle.models import AnthropicModel, OpenAIChatModel, OpenAIResponsesModel

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "recordings"
READERS = {"anthropic_messages": anthropic, "openai_chat": openai_chat}
REQUESTS = {
    "anthropic_messages": (anthropic, AnthropicModel),
    "openai_chat": (openai_chat, OpenAIChatModel),
    "openai_responses": (openai_responses, OpenAIResponsesModel),
}


def exchanges(name):
    """The recorded exchanges that succeeded, in order, each with what was read of its request."""
    if not RECORDINGS.is_dir():
        pytest.skip(f"the recordings are kept outside the repository and are not at {RECORDINGS}")
    with gzip.open(RECORDINGS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row["status"] == 200:
                found = REQUESTS[name][0](row)
                if found is not None and not has_media(found[0]):
                    yield row, found


def rows(name):
    """Of those: file, model, messages, tokens of tools, usage."""
    for row, found in exchanges(name):
        yield row["file"], f"{row['host']}/{row['request'].get('model')}", *found


def quantiles(values):
    ordered = sorted(values)
    return [round(ordered[int(len(ordered) * share)], 3) for share in (0.05, 0.5, 0.95)]


# Providers add what no request shows: some 400 tokens where there are tools at Anthropic, pages for tools of their own.
@pytest.mark.parametrize(("name", "least"), [("anthropic_messages", 0.3), ("openai_chat", 1.0)])
def test_the_estimate_of_a_request_that_nobody_has_counted(name, least):
    found = [(tokens_of(messages, tools), usage.input_tokens) for _, _, messages, tools, usage in rows(name)]
    ratios = [estimate / reported for estimate, reported in found if reported]
    short = [reported - estimate for estimate, reported in found if reported]
    print(f"\n{name}, estimate / reported at 5, 50, 95 %: {len(ratios)} requests {quantiles(ratios)}")
    print(f"  reported - estimate {quantiles(short)} tokens")
    assert len(ratios) > 90
    assert least < statistics.median(ratios) < 2
    assert statistics.median(short) < 500


def followed(one, other):
    """The state after request `one` and what came of it, up to request `other`; None if that does not follow on it."""
    messages, later = one[2], other[2]
    new = later[len(messages) :]
    if later[: len(messages)] != messages or not new or not isinstance(new[0], AssistantMessage):
        return None
    results = [message for message in new if isinstance(message, ToolMessage)]
    if not new[0].says_something or [one.call_id for one in results] != [call.id for call in new[0].calls]:
        return None
    state = fold_all([RunStarted("r", tuple(messages), 1, tool_tokens=one[3], tools=("t",), at=1.0)])
    events = [StepPrepared(0, Decision("go"), at=2.0), ModelReplied(0, new[0], one[4], model=one[1], at=3.0)]
    events += [ToolFinished(0, result.call_id, result.content, at=4.0) for result in results]
    events += [MessageAdded(message, at=5.0) for message in new if isinstance(message, UserMessage)]
    try:
        for event in events:
            state = fold(state, event)
    except IllegalEvent:
        return None
    return state if list(state.messages) == later else None


@pytest.mark.parametrize("name", READERS)
def test_the_next_request_after_one_that_was_counted(name):
    known, plain = [], []
    for one, other in pairwise(rows(name)):
        if one[:2] != other[:2] or one[3] != other[3] or one[4].reasoning_tokens or not other[4].input_tokens:
            continue
        state = followed(one, other)
        if state is not None:
            reported = other[4].input_tokens
            # Most of these are small, so that what is added around a message is all there is: as a share of 1,000.
            known.append(abs(context_tokens(state) - reported) / max(reported, 1000))
            plain.append(abs(tokens_of(other[2], other[3]) - reported) / max(reported, 1000))
    print(f"\n{name}, error at 5, 50, 95 %: {len(known)} next {quantiles(known)}, estimated anew {quantiles(plain)}")
    assert len(known) > 10
    assert statistics.median(known) < 0.03
    assert statistics.median(known) < statistics.median(plain) / 2


def specs(request):
    """The tools of a request."""
    tools = [one.get("function", one) for one in request.get("tools") or []]
    return [
        ToolSpec(
            one.get("name", ""), one.get("description") or "", one.get("input_schema") or one.get("parameters", {})
        )
        for one in tools
    ]


def schema_of(request):
    """The schema that the reply is held to."""
    own = request.get("output_config") or request.get("text") or {}
    return own.get("format") or request.get("response_format")


def does_more_by_itself(request):
    """Whether the provider searches the web, calls servers or asks other models, and bills that as input."""
    tools = request.get("tools") or []
    own = [one for one in tools if "input_schema" not in one and one.get("type") != "function"]
    own += [name for name in ("mcp_servers", "models") if request.get(name)]
    pro = (request.get("reasoning") or {}).get("mode") == "pro"
    return bool(own or pro or request["model"].startswith("compound"))


@pytest.mark.parametrize("name", REQUESTS)
def test_no_recorded_request_is_reckoned_too_low(name):
    """But for what providers do by themselves, as docs/costs.md says."""
    ratios, low = [], []
    for row, (messages, _, usage) in exchanges(name):
        request = row["request"]
        schema = schema_of(request)
        model = REQUESTS[name][1](request["model"], api_key="k", base_url=f"https://{row['host']}")
        reckoned = model.fixed_tokens(specs(request), schema) + sum(map(estimate_tokens, messages))
        ratios.append(reckoned / usage.input_tokens)
        if reckoned < usage.input_tokens and not does_more_by_itself(request):
            low.append((row["file"], row["i"], usage.input_tokens, reckoned))
    below = sum(ratio < 1 for ratio in ratios)
    print(f"\n{name}, reckoned / reported at 5, 50, 95 %: {len(ratios)} requests {quantiles(ratios)}, {below} below")
    assert not low
    assert len(ratios) > 90


@pytest.mark.parametrize("name", READERS)
def test_no_request_that_followed_a_recorded_one_is_reckoned_too_low(name):
    states = [(followed(one, other), other) for one, other in pairwise(rows(name)) if one[:2] == other[:2]]
    found = [(next_tokens(state), other[4].input_tokens) for state, other in states if state is not None]
    print(f"\n{name}, reckoned / reported at 5, 50, 95 %: {quantiles([a / b for a, b in found if b])}")
    assert len(found) > 10
    assert all(reckoned >= reported for reckoned, reported in found)
