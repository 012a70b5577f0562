"""What is said to a fork is what its journal can hold: a trace with content was given a lone surrogate as it came."""

import asyncio

from treadle import Agent, MemoryJournal
from treadle.kernel.events import MessageAdded
from treadle.testing import ScriptedModel


def test_the_message_of_a_fork_is_storable_from_the_beginning() -> None:
    seen = []

    async def main() -> None:
        journal = MemoryJournal()
        run = await Agent(ScriptedModel(["done"]), journal=journal).run("hi")
        model = ScriptedModel(["again"])
        await Agent(model, journal=journal).fork(run.run_id, at=0, message="go \ud800 on", on_event=seen.append)
        assert model.requests[0].messages[-1].text == "go ? on"
        (newest, *_) = await journal.list(1)
        (said,) = [one for one in await journal.read(newest.run_id) if isinstance(one, MessageAdded)]
        assert said.message.text == "go ? on"

    asyncio.run(main())
