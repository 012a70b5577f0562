"""Decisions: what people and the outside said about the calls that a paused run waits for, fed to the run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from treadle.drivers.run import Run
from treadle.kernel.errors import Misuse
from treadle.kernel.events import ApprovalDecided, RunResumed, ToolFinished
from treadle.kernel.step import CallRecord
from treadle.kernel.stop import Limits
from treadle.result import pending_in
from treadle.tools import ToolError
from treadle.tools.output import ToolOutput, encode


@dataclass(frozen=True, slots=True)
class Decisions:
    """By call id: allowed, with other arguments or None; refused, with a reason; answered, with a result."""

    approve: dict[str, Mapping[str, Any] | None]
    deny: dict[str, str]
    results: dict[str, Any]

    @classmethod
    def of(
        cls,
        approve: Iterable[str] | Mapping[str, Mapping[str, Any] | None],
        deny: Iterable[str] | Mapping[str, str],
        results: Mapping[str, Any],
    ) -> "Decisions":
        """The decisions, each call in one of them at most.

        Raises:
            Misuse: a call is decided twice, or one text was given where several ids are wanted.
        """
        for name, value in (("approve", approve), ("deny", deny)):
            if isinstance(value, str):
                raise Misuse(f"{name} takes a list of call ids, such as {name}=[{value!r}]; it was given a text")
        approved = approve if isinstance(approve, Mapping) else dict.fromkeys(approve)
        denied = deny if isinstance(deny, Mapping) else dict.fromkeys(deny, "")
        twice = (approved.keys() & denied.keys()) | ((approved.keys() | denied.keys()) & results.keys())
        if twice:
            raise Misuse(f"these calls are decided in two ways at once: {', '.join(sorted(twice))}")
        return cls(dict(approved), dict(denied), dict(results))


def decided(run: Run, decisions: Decisions, limits: Limits | None) -> None:
    """Takes `run` up again and feeds it `decisions`.

    Raises:
        Misuse: a decision does not fit a call that waits; nothing has been fed.
    """
    step = run.state.step
    records = {} if step is None else {record.id: record for record in step.calls}
    decisions, below = _split(run, _unlocked(run, decisions), records)
    for call_id in (*decisions.approve, *decisions.deny):
        _waits(run, records, call_id, "needs_approval")
    for call_id in decisions.results:
        _waits(run, records, call_id, "needs_approval", "awaited")
    for call_id, arguments in decisions.approve.items():
        if arguments is not None:
            _check_arguments(run, records[call_id], arguments)
    outputs = {call_id: _output(run, records[call_id], value) for call_id, value in decisions.results.items()}
    run.feed(RunResumed(limits))
    number = len(run.state.steps)
    for call_id, passed_down in below.items():
        run.passed_down[call_id] = passed_down
        run.feed(ApprovalDecided(number, call_id, True))
    for call_id, arguments in decisions.approve.items():
        edited = None if arguments is None else msgspec.json.encode(arguments).decode()
        run.feed(ApprovalDecided(number, call_id, True, arguments=edited))
    for call_id, reason in decisions.deny.items():
        run.feed(ApprovalDecided(number, call_id, False, reason))
    for call_id, output in outputs.items():
        run.feed(ToolFinished(number, call_id, output.content, output.is_error, output.app))


def _split(run: Run, decisions: Decisions, records: Mapping[str, CallRecord]) -> tuple[Decisions, dict[str, Decisions]]:
    """The decisions for the run's own calls, and by call those for the sub-run that works on it ("call/its call")."""
    own, below = Decisions({}, {}, {}), dict[str, Decisions]()
    for name in ("approve", "deny", "results"):
        for call_id, decision in getattr(decisions, name).items():
            call, _, inner = call_id.partition("/")
            record = records.get(call)
            if call_id in records or record is None or not record.run_id:
                getattr(own, name)[call_id] = decision
            elif inner in {one.call_id for one in record.waits}:
                getattr(below.setdefault(call, Decisions({}, {}, {})), name)[inner] = decision
            else:
                _waits(run, records, call_id)
    return own, below


def _unlocked(run: Run, decisions: Decisions) -> Decisions:
    """`decisions` by plain call id; a fingerprint after it ("id#1f2e3d4c") must be that of the arguments that wait."""
    step = run.state.step
    keys = {} if step is None else {one.call_id: one.key for one in pending_in(step)}

    def plain(key: str) -> str:
        call_id, marked, _ = key.rpartition("#")
        if not marked or key in keys:
            return key
        if keys.get(call_id, key) != key:
            raise Misuse(
                f"call {call_id!r} of run {run.run_id} waits with other arguments than those that were decided on; "
                f"look at them again (it is now {keys[call_id]!r})"
            )
        return call_id

    return Decisions(
        {plain(key): value for key, value in decisions.approve.items()},
        {plain(key): value for key, value in decisions.deny.items()},
        {plain(key): value for key, value in decisions.results.items()},
    )


def _waits(run: Run, records: Mapping[str, CallRecord], call_id: str, *statuses: str) -> None:
    record = records.get(call_id)
    if record is None or record.status not in statuses:
        step = run.state.step
        waiting = [] if step is None else [f"{one.call_id} ({one.tool})" for one in pending_in(step)]
        raise Misuse(
            f"call {call_id!r} of run {run.run_id} does not wait for this; waiting: {', '.join(waiting) or 'none'}"
        )


def _check_arguments(run: Run, record: CallRecord, arguments: Mapping[str, Any]) -> None:
    tool = run.config.tools.get(record.name)
    if tool is None:
        raise Misuse(f"this agent has no tool {record.name!r}, which run {run.run_id} waits to call")
    try:
        tool.validate(msgspec.json.encode(arguments).decode())
    except ToolError as error:
        raise Misuse(f"the edited arguments of call {record.id!r} do not fit {record.name}: {error}") from error


def _output(run: Run, record: CallRecord, value: Any) -> ToolOutput:
    tool = run.config.tools.get(record.name)
    return encode(value, 50_000 if tool is None else tool.max_output)
