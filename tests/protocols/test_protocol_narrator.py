"""The narrator: what is told of a run is balanced, complete, and the same from the journal alone as live."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import pytest
from front_agents import SCRIPTS, agents
from hypothesis import given
from hypothesis import strategies as st

from treadle.drivers.watching import RunEvent, SubRunEvent
from treadle.kernel.events import (
    Happened,
    ModelReplied,
    RunFinished,
    RunPaused,
    ToolFinished,
    decode_event,
    encode_event,
)
from treadle.kernel.messages import AssistantMessage, Text, ToolCall
from treadle.models.port import TextDelta, ToolCallDelta, ToolCallStarted
from treadle.result import Pending
from treadle.serve.deciding import verdicts
from treadle.serve.protocols import ai_sdk, moves
from treadle.serve.protocols.narrator import Narrator

QUESTIONS = sorted(set(SCRIPTS) - {"slow", "twins", "look slowly"})


@cache
def recorded(question: str) -> tuple[RunEvent, ...]:
    """Everything that a run tells, in its order; where it waits for a person, what comes after a yes too."""

    async def run() -> list[RunEvent]:
        agent, seen = agents()["shop"], list[RunEvent]()
        async with agent.stream(question) as live:
            seen += [event async for event in live]
        if any(one.kind == "approval" for one in live.result.pending):
            async with agent.stream(resume=live.result, approve=live.result.pending) as live:
                seen += [event async for event in live]
        return seen

    return tuple(asyncio.run(run()))


def told(events: Iterable[RunEvent], known: Sequence[Any] = ()) -> list[moves.Move]:
    narrator = Narrator()
    for event in known:
        narrator.skip(event)
    return [move for event in events if not isinstance(event, SubRunEvent) for move in narrator.hear(event)]


def outcome(given: Iterable[moves.Move]) -> tuple[Any, ...]:
    """What somebody has who heard it all: texts, thoughts, calls and their results; what was withdrawn is gone."""
    parts, calls, results, ended = dict[str, list[str]](), dict[str, Any](), dict[str, Any](), list[Any]()
    for move in given:
        match move:
            case moves.PartBegan(kind=kind, id=name):
                parts[name] = [kind, ""]
            case moves.PartPiece(id=name, text=text):
                parts[name][1] += text
            case moves.CallBegan(id=name, name=tool):
                calls[name] = [tool, ""]
            case moves.CallPiece(id=name, json=json):
                calls[name][1] += json
            case moves.CallReturned(id=name, content=content, is_error=is_error):
                assert name not in results
                results[name] = (content, is_error)
            case moves.Withdrawn(parts=gone, calls=lost):
                for name in gone:
                    del parts[name]
                for name, _ in lost:
                    del calls[name]
            case moves.Ended():
                ended.append((move.stop.reason, move.text, move.usage))
    return [tuple(one) for one in parts.values()], calls, results, ended


def named(given: Iterable[moves.Move]) -> list[str]:
    """The ids of the parts that stand in the end."""
    ids = list[str]()
    for move in given:
        match move:
            case moves.PartBegan(id=name):
                ids.append(name)
            case moves.Withdrawn(parts=gone):
                ids = [name for name in ids if name not in gone]
            case _:
                pass
    return ids


def assert_balanced(given: Iterable[moves.Move]) -> None:
    """What is opened is closed, once, and nothing is told of what is not open."""
    part: tuple[str, str] | None = None
    step: int | None = None
    there = Counter[str]()
    for move in given:
        match move:
            case moves.StepBegan(step=number):
                assert step is None
                step = number
            case moves.StepEnded(step=number):
                assert (step, part) == (number, None)
                step = None
            case moves.PartBegan(kind=kind, id=name):
                assert part is None
                part = (kind, name)
            case moves.PartPiece(kind=kind, id=name, text=text):
                assert part == (kind, name)
                assert text
            case moves.PartEnded(kind=kind, id=name):
                assert part == (kind, name)
                part = None
            case moves.CallBegan(id=name):
                assert (part, there[name]) == (None, 0)
                there[name] = 1
            case moves.CallReady(id=name):
                assert there[name] == 1
            case moves.CallReturned(id=name) | moves.CallStarted(id=name):
                assert there[name]
            case moves.Withdrawn(calls=lost):
                for name, _ in lost:
                    there[name] = 0
            case moves.Ended():
                assert (step, part) == (None, None)


@pytest.mark.parametrize("question", QUESTIONS)
def test_live_and_from_the_journal_the_same_is_told(question: str) -> None:
    live = recorded(question)
    stored = [decode_event(encode_event(event)) for event in live if isinstance(event, Happened)]
    for events in (live, stored):
        assert_balanced(told(events))
    assert outcome(told(live)) == outcome(told(stored))
    # And each part by its id, so that whoever was told of it knows it again.
    assert named(told(live)) == named(told(stored))


@given(st.sampled_from(QUESTIONS), st.data())
def test_whatever_pieces_are_lost_the_same_is_told(question: str, data: st.DataObject) -> None:
    live = recorded(question)
    left = [event for event in live if isinstance(event, Happened) or data.draw(st.booleans())]
    assert_balanced(told(left))
    (some, *rest), (whole, *other) = outcome(told(left)), outcome(told(live))
    assert [one for one in some if one[0] == "text"] == [one for one in whole if one[0] == "text"]
    assert rest == other


@given(st.sampled_from(QUESTIONS), st.data())
def test_told_in_two_halves_it_is_all_told_and_nothing_twice(question: str, data: st.DataObject) -> None:
    stored: list[Any] = [event for event in recorded(question) if isinstance(event, Happened)]
    places = [i for i, event in enumerate(stored, 1) if isinstance(event, (ToolFinished, RunPaused, RunFinished))]
    place = data.draw(st.sampled_from(places))
    first, second = told(stored[:place]), told(stored[place:], stored[:place])
    together, whole = outcome([*first, *second]), outcome(told(stored))
    assert together == whole


def test_a_reply_that_broke_off_is_withdrawn_with_its_calls() -> None:
    given = told(recorded("withdrawn"))
    (withdrawn,) = [move for move in given if isinstance(move, moves.Withdrawn)]
    assert (len(withdrawn.parts), withdrawn.calls, withdrawn.again) == (1, (("call_lost", "look_up"),), True)


def test_a_call_whose_id_the_run_has_had_is_told_under_the_id_that_it_is_given() -> None:
    stored: list[Any] = [event for event in recorded("look up") if isinstance(event, Happened)]
    (replied, *_) = [event for event in stored if isinstance(event, ModelReplied)]
    used = replied.message.calls[0].id
    again = AssistantMessage((ToolCall(f"{used}_2", "look_up", "{}"),))
    at = max(i for i, event in enumerate(stored) if isinstance(event, ModelReplied))
    pieces = [ToolCallStarted(used, "look_up"), ToolCallDelta(used, "{}")]
    given = told([*stored[:at], *pieces, ModelReplied(1, again, at=stored[at].at)])
    assert [move.id for move in given if isinstance(move, moves.CallBegan)] == [used, f"{used}_2"]


def test_text_that_the_whole_reply_does_not_have_is_withdrawn() -> None:
    stored: list[Any] = [event for event in recorded("hello") if isinstance(event, Happened)]
    at = next(i for i, event in enumerate(stored) if isinstance(event, ModelReplied))
    given = told([*stored[:at], TextDelta("from the middle"), *stored[at:]])
    assert outcome(given)[0] == [("text", "Hello there.")]
    assert stored[at].message.content == (Text("Hello there."),)


def test_a_call_that_a_crash_cut_off_is_asked_about_as_such_and_approved_as_running_again() -> None:
    cut_off = Pending("call%2F1", "pay", {"to": "Bob"}, "interrupted", plain="call/1")
    asked = moves.Asked((cut_off,))
    (older, *_), (newer, *_) = (
        [part for part in ai_sdk.Writer("run", "run", ("call/1",), version).write(asked)] for version in (6, 7)
    )
    assert (older["toolCallId"], "reason" in older, "nobody knows" in newer["reason"]) == ("call/1", False, True)
    body = {"id": "c", "messages": [{"role": "assistant", "parts": [
        {"type": "tool-pay", "toolCallId": "call/1", "state": "approval-responded",
         "approval": {"id": older["approvalId"], "approved": True}},
    ]}]}  # fmt: skip
    decided = ai_sdk.decisions(ai_sdk.posted(body), "run", [cut_off])
    (verdict,) = verdicts(decided, [cut_off])
    assert (verdict.call, verdict.verb, f"{verdict.call}#{verdict.fingerprint}") == ("call%2F1", "again", cut_off.key)
    once_more = Pending("call%2F1", "pay", {"to": "Bob"}, "approval", plain="call/1")
    assert not ai_sdk.decisions(ai_sdk.posted(body), "run", [once_more]), "it is another question whether it may run"


def test_what_was_decided_and_said_elsewhere_is_told_to_a_client_that_reads_it() -> None:
    sent = {version: list[str]() for version in (6, 7)}
    for version, kinds in sent.items():
        writer = ai_sdk.Writer("run", "run", (), version)
        for move in [*told(recorded("pay")), moves.Said(1, "Hurry.")]:
            kinds += [part["type"] for part in writer.write(move)]
    assert "tool-approval-response" not in sent[6]
    assert sent[7].index("tool-approval-response") < sent[7].index("tool-output-available", sent[7].index("finish"))
    assert ("data-said" in sent[6], "steering-message" in sent[7]) == (True, True)
