"""Answers: what people and the outside said about the calls that a paused run waits for, recorded in it.

An answer names a call by its id, escaped (`treadle.kernel.names`), and a call of a sub-run by the path to it
("call/its call"); with the fingerprint of its arguments after it ("call#1f2e3d4c") it holds for these arguments only.
Of a run whose process died the calls that were under way are answered in the same way: what came of them is their
result, allowed is that they run again, and refused that they do. They run again as they were: under the same key a
service may answer others with what came of these.
All answers are held against all that waits, in the run and in those below it, before any of them is recorded; and all
are in the journal before anything goes on.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from treadle.context.redacting import kept_arguments
from treadle.drivers.approvals import budgets_beside
from treadle.drivers.below import below_of
from treadle.drivers.calls.change import as_fits, json_of
from treadle.drivers.calls.subrun import is_gone, recorded_below, taken_up
from treadle.drivers.heartbeat import Lease
from treadle.drivers.lease import held_again
from treadle.drivers.purse.claims import may_have_asked
from treadle.drivers.purse.patience import patiently
from treadle.drivers.purse.reckoning import lost_call
from treadle.drivers.run import Run
from treadle.drivers.unsettled import as_taken_up, unsettled
from treadle.kernel.calls import CallRecord, alike
from treadle.kernel.errors import Misuse
from treadle.kernel.events import ApprovalDecided, ApprovalRequested, RunResumed, ToolFinished
from treadle.kernel.names import escaped
from treadle.kernel.stop import Limits
from treadle.result import Pending
from treadle.tools import ToolOutput
from treadle.tools.output import encode_given


@dataclass(frozen=True, slots=True)
class Answers:
    """By call: allowed, with other arguments or None; refused, with a reason; answered, with a result."""

    approve: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)
    deny: dict[str, str] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        approve: Iterable[str | Pending] | Mapping[str, Mapping[str, Any] | None],
        deny: Iterable[str | Pending] | Mapping[str, str],
        results: Mapping[str, Any] | Mapping[Pending, Any],
    ) -> "Answers":
        """The answers as a caller gave them.

        Raises:
            Misuse: one call was given where several are wanted, or what should be a call, text or arguments is not.
        """
        approved: dict[str, Any] = _by_call("approve", approve, None)
        denied: dict[str, Any] = _by_call("deny", deny, "")
        for call, arguments in approved.items():
            if arguments is not None and not isinstance(arguments, Mapping):
                raise Misuse(
                    f"approve takes for call {call!r} the arguments to use, as a dict, or None for the model's"
                )
        for call, reason in denied.items():
            if not isinstance(reason, str):
                raise Misuse(f"deny takes for call {call!r} the reason as a text; it was given {reason!r}")
        if not isinstance(results, Mapping):
            raise Misuse(
                f"results takes a dict of results by call id: {{call_id: result}}; it was given {results!r:.200}"
            )
        return cls(approved, denied, _by_call("results", results, None))

    def __bool__(self) -> bool:
        return bool(self.approve or self.deny or self.results)

    @property
    def calls(self) -> list[str]:
        """The calls that are answered, as they were named."""
        return [*self.approve, *self.deny, *self.results]


def _by_call(name: str, given: object, value: Any) -> dict[str, Any]:
    """What was given for each call; `value` where only the calls were. A pending call stands for its key."""
    if isinstance(given, (str, Pending)) or not isinstance(given, Iterable):
        raise Misuse(
            f"{name} takes a list of call ids, such as {name}=[pending.call_id], or {name}=result.pending for all; it "
            f"was given {given!r:.200}"
        )
    found: dict[str, Any] = {}
    for one in given:
        if not isinstance(one, (str, Pending)):
            raise Misuse(f"{name} names a call by its call_id or key, or by what is in pending; not by {one!r:.200}")
        call = one.key if isinstance(one, Pending) else one
        found[call] = given[one] if isinstance(given, Mapping) else value
    return found


async def answer(
    run: Run, answers: Answers, limits: Limits | None, by: str = "", *, said: Callable[[], None] = lambda: None
) -> None:
    """Takes `run` up again, with the `answers` that somebody, `by` name, gave, and what `said` feeds it beside.

    All of it is written at once: a run that had ended and was taken up without what it goes on with would ask its model
    about nothing.

    Raises:
        Misuse: an answer fits no call that waits, or two fit one; nothing has been recorded.
        JournalError: the journal of a run below could not be read or written.
    """
    fitting = await _Fitting.of(run, answers)
    await fitting.record(limits, by, said)


async def require_waiting(run: Run, answers: Answers) -> None:
    """Refuses `answers` that fit no call that waits, before `run` is taken from whoever drives it.

    Raises:
        Misuse: see `answer`.
    """
    await _Fitting.of(run, answers)


class _Fitting:
    """A run, and the answers that fit calls of its own and of runs below it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.approved: dict[str, str | None] = {}
        self.corrected: set[str] = set()
        self.denied: dict[str, str] = {}
        self.answered: list[tuple[CallRecord, ToolOutput]] = []
        self.below: dict[str, _Fitting] = {}
        # Those below that go on by themselves, and those of its own that nobody was asked about yet.
        self.goes_on: set[str] = set()
        self.interrupted: list[str] = []
        self.goes_on_with: dict[str, str] = {}

    @classmethod
    async def of(cls, run: Run, answers: Answers) -> "_Fitting":
        step = as_taken_up(run.state).step
        records = () if step is None else tuple(step.calls)
        has_asked = run.state.phase == "paused"
        pending = await unsettled(run.state, run.journal if run.keeps else None) if answers else ()
        named = {name: one for one in pending for name in (one.call_id, one.key)}
        self, paths, keys = cls(run), dict[str, str](), {one.call_id: one.key for one in pending}
        by_record = {escaped(record.id): record for record in records}
        for given in answers.calls:
            one = _fit(run, given, named, pending)
            # Said here, by the name that was given: a run below knows the call by another.
            if one.kind == "result" and given not in answers.results:
                raise Misuse(
                    f"call {given!r} of run {run.run_id} waits for a result, and not to be decided on: give it one, "
                    f"results={{{given!r}: …}}"
                )
            # Of a run that waits for a worker calls may still be as its process left them.
            own = by_record.get(one.call_id)
            unasked = not has_asked or (own is not None and own.status == "interrupted")
            if unasked and one.kind == "interrupted" and given in answers.approve and given != one.key:
                raise Misuse(
                    f"call {given!r} of run {run.run_id} was under way when its process died, and nobody was asked "
                    f"about it yet: to have it run again, say so under its key ({one.key!r})"
                )
            if one.call_id in paths:
                raise Misuse(
                    f"call {one.call_id!r} is decided in two ways at once: {paths[one.call_id]!r} and {given!r}"
                )
            paths[one.call_id] = given
        inner: dict[str, Answers] = {}
        for path, given in paths.items():
            first, slash, rest = path.partition("/")
            if slash:
                # What was said under a key is said under it below too: it holds for these arguments only.
                rest = given.partition("/")[2] if given == keys[path] else rest
                _give(answers, given, inner.setdefault(first, Answers()), rest)
            else:
                self._take(by_record[first], answers, given)
        for first, theirs in inner.items():
            if by_record[first].status in ("interrupted", "approved"):
                self.goes_on.add(by_record[first].id)
            self.below[by_record[first].id] = await _below(run, by_record[first], theirs)
        return self

    def _take(self, record: CallRecord, answers: Answers, given: str) -> None:
        if record.status == "interrupted" and given not in answers.results:
            self.interrupted.append(record.id)
        # One that was under way with its answer asks nothing any more: what is said of it then is what came of it.
        if given in answers.results and record.again and record.status == "awaited":
            self.goes_on_with[record.id] = _answer(record, answers.results[given])
        elif given in answers.results:
            self.answered.append((record, _encoded(self.run, record, answers.results[given])))
        elif given in answers.deny:
            self.denied[record.id] = answers.deny[given]
        else:
            edited = self.approved[record.id] = _edited(self.run, record, answers.approve[given])
            # What is called in place of the model's call was never its own.
            if edited is not None and record.does_its_own and not alike(edited, record.call.arguments):
                self.corrected.add(record.id)

    async def record(self, limits: Limits | None, by: str, said: Callable[[], None] = lambda: None) -> None:
        """Records the answers, those for the runs below after this one's own.

        A process that dies in between leaves a run below that still waits, and that the person is asked about again,
        or answers again before that. The other way round its answer would be taken and this run would wait for it for
        ever.
        """
        run, lost = self.run, lost_call(self.run.state, self.run.model)
        if lost is not None:
            tokens = lost.usage.total_tokens
            lost = lost if await patiently(lambda: may_have_asked(run, tokens)) else None
        run.feed(RunResumed(limits, lost, budgets_beside(run.state.started.hooks, run.config.hooks), by=by))
        step = len(run.state.steps)
        for call_id in self.interrupted:
            run.feed(ApprovalRequested(step, call_id, "interrupted"))
        for call_id in self.below.keys() - self.goes_on:
            run.feed(ApprovalDecided(step, call_id, True, by=by))
        for call_id, edited in self.approved.items():
            corrects = call_id in self.corrected
            run.feed(ApprovalDecided(step, call_id, True, arguments=edited, corrects=corrects, by=by))
        for call_id, text in self.goes_on_with.items():
            run.feed(ApprovalDecided(step, call_id, True, answer=text, by=by))
        for call_id, reason in self.denied.items():
            run.feed(ApprovalDecided(step, call_id, False, reason, by=by))
        for record, output in self.answered:
            run.feed(_result(run, step, record, output))
        said()
        await run.commit()
        if self.below and run.state.phase == "paused":
            # It waits for a worker, and its lease went with that.
            async with held_again(run) as lease:
                await self._record_below(lease, by)
        else:
            await self._record_below(run.lease, by)

    async def _record_below(self, lease: Lease | None, by: str) -> None:
        for fitting in self.below.values():
            fitting.run.lease = lease
            await fitting.record(None, by)


def _fit(run: Run, given: str, named: Mapping[str, Pending], pending: Iterable[Pending]) -> Pending:
    """The call that waits under the name `given`."""
    if given in named:
        return named[given]
    path, marked, _ = given.rpartition("#")
    if marked and path in named:
        raise Misuse(
            f"call {path!r} of run {run.run_id} waits with other arguments than those that were decided on, or for "
            f"another decision; look at it again (it is now {named[path].key!r})"
        )
    # An id that could be taken for a path, a key or an escape is only known by its escaped form.
    by_plain = [] if set("#/%") & set(given) else [one for one in pending if one.plain == given]
    if len(by_plain) == 1:
        return by_plain[0]
    waiting = ", ".join(f"{one.call_id} ({one.tool})" for one in pending) or "none"
    raise Misuse(f"call {given!r} of run {run.run_id} does not wait for this; waiting: {waiting}")


def _give(answers: Answers, given: str, theirs: Answers, path: str) -> None:
    """Passes the answer that was `given` on to a run below, under the call's name there."""
    if given in answers.approve:
        theirs.approve[path] = answers.approve[given]
    elif given in answers.deny:
        theirs.deny[path] = answers.deny[given]
    else:
        theirs.results[path] = answers.results[given]


async def _below(run: Run, record: CallRecord, answers: Answers) -> "_Fitting":
    below = below_of(run.config.tools.get(record.doing.name))
    if below is None:
        raise Misuse(
            f"this agent has no sub-agent {record.doing.name!r}, which run {run.run_id} waits for: decide with one "
            "that has, or cancel the run (agent.cancel)"
        )
    events = await recorded_below(run, record)
    if events is None:
        raise is_gone(run, record)
    return await _Fitting.of(taken_up(run, below, record, events), answers)


def _edited(run: Run, record: CallRecord, arguments: Mapping[str, Any] | None) -> str | None:
    """The JSON text of the arguments that a person put in place of the model's, which must fit the tool.

    A call that may have been done is made again as it was. What a journal has redacted may be put back in its place.
    """
    if arguments is None:
        return None
    tool = run.config.tools.get(record.doing.name)
    if tool is None:
        raise Misuse(f"this agent has no tool {record.doing.name!r}, which run {run.run_id} waits to call")
    text = as_fits(tool, arguments, f"the edited arguments of call {record.id!r}")
    kept = text if run.redact is None else kept_arguments(text, run.redact)
    if (record.in_doubt or record.again) and not alike(kept, record.doing.arguments):
        raise Misuse(
            f"call {record.id!r} of run {run.run_id} was under way and may have been done, so it takes no other "
            "arguments: a service that knows its key would answer them with what came of the first. Allow it again as "
            "it was, give its result, or deny it: the model may then call again with others"
        )
    return text


def _answer(record: CallRecord, value: Any) -> str:
    """The JSON text of the answer to a tool that asked in the middle of a call."""
    try:
        return json_of(value)
    except (TypeError, ValueError) as error:
        raise Misuse(f"results: the answer to {record.id!r} is no JSON: {error}") from error


def _encoded(run: Run, record: CallRecord, value: Any) -> ToolOutput:
    """A result from outside, as the model is shown it."""
    tool = run.config.tools.get(record.doing.name)
    return encode_given(value, 50_000 if tool is None else tool.max_output, f"results: the result of {record.id!r}")


def _result(run: Run, step: int, record: CallRecord, output: ToolOutput) -> ToolFinished:
    """The event for a result from outside. The answer to a question is the last word; any other may be reacted to.

    A call in place of another that a crash cut off has an earlier result too, but nobody was asked about that.
    """
    asked = record.status == "awaited" and record.found is not None
    provisional = bool(run.config.on_tool_result) and not asked
    return ToolFinished(step, record.id, output.content, output.is_error, output.app, provisional=provisional)
