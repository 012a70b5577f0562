"""Rest: treadle's own HTTP, over `Runs`. All is JSON; a stream is server-sent events with the journal's numbers."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from treadle.journal.info import Wanted
from treadle.journal.standing import Standing
from treadle.kernel.messages import Content
from treadle.kernel.stop import Limits
from treadle.serve.endpoint import EVENTS, Endpoint
from treadle.serve.feed import Numbered, Piece
from treadle.serve.forms import (
    agent_form,
    encoded,
    event_json,
    line_form,
    piece_form,
    run_form,
    steps_form,
)
from treadle.serve.page_of import place_after, place_of
from treadle.serve.posting import key_of
from treadle.serve.protocols.wire import check_addresses
from treadle.serve.queries import digits
from treadle.serve.refused import TROUBLE, Refused, refused_by
from treadle.serve.serving import Serving, Slot, json_response, naming, sse
from treadle.serve.shapes import AgentLine, End, EventPage, RunPage, StepLine, WholeRun
from treadle.serve.verdicts import Verb, Verdict, with_numbers
from treadle.timetravel.parting import Diff
from treadle.timetravel.replayed import Replay
from treadle.timetravel.waterfall import Waterfall

MOST = 1000
"""Runs or events that are handed out at once, at most."""

Many = Annotated[int, Meta(ge=1, le=MOST)]
"""How many are wanted. More are refused: whoever asks for them would take what comes for all."""

Known = Annotated[int, Meta(ge=0)]
"""The number of the last event that is known; 0 for none."""


class AskedLimits(Limits, frozen=True, forbid_unknown_fields=True):
    """Limits as a caller asks for them, in place of all that the agent has. One of a name that there is not is refused:
    whoever writes it believes that it holds.
    """

    def plain(self) -> Limits:
        """They as a run has them."""
        return Limits(**{name: getattr(self, name) for name in Limits.__struct_fields__})


class Begin(Struct, forbid_unknown_fields=True):
    """A run to begin."""

    agent: str
    input: str | list[Content]
    conversation: str | None = None
    limits: AskedLimits | None = None
    on_disconnect: Literal["go_on", "cancel"] = "go_on"

    def __post_init__(self) -> None:
        check_addresses(self.input)


class CallDecision(Struct, forbid_unknown_fields=True):
    """What is decided of one call; see `treadle.serve.verdicts.Verdict`."""

    call: str
    fingerprint: str
    verdict: Verb
    arguments: dict[str, Any] | None = None
    result: Any | UnsetType = UNSET
    reason: str = ""


class Decisions(Struct, forbid_unknown_fields=True):
    """What is decided of the calls that a run waits for."""

    decisions: list[CallDecision]


class Said(Struct, forbid_unknown_fields=True):
    """Something to say to a run under way."""

    text: str


class Resume(Struct, forbid_unknown_fields=True):
    """How a run goes on."""

    limits: AskedLimits | None = None
    message: str | None = None


class Fork(Struct, forbid_unknown_fields=True):
    """From where, and with what, a fork goes on."""

    at: int
    message: str | None = None
    instructions: str | None = None
    model: str | None = None
    tool_results: dict[str, Any] | None = None
    limits: AskedLimits | None = None


class Which(Struct, forbid_unknown_fields=True):
    """Which runs are wanted."""

    agent: str | None = None
    status: Standing | None = None
    model: str | None = None
    search: str = ""
    since: float | None = None
    until: float | None = None
    user: str | None = None
    conversation: str | None = None
    parent: str | None = None
    limit: Many = 50
    before: str | None = None


class From(Struct, forbid_unknown_fields=True):
    """Which events are wanted."""

    after: Known = 0
    limit: Many = MOST


class Stream(Struct, forbid_unknown_fields=True):
    """From where a stream goes on, and what comes by."""

    after: Known = 0
    deltas: bool = True
    until: Literal["end", "pause"] = "end"
    on_disconnect: Literal["go_on", "cancel"] = "go_on"


class Pair(Struct, forbid_unknown_fields=True):
    """Two runs."""

    a: str
    b: str


_KEY = (("Idempotency-Key", "The client's own name for this request: sent again under it, it begins no second run."),)
_LAST = (("Last-Event-ID", "The number of the last event that is known, in place of `after`."),)


async def agents(serving: Serving, request: Request) -> Response:
    """The agents that there are."""
    user, runs = serving.user(request), serving.runs
    found = [agent_form(name, one, inside=user.inside) for name, one in runs.agents.items() if user.may_use(name)]
    return json_response(found)


async def start(serving: Serving, request: Request, given: Begin) -> Response:
    """Begins a run, one for each `Idempotency-Key`; with `Accept: text/event-stream` the answer is its stream."""
    user, streamed = serving.user(request), EVENTS in request.headers.get("accept", "")
    if given.on_disconnect == "cancel" and not streamed:
        raise Refused("unfit", "on_disconnect is about a stream", "Ask for one with Accept: text/event-stream.")
    serving.leaves(user, given.on_disconnect)
    names = key_of(request.headers)
    asked = [given.agent, given.input, given.conversation, given.limits]
    with serving.slot(request, taken=streamed) as slot:
        run_id = await serving.runs.start(
            user, given.agent, given.input, conversation=given.conversation, limits=_limits(given.limits),
            posting=None if names is None else serving.posting(user, names, asked),
        )  # fmt: skip
        if not streamed:
            return await _done(serving, request, run_id, 201)
        answer = _streamed(serving, request, run_id, Stream(on_disconnect=given.on_disconnect), slot)
        answer.status_code = 201
        return answer


async def list_runs(serving: Serving, request: Request, which: Which) -> Response:
    """Runs, those that started last first."""
    user = serving.user(request)
    text = which.search if which.parent is None else f"{which.parent}."
    wanted = Wanted(
        agent=which.agent, model=which.model, text=text, since=which.since, until=which.until,
        user=which.user, conversation=which.conversation, top=which.parent is None,
    )  # fmt: skip
    if which.parent is None:
        found, last = await serving.runs.views.list(user, wanted, which.limit, place_of(which.before), which.status)
    else:
        below = (await serving.runs.views.describe(user, which.parent)).below
        found, last = [one for one in below if one.parent is not None and one.parent.run_id == which.parent], None
    driven = serving.runs.live.driven
    lines = [line_form(line, True if line.run_id in driven else None) for line in found]
    return json_response(RunPage(runs=lines, next=place_after(last)))


async def run(serving: Serving, request: Request) -> Response:
    """A run, with what has come of it and what it waits for."""
    return await _run(serving, request, _named(request))


async def _run(serving: Serving, request: Request, run_id: str, status: int = 200) -> Response:
    return json_response(run_form(await serving.runs.views.describe(serving.user(request), run_id)), status)


async def _done(serving: Serving, request: Request, run_id: str, status: int = 200) -> Response:
    """The run for which something was done, which is told where the run cannot be."""
    try:
        return await _run(serving, request, run_id, status)
    except TROUBLE as trouble:
        if refused_by(trouble).kind != "unavailable":
            raise
        raise Refused(
            "unavailable",
            f"it was done, for run {run_id}, which cannot be shown: the journal cannot be used now",
            "Look at the run later, and do not send this again.",
        ) from trouble


async def delete_run(serving: Serving, request: Request) -> Response:
    """Removes a run and those that work for it."""
    await serving.runs.delete(serving.user(request), _named(request))
    return Response(status_code=204)


async def events(serving: Serving, request: Request, wanted: From) -> Response:
    """The events of a run, numbered from 1."""
    found = await serving.runs.views.events(serving.user(request), _named(request), wanted.after, wanted.limit)
    more = found[-1].number if len(found) == wanted.limit else None
    return json_response(EventPage(events=[Raw(event_json(one)) for one in found], next=more))


async def stream(serving: Serving, request: Request, wanted: Stream) -> Response:
    """The events of a run, and what is shown live between them, as they come."""
    last = request.headers.get("last-event-id", "").strip()
    if last:
        known = digits(last)
        if known is None:
            raise Refused("unfit", "Last-Event-ID is the number of the last event that is known")
        wanted.after = known
    user, run_id = serving.user(request), _named(request)
    await serving.runs.views.look(user, run_id, decides=wanted.on_disconnect == "cancel")
    if wanted.after and not await serving.runs.views.events(user, run_id, wanted.after - 1, 1):
        # Whoever knows events that are not there knows another run, and would miss those that get their numbers.
        raise Refused(
            "unfit", f"run {run_id} has no event {wanted.after} yet", "Follow it from its beginning, without a number."
        )
    return _streamed(serving, request, run_id, wanted)


def _streamed(serving: Serving, request: Request, run_id: str, wanted: Stream, slot: Slot | None = None) -> Response:
    user = serving.user(request)
    chunks = _chunks(serving, request, run_id, wanted)
    left = partial(serving.runs.cancel, user, run_id) if wanted.on_disconnect == "cancel" else None
    return serving.stream(request, chunks, headers=naming(run_id), left=left, slot=slot)


async def _chunks(serving: Serving, request: Request, run_id: str, wanted: Stream) -> AsyncGenerator[bytes]:
    pause = wanted.until == "pause"
    batches = serving.runs.views.batches(
        serving.user(request), run_id, wanted.after, pieces=wanted.deltas, until_pause=pause
    )
    try:
        async with aclosing(batches):
            async for batch in batches:
                yield b"".join([_chunk(one) for one in batch])
        yield sse("end", encoded(End(run=run_id)))
    except TROUBLE as error:
        yield sse("error", encoded(refused_by(error).why))


def _chunk(one: Numbered | Piece) -> bytes:
    if isinstance(one, Numbered):
        data = event_json(one)
        return sse(_tag(data), data, one.number)
    name, shown = piece_form(one)
    return sse(name, encoded(shown))


def _tag(data: bytes) -> str:
    return data[data.index(b'"type":"') + 8 :].partition(b'"')[0].decode()


async def steps(serving: Serving, request: Request) -> Response:
    """The steps of a run, each in a line."""
    found = await serving.runs.views.describe(serving.user(request), _named(request))
    return json_response(steps_form(found.state))


async def bars(serving: Serving, request: Request) -> Response:
    """Where the time of a run went."""
    return json_response(await serving.runs.views.waterfall(serving.user(request), _named(request)))


async def decide(serving: Serving, request: Request, given: Decisions) -> Response:
    """Decides on calls that the run waits for; it then goes on."""
    user, run_id = serving.user(request), _named(request)
    await serving.runs.decide(user, run_id, [_verdict(one) for one in given.decisions])
    return await _done(serving, request, run_id)


def _verdict(one: CallDecision) -> Verdict:
    """A decision. Raises `Refused` if it brings what its verdict has no use for: somebody believes that it counts."""
    result = None if one.result is UNSET else one.result
    brought = {"edit": one.arguments is not None, "result": one.result is not UNSET, "deny": bool(one.reason)}
    for verdict, name in (("edit", "arguments"), ("result", "result"), ("deny", "reason")):
        if brought[verdict] and one.verdict != verdict:
            raise Refused(
                "unfit",
                f"call {one.call!r:.200} is decided by {one.verdict!r}, to which {name!r} says nothing",
                f"Leave it out, or decide by {verdict!r}.",
            )
    if one.verdict == "result" and not brought["result"]:
        raise Refused("unfit", f"the verdict 'result' brings the result of call {one.call!r:.200}", "It may be null.")
    return Verdict(one.call, one.fingerprint, one.verdict, one.arguments, result, one.reason)


async def say(serving: Serving, request: Request, given: Said) -> Response:
    """Says something to a run under way."""
    await serving.runs.say(serving.user(request), _named(request), given.text)
    return await _done(serving, request, _named(request))


async def cancel(serving: Serving, request: Request) -> Response:
    """Ends a run as cancelled."""
    await serving.runs.cancel(serving.user(request), _named(request))
    return await _done(serving, request, _named(request))


async def pause(serving: Serving, request: Request) -> Response:
    """Has a run pause after the step under way."""
    await serving.runs.pause(serving.user(request), _named(request))
    return await _done(serving, request, _named(request), 202)


async def resume(serving: Serving, request: Request, given: Resume) -> Response:
    """Goes on with a run."""
    user = serving.user(request)
    await serving.runs.resume(user, _named(request), limits=_limits(given.limits), message=given.message)
    return await _done(serving, request, _named(request))


async def fork(serving: Serving, request: Request, given: Fork) -> Response:
    """Goes on from a step of a run as a run of its own."""
    user = serving.user(request)
    results = None if given.tool_results is None else with_numbers(given.tool_results)
    run_id = await serving.runs.fork(
        user, _named(request), given.at, message=given.message, tool_results=results, model=given.model,
        limits=_limits(given.limits), instructions=given.instructions,
    )  # fmt: skip
    return await _done(serving, request, run_id, 201)


async def replay(serving: Serving, request: Request) -> Response:
    """Carries a run out again, with no model and no tool, and says where it comes out otherwise."""
    return json_response(await serving.runs.replay(serving.user(request), _named(request)))


async def compare(serving: Serving, request: Request, pair: Pair) -> Response:
    """Where two runs part."""
    return json_response(await serving.runs.views.diff(serving.user(request), pair.a, pair.b))


def _named(request: Request) -> str:
    run_id: str = request.path_params["run"]
    return run_id


def _limits(asked: AskedLimits | None) -> Limits | None:
    return None if asked is None else asked.plain()


ENDPOINTS = (
    Endpoint("GET", "/api/agents", agents, list[AgentLine]),
    Endpoint(
        "POST", "/api/runs", start, WholeRun, body=Begin, status=201, media=("application/json", EVENTS), headers=_KEY
    ),
    Endpoint("GET", "/api/runs", list_runs, RunPage, query=Which),
    Endpoint("GET", "/api/runs/{run}", run, WholeRun),
    Endpoint("DELETE", "/api/runs/{run}", delete_run, None, status=204),
    Endpoint("GET", "/api/runs/{run}/events", events, EventPage, query=From),
    Endpoint("GET", "/api/runs/{run}/stream", stream, None, query=Stream, media=(EVENTS,), headers=_LAST),
    Endpoint("GET", "/api/runs/{run}/steps", steps, list[StepLine]),
    Endpoint("GET", "/api/runs/{run}/waterfall", bars, Waterfall),
    Endpoint("POST", "/api/runs/{run}/decisions", decide, WholeRun, body=Decisions),
    Endpoint("POST", "/api/runs/{run}/messages", say, WholeRun, body=Said),
    Endpoint("POST", "/api/runs/{run}/cancel", cancel, WholeRun),
    Endpoint("POST", "/api/runs/{run}/pause", pause, WholeRun, status=202),
    Endpoint("POST", "/api/runs/{run}/resume", resume, WholeRun, body=Resume),
    Endpoint("POST", "/api/runs/{run}/fork", fork, WholeRun, body=Fork, status=201),
    Endpoint("POST", "/api/runs/{run}/replay", replay, Replay),
    Endpoint("GET", "/api/diff", compare, Diff, query=Pair),
)
"""Every route of treadle's own."""
