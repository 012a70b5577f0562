"""OpenAPI: what the server answers, described by what serves it: the routes, and the types that they
read and write."""

import re
from collections.abc import Collection
from functools import cache
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

import treadle
from treadle.serve.endpoint import EVENTS, Endpoint
from treadle.serve.gate import OPEN
from treadle.serve.openapi_events import KINDS, Schema, event_schemas
from treadle.serve.refused import Refusal
from treadle.serve.serving import Serving, json_response
from treadle.serve.shapes import REFS, WHOLE

_REFUSALS = {
    "400": "It is no JSON.",
    "401": "Who calls is not known.",
    "403": "They may not do this.",
    "404": "There is no such thing for them.",
    "409": "It does not stand so that this could be done, or somebody else was faster.",
    "413": "It is too large.",
    "415": "It is no JSON by its type.",
    "421": "The server is not called like this.",
    "422": "It does not fit.",
    "429": "Too often, or too many; retry-after says when.",
    "500": "Something went wrong here.",
    "503": "It stops, or its journal cannot be used.",
}

_COVERS: Final = (
    "Treadle's own HTTP. Not described here: the protocols of front ends that exist already (POST /ai-sdk/{agent}, GET "
    "/ai-sdk/{agent}/{chat}/stream, POST /ag-ui/{agent}, and OpenAI's under /v1/), whose forms are those of their "
    "makers, and the page's own files. See the pages on protocols and the page in treadle's documentation."
)
"""What of the server is described; the rest has a description elsewhere, and one here would be another that can err."""

_OF_BODIES: Final = frozenset({"400", "413", "415"})
"""What is refused of a body only."""


def description(endpoints: Collection[Endpoint]) -> dict[str, Any]:
    """The description of these routes, as OpenAPI 3.1."""
    kinds = [kind for one in endpoints for kind in (one.body, one.query, one.answer) if kind is not None]
    kinds += [Refusal, *WHOLE, *KINDS]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REFS)
    by_kind = dict(zip(map(id, kinds), schemas, strict=True))
    components |= event_schemas(schemas[-len(KINDS) :], components)
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        query = None if one.query is None else components[by_kind[id(one.query)]["$ref"].rpartition("/")[2]]
        body, answer = (None if kind is None else by_kind[id(kind)] for kind in (one.body, one.answer))
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, query, body, answer)
    return {
        "openapi": "3.1.0",
        "info": {"title": "treadle", "version": treadle.__version__, "description": _COVERS},
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {
                status: {"description": words, "content": {"application/json": {"schema": _ref("Refusal")}}}
                for status, words in _REFUSALS.items()
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(one: Endpoint, query: Schema | None, body: Schema | None, answer: Schema | None) -> Schema:
    parameters: list[Schema] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", one.path)
    ]
    if query is not None:
        required = query.get("required", ())
        parameters += [
            {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in query["properties"].items()
        ]
    parameters += [
        {"name": name, "in": "header", "required": False, "description": meaning, "schema": {"type": "string"}}
        for name, meaning in one.headers
    ]
    refusals = [code for code in _REFUSALS if body is not None or code not in _OF_BODIES]
    told: Schema = {
        "summary": (one.call.__doc__ or "").strip().partition("\n")[0],
        "operationId": one.call.__name__,
        "parameters": parameters,
        "responses": {str(one.status): _answer(one, answer), **{code: _response(code) for code in refusals}},
    }
    if one.path in OPEN:
        told["security"] = []
    if body is not None:
        told["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return told


def _answer(one: Endpoint, answer: Schema | None) -> Schema:
    if one.status == 204:
        return {"description": "It is done."}
    forms = {"application/json": answer, EVENTS: _ref("StreamEvent")}
    return {
        "description": "It is done." if one.status != 200 else "Found.",
        "content": {name: {"schema": forms.get(name, {"type": "string"})} for name in one.media},
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _response(code: str) -> dict[str, str]:
    return {"$ref": f"#/components/responses/{code}"}


def endpoint(described: Collection[Endpoint]) -> Endpoint:
    """The route that answers with the description of the others and itself."""

    @cache
    def whole() -> Schema:
        # Made when somebody asks for it: most servers are never asked.
        return description((*described, it))

    async def openapi(serving: Serving, request: Request) -> Response:
        """This description."""
        return json_response(whole())

    it = Endpoint("GET", "/openapi.json", openapi, Schema)
    return it
