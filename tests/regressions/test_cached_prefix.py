"""No cached prefix is broken without being asked: each request is held against what its provider's cache would find.

What was found, in plain runs of 40 steps:

- `tell_remaining` put Anthropic's last breakpoint behind a note that was gone in the next request (38 breaks, 1.4 times
  the ideal bill, 8 with ten calls a step) -> test_what_passes_stands_behind_the_breakpoint
- and gpt-5.6 writes to its cache at the end of a request only -> test_newer_models_of_openai_are_told_where_to_write
- the landing paid for the whole history anew at Anthropic -> test_a_landing_leaves_tools_and_choice_as_they_were,
  test_a_closing_reply_that_calls_a_tool_all_the_same_ends_the_run, test_a_short_history_has_its_tools_off_for_certain
- tools withheld broke it nine times in eighty steps -> test_a_withheld_tool_stays_described_and_is_refused,
  test_openai_is_told_which_of_the_described_tools_may_be_called, test_where_nobody_charges_a_tool_is_left_out
- an answer by the final tool broke it at the landing -> test_the_answer_by_tool_is_taken_beside_a_refused_call
- a limit took the thinking budget down in each step -> test_a_limit_changes_the_thinking_of_few_steps
- without limits the note told nothing -> test_without_limits_there_is_nothing_to_tell
- all of it -> test_no_feature_breaks_a_cached_prefix, test_a_run_taken_up_in_another_process_finds_its_prefix
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from play import Bank, copied, within
from pydantic import BaseModel

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import cache
import cache_rules

from treadle import Agent, Conversation, Limits, MemoryJournal
from treadle.kernel.messages import (
    AssistantMessage,
    Image,
    ModelSettings,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from treadle.models import ModelError, OpenAIChatModel, OpenAIResponsesModel
from treadle.models.anthropic import AnthropicCodec
from treadle.models.hosts import AZURE, DEEPSEEK, OPENAI, Host
from treadle.models.openai_chat import ChatCodec
from treadle.models.openai_responses import ResponsesCodec
from treadle.models.port import ModelRequest, Usual
from treadle.models.text_tools import TextTools
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

CLAUDE = "claude-sonnet-4-5"
EPHEMERAL = {"type": "ephemeral"}
TOOLS = tuple(ToolSpec(name, "does it", {"type": "object", "properties": {}}) for name in ("look", "count"))
KEPT = [name for name in cache.FEATURES if not name.endswith("*")]


class Answer(BaseModel):
    value: int


def body_of(codec: Any, request: ModelRequest, model: str = CLAUDE) -> dict[str, Any]:
    return json.loads(codec.encode(request, model, True))


def history(results: int = 30) -> list[Any]:
    """A history that is long enough to be cached."""
    said: list[Any] = [SystemMessage("rules"), UserMessage("go")]
    for number in range(results):
        said.append(AssistantMessage((ToolCall(f"c{number}", "look", "{}"),)))
        said.append(ToolMessage(f"c{number}", "look", "text " * 50))
    return said


def narrowed(*names: str, choice: str = "auto", results: int = 30, usual: str = "auto") -> ModelRequest:
    """A request that takes away all tools but `names`."""
    left = tuple(spec for spec in TOOLS if spec.name in names)
    return ModelRequest(history(results), left, choice, usual=Usual(TOOLS, usual))


@pytest.fixture
def short(monkeypatch):
    """Runs that are long enough for what is to be seen, and no longer."""
    monkeypatch.setattr(cache, "STEPS", 18)


@pytest.mark.parametrize("provider", cache.PROVIDERS)
def test_no_feature_breaks_a_cached_prefix(provider, short):
    for feature in KEPT:
        bill = cache.billed(feature, provider)
        assert bill.requests >= 18, feature
        assert bill.breaks == 0, feature
        assert bill.times < 1.02, feature


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai 5.6"])
def test_the_simulation_sees_a_broken_prefix(provider, short):
    assert cache.billed("prepare_step: tools *", provider).breaks >= 6
    assert cache.billed("summaries *", provider).times > 0.9


def test_the_rules_of_anthropic_are_those_that_are_published():
    def charged(rules, *blocks, **fields):
        turn = {"role": "user", "content": list(blocks)}
        return rules.ask(ModelRequest(()), {"tools": [big], "messages": [turn]} | fields)

    big: dict[str, Any] = {"type": "text", "text": "x" * 8_000, "cache_control": EPHEMERAL}
    small = {"type": "text", "text": "x"}
    rules = cache_rules.AnthropicCache()
    assert charged(rules, big).read == 0
    assert charged(rules, big, small, big).read == charged(rules, big).read > 4_000
    assert charged(rules, big, tool_choice={"type": "none"}).read == charged(rules, big).read // 2, "the tools alone"
    assert charged(rules, big, tools=[small]).read == 0
    far = [*[small] * 20, big]
    unmarked = [*[small] * 20, {"type": "text", "text": "x" * 8_000}]
    last: dict[str, Any] = {"type": "text", "text": "y", "cache_control": EPHEMERAL}
    rules = cache_rules.AnthropicCache()
    charged(rules, *far)
    assert charged(rules, *unmarked, *[small] * 18, last).read > 4_000
    assert charged(rules, *unmarked, *[small] * 40, last).read < 4_000, "further than it looks back"
    tiny = cache_rules.AnthropicCache()
    assert [charged(tiny, last, tools=[small]).written for _ in range(2)] == [0, 0]
    with pytest.raises(ValueError, match="5 breakpoints"):
        charged(tiny, last, last, last, last)


def test_what_passes_stands_behind_the_breakpoint():
    note = UserMessage("(What is left of this task's limits: 3 steps, “naïve” \ud83d.)")
    body = body_of(AnthropicCodec(), ModelRequest([*history(), note], TOOLS, passing=1))
    *_, result, last = body["messages"][-1]["content"]
    assert result["type"] == "tool_result"
    assert result["cache_control"] == EPHEMERAL
    assert "cache_control" not in last
    assert body["messages"][-3]["content"][-1]["cache_control"] == EPHEMERAL
    alone = body_of(AnthropicCodec(), ModelRequest([UserMessage("go"), AssistantMessage(), note], passing=1))
    assert [turn["content"][0].get("cache_control") for turn in alone["messages"]] == [EPHEMERAL, None]


@pytest.mark.parametrize(("codec", "kind"), [(ChatCodec, "text"), (ResponsesCodec, "input_text")])
def test_newer_models_of_openai_are_told_where_to_write(codec, kind):
    def items(messages, model="gpt-5.6-mini", passing=1, host=OPENAI):
        body = body_of(codec(host=host), ModelRequest([*messages, note], passing=passing), model)
        return body.get("messages") or body["input"]

    def part(text):
        return [{"type": kind, "text": text, "prompt_cache_breakpoint": {"mode": "explicit"}}]

    note = UserMessage("(What is left …)")
    said = items(history(3))
    name = "content" if codec is ChatCodec else "output"
    marked = [item.get("content") or item.get("output") for item in said if "breakpoint" in json.dumps(item)]
    assert marked == [part("text " * 50)] * 2
    assert [said[-2][name], said[-4][name]] == marked
    assert said[-1]["content"] == note.content
    tricky = [UserMessage('say "content":"x"} “naïve”'), AssistantMessage((Text('"output":"'),)), UserMessage("")]
    assert [item["content"] for item in items(tricky) if item["role"] == "user"] == [
        part('say "content":"x"} “naïve”'),
        part(""),
        note.content,
    ]
    picture = UserMessage((Text("see"), Image(url="https://example.org/a.png")))
    assert items([picture])[0]["content"][-1]["prompt_cache_breakpoint"] == {"mode": "explicit"}
    for plain in (items(tricky, "gpt-5"), items(tricky, passing=0), items(tricky, host=AZURE), items([])):
        assert "breakpoint" not in json.dumps(plain)


async def test_a_run_says_what_passes():
    model = ScriptedModel([[("look", {"key": "a"})], "done"])
    await within(Agent(model, tools=Bank().tools, tell_remaining=True).run("go"))
    assert [request.passing for request in model.requests] == [1, 1]
    model = ScriptedModel([[("look", {"key": "a"})], "done"])
    await within(Agent(model, tools=Bank().tools).run("go"))
    assert [request.passing for request in model.requests] == [0, 0]


async def test_without_limits_there_is_nothing_to_tell():
    """The note was "(What is left of this task's limits: .)"."""
    model = ScriptedModel(["done"])
    await within(Agent(model, limits=Limits(None, None, None), tell_remaining=True).run("go"))
    assert [message.text for message in model.requests[0].messages] == ["go"]
    assert model.requests[0].passing == 0


@pytest.mark.parametrize(
    ("usual", "choice", "sent"),
    [
        ("auto", "none", {"type": "auto"}),
        ("required", "none", {"type": "none"}),
        ("look", "none", {"type": "none"}),
        ("required", "auto", {"type": "any"}),
        ("look", "auto", {"type": "auto"}),
    ],
)
def test_a_landing_leaves_tools_and_choice_as_they_were(usual, choice, sent):
    body = body_of(AnthropicCodec(), narrowed("count", choice=choice, usual=usual))
    assert [spec["name"] for spec in body["tools"]] == ["look", "count"]
    assert body["tool_choice"] == sent
    marked = "cache_control" in json.dumps(body["messages"])
    assert marked == (sent["type"] == {"required": "any"}.get(usual, usual)), "what is written for one step is not read"


def test_a_short_history_has_its_tools_off_for_certain():
    body = body_of(AnthropicCodec(), narrowed("look", "count", choice="none", results=2))
    assert body["tool_choice"] == {"type": "none"}


def test_without_caching_nothing_is_kept_for_it():
    body = body_of(AnthropicCodec(cache=None), narrowed("count", choice="none"))
    assert [spec["name"] for spec in body["tools"]] == ["count"]
    assert body["tool_choice"] == {"type": "none"}


async def test_a_closing_reply_that_calls_a_tool_all_the_same_ends_the_run():
    bank = Bank()
    model = ScriptedModel(lambda request: ("so far", [("look", {"key": str(request.step)})]))
    result = await within(Agent(model, tools=bank.tools, limits=Limits(steps=4)).run("go"))
    assert (result.stop.reason, result.text) == ("max_steps", "so far")
    assert len(model.requests) == 4
    assert bank.ran == ["look 0", "look 1", "look 2"]
    assert model.requests[3].usual == Usual(model.requests[0].tools, "auto")
    assert [request.usual for request in model.requests[:3]] == [None] * 3


async def test_a_withheld_tool_stays_described_and_is_refused():
    bank, bodies, codec = Bank(), [], AnthropicCodec()

    def stubborn(request):
        bodies.append(body_of(codec, request))
        return "summary" if request.tool_choice == "none" else [("look", {"key": "a"})]

    result = await within(Agent(ScriptedModel(stubborn), tools=bank.tools).run("go"))
    assert result.stop.reason == "no_progress"
    withheld = next(step for step in result.steps if step.withheld)
    assert withheld.calls[0].result.text.startswith('{"error":true,"message":"look is withheld in this step.')
    assert bank.times("look") == len(result.steps) - 2, "neither in that step, nor in the closing one"
    assert len({json.dumps(body["tools"]) for body in bodies}) == 1


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_openai_is_told_which_of_the_described_tools_may_be_called(choice):
    request = narrowed("count", choice=choice)
    chat = body_of(ChatCodec(host=OPENAI), request)
    assert [spec["function"]["name"] for spec in chat["tools"]] == ["look", "count"]
    named = [{"type": "function", "function": {"name": "count"}}]
    assert chat["tool_choice"] == {"type": "allowed_tools", "allowed_tools": {"mode": choice, "tools": named}}
    responses = body_of(ResponsesCodec(host=OPENAI), request)
    assert [spec["name"] for spec in responses["tools"]] == ["look", "count"]
    only = [{"type": "function", "name": "count"}]
    assert responses["tool_choice"] == {"type": "allowed_tools", "mode": choice, "tools": only}


@pytest.mark.parametrize("codec", [ChatCodec, ResponsesCodec])
def test_the_choice_itself_is_no_part_of_what_openai_caches(codec):
    body = body_of(codec(host=OPENAI), narrowed("look", "count", choice="none"))
    assert (len(body["tools"]), body["tool_choice"]) == (2, "none")


@pytest.mark.parametrize("host", [DEEPSEEK, AZURE])
def test_where_a_choice_of_tools_may_be_unknown_words_must_do(host):
    body = body_of(ChatCodec(host=host), narrowed("count"))
    assert len(body["tools"]) == 2
    assert "tool_choice" not in body
    assert "prompt_cache_key" not in body


@pytest.mark.parametrize("codec", [ChatCodec, ResponsesCodec])
def test_where_nobody_charges_a_tool_is_left_out(codec):
    assert len(body_of(codec(host=Host()), narrowed("count"))["tools"]) == 1


async def test_the_answer_by_tool_is_taken_beside_a_refused_call():
    bank = Bank()

    def turn(request):
        calls = [("look", {"key": str(request.step)})]
        return [*calls, ("final_answer", {"value": 7})] if request.usual else calls

    agent = Agent(ScriptedModel(turn), tools=bank.tools, output=Answer, output_mode="tool", limits=Limits(steps=3))
    result = await within(agent.run("go"))
    assert (result.stop.reason, result.output) == ("max_steps", Answer(value=7))
    assert bank.ran == ["look 0", "look 1"]


async def test_a_model_in_words_keeps_its_manual_and_the_server_is_told_of_no_tools():
    inner = ScriptedModel([f"reply {number}" for number in range(2)])
    model = TextTools(inner)
    for request in (ModelRequest(history(), TOOLS), narrowed("count")):
        _ = [event async for event in model.stream(request)]
    assert inner.requests[0].messages[0] == inner.requests[1].messages[0], "the manual"
    assert inner.requests[1].usual is None


async def test_a_run_taken_up_in_another_process_finds_its_prefix():
    given = cache.PROVIDERS["anthropic"]
    bill, journal = cache_rules.Bill(given.cache()), MemoryJournal()

    left = []

    async def turn(request):
        if request.step == 10 and not left:
            left.append(await copied(journal))
            raise ModelError("the process dies here")
        return cache.looking(steps=14)(request)

    broken = await cache.agent(cache.Billed(given, bill, turn), journal=journal, retries=0).run("go")
    resumed = await cache.agent(cache.Billed(given, bill, turn), journal=left[0]).resume(broken.run_id)
    assert resumed.finished
    assert (bill.requests, bill.breaks) == (16, 0)


async def test_the_key_is_the_same_in_a_conversation_and_another_in_the_next():
    keys, codec = [], ResponsesCodec(host=OPENAI)

    def turn(request):
        keys.append(body_of(codec, request, "gpt-5")["prompt_cache_key"])
        assert keys[-1] == body_of(ResponsesCodec(host=OPENAI), request, "gpt-5")["prompt_cache_key"]
        return "done" if request.step else [("look", {"key": "a"})]

    agent, conversation = Agent(ScriptedModel(turn), tools=Bank().tools, tell_remaining=True), Conversation()
    await within(agent.run("one", conversation=conversation))
    await within(agent.run("two", conversation=conversation))
    assert len(keys) == 4
    assert len(set(keys)) == 1
    await within(agent.run("three"))
    assert len(set(keys)) == 2
    assert all(len(key) <= 64 for key in keys)


@pytest.mark.parametrize("model_class", [OpenAIChatModel, OpenAIResponsesModel])
@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"cache_key": "mine"}, {"prompt_cache_key": "mine"}),
        ({"cache": "24h"}, {"prompt_cache_retention": "24h"}),
        ({"cache": "in_memory"}, {"prompt_cache_retention": "in_memory"}),
        ({"cache": "12h"}, {"prompt_cache_options": {"ttl": "12h"}}),
        ({}, {}),
    ],
)
def test_key_and_retention_are_arguments_of_openais_models(model_class, options, fields):
    model = model_class("gpt-5", base_url="http://127.0.0.1:1/v1", api_key="none", **options)
    body = body_of(model.codec, ModelRequest([UserMessage("go")]), "gpt-5")
    assert {name: value for name, value in body.items() if name.startswith("prompt_cache")} == fields


def test_extra_fields_go_before_the_key():
    settings = ModelSettings(extra={"prompt_cache_key": "theirs"})
    request = ModelRequest([UserMessage("go")], settings=settings)
    assert body_of(ChatCodec(host=OPENAI), request)["prompt_cache_key"] == "theirs"


@pytest.mark.parametrize(("tokens", "budget"), [(20_000, 16_384), (17_000, 8_192), (9_000, 4_096), (2_048, 1_024)])
def test_a_limit_changes_the_thinking_of_few_steps(tokens, budget):
    """The budget was taken down with what was left of the limit, so that each step paid for the whole history."""
    held = AnthropicCodec().held(ModelSettings(thinking="high"), CLAUDE, tokens)
    assert body_of(AnthropicCodec(), ModelRequest([UserMessage("go")], settings=held))["thinking"] == {
        "type": "enabled",
        "budget_tokens": budget,
    }
