"""What must hold of every tool call: what ran, when, whether it was allowed, and what is told of it."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from below import HELPER, PASS_ON
from folding import fold_all
from hooks import CHANGED
from journals import MASK, hide
from resting import owner_of
from server import OWN
from toolbox import FOUND_OUT, IN_THREADS, OF_A_CALL, SEEN, Execution, is_write, number_of, on_call
from trial import Trial

from treadle.kernel.events import (
    ApprovalDecided,
    ApprovalRequested,
    ModelFailed,
    ModelReplied,
    RunFinished,
    ToolFinished,
    ToolReacted,
    ToolsListed,
    ToolStarted,
)
from treadle.kernel.messages import (
    ToolCall,
    text_of,
)

_TELLS = re.compile(r"(?:saw |known to be written |found to be written |)(\d)")


def tools_run_between_start_and_result(trial: Trial) -> Iterator[str]:
    """A function runs only while its `ToolStarted` stands in the journal without a result, and once for each.

    One that only reads may run as soon as that was handed over; where it is lost then, it runs again. In a thread or at
    a server it may begin after another process has taken the run over: nobody hears of what it read.
    """
    once: set[Any] = set()
    for one in trial.world.executed:
        if not one.before or not isinstance(one.before[-1], ToolStarted):
            last = type(one.before[-1]).__name__ if one.before else "nothing"
            yield f"{one.tool} runs when the journal has {last} of its call{_early(one)}"
        key = one.call, _starts(one), 0 if one.sure else one.alive
        late = _out_of_reach(trial, one) and not is_write(one.tool)
        # That of a server is made again, if it may be, where the server died of it.
        died = any(first.died and first.call == one.call for first in trial.world.executed) and not is_write(one.tool)
        if one.before and key in once and not late and not died:
            yield f"{one.tool} runs again within one start of its call"
        once.add(key)


def _out_of_reach(trial: Trial, one: Execution) -> bool:
    """Whether the call was on its way to a thread or a server when its run was taken over: it is made all the same."""
    return one.call in trial.world.overtaken and one.tool in (*IN_THREADS, *OWN)


def _early(one: Execution) -> str:
    return " (early)" if not one.before else ""


def _starts(one: Execution) -> int:
    """How often the call had been started when its tool ran."""
    return sum(isinstance(event, ToolStarted) for event in one.before)


def calls_are_started_again_for_a_reason(trial: Trial) -> Iterator[str]:
    """A call that has begun begins again only if its tool may, a person says so, or a hook does."""
    for one in trial.world.executed:
        starts = [i for i, event in enumerate(one.before) if isinstance(event, ToolStarted)]
        if len(starts) < 2:
            continue
        between = one.before[starts[-2] : starts[-1]]
        kinds = {type(event).__name__ for event in between}
        approved = any(agrees(event) for event in between)
        if "ToolFinished" in kinds and "ToolReacted" not in kinds:
            yield f"{one.tool} runs again although its result was recorded"
        elif (
            not kinds & {"ToolFinished", "ResultAwaited"}
            and one.before[starts[-2]].writes
            and not approved | _found_out(trial, one, "not done")
        ):
            yield f"{one.tool} was under way and runs again unasked"


def _found_out(trial: Trial, one: Execution, answer: str) -> bool:
    """Whether its tool found out this about the call, when another process asked."""
    return any(asked.key == one.key and asked.answer == answer for asked in trial.world.asked)


def what_a_tool_finds_out_is_believed(trial: Trial) -> Iterator[str]:
    """A tool is asked only about calls that a process left in flight, and what it says is recorded, and no more."""
    for asked in trial.world.asked:
        if not asked.before or not isinstance(asked.before[-1], ToolStarted):
            yield f"{asked.tool} is asked about a call that is not in doubt: {asked.before[-1:]}"
        events = trial.journal.events(asked.run_id)
        after = on_call(events, asked.step, asked.call_id)[len(asked.before) :]
        if not after:
            continue
        match asked.answer, after[0]:
            case "done", ToolFinished(content=content, is_error=False) if content == FOUND_OUT:
                pass
            case "not done", ToolStarted():
                pass
            case "not done", ToolFinished(is_error=True):
                pass
            case "unknown", ApprovalRequested(why="interrupted", reason=reason) if reason:
                pass
            case "unknown", ToolFinished(content=content, is_error=True) if "unknown" in text_of(content):
                pass
            case _, ToolReacted(action="keep"):
                pass
            case answer, other:
                yield f"{asked.tool} says {answer}, and what is recorded is {other}"


def a_hand_off_comes_last(trial: Trial) -> Iterator[str]:
    """What is called beside what hands the conversation on has begun, waits or is answered before that begins."""
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        for reply in [event for event in events if isinstance(event, ModelReplied)]:
            passes = {call.id for call in reply.message.calls if call.name == PASS_ON}
            reacted = set[str]()
            handed, first = len(events), dict[str, int]()
            for place, event in enumerate(events if passes else ()):
                if not isinstance(event, OF_A_CALL) or event.step != reply.step:
                    continue
                first.setdefault(event.call_id, place)
                if isinstance(event, ToolReacted) and event.action == "call":
                    # What takes its place may be no hand-off.
                    reacted.add(event.call_id)
                if event.call_id in passes - reacted and isinstance(event, ToolStarted):
                    handed = min(handed, place)
            for call in reply.message.calls:
                if call.id not in passes and first.get(call.id, 0) > handed:
                    yield f"{call.name} is begun after the conversation was handed on"


def writes_happen_once(trial: Trial) -> Iterator[str]:
    """A tool that writes runs once for a call, unless a person agrees to more; and never beside another of its run."""
    seen: dict[Any, Execution] = {}
    for one in trial.world.executed:
        starts = [event for event in one.before if isinstance(event, ToolStarted)]
        if starts and starts[-1].writes is not one.wrote:
            yield f"{one.tool} is recorded as one that {'writes' if starts[-1].writes else 'may be made again'}"
        if one.beside and one.wrote and is_write(one.tool):
            yield f"{one.tool} runs beside {one.beside}"
        key = one.call, one.tool
        if key in seen and seen[key].wrote:
            later = one.before[len(seen[key].before) :]
            if not any(agrees(event) for event in later):
                yield f"{one.tool} runs again for the same call"
        seen[key] = one


def nothing_walks_around_the_rules(trial: Trial) -> Iterator[str]:
    """What is denied never runs, what asks runs only when somebody agreed: the rules of all runs above hold too."""
    for one in trial.world.executed:
        verdict = trial.verdict(one.run_id, one.tool, one.n)
        approved = any(agrees(event) for event in one.before)
        if verdict == "deny":
            yield f"{one.tool}({one.n}) runs in {trial.path(one.run_id)}, which is denied{_stand_in(trial, one)}"
        elif verdict == "ask" and not approved:
            yield f"{one.tool}({one.n}) runs in {trial.path(one.run_id)} unapproved{_stand_in(trial, one)}"
    for run in trial.journal.runs:
        path, above = trial.path(run), trial.above(run)[1:]
        if above and trial.verdict(above[0], path.rpartition("/")[2], 0) == "deny":
            yield f"{path} was called, which is denied"


def what_a_server_changes_is_asked_about(trial: Trial) -> Iterator[str]:
    """A server's tool runs as it was listed to the run, and where that is not what it first said, a person agreed."""
    for one in trial.world.executed:
        if one.tool not in OWN:
            continue
        first, listed = _listed(trial, one)
        if listed is None:
            yield f"{one.tool} runs, and was not listed"
            continue
        approved = any(agrees(event) for event in one.before)
        trusted = trial.setup.at(trial.path(one.run_id)).server.trusted
        if not approved and not trusted and (listed.changed or first.description != listed.description):
            yield f"{one.tool} runs unapproved, of which was first said {first.description!r}, and now {listed}"
        if listed.remote == "changing" and f"Version {one.version}." not in listed.description and not trusted:
            yield f"{one.tool} runs as of version {one.version}, and was shown as {listed.description!r}"


def agrees(event: Any) -> bool:
    """Whether somebody agreed to a call: one that asked something and was answered goes on, and is not agreed to."""
    return isinstance(event, ApprovalDecided) and event.approved and event.answer is None


def _listed(trial: Trial, one: Execution) -> tuple[Any, Any]:
    """The tool as the run had it first, and in the step of an execution; None if it had no such."""
    first = listed = None
    for event in trial.journal.events(one.run_id):
        if isinstance(event, ToolsListed):
            listed = next((tool for tool in event.listed if tool.name == one.tool), None)
            first = first or listed
        if isinstance(event, ModelReplied) and event.step == one.step:
            break
    return first, listed


def nothing_is_made_too_often(trial: Trial) -> Iterator[str]:
    """What a rule of the run or of one above denies after so many calls alike is made no more often, in any spelling.

    What was under way when a process died is the same call when it is made again.
    """
    alike: dict[tuple[str, str, int], set[Any]] = defaultdict(set)
    for one in trial.world.executed:
        results = sum(isinstance(event, ToolFinished) for event in one.before)
        alike[one.run_id, one.tool, one.n].add((one.call, results))
    for (run, name, n), calls in alike.items():
        for rule in trial.rules(run):
            denies = rule.action == "deny" and rule.repeats and rule.matches(name, n)
            if denies and len(calls) > rule.repeats:
                yield f"{name}({n}) runs {len(calls)} times in {trial.path(run)}, denied after {rule.repeats}"


def what_runs_is_what_was_judged(trial: Trial) -> Iterator[str]:
    """What a rule's function does to the arguments that it is shown reaches no tool."""
    for one in trial.world.executed:
        if one.n == CHANGED:
            yield f"{one.tool} is given what a rule's function made of its arguments"


def what_runs_has_the_arguments_that_were_decided(trial: Trial) -> Iterator[str]:
    """A tool is given what the last word on its call was: a person's, a hook's, or else the model's."""
    for one in trial.world.executed:
        if one.tool in OWN:
            continue
        given = as_decided(trial, one)
        # Who takes a run up whose journal redacts has what stands there.
        hidden = trial.world.quotes and one.alive > 1 and str(one.n) == MASK
        if given is not None and one.n != given and not hidden:
            yield f"{one.tool} is given {one.n}, and decided was {given}"


def as_decided(trial: Trial, one: Execution) -> Any:
    """The number that the last word on its call had when an execution began; None where nobody can say."""
    call = _call(trial, one)
    last = None if call is None or call.name != one.tool else _number(call.arguments)
    said = on_call(trial.journal.said.get(one.run_id, ()), one.step, one.call_id)[: len(one.before)]
    # What was handed to a journal that lost it is as good here.
    for number in numbers(said if len(said) == len(one.before) else one.before):
        last = last if str(number) == MASK and last is not None else number
    return last


def numbers(events: Iterable[Any]) -> Iterator[Any]:
    """What a call was to be made with, by one event after the other; None for what is no JSON of an object."""
    for event in events:
        match event:
            case ToolStarted(arguments=str(arguments)) if arguments:
                yield _number(arguments)
            case ToolReacted(action="change", arguments=str(arguments)) | ApprovalDecided(arguments=str(arguments)):
                yield _number(arguments)
            case ToolReacted(action="call", call=ToolCall(arguments=arguments)):
                yield _number(arguments)


def _number(arguments: str) -> Any:
    try:
        given = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        # What is no JSON may be read all the same.
        return None
    return number_of(given) if isinstance(given, dict) else None


def each_call_has_its_own_result(trial: Trial) -> Iterator[str]:
    """What a call is told to have seen or put is what it was to see or put: no other call of the reply was."""
    result = trial.last.result
    steps = [(run, step) for run in trial.journal.runs for step in fold_all(trial.journal.events(run)).steps]
    steps += [] if result is None else [(result.run_id, step) for step in result.steps]
    for run, step in steps:
        said = trial.journal.said.get(run, ())
        for record in step.calls:
            found = None if record.result is None else _TELLS.fullmatch(record.result.text)
            # A hook may put 0 in the place of any result.
            if found is None or found[1] == "0" or record.name in OWN:
                continue
            replies = [one for one in said if isinstance(one, ModelReplied) and one.step == step.number]
            asked = [_number(call.arguments) for one in replies for call in one.message.calls if call.id == record.id]
            # That of a reply which never came whole began under another id, or with other arguments.
            about = [one for one in on_call(said, step.number, record.id) if not isinstance(one, ToolStarted)]
            own = {*map(str, [*asked, *numbers(about)]), *([MASK] if trial.world.quotes else [])}
            if found[1] not in own and "None" not in own:
                yield f"{record.name} of step {step.number} is told {record.result.text!r}, and was made with {own}"


def _call(trial: Trial, one: Execution) -> Any:
    """The call of the final reply that an execution served; None if the reply has none of that id."""
    for event in trial.journal.said.get(one.run_id, ()):
        if isinstance(event, ModelReplied) and event.step == one.step:
            return next((call for call in event.message.calls if call.id == one.call_id), None)
    return None


def _stand_in(trial: Trial, one: Execution) -> str:
    call = _call(trial, one)
    return f", in place of {call.name}" if call is not None and call.name != one.tool else ""


def only_what_was_offered_runs(trial: Trial) -> Iterator[str]:
    """Of what the model asked for, nothing runs that the step's request did not offer, and nothing with tools off."""
    offered: dict[tuple[str, int], set[str]] = defaultdict(set)
    for _, _, player in trial.world.players:
        for request in player.requests:
            names = {spec.name for spec in request.tools}
            choice = request.tool_choice
            allowed = set() if choice == "none" else {choice} if choice in names else names
            offered[request.run_id, request.step] |= allowed
    for one in trial.world.executed:
        here = one.alive == trial.world.alive or not trial.before
        asked = owner_of(trial.journal.events(one.run_id), one.step) if trial.forks else one.run_id
        fits = one.tool in offered[asked, one.step] or bool(_stand_in(trial, one))
        if here and not fits and not _later(trial, one):
            yield f"{one.tool} runs in a step that offered {sorted(offered[one.run_id, one.step])[:3]}"


def _later(trial: Trial, one: Execution) -> bool:
    """Whether the step's request was sent by a process that is no more."""
    return bool(trial.before) and (one.run_id, one.step) not in {
        (request.run_id, request.step) for _, _, player in trial.world.players for request in player.requests
    }


def hooks_see_what_is_recorded(trial: Trial) -> Iterator[str]:
    """A result is in the journal before the application's hook is shown it."""
    for what in trial.world.unseen:
        yield f"a hook saw the result of {what} before the journal had it"


def results_are_kept(trial: Trial) -> Iterator[str]:
    """What a tool returned stands in the journal, whatever a hook made of it or became of its siblings."""
    if trial.journal.failed or trial.before or trial.ended_by_hand or timed_out(trial):
        return
    for one in trial.world.executed:
        if not one.ended or one.said is None or _call(trial, one) is None or _found_out(trial, one, "done"):
            continue
        if _out_of_reach(trial, one):
            continue
        shown = [
            _shown(event)
            for event in trial.journal.events(one.run_id)
            if isinstance(event, ToolFinished) and event.step == one.step
        ]
        said = hide(one.said) if trial.setup.paper.redacts else one.said
        if not any(said in text for text in shown):
            yield f"{one.tool} said {one.said!r}, which no event of its step has{_stand_in(trial, one)}"


def timed_out(trial: Trial) -> bool:
    return any(
        isinstance(event, RunFinished) and event.stop.reason in ("deadline", "cancelled")
        for run in trial.journal.runs
        for event in trial.journal.events(run)
    )


def _shown(event: ToolFinished) -> str:
    return text_of(event.content)


def what_is_told_is_true(trial: Trial) -> Iterator[str]:
    """What ran is not told as if it had not, what did not run is not told as if it had, errors are shown as such."""
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        state = fold_all(events)
        for step in state.steps:
            for record in step.calls:
                if record.result is None:
                    continue
                yield from _told(trial, run, step.number, record)
        for event in events:
            if isinstance(event, ToolFinished) and event.is_error and event.content != SEEN:
                # What became of a call in its place is said after it.
                first = event.content if isinstance(event.content, str) else getattr(event.content[0], "text", "{}")
                shown = msgspec.json.decode(first)
                if shown.get("error") is not True or not shown.get("message"):
                    yield f"an error is shown as {event.content!r}"


def _told(trial: Trial, run: str, step: int, record: Any) -> Iterator[str]:
    # A fork may be made amid a step: what was open then is open in it, too.
    runs = list({run, owner_of(trial.journal.events(run), step)})
    ran = [
        one
        for one in trial.executed(runs)
        if (one.step, one.call_id) == (step, record.id) and (one.tool, one.n) == (record.name, _n(record))
        # What only reads may have run in a process that died before its start was written: nobody can know.
        if one.sure or one.alive == trial.world.alive
    ]
    text = record.result.text
    try:
        told = msgspec.json.decode(text)
    except msgspec.DecodeError:
        told = text
    if record.name == HELPER and record.executed and not (record.is_error or text.strip()):
        yield "an agent below came back, and nothing is told of it"
    if isinstance(told, dict) and told.get("executed") is False and ran:
        yield f"{record.name} ran, and is told as not executed ({told.get('message', '')[:60]})"
    message = str(told.get("message", "")) if isinstance(told, dict) else ""
    if ran and message.startswith("There is no tool") and "unknown" not in text:
        yield f"{record.name} ran, and is told as of no tool ({message[:60]})"
    same_step = [one for one in trial.executed(runs) if one.step == step]
    if message.startswith(f"{HELPER} stopped before it was done (condition: ") and "there is no output" not in message:
        yield "an agent below was done by its condition, and is told as one that failed"
    said = ("written", "slowly written", "done with leave", "through", FOUND_OUT)
    if text in said and not any(one.said in (text, None) or text == FOUND_OUT for one in same_step):
        yield f"{record.name} did not run, and is told as {text!r}"


def _n(record: Any) -> Any:
    return number_of(record.arguments)


def a_hook_that_raises_touches_nobody_else(trial: Trial) -> Iterator[str]:
    """What was under way beside it comes to its end, and what it did is known."""
    if not trial.world.raised or trial.journal.failed or trial.before or trial.ended_by_hand or timed_out(trial):
        return
    if trial.taken is not None:
        # The process that had it does nothing more.
        return
    # A call that was begun early goes with the reply that makes it; of a run that was deleted since too.
    broken_off = {
        (run, event.step)
        for run in trial.journal.ever
        for event in trial.journal.events(run)
        if isinstance(event, ModelFailed)
    }
    for one in trial.world.executed:
        never = one.died or one.endless or one.tool in ("too_slow", "hangs")
        if not one.ended and not never and (one.run_id, one.step) not in broken_off:
            yield f"{one.tool} is cut off in the middle by {trial.world.raised}"


def tools_keep_their_manners(trial: Trial) -> Iterator[str]:
    """What shares a resource was alone with it, and what runs alone was alone."""
    if trial.world.most_in_door > 1:
        yield f"{trial.world.most_in_door} at once in the door"
    if trial.world.beside_alone:
        yield f"beside a tool that runs alone: {trial.world.beside_alone}"
