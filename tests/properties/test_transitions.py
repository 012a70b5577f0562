"""The table of transitions: what is in it leads where it says, what is not raises and changes nothing."""

import msgspec
import pytest
from checks import same, valid
from hypothesis import given
from hypothesis import strategies as st
from worlds import examples

from treadle import Decision, Limits
from treadle.kernel import events as kernel_events
from treadle.kernel.decide import decide
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.events import (
    ApprovalDecided,
    ApprovalRequested,
    ContextEdited,
    ErrorInfo,
    Happened,
    MessageAdded,
    ModelFailed,
    ModelReplied,
    NudgeGiven,
    ResultAwaited,
    RunFinished,
    RunForked,
    RunPaused,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolReacted,
    ToolsListed,
    ToolStarted,
)
from treadle.kernel.fold import TRANSITIONS, fold, fold_all
from treadle.kernel.messages import AssistantMessage, ListedTool, Text, ToolCall, ToolMessage, UserMessage
from treadle.kernel.stop import stopped

STARTED = RunStarted("r", (UserMessage("q"),), 1, Limits(tool_calls=3), tools=("t",), at=1.0)
PREPARED = StepPrepared(0, Decision("go"), at=2.0)
LISTED = (ListedTool("s__t", "s", "t", "Does it.", {"type": "object"}),)
CALLS = AssistantMessage((Text("on it"), ToolCall("a", "t", "{}"), ToolCall("b", "t", "{}")))
TO = {
    "new": [],
    "ready": [STARTED],
    "prepared": [STARTED, PREPARED, ToolStarted(0, "a", "t", "{}", at=2.5)],
    "acting": [STARTED, PREPARED, ModelReplied(0, CALLS, at=3.0)],
    "replied": [STARTED, PREPARED, ModelReplied(0, AssistantMessage((Text("hi"),)), at=3.0)],
    "paused": [STARTED, RunPaused(stopped("waiting"), at=2.0)],
    "finished": [STARTED, RunFinished(stopped("cancelled"), at=2.0)],
}
SAMPLES = {
    type(event): event
    for event in (
        STARTED,
        PREPARED,
        ModelReplied(0, CALLS, at=9.0),
        ModelFailed(0, ErrorInfo("overloaded", "busy"), at=9.0),
        ToolStarted(0, "a", at=9.0),
        ToolFinished(0, "a", "1", at=9.0),
        ToolReacted(0, "a", "keep", at=9.0),
        ApprovalRequested(0, "a", at=9.0),
        ApprovalDecided(0, "a", True, at=9.0),
        ResultAwaited(0, "a", at=9.0),
        MessageAdded(UserMessage("aside"), at=9.0),
        ContextEdited("Shorter", 0, 0, (UserMessage("what went before"),), at=9.0),
        ToolsListed(LISTED, 9, at=9.0),
        NudgeGiven("go on", at=9.0),
        RunPaused(stopped("waiting"), at=9.0),
        RunResumed(at=9.0),
        RunForked("other", at=9.0),
        RunFinished(stopped("cancelled"), at=9.0),
    )
}
RETURNED = ToolFinished(0, "a", "1", provisional=True)
PAIRS = [(phase, kind) for phase in TRANSITIONS for kind in SAMPLES]


def test_the_samples_are_all_events_and_phases():
    assert set(SAMPLES) == set(kernel_events.Event.__args__) == set(Happened.__subclasses__())
    assert set(TO) == set(TRANSITIONS)
    for phase, events in TO.items():
        assert fold_all(events).phase == phase


@pytest.mark.parametrize(
    ("phase", "kind"),
    [pair for pair in PAIRS if pair[1] not in TRANSITIONS[pair[0]]],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_an_illegal_event_names_state_and_event_and_changes_nothing(phase, kind):
    state = fold_all(TO[phase])
    with pytest.raises(IllegalEvent) as caught:
        fold(state, SAMPLES[kind])
    assert repr(phase) in str(caught.value)
    assert kind.__name__ in str(caught.value)
    same(state, fold_all(TO[phase]))


LEGAL = [pair for pair in PAIRS if pair[1] in TRANSITIONS[pair[0]]]


@pytest.mark.parametrize(("phase", "kind"), LEGAL, ids=lambda x: getattr(x, "__name__", x))
def test_a_legal_event_leads_where_the_table_says_and_leaves_the_old_state(phase, kind):
    state = fold_all(TO[phase])
    before = len(state.messages)
    event = SAMPLES[kind]
    if (phase, kind) == ("prepared", ToolStarted):
        event = ToolStarted(0, "b", "t", "{}", at=9.0)
    if kind is ApprovalDecided:
        state = fold(state, SAMPLES[ApprovalRequested])
    if kind is ToolReacted:
        state = fold(state, RETURNED)
    after = fold(state, event)
    assert after.phase in TRANSITIONS[phase][kind].leads_to
    assert after.events == state.events + 1
    assert after.now == event.at
    assert len(state.messages) == before
    assert state.phase == phase


STEPS = [kind for kind in SAMPLES if "step" in kind.__struct_fields__]


@pytest.mark.parametrize(
    ("phase", "kind"), [pair for pair in LEGAL if pair[1] in STEPS], ids=lambda x: getattr(x, "__name__", x)
)
def test_an_event_of_another_step_is_illegal(phase, kind):
    state = fold_all(TO[phase])
    with pytest.raises(IllegalEvent, match="step 7"):
        fold(state, msgspec.structs.replace(SAMPLES[kind], step=7))
    same(state, fold_all(TO[phase]))


CALL_EVENTS = [kind for kind in SAMPLES if "call_id" in kind.__struct_fields__]


@pytest.mark.parametrize("kind", CALL_EVENTS)
def test_an_event_of_an_unknown_call_is_illegal(kind):
    state = fold_all(TO["acting"])
    with pytest.raises(IllegalEvent, match=f"{kind.__name__} names call 'zz'"):
        fold(state, msgspec.structs.replace(SAMPLES[kind], call_id="zz"))
    same(state, fold_all(TO["acting"]))


STATUSES = {
    "asked": [],
    "started": [ToolStarted(0, "a")],
    "interrupted": [ToolStarted(0, "a"), RunResumed()],
    "needs_approval": [ApprovalRequested(0, "a")],
    "approved": [ApprovalRequested(0, "a"), ApprovalDecided(0, "a", True)],
    "awaited": [ResultAwaited(0, "a", True)],
    "returned": [ToolStarted(0, "a"), RETURNED],
    "changed": [ToolReacted(0, "a", "change", arguments="{}")],
    "again": [RETURNED, ToolReacted(0, "a", "call", call=ToolCall("a", "t"))],
    "done": [ToolFinished(0, "a", "1")],
}
ALLOWED = {
    "asked": {ToolStarted, ToolFinished, ApprovalRequested, ResultAwaited},
    "started": {ToolFinished},
    "interrupted": {ToolStarted, ToolFinished, ApprovalRequested},
    "needs_approval": {ToolFinished, ApprovalDecided},
    "approved": {ToolStarted, ToolFinished, ResultAwaited, ApprovalRequested},
    "awaited": {ToolFinished},
    "returned": {ToolFinished, ToolReacted},
    "changed": {ToolStarted, ToolFinished, ApprovalRequested, ResultAwaited},
    "again": {ToolStarted, ToolFinished, ToolReacted, ApprovalRequested, ResultAwaited},
    "done": set(),
}


@pytest.mark.parametrize("kind", CALL_EVENTS)
@pytest.mark.parametrize("status", STATUSES)
def test_what_a_call_takes_where_it_stands(status, kind):
    events = [*TO["acting"], *STATUSES[status]]
    state = fold_all(events)
    assert state.step.calls[0].status == ("asked" if status in ("again", "changed") else status)
    if kind in ALLOWED[status]:
        assert fold(state, SAMPLES[kind]).events == state.events + 1
    else:
        with pytest.raises(IllegalEvent, match=kind.__name__):
            fold(state, SAMPLES[kind])
        same(state, fold_all(events))


messages = st.lists(
    st.one_of(
        st.builds(Text, st.sampled_from(["", " ", "hm"])),
        st.builds(ToolCall, st.sampled_from(["a", "b", "c", ""]), st.just("t"), st.sampled_from(["{}", "{"])),
    ),
    max_size=3,
).map(lambda parts: AssistantMessage(tuple(parts)))
number, call = st.sampled_from([0, 0, 0, 1, 1, 2]), st.sampled_from(["a", "a", "b", "c"])
stops = st.sampled_from([stopped("cancelled"), stopped("waiting"), stopped("answered")])
finishes = st.sampled_from(["stop", "tool_calls", "length", "content_filter", "refusal", "pause", "unknown"])
replacements = st.lists(
    st.one_of(
        st.just(UserMessage("what went before")),
        st.builds(ToolMessage, st.sampled_from(["a", "b"]), st.just("t"), st.just("cut")),
        messages,
    ),
    max_size=3,
).map(tuple)
actions = st.sampled_from(["keep", "replace", "call", "change"])
any_event = st.one_of(
    st.builds(StepPrepared, number, st.just(Decision("go")), st.sampled_from([None, None, stopped("max_steps")])),
    st.builds(ModelReplied, number, messages, finish=finishes),
    st.builds(ModelFailed, number, st.just(ErrorInfo("overloaded", "busy")), retry_in=st.sampled_from([None, 0.0])),
    st.builds(ToolStarted, number, call, st.sampled_from(["", "t"]), st.just("{}")),
    st.builds(ToolFinished, number, call, st.just("1"), st.booleans(), provisional=st.booleans()),
    st.builds(
        ToolReacted,
        number,
        call,
        actions,
        st.just("2"),
        call=st.sampled_from([None, ToolCall("a", "other")]),
        arguments=st.sampled_from([None, "{}"]),
    ),
    st.builds(ApprovalRequested, number, call, st.sampled_from(["policy", "interrupted"])),
    st.builds(ApprovalDecided, number, call, st.booleans()),
    st.builds(ResultAwaited, number, call, st.booleans()),
    st.builds(MessageAdded, st.just(UserMessage("aside"))),
    st.builds(NudgeGiven, st.just("go on"), st.booleans()),
    st.builds(ToolsListed, st.sampled_from([(), LISTED]), st.integers(0, 99)),
    st.builds(ContextEdited, st.just("Shorter"), st.integers(-1, 6), st.integers(0, 8), replacements),
    st.builds(RunPaused, stops),
    st.builds(RunResumed),
    st.builds(RunForked, st.just("other")),
    st.builds(RunFinished, stops),
)


@examples(300)
@given(st.lists(any_event, max_size=40))
def test_any_events_in_any_order_are_folded_or_refused(events):
    state = fold(fold_all([]), STARTED)
    taken = [STARTED]
    for event in events:
        try:
            after = fold(state, event)
        except IllegalEvent:
            same(state, fold_all(taken))
            continue
        assert after.phase in TRANSITIONS[state.phase][type(event)].leads_to
        state = after
        taken.append(event)
        assert state.events == len(taken)
        decide(state)
        if state.phase in ("ready", "prepared", "replied", "finished"):
            valid(list(state.messages))
        open_calls = [] if state.step is None else [record for record in state.step.calls if record.result is None]
        assert state.open_calls == len(open_calls)
        assert (state.phase == "acting") == bool(open_calls) or state.phase == "paused"
