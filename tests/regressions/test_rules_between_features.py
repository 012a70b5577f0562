"""What is not to be done is not done where two features meet, each of which keeps to it alone.

No defects: what changes of the code would have gone unnoticed.

- a rule of a run above judges what a person, or a hook, put in place of the arguments of a call below
- what stands in for a call is offered in the step, or not called
- the reason of a denial reaches the run below whose call was denied, as deep as it may be
- a call that is made again with a person's other arguments has another key, or a service answers it as the first
- a run is not gone on with under a rule that allows more, in whatever way, nor is one below it
- a run below is taken up under the rules that it was begun under, and the budgets that it was left under
- a conversation that was kept before a crash goes on with its run, also where the journal redacts; not if more was said
- a conversation is one run's at a time, however the second run is begun, or taken up, and free when that is over
"""

import asyncio

import pytest
from play import Bank, copied, within
from tools.skill_folders import skill_in

from treadle import (
    Agent,
    Alternative,
    Budget,
    Conversation,
    MemoryJournal,
    Misuse,
    Retry,
    StepSettings,
    ToolContext,
    Usage,
    allow,
    ask_before,
    deny,
    tool,
)
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


def under(agent, depth, **options):
    """`agent` below as many others, the outermost of which has these options."""
    for level in range(depth):
        call = [(agent.name, {"task": "Pay."})]
        model = ScriptedModel(lambda asked, call=call: "Done." if asked.step else call)
        more = options if level == depth - 1 else {}
        agent = Agent(model, name=f"above_{level}", tools=[agent.as_tool(None, "Pays.")], **more)
    return agent


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("by", ["a person", "a hook"])
async def test_a_rule_above_judges_what_was_put_in_place_of_arguments_below(depth, by):
    bank = Bank()
    model = ScriptedModel(lambda asked: "Done." if asked.step else [("pay", {"amount": 5})])
    asks = [ask_before("pay")] if by == "a person" else []
    hook = (lambda call: {"amount": 500}) if by == "a hook" else None
    clerk = Agent(model, name="clerk", tools=[bank.pay], approvals=asks, on_tool_call=hook)
    much = deny("pay", when=lambda arguments: arguments["amount"] > 100)
    agent = under(clerk, depth, approvals=[much], journal=MemoryJournal())
    result = await within(agent.run("Pay."))
    if by == "a person":
        (one,) = result.pending
        result = await within(agent.resume(result.run_id, approve={one.key: {"amount": 500}}))
    assert (result.text, bank.ran) == ("Done.", [])


@pytest.mark.parametrize("how", ["prepare_step", "skill"])
async def test_what_stands_in_for_a_call_is_a_tool_that_the_step_offers(tmp_path, how):
    bank = Bank()
    skill_in(tmp_path, "looking", "allowed-tools: down\n")
    script = [[("activate_skill", {"name": "looking"})]] if how == "skill" else []
    agent = Agent(
        ScriptedModel([*script, [("down", {"key": "a"})], "Done."]),
        tools=bank.tools,
        skills=[tmp_path] if how == "skill" else [],
        prepare_step=(lambda context: StepSettings(tools=["down"])) if how == "prepare_step" else None,
        on_tool_result=lambda call, output: Alternative("wipe", {}) if output.is_error and call.made == 1 else None,
    )
    result = await within(agent.run("Look."))
    assert (result.text, bank.ran) == ("Done.", ["down a"])


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("named", ["call_id", "key"])
async def test_the_reason_of_a_denial_reaches_the_run_below(depth, named):
    bank = Bank()
    model = ScriptedModel(lambda asked: "Done." if asked.step else [("pay", {"amount": 5})])
    clerk = Agent(model, name="clerk", tools=[bank.pay], approvals=[ask_before("pay")])
    agent = under(clerk, depth, journal=MemoryJournal())
    result = await within(agent.run("Pay."))
    (one,) = result.pending
    result = await within(agent.resume(result.run_id, deny={getattr(one, named): "It was paid in May."}))
    assert (result.text, bank.ran) == ("Done.", [])
    assert "not approved: It was paid in May." in model.requests[-1].messages[-1].text


@pytest.mark.parametrize("ends", ["answered", "cancelled", "raises", "waits"])
async def test_a_conversation_is_one_runs_at_a_time_and_free_afterwards(ends):
    bank, conversation, begun, goes_on = Bank(), Conversation(), asyncio.Event(), asyncio.Event()

    async def prepare(context):
        begun.set()
        await goes_on.wait()
        if ends == "raises":
            raise ValueError("it is broken")

    model = ScriptedModel(lambda asked: [("pay", {"amount": 5})] if ends == "waits" else "Done.")
    waits = Agent(
        ScriptedModel([[("pay", {"amount": 5})]]), tools=[bank.pay], approvals=[ask_before("pay")],
        journal=MemoryJournal(),
    )  # fmt: skip
    paused = await within(waits.run("Pay.", conversation=conversation))
    agent = Agent(model, tools=[bank.pay], approvals=[ask_before("pay")], prepare_step=prepare)

    async def outcome():
        try:
            return await agent.run("Go.", conversation=conversation)
        except (ValueError, asyncio.CancelledError) as error:
            return error

    in_use = "in use by another run"
    async with asyncio.TaskGroup() as group:
        first = group.create_task(outcome())
        await within(begun.wait())
        with pytest.raises(Misuse, match=in_use):
            await within(agent.run("And this.", conversation=conversation))
        with pytest.raises(Misuse, match=in_use):
            await within(agent.stream("And this.", conversation=conversation).__aenter__())
        with pytest.raises(Misuse, match=in_use):
            agent.start("And this.", conversation=conversation)
        with pytest.raises(Misuse, match=in_use):
            await within(waits.resume(paused.run_id, deny=paused.pending, conversation=conversation))
        with pytest.raises(Misuse, match="a run is using this conversation"):
            conversation.add_user("And this.")
        if ends == "cancelled":
            first.cancel()
        goes_on.set()
    assert isinstance(first.result(), BaseException) == (ends in ("cancelled", "raises"))
    conversation.add_user("And this.")
    assert [message.text for message in conversation.messages if message.role == "user"] == ["Pay.", "Go.", "And this."]
    assert (await within(Agent(ScriptedModel(["Yes."])).run(conversation=conversation))).text == "Yes."
    assert bank.ran == []


@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize("redact", [None, lambda text: text.replace("4111", "[card]")])
async def test_a_conversation_that_was_kept_before_a_crash_goes_on_with_its_run(tmp_path, redact, more):
    journal, left = MemoryJournal(redact=redact), []

    async def prepare(context):
        if context.step_number and not left:
            left.append(await copied(journal, redact=redact))

    bank = Bank()

    def agent(journal):
        model = ScriptedModel(lambda asked: "Done." if asked.step else [("look", {"key": "4111"})])
        return Agent(model, tools=bank.tools, journal=journal, prepare_step=prepare)

    conversation = Conversation()
    conversation.add_user("My card is 4111.")
    conversation.save(tmp_path / "talk.json")
    run_id = (await within(agent(journal).run(conversation=conversation))).run_id
    kept = Conversation.load(tmp_path / "talk.json")
    if more:
        kept.add_assistant("Is it?")
        with pytest.raises(Misuse, match="more was said in this conversation"):
            await within(agent(left[0]).resume(run_id, conversation=kept))
        return
    result = await within(agent(left[0]).resume(run_id, conversation=kept))
    assert (result.text, bank.ran) == ("Done.", ["look 4111"])
    assert kept.messages[-1].text == "Done."


def above(clerk, journal, **options):
    model = ScriptedModel(lambda asked: "Done." if asked.step else [("clerk", {"task": "Pay."})])
    return Agent(model, tools=[clerk.as_tool("clerk", "Pays.")], journal=journal, **options)


@pytest.mark.parametrize("left", ["waiting", "crashed"])
@pytest.mark.parametrize("lacks", ["deny pay", "on_tool_call", "on_tool_result", "on_answer"])
async def test_a_run_below_is_taken_up_under_the_rules_that_it_was_begun_under(left, lacks):
    bank, journal, cut = Bank(), MemoryJournal(), []

    async def looks(call, output):
        if not cut:
            cut.append(await copied(journal))

    hooks = {"on_tool_call": lambda call: None, "on_tool_result": looks, "on_answer": lambda answer, context: None}

    def agent(journal, **less):
        calls = [[("look", {"key": "a"})], [("pay", {"amount": 5})]]
        model = ScriptedModel(lambda asked: "Done." if asked.step > 1 else calls[asked.step])
        rules = [ask_before("pay"), *([] if "deny pay" in less else [deny("pay", when=is_much)])]
        given = {name: hook for name, hook in hooks.items() if name not in less}
        return above(Agent(model, name="clerk", tools=bank.tools, approvals=rules, **given), journal)

    run = await within(agent(journal).run("Pay."))
    there = journal if left == "waiting" else cut[0]
    decided = {"approve": run.pending} if left == "waiting" else {}
    before = {line.run_id: line.events for line in await there.list(99)}
    with pytest.raises(Misuse, match=f"started under stricter rules.*this agent lacks: of clerk: {lacks}"):
        await within(agent(there, **{lacks: None}).resume(run.run_id, **decided))
    assert bank.times("pay") == 0
    if left == "waiting":
        assert {line.run_id: line.events for line in await there.list(99)} == before
    result = await within(agent(there).resume(run.run_id, **decided))
    assert result.stop.reason == ("answered" if left == "waiting" else "waiting")
    assert bank.ran == ["look a", *(["pay 5"] if left == "waiting" else [])]


def is_much(arguments):
    return arguments["amount"] > 100


async def test_a_run_below_that_was_left_under_a_budget_is_taken_up_under_it_again():
    bank, journal, left = Bank(), MemoryJournal(), []
    budget = Budget(name="pays", tokens=10_000)

    async def turn(asked):
        if asked.step and not left:
            left.append(await copied(journal))
        return "Done." if asked.step else [("pay", {"amount": 5})]

    def agent(journal, *budgets):
        model = ScriptedModel(turn, usage=Usage(10, 10))
        rules = [ask_before("pay")]
        return above(Agent(model, name="clerk", tools=[bank.pay], approvals=rules, budget=budgets), journal)

    run = await within(agent(journal).run("Pay."))
    await within(agent(journal, budget).resume(run.run_id, approve=run.pending))
    (there,) = left
    before = {line.run_id: line.events for line in await there.list(99)}
    with pytest.raises(Misuse, match="left in the middle under a budget"):
        await within(agent(there).resume(run.run_id))
    assert {line.run_id: line.events for line in await there.list(99) if "." in line.run_id} == {
        name: events for name, events in before.items() if "." in name
    }
    result = await within(agent(there, budget).resume(run.run_id))
    assert (result.text, bank.ran) == ("Done.", ["pay 5"])
    assert budget.spent().held_tokens == 0


@pytest.mark.parametrize("edited", [None, {"amount": 5}, {"amount": 7}])
async def test_a_call_made_again_with_other_arguments_of_a_person_has_another_key(edited):
    keys = []

    @tool(effect="idempotent")
    def put(amount: int, context: ToolContext) -> str:
        """Puts an amount somewhere."""
        keys.append((amount, context.idempotency_key))
        if len(keys) == 1:
            raise ValueError("the server is down")
        return "put"

    agent = Agent(
        ScriptedModel([[("put", {"amount": 5})], "Done."]),
        tools=[put],
        approvals=[ask_before("put", repeats=1)],
        on_tool_result=lambda call, output: Retry() if output.is_error else None,
        journal=MemoryJournal(),
    )
    run = await within(agent.run("Go."))
    (one,) = run.pending
    result = await within(agent.resume(run.run_id, approve={one.call_id: edited}))
    assert (result.text, [amount for amount, _ in keys]) == ("Done.", [5, (edited or {"amount": 5})["amount"]])
    assert (keys[0][1] == keys[1][1]) == (keys[0][0] == keys[1][0])


@pytest.mark.parametrize("where", ["above", "below"])
@pytest.mark.parametrize("way", ["resume", "approve", "stream", "drive", "resubmit", "fork", "begin_fork"])
async def test_no_run_goes_on_under_a_rule_that_allows_more(way, where):
    bank, journal = Bank(), MemoryJournal()

    def agent(*rules):
        calls = [[("look", {"key": "a"})], [("pay", {"amount": 5})]]
        model = ScriptedModel(lambda asked: "Done." if asked.step > 1 else calls[asked.step])
        clerk = Agent(
            model, name="clerk", tools=bank.tools, approvals=[ask_before("pay"), *rules], journal=journal,
        )  # fmt: skip
        return clerk if where == "above" else above(clerk, journal)

    run = await within(agent().run("Pay."))
    before = {line.run_id: line.events for line in await journal.list(99)}
    looser, waits = agent(allow("wipe")), run.run_id

    async def streamed():
        async with looser.stream(resume=waits, approve=run.pending):
            pass

    ways = {
        "resume": lambda: looser.resume(waits),
        "approve": lambda: looser.resume(waits, approve=run.pending),
        "stream": streamed,
        "drive": lambda: looser.drive(waits),
        "resubmit": lambda: looser.resubmit(waits, to=Nowhere(), approve=run.pending),
        "fork": lambda: looser.fork(waits, at=0),
        "begin_fork": lambda: looser.begin_fork(waits, at=0),
    }
    if way == "drive":
        # One that waits for a person is only told of.
        await within(ways[way]())
    else:
        with pytest.raises(Misuse, match=f"it allows more: {'' if where == 'above' else 'of clerk: '}allow wipe"):
            await within(ways[way]())
        assert {line.run_id: line.events for line in await journal.list(99)} == before
    assert bank.times("pay") == 0
    assert bank.times("wipe") == 0


class Nowhere:
    """A dispatcher that brings orders to nobody."""

    async def accept(self, agent):
        """There is room."""

    async def dispatch(self, order):
        raise AssertionError("nothing is to be queued")
