"""What other libraries call things: each word is told what it is here, and that is there."""

import copy
import dataclasses
import importlib
import inspect
import pickle
import re
from functools import partial

import pytest

import treadle
from treadle import (
    Agent,
    Alternative,
    AskUser,
    Conversation,
    File,
    Image,
    Limits,
    LiveRun,
    Misuse,
    ModelSettings,
    Pending,
    Retries,
    Retry,
    RunResult,
    StepSettings,
    handoff,
)
from treadle.mcp import MCPServer
from treadle.mcp.secrets import Secrets
from treadle.misnamed import ARGUMENTS, OF_AGENTS, OF_RESULTS, OF_RESUMED, OF_RUNS, PUBLIC
from treadle.testing import ScriptedModel


def result() -> RunResult:
    return Agent(ScriptedModel(["It is 42."])).run_sync("What is it?")


@pytest.mark.parametrize(
    ("words", "takes"),
    [(ARGUMENTS, (Agent, Agent.run)), (OF_RUNS, (Agent, Agent.run)), (OF_RESUMED, (Agent, Agent.run, Agent.resume))],
)
def test_what_an_argument_is_here_is_one(words, takes):
    known = {name for one in takes for name in inspect.signature(one).parameters} - {"self", "unknown"}
    for word, meant in words.items():
        if way := re.match(r"agent\.(\w+)", meant):
            assert callable(getattr(Agent, way[1])), meant
        else:
            assert re.match(r"\w+", meant)[0] in known, (word, meant)


@pytest.mark.parametrize("kind", [Limits, ModelSettings, Retries])
def test_what_a_field_is_called_elsewhere_is_told_and_is_one(kind):
    names = kind.__struct_fields__
    for word, meant in (*kind._others_words.items(), *((f"max_{name}", name) for name in names)):
        assert meant in names
        if word not in names:
            with pytest.raises(Misuse, match=rf"^{kind.__name__} takes no argument '{word}'; did you mean {meant}=\?$"):
                kind(**{word: 3})


@pytest.mark.parametrize("word", [*ModelSettings._others_words, "max_output_tokens", "max_completion_tokens"])
def test_what_a_setting_is_called_elsewhere_is_told_with_its_option(word):
    meant = ModelSettings.called(word)
    assert meant in ModelSettings.__struct_fields__
    with pytest.raises(Misuse, match=f"^ModelSettings takes no argument '{word}'; did you mean {meant}=.$"):
        ModelSettings(**{word: 3})
    with pytest.raises(Misuse, match=rf"did you mean settings=ModelSettings\({meant}=…\)"):
        Agent(ScriptedModel([]), **{word: 3})


@pytest.mark.parametrize("kind", [Image, File, Retry, Alternative, AskUser, ModelSettings, Retries])
def test_what_a_small_value_does_not_take_is_refused_with_what_it_takes(kind):
    with pytest.raises(
        Misuse, match=f"^{kind.__name__} takes no argument 'xyzzy'; it takes {kind.__struct_fields__[0]}"
    ):
        kind(xyzzy=3)


@pytest.mark.parametrize(
    ("make", "word", "told"),
    [
        ("as_tool", "tool_name", "did you mean name?"),
        ("as_tool", "tool_description", "did you mean description?"),
        ("as_tool", "needs_aproval", "did you mean needs_approval?"),
        ("as_tool", "limits", "it is the agent that takes limits: Agent(…)"),
        ("handoff", "tool_name_override", "did you mean name?"),
        ("handoff", "deps", "it is a run that takes deps: agent.run(…, deps=…)"),
        ("StepSettings", "activeTools", "did you mean tools?"),
        ("StepSettings", "toolChoice", "did you mean tool_choice?"),
        ("StepSettings", "system_prompt", "did you mean instructions?"),
        ("StepSettings", "temperature", "did you mean settings=ModelSettings(temperature=…)?"),
        ("StepSettings", "xyzzy", "it takes model, instructions, tools, tool_choice, messages, settings"),
    ],
)
def test_what_a_way_to_give_an_agent_on_or_a_step_does_not_take_is_told(make, word, told):
    """It was a bare TypeError: "got an unexpected keyword argument"."""
    agent = Agent(ScriptedModel([]))
    made = {"as_tool": agent.as_tool, "handoff": partial(handoff, agent), "StepSettings": StepSettings}[make]
    with pytest.raises(Misuse, match=f"^{make} takes no argument '{word}'; {re.escape(told)}$"):
        made(**{word: 3})


def test_settings_of_a_step_are_still_copied_pickled_and_changed():
    one = StepSettings(tools=["look"])
    for same in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one), dataclasses.replace(one)):
        assert same == one
    assert dataclasses.replace(one, tool_choice="look") == StepSettings(tools=["look"], tool_choice="look")


@pytest.mark.parametrize(
    ("word", "meant"),
    [("reasoning_effort", r"settings=ModelSettings\(thinking=…\)"), ("max_cost", r"limits=Limits\(usd=…\)")],
)
def test_a_part_of_an_option_is_told_with_its_option(word, meant):
    with pytest.raises(Misuse, match=f"did you mean {meant}"):
        Agent(ScriptedModel([]), **{word: 3})


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("maxSteps", "did you mean limits=Limits(steps=…)?"),
        ("maxOutputTokens", "did you mean settings=ModelSettings(max_tokens=…)?"),
        ("onStepFinish", "it is a run that takes on_event: agent.run(…, on_event=…)"),
        ("experimental_context", "it is a run that takes deps: agent.run(…, deps=…)"),
        ("output_retries", "did you mean limits=Limits(consecutive_errors=…)?"),
        ("toolsets", "did you mean tools?"),
    ],
)
def test_what_the_pages_about_others_name_is_told_however_it_is_spelled(word, meant):
    with pytest.raises(Misuse, match=f"^Agent takes no argument '{word}'; {re.escape(meant)}$"):
        Agent(ScriptedModel([]), **{word: 3})


@pytest.mark.parametrize("word", OF_RESULTS)
def test_what_an_attribute_of_a_result_is_here_is_one(word):
    found = result()
    with pytest.raises(AttributeError, match=re.escape(f"no attribute {word!r}; did you mean {OF_RESULTS[word]}?")):
        getattr(found, word)
    assert hasattr(found, re.match(r"\w+", OF_RESULTS[word])[0])


@pytest.mark.parametrize("word", OF_AGENTS)
def test_what_an_attribute_of_an_agent_is_here_is_there(word):
    agent, meant = Agent(ScriptedModel([])), OF_AGENTS[word]
    with pytest.raises(AttributeError, match=re.escape(f"no attribute {word!r}; did you mean {meant}?")):
        getattr(agent, word)
    places = [re.findall(rf"{where}(\w+)", meant) for where in (r"treadle\.", r"Agent\(…, ", r"agent\.", r"^")]
    public, argument, method, own = places
    assert all(name in treadle.__all__ for name in public), meant
    assert all(name in inspect.signature(Agent).parameters for name in argument), meant
    assert all(hasattr(agent, name) for name in method), meant
    assert public or argument or method or hasattr(agent, own[0]), meant


@pytest.mark.parametrize("word", PUBLIC)
def test_what_a_public_name_is_here_can_be_imported_from_where_it_says(word):
    meant = PUBLIC[word]
    module, _, name = meant.rpartition(".") if meant.startswith("treadle.") else ("treadle", "", meant)
    assert hasattr(importlib.import_module(module), re.match(r"\w+", name)[0])
    with pytest.raises(ImportError, match=re.escape(f"no public name {word!r}; did you mean {meant}?")):
        exec(f"from treadle import {word}")
    with pytest.raises(AttributeError, match=re.escape(f"did you mean {meant}?")):
        getattr(treadle, word)
    assert not hasattr(treadle, word)


@pytest.mark.parametrize("owner", [LiveRun, Pending, Conversation])
def test_what_an_attribute_of_anything_else_is_here_is_there(owner):
    made = {
        LiveRun: lambda: Agent(ScriptedModel([])).stream("Hello?"),
        Pending: lambda: Pending("call_0", "look", {}, "approval"),
        Conversation: Conversation,
    }[owner]()
    for word, meant in owner._other_names.items():
        with pytest.raises(AttributeError, match=re.escape(f"no attribute {word!r}; did you mean {meant}?")):
            getattr(made, word)
        if way := re.match(r"agent\.(\w+)", meant):
            assert callable(getattr(Agent, way[1])), meant
        elif option := re.match(r"Agent\(…, (\w+)=", meant):
            assert option[1] in inspect.signature(Agent).parameters, meant
        elif not meant.startswith(("async for", "a new")):
            assert hasattr(owner, re.match(r"\w+", meant)[0]), meant


def test_a_call_that_waits_is_still_plain_data():
    one = Pending("call_0", "look", {"a": 1}, "approval", nonce=3)
    assert pickle.loads(pickle.dumps(one)) == copy.copy(one) == copy.deepcopy(one) == one


@pytest.mark.parametrize("given", [("uvx",), (), ("uvx", ["mcp-server-time"])])
def test_a_server_that_is_made_by_its_class_is_told_how_it_is_made(given):
    with pytest.raises(Misuse, match=r"an MCPServer is made by MCPServer\.stdio\(program, …, name=…\)"):
        MCPServer(*given)
    with pytest.raises(Misuse, match=r"or MCPServer\.http\(url, name=…\)"):
        MCPServer(url="http://localhost/mcp", name="time")


def test_a_server_of_ones_own_class_is_made_of_what_that_says():
    class Local(MCPServer):
        def __init__(self, *, port):
            super().__init__("local", lambda _: None, Secrets({}), f"localhost:{port}", {})

    assert repr(Local(port=8000)) == "MCPServer('local', 'localhost:8000')"


@pytest.mark.parametrize(
    ("name", "meant"), [("prompt", "input"), ("question", "input"), ("approved", "approve"), ("answers", "results=")]
)
def test_a_stream_is_of_a_new_run_or_of_one_that_goes_on(name, meant):
    """Who asked by prompt= was told of message=, which a new run does not take."""
    with pytest.raises(Misuse, match=f"takes no argument '{name}'; did you mean {meant}"):
        Agent(ScriptedModel([])).stream(**{name: "Hello?"})


def test_a_server_may_be_copied():
    assert copy.copy(MCPServer.http("http://localhost/mcp", name="time")).name == "time"


def test_what_nobody_calls_so_is_missing_as_in_any_object():
    for owner in (result(), Agent(ScriptedModel([]))):
        assert not hasattr(owner, "xyzzy")
        with pytest.raises(AttributeError, match=r"has no attribute 'xyzzy'$"):
            owner.xyzzy  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'xyzzy'"):
        exec("from treadle import xyzzy")


def test_a_property_of_ones_own_that_fails_says_what_of():
    class Shop(Agent):
        @property
        def runs(self):
            return self.till.runs

        @property
        def owner(self):
            return None.name

    shop = Shop(ScriptedModel([]))
    for name, missing in (("runs", "'Shop' object has no attribute 'till'"), ("owner", "'NoneType' object has no")):
        with pytest.raises(AttributeError, match=f"^{missing}"):
            getattr(shop, name)


def test_what_another_base_of_a_class_of_ones_own_knows_is_there():
    class Till:
        def __getattr__(self, name):
            return f"the {name} of the till"

    class Shop(Agent, Till):
        pass

    shop = Shop(ScriptedModel([]))
    assert (shop.owner, shop.runs) == ("the owner of the till", "the runs of the till")


def test_a_result_is_still_copied_and_pickled_whole():
    found = result()
    for again in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert (again.text, again.to_dict()) == (found.text, found.to_dict())


def test_the_name_of_a_conversation_is_no_message():
    with pytest.raises(Misuse, match="Conversation takes messages, and its name as name=; it was given 'order 17'"):
        Conversation("order 17")


def test_a_system_message_of_a_conversation_is_told_to_be_the_agents_instructions():
    with pytest.raises(AttributeError, match=r"did you mean Agent\(…, instructions=…\)"):
        Conversation().add_system("Be brief.")
