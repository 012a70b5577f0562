"""Results read back from a journal: the error keeps its type and what was known of it."""

import pytest

from treadle import Agent, MemoryJournal, SqliteJournal
from treadle.kernel.events import ErrorInfo, ModelFailed
from treadle.models import (
    BadRequest,
    ConnectionFailed,
    ModelError,
    Overloaded,
    RateLimited,
    ToolUseFailed,
)
from treadle.models.errors import UnsoundReply
from treadle.models.fallback import FallbackModel
from treadle.testing import ScriptedModel, ScriptExhausted

pytestmark = pytest.mark.anyio


class OutOfCredit(RateLimited):
    """A kind of somebody's own, with arguments of its own, below another."""

    kind = "out_of_credit"
    retryable = False

    def __init__(self, account: str) -> None:
        super().__init__(f"{account} is out of credit", status=402, request_id="req_9")
        self.account = account


class Silent(BadRequest):
    """A kind that has no name of its own: it is recorded under its parent's."""


async def read_back(model, tmp_path):
    """The error of a run that a model's failure ended, in the process and read from the journal."""
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        first = await Agent(model, journal=journal, retries=0).run("go")
        again = await Agent(ScriptedModel([]), journal=journal).resume(first.run_id)
    assert first.stop.reason == again.stop.reason == "model_error"
    return first.error, again.error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Overloaded("busy", retry_after=7.5, status=529, request_id="req_1"), Overloaded),
        (ToolUseFailed("no", failed_text="<call"), ToolUseFailed),
        (UnsoundReply("no"), UnsoundReply),
        (OutOfCredit("acme"), OutOfCredit),
        (Silent("no"), BadRequest),
        (ModelError("no"), ModelError),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, ModelError) else "",
)
async def test_an_error_read_back_from_a_journal_keeps_its_type(error, kind, tmp_path):
    first, again = await read_back(ScriptedModel([error]), tmp_path)
    assert first is error
    assert type(again) is kind
    names = ("kind", "retryable", "retry_after", "status", "request_id")
    assert [getattr(again, name) for name in names] == [getattr(error, name) for name in names]
    assert str(again) == str(error)


async def test_a_script_that_is_used_up_is_one_after_reading_it_back_too(tmp_path):
    first, again = await read_back(ScriptedModel([]), tmp_path)
    assert type(first) is type(again) is ScriptExhausted


async def test_the_error_of_several_models_keeps_its_type_and_how_long_to_wait(tmp_path):
    models = [ScriptedModel([RateLimited("no", retry_after=60)]), ScriptedModel([ConnectionFailed("no")])]
    first, again = await read_back(FallbackModel(models), tmp_path)
    assert type(first) is type(again)
    assert again.retry_after == first.retry_after


async def test_a_kind_that_is_not_known_here_keeps_its_name():
    failed = ModelFailed(0, ErrorInfo("of_another_program", "no", retryable=True))
    async with MemoryJournal() as journal:
        first = await Agent(ScriptedModel([ModelError("no")]), journal=journal).run("go")
        events = [failed if isinstance(event, ModelFailed) else event for event in await journal.read(first.run_id)]
        await journal.delete(first.run_id)
        await journal.append(first.run_id, 0, events)
        again = (await Agent(ScriptedModel([]), journal=journal).resume(first.run_id)).error
    assert (type(again), again.kind, again.retryable) == (ModelError, "of_another_program", True)
    assert ModelError("no").kind == "model_error"
