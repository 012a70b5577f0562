"""Questions of many kinds over many toolboxes: which calls are made, and what the answer says."""

import pytest
from msgspec.structs import replace

CALLED = [
    # arithmetic and the clock
    ("shop", "What is 25 * 4 + 10?", [("calculator", {"expression": "25 * 4 + 10"})], "= 110"),
    ("shop", "What is 15% of 240?", [("calculator", {"expression": "15 / 100 * 240"})], "36"),
    ("shop", "Calculate (3 + 4) * 12", [("calculator", {"expression": "(3 + 4) * 12"})], "84"),
    ("shop", "how much is twelve plus thirty-five", [("calculator", {"expression": "12 + 35"})], "47"),
    ("shop", "subtract 7 from 50", [("calculator", {"expression": "50 - 7"})], "43"),
    ("shop", "What is 9 squared?", [("calculator", {"expression": "9 ** 2"})], "81"),
    ("shop", "What time is it in Tokyo?", [("current_time", {"timezone": "Asia/Tokyo"})], "Asia/Tokyo"),
    (
        "shop",
        "What time is it in Berlin and in London?",
        [("current_time", {"timezone": "Europe/Berlin"}), ("current_time", {"timezone": "Europe/London"})],
        "Europe/London",
    ),
    (
        "shop",
        "What's 100 divided by 4, and also what time is it?",
        [("calculator", {"expression": "100 / 4"}), ("current_time", {})],
        "100 / 4 = 25",
    ),
    # stock and prices
    ("shop", "How many widgets do we have?", [("check_stock", {"product": "widget"})], "widget: quantity 150"),
    ("shop", "Is the widget in stock?", [("check_stock", {"product": "widget"})], "150"),
    ("shop", "What does a gizmo cost?", [("get_price", {"product": "gizmo"})], "5.25 USD"),
    (
        "shop",
        "How much would 20 gadgets cost?",
        [("calculate_total", {"product": "gadget", "quantity": 20})],
        "990.00 USD",
    ),
    (
        "shop",
        "What's the total value of our gadget inventory?",
        [("check_stock", {"product": "gadget"}), ("calculate_total", {"product": "gadget", "quantity": 75})],
        "total 3712.50 USD",
    ),
    (
        "shop",
        "How much is our stock of gizmos worth?",
        [("check_stock", {"product": "gizmo"}), ("calculate_total", {"product": "gizmo", "quantity": 30})],
        "157.50",
    ),
    (
        "shop",
        "how many widgets and gadgets do we have?",
        [("check_stock", {"product": "widget"}), ("check_stock", {"product": "gadget"})],
        "gadget: quantity 75",
    ),
    (
        "shop",
        "What's the stock and price of widgets?",
        [("check_stock", {"product": "widget"}), ("get_price", {"product": "widget"})],
        "19.99",
    ),
    (
        "shop",
        "What's the price of gadgets, and how many are left?",
        [("get_price", {"product": "gadget"}), ("check_stock", {"product": "gadget"})],
        "quantity 75",
    ),
    (
        "shop",
        "How many gizmoz are there?",
        [("check_stock", {"product": "gizmoz"}), ("check_stock", {"product": "gizmo"})],
        "I took “gizmoz” to mean gizmo",
    ),
    (
        "shop",
        "If I buy 3 gadgets, how much do I pay?",
        [("calculate_total", {"product": "gadget", "quantity": 3})],
        "148.50 USD",
    ),
    # yes or no
    ("shop", "Do we have enough gizmos to fulfill an order of 50?", [("check_stock", {"product": "gizmo"})], "No."),
    ("shop", "Can we ship 100 widgets?", [("check_stock", {"product": "widget"})], "Yes."),
    ("shop", "Are there at least 200 widgets in stock?", [("check_stock", {"product": "widget"})], "No."),
    ("shop", "Do we have fewer than 40 gizmos?", [("check_stock", {"product": "gizmo"})], "Yes."),
    ("shop", "Do we have more gadgets than 100?", [("check_stock", {"product": "gadget"})], "No."),
    # weather
    ("weather", "What's the weather in Paris?", [("get_weather", {"city": "Paris"})], "temperature 14.5"),
    (
        "weather",
        "How warm is it in New York in fahrenheit?",
        [("get_weather", {"city": "New York", "units": "fahrenheit"})],
        "7.5",
    ),
    (
        "weather",
        "Weather in Paris and London?",
        [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "London"})],
        "London",
    ),
    (
        "weather",
        "What's the forecast for Oslo for the next 3 days?",
        [("get_forecast", {"city": "Oslo", "days": 3})],
        "9.5",
    ),
    # people
    (
        "people",
        "How many vacation days does Maria have left?",
        [("find_employee", {"name": "Maria"}), ("get_vacation_balance", {"employee_id": 17})],
        "days left 12",
    ),
    (
        "people",
        "Does John Smith have enough vacation for 5 days off?",
        [("find_employee", {"name": "John Smith"}), ("get_vacation_balance", {"employee_id": 23})],
        "No.",
    ),
    ("people", "Which department does John work in?", [("find_employee", {"name": "John"})], "Sales"),
    (
        "people",
        "Request 3 vacation days for Maria starting 2026-12-01",
        [
            ("find_employee", {"name": "Maria"}),
            ("request_vacation", {"employee_id": 17, "days": 3, "start_date": "2026-12-01"}),
        ],
        "requested",
    ),
    # library
    (
        "library",
        "Is Dune available?",
        [("search_books", {"title": "Dune"}), ("check_availability", {"book_id": "B-7"})],
        "Yes",
    ),
    ("library", "Which books did Tolkien write?", [("search_books", {"author": "Tolkien"})], "The Hobbit"),
    ("library", "Show me books by Frank Herbert", [("search_books", {"author": "Frank Herbert"})], "Dune"),
    ("library", "When is book B-9 due back?", [("check_availability", {"book_id": "B-9"})], "2026-12-01"),
    ("library", "Renew the loan of book B-7", [("renew_loan", {"book_id": "B-7"})], "2026-12-15"),
    # money
    (
        "money",
        "Convert 100 USD to EUR",
        [("convert_currency", {"amount": 100, "from_currency": "USD", "to_currency": "EUR"})],
        "92.40",
    ),
    (
        "money",
        "How much is 50 dollars in euros?",
        [("convert_currency", {"amount": 50, "from_currency": "USD", "to_currency": "EUR"})],
        "92.40",
    ),
    (
        "money",
        "What is 250.50 GBP in JPY?",
        [("convert_currency", {"amount": 250.5, "from_currency": "GBP", "to_currency": "JPY"})],
        "92.40",
    ),
    ("money", "Which currencies can I convert?", [("list_currencies", {})], "JPY"),
    (
        "shop+money",
        "What's the price of a widget in EUR?",
        [
            ("get_price", {"product": "widget"}),
            ("convert_currency", {"amount": 19.99, "from_currency": "USD", "to_currency": "EUR"}),
        ],
        "92.40",
    ),
    # tickets
    ("tickets", "What is the status of ticket 42?", [("get_ticket", {"ticket_id": 42})], "status open"),
    ("tickets", "Who is assigned to ticket #42?", [("get_ticket", {"ticket_id": 42})], "Ana"),
    (
        "tickets",
        "Show tickets 42 and 43",
        [("get_ticket", {"ticket_id": 42}), ("get_ticket", {"ticket_id": 43})],
        "ticket id 43",
    ),
    (
        "tickets",
        'Create a ticket titled "Screen is broken" with high priority',
        [("create_ticket", {"title": "Screen is broken", "priority": "high"})],
        "99",
    ),
    ("tickets", "Please close ticket 42", [("close_ticket", {"ticket_id": 42})], "closed"),
    ("tickets", "Find tickets about the printer", [("search_tickets", {"query": "the printer"})], "Printer is jammed"),
]


@pytest.mark.parametrize(("box", "question", "calls", "said"), CALLED, ids=[case[1] for case in CALLED])
def test_a_question_is_answered_by_the_calls_it_needs(ask, box, question, calls, said):
    answer, session = ask(box, question)
    assert session.calls == calls
    assert said in answer


@pytest.mark.parametrize(
    ("question", "last"),
    [
        ("What is 25 * 4 + 10?", "calculator"),
        ("How many widgets do we have?", "check_stock"),
        ("What's the total value of our gadget inventory?", "calculate_total"),
        ("Do we have enough gizmos to fulfill an order of 50?", "check_stock"),
        ("Compare amounts between fi_reports and bpc", "compare_sources"),
        ("What's the weather in Paris?", "get_weather"),
        ("How many vacation days does Maria have left?", "get_vacation_balance"),
        ("Convert 100 USD to EUR", "convert_currency"),
        ("What is the status of ticket 42?", "get_ticket"),
    ],
)
def test_the_right_tool_is_found_among_all_toolboxes(ask, question, last):
    _, session = ask("everything", question)
    assert session.tools[-1] == last


def test_independent_calls_go_together_and_dependent_ones_in_turn(ask):
    _, together = ask("shop", "What's 100 divided by 4, and also what time is it?")
    assert [len(step) for step in together.steps] == [2]
    _, chained = ask("shop", "What's the total value of widgets and gadgets?")
    assert [[name for name, _ in step] for step in chained.steps] == [["check_stock"] * 2, ["calculate_total"] * 2]


def company(value, op="="):
    return {"dimension": "company", "op": op, "value": value}


def period(value, op="="):
    return {"dimension": "period", "op": op, "value": value}


COMPARED = [
    (
        "Compare the amount totals between fi_reporting and consolidation_mart for company 1001 in period 202401",
        {"filters": [company("1001"), period("202401")]},
    ),
    (
        "Compare fi_reporting with consolidation_mart by account for January 2024",
        {"dimensions": ["account"], "filters": [period("2024-01")]},
    ),
    (
        "Reconcile the FI reporting and the consolidation mart for period between 202401 and 202403",
        {"filters": [period(["202401", "202403"], "between")]},
    ),
    (
        "fi_reporting versus consolidation_mart for companies 1001 and 1002, per company and period",
        {"filters": [company(["1001", "1002"], "in")], "dimensions": ["company", "period"]},
    ),
    ("Which accounts differ the most between fi_reporting and consolidation_mart?", {"dimensions": ["account"]}),
    ("Are fi_reporting and consolidation_mart the same for company 1001?", {"filters": [company("1001")]}),
]


@pytest.mark.parametrize(("question", "more"), COMPARED, ids=[case[0] for case in COMPARED])
def test_a_comparison_discovers_the_names_and_then_compares(ask, question, more):
    answer, session = ask("analyst", question)
    sources = {"source_a": "fi_reporting", "source_b": "consolidation_mart", "measures": ["amount"]}
    assert session.calls == [("list_sources", {}), ("compare_sources", sources | more)]
    assert "a difference of 8,000.00" in answer


def test_a_query_fills_source_measure_filter_and_grouping(ask):
    answer, session = ask("analyst", "What is the total amount in fi_reporting for company 1001 by account?")
    assert session.calls[-1] == (
        "query_source",
        {"source": "fi_reporting", "measures": ["amount"], "dimensions": ["account"], "filters": [company("1001")]},
    )
    assert "1,492,000.00" in answer


def test_unknown_names_are_put_right_by_the_hint_of_the_error(ask, toolbox):
    answer, session = ask("analyst", "Compare amounts between fi_reports and bpc")
    assert session.calls[-1][1]["source_a"] == "fi_reporting"
    assert session.calls[-1][1]["source_b"] == "bpc_reporting"
    assert "I took “fi_reports” to mean fi_reporting" in answer
    assert "I took “bpc” to mean bpc_reporting" in answer


def test_a_name_like_none_that_exists_is_not_guessed_at(ask):
    answer, session = ask("analyst", "Compare sales_db and bpc")
    assert "compare_sources" not in session.tools
    assert "There is no source 'sales_db'" in answer
    assert "consolidation_mart" in answer


def test_an_unknown_product_is_reported_with_what_there_is(ask):
    answer, session = ask("shop", "How many sprockets do we have?")
    assert session.calls == [("check_stock", {"product": "sprocket"})]
    assert "gadget, gizmo, widget" in answer


DECLINED = [
    ("shop", "Write a poem about autumn"),
    ("shop", "What is the capital of France?"),
    ("shop", "Hello!"),
    ("shop", "Who won the match yesterday?"),
    ("shop", "Delete all widgets"),
    ("shop", "Who are you?"),
    ("shop", "tell me about the weather"),
    ("weather", "What is the capital of France?"),
    ("weather", "Tell me a joke"),
    ("people", "Fire John Smith"),
    ("tickets", "Reopen ticket 42"),
    ("library", "How do I bake bread?"),
    ("money", "Thanks!"),
]


@pytest.mark.parametrize(("box", "question"), DECLINED, ids=[case[1] for case in DECLINED])
def test_what_no_tool_is_about_is_declined_with_what_can_be_done(ask, box, question):
    answer, session = ask(box, question)
    assert session.calls == []
    assert "cannot plan" in answer
    assert all(spec.name in answer for spec in session.bench.specs)


def test_the_part_that_cannot_be_planned_is_named(ask):
    answer, session = ask("shop", "How many widgets do we have, and tell me a joke")
    assert session.tools == ["check_stock"]
    assert "150" in answer
    assert "could not plan this part with the tools at hand: “tell me a joke”" in answer


def test_a_missing_argument_is_asked_for_and_never_invented(ask):
    answer, session = ask("weather", "What's the weather like?")
    assert session.calls == []
    assert "needs `city`" in answer


@pytest.mark.parametrize(
    ("box", "question", "calls"),
    [
        (
            "shop",
            "What's the total value of our gadget inventory?",
            [("check_stock", {"product": "gadget"}), ("calculate_total", {"product": "gadget", "quantity": 75})],
        ),
        (
            "people",
            "How many vacation days does Maria have left?",
            [("find_employee", {"name": "Maria"}), ("get_vacation_balance", {"employee_id": 17})],
        ),
    ],
)
def test_tools_are_chained_even_if_nobody_says_what_they_return(toolbox, start, box, question, calls):
    bench = toolbox(box)
    bench.specs = [replace(spec, output_schema=None) for spec in bench.specs]
    session = start(bench)
    session.ask(question)
    assert session.calls == calls


def test_several_names_go_through_the_whole_chain(ask):
    answer, session = ask("people", "How much vacation do Maria and John have?")
    assert [len(step) for step in session.steps] == [2, 2]
    assert "Maria: days left 12" in answer
    assert "John: days left 3" in answer


def test_what_no_argument_was_found_for_is_said(ask):
    answer, session = ask("shop", "What's the price of a widget in EUR?")
    assert session.tools == []
    assert "do not know what to do with “EUR”" in answer


def test_capitals_do_not_matter(ask):
    _, session = ask("shop", "HOW MANY WIDGETS DO WE HAVE?")
    assert session.calls == [("check_stock", {"product": "widget"})]


def test_a_tool_that_changes_something_is_only_called_on_command(ask):
    _, session = ask("tickets", "Is ticket 42 closed?")
    assert session.tools == ["get_ticket"]
    _, session = ask("people", "How many vacation days can John request?")
    assert "request_vacation" not in session.tools
