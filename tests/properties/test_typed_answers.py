"""Answers of many types, asked for in each way, sent back, cut off and killed in between: forecast in plain Python."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from worlds import examples

from treadle import Agent, Event, Limits, MemoryJournal, Retries, RunResult, StepContext, Usage, tool
from treadle.kernel.events import ModelFailed, ModelReplied
from treadle.kernel.messages import AssistantMessage, Text, ToolCall
from treadle.models import ModelEvent, ModelReply, ModelRequest, Overloaded, TextDelta
from treadle.models.profile import OutputMode


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Deep(BaseModel):
    price: Decimal
    when: date
    below: "list[Deep]" = []


class Kind(NamedTuple):
    """A type, what is one in JSON with its value, and what is none."""

    type: Any
    right: Sequence[tuple[str, Any]]
    wrong: Sequence[str]


KINDS = (
    Kind(int, [("4", 4), ("123456789012345678901234567890", 123456789012345678901234567890)], ["4.5", "1e400", "NaN"]),
    Kind(str, [('"a"', "a"), ('"```\\n```"', "```\n```")], ["1", '"\\ud800"', '"a']),
    Kind(
        Decimal, [("1.10", Decimal("1.10")), ("1000000000000000000000.01", Decimal("1e21") + Decimal("0.01"))], ["{}"]
    ),
    Kind(date, [('"2024-02-29"', date(2024, 2, 29))], ['"2023-02-29"', "20240229"]),
    Kind(Literal[Colour.RED], [('"red"', Colour.RED)], ['"blue"', "1"]),
    Kind(int | None, [("null", None), ("3", 3)], ['"x"', "[]"]),
    Kind(dict[str, int], [('{"result": 1}', {"result": 1}), ("{}", {})], ['{"a": 1, "a": 2}', "[]"]),
    Kind(Iterable[int], [("[]", []), ("[1, 2]", [1, 2])], ['["x"]', "{}"]),
    Kind(
        Deep,
        [
            (
                '{"price": 1.10, "when": "2024-01-01", "below": [{"price": 0, "when": "2024-01-02"}]}',
                Deep(
                    price=Decimal("1.10"),
                    when=date(2024, 1, 1),
                    below=[Deep(price=Decimal(0), when=date(2024, 1, 2))],
                ),
            )
        ],
        ['{"price": 1.10, "when": "2024-01-01", "below": [{}]}', '{"price": "x", "when": 0}'],
    ),
)
FAULT = "That will not do."
ANSWERS = ("right", "fenced", "wrong and right")
FAULTS = ("wrong", "words", "right and wrong")


class Turn(NamedTuple):
    """What is said in a step: an answer or none, or calls with or without one; after attempts that break off."""

    says: str
    right: int
    wrong: int
    broken: int


class World(NamedTuple):
    kind: Kind
    mode: OutputMode
    turns: Sequence[Turn]
    limits: Limits
    objects: int

    def turn(self, step: int) -> Turn:
        return self.turns[step] if step < len(self.turns) else Turn("right", 0, 0, 0)


class Model:
    """Says what its world has for a step, to whoever asks; each attempt that is to break off does so once."""

    name = "model"

    def __init__(self, world: World) -> None:
        self.world, self.asked, self.broke = world, 0, dict[int, int]()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked += 1
        turn = self.world.turn(request.step)
        parts = tuple(self._parts(turn, request))
        for part in parts:
            if isinstance(part, Text):
                yield TextDelta(part.text)
        if self.broke.setdefault(request.step, 0) < turn.broken:
            self.broke[request.step] += 1
            raise Overloaded("it broke off")
        calls = any(isinstance(part, ToolCall) for part in parts)
        yield ModelReply(AssistantMessage(parts), Usage(10, 1), "tool_calls" if calls else "stop")

    def _parts(self, turn: Turn, request: ModelRequest) -> Iterable[Text | ToolCall]:
        kind = self.world.kind
        right, wrong = kind.right[turn.right % len(kind.right)][0], kind.wrong[turn.wrong % len(kind.wrong)]
        final = next((tool for tool in request.tools if tool.name == "final_answer"), None)
        schema = request.output_schema if final is None else final.input_schema
        if (schema or {}).get("required") == ["result"] and self.world.mode != "prompted":
            right, wrong = f'{{"result": {right}}}', f'{{"result": {wrong}}}'
        says = turn.says
        if says in ("right and wrong", "wrong and right") and final is None:
            says = says.rpartition(" ")[2]
        if says == "words":
            yield Text("I would rather talk.")
        if says == "fenced":
            yield Text(f"Here it is:\n```json\n{right}\n```\nThat is all.")
        if says in ("call", "call and answer"):
            yield ToolCall(f"call_{request.step}", "write", f'{{"n": {request.step}}}')
        said = {
            "right": [right],
            "wrong": [wrong],
            "right and wrong": [right, wrong],
            "wrong and right": [wrong, right],
        }
        for i, json in enumerate(said.get(says, [right] if says == "call and answer" and final is not None else [])):
            yield Text(json) if final is None else ToolCall(f"final_{request.step}_{i}", final.name, json)


class Forecast(NamedTuple):
    reason: str
    steps: int
    output: Any
    wrote: list[int]


def forecast(world: World) -> Forecast:
    """What must come of a run, by the words of the documentation alone."""
    errors = objected = step = 0
    wrote: list[int] = []
    while True:
        turn = world.turn(step)
        value = world.kind.right[turn.right % len(world.kind.right)][1]
        if step == world.limits.steps or errors == world.limits.consecutive_errors:
            reason = "max_steps" if errors != world.limits.consecutive_errors else "consecutive_errors"
            before = world.turn(step - 1)
            held = before.says in ANSWERS and objected and reason
            told = world.kind.right[before.right % len(world.kind.right)][1]
            return Forecast(reason, step, told if held else None, wrote)
        step += 1
        if turn.says in ANSWERS:
            if objected == world.objects:
                return Forecast("answered", step, value, wrote)
            objected, errors = objected + 1, errors + 1
        elif turn.says in FAULTS:
            errors += 1
        else:
            wrote.append(step - 1)
            errors = 0


def agent(world: World, model: Model, journal: MemoryJournal, wrote: list[int]) -> Agent[Any, Any]:
    @tool
    def write(n: int) -> str:
        """Writes."""
        wrote.append(n)
        return f"wrote {n}"

    def objects(answer: Any, context: StepContext[Any]) -> str | None:
        return FAULT if sum(one.text == FAULT for one in context.messages) < world.objects else None

    return Agent(
        model,
        tools=[write],
        output=world.kind.type,
        output_mode=world.mode,
        limits=world.limits,
        on_limit="stop",
        on_answer=objects,
        retries=Retries(attempts=3, base=0.0),
        watch_progress=False,
        journal=journal,
    )


class Kept(MemoryJournal):
    """Remembers what was written at once."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[str, int, list[Event]]] = []

    async def append(self, run_id: str, seq: int, events: Sequence[Event]) -> None:
        await super().append(run_id, seq, events)
        self.written.append((run_id, seq, list(events)))


def outline(result: RunResult[Any]) -> Any:
    said = [(message.role, message.text) for message in result.messages]
    return result.stop, result.output, type(result.output), result.text, said


async def killed(world: World, written: Sequence[tuple[str, int, list[Event]]], whole: RunResult[Any]) -> None:
    """What was written is taken up: it comes to the same, and nothing that was done is done again."""
    journal, wrote = Kept(), list[int]()
    for run_id, seq, events in written:
        await journal.append(run_id, seq, events)
    again = agent(world, Model(world), journal, wrote)
    result = await again.resume(written[0][0], takeover=True)
    while result.pending:
        # It died in the middle of a write: what came of it is looked up.
        given = {one.call_id: f"wrote {one.arguments['n']}" for one in result.pending}
        result = await again.resume(result, results=given)
    assert outline(result) == outline(whole)
    assert len(set(wrote)) == len(wrote)


TURNS = st.builds(
    Turn,
    st.sampled_from([*ANSWERS, *FAULTS, "call", "call and answer"]),
    st.integers(0, 1),
    st.integers(0, 2),
    st.sampled_from([0, 0, 0, 1, 2]),
)
WORLDS = st.builds(
    World,
    st.sampled_from(KINDS),
    st.sampled_from(["native", "tool", "prompted"]),
    st.lists(TURNS, max_size=5).map(tuple),
    st.builds(
        lambda steps, errors: Limits(steps=steps, consecutive_errors=errors), st.integers(1, 6), st.integers(1, 3)
    ),
    st.sampled_from([0, 0, 1, 2]),
)


@examples(60)
@given(WORLDS, st.integers(0, 100))
def test_a_typed_answer_comes_as_forecast_streamed_or_not_and_after_a_crash(world: World, at: int) -> None:
    async def main() -> None:
        journal, model, wrote = Kept(), Model(world), list[int]()
        running = agent(world, model, journal, wrote)
        result = await running.run("go")
        wanted = forecast(world)
        assert (result.stop.reason, len(result.steps), wrote) == (wanted.reason, wanted.steps, wanted.wrote)
        if wanted.reason == "answered":
            assert (result.output, str(result.output)) == (wanted.output, str(wanted.output))
        assert model.asked == wanted.steps + sum(world.turn(step).broken for step in range(wanted.steps))
        assert (await running.replay(result.run_id)).same

        streamed, shown = agent(world, Model(world), Kept(), []), ""
        async with streamed.stream("go") as run:
            async for event in run:
                if isinstance(event, TextDelta):
                    shown += event.text
                elif isinstance(event, (ModelFailed, ModelReplied)):
                    whole = event.text if isinstance(event, ModelFailed) else event.message.text
                    assert shown == whole or getattr(event, "handed_in", False)
                    shown = ""
        assert outline(run.result) == outline(result)
        await killed(world, journal.written[: at % len(journal.written) + 1], result)

    asyncio.run(main())
