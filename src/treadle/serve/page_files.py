"""Page files: the page that people look at, served as it was built into `page/`. Its source is in `web/`.

Nothing of a run is in it: what it shows it asks for as any other caller does. Its policy lets it load what this server
has and nothing else, run no script but its own file, and make no markup out of texts.
"""

import gzip
from functools import cache
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from treadle.serve.refusals import refusal
from treadle.serve.refused import Refused

PLACES: Final = frozenset({"", "runs", "chat", "compare", "figures"})
"""What the path of a page begins with; behind it stands whatever the page itself understands."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'self'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
"""What a browser lets the page do. Pictures as data are those of a run that somebody asked to see."""

_FILES: Final = Path(__file__).parent / "page"
_MEDIA: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
_BASE: Final = '<base href="/" />'
_FOREVER: Final = "public, max-age=31536000, immutable"


class _File(NamedTuple):
    media: str
    body: bytes
    packed: bytes


def page_routes() -> list[BaseRoute]:
    """The routes of the page; they answer what no other route does, so they come last."""
    return [Route("/{path:path}", _answer, name="page")]


def nothing() -> Refused:
    """What is told of an address that is no route's and no page's."""
    return Refused("not_found", "there is nothing of this name", "The page is at /, the interface at /api.")


def is_nothing(request: Request) -> bool:
    """Whether a request, with whatever method, came to the page's route because no other has its address, and nor has
    the page.
    """
    return request.scope.get("endpoint") is _answer and _found(request.path_params["path"]) is None


async def _answer(request: Request) -> Response:
    found = _found(request.path_params["path"])
    if found is None:
        return refusal(request, nothing())
    if found.media == _MEDIA[".html"]:
        return _page(request, found)
    # Their names change with what is in them, so a browser need never ask again.
    return _sent(request, found, {"cache-control": _FOREVER})


def _found(path: str) -> _File | None:
    files = _files()
    if path.partition("/")[0] in PLACES and "index.html" in files:
        return files["index.html"]
    return files.get(path) if path.startswith("assets/") else None


def _page(request: Request, file: _File) -> Response:
    """The page, whose addresses are relative to where the application has mounted it."""
    root = escape(request.scope.get("root_path", ""), quote=True)
    body = file.body.replace(_BASE.encode(), f'<base href="{root}/" />'.encode())
    headers = {"cache-control": "no-cache", "content-security-policy": POLICY}
    return _sent(request, _File(file.media, body, b""), headers)


def _sent(request: Request, file: _File, headers: dict[str, str]) -> Response:
    body = file.body
    if file.packed:
        headers["vary"] = "accept-encoding"
        if "gzip" in request.headers.get("accept-encoding", ""):
            body, headers["content-encoding"] = file.packed, "gzip"
    return Response(body, headers=headers, media_type=file.media)


@cache
def _files() -> dict[str, _File]:
    """All files of the page by their path; nothing else can be asked for."""
    found = {}
    for file in sorted(_FILES.rglob("*")):
        if file.is_file() and file.suffix in _MEDIA:
            body = file.read_bytes()
            found[file.relative_to(_FILES).as_posix()] = _File(_MEDIA[file.suffix], body, gzip.compress(body, mtime=0))
    return found
