"""Recovery: a call of a tool that writes was under way when a process died, and nobody knows what it did.

Its tool may find that out (`reconcile`). What it says is believed: a result is the call's as if it had come in time,
and a call that was not done is made again. Where it cannot say, raises, or says what cannot be, the outcome stays
unknown: a person is asked, or the model is told, as the agent has it.
"""

from treadle.drivers.calls.admission import Admitted, about_call, check, may_have_changed, unknown_outcome
from treadle.drivers.calls.execution import context_of
from treadle.drivers.run import Run
from treadle.kernel.calls import CallRecord, parsed
from treadle.kernel.events import Event, ToolFinished
from treadle.tools import Done, NotDone, Tool, ToolOutput


def asks_its_tool(run: Run, record: CallRecord) -> Tool | None:
    """The tool that is asked what came of a call; None if none is."""
    tool = run.config.tools.get(record.doing.name)
    return tool if tool is not None and tool.reconcile is not None and may_have_changed(record, tool) else None


async def reconciled(run: Run, record: CallRecord, tool: Tool) -> tuple[Admitted | Event, ToolOutput | None]:
    """What becomes of a call, and its output if its tool says that it was done.

    Raises:
        asyncio.CancelledError: this run was cancelled.
    """
    found = check(run, record, asked=True)
    if not isinstance(found, Admitted):
        return found, None
    context = context_of(run, record, found.arguments)
    answer = await run.driven.apart(tool.reconciled(context, run.driven.is_cancelled, run.redact))
    match answer.value:
        case NotDone():
            return found, None
        case Done(result=result):
            output = await tool.returned(
                result, run.driven.is_cancelled, run.config.errors, about_call(run, record.id, tool), run.redact
            )
            return _finished(run, record, output), output
        case None if not answer.is_error:
            why = "."
        case None:
            # What was too long is cut, which may leave no JSON of it.
            shown = parsed(str(answer.content))
            why = f": {shown['message'] if isinstance(shown, dict) else shown}"
        case other:
            why = f": it was given {type(other).__name__}, and not Done(…), NotDone() or None"
    return unknown_outcome(run, record, f"{tool.name} could not find out what came of it{why}"), None


def _finished(run: Run, record: CallRecord, output: ToolOutput) -> ToolFinished:
    provisional = bool(run.config.on_tool_result)
    step = len(run.state.steps)
    return ToolFinished(step, record.id, output.content, output.is_error, output.app, provisional=provisional)
