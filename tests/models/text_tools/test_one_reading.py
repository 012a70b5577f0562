"""A reply has one reading, wherever its stream is cut: calls of a name beside its arguments, and hostile text."""

from itertools import combinations_with_replacement

import pytest
from depth import deep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.kernel.messages import ToolSpec
from treadle.models.port import ModelReply

FORMATS = ("json", "react", "tags")
FRAGMENTS = [
    *("pay --amount 7", " Action:pay", "Action: pay", 'Action Input: {"amount": 7}', "pay", "amount: 7", "--to Ann"),
    *('{"amount": 7}', '{"name": "pay", "arguments": {"amount": 7}}', "pay(7)", "pay(amount=7)", "<pay>", "</pay>"),
    *("<tool_call>", "</tool_call>", '<tool name="pay">', "</tool>", "[TOOL_CALLS]", "print(", "to=functions.pay"),
    *("```", "```json\n", "`", "**", "- ", "> ", "1. ", '"', "[", ":", ".", "\n", "\n", " ", "  ", "\r\n", "\t"),
    *("Final Answer:", "Thought: x", "Observation:", "Tool: ", "Calling ", "Result of pay:", "<think>", "</think>"),
    *("<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant", "<|channel|>final<|message|>"),
    *("<|channel|>commentary<|message|>", "<|return|>"),
    *("analysisWe", "assistantfinal", "assistantcommentary to=functions.pay json"),
    *("<|tool_calls_section_begin|>", "<|tool_call_begin|>functions.pay:0", "<|python_tag|>", "<｜tool▁calls▁begin｜>"),
    *("hello", "\u00e9\U0001f600", "\u200b", "\u2028", "\x00", "\x1c", "\ud83d", "工具", "x" * 40),
]
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=7).map("".join) | st.text(max_size=40)


@pytest.fixture(scope="module")
def specs(protocols):
    pay = {"amount": {"type": "number"}, "to": {"type": "string"}}
    return (*protocols.specs, ToolSpec("pay", "Pay.", {"type": "object", "properties": pay, "required": ["amount"]}))


def reading(protocols, specs, text, format, pieces):
    reply = protocols.events(text, format, pieces, tools=specs)[-1]
    assert isinstance(reply, ModelReply)
    return reply.message.content


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "text", ["pay --amount 7 Action:pay", "pay --amount 7\nAction:pay", "</pay> Action:pay\namount: 7"]
)
def test_arguments_before_a_label_are_read_alike_wherever_the_reply_is_cut(protocols, specs, format, text):
    whole = reading(protocols, specs, text, format, [text])
    places = combinations_with_replacement(range(len(text) + 1), 2)
    others = [(a, b) for a, b in places if reading(protocols, specs, text, format, _cut(text, a, b)) != whole]
    assert others == []


@settings(max_examples=deep(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(format=st.sampled_from(FORMATS), text=TEXTS)
def test_any_text_cut_anywhere_has_one_reading(protocols, specs, format, text):
    whole = reading(protocols, specs, text, format, [text])
    assert reading(protocols, specs, text, format, list(text)) == whole
    for place in range(1, len(text)):
        assert reading(protocols, specs, text, format, _cut(text, place, place)) == whole


def _cut(text, *places):
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
