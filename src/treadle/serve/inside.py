"""Inside: what a step of a run was, from its events: the exact request, what came back, and why it was made.

Pure. A request follows from the events before it and from the agent, which alone knows how its tools are described;
where the agent is not here, or has changed, that is said.
"""

from collections.abc import Sequence

import msgspec

from treadle.drivers.configuration import Configuration
from treadle.drivers.listing import with_listed
from treadle.drivers.reading import reading
from treadle.drivers.request import request_of
from treadle.drivers.watching import asked_in
from treadle.kernel.errors import Misuse
from treadle.kernel.events import ApprovalDecided, ApprovalRequested, Event, ModelFailed, StepPrepared
from treadle.kernel.fold import fold
from treadle.kernel.messages import Message, Usage
from treadle.kernel.state import RunState
from treadle.kernel.step import Step
from treadle.models.port import ModelRequest
from treadle.models.profile import profile_of
from treadle.serve.forms import fields, steps_form
from treadle.serve.shapes import Changed, Filled, SentRequest, StepInside, WhyMade


class Moment(msgspec.Struct):
    """A step as it was prepared: the state then, and the number of the event that says so."""

    number: int
    prepared: StepPrepared
    state: RunState


def moments(events: Sequence[Event]) -> dict[int, Moment]:
    """By step, how it was prepared last: after a crash a step is prepared anew."""
    found: dict[int, Moment] = {}
    state = RunState()
    for number, event in enumerate(events, 1):
        state = fold(state, event)
        if isinstance(event, StepPrepared):
            found[event.step] = Moment(number, event, state)
    return found


def inside(events: Sequence[Event], whole: RunState, at: int, config: Configuration | None) -> StepInside | None:
    """Step `at` of a run: its request, reply, calls, decision and money; None if there is no such step.

    Args:
        events: the run's.
        whole: they folded.
        at: the step, from 0.
        config: the agent, if it is here.
    """
    prepared = moments(events)
    lines = {line.number: line for line in steps_form(whole)}
    steps = {step.number: step for step in (*whole.steps, *(() if whole.step is None else (whole.step,)))}
    if at not in prepared:
        return None
    moment = prepared[at]
    request, described = _request(moment.state, config)
    before = _request(prepared[at - 1].state, config)[0] if at - 1 in prepared else None
    step = steps.get(at)
    window = None if config is None else profile_of(config.model).context_window
    return StepInside(
        number=at,
        event=moment.number,
        request=SentRequest(
            messages=list(request.messages),
            tools=request.tools,
            tools_described=described,
            tool_choice=request.tool_choice,
            settings=fields(request.settings),
            output_schema=None if request.in_words else request.output_schema,
            model=asked_in(moment.state),
        ),
        changed=_changed(before, request),
        decision=_decision(moment.prepared, moment.state),
        step=lines.get(at),
        reply=None if step is None else step.message,
        failed=[one for one in events if isinstance(one, ModelFailed) and one.step == at],
        asked=[one for one in events if isinstance(one, ApprovalRequested | ApprovalDecided) and one.step == at],
        window=None if step is None else Filled(used=used(step), size=window),
    )


def _request(state: RunState, config: Configuration | None) -> tuple[ModelRequest, bool]:
    """The request of the step prepared in `state`, and whether its tools are described as its agent describes them."""
    prepared = state.prepared
    if prepared is None:
        raise Misuse(f"run {state.run_id} has no step prepared")
    config = None if config is None else with_listed(config, state.stock.now)
    names = [*(prepared.tools or state.started.tools), *[one.name for one in state.stock.now]]
    known = config is not None and all(one in config.tools for one in names)
    given = reading(config if config is not None and known else _nobody(config), state.messages, state.started.tools)
    if not known:
        # Without its agent nobody knows the tools; the event names those that were chosen.
        state = msgspec.structs.replace(state, prepared=msgspec.structs.replace(prepared, tools=None))
    return request_of(given, state), known


def _nobody(config: Configuration | None) -> Configuration:
    from treadle.models.offline import OfflineModel

    return Configuration(OfflineModel()) if config is None else Configuration(config.model)


def _changed(before: ModelRequest | None, now: ModelRequest) -> Changed:
    """How a request differs from that of the step before: how many messages begin alike, and what else is another."""
    if before is None:
        return Changed(same=0, removed=0, added=len(now.messages), tools=[], settings=False)
    alike = _alike(before.messages, now.messages)
    names = [{tool.name for tool in one.tools} for one in (before, now)]
    return Changed(
        same=alike,
        removed=len(before.messages) - alike,
        added=len(now.messages) - alike,
        tools=sorted(names[0] ^ names[1]),
        settings=before.settings != now.settings,
    )


def _alike(a: Sequence[Message], b: Sequence[Message]) -> int:
    for number, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return number
    return min(len(a), len(b))


def _decision(prepared: StepPrepared, state: RunState) -> WhyMade:
    """Why the step was made: everything that was looked at, with the values found."""
    decision = prepared.decision
    return WhyMade(
        verdict=decision.verdict,
        why=decision.why,
        checks=list(decision.checks(state.limits)),
        landing=None if prepared.landing is None else fields(prepared.landing),
        note=prepared.note,
        withheld=prepared.withheld,
        stuck=prepared.stuck,
        reserve=prepared.reserve,
    )


def used(step: Step) -> int | None:
    """Tokens of the window that the step's request and reply filled; None if nobody counted them."""
    return None if step.usage == Usage() else step.usage.total_tokens
