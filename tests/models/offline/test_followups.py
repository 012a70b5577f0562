"""Follow-ups: a short question is understood from the one before it."""

import asyncio

import pytest

from treadle import Agent, Conversation, Limits
from treadle.kernel.messages import ToolMessage, UserMessage
from treadle.tools.builtin import SKILLS

MAIN = "Compare the amount totals between fi_reporting and consolidation_mart for company 1001 in period 202401"


def test_one_filter_is_replaced_and_the_rest_kept(ask):
    _, session = ask("analyst", MAIN, "and for period 202402?")
    assert session.tools == ["compare_sources"]
    values = {row["dimension"]: row["value"] for row in session.calls[0][1]["filters"]}
    assert values == {"company": "1001", "period": "202402"}


def test_a_breakdown_is_added_and_kept_in_the_next_follow_up(ask):
    _, session = ask("analyst", MAIN, "which accounts?")
    assert session.calls[0][1]["dimensions"] == ["account"]
    _, session = ask("analyst", MAIN, "by account?", "and company 1002?")
    assert session.calls[0][1]["dimensions"] == ["account"]
    assert session.calls[0][1]["filters"][0]["value"] == "1002"


def test_another_product_goes_through_the_whole_chain(ask):
    answer, session = ask("shop", "What's the total value of our gadget inventory?", "and gizmos?")
    assert session.calls == [
        ("check_stock", {"product": "gizmo"}),
        ("calculate_total", {"product": "gizmo", "quantity": 30}),
    ]
    assert "157.50" in answer


def test_a_pronoun_stands_for_what_was_asked_about_last(ask):
    _, session = ask("shop", "How many widgets do we have?", "and gizmos?", "what do they cost?")
    assert session.calls == [("get_price", {"product": "gizmo"})]


def test_another_place_and_another_amount(ask):
    _, session = ask("weather", "What's the weather in Paris?", "and in London?", "What about Oslo?")
    assert session.calls == [("get_weather", {"city": "Oslo"})]
    _, session = ask("money", "Convert 100 USD to EUR", "and 250?")
    assert session.calls == [("convert_currency", {"amount": 250, "from_currency": "USD", "to_currency": "EUR"})]


def test_a_question_of_its_own_is_not_a_follow_up(ask):
    _, session = ask("shop", "How many widgets do we have?", "and what time is it?")
    assert session.calls == [("current_time", {})]
    answer, session = ask("shop", "How many widgets do we have?", "Tell me a joke about the sea")
    assert session.calls == []
    assert "cannot plan" in answer


def asked(session):
    ((_, arguments),) = session.calls
    filters = [(row["dimension"], row.get("op", "="), row["value"]) for row in arguments.get("filters", ())]
    return arguments.get("source"), filters, arguments.get("dimensions", [])


def test_a_currency_takes_the_place_of_a_currency_and_a_source_that_of_a_source(ask):
    one = "Total amount in fi_reporting"
    _, session = ask("analyst", f"{one} in EUR", "and consolidation_mart?")
    assert asked(session) == ("consolidation_mart", [("currency", "=", "EUR")], [])
    _, session = ask("analyst", f"{one} for account X9", "and consolidation_mart?")
    assert asked(session) == ("consolidation_mart", [("account", "=", "X9")], [])
    for question in ("in EUR", "only EUR", "and in EUR?"):
        _, session = ask("analyst", "Compare fi_reporting and consolidation_mart by company", question)
        assert asked(session) == (None, [("currency", "=", "EUR")], ["company"])
        assert session.calls[0][1]["source_b"] == "consolidation_mart"
    _, session = ask("analyst", f"{one} in EUR", "and in USD?")
    assert asked(session)[1] == [("currency", "=", "USD")]


def test_what_is_left_out_in_a_follow_up(ask):
    compared = "Compare fi_reporting and consolidation_mart by company"
    _, session = ask("analyst", compared, "without USD", "and without GBP")
    assert asked(session)[1] == [("currency", "!=", "USD"), ("currency", "!=", "GBP")]
    # It may take away what was said of it.
    answer, session = ask("analyst", f"{compared} in USD", "without USD")
    assert session.calls == []
    assert "I cannot tell what “without” means" in answer


def test_a_breakdown_takes_the_place_of_one_wherever_that_stands(ask):
    for question in ("by company in EUR", "by company and account in EUR", "in EUR by company"):
        _, session = ask("analyst", f"Total amount in fi_reporting {question}", "by period")
        assert asked(session) == ("fi_reporting", [("currency", "=", "EUR")], ["period"])


def test_a_question_that_goes_on_asks_the_whole_of_it_again(ask):
    """A part without words for a tool of its own was asked of one source, and under none of the other conditions."""
    compared = "Compare fi_reporting and consolidation_mart for company 1001 in EUR"
    for more in (". Also for company 1002.", ", and also for company 1002", ". And for 1002?", ". The same for 1002."):
        _, session = ask("analyst", compared + more)
        first, second = [call for call in session.calls if call[0] == "compare_sources"]
        assert [row["value"] for row in first[1]["filters"]] == ["1001", "EUR"]
        assert [row["value"] for row in second[1]["filters"]] == ["1002", "EUR"]
        assert "query_source" not in session.tools
    _, session = ask("analyst", f"{compared}; also by account")
    assert session.calls[-1][1]["dimensions"] == ["account"]
    assert [row["value"] for row in session.calls[-1][1]["filters"]] == ["1001", "EUR"]
    _, session = ask("analyst", f"{compared}. Only for account 710300.")
    ((_, arguments),) = [call for call in session.calls if call[0] == "compare_sources"]
    assert [row["value"] for row in arguments["filters"]] == ["1001", "EUR", "710300"]


def test_nothing_is_compared_with_itself(ask):
    for question in ("and consolidation_mart only?", "only consolidation_mart", "and consolidation mart only?"):
        answer, session = ask("analyst", "Compare fi_reporting and consolidation_mart for company 1002", question)
        assert "compare_sources" not in session.tools, answer


VALUE = "What's the total value of our gadget inventory?"


@pytest.mark.parametrize(
    ("on_limit", "limits"),
    [("answer", Limits(tool_calls=1)), ("stop", Limits(tool_calls=2)), ("answer", Limits(steps=2))],
    ids=["calls, answered", "calls, stopped", "steps, answered"],
)
def test_what_a_limit_cut_short_is_gone_on_with_and_asked_again(on_limit, limits):
    agent = Agent("offline", skills=[SKILLS["inventory"]], on_limit=on_limit)

    async def told() -> list[str]:
        found, talk = [], Conversation()
        for message in (None, "Please go on."):
            short = await agent.run(VALUE, limits=limits)
            assert not short.finished
            found.append((await agent.resume(short, limits=Limits(), message=message)).text)
        await agent.run(VALUE, limits=limits, conversation=talk)
        return [*found, (await agent.run(VALUE, conversation=talk)).text]

    for text in asyncio.run(told()):
        assert text.startswith("quantity 75, unit price 24.99: total 1874.25 USD")


def test_a_short_question_after_a_run_that_a_limit_stopped_is_one_of_its_own():
    agent, talk = Agent("offline", skills=[SKILLS["inventory"]], on_limit="stop"), Conversation()
    agent.run_sync(VALUE, limits=Limits(tool_calls=1), conversation=talk)
    result = agent.run_sync("and of widgets?", conversation=talk)
    assert "total 1875.00 USD" in result.text
    assert "1874.25" not in result.text


def test_a_call_that_was_cut_off_is_made_again_only_where_it_changes_nothing(reply, toolbox):
    told = '{"error": true, "message": "This call was under way when the run stopped (deadline); who knows."}'
    shop = toolbox("shop")
    asked = [UserMessage(VALUE)]
    first = reply(asked, shop).message
    cut = [*asked, first, ToolMessage(first.calls[0].id, "check_stock", told, is_error=True)]
    assert [call.name for call in reply(cut, shop).message.calls] == ["check_stock"]
    asked, library = [UserMessage("Renew the loan of book 7")], toolbox("library")
    first = reply(asked, library).message
    assert [call.name for call in first.calls] == ["renew_loan"]
    cut = [*asked, first, ToolMessage(first.calls[0].id, first.calls[0].name, told, is_error=True)]
    assert reply([*cut, UserMessage("Please go on.")], library).message.calls == ()


@pytest.mark.parametrize("asked", [{"output": bool}, {"tool_choice": "required"}], ids=["type", "choice"])
def test_an_answer_that_is_sent_back_is_still_what_was_found(asked):
    """It was forgotten for "I cannot plan an answer to that", which what the loop says was taken for a question."""
    result = Agent("offline", skills=[SKILLS["inventory"]], **asked).run_sync("How many gadgets do we have?")
    assert not result.finished
    assert result.text.startswith("gadgets: quantity 75")
