"""Every answer that a test's client gets is held against the description that the server gives of itself.

A field that the description does not have fails here, though clients have to live with it: what it describes is closed.
"""

import copy
import json
import re

import httpx2
import jsonschema_rs

from treadle import Agent, MemoryJournal
from treadle.serve import app
from treadle.testing import ScriptedModel

_OURS = re.compile(r"/(?:api/|openapi\.json$|health$).*")
"""The part of a path that is a route of treadle's own, wherever it is mounted."""

EVENTS = "text/event-stream"


def event(raw):
    """One server-sent event in its JSON form; None for a comment."""
    found = {}
    for line in raw.decode().splitlines():
        name, _, value = line.partition(": ")
        if name:
            found[name] = int(value) if name == "id" else json.loads(value) if name == "data" else value
    return found or None


def closed(schema):
    """The schema, with nothing allowed that it does not name."""
    if isinstance(schema, dict):
        within = {name: closed(one) for name, one in schema.items()}
        return {"additionalProperties": False, **within} if isinstance(within.get("properties"), dict) else within
    return [closed(one) for one in schema] if isinstance(schema, list) else schema


class Description:
    """A description, against which answers are held."""

    def __init__(self, whole):
        self.whole = whole
        told = closed(copy.deepcopy(whole))
        self._components, self._validators, self._held = told["components"], {}, set()
        self._routes = [
            (re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), path, {m.upper(): one for m, one in methods.items()})
            for path, methods in told["paths"].items()
        ]

    def route(self, method, path):
        """The path as it is described, and its operation; None twice for what is no route, or not of treadle's own."""
        ours = _OURS.search(path)
        for pattern, template, methods in self._routes if ours else ():
            if pattern.fullmatch(ours[0]) and method in methods:
                return template, methods[method]
        return (None, None)

    def wrong(self, method, path, status, media, body):
        """What of an answer is not as it is described; None if nothing is."""
        template, operation = self.route(method, path)
        if template is None:
            return self._no_route(path, status, body)
        told = operation["responses"].get(str(status))
        if told is None:
            return f"{method} {template} does not tell of {status}"
        content = told.get("content") or self._components["responses"].get(str(status), {}).get("content", {})
        if media not in content:
            return None if not content and not body else f"{method} {template} {status} does not tell of {media!r}"
        if media == EVENTS:
            parts = [event(one) for one in body.split(b"\n\n")[:-1]]
            return next(filter(None, (self._unlike(content[media]["schema"], one) for one in parts if one)), None)
        if media != "application/json" or not body:
            # The test went away before it had come.
            return None
        found = self._unlike(content[media]["schema"], json.loads(body))
        return found and f"{method} {template} {status}: {found}"

    def _no_route(self, path, status, body):
        if _OURS.search(path) is None:
            return None
        if status not in (404, 405, 204, 401, 403, 421, 429, 503):
            return f"{path} is no route, and answered with {status}"
        return self._unlike({"$ref": "#/components/schemas/Refusal"}, json.loads(body)) if body else None

    def _unlike(self, schema, value):
        key = json.dumps([schema, value], sort_keys=True)
        if key in self._held:
            return None
        named = json.dumps(schema)
        if named not in self._validators:
            whole = {**schema, "components": self._components}
            self._validators[named] = jsonschema_rs.validator_for(whole)
        errors = [f"{one.message} at {list(one.instance_path)}" for one in self._validators[named].iter_errors(value)]
        if errors:
            return f"{errors[:3]} in {value!r:.600}"
        self._held.add(key)
        return None


_known = []


async def the_description():
    """What a server says of itself; it is the same for all."""
    if not _known:
        served = app([Agent(ScriptedModel(["It is."]), name="any")], journal=MemoryJournal())
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(served), base_url="http://localhost") as client:
            _known.append(Description((await client.get("/openapi.json")).json()))
    return _known[0]


class Held(httpx2.AsyncHTTPTransport):
    """A transport that keeps what came, to be held against the description at the end."""

    def __init__(self):
        super().__init__()
        self.answers = []

    async def handle_async_request(self, request):
        response = await super().handle_async_request(request)
        media = response.headers.get("content-type", "").partition(";")[0]
        body = bytearray()
        self.answers.append((request.method, request.url.path, response.status_code, media, body))
        response.stream = _Kept(response.stream, body)
        return response

    async def check(self):
        """Fails if an answer is not as it is described."""
        description = await the_description()
        wrong = [found for one in self.answers if (found := description.wrong(*one[:4], bytes(one[4])))]
        assert not wrong, "\n".join(wrong[:5])


class _Kept(httpx2.AsyncByteStream):
    def __init__(self, stream, body):
        self._stream, self._body = stream, body

    async def __aiter__(self):
        async for chunk in self._stream:
            self._body.extend(chunk)
            yield chunk

    async def aclose(self):
        await self._stream.aclose()
