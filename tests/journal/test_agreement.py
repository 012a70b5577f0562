"""Whatever is done to them, the journal in memory and the one in SQLite give the same answers."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from treadle.journal import Journal, JournalConflict, MemoryJournal, SqliteJournal, UnknownRun
from treadle.kernel.events import (
    FORMAT,
    ErrorInfo,
    ModelFailed,
    ModelReplied,
    NudgeGiven,
    RunFinished,
    RunPaused,
    RunStarted,
    ToolFinished,
)
from treadle.kernel.messages import AssistantMessage, Text, ToolCall, Usage, UserMessage
from treadle.kernel.stop import STOP_REASONS, stopped

times = st.floats(0, 2e9)
texts = st.text(max_size=20)
run_ids = st.sampled_from(["a", "b", "ab", "", "'; --", "ä\x00", "%"])
stops = st.builds(stopped, st.sampled_from(STOP_REASONS), texts)
messages = st.builds(
    lambda text, name, arguments: AssistantMessage((Text(text), ToolCall("c", name, arguments))), texts, texts, texts
)
events = st.one_of(
    st.builds(NudgeGiven, at=times, text=texts, fault=st.booleans()),
    st.builds(
        ModelReplied,
        at=times,
        step=st.integers(0, 9),
        message=messages,
        usage=st.builds(Usage, st.integers(0, 9), st.integers(0, 9)),
        cost=st.none() | st.decimals(0, 1000, allow_nan=False),
    ),
    st.builds(
        ModelFailed, at=times, step=st.just(0), error=st.builds(ErrorInfo, texts, texts), retry_in=st.none() | times
    ),
    st.builds(
        ToolFinished,
        at=times,
        step=st.just(0),
        call_id=texts,
        content=texts,
        app=st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**63) | texts, st.lists, max_leaves=5),
    ),
    st.builds(RunPaused, at=times, stop=stops),
    st.builds(RunFinished, at=times, stop=stops),
)
batches = st.lists(events, max_size=4)


class Agreement(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.journals: tuple[Journal, Journal] = (MemoryJournal(), SqliteJournal(Path(self.folder.name) / "j.db"))
        self.runner = asyncio.Runner()
        self.lengths: dict[str, int] = {}

    def both(self, ask: Callable[[Journal], Awaitable[Any]]) -> Any:
        """The answer of both, which is one."""
        answers = [self.runner.run(self.outcome(ask, journal)) for journal in self.journals]
        assert answers[0] == answers[1]
        return answers[0]

    async def outcome(self, ask: Callable[[Journal], Awaitable[Any]], journal: Journal) -> Any:
        try:
            return await ask(journal)
        except JournalConflict as error:
            return error.run_id, error.expected, error.found
        except UnknownRun as error:
            return error.run_id, error.nearest
        except ValueError as error:
            return str(error)

    @rule(run_id=run_ids, at=times, asked=texts, more=batches)
    def begin(self, run_id: str, at: float, asked: str, more: list[Any]) -> None:
        first = RunStarted(at=at, run_id=run_id, messages=(UserMessage(asked),), format=FORMAT)
        if self.both(lambda journal: journal.append(run_id, 0, [first, *more])) is None:
            self.lengths[run_id] = 1 + len(more)

    @rule(run_id=run_ids, more=batches)
    def go_on(self, run_id: str, more: list[Any]) -> None:
        seq = self.lengths.get(run_id, 0)
        if seq:
            assert self.both(lambda journal: journal.append(run_id, seq, more)) is None
            self.lengths[run_id] += len(more)

    @rule(run_id=run_ids, seq=st.integers(0, 12), more=batches)
    def guess(self, run_id: str, seq: int, more: list[Any]) -> None:
        if self.both(lambda journal: journal.append(run_id, seq, more)) is None and more:
            self.lengths[run_id] += len(more)

    @rule(run_id=run_ids, start=st.integers(-1, 12))
    def read(self, run_id: str, start: int) -> None:
        self.both(lambda journal: journal.read(run_id, start))

    @rule(run_id=run_ids)
    def delete(self, run_id: str) -> None:
        assert self.both(lambda journal: journal.delete(run_id)) is (self.lengths.pop(run_id, None) is not None)

    @rule(limit=st.integers(0, 5))
    def turn_pages(self, limit: int) -> None:
        page = self.both(lambda journal: journal.list(limit))
        while page:
            before = page[-1]
            page = self.both(lambda journal, before=before: journal.list(limit, before))

    @rule()
    def open_again(self) -> None:
        memory, sqlite = self.journals
        self.runner.run(sqlite.close())
        self.journals = (memory, SqliteJournal(Path(self.folder.name) / "j.db"))

    @invariant()
    def lengths_are_kept(self) -> None:
        lines = self.both(lambda journal: journal.list())
        assert {line.run_id: line.events for line in lines} == self.lengths

    def teardown(self) -> None:
        self.runner.run(self.journals[1].close())
        self.runner.close()
        self.folder.cleanup()


TestAgreement = Agreement.TestCase
TestAgreement.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
