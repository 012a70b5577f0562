"""Many clients on live runs, in small: `make load` is the same in large. And what is over leaves nothing behind."""

import argparse
import asyncio
import gc
import importlib.util
from pathlib import Path

import pytest
from served import events_of, run_when, serving, talker

from treadle import MemoryJournal
from treadle.serve import app
from treadle.serve.feed import Feed, Hearing
from treadle.serve.live import Carried
from treadle.serve.serving import EventStream

SCRIPT = Path(__file__).parents[2] / "scripts" / "load.py"


def test_every_clients_log_is_the_journal_whatever_it_went_through(tmp_path):
    spec = importlib.util.spec_from_file_location("load", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    given = argparse.Namespace(clients=60, runs=6, steps=8, pause=0.15, soak=0.0)
    load = module.Load(given, tmp_path)
    server = load.start()
    try:
        assert asyncio.run(load.round()) >= 60 * 8 * 4
        assert load.reconnects > 0
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()


@pytest.mark.anyio
async def test_what_is_over_leaves_nothing_behind():
    gc.collect()
    # Those of other tests in this process, held, so that no new one has the place of an old one.
    earlier = [one for one in gc.get_objects() if isinstance(one, Feed | Hearing | Carried | EventStream)]
    known = set(map(id, earlier))
    served = app([talker()], journal=MemoryJournal())
    async with serving(served) as client:
        for number in range(60):
            body = {"agent": "talker", "input": f"{number}", "conversation": f"c{number % 5}"}
            run_id = (await client.post("/api/runs", json=body)).json()["id"]
            follows = [events_of(client, f"/api/runs/{run_id}/stream", most=most) for most in (1, None, 3)]
            await asyncio.gather(*follows)
            await run_when(client, run_id, "finished")
        for _ in range(20):
            gc.collect()
            # Their names alone: to look at them must not keep them.
            left = [
                type(one).__name__
                for one in gc.get_objects()
                if isinstance(one, Feed | Hearing | Carried | EventStream) and id(one) not in known
            ]
            if not left:
                break
            await asyncio.sleep(0.05)
        assert left == []
        assert served.serving.access._streams == {}
        assert served.runs.conversations._lent == set()
