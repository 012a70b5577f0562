"""Approvals: what no id, no edit, no coroutine and no weaker agent may walk around.

What was found, and the test that holds it:

- approving by key can run another call whose id looks like it -> test_a_key_never_decides_another_call,
  test_an_id_that_looks_like_a_key_decides_its_own_call
- ids hold `#` and `/` -> test_a_call_of_any_id_can_be_decided, test_a_call_of_any_id_can_be_decided_by_its_key
- edited arguments are not judged again by `deny` -> test_edited_arguments_are_judged_again,
  test_edited_arguments_are_validated_again
- async predicates are truthy -> test_an_async_allow_asks_what_it_says, test_an_async_deny_denies_only_what_it_says,
  test_an_async_ask_asks_only_what_it_says, test_an_async_needs_approval_is_waited_for,
  test_an_async_predicate_that_raises_is_taken_for_the_careful_answer, and in test_going_on.py for conditions
- of a condition that raises nobody hears, and its rule's reason is told as if it held
  -> test_a_condition_that_raises_does_not_say_the_reason_of_its_rule
- a decision on a finished run, or for a call that does not exist, is ignored
  -> test_a_decision_on_a_finished_run_is_refused, test_a_decision_for_no_waiting_call_is_refused
- rules belong to the run -> test_a_run_records_its_rules_and_hooks, test_a_run_is_not_taken_up_with_weaker_rules,
  test_a_run_is_not_taken_up_without_its_hook, test_a_run_is_not_taken_up_without_its_stop_condition,
  test_a_run_is_taken_up_with_the_same_rules,
  test_a_run_is_not_taken_up_with_an_unknown_predicate
- rules added since the pause hold too; deny wins always -> test_a_rule_added_since_the_pause_holds,
  test_a_deny_wins_over_an_approval_that_was_given, test_a_deny_wins_over_allow
- resuming one result three times runs an approved write once -> test_resuming_one_result_three_times_pays_once
- two processes -> test_a_decision_is_good_for_one_process_only
- an id is taken for a path -> test_an_id_is_not_taken_for_a_path_into_a_sub_run
- a stricter agent may go on -> test_a_run_is_taken_up_with_stricter_rules
- wanted by readers -> test_a_third_identical_call_can_be_denied_before_it_runs,
  test_a_call_written_in_other_words_is_the_same_call,
  test_calls_with_other_arguments_are_no_repetition, test_identical_calls_of_one_reply_are_repetitions_too,
  test_a_call_that_a_reaction_makes_again_is_a_repetition,
  test_a_call_in_place_of_another_is_one_of_those_made_before, test_repetitions_are_counted_across_a_pause
"""

from contextlib import suppress

import pytest
from play import Bank, copied, reply, told, within

from treadle import Agent, Alternative, MemoryJournal, Misuse, Retry, SqliteJournal, allow, ask_before, deny, tool
from treadle.kernel.events import RunStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

PAY = [("pay", {"amount": 5})]
IDS = ["a/b", "a#b", "a#1f2e3d4c", "../x", "a.b~c", "100%", "a%2Fb", "a+b", "a\tb\n", "ünïcode"]


def asking(bank, turns, **options):
    return Agent(ScriptedModel(turns), tools=bank.tools, approvals=[ask_before("pay")], **options)


@pytest.mark.parametrize("id", IDS)
async def test_a_call_of_any_id_can_be_decided(id):
    bank = Bank()
    agent = asking(bank, [reply((id, "pay", '{"amount": 5}')), "done"])
    waiting = await within(agent.run("go"))
    result = await within(agent.resume(waiting, approve=[waiting.pending[0].call_id]))
    assert result.finished
    assert bank.ran == ["pay 5"]


@pytest.mark.parametrize("id", IDS)
async def test_a_call_of_any_id_can_be_decided_by_its_key(id):
    bank = Bank()
    agent = asking(bank, [reply((id, "pay", '{"amount": 5}')), "done"])
    waiting = await within(agent.run("go"))
    result = await within(agent.resume(waiting, deny={waiting.pending[0].key: "no"}))
    assert result.finished
    assert not bank.ran


async def key_of(id, amount):
    """The key under which a payment of `amount` waits."""
    agent = asking(Bank(), [reply((id, "pay", f'{{"amount": {amount}}}')), "done"])
    return (await within(agent.run("go"))).pending[0].key


async def test_a_key_never_decides_another_call():
    """The model names a call as the key of another: whoever approves that key must not run the call so named."""
    key, bank = await key_of("x", 5), Bank()
    agent = asking(bank, [reply(("x", "pay", '{"amount": 5}'), (key, "pay", '{"amount": 5000}')), "done"])
    waiting = await within(agent.run("go"))
    small, large = waiting.pending
    assert small.arguments == {"amount": 5}
    assert large.arguments == {"amount": 5000}
    still = await within(agent.resume(waiting, approve=[small.key]))
    assert bank.ran == ["pay 5"]
    assert [one.arguments for one in still.pending] == [{"amount": 5000}]


async def test_an_id_that_looks_like_a_key_decides_its_own_call():
    key, bank = await key_of("x", 5), Bank()
    agent = asking(bank, [reply(("x", "pay", '{"amount": 5}'), (key, "pay", '{"amount": 5000}')), "done"])
    waiting = await within(agent.run("go"))
    assert len({one.call_id for one in waiting.pending} | {one.key for one in waiting.pending}) == 4
    still = await within(agent.resume(waiting, deny={waiting.pending[1].call_id: "no"}))
    assert [one.arguments for one in still.pending] == [{"amount": 5}]
    assert not bank.ran


async def test_an_id_is_not_taken_for_a_path_into_a_sub_run():
    bank = Bank()
    child = Agent(
        ScriptedModel([reply(("b", "pay", '{"amount": 5}')), "paid"]), name="expert", tools=[bank.pay],
        approvals=[ask_before("pay")],
    )  # fmt: skip
    agent = Agent(
        ScriptedModel([reply(("a", "expert", '{"task": "x"}'), ("a/b", "pay", '{"amount": 5000}')), "done"]),
        tools=[child.as_tool(), bank.pay], approvals=[ask_before("pay")],
    )  # fmt: skip
    waiting = await within(agent.run("go"))
    assert len(waiting.pending) == 2
    assert len({one.call_id for one in waiting.pending}) == 2
    small = next(one for one in waiting.pending if one.arguments == {"amount": 5})
    await within(agent.resume(waiting, approve=[small.call_id]))
    assert bank.ran == ["pay 5"]


def large(arguments):
    return arguments["amount"] > 100


async def test_edited_arguments_are_judged_again():
    bank = Bank()
    agent = Agent(
        ScriptedModel([PAY, "done"]), tools=bank.tools,
        approvals=[ask_before("pay"), deny("pay", when=large, reason="too much")],
    )  # fmt: skip
    waiting = await within(agent.run("go"))
    with suppress(Misuse):
        result = await within(agent.resume(waiting, approve={waiting.pending[0].call_id: {"amount": 5000}}))
        assert "too much" in told(result)[0]
    assert not bank.ran


async def test_edited_arguments_are_validated_again():
    bank = Bank()
    agent = asking(bank, [PAY, "done"])
    waiting = await within(agent.run("go"))
    with pytest.raises(Misuse, match="amount"):
        await within(agent.resume(waiting, approve={waiting.pending[0].call_id: {"amount": "much"}}))
    assert not bank.ran


async def large_async(arguments):
    return arguments["amount"] > 100


class LargeAsync:
    """A callable whose call is a coroutine, which no check of the function's kind finds."""

    async def __call__(self, arguments):
        return arguments["amount"] > 100


BOTH = [("pay", {"amount": 5}), ("pay", {"amount": 5000})]
ASYNC = pytest.mark.parametrize(
    "when", [large_async, LargeAsync(), lambda arguments: large_async(arguments)], ids=["function", "object", "lambda"]
)


async def run_with(rules, bank=None, **options):
    bank = bank or Bank()
    agent = Agent(ScriptedModel([BOTH, "done"]), tools=bank.tools, approvals=rules, **options)
    return await within(agent.run("go")), bank


@ASYNC
async def test_an_async_allow_asks_what_it_says(when):
    ran = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    agent = Agent(ScriptedModel([BOTH, "done"]), tools=[pay], approvals=[allow("pay", when=when)])
    waiting = await within(agent.run("go"))
    assert [one.arguments for one in waiting.pending] == [{"amount": 5}]
    assert ran == [5000]


@ASYNC
async def test_an_async_deny_denies_only_what_it_says(when):
    result, bank = await run_with([deny("pay", when=when, reason="too much")])
    assert bank.ran == ["pay 5"]
    assert "too much" in told(result)[1]


@ASYNC
async def test_an_async_ask_asks_only_what_it_says(when):
    result, bank = await run_with([ask_before("pay", when=when)])
    assert [one.arguments for one in result.pending] == [{"amount": 5000}]
    assert bank.ran == ["pay 5"]


@ASYNC
async def test_an_async_needs_approval_is_waited_for(when):
    ran = []

    @tool(needs_approval=when)
    async def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    waiting = await within(Agent(ScriptedModel([BOTH, "done"]), tools=[pay]).run("go"))
    assert [one.arguments for one in waiting.pending] == [{"amount": 5000}]
    assert ran == [5]


async def test_an_async_predicate_that_raises_is_taken_for_the_careful_answer():
    async def cannot_say(arguments):
        raise LookupError("no idea")

    result, bank = await run_with([deny("pay", when=cannot_say)])
    assert result.finished
    assert not bank.ran
    result, bank = await run_with([allow("pay", when=cannot_say), ask_before("pay", when=cannot_say)])
    assert [one.tool for one in result.pending] == ["pay", "pay"]
    assert not bank.ran


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_condition_that_raises_does_not_say_the_reason_of_its_rule(asynchronous, caplog):
    """What is not known to be about a call is no reason against it: "Eve is blocked" was told of a call for Ann."""

    def to_eve(arguments):
        raise KeyError("recipient")

    async def to_eve_async(arguments):
        return to_eve(arguments)

    when = to_eve_async if asynchronous else to_eve
    result, bank = await run_with([deny("pay", when=when, reason="Eve is blocked")])
    shown = [call.result.text for call in result.tool_calls_made]
    assert not bank.ran
    assert all("to_eve" in text and "KeyError" in text and "Eve is blocked" not in text for text in shown)
    logged = [record for record in caplog.records if record.exc_info]
    assert [record.tool for record in logged] == ["pay", "pay"]
    assert all("to_eve" in record.getMessage() and record.call_id and record.run_id for record in logged)

    def exits(arguments):
        raise SystemExit(3)

    result, bank = await run_with([deny("pay", when=exits, reason="Eve is blocked")])
    assert result.finished
    assert not bank.ran
    assert "SystemExit" in result.tool_calls_made[0].result.text

    waiting, _ = await run_with([ask_before("pay", when=when, reason="Eve is new")])
    assert all("KeyError" in one.question and "Eve is new" not in one.question for one in waiting.pending)

    @tool(needs_approval=when)
    async def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    waiting = await within(Agent(ScriptedModel([BOTH, "done"]), tools=[pay]).run("go"))
    assert ["KeyError" in one.question for one in waiting.pending] == [True, True]


DECISIONS = [
    {"approve": ["call_0_0"]},
    {"deny": ["call_0_0"]},
    {"deny": {"call_0_0": "no"}},
    {"results": {"call_0_0": "paid"}},
    {"approve": {"call_0_0": {"amount": 1}}},
    {"approve": ["nobody"]},
    {"results": {"nobody": 1}},
]


@pytest.mark.parametrize("decision", DECISIONS, ids=str)
async def test_a_decision_on_a_finished_run_is_refused(decision):
    bank, journal = Bank(), MemoryJournal()
    agent = Agent(ScriptedModel([PAY, "done"]), tools=bank.tools, journal=journal)
    done = await within(agent.run("go"))
    assert done.finished
    with pytest.raises(Misuse, match=r"finished|does not wait|waiting"):
        await within(agent.resume(done.run_id, **decision))
    assert bank.ran == ["pay 5"]


@pytest.mark.parametrize("decision", DECISIONS[5:], ids=str)
async def test_a_decision_for_no_waiting_call_is_refused(decision):
    bank = Bank()
    agent = asking(bank, [PAY, "done"])
    waiting = await within(agent.run("go"))
    with pytest.raises(Misuse, match="call_0_0"):
        await within(agent.resume(waiting, **decision))
    assert not bank.ran


async def paused(bank, rules, **options):
    journal = MemoryJournal()
    agent = Agent(ScriptedModel([PAY, "done"]), tools=bank.tools, approvals=rules, journal=journal, **options)
    return await within(agent.run("go")), journal


async def test_a_run_records_its_rules_and_hooks():
    def hook(call, output):
        return None

    waiting, _ = await paused(Bank(), [ask_before("pay"), deny("wipe")], on_tool_result=hook)
    started = waiting.events[0]
    assert isinstance(started, RunStarted)
    assert started.rules
    assert "wipe" in repr(started.rules)
    assert started.hooks
    bare = await within(Agent(ScriptedModel(["done"])).run("go"))
    assert not bare.events[0].rules
    assert not bare.events[0].hooks


@pytest.mark.parametrize(
    "weaker",
    [[], [ask_before("pay")], [deny("wipe", when=large), ask_before("pay")], [ask_before("wipe"), ask_before("pay")]],
    ids=["none", "one missing", "narrower", "asks instead"],
)
async def test_a_run_is_not_taken_up_with_weaker_rules(weaker):
    bank = Bank()
    waiting, journal = await paused(bank, [ask_before("pay"), deny("wipe")])
    agent = Agent(ScriptedModel(["done"]), tools=bank.tools, approvals=weaker, journal=journal)
    with pytest.raises(Misuse, match="wipe"):
        await within(agent.resume(waiting.run_id, approve=[waiting.pending[0].key]))
    assert not bank.ran


async def test_a_run_is_not_taken_up_with_an_unknown_predicate():
    bank = Bank()
    waiting, journal = await paused(bank, [ask_before("pay"), deny("pay", when=large)])
    other = [ask_before("pay"), deny("pay", when=lambda arguments: False)]
    agent = Agent(ScriptedModel(["done"]), tools=bank.tools, approvals=other, journal=journal)
    with pytest.raises(Misuse, match="pay"):
        await within(agent.resume(waiting.run_id, approve=[waiting.pending[0].key]))
    assert not bank.ran


async def test_a_run_is_not_taken_up_without_its_hook():
    def looks_at_results(call, output):
        return None

    bank = Bank()
    waiting, journal = await paused(bank, [ask_before("pay")], on_tool_result=looks_at_results)
    agent = Agent(ScriptedModel(["done"]), tools=bank.tools, approvals=[ask_before("pay")], journal=journal)
    with pytest.raises(Misuse, match="on_tool_result"):
        await within(agent.resume(waiting.run_id, approve=[waiting.pending[0].key]))
    assert not bank.ran


async def test_a_run_is_taken_up_with_the_same_rules():
    bank = Bank()
    rules = [ask_before("pay", reason="money"), deny("wipe"), deny("pay", when=large)]
    waiting, journal = await paused(bank, rules)
    agent = Agent(ScriptedModel(["done"]), tools=bank.tools, approvals=list(rules), journal=journal)
    assert (await within(agent.resume(waiting.run_id, approve=[waiting.pending[0].key]))).finished
    assert bank.ran == ["pay 5"]


async def test_a_run_is_taken_up_with_stricter_rules():
    bank = Bank()
    waiting, journal = await paused(bank, [ask_before("pay")])
    agent = Agent(
        ScriptedModel(["done"]), tools=bank.tools, approvals=[ask_before("pay"), deny("wipe")], journal=journal
    )
    assert (await within(agent.resume(waiting.run_id, approve=[waiting.pending[0].key]))).finished
    assert bank.ran == ["pay 5"]


async def test_a_rule_added_since_the_pause_holds():
    bank = Bank()
    waiting, journal = await paused(bank, [ask_before("pay")])
    agent = Agent(
        ScriptedModel(["done"]), tools=bank.tools, journal=journal,
        approvals=[ask_before("pay"), deny("pay", reason="payments are frozen")],
    )  # fmt: skip
    with suppress(Misuse):
        result = await within(agent.resume(waiting.run_id, approve=[waiting.pending[0].key]))
        assert "payments are frozen" in told(result)[0]
    assert not bank.ran


async def test_a_deny_wins_over_an_approval_that_was_given():
    """Two calls wait; the first decision is given before the rule, and its call waits for the second."""
    bank = Bank()
    waiting, journal = await paused(bank, [ask_before("pay")])
    left = await copied(journal)
    frozen = Agent(
        ScriptedModel(["done"]), tools=bank.tools, journal=left,
        approvals=[ask_before("pay"), allow("pay"), deny(effect="write", reason="frozen")],
    )  # fmt: skip
    with suppress(Misuse):
        await within(frozen.resume(waiting.run_id, approve={waiting.pending[0].call_id: {"amount": 1}}))
    assert not bank.ran


async def test_a_deny_wins_over_allow():
    _, bank = await run_with([allow("pay"), deny("pay")])
    assert not bank.ran


async def test_resuming_one_result_three_times_pays_once():
    bank = Bank()
    agent = asking(bank, lambda request: "done" if request.step else PAY)
    waiting = await within(agent.run("go"))
    assert (await within(agent.resume(waiting, approve=[waiting.pending[0].key]))).finished
    for _ in range(2):
        with suppress(Misuse):
            await within(agent.resume(waiting, approve=[waiting.pending[0].key]))
    assert bank.ran == ["pay 5"]


async def test_a_decision_is_good_for_one_process_only(tmp_path):
    bank = Bank()
    async with SqliteJournal(tmp_path / "runs.db") as here, SqliteJournal(tmp_path / "runs.db") as there:
        turns = lambda request: "done" if request.step else PAY  # noqa: E731
        waiting = await within(asking(bank, turns, journal=here).run("go"))
        first = await within(asking(bank, turns, journal=here).resume(waiting.run_id, approve=[waiting.pending[0].key]))
        assert first.finished
        with pytest.raises(Misuse, match=r"finished|does not wait|waiting"):
            await within(asking(bank, turns, journal=there).resume(waiting.run_id, approve=[waiting.pending[0].key]))
    assert bank.ran == ["pay 5"]


async def test_a_third_identical_call_can_be_denied_before_it_runs():
    bank = Bank()
    agent = Agent(
        ScriptedModel(lambda request: "done" if request.step == 3 else [("look", {"key": "a"})]),
        tools=bank.tools, approvals=[deny("look", repeats=2, reason="you have this already")],
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert bank.ran == ["look a", "look a"]
    assert "you have this already" in told(result)[2]


async def test_a_call_written_in_other_words_is_the_same_call():
    bank = Bank()
    spellings = ['{"amount":5}', '{ "amount" : 5 }', '{"amount":5 }', '{"amount": 5}']

    def turns(request):
        if request.step == len(spellings):
            return "done"
        return [("pay", spellings[request.step])]

    await within(Agent(ScriptedModel(turns), tools=bank.tools, approvals=[deny("pay", repeats=2)]).run("go"))
    assert bank.ran == ["pay 5", "pay 5"]


async def test_calls_with_other_arguments_are_no_repetition():
    bank = Bank()
    agent = Agent(
        ScriptedModel(lambda request: "done" if request.step == 4 else [("look", {"key": str(request.step)})]),
        tools=bank.tools, approvals=[deny("look", repeats=2)],
    )  # fmt: skip
    await within(agent.run("go"))
    assert len(bank.ran) == 4


async def test_identical_calls_of_one_reply_are_repetitions_too():
    bank = Bank()
    agent = Agent(
        ScriptedModel([[("look", {"key": "a"})] * 4, "done"]), tools=bank.tools, approvals=[deny("look", repeats=2)]
    )
    await within(agent.run("go"))
    assert bank.ran == ["look a", "look a"]


async def test_a_call_that_a_reaction_makes_again_is_a_repetition():
    bank = Bank()
    agent = Agent(
        ScriptedModel([[("look", {"key": "a"})], [("look", {"key": "a"})], "done"]),
        tools=bank.tools, approvals=[deny("look", repeats=2)], on_tool_result=lambda call, output: Retry(),
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert bank.ran == ["look a", "look a"]
    first, second = told(result)
    assert "a" in first
    assert "not allowed" in second


async def test_a_call_in_place_of_another_is_one_of_those_made_before():
    bank = Bank()
    agent = Agent(
        ScriptedModel([[("look", {"key": "a"})], [("pay", {"amount": 5})], "done"]),
        tools=bank.tools, approvals=[deny("pay", repeats=1)],
        on_tool_result=lambda call, output: Alternative("pay", {"amount": 5}) if call.name == "look" else None,
    )  # fmt: skip
    await within(agent.run("go"))
    assert bank.ran == ["look a", "pay 5"]


async def test_repetitions_are_counted_across_a_pause():
    bank = Bank()
    agent = Agent(
        ScriptedModel(lambda request: "done" if request.step == 3 else PAY),
        tools=bank.tools, approvals=[ask_before("pay"), deny("pay", repeats=1)],
    )  # fmt: skip
    waiting = await within(agent.run("go"))
    result = await within(agent.resume(waiting, approve=waiting.pending))
    assert result.finished
    assert bank.ran == ["pay 5"]


async def test_a_run_is_not_taken_up_without_its_stop_condition():
    def enough(state):
        return False

    bank = Bank()
    waiting, journal = await paused(bank, [ask_before("pay")], stop_when=enough)
    agent = Agent(ScriptedModel(["done"]), tools=bank.tools, approvals=[ask_before("pay")], journal=journal)
    with pytest.raises(Misuse, match="stop_when"):
        await within(agent.resume(waiting.run_id, approve=[waiting.pending[0].key]))
    assert not bank.ran
