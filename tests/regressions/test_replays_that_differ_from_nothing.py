"""Replays and forks of runs that nobody has changed say so."""

import pytest

from treadle import (
    Agent,
    Budget,
    Limits,
    MemoryJournal,
    ModelSettings,
    Price,
    StepSettings,
    Usage,
    external_tool,
    replay,
    tool,
)
from treadle.drivers.taking_up import ROOM
from treadle.kernel.events import decode_event, encode_event
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

ask = external_tool(
    "ask",
    "Asks the customer.",
    {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
    wait=True,
)


class _Listed:
    """A queue that keeps its orders to itself."""

    async def accept(self, agent: object) -> None:
        """There is always room."""

    async def dispatch(self, order: object) -> None:
        """Nobody serves it."""


async def test_a_run_whose_result_was_queued_with_it_is_replayed():
    """The result is in, the hook has not looked at it, and a worker is to go on: that pause is nobody's decision."""
    agent = Agent(
        ScriptedModel([[("ask", {"question": "Which colour?"})], "Red it is."]),
        tools=[ask],
        journal=MemoryJournal(),
        on_tool_result=lambda call, result: None,
    )
    waiting = await agent.run("Order a bicycle.")
    await agent.resubmit(waiting.run_id, to=_Listed(), results={waiting.pending[0].key: "red"})
    assert (await agent.drive(waiting.run_id)).text == "Red it is."
    found = await agent.replay(waiting.run_id)
    assert found.same, str(found)


@tool(effect="read")
def look(page: str) -> str:
    """Looks at a page of the archive."""
    return f"nothing on SECRET-{page}"


def hide(text: str) -> str:
    for page in "abcdefgh":
        text = text.replace(f"SECRET-{page}", "[gone]")
    return text


async def test_a_run_whose_broken_arguments_were_redacted_is_replayed():
    """The error of the call names the column at which what was really written breaks off."""
    turns = [[("look", '{"page": "SECRET-a')], "I cannot."]
    agent = Agent(ScriptedModel(turns), tools=[look], journal=MemoryJournal(redact=hide))
    result = await agent.run("Look.")
    found = await agent.replay(result.run_id)
    assert found.same, str(found)


async def test_a_run_whose_results_redaction_made_alike_is_replayed():
    """What it was told each time was another thing, so that it was never told that it got nowhere."""
    journal = MemoryJournal(redact=hide)
    turns = [*([("look", {"page": f"SECRET-{page}"})] for page in "abcdefgh"), "Nothing."]
    agent = Agent(ScriptedModel(turns), tools=[look], journal=journal)
    result = await agent.run("Look.")
    assert result.finished
    assert (await agent.replay(result.run_id)).same
    found = await replay(journal, result.run_id)
    assert found.same, str(found)


@pytest.mark.parametrize("on_limit", ["answer", "stop"])
async def test_a_run_that_a_limit_ended_is_replayed_though_redaction_made_its_calls_alike(on_limit):
    """A replay said of it that the last steps had made the same call, which was no part of why it ended."""
    journal = MemoryJournal(redact=hide)
    turns = [*([("look", {"page": f"SECRET-{page}"})] for page in "abcd"), "Nothing."]
    limits = Limits(steps=5 if on_limit == "answer" else 4)
    agent = Agent(ScriptedModel(turns), tools=[look], journal=journal, limits=limits, on_limit=on_limit)
    result = await agent.run("Look.")
    assert result.stop.reason == "max_steps"
    assert "same call" not in result.stop.detail
    found = await agent.replay(result.run_id)
    assert found.same, str(found)
    found = await replay(journal, result.run_id)
    assert found.same, str(found)

    fewer = Agent(ScriptedModel([]), tools=[look], journal=journal, limits=Limits(steps=3), on_limit=on_limit)
    found = await fewer.replay(result.run_id)
    assert not found.same


@pytest.mark.parametrize("on_limit", ["answer", "stop"])
@pytest.mark.parametrize("hidden", ["x", "(what stood here is hidden from whoever looks into the journal)"])
async def test_a_run_near_a_limit_on_tokens_is_replayed_though_redaction_made_its_texts_longer_or_shorter(
    hidden, on_limit
):
    """What is left for a closing reply was reckoned from the redacted texts, and landing there was a difference."""

    @tool(effect="read")
    def look(page: int) -> str:
        """Looks at a page."""
        return "SECRET and more " * 40

    def turn(request):
        return "Done." if request.tool_choice == "none" or request.step > 3 else [("look", {"page": request.step})]

    seen = set()
    for tokens in range(400, 6000, 100):
        agent = Agent(
            ScriptedModel(turn, usage=Usage(50, 5)),
            tools=[look],
            journal=MemoryJournal(redact=lambda text: text.replace("SECRET", hidden)),
            limits=Limits(tokens=tokens),
            on_limit=on_limit,
            settings=ModelSettings(max_tokens=100),
        )
        result = await agent.run("Look at SECRET.")
        seen.add(result.stop.reason)
        for found in (await agent.replay(result.run_id), await replay(agent.journal, result.run_id)):
            assert found.same, f"{tokens}: {found}"
    assert seen == {"answered", "max_tokens"}


@pytest.mark.parametrize("way", ["output", "on_answer", "forked"])
async def test_a_run_whose_answers_were_looked_at_since_it_was_taken_up_is_replayed(way):
    """What was sent back then was held against what the agent that began the run would have made of it."""
    journal = MemoryJournal()
    begun = await Agent(ScriptedModel([[("ask", {"question": "How many?"})]]), tools=[ask], journal=journal).run("Go.")
    more = {"on_answer": lambda answer, context: "No." if "five" in answer else None} if way == "on_answer" else {}
    strict = Agent(
        ScriptedModel(["five", "5"]),
        tools=[ask],
        journal=journal,
        **(more or {"output": int, "output_mode": "prompted"}),
    )
    if way == "forked":
        result = await strict.fork(begun.run_id, at=0)
    else:
        result = await strict.resume(begun.run_id, results={begun.pending[0].call_id: "5"})
    assert (result.text, [type(one).__name__ for one in result.events].count("NudgeGiven")) == ("5", 1)
    found = await replay(journal, result.run_id)
    assert found.same, str(found)


async def test_a_run_of_before_its_journal_redacted_is_replayed():
    """What is said now was held, redacted, against what had been written as it was."""
    journal = MemoryJournal()
    agent = Agent(
        ScriptedModel([[("look", {"page": "SECRET-c"})], "Nothing."]),
        tools=[look],
        journal=journal,
        stop_when=lambda state: f"SECRET-e after {len(state.steps)}" if state.steps else False,
    )
    result = await agent.run("Look at SECRET-a.")
    journal.redact = hide
    for found in (await agent.replay(result.run_id), await replay(journal, result.run_id)):
        assert found.same, str(found)


@pytest.mark.parametrize("hidden", ["room", "nothing"])
async def test_a_run_that_went_on_is_replayed_where_redaction_fails_by_now(hidden):
    """What it was told when it went on is looked at again, and that was raised as if somebody had said it just now."""
    journal = MemoryJournal(redact=lambda text: text.replace(hidden, "-"))
    turns = [[("look", {"page": "a"})], "So far.", "Done."]
    agent = Agent(ScriptedModel(turns), tools=[look], journal=journal, on_limit="answer", limits=Limits(steps=2))
    ended = await agent.run("go")
    await agent.resume(ended.run_id, limits=Limits(steps=5))
    assert (await agent.replay(ended.run_id)).same

    def fails(text):
        if text == ROOM:
            raise KeyError(text)
        return text.replace(hidden, "-")

    journal.redact = fails
    replayed = await agent.replay(ended.run_id)
    assert replayed.same is (hidden == "nothing")
    assert replayed.same or "KeyError was raised in deciding it anew" in str(replayed)


async def test_what_a_function_says_is_held_against_what_was_written_of_it():
    """Instructions, a step's own, and why a condition held: the journal has them without what was hidden."""
    journal = MemoryJournal(redact=hide)
    agent = Agent(
        ScriptedModel([[("look", {"page": "c"})], [("look", {"page": "d"})], "Nothing."]),
        instructions="You know SECRET-a.",
        tools=[look],
        journal=journal,
        prepare_step=lambda context: StepSettings(instructions="You know SECRET-b too."),
        stop_when=lambda state: f"SECRET-e after {len(state.steps)}" if len(state.steps) == 2 else False,
    )
    result = await agent.run("Look.")
    assert result.stop.reason == "condition"
    found = await agent.replay(result.run_id)
    assert found.same, str(found)
    assert found.changed == ()


@tool(effect="read")
def read(page: int) -> str:
    """Reads a page of the archive."""
    return "x" * 3000


async def test_a_step_that_was_made_where_a_budget_left_no_closing_reply_is_replayed():
    """The run's own limit alone, without the budget, would make it the last one."""
    made = 0
    for cents in range(280, 420, 2):
        model = ScriptedModel(
            lambda request: "Done." if request.step == 2 else [("read", {"page": 1})],
            usage=Usage(60, 20),
            price=Price(1000, 1000),
        )
        agent = Agent(
            model,
            tools=[read],
            journal=MemoryJournal(),
            budget=Budget(usd=cents / 100),
            limits=Limits(usd=5.9),
            settings=ModelSettings(max_tokens=50),
        )
        result = await agent.run("Read.")
        made += len(result.steps) > 1
        found = await agent.replay(result.run_id)
        assert found.same, f"{cents}: {found}"
    assert made


async def test_a_run_that_goes_on_is_replayed_though_redaction_changed_what_treadle_told_it():
    journal = MemoryJournal(redact=lambda text: text.replace("task", "****"))
    model = ScriptedModel([[("look", {})], "so far", "done"])
    agent = Agent(model, tools=[tool(lambda: "seen", name="look", effect="read")], journal=journal)
    landed = await agent.run("a task", limits=Limits(steps=2))
    gone_on = await agent.resume(landed.run_id, limits=Limits(steps=4))
    assert (landed.stop.reason, gone_on.text) == ("max_steps", "done")
    assert (await agent.replay(gone_on.run_id, recorded_limits=True)).same


@pytest.mark.parametrize("on_limit", ["answer", "stop"])
async def test_a_run_that_an_earlier_version_ended_for_errors_in_its_own_words_is_replayed(on_limit):
    model = ScriptedModel([[("nothing", {})], "That is all."])
    agent = Agent(model, journal=MemoryJournal(), limits=Limits(consecutive_errors=1), on_limit=on_limit)
    ended = await agent.run("go")
    earlier = MemoryJournal()
    words = b"everything went wrong in the step.", b"everything went wrong in 1 steps in a row."
    events = [decode_event(encode_event(one).replace(*words)) for one in await agent.journal.read(ended.run_id)]
    await earlier.append(ended.run_id, 0, events)
    assert (await earlier.read(ended.run_id))[-1].stop.detail == words[1].decode()
    same = Agent(model, journal=earlier, limits=Limits(consecutive_errors=1), on_limit=on_limit)
    for found in (await replay(earlier, ended.run_id), await same.replay(ended.run_id)):
        assert found.same, str(found)


@pytest.mark.parametrize("on_limit", ["answer", "stop"])
@pytest.mark.parametrize(
    ("limits", "one", "many"), [({"steps": 1}, "1 step", "1 steps"), ({"tool_calls": 1}, "1 tool call", "1 tool calls")]
)
async def test_a_run_that_an_earlier_version_ended_at_a_limit_of_one_is_replayed(limits, one, many, on_limit):
    model = ScriptedModel([[("look", {}), ("look", {})], "That is all."])
    told = {
        "tools": [tool(lambda: "seen", name="look", effect="read")],
        "limits": Limits(**limits),
        "on_limit": on_limit,
    }
    agent = Agent(model, journal=MemoryJournal(), **told)
    ended = await agent.run("go")
    assert ended.stop.detail == f"the limit of {one} is reached."
    earlier = MemoryJournal()
    words = f"limit of {one} is".encode(), f"limit of {many} is".encode()
    events = [decode_event(encode_event(event).replace(*words)) for event in await agent.journal.read(ended.run_id)]
    await earlier.append(ended.run_id, 0, events)
    for found in (
        await replay(earlier, ended.run_id),
        await Agent(model, journal=earlier, **told).replay(ended.run_id),
    ):
        assert found.same, str(found)
