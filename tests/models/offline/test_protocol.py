"""The Model port: events, tool choice, landing, structured answers, determinism."""

import json

import pytest
from depth import deep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.kernel.messages import AssistantMessage, SystemMessage, Text, ToolCall, ToolMessage, ToolSpec, UserMessage
from treadle.models.offline import OfflineModel
from treadle.models.port import Model


def test_it_is_a_model_and_costs_nothing(reply, bench):
    assert isinstance(OfflineModel(), Model)
    answer = reply([UserMessage("Hello")], bench())
    assert answer.usage is not None
    assert answer.usage.total_tokens == 0
    assert answer.model == "offline"
    assert "no tools are offered" in answer.message.text


def test_tool_choice_none_writes_up_what_was_found(reply, toolbox):
    shop = toolbox("shop")
    history = [UserMessage("What's the total value of our gadget inventory?")]
    first = reply(history, shop).message
    history += [first, shop.call(first.calls[0]), UserMessage("The limit is reached. Write up what you have found.")]
    landed = reply(history, shop, tool_choice="none").message
    assert landed.calls == ()
    assert "still needs calculate_total" in landed.text


def test_a_nudge_does_not_change_the_question(reply, toolbox):
    shop = toolbox("shop")
    history = [UserMessage("What's the total value of our gadget inventory?")]
    first = reply(history, shop).message
    history += [first, shop.call(first.calls[0]), UserMessage("You seem to be going round in circles.")]
    assert [call.name for call in reply(history, shop).message.calls] == ["calculate_total"]


def test_what_is_added_while_it_works_is_answered_too(reply, toolbox):
    shop = toolbox("shop")
    history = [UserMessage("How many widgets do we have?")]
    first = reply(history, shop).message
    history += [first, shop.call(first.calls[0]), UserMessage("Also, what does a gizmo cost?")]
    second = reply(history, shop).message
    history += [second, shop.call(second.calls[0])]
    text = reply(history, shop).message.text
    assert "150" in text
    assert "5.25" in text


def test_a_question_after_a_run_that_was_cut_short_is_a_new_one(reply, toolbox):
    shop = toolbox("shop")
    history = [UserMessage("How many widgets do we have?")]
    first = reply(history, shop).message
    cancelled = ToolMessage(first.calls[0].id, "check_stock", '{"error": true, "message": "cancelled"}', is_error=True)
    history += [first, cancelled, UserMessage("What does a gizmo cost?")]
    calls = reply(history, shop).message.calls
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("get_price", {"product": "gizmo"})]


def test_a_named_tool_is_called_even_if_the_words_do_not_ask_for_it(reply, toolbox):
    calls = reply([UserMessage("gizmos")], toolbox("shop"), tool_choice="get_price").message.calls
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("get_price", {"product": "gizmo"})]


def test_required_hands_the_answer_to_the_tool_that_takes_it(reply, toolbox, bench):
    shop = toolbox("shop")
    shop.specs.append(
        ToolSpec(
            "final_answer",
            "Hands in the final answer.",
            {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
        )
    )
    history = [UserMessage("How many widgets do we have?")]
    first = reply(history, shop, tool_choice="required").message
    assert [call.name for call in first.calls] == ["check_stock"]
    history += [first, shop.call(first.calls[0])]
    last = reply(history, shop, tool_choice="required").message
    assert [call.name for call in last.calls] == ["final_answer"]
    assert "150" in json.loads(last.calls[0].arguments)["answer"]


def test_call_ids_are_unique_within_a_conversation(ask):
    _, session = ask("shop", "how many widgets and gadgets do we have?", "What does a gizmo cost?", "and widgets?")
    ids = [call.id for m in session.messages if isinstance(m, AssistantMessage) for call in m.calls]
    assert len(ids) == len(set(ids)) == 4


def test_a_structured_answer_is_filled_from_the_results(reply, toolbox):
    shop = toolbox("shop")
    schema = {
        "type": "object",
        "properties": {"product": {"type": "string"}, "quantity": {"type": "integer"}},
        "required": ["product", "quantity"],
    }
    history = [UserMessage("How many widgets do we have?")]
    first = reply(history, shop).message
    history += [first, shop.call(first.calls[0])]
    assert json.loads(reply(history, shop, output_schema=schema).message.text) == {"product": "widget", "quantity": 150}


def test_figures_keep_every_digit(reply, bench):
    box = bench()
    spec = ToolSpec("get_balance", "Gets the balance of an account.", {"type": "object", "properties": {}}, None)
    box.specs.append(spec)
    history = [
        UserMessage("What is the balance?"),
        AssistantMessage((ToolCall("call_1", "get_balance", "{}"),)),
        ToolMessage("call_1", "get_balance", '{"balance": "12345678901234567890.10"}'),
    ]
    assert "12,345,678,901,234,567,890.10" in reply(history, box).message.text
    history[-1] = ToolMessage("call_1", "get_balance", '{"balance": 0.10}')
    assert "balance 0.10" in reply(history, box).message.text


def test_results_that_are_no_json_and_lists_and_truths_are_told(reply, bench):
    box = bench()
    box.specs.append(ToolSpec("get_motd", "Gets the message of the day.", {"type": "object", "properties": {}}, None))
    for content, said in [
        ("All systems are up and running today.", "All systems"),
        ("[]", "No results"),
        ("true", "Yes"),
    ]:
        history = [
            SystemMessage("Be brief."),
            UserMessage("What is the message of the day?"),
            AssistantMessage((Text("Let me see."), ToolCall("call_1", "get_motd", ""))),
            ToolMessage("call_1", "get_motd", content),
        ]
        assert said in reply(history, box).message.text


def test_a_question_that_is_too_long_is_refused_rather_than_cut(reply, toolbox):
    answer = reply([UserMessage("What is " + "1 + " * 2500 + "1?")], toolbox("shop")).message
    assert answer.calls == ()
    assert "too long" in answer.text


NUMBERS = {"a": {"type": "number"}, "b": {"type": "number"}}
PLAIN = [
    ToolSpec("add", "Add two numbers.", {"type": "object", "properties": NUMBERS, "required": ["a", "b"]}),
    ToolSpec("multiply", "Multiply two numbers.", {"type": "object", "properties": NUMBERS, "required": ["a", "b"]}),
    ToolSpec(
        "get_quote",
        "Get the current stock price of a company by its ticker symbol.",
        {"type": "object", "properties": {"symbol": {"type": "string"}}, "required": ["symbol"]},
    ),
    ToolSpec(
        "send_email",
        "Send an email to a recipient.",
        {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("to", "subject", "body")},
            "required": ["to", "subject", "body"],
        },
    ),
]


@pytest.mark.parametrize(
    ("question", "name", "arguments"),
    [
        ("What is 3 plus 4?", "add", {"a": 3, "b": 4}),
        ("Add 5 and 9", "add", {"a": 5, "b": 9}),
        ("Multiply 6 by 7", "multiply", {"a": 6, "b": 7}),
        ("What is the stock price of AAPL?", "get_quote", {"symbol": "AAPL"}),
        (
            'Send an email to bob@example.com with subject "Hi" and body "See you"',
            "send_email",
            {"to": "bob@example.com", "subject": "Hi", "body": "See you"},
        ),
    ],
)
def test_bare_tools_without_descriptions_of_their_arguments(reply, bench, question, name, arguments):
    calls = reply([UserMessage(question)], bench(PLAIN)).message.calls
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [(name, arguments)]


WORDS = st.sampled_from(  # written as one text, as a person would
    [
        "what",
        "how",
        "many",
        "is",
        "the",
        "total",
        "value",
        "of",
        "widgets",
        "gadget",
        "gizmo",
        "compare",
        "fi_reporting",
        "bpc",
        "and",
        "also",
        "50",
        "202401",
        "company",
        "1001",
        "in",
        "Paris",
        "convert",
        "USD",
        "EUR",
        "100",
        "*",
        "+",
        "ticket",
        "42",
        "close",
        "'quoted",
        "text'",
        "Maria",
        "days",
        "then",
        "?",
        ",",
        ".",
        "by",
        "account",
        "not",
        "-1",
        "(",
        ")",
        "é",
        "数",
    ]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(WORDS, max_size=14), free=st.text(max_size=30))
def test_any_text_gets_the_same_valid_reply_twice(reply, toolbox, words, free):
    box = toolbox("everything")
    specs = {spec.name: spec for spec in box.specs}
    history = [UserMessage(" ".join([*words, free]))]
    first, second = reply(history, box), reply(history, box)
    assert first == second
    for call in first.message.calls:
        arguments, schema = json.loads(call.arguments), specs[call.name].input_schema
        assert set(schema["required"]) <= set(arguments) <= set(schema["properties"])
    assert first.message.calls or "not a language model" in first.message.text


@settings(max_examples=deep(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    result=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=8,
    ),
    failed=st.booleans(),
)
def test_any_result_is_written_up_without_a_crash(reply, toolbox, result, failed):
    shop = toolbox("shop")
    history = [
        UserMessage("What's the total value of our gadget inventory?"),
        AssistantMessage((ToolCall("call_1", "check_stock", '{"product": "gadget"}'),)),
        ToolMessage("call_1", "check_stock", json.dumps(result), is_error=failed),
    ]
    assert reply(history, shop, tool_choice="none").message.text
