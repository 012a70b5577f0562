"""Looks: the routes for whoever wants to know more of runs: a step's inside, figures over many, and files to keep."""

from typing import Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from treadle.journal.ones_own import standing_of
from treadle.serve.endpoint import Endpoint
from treadle.serve.export import MEDIA, Format, as_markdown, file_name
from treadle.serve.export_page import as_html
from treadle.serve.inside import inside
from treadle.serve.queries import digits
from treadle.serve.refused import Refused
from treadle.serve.serving import Serving, json_response
from treadle.serve.shapes import Health, StepInside
from treadle.timetravel.figures import Statistics


class Over(Struct, forbid_unknown_fields=True):
    """Over which runs figures are wanted."""

    since: float | None = None
    until: float | None = None
    agent: str | None = None
    model: str | None = None


class AsFile(Struct, forbid_unknown_fields=True):
    """As what a run is wanted."""

    format: Literal["jsonl", "markdown", "html"] = "jsonl"


async def health(serving: Serving, request: Request) -> Response:
    """Whether the server can be used: its journal can be read, and is the one that it began with."""
    await serving.runs.health.look()
    return json_response(Health(status="ok"))


async def step(serving: Serving, request: Request) -> Response:
    """A step of a run: its exact request, what came back, and why it was made."""
    run_id, number = request.path_params["run"], request.path_params["step"]
    events, config = await serving.runs.views.opened(serving.user(request), run_id)
    at = digits(number)
    found = None if at is None else inside(events, standing_of(events), at, config)
    if found is None:
        raise Refused("not_found", f"run {run_id} has no step {number!r:.20}")
    return json_response(found)


async def figures(serving: Serving, request: Request, which: Over) -> Response:
    """Figures over the runs that the user may see."""
    found = await serving.runs.views.statistics(
        serving.user(request), since=which.since, until=which.until, agent=which.agent, model=which.model
    )
    return json_response(found)


async def export(serving: Serving, request: Request, wanted: AsFile) -> Response:
    """A run as a file: lines of JSON with those that work for it, Markdown, or a page of HTML that opens offline."""
    user, run_id = serving.user(request), request.path_params["run"]
    found = await serving.runs.views.describe(user, run_id)
    format: Format = wanted.format
    # It is a file to keep: nothing in it is shown as a page of this server's.
    headers = {"content-disposition": f'attachment; filename="{file_name(found, format)}"'}
    if format == "jsonl":
        lines = await serving.runs.views.lines(user, run_id)
        return Response(lines, headers=headers, media_type=MEDIA[format])
    text = as_markdown(found) if format == "markdown" else as_html(found)
    return Response(text, headers=headers, media_type=MEDIA[format])


ENDPOINTS = (
    Endpoint("GET", "/health", health, Health),
    Endpoint("GET", "/api/runs/{run}/steps/{step}", step, StepInside),
    Endpoint("GET", "/api/runs/{run}/export", export, None, query=AsFile, media=tuple(MEDIA.values())),
    Endpoint("GET", "/api/statistics", figures, Statistics, query=Over),
)
"""Every route of this kind."""
