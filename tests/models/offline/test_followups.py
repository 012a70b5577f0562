"""Follow-ups: a short question is understood from the one before it."""

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
