"""The same work by other durable runners, for `bench/journal.py`: DBOS and LangGraph, in SQLite and in PostgreSQL.

A run is a number of steps; a step asks a model and calls a tool, both of which do nothing, and what they gave is on the
disk before the next step (LangGraph: `durability="sync"`). Each is asked in its own way: DBOS has a workflow whose
model calls and tool calls are steps, LangGraph a graph with a node for the model and one for the tool. All commits are
synced: SQLite's by `synchronous = FULL`, which is the default that both leave as it is (DBOS with a rollback journal,
LangGraph with a write-ahead log, as we), PostgreSQL's by `fsync` and `synchronous_commit`, which are on.
"""

import asyncio
import importlib.util
import logging
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

RUNS, STEPS = 20, 20


@contextmanager
def server(folder: Path) -> Iterator[str | None]:
    """The address of a PostgreSQL server that syncs; None where there is none."""
    path = Path(__file__).parents[1] / "tests" / "postgres_server.py"
    spec = importlib.util.spec_from_file_location("postgres_server", path)
    if spec is None or spec.loader is None or importlib.util.find_spec("psycopg") is None:
        yield None
        return
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    programs = module.programs()
    if programs is None:
        yield None
        return

    class Synced(module.Server):  # type: ignore[misc, name-defined]
        def start(self) -> None:
            options = f"-h 127.0.0.1 -p {self.port} -k '' -c fsync=on -c max_connections=100"
            self._do(
                "pg_ctl", "-D", self.data, "-w", "-t", "60", "-l", str(self.folder / "log"), "-o", options, "start"
            )

    # Not in a folder that only its owner may enter: the server has a user of its own.
    place = Path(tempfile.mkdtemp(prefix="treadle-bench-", dir=folder.parent))
    place.chmod(0o755)
    running = Synced(programs, place)
    try:
        yield running.url().replace("+psycopg", "")
    finally:
        running.stop()
        shutil.rmtree(place)


async def ours(where: Any, runs: int, steps: int, pause: float, effect: str) -> float:
    """Seconds that treadle takes; `where` is an address of PostgreSQL or a path."""
    from journal import agent

    from treadle import SqliteJournal
    from treadle.journal import PostgresJournal

    made: Any = PostgresJournal(where) if isinstance(where, str) else SqliteJournal(where)
    async with made as journal:
        one = agent(steps, pause, journal, effect)
        await one.run("go")
        return await _all(lambda _: one.run("go"), runs)


async def _all(run: Any, runs: int) -> float:
    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(runs):
            group.create_task(run(number))
    return time.perf_counter() - begun


async def dbos(address: str, runs: int, steps: int) -> float:
    """Seconds that DBOS takes."""
    from dbos import DBOS

    logging.getLogger("dbos").setLevel(logging.ERROR)
    DBOS(config={"name": "bench", "system_database_url": address, "log_level": "ERROR", "run_admin_server": False})

    @DBOS.step()
    async def model(step: int) -> dict[str, Any]:
        return {"role": "assistant", "tool_calls": [{"id": f"c{step}", "name": "add", "arguments": f'{{"a": {step}}}'}]}

    @DBOS.step()
    async def add(a: int) -> int:
        return a + 1

    @DBOS.workflow()
    async def workflow(count: int) -> str:
        for step in range(count):
            await model(step)
            await add(step)
        await model(count)
        return "done"

    DBOS.launch()
    try:
        await workflow(steps)
        return await _all(lambda _: workflow(steps), runs)
    finally:
        DBOS.destroy()


async def langgraph(saver: Any, runs: int, steps: int, durability: Any) -> float:
    """Seconds that LangGraph takes with a checkpointer."""
    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        step: int
        messages: list[Any]

    async def model(state: State) -> Any:
        call = {"id": f"c{state['step']}", "name": "add", "arguments": f'{{"a": {state["step"]}}}'}
        return {"messages": [*state["messages"], {"role": "assistant", "tool_calls": [call]}]}

    async def add(state: State) -> Any:
        result = {"role": "tool", "content": str(state["step"] + 1)}
        return {"step": state["step"] + 1, "messages": [*state["messages"], result]}

    graph: Any = StateGraph(State)
    graph.add_node("model", model)
    graph.add_node("add", add)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", lambda state: END if state["step"] >= steps else "add")
    graph.add_edge("add", "model")
    await saver.setup()
    app = graph.compile(checkpointer=saver)

    async def run(number: int) -> None:
        config = {"configurable": {"thread_id": f"t{number}"}, "recursion_limit": 10 * steps}
        await app.ainvoke({"step": 0, "messages": []}, config, durability=durability)

    await run(-1)
    return await _all(run, runs)


def missing(*names: str) -> str:
    """Which of the modules is not installed; empty if all are."""
    try:
        return next((name for name in names if importlib.util.find_spec(name) is None), "")
    except ModuleNotFoundError as error:
        return error.name or names[0]


async def compare(folder: Path) -> None:
    """Prints steps a second of each, in turn, on the same disk; each in a process of its own."""
    print(f"\n{RUNS} runs of {STEPS} steps at once, model and tool take no time: steps/s", flush=True)
    with server(folder) as url:
        for where in ("SQLite", "PostgreSQL"):
            if where == "PostgreSQL" and url is None:
                print(f"  {where:11} skipped, there is no server program or no psycopg here")
                continue
            best = 0.0
            for who, lacks in WHO.items():
                name = lacks.get(where, ())
                if absent := missing(*name):
                    print(f"  {where:11} {who:18} skipped, {absent} is not installed")
                    continue
                address = (url or "") if where == "PostgreSQL" else str(folder / f"{who.replace(' ', '-')}.db")
                rate = _measured(where, who, address)
                best = best or rate
                times = f"{best / rate:8.1f} times" if rate else "  failed"
                print(f"  {where:11} {who:18} {rate:8.0f} {times}", flush=True)


WHO: dict[str, dict[str, tuple[str, ...]]] = {
    "treadle write": {},
    "treadle read": {},
    "DBOS": {"SQLite": ("dbos",), "PostgreSQL": ("dbos",)},
    "LangGraph sync": {
        "SQLite": ("langgraph", "langgraph.checkpoint.sqlite"),
        "PostgreSQL": ("langgraph", "langgraph.checkpoint.postgres", "psycopg_pool"),
    },
}
"""Who is measured, and what has to be installed for it."""


def _measured(where: str, who: str, address: str) -> float:
    """Steps a second, the best of three goes; 0 if it failed."""
    rates = [0.0]
    for go in range(3):
        # A file of its own each time; a server has one database for all.
        place = address if where == "PostgreSQL" else f"{address}-{go}"
        done = subprocess.run([sys.executable, __file__, where, who, place], capture_output=True, text=True)
        if done.returncode:
            print(done.stderr[-2000:], file=sys.stderr)
            break
        rates.append(RUNS * STEPS / float(done.stdout.split()[-1]))
    return max(rates)


async def _one(where: str, who: str, address: str) -> float:
    postgres = where == "PostgreSQL"
    if who.startswith("treadle"):
        return await ours(address if postgres else Path(address), RUNS, STEPS, 0.0, who.split()[1])
    if who == "DBOS":
        url = address.replace("postgresql:", "postgresql+psycopg:") if postgres else f"sqlite:///{address}"
        return await dbos(url, RUNS, STEPS)
    return await (_langgraph_postgres if postgres else _langgraph_sqlite)(address)


async def _langgraph_sqlite(path: str) -> float:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        return await langgraph(saver, RUNS, STEPS, "sync")


async def _langgraph_postgres(url: str) -> float:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    given = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(url, max_size=10, kwargs=given, open=False) as pool:
        return await langgraph(AsyncPostgresSaver(pool), RUNS, STEPS, "sync")


if __name__ == "__main__":
    print(asyncio.run(_one(*sys.argv[1:4])))
