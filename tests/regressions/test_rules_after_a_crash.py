"""What is made again after a crash is made by the rules that hold now."""

from collections.abc import Callable, Sequence

import pytest
from play import copied, cut

from treadle import Agent, ApprovalRule, MemoryJournal, NotDone, ToolContext, ask_before, deny, replay, tool
from treadle.journal import Journal
from treadle.kernel.events import Event, ToolStarted
from treadle.testing import ScriptedModel
from treadle.tools.options import Effect

pytestmark = pytest.mark.anyio


class _Post:
    """Agents that send a letter, under rules, and what was sent."""

    def __init__(self, effect: Effect, *, notdone: bool = False) -> None:
        self.sent: list[str] = []

        def was_it(context: ToolContext) -> NotDone:
            return NotDone()

        @tool(effect=effect, reconcile=was_it if notdone else None)
        async def send(to: str, context: ToolContext) -> str:
            """Sends a letter."""
            self.sent.append(context.idempotency_key)
            return f"sent to {to}"

        self.send = send

    def agent(self, journal: Journal, rules: Sequence[ApprovalRule] = ()) -> Agent:
        def says(request: object) -> object:
            last = request.messages[-1]  # type: ignore[attr-defined]
            return last.text if last.role == "tool" else [("send", {"to": "Ada"})]

        return Agent(ScriptedModel(says), tools=[self.send], approvals=rules, journal=journal, eager=False)


def _until_started(events: Sequence[Event]) -> Sequence[Event]:
    return events[: next(i for i, event in enumerate(events) if isinstance(event, ToolStarted)) + 1]


async def _crashed(post: _Post, rules: Sequence[ApprovalRule] = ()) -> tuple[str, Journal]:
    """A run whose process died while it sent, after a person agreed where `rules` ask for that."""
    journal = MemoryJournal()
    run = await post.agent(journal, rules).run("Write to Ada.")
    if run.pending:
        run = await post.agent(journal, rules).resume(run.run_id, approve=run.pending)
    left = await cut(run.run_id, _until_started(await journal.read(run.run_id)))
    post.sent.clear()
    return run.run_id, left


_MADE_AGAIN: list[Callable[[], _Post]] = [
    lambda: _Post("read"),
    lambda: _Post("idempotent"),
    lambda: _Post("write", notdone=True),
]


@pytest.mark.parametrize("made", _MADE_AGAIN, ids=["read", "idempotent", "not done"])
async def test_a_call_that_is_made_again_after_a_crash_is_asked_about_by_a_rule_that_was_added(
    made: Callable[[], _Post],
) -> None:
    post = made()
    run_id, journal = await _crashed(post)
    rules = [ask_before("send")]
    waiting = await post.agent(journal, rules).resume(run_id)
    assert [(call.tool, call.kind) for call in waiting.pending] == [("send", "interrupted")]
    assert post.sent == []

    other = await copied(journal)
    refused = await post.agent(other, rules).resume(run_id, deny=waiting.pending)
    assert refused.finished
    assert post.sent == []

    again = await post.agent(journal, rules).resume(run_id, approve=waiting.pending)
    assert (again.text, post.sent) == ("sent to Ada", [f"{run_id}-0-call_0_0"])
    assert (await replay(journal, run_id)).same


@pytest.mark.parametrize("made", _MADE_AGAIN, ids=["read", "idempotent", "not done"])
async def test_a_call_that_a_person_allowed_is_made_again_without_asking_anew(made: Callable[[], _Post]) -> None:
    post, rules = made(), [ask_before("send")]
    run_id, journal = await _crashed(post, rules)
    again = await post.agent(journal, rules).resume(run_id)
    assert (again.text, post.sent) == ("sent to Ada", [f"{run_id}-0-call_0_0"])
    assert (await post.agent(journal, rules).replay(run_id)).same


async def test_a_run_below_that_a_crash_cut_off_goes_on_and_its_calls_are_judged() -> None:
    post, journal = _Post("idempotent"), MemoryJournal()

    def head(kept: Journal, rules: Sequence[ApprovalRule] = ()) -> Agent:
        below = post.agent(MemoryJournal()).as_tool("clerk", "Sends letters.")
        model = ScriptedModel(lambda request: "Done." if request.step else [("clerk", {"task": "Write to Ada."})])
        return Agent(model, tools=[below], approvals=rules, journal=kept)

    run = await head(journal).run("go")
    left = MemoryJournal()
    for line in await journal.list():
        await left.append(line.run_id, 0, _until_started(await journal.read(line.run_id)))
    post.sent.clear()
    waiting = await head(left, [ask_before("clerk"), ask_before("send")]).resume(run.run_id)
    assert [(call.tool, call.kind) for call in waiting.pending] == [("send", "interrupted")]
    assert post.sent == []
    result = await head(left, [ask_before("clerk"), ask_before("send")]).resume(run.run_id, approve=waiting.pending)
    assert (result.text, len(post.sent)) == ("Done.", 1)


async def test_a_rule_that_denies_holds_for_it_too() -> None:
    post = _Post("idempotent")
    run_id, journal = await _crashed(post)
    result = await post.agent(journal, [deny("send")]).resume(run_id)
    assert result.finished
    assert post.sent == []
