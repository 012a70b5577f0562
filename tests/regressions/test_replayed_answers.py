"""Answers of a type that are replayed: in a journal that redacts, and by a model that says them again."""

import re

import pytest
from pydantic import BaseModel

from treadle import Agent, MemoryJournal
from treadle.testing import ReplayModel, ScriptedModel

pytestmark = pytest.mark.anyio
MODES = pytest.mark.parametrize("mode", ["prompted", "native", "tool"])


class Order(BaseModel):
    name: str
    card: int


class Mail(BaseModel):
    to: str
    total: int = 1


def without_digits(text: str) -> str:
    return re.sub(r"\d{4,}", "[CARD]", text)


def said(mode, json, words=""):
    return (words, [("final_answer", json)]) if mode == "tool" else json


def agent(mode, turns, output=Order, **options):
    return Agent(ScriptedModel(turns), output=output, output_mode=mode, **options)


@MODES
async def test_an_answer_that_the_journal_has_redacted_is_replayed_as_it_was_taken(mode):
    """A number became words, and the replay sent the answer back."""
    journal = MemoryJournal(redact=without_digits)
    turns = [said(mode, '{"name": 1}'), said(mode, '{"name": "Ada", "card": 41111111}')]
    asked = agent(mode, turns, journal=journal)
    result = await asked.run("What is the order?")
    assert result.output == Order(name="Ada", card=41111111)
    replayed = await asked.replay(result.run_id)
    assert replayed.same, str(replayed)


@MODES
async def test_an_answer_that_was_sent_back_and_is_redacted_is_replayed_as_it_was_sent_back(mode):
    journal = MemoryJournal(redact=without_digits)
    turns = [said(mode, '{"name": "41111111", "card": "41111111x"}'), said(mode, '{"name": "Ada", "card": 2}')]
    asked = agent(mode, turns, journal=journal)
    result = await asked.run("What is the order?")
    assert len(result.steps) == 2
    replayed = await asked.replay(result.run_id)
    assert replayed.same, str(replayed)


async def test_an_answer_whose_reply_is_redacted_as_a_whole_is_replayed_as_it_was_written():
    """The value had the name that the reply had lost, and they were held against each other."""
    journal = MemoryJournal(redact=lambda text: re.sub(r'"to": ?"\w+"', '"to": "…"', text))
    asked = agent("prompted", ['{"to": "Ada"}'], Mail, journal=journal)
    result = await asked.run("Whom?")
    replayed = await asked.replay(result.run_id)
    assert replayed.same, str(replayed)


async def test_another_type_is_told_where_nothing_is_redacted():
    journal = MemoryJournal()
    result = await agent("prompted", ['{"name": "Ada", "card": 1}'], journal=journal).run("What is the order?")
    assert not (await agent("prompted", [], Mail, journal=journal).replay(result.run_id)).same


async def test_a_check_of_answers_is_held_against_the_record_in_a_journal_that_redacts():
    journal = MemoryJournal(redact=without_digits)
    result = await agent("prompted", ['{"name": "Ada", "card": 1}'], journal=journal).run("What is the order?")
    strict = agent("prompted", [], journal=journal, on_answer=[lambda answer, context: "no such order"])
    assert not (await strict.replay(result.run_id)).same


@pytest.mark.parametrize("again", ["tool", "prompted", None])
async def test_an_answer_by_the_final_tool_is_said_again_as_the_run_gave_it(again):
    """Its text was that of the words beside it and of the answer, joined."""
    json = '{"name": "Ada", "card": 1}'
    journal = MemoryJournal()
    first = await agent("tool", [said("tool", json, "I think so.")], journal=journal).run("What is the order?")
    assert first.text == json
    model = await ReplayModel.of(journal, first.run_id)
    options = {} if again is None else {"output": Order, "output_mode": again}
    result = await Agent(model, **options).run("What is the order?")
    assert (result.text, result.output) == (json, None if again is None else first.output)
    assert result.stop == first.stop
    if again == "tool":
        assert result.steps[0].message == first.steps[0].message


async def test_a_tool_of_the_name_of_the_final_one_is_not_called_for_it():
    called = []

    def final_answer(name: str, card: int) -> str:
        """Answers."""
        called.append(name)
        return "done"

    journal = MemoryJournal()
    first = await agent("tool", [said("tool", '{"name": "Ada", "card": 1}')], journal=journal).run("What is it?")
    model = await ReplayModel.of(journal, first.run_id)
    assert (await Agent(model, tools=[final_answer]).run("What is it?")).text == first.text
    typed = await Agent(model, tools=[final_answer], output=Order, output_mode="tool").run("What is it?")
    assert (typed.output, called) == (first.output, [])
