"""App: agents over HTTP, as an ASGI app. Only what belongs together is put together here."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from treadle.agent import Agent
from treadle.journal import Journal, MemoryJournal
from treadle.kernel.errors import Misuse
from treadle.serve import fronts, fronts_openai, looks, openapi, rest, session, talks
from treadle.serve.access import LOOPBACK, Access, Auth, Bounds
from treadle.serve.endpoint import Endpoint
from treadle.serve.gate import Gate
from treadle.serve.live import Live
from treadle.serve.page_files import is_nothing, nothing, page_routes
from treadle.serve.refusals import refusal
from treadle.serve.refused import Refused
from treadle.serve.runs import Runs
from treadle.serve.serving import Serving


class Served(Starlette):
    """An app that serves agents. Its `lifespan` has to run for as long as it is used.

    Attributes:
        runs: what can be done with the runs, for code in the same process.
        serving: what further routes work with.
        lifespan: what an app that this one is mounted in takes as its own `lifespan`.
    """

    runs: Runs
    serving: Serving
    lifespan: Callable[[Any], AbstractAsyncContextManager[None]]

    def stop(self) -> None:
        """Ends the streams, and has each run pause after its step: call it when the process is told to stop."""
        self.runs.live.stop_streams()

    def hurry(self) -> None:
        """Has steps under way be left as they are, without waiting for them: call it after `stop`."""
        self.runs.live.hurry()


def app(
    agents: Mapping[str, Agent[Any, Any]] | Iterable[Agent[Any, Any]],
    *,
    journal: Journal | None = None,
    token: str | None = None,
    auth: Auth | None = None,
    hosts: Iterable[str] = LOOPBACK,
    origins: Iterable[str] = (),
    bounds: Bounds | None = None,
    deps: Callable[[str], Any] | None = None,
    user: str = "local",
    take_up: bool = True,
    grace: float = 20.0,
) -> Served:
    """Agents over HTTP, as an ASGI app: alone (`uvicorn module:app`), or mounted in another.

    Args:
        agents: the agents, by the names that callers use, or each by its own.
        journal: where all runs are kept; by default the journal that the agents have.
        token: what a caller has to know. Whoever has it may do everything.
        auth: the application's own word on who calls, given the request: a `User`, or None. Not both.
        hosts: names, without ports, under which it is reached; requests for any other are refused.
        origins: origins of other sites whose pages may use it.
        bounds: how much it takes on.
        deps: given a user's name, returns what that user's runs are given as dependencies.
        user: the name that stands in the journal for whoever has the token, or is at this machine.
        take_up: whether runs that a server began, and that were under way when its process ended, go on when this one
            starts, as do others that it paused as it stopped; else they go on when they are resumed.
        grace: seconds that steps under way have to end when it stops.

    Raises:
        Misuse: something does not fit; says what would.
    """
    named = _named(agents)
    kept = _journal(named, journal)
    access = Access(token=token, auth=auth, hosts=hosts, origins=origins, bounds=bounds, user=user)
    live = Live(kept, runs=access.bounds.runs, grace=grace)
    serving = Serving(Runs(named, kept, live, deps, access.starts), access)

    runs = serving.runs

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        runs.health.begin()
        async with live.running(runs.carrying.take_up if take_up else None):
            yield

    served = Served(routes=_routes(serving), lifespan=lifespan, exception_handlers=_handlers())
    served.lifespan = lifespan
    served.router.redirect_slashes = False
    served.add_middleware(Gate, access=access, health=runs.health, live=live, redact=getattr(kept, "redact", None))
    served.runs, served.serving = runs, serving
    return served


def _routes(serving: Serving) -> list[BaseRoute]:
    endpoints: tuple[Endpoint, ...] = (*rest.ENDPOINTS, *looks.ENDPOINTS, *talks.ENDPOINTS, *session.ENDPOINTS)
    endpoints = (*endpoints, openapi.endpoint(endpoints))
    protocols = [*fronts.routes(serving), *fronts_openai.routes(serving)]
    return [*(one.route(serving) for one in endpoints), *protocols, *page_routes()]


def _named(agents: Mapping[str, Agent[Any, Any]] | Iterable[Agent[Any, Any]]) -> dict[str, Agent[Any, Any]]:
    given = dict(agents) if isinstance(agents, Mapping) else {one.name: one for one in _listed(agents)}
    if not given or not all(isinstance(one, Agent) for one in given.values()):
        raise Misuse('app takes agents by name, such as app({"support": agent}), and at least one')
    for name in given:
        if not isinstance(name, str) or not name or "/" in name:
            raise Misuse(f"the name of an agent stands in addresses: a text without '/'; it was given {name!r:.100}")
    return given


def _listed(agents: Any) -> list[Agent[Any, Any]]:
    found = [agents] if isinstance(agents, Agent) else list(agents)
    if not all(isinstance(one, Agent) for one in found):
        raise Misuse('app takes agents by name, such as app({"support": agent})')
    names = [one.name for one in found]
    if len({*names}) < len(names):
        raise Misuse(
            f"two agents have one name ({', '.join(names)}): give each its own, Agent(…, name=…), or give them as a "
            "dict, by names"
        )
    return found


def _journal(agents: Mapping[str, Agent[Any, Any]], journal: Journal | None) -> Journal:
    if journal is not None:
        for one in agents.values():
            redact = getattr(one.journal, "redact", None)
            if redact is not None and redact is not getattr(journal, "redact", None):
                raise Misuse(
                    f"the journal of agent {one.name!r} redacts texts, and the one that all runs are kept in does "
                    "not: give that the same redact="
                )
        return journal
    there = {id(one.journal): one.journal for one in agents.values() if one.journal is not None}
    if len(there) > 1:
        raise Misuse("the agents have different journals: say which one all runs are kept in, with journal=")
    return next(iter(there.values()), None) or MemoryJournal()


def _handlers() -> dict[Any, Any]:
    async def http(request: Request, error: HTTPException) -> Response:
        if error.status_code == 405 and is_nothing(request):
            return refusal(request, nothing())
        if error.status_code == 405:
            taken = _methods(request)
            why = Refused("not_allowed", f"{request.method} is not taken here", f"Use {' or '.join(taken)}.")
            response = refusal(request, why)
            response.headers["allow"] = ", ".join(taken)
            return response
        return refusal(request, Refused("not_found" if error.status_code == 404 else "bad_request", error.detail))

    return {HTTPException: http}


def _methods(request: Request) -> list[str]:
    """What is taken at the address of a request; the page's route, which has any, counts where nothing else does."""
    routes = [
        one for one in request.app.routes if isinstance(one, Route) and one.matches(request.scope)[0] != Match.NONE
    ]
    others = [one for one in routes if one.name != "page"]
    return sorted({method for one in others or routes for method in one.methods or () if method != "HEAD"})
