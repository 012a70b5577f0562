"""What every journal promises of a list of the runs that are wanted, and of what its lines say that a run has taken."""

from decimal import Decimal

import pytest

from treadle.journal.conformance.samples import FINISHED, PAUSED, RESUMED, in_a_loop, note, started
from treadle.journal.info import Wanted
from treadle.journal.port import Journal
from treadle.kernel.accounts import Spent
from treadle.kernel.events import (
    ContextEdited,
    ErrorInfo,
    Event,
    ModelFailed,
    ModelReplied,
    RunResumed,
    ToolReacted,
)
from treadle.kernel.messages import AssistantMessage, ToolCall, Usage

QUESTIONS = {
    "a": "How many Gadgets?",
    "b": "WIE GROẞ IST ÄRGER?",
    "c": "100%_of 'it'",
    "d": "",
    "e": "how many gadgets?",
}


def replied(cost: Decimal | None, *calls: str, tokens: int = 10) -> ModelReplied:
    """A reply that cost so much and asks for these calls."""
    said = AssistantMessage(tuple(ToolCall(call, "t") for call in calls))
    return ModelReplied(at=2.0, step=0, message=said, usage=Usage(tokens, 0), cost=cost)


PRICED = Decimal("0.1")
COUNTED: dict[str, tuple[list[Event], int, int, Decimal | None]] = {
    "nothing": ([], 0, 0, Decimal(0)),
    "replies": ([replied(PRICED, "a", "b"), replied(PRICED)], 2, 20, Decimal("0.2")),
    "unknown": ([replied(PRICED), replied(None), replied(PRICED)], 0, 30, None),
    "no tokens": ([replied(None, tokens=0)], 0, 0, Decimal(0)),
    "a call again": ([ToolReacted(step=0, call_id="a", action="call", call=ToolCall("a", "t"))], 1, 0, Decimal(0)),
    "a kept result": ([ToolReacted(step=0, call_id="a", action="keep")], 0, 0, Decimal(0)),
    "failed": ([ModelFailed(step=0, error=ErrorInfo("k", "m"), usage=Usage(3, 4), cost=PRICED)], 0, 7, PRICED),
    "failed, unpaid": ([ModelFailed(step=0, error=ErrorInfo("k", "m"))], 0, 0, Decimal(0)),
    "a summary": (
        [ContextEdited(policy="p", start=0, stop=0, messages=(), usage=Usage(5, 5), cost=PRICED)],
        0,
        10,
        PRICED,
    ),
    "lost": ([RunResumed(lost=Spent(usage=Usage(1, 1), cost=PRICED)), RunResumed()], 0, 2, PRICED),
    "lost, unknown": ([RunResumed(lost=Spent(usage=Usage(1, 1)))], 0, 2, None),
}


async def fill(journal: Journal) -> None:
    """Five runs, the oldest first: finished, waiting, running, finished, running."""
    ends: dict[str, list[Event]] = {"a": [FINISHED], "b": [PAUSED], "d": [FINISHED]}
    for at, (run_id, question) in enumerate(QUESTIONS.items()):
        agent, model = "clerk" if run_id in "abe" else "boss", "small" if run_id in "ac" else "large"
        first = started(run_id, at=float(at), question=question, agent=agent, model=model)
        await journal.append(run_id, 0, [first, *ends.get(run_id, [])])


async def ids(journal: Journal, wanted: Wanted) -> str:
    """The ids of the runs that are listed, in a row."""
    return "".join([line.run_id for line in await journal.list(wanted=wanted)])


class Wanting:
    """Tests of `list` with `wanted`."""

    @pytest.mark.parametrize(
        ("wanted", "found"),
        [
            (Wanted(), "edcba"),
            (Wanted(status="finished"), "da"),
            (Wanted(status="waiting"), "b"),
            (Wanted(status="running"), "ec"),
            (Wanted(status="damaged"), ""),
            (Wanted(agent="clerk"), "eba"),
            (Wanted(agent="cler"), ""),
            (Wanted(agent=""), ""),
            (Wanted(model="large"), "edb"),
            (Wanted(agent="clerk", model="large"), "eb"),
            (Wanted(agent="clerk", model="large", status="running"), "e"),
            (Wanted(text="gadget"), "ea"),
            (Wanted(text="GADGET", status="finished"), "a"),
            (Wanted(text="groß"), "b"),
            (Wanted(text="ärger"), "b"),
            (Wanted(text="%"), "c"),
            (Wanted(text="_"), "c"),
            (Wanted(text="'it'"), "c"),
            (Wanted(text="B"), "b"),
            (Wanted(text="\udcff"), ""),
            (Wanted(agent="\udcff"), ""),
            (Wanted(since=1.0, until=3.0), "cb"),
            (Wanted(since=4.0), "e"),
            (Wanted(until=0.0), ""),
        ],
    )
    @in_a_loop
    async def test_a_list_has_what_fits_all_that_was_given(self, journal: Journal, wanted: Wanted, found: str) -> None:
        await fill(journal)
        assert await ids(journal, wanted) == found

    @in_a_loop
    async def test_pages_of_a_list_go_on_where_the_last_one_ended(self, journal: Journal) -> None:
        await fill(journal)
        wanted, pages, before = Wanted(agent="clerk"), [], None
        while page := await journal.list(2, before, wanted):
            pages.append([line.run_id for line in page])
            before = page[-1]
        assert pages == [["e", "b"], ["a"]]

    @in_a_loop
    async def test_a_run_that_goes_on_is_found_by_its_new_status(self, journal: Journal) -> None:
        await journal.append("r", 0, [started()])
        for seq, event in enumerate([PAUSED, RESUMED, note("x")], 1):
            await journal.append("r", seq, [event])
            found = [await ids(journal, Wanted(status=status)) for status in ("running", "waiting", "finished")]
            assert found == (["", "r", ""] if event is PAUSED else ["r", "", ""])

    @pytest.mark.parametrize("what", COUNTED)
    @in_a_loop
    async def test_a_line_says_what_a_run_has_taken(self, journal: Journal, what: str) -> None:
        events, calls, tokens, cost = COUNTED[what]
        for seq, event in enumerate([started(), *events]):
            await journal.append("r", seq, [event])
        (line,) = await journal.list()
        assert (line.tool_calls, line.usage.total_tokens, line.cost) == (calls, tokens, cost)
