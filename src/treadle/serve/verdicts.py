"""Verdicts: what is decided of calls that wait, each held against the call and the arguments that were shown."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from treadle.agent import Agent
from treadle.drivers.answers import Answers
from treadle.drivers.told_effect import maker_of, told_effect, tool_below
from treadle.drivers.unsettled import unsettled
from treadle.journal import Journal
from treadle.kernel.calls import parsed
from treadle.kernel.state import RunState
from treadle.result import Pending
from treadle.serve.refused import Refused

Verb = Literal["approve", "deny", "edit", "result", "again"]


class Verdict(NamedTuple):
    """What is decided of a call that waits.

    Attributes:
        call: its `call_id` as it stands in `pending`.
        fingerprint: the fingerprint of its arguments that stands there too: it is refused for any others.
        verb: "approve" it as it is, "edit" it (approve it with `arguments`), "deny" it with a `reason` for the model,
            give its "result", or have it run "again" that was cut off.
        arguments: in place of the model's; of "edit" alone.
        result: of "result" alone; anything that JSON can hold.
        reason: of "deny" alone; may be empty.
    """

    call: str
    fingerprint: str
    verb: Verb
    arguments: Mapping[str, Any] | None = None
    result: Any = None
    reason: str = ""


class Waits(NamedTuple):
    """A call that waits for a person, with what may be said of it."""

    pending: Pending
    fingerprint: str
    why: str
    effect: str
    allowed: tuple[Verb, ...]


async def waits_of(agents: Mapping[str, Agent[Any, Any]], state: RunState, journal: Journal) -> tuple[Waits, ...]:
    """What is said of each call that waits in a run of one of `agents`, those of the runs below it among them."""
    return tuple([await _waits(agents, state, one, journal) for one in await unsettled(state, journal)])


async def _waits(agents: Mapping[str, Agent[Any, Any]], state: RunState, one: Pending, journal: Journal) -> Waits:
    allowed: dict[str, tuple[Verb, ...]] = {
        "approval": ("approve", "edit", "deny", "result"),
        "interrupted": ("again", "deny", "result"),
        "result": ("result",),
    }
    maker, effect = await maker_of(one, state, journal), ""
    if maker is not None:
        agent = agents.get(state.agent)
        tools = {} if agent is None else agent.tools
        tool = tool_below(tools, maker.agent, one.tool) if one.run_id else tools.get(one.tool)
        effect = told_effect(maker, one.tool) if tool is None else tool.effect
    mark = one.key.rpartition("#")[2]
    return Waits(one, mark, one.question or one.kind, effect, allowed[one.kind])


def answers_of(verdicts: Sequence[Verdict], waiting: Mapping[str, Waits], run_id: str) -> Answers:
    """What was decided, as a run takes it.

    Args:
        verdicts: what was decided.
        waiting: what the run waits for, by `call_id`.
        run_id: the run.

    Raises:
        Refused: there is no verdict, or a call does not wait (any more) for one of them.
    """
    if not verdicts:
        raise Refused("unfit", "there is no decision", "Give at least one of the calls that wait.")
    answers = Answers({}, {}, {})
    for verdict in verdicts:
        _answer(answers, verdict, waiting.get(verdict.call), run_id)
    return answers


def with_numbers(result: Any) -> Any:
    """A result that came as JSON, each number that a float holds as one: a `Decimal` is told to the model as a text."""
    return parsed(_encoder.encode(result).decode())


_encoder = msgspec.json.Encoder(decimal_format="number")


def _answer(answers: Answers, verdict: Verdict, waits: Waits | None, run_id: str) -> None:
    """Puts a verdict among the answers. Raises `Refused` if the call does not wait for it."""
    if waits is None:
        raise Refused(
            "conflict",
            f"call {verdict.call!r:.200} of run {run_id} does not wait for a decision",
            "It was decided meanwhile, or the run has gone on. Look at the run again.",
        )
    if verdict.fingerprint != waits.fingerprint:
        raise Refused(
            "conflict",
            f"call {verdict.call!r:.200} of run {run_id} waits with other arguments than were decided on, or "
            "for another decision",
            "Look at the call again.",
        )
    if verdict.verb not in waits.allowed:
        raise Refused(
            "unfit",
            f"call {verdict.call!r:.200} cannot be decided by {verdict.verb!r:.50}",
            f"It can be decided by: {', '.join(waits.allowed)}.",
        )
    key = waits.pending.key
    if key in answers.calls:
        raise Refused("unfit", f"call {verdict.call!r:.200} is decided in two ways at once")
    match verdict.verb:
        case "deny":
            answers.deny[key] = verdict.reason
        case "result":
            answers.results[key] = with_numbers(verdict.result)
        case "edit":
            if verdict.arguments is None:
                raise Refused("unfit", f"an edit of call {verdict.call!r:.200} brings its arguments")
            answers.approve[key] = verdict.arguments
        case "approve" | "again":
            answers.approve[key] = None
