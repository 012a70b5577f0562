"""Waiting: the calls that a run waits for a person to decide on or to answer, as a person is shown them everywhere.

Whoever decides must have seen all that there is to see: the whole call, with what cannot be seen written as escapes,
what the tool does to the world, the result that is in doubt, and what a yes would do.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from shlex import join
from typing import Any, Literal

import click
import msgspec

from treadle.cli.terminal import visible
from treadle.drivers.outcome import as_told
from treadle.drivers.told_effect import maker_of, told_effect, tool_below
from treadle.drivers.unsettled import unsettled
from treadle.journal import Journal
from treadle.kernel.calls import exact
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event
from treadle.kernel.fold import fold_all
from treadle.kernel.state import RunState
from treadle.result import Pending
from treadle.tools import Tool
from treadle.tools.output import encode_given


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A call that waits for a person.

    Attributes:
        pending: the call, as it is decided from the run at the top.
        effect: what its tool does to the world, as far as the journal says; empty if it does not.
        agent: the name of the agent below that made it; empty if the run itself did.
    """

    pending: Pending
    effect: str
    agent: str = ""

    @property
    def name(self) -> str:
        """By which it is decided; it holds nothing that a terminal would not show."""
        return self.pending.call_id

    @property
    def to_decide(self) -> bool:
        """Whether a person says yes or no to it, rather than giving its result."""
        return self.pending.kind != "result"

    @property
    def written(self) -> str:
        """The whole call as it would be written in Python, on one line."""
        one = self.pending
        try:
            given = msgspec.json.decode(one.arguments_json, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return f"{visible(one.tool)}({visible(one.arguments_json)})"
        shown = ", ".join(f"{key}={bytes(value).decode()}" for key, value in given.items())
        return f"{visible(one.tool)}({visible(shown)})"

    def call(self, tools: Mapping[str, Tool]) -> str:
        """The whole call, on one line: its name, tool, arguments and effect.

        Args:
            tools: those of the run's agent, which say more exactly what its tool does; empty if not known.
        """
        one = self.pending
        tool = tool_below(tools, self.agent, one.tool) if one.run_id else tools.get(one.tool)
        effect = self.effect if tool is None else tool.effect
        arguments = visible(one.arguments_json)
        return f"{one.call_id}: {visible(one.tool)}({arguments}){f' [{effect}]' if effect else ''}"

    def lines(self, tools: Mapping[str, Tool]) -> list[str]:
        """All that a person must see who decides on it or answers it; `tools` as for `call`."""
        one, call = self.pending, self.call(tools)
        if one.kind == "interrupted":
            return [
                f"{call} was interrupted: nobody knows what it did.",
                *_quoted(one.question),
                "  To run it again may do it twice. Look what came of it, and say so.",
            ]
        if one.kind == "approval":
            return [f"{call} asks for approval.", *_quoted(one.question)]
        if one.question:
            gave = [f"{call} gave:", *_quoted(one.found)] if one.found else [call]
            return [*gave, "  You are asked; your answer is its result:", *_quoted(one.question)]
        asked = question_of(one)
        if asked is None:
            return [f"{call} is answered from outside: its result is what you give."]
        listed = [f"  {number}. {visible(choice)}" for number, choice in enumerate(asked.choices, 1)]
        return [f"{one.call_id}: {one.tool} asks you:", *_quoted(asked.question), *listed]


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `ask_user`."""

    question: str
    choices: list[str] = []


def question_of(one: Pending) -> Question | None:
    """What `ask_user` asks, if that is all there is in the call."""
    if one.tool != "ask_user" or one.kind != "result":
        return None
    try:
        return msgspec.convert(one.arguments, Question)
    except msgspec.ValidationError:
        return None


def _quoted(text: str) -> Iterator[str]:
    """The lines of a text that others wrote; set off, so that none of them is taken for one of ours."""
    for line in text.splitlines() if text.isascii() else text.split("\n"):
        yield "  | " + "\t".join(visible(part) for part in line.split("\t"))


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a run waits for, or will when it is taken up after its process died.

    Attributes:
        run_id: the run.
        phase: where it stands.
        calls: the calls that wait, in order; those of runs below it among them.
    """

    run_id: str
    phase: str
    calls: tuple[WaitingCall, ...]

    @classmethod
    async def of(cls, events: Sequence[Event], journal: Journal | None) -> "Waiting":
        """What the run of `events` waits for; the journal, if there is one, says more of the runs below it."""
        # What was said in this process goes on as a journal that redacts has written it.
        state = as_told(fold_all(events), RunState(), events, journal)
        calls = [await _looked_up(one, state, journal) for one in await unsettled(state, journal)]
        return cls(state.run_id, state.phase, tuple(calls))

    def decided(self, verb: Literal["approve", "deny"], given: str | None) -> list[WaitingCall]:
        """The call that `given` names, or all that wait for a decision.

        Raises:
            click.UsageError: it does not wait for one, or none does; says which do.
        """
        if given is not None:
            found = self._named(given)
            if not found.to_decide:
                raise click.UsageError(
                    f"call {given!r} of run {self.run_id} waits for its result, and not to be decided on; "
                    f"{_given_by_result(verb, [found])}"
                )
            return [found]
        paused = self.phase == "paused"
        waiting = [call for call in self.calls if call.to_decide] if paused else []
        if not waiting:
            waits = f"waits for results, and not for a decision: {self._named_all()}; "
            instead = waits + _given_by_result(verb, self.calls) if paused and self.calls else self._instead()
            raise click.UsageError(f"there is nothing to {verb}: run {self.run_id} {instead}")
        return waiting

    def settled(self, given: str) -> WaitingCall:
        """The call that `given` names, of which nobody knows what it did, or that is answered from outside.

        Raises:
            click.UsageError: it is none of these; says which calls are.
        """
        found = self._named(given)
        if found.pending.kind == "approval":
            raise click.UsageError(
                f"call {given!r} of run {self.run_id} was not made: it asks for approval. Allow it with treadle "
                "approve, or refuse it with treadle deny"
            )
        return found

    def answered(self, item: str) -> tuple[WaitingCall, str]:
        """The call and the value that CALL=VALUE names.

        Raises:
            click.UsageError: no such call waits, or it is not CALL=VALUE; says which do.
        """
        name, value = call_and_value(item, self.find, "--result")
        return self._named(name), value

    def _named(self, given: str) -> WaitingCall:
        found = self.find(given)
        if found is None:
            instead = f"these calls do: {self._named_all()}" if self.calls else f"the run {self._instead()}"
            raise click.UsageError(f"call {visible(given)!r} of run {self.run_id} does not wait; {instead}")
        return found

    def _named_all(self) -> str:
        return ", ".join(f"{call.name} ({visible(call.pending.tool)})" for call in self.calls)

    def find(self, given: str) -> WaitingCall | None:
        """The call that waits under that name, key, or id as the model gave it; as `treadle.drivers.answers` has it."""
        named = {name: call for call in self.calls for name in (call.name, call.pending.key)}
        if given in named or set("#/%") & set(given):
            return named.get(given)
        plain = [call for call in self.calls if call.pending.plain == given]
        return plain[0] if len(plain) == 1 else None

    def _instead(self) -> str:
        match self.phase:
            case "finished":
                return "has finished"
            case "paused":
                return "waits for nobody"
            case _:
                return (
                    "is not paused: it is under way, or its process died. If it died, take it up with treadle "
                    f"resume {self.run_id}; a call that was under way is settled by its name, with treadle resolve"
                )


def _given_by_result(verb: str, calls: Sequence[WaitingCall]) -> str:
    """How results are given in place of the command `verb`."""
    them = "it" if len(calls) == 1 else "each"
    words = " ".join(join(["--result", f"{call.name}=VALUE"]) for call in calls)
    return f"give {them} with treadle resume in place of treadle {verb}, by {words}"


async def _looked_up(one: Pending, state: RunState, journal: Journal | None) -> WaitingCall:
    """The call with what the run says that made it, which may be several below the one at the top."""
    maker = await maker_of(one, state, journal)
    if maker is None:
        return WaitingCall(one, "")
    return WaitingCall(one, told_effect(maker, one.tool), maker.agent if one.run_id else "")


def call_and_value(item: str, find: Callable[[str], object], option: str) -> tuple[str, str]:
    """The call and the value in CALL=VALUE; a call's name may have a "=" in it too, so that the longest is taken.

    Args:
        item: what the command line says.
        find: what a name stands for; None where there is no such call.
        option: the option that says it.

    Raises:
        click.BadParameter: it is not CALL=VALUE.
    """
    ends = [at for at, character in enumerate(item) if character == "=" and at]
    if not ends:
        raise click.BadParameter(f"{item!r} is not CALL=VALUE", param_hint=f"'{option}'")
    end = next((at for at in reversed(ends) if find(item[:at]) is not None), ends[0])
    return item[:end], item[end + 1 :]


def read_arguments(text: str) -> dict[str, Any]:
    """Arguments as a person writes them: a JSON object.

    Raises:
        click.BadParameter: they are something else.
    """
    try:
        # What a person gives keeps all its digits: an amount that no float holds would be paid as another.
        arguments = msgspec.json.Decoder(dict[str, Any], float_hook=exact).decode(text)
        # Of a name that stands there twice the person may have read the other value.
        json.loads(text, object_pairs_hook=_once)
    except RecursionError as error:
        raise click.BadParameter("the arguments are nested too deep") from error
    except (msgspec.MsgspecError, UnicodeError) as error:
        # An argument of the command line that is not UTF-8 has surrogates in it.
        raise click.BadParameter(f'arguments are a JSON object, such as {{"sku": 7}}: {error}') from error
    return arguments


def _once(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise click.BadParameter(f"the arguments have {visible(twice)!r} twice; give it once")


def read_value(text: str) -> Any:
    """A result as a person writes it: JSON, or a text. A number by itself is one only if it reads as it was written:
    `1.10` may be a version, or an amount of which somebody counts the places.

    Raises:
        click.BadParameter: it is not UTF-8.
    """
    try:
        found = msgspec.json.Decoder(float_hook=exact).decode(text)
    except UnicodeEncodeError as error:
        raise click.BadParameter(f"a result is a text in UTF-8: {error.reason}") from error
    except (msgspec.DecodeError, RecursionError):
        return text
    if isinstance(found, Decimal) or (isinstance(found, float) and str(found) != text):
        return text
    try:
        encode_given(found, len(text), "the result")
    except Misuse:
        # What is nested deeper than any result can hold.
        return text
    return found
