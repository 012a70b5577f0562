"""Admission: whether a call may be made. Known? Offered in this step? Valid? Allowed by the rules?

What is refused is answered with an error that says what would be right; the limits on the number of calls are kept
where calls come from: a reply's when it is recorded, those of a reaction when it is carried out.
"""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from treadle.drivers.approvals import ALLOWED, Action, Ruling, own_word, ruling
from treadle.drivers.below import below_of
from treadle.drivers.calls.made import MadeCalls, calls_so_far
from treadle.drivers.purse.claims import calls_left
from treadle.drivers.request import not_allowed
from treadle.drivers.run import Run
from treadle.kernel.calls import CallRecord, cut_off
from treadle.kernel.events import ApprovalRequested, Event, ToolFinished, ToolReacted
from treadle.kernel.messages import ToolCall
from treadle.models.invalid_call import attempt_of
from treadle.tools import Tool, ToolError
from treadle.tools.errors import did_you_mean, naming, nearest
from treadle.tools.output import encode_error
from treadle.tools.raised import log_raised

_STRICTER: tuple[Action, ...] = ("allow", "ask", "deny")


class Admitted(Struct, frozen=True):
    """A call that may be run: its record, its tool, and its arguments as validated."""

    record: CallRecord
    tool: Tool
    arguments: dict[str, Any]


async def allowed(run: Run, checked: Admitted, made: MadeCalls) -> Admitted | Event:
    """`checked` ready to be run, or the event that says why it is not: an error, or an approval to wait for."""
    verdict, record = await _ruling(run, checked, made), checked.record
    if verdict.action == "deny":
        why = f": {verdict.reason}" if verdict.reason else ""
        return refused(run, record, ToolError(f"This call is not allowed{why}.", executed=False))
    if verdict.action == "ask" and _nobody_agreed(checked):
        kind: Literal["policy", "interrupted"] = "interrupted" if record.status == "interrupted" else "policy"
        return ApprovalRequested(len(run.state.steps), record.id, kind, verdict.reason)
    return checked


def _nobody_agreed(checked: Admitted) -> bool:
    """Whether a call is to be made that no person has allowed.

    One that a crash cut off is made again under the rules that hold now, except where a run below goes on with it: the
    calls of that one are judged there. So is one that goes on with the answer to a question that its tool asked, be it
    the second: that is no leave.
    """
    record = checked.record
    goes_on = record.status == "interrupted" or record.answer is not None
    again = goes_on and record.leave != record.made and checked.tool.agent is None
    return record.status == "asked" or again


def check(run: Run, record: CallRecord, *, asked: bool = False) -> Admitted | Event:
    """Admission as far as it needs none of the application's functions.

    With `asked` it is found out what came of a call of a tool that writes, before anybody else has to.
    """
    call = record.doing
    tool = run.config.tools.get(call.name)
    fault = _not_offered(run, call, tool)
    if fault is not None or tool is None:
        return refused(run, record, fault or _unknown_tool(call, list(run.config.tools)))
    if may_have_changed(record, tool) and not asked:
        return unknown_outcome(run, record)
    if _hands_on(tool) and (why := _why_not_handed_on(run, record)):
        return refused(run, record, ToolError(why, executed=False))
    try:
        return Admitted(record, tool, tool.validate(call.arguments))
    except ToolError as error:
        return refused(run, record, error)


def may_have_changed(record: CallRecord, tool: Tool) -> bool:
    """Whether a call was in flight when a process died that may not be made again by itself: its tool writes.

    What that said when the call began holds too: it was the tool of that time which was at work.
    """
    return record.status == "interrupted" and (record.writes or tool.effect == "write")


def unknown_outcome(run: Run, record: CallRecord, why: str = "") -> Event:
    """What is done about a call of which nobody knows what it did: a person is asked, or the model is told."""
    if run.config.on_interrupted == "tell":
        return refused(run, record, ToolError("nobody is asked about it"))
    return ApprovalRequested(len(run.state.steps), record.id, "interrupted", why)


def may_begin(run: Run) -> int | None:
    """How many of the open calls may begin; None where all may, as they were counted when they came in.

    Fewer may where the run was taken up under a lower limit.
    """
    left = calls_left(run)
    if left is None or left >= 0:
        return None
    return left + sum(is_to_begin(record) for record in calls_so_far(run))


def is_to_begin(record: CallRecord) -> bool:
    """Whether a call, or one in place of it, is counted, but nothing of it has been run yet."""
    waits = record.status in ("asked", "needs_approval", "approved")
    return waits and not record.executed and not record.in_doubt


def beyond_limit(run: Run, record: CallRecord) -> Event:
    """The event that answers a call for which the limit, lowered since it came in, leaves no room."""
    why = "This call was not executed. The run's limit of tool calls is reached."
    return refused(run, record, ToolError(why, executed=False))


def ruled(run: Run, tool: Tool) -> bool:
    """Whether anybody has a say about calls of `tool`: the tool itself, the agent's rules, or those of a run above."""
    above: Run | None = run
    while above is not None:
        if above.config.approvals:
            return True
        above = above.parent
    return bool(tool.needs_approval or tool.suspect)


async def _ruling(run: Run, admitted: Admitted, made: MadeCalls) -> Ruling:
    """The strictest word on a call: of the run's own rules or else its tool, and of the rules of the runs above."""
    tool, arguments = admitted.tool, admitted.arguments

    def times() -> int:
        return made.times(admitted.record)

    async def own(function: Callable[..., Any], what: str, *given: Any) -> Any:
        try:
            return await run.driven.own(function, what, *given)
        except (Exception, SystemExit) as error:
            # The careful answer is taken for its own, so nobody else is told.
            about = about_call(run, admitted.record.id, tool)
            log_raised(f"the condition {what} of a rule about {tool.name} raised", error, run.redact, about)
            raise

    words = [Ruling("ask", tool.suspect)] if tool.suspect else []
    word = await ruling(run.config.approvals, tool, arguments, times, own)
    words.append(await own_word(tool, arguments, own) if word is None else word)
    above = run.parent
    while above is not None:
        words.append(await ruling(above.config.approvals, tool, arguments, times, own) or ALLOWED)
        above = above.parent
    # Of those that are as strict the first has the word.
    return max(words, key=lambda one: _STRICTER.index(one.action))


def about_call(run: Run, call_id: str, tool: Tool) -> dict[str, object]:
    """The fields of a line that is logged about a call."""
    state = run.state
    return {"run_id": state.started.run_id, "step": len(state.steps), "call_id": call_id, "tool": tool.spec.name}


def hands_on(run: Run, record: CallRecord) -> bool:
    """Whether the conversation is handed on by a call."""
    return _hands_on(run.config.tools.get(record.doing.name))


def _hands_on(tool: Tool | None) -> bool:
    below = below_of(tool)
    return below is not None and below.final


def _why_not_handed_on(run: Run, record: CallRecord) -> str:
    """Why the conversation is not handed on by a call; empty if it is.

    Of a reply's calls that do so one that has begun goes before one that has not, and of those the first. What another
    agent answers would be paid and dropped where the run ends with a call of the same reply.
    """
    calls = calls_so_far(run)
    rivals = [one for one in calls if hands_on(run, one) and (one.final or one.result is None)]
    first = ([one for one in rivals if one.executed] or rivals)[:1]
    if record.id not in [one.id for one in first]:
        return "The conversation is handed on already."
    ends = next((one.doing.name for one in calls if one.status == "awaited" and not one.wait), "")
    return f"The run ends with the call of {ends}: nothing is handed on." if ends and not record.executed else ""


def _not_offered(run: Run, call: ToolCall, tool: Tool | None) -> ToolError | None:
    """Why the step under way does not let the model call this tool; None if it does."""
    prepared, step = run.state.prepared, run.state.step
    if prepared is None or step is None:
        return None
    choice, offered = step.tool_choice, prepared.tools
    if tool is not None and offered is None and choice == "auto":
        return None
    if tool is None and (attempt := attempt_of(call)) is not None:
        return ToolError(attempt.fault, executed=False)
    if choice == "none":
        return ToolError("Tools are off in this step: answer from what you have.", executed=False)
    if tool is None or (offered is not None and call.name not in offered):
        names = list(run.config.tools if offered is None else offered)
        if tool is not None and not_allowed(run.config, run.state, [call.name]):
            why = f"{call.name} is not offered while a skill is active that does not allow it."
            return ToolError(why, executed=False, available_tools=names)
        if call.name in prepared.withheld:
            return ToolError(f"{call.name} is withheld in this step.", executed=False)
        if tool is not None:
            return ToolError(f"{call.name} is not offered in this step.", executed=False, available_tools=names)
        return _unknown_tool(call, names)
    if choice not in ("auto", "required") and call.name != choice:
        return ToolError(f"Only {choice} may be called in this step.", executed=False, available_tools=[choice])
    return None


def _unknown_tool(call: ToolCall, names: list[str]) -> ToolError:
    near = nearest(call.name, names)
    why = f"There is no tool {call.name!r}{did_you_mean(near)}"
    return ToolError(why, given=call.name, nearest=near, available_tools=names)


def refused(run: Run, record: CallRecord, error: ToolError) -> Event:
    """The event that answers a call which is not made; one in place of another leaves the result there was.

    Of a call that was under way when a process died nobody may say that it was not executed.
    """
    step = len(run.state.steps)
    if record.found is not None:
        return ToolReacted(step, record.id, "keep", reason=naming(record.doing.name, error.message))
    if record.in_doubt:
        return ToolFinished(step, record.id, cut_off(), is_error=True)
    if record.again:
        before = "The call was made before, as far as to its question, and was not gone on with."
        error = ToolError(f"{error.message.rstrip('.')}. {before}", **{**error.hints, "executed": "unknown"})
    content = encode_error(error).content
    return ToolFinished(step, record.id, content, is_error=True, provisional=bool(run.config.on_tool_result))
