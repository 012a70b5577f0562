"""Messages, pauses, cancels, decisions and resumptions in any order: the run stays valid and comes to one end."""

import asyncio
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st
from rules import events_of, one_stop, requests_valid, same, valid
from toolbox import QUICK, World
from worlds import SlowJournal, conversation, examples, setups

from treadle import Misuse, RunStopped
from treadle.kernel.events import MessageAdded, decode_event, encode_event
from treadle.kernel.fold import fold_all

live_moves = st.one_of(
    st.tuples(st.just("tick"), st.integers(1, 8)),
    st.tuples(st.just("tick"), st.integers(1, 8)),
    st.tuples(st.just("send"), st.just(0)),
    st.tuples(st.sampled_from(["pause", "cancel", "watch"]), st.just(0)),
)
later_moves = st.lists(
    st.tuples(st.sampled_from(["approve", "deny", "edit", "answer", "resume", "cancel"]), st.integers(0, 12)),
    max_size=6,
)


async def steer(run, moves):
    """Carries `moves` out on a live run, and returns the messages that it took."""
    sent = []
    for kind, count in moves:
        match kind:
            case "tick":
                for _ in range(count):
                    await asyncio.sleep(0)
            case "send":
                text = f"by the way, {len(sent)}"
                try:
                    await run.send(text)
                except Misuse:
                    assert run.result.stop.detail != "the run has not ended"
                else:
                    sent.append(text)
            case "pause":
                await run.pause()
            case "cancel":
                await run.cancel()
            case "watch":
                async for _ in run:
                    break
        valid(run.result.messages)
    return sent


async def go_on(agent, result, move, count, world):
    """One resumption of a run that waits, with one kind of decision; cancelled after `count` turns, if that is it."""
    first = next(iter(result.pending), None)
    given = {}
    if first is not None:
        if move == "answer":
            given = {"results": {first.call_id: {"n": count}}}
        elif first.kind != "result":
            given = {
                "approve": {"approve": [first.call_id]},
                "edit": {"approve": {first.call_id: {"n": count}}},
                "deny": {"deny": {first.call_id: "rather not"}},
            }.get(move, {})
    task = asyncio.get_running_loop().create_task(agent.resume(result.run_id, **given, deps=world))
    if move == "cancel":
        for _ in range(count):
            await asyncio.sleep(0)
        if not task.done():
            task.cancel()
    try:
        return await task
    except RunStopped as stop:
        return stop.result
    except asyncio.CancelledError:
        return None


@examples(250)
@given(setups(tuple(one.name for one in QUICK), max_size=4), st.lists(live_moves, max_size=8), later_moves)
def test_any_order_of_steering(setup, moves, later):
    async def run():
        player, journal, said, world = setup.player(), SlowJournal(), conversation(), World()
        agent = setup.agent(player, journal, QUICK)
        async with agent.stream("go", conversation=said, deps=world) as live:
            sent = await steer(live, moves)
            with suppress(RunStopped):
                async for _ in live:
                    pass
        result = live.result
        valid(said.messages)
        one_stop_or_paused(result, events_of(journal, live.run_id))
        for move, count in later:
            if result is None or result.stop.reason != "waiting":
                break
            result = await go_on(agent, result, move, count, world)
        requests_valid(player)
        for _ in range(3):  # the event loop closes the iterators that a "watch" left
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        stored = events_of(journal, live.run_id)
        state = fold_all([decode_event(encode_event(event)) for event in stored])
        same(state, fold_all(stored))
        if result is not None:
            valid(result.messages)
            one_stop_or_paused(result, stored)
            if result.events:
                assert list(result.events) == stored
        assert [e.message.text for e in stored if isinstance(e, MessageAdded)] == sent
        texts = [message.text for message in live.result.messages]
        assert [text for text in texts if text in sent] == sent

    asyncio.run(run())


def one_stop_or_paused(result, events):
    """As `one_stop`; a run that its caller paused waits for nobody in particular."""
    if result.stop.detail == "paused by the caller":
        assert result.stop.reason == "waiting"
        assert fold_all(events).phase == "paused"
    else:
        one_stop(result, events)
