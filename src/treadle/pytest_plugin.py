"""The pytest plugin: old runs as tests of an agent. `pytest --treadle-replay DIR --treadle-agent module:agent`.

Each run of each journal in DIR (SQLite files, and exports as JSON lines) is a test: it passes if the run comes out as
it was recorded. Without an agent the journal alone is looked at. No model, no tool and no network is used.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from treadle.agent import Agent
    from treadle.journal import Journal
    from treadle.timetravel.replay import Replay

_SQLITE = b"SQLite format 3\x00"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("treadle", "replays of runs of treadle's agents")
    group.addoption(
        "--treadle-replay",
        action="append",
        default=[],
        metavar="DIR",
        help="Replay the runs of the journals in this folder, or of this file; repeatable.",
    )
    group.addoption("--treadle-agent", metavar="MODULE:AGENT", help="The agent that decides anew.")
    group.addoption(
        "--treadle-recorded-limits", action="store_true",
        help="Keep the limits that each run began with, in place of the agent's.",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Refuses options that mean nothing by themselves."""
    if config.getoption("--treadle-replay"):
        return
    for option in ("--treadle-agent", "--treadle-recorded-limits"):
        if config.getoption(option):
            raise pytest.UsageError(f"{option} is for --treadle-replay DIR, which names the runs; give it too")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Adds a test for each run."""
    for given in config.getoption("--treadle-replay"):
        path = Path(given)
        if not path.exists():
            raise pytest.UsageError(f"--treadle-replay {given}: there is no such folder or file")
        found = [run for file in _files(path) for run in _runs_of(JournalFile.from_parent(session, path=file), given)]
        if not found:
            raise pytest.UsageError(f"--treadle-replay {given}: there is no run in it, in an SQLite file or JSON lines")
        items.extend(found)
    if config.getoption("--treadle-replay"):
        # One that is not there is told once, and not of each run.
        _agent(config)


def _runs_of(file: "JournalFile", given: str) -> list["RunItem"]:
    """The tests of one file's runs."""
    from treadle.journal import JournalError

    try:
        return list(file.collect())
    except (JournalError, OSError) as error:
        raise pytest.UsageError(
            f"--treadle-replay {given}: {file.path} cannot be read: {str(error).rstrip('.')}. "
            "If it is no journal, name those that are."
        ) from error


def _agent(config: pytest.Config) -> "Agent[Any, Any] | None":
    """The agent that is named, made anew."""
    target = config.getoption("--treadle-agent")
    if target is None:
        return None
    try:
        from click import BadParameter
    except ImportError as error:
        raise pytest.UsageError(
            "--treadle-agent finds it as the command line does: pip install 'treadle[cli]'"
        ) from error

    from treadle.cli.agents import load_agent

    try:
        return load_agent(target)
    except BadParameter as error:
        raise pytest.UsageError(f"--treadle-agent: {error.message}") from error


def _files(path: Path) -> Iterator[Path]:
    """The journals at a path, in their order."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file() and (file.suffix == ".jsonl" or _is_journal(file)):
            yield file.absolute()


def _is_journal(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(_SQLITE)) == _SQLITE


class JournalFile(pytest.File):
    """A journal, or an export of one."""

    def collect(self) -> Iterator["RunItem"]:
        """A test for each run that works for no other."""
        for run_id in asyncio.run(self._runs()):
            yield RunItem.from_parent(self, name=run_id)

    async def _runs(self) -> list[str]:
        from treadle.journal import RunInfo

        found: list[str] = []
        before: RunInfo | None = None
        async with await self.journal() as kept:
            while page := await kept.list(500, before):
                found += [line.run_id for line in page if line.parent is None]
                before = page[-1]
        return found[::-1]

    async def journal(self) -> Any:
        """The journal, open."""
        from treadle.journal import MemoryJournal, SqliteJournal

        if self.path.suffix != ".jsonl":
            return SqliteJournal(self.path)
        from treadle.journal.lines import import_runs

        journal = MemoryJournal()
        with self.path.open("rb") as file:
            await import_runs(journal, file)
        return journal


class RunItem(pytest.Item):
    """A run, replayed."""

    def runtest(self) -> None:
        """Replays it.

        Raises:
            ReplayDiffers: it does not come out as it was recorded.
        """
        asyncio.run(self._replay()).require()

    async def _replay(self) -> "Replay":
        from treadle.timetravel.replay import replay

        parent = self.parent
        if not isinstance(parent, JournalFile):
            raise TypeError("a run is collected from its journal")
        async with await parent.journal() as kept:
            journal: Journal = kept
            agent = _agent(self.config)
            if agent is None:
                return await replay(journal, self.name)
            from treadle.cli.agents import keeping

            limits = bool(self.config.getoption("--treadle-recorded-limits"))
            return await keeping(agent, journal).replay(self.name, recorded_limits=limits)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What differs, without a traceback."""
        from treadle.timetravel.replay import ReplayDiffers

        error = excinfo.value
        return str(error) if isinstance(error, ReplayDiffers) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where it is, and its name."""
        return self.path, None, f"replay of run {self.name}"
