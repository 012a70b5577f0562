"""A run that is carried out by hand keeps the same promises: the loop of the docs in the place of `agent.run`."""

from dataclasses import dataclass, replace
from typing import Any

from hooks import Hooks
from hypothesis import given
from hypothesis import strategies as st
from player import Breaks
from rules import hold
from trial import Trial
from worlds import examples, setups

from treadle import CallModel, Finish, Nudge, Pause, PrepareStep, RunResult, RunTools
from treadle.drivers.compact import compact
from treadle.drivers.run import Run
from treadle.drivers.think import think
from treadle.models import ModelError, ModelReply


@dataclass
class ByHand(Trial):
    """Its first process has the loop that the docs show."""

    thinks: bool = False

    async def begin(self) -> None:
        self.last = await self.caught(self._carried_out())

    async def _call(self, run: Run) -> None:
        if self.thinks:
            await think(run)
            return
        try:
            async for event in run.model.stream(run.request()):
                if isinstance(event, ModelReply):
                    run.feed(event)
                    break
        except ModelError as error:
            run.feed(error)

    async def _carried_out(self) -> RunResult[Any]:
        agent = self.agent()
        run = agent.start(
            self._question(), conversation=self.said, deps=self.world, on_event=self.watcher(), **self.brought()
        )
        try:
            await run.commit()
            while command := await run.judged():
                match command:
                    case PrepareStep():
                        if await compact(run):
                            command = await run.judged()
                        if isinstance(command, PrepareStep):
                            run.feed(run.prepare(command))
                    case CallModel():
                        await self._call(run)
                    case RunTools(records=records):
                        # Which calls hand the conversation on is known to who wrote the agent.
                        for record in sorted(records, key=lambda one: one.call.name == "pass_on"):
                            await run.call_tool(record)
                    case Nudge() | Pause() | Finish():
                        run.feed(command.event())
                await run.commit()
        finally:
            run.release()
        return run.result


def by_hand(setup, thinks):
    hooks = Hooks(reacts=setup.hooks.reacts, calls=setup.hooks.calls, on_event=setup.hooks.on_event)
    if not thinks:
        # What came of a reply that broke off is known to who heard its pieces alone.
        whole = tuple(turn for turn in setup.script if not isinstance(turn, Breaks))
        setup = replace(setup, script=whole, second=None, dialect="", bound=None)
    return replace(
        setup,
        hooks=hooks,
        steers=(),
        one_step=False,
        prepare=0,
        output_mode=None,
        server=None,
        traced="",
    )


@examples(60, shrink=False)
@given(setups(max_size=4), st.booleans(), st.data())
def test_a_run_by_hand_keeps_every_promise(setup, thinks, data):
    trial = ByHand.of(by_hand(setup, thinks))
    trial.thinks = thinks
    hold(trial.carry_out())
    for _ in range(2):
        if trial.journal.order:
            hold(trial.killed(data.draw(st.integers(1, len(trial.journal.order)))).carry_out())
