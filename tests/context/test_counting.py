"""What is known of a request's tokens, what is learnt about the rest, and what counting costs."""

import itertools

import pytest
from histories import history
from rules import same
from scripted_runs import LIMITS, look, run

from treadle import Agent, Conversation
from treadle.context import tokens
from treadle.context.policies import ClearToolResults, KeepFirstAndRecent, ShortenResult
from treadle.context.texts import LIKELY
from treadle.context.tokens import LEAST_RATIO, context_tokens, estimate_tokens, factor_of, next_tokens, uncounted
from treadle.kernel.accounts import MOST_RATIO, Ratio
from treadle.kernel.events import (
    ModelReplied,
    RunStarted,
    StepPrepared,
    ToolFinished,
    decode_event,
    encode_event,
)
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import AssistantMessage, ToolCall, ToolMessage, Usage
from treadle.kernel.stop import Decision
from treadle.testing import ScriptedModel


@pytest.mark.parametrize("policy", [KeepFirstAndRecent(10**9, 1), ClearToolResults(10**9, 1), ShortenResult(4000)])
def test_a_step_of_a_long_conversation_looks_at_no_more_than_that_of_a_short_one(policy, monkeypatch):
    """The messages that are estimated in a step do not grow with the history."""
    seen = []

    def counted(message):
        seen.append(message)
        return estimate_tokens(message)

    monkeypatch.setattr(tokens, "estimate_tokens", counted)

    def per_step(exchanges):
        counts = []

        def turn(request):
            counts.append(len(seen))
            return "done" if request.step == 20 else [("look", {"n": request.step})]

        said = Conversation(history(exchanges, "a result")[1:])
        run(Agent(ScriptedModel(turn), tools=[look], limits=LIMITS, context=policy), conversation=said)
        return [b - a for a, b in itertools.pairwise(counts[1:])]

    short, long = per_step(3), per_step(5000)
    assert max(long) == max(short)
    assert sum(long) == sum(short)


def stepped(first, second, new="y" * 30_000):
    """A run of two steps, which reported `first` and `second`, and a result of `new` after each."""
    events = [RunStarted("r", tuple(history(5)), 1, tools=("look",), at=1.0)]
    for step, usage in enumerate((first, second)):
        said = AssistantMessage((ToolCall(f"a{step}", "look", "{}"),))
        estimate = uncounted(fold_all(events))
        events += [
            StepPrepared(step, Decision("go"), at=2.0),
            ModelReplied(step, said, usage, model="m", estimate=estimate, at=3.0),
            ToolFinished(step, f"a{step}", new, at=4.0),
        ]
    return events


@pytest.mark.parametrize("ratio", [0.5, 0.9, 1.3, 2.0])
def test_the_reported_part_is_exact_and_the_rest_is_calibrated_by_what_was_reported(ratio):
    new = estimate_tokens(ToolMessage("a0", "look", "y" * 30_000))
    events = stepped(Usage(900, 10), Usage(910 + round(new * ratio), 10))
    state = fold_all(events)
    factor = factor_of(state.size.ratios["m"])
    assert factor == pytest.approx(ratio, abs=0.03)
    known = 910 + round(new * ratio) + 10
    assert context_tokens(state) == known + round(new * factor)
    most = state.size.ratios["m"].most
    assert max(1.0, factor) <= most < max(1.0, factor) + 0.01
    assert next_tokens(state) == known + round(new * most)
    same(state, fold_all([decode_event(encode_event(event)) for event in events]))


def test_short_messages_teach_little():
    state = fold_all(stepped(Usage(900, 10), Usage(990, 10), new="ok"))
    assert LIKELY < factor_of(state.size.ratios["m"]) < 1.3


def test_a_ratio_is_believed_the_more_the_longer_the_messages_and_within_bounds():
    assert factor_of(Ratio()) == LIKELY
    assert LIKELY < factor_of(Ratio().learnt(20, 10)) < LIKELY + 0.1
    assert factor_of(Ratio().learnt(20_000, 10_000)) == pytest.approx(2, abs=0.05)
    assert factor_of(Ratio().learnt(10**9, 1)) == MOST_RATIO
    assert factor_of(Ratio().learnt(0, 10**9)) == LEAST_RATIO
    older = Ratio().learnt(2000, 1000)
    assert factor_of(older.learnt(500, 1000)) < factor_of(older)
    assert factor_of(Ratio(250, 500)) < 1 < factor_of(Ratio(1000, 500))


def test_nothing_is_learnt_from_what_was_not_reported_or_thought_in_secret():
    for first in (Usage(900, 10, estimated=True), Usage(), Usage(900, 900, reasoning_tokens=800)):
        assert not fold_all(stepped(first, Usage(20_000, 10))).size.ratios
    assert not fold_all(stepped(Usage(900, 10), Usage(20_000, 10, estimated=True))).size.ratios
    assert not fold_all(stepped(Usage(900, 10), Usage(100, 10))).size.ratios
