"""What may be the type of an answer, what is said of all else, and answers that were refused though they fitted."""

import asyncio
import math
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, ForwardRef, Literal, Optional, TypeVar

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, FailFast

from treadle import Agent, Limits, MemoryJournal, Misuse, Text, Usage, handoff, tool
from treadle.models import AssistantMessage, FinishReason, ModelReply, ToolCall
from treadle.models.profile import OutputMode
from treadle.testing import ReplayModel, ScriptedModel

MODES: tuple[OutputMode, ...] = ("prompted", "tool", "native")
T = TypeVar("T")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(Enum):
    LOW = 1


class Bare(msgspec.Struct):
    number: int


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    number: int


class More(Strict):
    words: str = ""


class Loose(BaseModel):
    number: int


class Wider(Loose):
    words: str = ""


class Basket(BaseModel):
    items: Iterable[int]


@tool(effect="read")
def look() -> str:
    """Looks."""
    return "seen"


def answering(json: str, mode: OutputMode, output: Any, **options: Any) -> Agent[Any, Any]:
    turn = [("final_answer", json)] if mode == "tool" else json
    return Agent(ScriptedModel([turn]), output=output, output_mode=mode, **options)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (T, "nobody has said what T is: a type variable stands for a type; give that"),
        (list[T], "nobody has said what T is"),  # type: ignore[valid-type]
        (Optional[T], "nobody has said what T is"),  # noqa: UP045
        ("Colour", "it was given 'Colour': give the type itself, not its name"),
        (ForwardRef("Colour"), "give the type itself, not its name"),
        # A name that modules of this package have was taken for theirs: any object at all was an answer.
        (dict[str, "Json"], "in which 'Json' is not known: write the type itself there"),  # type: ignore[name-defined]  # noqa: F821
        (list["Nobody"], "in which 'Nobody' is not known: write the type itself there"),  # type: ignore[name-defined]  # noqa: F821
        (5, "it was given 5; a Pydantic model, a dataclass, a TypedDict, or a type made of these"),
        (Bare, "test_answers_of_odd_types.Bare'>; a Pydantic model, a dataclass, a TypedDict"),
        (list[Bare], "test_answers_of_odd_types.Bare'> in it is none; a Pydantic model"),
        (print, "which is a function; a Pydantic model"),
        (BaseModel, "which has no fields: give a class of your own"),
        (Enum, "which has no values: give a class of your own"),
        (type[int], "and no JSON is one; a Pydantic model"),
        (list[Annotated[int, FailFast()]], "which could not be looked at: RuntimeError: "),
    ],
)
def test_what_is_no_type_of_an_answer_is_refused_in_plain_words(kind: Any, words: str) -> None:
    with pytest.raises(Misuse, match="output takes a type that Pydantic can read from JSON; it was given ") as refused:
        Agent(ScriptedModel([]), output=kind)
    assert words in str(refused.value)
    assert "arbitrary_types_allowed" not in str(refused.value)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kind", "json", "value"),
    [
        (Literal[Colour.RED], '"red"', Colour.RED),
        (Literal[Colour.RED, Level.LOW, "none", 7], "1", Level.LOW),
        (Literal[Colour.RED, Level.LOW, "none", 7], '"none"', "none"),
        (list[Literal[Colour.RED]], '["red"]', [Colour.RED]),
    ],
)
def test_a_literal_of_an_enum_is_read_by_its_value_as_the_model_is_told(
    mode: OutputMode, kind: Any, json: str, value: Any
) -> None:
    json = json if mode == "prompted" else f'{{"result": {json}}}'
    result = answering(json, mode, kind).run_sync("go")
    assert (result.output, result.stop.reason) == (value, "answered")


def test_a_literal_of_an_enum_takes_no_other_of_its_values() -> None:
    model = ScriptedModel(['"blue"', '"red"'])
    result = Agent(model, output=Literal[Colour.RED]).run_sync("go")
    assert result.output is Colour.RED
    assert "That is not a valid Literal. the whole: Input should be" in model.requests[1].messages[-1].text


def test_a_tool_may_take_a_literal_of_an_enum() -> None:
    taken = []

    @tool
    def paint(colour: Literal[Colour.RED]) -> str:
        """Paints."""
        taken.append(colour)
        return "painted"

    Agent(ScriptedModel([[("paint", {"colour": "red"})], "Done."]), tools=[paint]).run_sync("go")
    assert taken == [Colour.RED]


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_that_is_an_iterable_is_read_to_its_end_and_checked(mode: OutputMode) -> None:
    """It was read as somebody went through it, once: `to_dict` left nothing, and nobody had looked at its items."""
    wrong, right = ('["x"]', "[1, 2]") if mode == "prompted" else ('{"result": ["x"]}', '{"result": [1, 2]}')
    turns = [[("final_answer", json)] if mode == "tool" else json for json in (wrong, right)]
    model = ScriptedModel(turns)
    result = Agent(model, output=Iterable[int], output_mode=mode).run_sync("go")
    assert "0: Input should be a valid integer" in model.requests[1].messages[-1].text
    assert result.to_dict()["output"] == [1, 2]
    assert list(result.output or ()) == [1, 2]
    within = answering('{"items": [3]}', mode, Basket).run_sync("go").output
    assert within is not None
    assert within.items == [3]


@pytest.mark.parametrize(
    "json",
    [
        '{"said": "Write:\\n```python\\nprint(1)\\n```"}',
        '{"said": "```"}',
        '{\n  "said": "```json\\n{}\\n```"\n}',
    ],
)
@pytest.mark.parametrize(
    "around", ["```json\n{}\n```", "Here it is:\n\n```json\n{}\n```\n\nThat is all.", "```\n{}\n```\n"]
)
def test_a_fence_within_a_text_does_not_end_the_block_that_the_answer_stands_in(json: str, around: str) -> None:
    said = around.replace("{}", json)
    result = answering(said, "prompted", dict[str, str]).run_sync("go")
    assert result.output == msgspec.json.decode(json)


@pytest.mark.parametrize(
    "said",
    [
        "```JSON\n{}\n```",
        "I ran:\n```python\nprint(1)\n```\nSo it is:\n```json\n{}\n```",
        "  ```json\r\n  {}\r\n  ```\r\n",
        "Use ```x``` here.\n```\n{}\n```",
    ],
)
def test_the_one_block_of_json_is_read_whatever_stands_around_it(said: str) -> None:
    said = said.replace("{}", '{"said": "yes"}')
    assert answering(said, "prompted", dict[str, str]).run_sync("go").output == {"said": "yes"}


@pytest.mark.parametrize("said", ["```json\n" * 200_000, "```" + "\n" * 500_000 + "x", "```json" + " \n" * 500_000])
def test_a_reply_of_fences_or_empty_lines_is_looked_at_once(said: str) -> None:
    """A model that repeats itself writes as many as its reply may be long: it took hours, and no limit held."""
    assert answering(said, "prompted", dict[str, str], limits=Limits(steps=1)).run_sync("go").output is None


def test_a_block_whose_end_does_not_stand_on_a_line_of_its_own_is_read_as_before() -> None:
    said = 'Here: ```json\n{"said": "yes"}```.'
    assert answering(said, "prompted", dict[str, str]).run_sync("go").output == {"said": "yes"}


@pytest.mark.parametrize("mode", MODES)
def test_what_is_no_number_is_read_in_an_object_as_well(mode: OutputMode) -> None:
    json = "[Infinity, NaN]" if mode == "prompted" else '{"result": [Infinity, NaN]}'
    result = answering(json, mode, list[float]).run_sync("go")
    assert result.output is not None
    assert [math.isinf(one) or str(one) for one in result.output] == [True, "nan"]


# Over a hand-off


def handing_on(
    other: Agent[Any, Any], output: Any, mode: OutputMode = "prompted", deep: bool = False
) -> Agent[Any, Any]:
    if deep:
        other = Agent(ScriptedModel([[(f"transfer_to_{other.name}", {})]]), name="between", tools=[handoff(other)])
    turns = [[(f"transfer_to_{other.name}", {})]]
    return Agent(ScriptedModel(turns), tools=[handoff(other)], output=output, output_mode=mode)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("kind", [list[int], dict[str, int], tuple[int, str]])
def test_an_agent_that_answers_with_a_part_of_the_type_is_refused(kind: Any, deep: bool) -> None:
    """It was taken, and the answer that was paid for was no answer."""
    with pytest.raises(
        Misuse, match=r"the answer of expert is a int, but that of this agent must be a (list|dict|tuple)"
    ):
        handing_on(answering("4", "prompted", int, name="expert"), kind, deep=deep)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize(
    ("above", "below", "json", "value"),
    [
        (Strict, More, '{"number": 1, "words": "x"}', More(number=1, words="x")),
        (Loose, Wider, '{"number": 1, "words": "x"}', Wider(number=1, words="x")),
        (Loose | int, Wider | int, '{"number": 1, "words": "x"}', Wider(number=1, words="x")),
        (Strict | int, More, '{"number": 1, "words": "x"}', More(number=1, words="x")),
        (Strict | list[int] | None, list[int] | More, "[1]", [1]),
        (int | None, int, "4", 4),
    ],
)
def test_an_answer_of_a_kind_of_the_type_is_the_answer(
    above: Any, below: Any, json: str, value: Any, deep: bool
) -> None:
    """Where it forbids further fields, its kinds answered for nothing; else those were lost behind an agent between."""
    result = handing_on(answering(json, "prompted", below, name="expert"), above, deep=deep).run_sync("go")
    assert (result.output, result.stop.detail) == (value, "handed on")


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mode_below", MODES)
@pytest.mark.parametrize(("json", "value"), [("null", None), ("Infinity", math.inf)])
def test_an_answer_that_json_has_no_word_for_or_that_is_nothing_is_handed_on(
    mode: OutputMode, mode_below: OutputMode, json: str, value: Any, deep: bool
) -> None:
    json = json if mode_below == "prompted" else f'{{"result": {json}}}'
    other = answering(json, mode_below, float | None, name="expert")
    result = handing_on(other, float | None, mode, deep).run_sync("go")
    assert (result.output, result.stop.detail) == (value, "handed on")


# Asked for in one way, and read in another


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("recorded", MODES)
@pytest.mark.parametrize(
    ("kind", "json", "value"),
    [(date, '"2024-02-29"', date(2024, 2, 29)), (Strict | None, '{"number": 1}', Strict(number=1))],
)
def test_an_answer_is_of_its_type_for_an_agent_that_asks_in_another_way(
    recorded: OutputMode, mode: OutputMode, kind: Any, json: str, value: Any
) -> None:
    """It was a text, as the journal has it, where it stood in the object in which the agent before had asked for it."""

    async def main() -> None:
        journal = MemoryJournal()
        said = json if recorded == "prompted" else f'{{"result": {json}}}'
        first = await answering(said, recorded, kind, journal=journal).run("go")
        again = Agent(ScriptedModel([]), output=kind, output_mode=mode, journal=journal)
        assert (await again.resume(first.run_id)).output == first.output == value
        replaying = Agent(await ReplayModel.of(journal, first.run_id), output=kind, output_mode=mode)
        replayed = await replaying.run("go")
        assert (replayed.output, replayed.stop.reason) == (value, "answered")

    asyncio.run(main())


class Result(BaseModel):
    result: int


class Other(BaseModel):
    other: int


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("json", ['{"result": 1}', '{"result": {"result": 1}}'])
def test_a_field_of_the_name_is_told_from_the_object_around_it(mode: OutputMode, json: str) -> None:
    assert answering(json, mode, Result | Other).run_sync("go").output == Result(result=1)
    kept = answering('{"result": 1}', "prompted", dict[str, int]).run_sync("go").output
    assert kept == {"result": 1}


@pytest.mark.parametrize(
    ("said", "value"),
    [("12", None), ("1.5", None), ("-7", None), ("12 ", 12), ("```json\n12\n```", 12), ("```json\n12", None)],
)
def test_a_number_in_which_a_reply_was_cut_off_is_no_answer(said: str, value: Any) -> None:
    """It may have more digits: 12 was told of a 1234."""
    reply = ModelReply(AssistantMessage((Text(said),)), Usage(1, 1), "length")
    result = Agent(ScriptedModel([reply]), output=float).run_sync("go")
    assert (result.output, result.stop.reason, result.text) == (value, "length", said)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("where", ["the answer", "the closing reply", "an agent below", "an agent that goes on"])
@pytest.mark.parametrize("finish", ["content_filter", "refusal"])
def test_a_reply_that_was_withheld_is_no_answer(finish: FinishReason, where: str, mode: OutputMode) -> None:
    """What fitted was the `output` of a run whose provider had withheld the reply, or whose model refused: whoever
    asked `if result.output` took it for the answer."""
    json = '{"number": 12}'
    said = ToolCall("c", "final_answer", json) if mode == "tool" else Text(json)
    reply = ModelReply(AssistantMessage((said,)), Usage(1, 1), finish)
    expert = Agent(ScriptedModel([reply]), name="expert", output=Strict, output_mode=mode)
    limits = None
    match where:
        case "the answer":
            turns, tools = [reply], []
        case "the closing reply":
            turns, tools, limits = [[("look", {})], reply], [look], Limits(steps=2)
        case "an agent below":
            turns, tools = [[("expert", {"task": "Go."})], reply], [expert.as_tool()]
        case _:
            turns, tools = [[("transfer_to_expert", {})], reply], [handoff(expert)]
    agent = Agent(ScriptedModel(turns), output=Strict, output_mode=mode, tools=tools, limits=limits)
    result = agent.run_sync("go")
    assert (result.output, result.finished) == (None, False)
    assert result.stop.reason == ("max_steps" if limits else finish)
    assert [call.is_error for call in result.tool_calls_made] == [where != "the closing reply"] * len(tools)


@pytest.mark.parametrize("text", ["9" * 1_900_000, f'"{"9" * 1_900_000}"', f"-{'9' * 1_900_000}e"])
def test_an_answer_of_a_great_many_digits_is_looked_at_once(text: str) -> None:
    """For each digit the rest was read, where a Decimal belongs: hours, in which nothing else ran and no limit held."""
    result = asyncio.run(Agent(ScriptedModel([text, "[1.5]"]), output=list[Decimal]).run("go"))
    assert result.output == [Decimal("1.5")]
    assert result.messages[-2].text.startswith("That is not a valid list.")


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (list[int], "list[int]"),
        (list[str], "list[str]"),
        (dict[str, list[Strict]], "dict[str, list[Strict]]"),
        (list[int] | None, "list[int] | NoneType"),
        (Literal["yes", "no"], "Literal['yes', 'no']"),
        (Annotated[list[int], FailFast()], "list[int]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (Strict, "Strict"),
    ],
)
def test_what_a_run_was_begun_under_tells_types_apart_that_differ_within(kind: Any, told: str) -> None:
    """Whoever is refused a run of another type was told of `output list`, for `list[int]` as for `list[str]`."""
    journal = MemoryJournal()

    async def refused() -> str:
        waiting = await Agent(ScriptedModel([[("pay", {"n": 1})]]), tools=[pay], output=kind, journal=journal).run("go")
        with pytest.raises(Misuse) as error:
            await Agent(ScriptedModel([]), tools=[pay], journal=journal).resume(waiting.run_id, approve=waiting.pending)
        return str(error.value)

    @tool(needs_approval=True)
    def pay(n: int) -> str:
        """Pays."""
        return f"paid {n}"

    assert f"this agent lacks: output {told}." in asyncio.run(refused())


class Counted(BaseModel):
    number: int
    times: int = 1


class CountedMore(Counted):
    words: str = ""


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("json", "value"),
    [
        ('{"number": 1}', Counted(number=1)),
        ('{"number": "1", "times": 2}', Counted(number=1, times=2)),
        ('{"number": 1, "words": "x"}', CountedMore(number=1, words="x")),
    ],
)
def test_an_answer_of_which_the_type_leaves_nothing_out_is_of_no_kind_of_it(
    json: str, value: Any, turned: bool
) -> None:
    """What a type fills in, or spells otherwise, is no reason to take another's answer."""
    kind = CountedMore if isinstance(value, CountedMore) else Counted
    other = CountedMore if kind is Counted else Counted
    experts = [answering(json, "prompted", kind, name="expert"), answering("{}", "prompted", other, name="other")]
    between = Agent(
        ScriptedModel([[("transfer_to_expert", {})]]), tools=[handoff(one) for one in experts[:: -1 if turned else 1]],
        name="between",
    )  # fmt: skip
    front = Agent(ScriptedModel([[("transfer_to_between", {})]]), tools=[handoff(between)], output=Counted)
    assert repr(front.run_sync("go").output) == repr(value)
