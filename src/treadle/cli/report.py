"""The report of a result: as JSON for programs, and as the lines that a person is told beside the answer."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from treadle.cli.next_command import NextCommand
from treadle.cli.story import described, in_flight, is_harmless
from treadle.cli.terminal import note, prose, set_off, shorten
from treadle.cli.waiting import Waiting
from treadle.context.shown import text_with_shown
from treadle.drivers.watching import seconds_of_steps
from treadle.kernel.calls import CallRecord
from treadle.kernel.messages import Usage
from treadle.kernel.names import escaped
from treadle.kernel.step import Step
from treadle.kernel.stop import Decision, Limits
from treadle.result import Pending, RunResult, answer_shown, plain_output
from treadle.tools import Tool


def as_json(result: RunResult, model: str) -> dict[str, Any]:
    """The result as one JSON object.

    Args:
        result: the result.
        model: the name of the model that the run was started with.
    """
    return {
        "run_id": result.run_id,
        "model": model,
        "text": result.text,
        "output": plain_output(result),
        "finished": result.finished,
        "stop": {"reason": result.stop.reason, "detail": result.stop.detail, "advice": result.stop.advice},
        "steps": [
            _step(step, result.limits, seconds)
            for step, seconds in zip(result.steps, seconds_of_steps(result.steps, result.elapsed), strict=True)
        ],
        "tool_calls": [_call(record) for record in result.tool_calls_made],
        "usage": _usage(result.usage),
        "cost": result.cost,
        "decision": None if result.decision is None else _decision(result.decision, result.limits),
        "pending": [_pending(one) for one in result.pending],
        "error": None if result.error is None else {"kind": result.error.kind, "message": str(result.error)},
        "seconds": round(result.elapsed, 3),
    }


def _step(step: Step, limits: Limits, seconds: float) -> dict[str, Any]:
    return {
        "step": step.number,
        "text": step.text,
        "finish": step.finish,
        "model": step.model,
        "usage": _usage(step.usage),
        "cost": step.cost,
        "seconds": round(seconds, 3),
        "last_call_because": None if step.landing is None else step.landing.reason,
        "decision": _decision(step.decision, limits),
        "calls": [record.id for record in step.calls],
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {name: getattr(usage, name) for name in usage.__struct_fields__}


def _decision(decision: Decision, limits: Limits) -> dict[str, Any]:
    checks = [
        {"name": row.name, "value": row.value, "bound": row.bound, "met": row.met} for row in decision.checks(limits)
    ]
    return {"verdict": decision.verdict, "why": decision.why, "checks": checks}


def _call(record: CallRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "tool": record.name,
        "arguments": record.arguments,
        "result": None if record.result is None else record.result.text,
        "is_error": record.is_error,
        "status": record.status,
        "seconds": None if record.seconds is None else round(record.seconds, 3),
    }


def _pending(one: Pending) -> dict[str, Any]:
    return {
        "call_id": one.call_id,
        "key": one.key,
        "tool": one.tool,
        "arguments": one.arguments,
        "kind": one.kind,
        "question": one.question,
        "found": one.found,
    }


def closing(result: RunResult, waiting: Waiting, tools: Mapping[str, Tool], command: NextCommand | None) -> None:
    """Tells, on standard error, why a run did not finish, what was found if no answer says so, and what to do next; and
    what ended one that finished by a condition, or without a text.

    Args:
        result: the run's.
        waiting: what it waits for.
        tools: those of its agent; empty if not known.
        command: the commands that go on with it; None if it is kept in no journal.
    """
    if result.finished and result.stop.reason != "condition" and answer_shown(result):
        return
    if not _answers(result):
        found = [record for record in result.tool_calls_made if record.result is not None and not record.is_error]
        for record in found:
            result_text = "" if record.result is None else record.result.text
            asked = replace(record.call, arguments=record.arguments_json)
            instead = "" if record.stand_in is None else " (or what was called in its place)"
            note(f"found: {described(asked)}{instead} -> {shorten(result_text, 400)}")
    for record in in_flight(result.events) if result.stop.reason != "waiting" else ():
        tool, named = tools.get(record.doing.name), f"{described(record.doing)} ({escaped(record.id)})"
        if tool is not None and tool.effect == "read":
            note(f"cut off, and changed nothing: {named}")
        elif tool is None and is_harmless(record, result.events):
            note(f"cut off; to run it again does no harm: {named}")
        else:
            note(f"its outcome is unknown, as it was under way: {named}")
    said = "\n".join(map(set_off, [_because(result), *_advice(result, command is not None)]))
    note(prose(said, err=True, indent="  | "))
    if result.finished:
        return
    for call in waiting.calls:
        note("\n".join(call.lines(tools)))
    if command is None:
        return
    for line in command.lines(waiting):
        note(line)
    note(f"its story: {command.line('show', result.run_id, '--why')}")


def _answers(result: RunResult) -> bool:
    """Whether the model said something after the last results, rather than beside calls that it made."""
    spoken = next((step for step in reversed(result.steps) if step.text.strip()), None)
    return spoken is not None and not spoken.calls


def _because(result: RunResult) -> str:
    """Why the run ended or waits; the error behind it as it is told everywhere else."""
    if result.pending:
        return "waiting for you:"
    last = result.steps[-1].message if result.steps and not result.text.strip() else None
    if result.finished and last is not None and last.shown:
        return f"ended: the answer is {text_with_shown(last)}"
    reason, detail = result.stop.reason, result.stop.detail
    if result.error is not None and str(result.error) not in detail:
        detail = f"{detail}: {result.error}" if detail else str(result.error)
    why = f"{reason}: {detail.removeprefix(f'{reason}: ')}" if detail else reason
    return why if reason == "waiting" else f"{'ended' if result.finished else 'stopped'}: {why}"


_OPTIONS = {
    "limits.steps": "--max-steps",
    "limits.tool_calls": "--max-tool-calls",
    "limits.seconds": "--timeout",
    "limits.usd": "--max-cost",
    "limits.tokens": "--max-tokens",
}


def _advice(result: RunResult, journaled: bool) -> list[str]:
    """What to try next, in the words of the command line."""
    match result.stop.reason:
        case "waiting":
            return [] if journaled else ["No journal was kept, so that it cannot be gone on with."]
        case "model_error":
            return ["When its cause is gone, ask again."]
        case "cancelled" | "running":
            return []
        case _ if result.finished:
            return []
        case _:
            advice = result.stop.advice
            for name, option in _OPTIONS.items():
                advice = advice.replace(name, option)
            return [advice]
