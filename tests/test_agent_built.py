"""What is refused when an agent is built: words of others, dependencies that cannot be, answers that do not fit."""

import copy
import inspect
import pickle
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Protocol

import pytest
from pydantic import BaseModel

from treadle import (
    Agent,
    ClearToolResults,
    Condition,
    Injected,
    MemoryJournal,
    Misuse,
    Skill,
    SkillRegistry,
    ToolContext,
    handoff,
    has_tool_call,
    step_count,
    tool,
    tool_call_count,
)
from treadle.testing import ScriptedModel


@dataclass
class Shop:
    customer: str


@dataclass
class Branch(Shop):
    town: str


@dataclass
class Bank:
    account: str


@dataclass
class Both(Branch, Bank):
    pass


@tool
def order(product: str, shop: Injected[Shop]) -> str:
    """Orders."""
    return f"{product} for {shop.customer}"


@tool
def send(product: str, context: ToolContext[Branch]) -> str:
    """Sends."""
    return f"{product} to {context.deps.town}"


@tool
def pay(amount: int, bank: Injected[Bank]) -> str:
    """Pays."""
    return f"{amount} from {bank.account}"


@tool
def either(amount: int, given: Injected[Bank | Shop]) -> str:
    """Takes what there is."""
    return type(given).__name__


@tool
def anything(context: ToolContext) -> str:
    """Takes anything."""
    return str(context.deps)


class HasTown(Protocol):
    town: str


@tool
def locate(place: Injected[HasTown]) -> str:
    """Locates."""
    return place.town


def built(*tools: Any, **options: Any) -> Agent:
    return Agent(ScriptedModel([[(one.name, {}) for one in tools], "done"]), tools=tools, **options)


@pytest.mark.parametrize(
    ("tools", "deps_type"),
    [
        ([order, send], None),
        ([order, anything], None),
        ([pay, either], None),
        ([order, pay], Both),
        ([order, send, pay, either], Both),
        ([order, send], Branch),
        ([order, locate], None),
        ([locate], Branch),
        ([anything], dict),
        ([], Shop),
    ],
)
def test_tools_that_one_value_can_serve_go_together(tools, deps_type):
    assert set(built(*tools, deps_type=deps_type).tools) == {one.name for one in tools}


@pytest.mark.parametrize(
    ("tools", "deps_type", "says"),
    [
        ([order, pay], None, "order takes Shop and pay takes Bank"),
        ([order, send], Shop, "send takes dependencies of type Branch, and deps_type is Shop"),
        ([order], dict, "order takes dependencies of type Shop, and deps_type is dict"),
        ([either], dict, "either takes dependencies of type Bank or Shop"),
    ],
)
def test_tools_that_no_one_value_can_serve_are_refused(tools, deps_type, says):
    with pytest.raises(Misuse, match=says):
        built(*tools, deps_type=deps_type)


@pytest.mark.parametrize("below", [lambda agent: agent.as_tool(), handoff], ids=["as_tool", "handoff"])
def test_the_dependencies_of_agents_below_are_those_of_the_run(below):
    with pytest.raises(Misuse, match=r"pay takes Bank|order takes Shop"):
        built(order, below(built(pay, name="teller")))
    built(order, below(built(send, name="sender")))


def test_the_class_of_the_dependencies_is_a_class():
    with pytest.raises(Misuse, match="deps_type takes the class of the dependencies"):
        built(deps_type=Shop("Ada"))


def test_a_tool_is_given_the_dependencies_of_the_run():
    agent = Agent(ScriptedModel([[("order", {"product": "tea"})], "done"]), tools=[order], deps_type=Branch)
    result = agent.run_sync("go", deps=Branch("Ada", "Ulm"))
    assert result.tool_calls_made[0].result.text == "tea for Ada"


class Bill(BaseModel):
    amount: Decimal


class Paid(Bill):
    account: str


@pytest.mark.parametrize(
    ("own", "others"),
    [(Bill, Bill), (Bill, Paid), (Bill, None), (Bill | None, Bill), (list[int], list[int]), (None, Bill)],
)
def test_a_hand_off_to_an_agent_whose_answer_fits_is_taken(own, others):
    assert "transfer_to_other" in built(handoff(built(name="other", output=others)), output=own).tools


@pytest.mark.parametrize(("own", "others"), [(Paid, Bill), (Bill, Bill | None), (list[int], list[str]), (Bill, int)])
def test_a_hand_off_to_an_agent_whose_answer_is_of_another_type_is_refused(own, others):
    with pytest.raises(
        Misuse, match=r"transfer_to_other hands the conversation on, and the answer of other is a .*same output="
    ):
        built(handoff(built(name="other", output=others)), output=own)
    built(built(name="other", output=others).as_tool(), output=own)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("system_prompt", "instructions"),
        ("output_type", "output"),
        ("result_type", "output"),
        ("max_steps", r"limits=Limits\(steps=…\)"),
        ("max_iterations", r"limits=Limits\(steps=…\)"),
        ("max_turns", r"limits=Limits\(steps=…\)"),
        ("temperature", "settings="),
        ("handoffs", r"tools=\[handoff"),
        ("dependencies", "deps_type"),
        ("deps", r"deps_type.*run\(…, deps=…\)"),
        ("instruction", "instructions"),
        ("limit", "limits"),
        ("stop_wen", "stop_when"),
        ("max_tool_calls", r"limits=Limits\(tool_calls=…\)"),
        ("timeout", r"limits=Limits\(seconds=…\)"),
        ("top_p", r"settings=ModelSettings\(top_p=…\)"),
        ("interrupt_before", r"approvals=\[ask_before"),
        ("context_schema", "deps_type"),
        ("tracing", r"telemetry=Telemetry\(\)"),
        ("checkpointer", "journal"),
    ],
)
def test_a_word_that_is_no_argument_says_what_was_probably_meant(word, meant):
    with pytest.raises(Misuse, match=rf"Agent takes no argument '{word}'; did you mean {meant}"):
        Agent(ScriptedModel([]), **{word: 5})


def test_a_word_that_is_like_no_other_is_refused_without_a_guess():
    with pytest.raises(Misuse, match=r"Agent takes no argument 'zzzz'$"):
        Agent(ScriptedModel([]), zzzz=5)


def test_what_people_call_iterations_is_bounded_without_a_word():
    agent = Agent(ScriptedModel([]))
    assert agent.limits.steps == 20
    assert "20 steps" in (Agent.__doc__ or "")
    assert "iteration" in (Agent.__doc__ or "")


def test_a_type_that_is_no_class_is_an_answer_too():
    agent = Agent(ScriptedModel(['"no"']), output=Literal["yes", "no"])
    assert agent.run_sync("go").output == "no"


@pytest.mark.parametrize("what", [Agent, Agent.run, Agent.resume, Agent.as_tool, handoff], ids=lambda it: it.__name__)
def test_every_argument_is_explained(what):
    names = [name for name in inspect.signature(what).parameters if name not in ("self", "unknown")]
    explained = [name for name in names if re.search(rf"^\s+{name}: ", what.__doc__, re.MULTILINE)]
    assert explained == names


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"tools": [None]}, "tools takes functions and tools; it was given None"),
        ({"tools": [{"name": "look", "description": "Looks."}]}, r"load_tools\(\[…\], execute\) makes tools"),
        ({"tools": {"look": {"description": "Looks."}}}, r"load_tools\(\[…\], execute\) makes tools"),
        ({"output": {"type": "object"}}, r"output takes a type .*; it was given .*external_tool\(…\)"),
        ({"output": {"type": "str"}}, "output takes a type"),
        ({"eager": "no"}, "eager takes True or False; it was given 'no'"),
        ({"tell_remaining": 1}, "tell_remaining takes True or False; it was given 1"),
        ({"watch_progress": None}, "watch_progress takes True or False; it was given None"),
        ({"on_event": print}, r"it is a run that takes on_event: agent\.run\(…, on_event=…\)"),
        ({"message_history": []}, r"it is a run that takes conversation=Conversation\(messages\)"),
    ],
)
def test_what_an_agent_cannot_be_made_of_is_refused_with_what_would_be_right(given, told):
    with pytest.raises(Misuse, match=told):
        Agent(ScriptedModel([]), **given)


def test_a_model_of_the_offline_one_is_told_from_a_provider_that_there_is_not():
    with pytest.raises(Misuse, match=r"'offline:small' names a model, and there is one .*: write 'offline'"):
        Agent("offline:small")


@pytest.mark.parametrize(
    ("name", "told"), [("session", r"conversation=Conversation\(\)"), ("stream", r"agent\.stream\(…\)")]
)
def test_a_run_is_told_where_its_conversation_and_its_stream_are(name, told):
    with pytest.raises(Misuse, match=f"run_sync takes no argument '{name}'; did you mean {told}"):
        Agent(ScriptedModel([])).run_sync("Hello?", **{name: True})


@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy])
def test_an_agent_for_another_process_says_what_to_do(copied: Any) -> None:
    agent = Agent(ScriptedModel(["done", "done"]))
    with pytest.raises(
        Misuse, match="an agent cannot be pickled, or copied with all that it has: let each process make"
    ):
        copied(agent)
    assert copy.copy(agent).with_journal(MemoryJournal()).run_sync("Go.").text == "done"


def test_a_condition_on_calls_of_a_tool_that_the_agent_has_not_is_refused():
    """It would never hold, so that the run went on to its limits; turned round, it would end it at once."""
    clerk = Agent(ScriptedModel(["done"]), name="clerk", tools=[anything])
    tools = [locate, clerk.as_tool(), handoff(clerk)]
    for name in ("locate", "clerk", "transfer_to_clerk"):
        Agent("offline", tools=tools, stop_when=[has_tool_call(name), tool_call_count(2, name)])
    Agent(
        "offline", tools=[locate], context=ClearToolResults(high=9000, low=5000), stop_when=has_tool_call("read_result")
    )
    Agent("offline", skills=[Skill("places", "", [locate])], stop_when=~has_tool_call("locate"))
    for condition in (
        has_tool_call("lokate"),
        tool_call_count(2, "lokate"),
        step_count(3) | (~has_tool_call("lokate") & step_count(2)),
        [step_count(3), has_tool_call("lokate")],
    ):
        with pytest.raises(
            Misuse, match=re.escape("stop_when names a tool 'lokate'; this agent has locate, clerk, tr")
        ):
            Agent("offline", tools=tools, stop_when=condition)
    with pytest.raises(Misuse, match="and not at those of agents below"):
        Agent("offline", tools=tools, stop_when=has_tool_call("anything"))
    with pytest.raises(Misuse, match="that one's arguments are the answer"):
        Agent("offline", tools=[locate], output=Shop, output_mode="tool", stop_when=has_tool_call("final_answer"))
    with pytest.raises(Misuse, match="this agent has none"):
        Agent("offline", stop_when=has_tool_call("locate"))

    class Mine(Condition):
        def __init__(self) -> None:
            self.tools = "lokate"

    Agent("offline", tools=[locate], stop_when=Mine())


def test_a_condition_may_look_for_calls_of_a_tool_that_is_registered_later():
    registry = SkillRegistry([Skill("orders", "", [order])])
    script = ScriptedModel([[("locate", {"place": "x"})], [("anything", {})], "not stopped"])
    agent = Agent(script, skills=registry, stop_when=has_tool_call("anything"))
    registry.register(Skill("more", "", [anything]))
    assert agent.run_sync("go", deps=Shop("Ada")).stop.reason == "condition"
