"""treadle as the client that the conformance suite of MCP drives: `python mcp_driver.py URL`.

The suite says by its environment which scenario it plays. Whoever authorises in the place of a person does what a
browser would: it follows the address that it is sent to, up to the redirect that brings the code.
"""

import asyncio
import json
import os
import sys
import time
from urllib.parse import parse_qs, urlsplit

import httpx2
import jwt
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider, PrivateKeyJWTOAuthProvider
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

from treadle import Agent
from treadle.mcp import MCPServer
from treadle.testing import ScriptedModel

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
GIVEN = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
BACK = "http://localhost:3000/callback"
FILLED = {"string": "text", "number": 5, "integer": 5, "boolean": True, "object": {}, "array": []}


class Kept:
    """Tokens, and what the client is registered as, for as long as the process lives."""

    def __init__(self) -> None:
        self.tokens = self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Person:
    """Says yes in the browser."""

    def __init__(self) -> None:
        self.brought: dict[str, str] = {}

    async def goes_to(self, address: str) -> None:
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(address)
        self.brought = {
            name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()
        }

    async def comes_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=self.brought["code"], state=self.brought.get("state"), iss=self.brought.get("iss")
        )


def by_code(url: str) -> OAuthClientProvider:
    """A person authorises; with what the client is registered as, if that was said."""
    person, kept = Person(), Kept()
    if "client_id" in GIVEN:
        secret = GIVEN.get("client_secret")
        method = "client_secret_basic" if secret else "none"
        kept.client = OAuthClientInformationFull(
            client_id=GIVEN["client_id"],
            client_secret=secret,
            redirect_uris=[BACK],
            token_endpoint_auth_method=method,
        )
    about = OAuthClientMetadata(
        client_name="treadle",
        redirect_uris=[BACK],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    document = "https://conformance-test.local/client-metadata.json"
    return OAuthClientProvider(url, about, kept, person.goes_to, person.comes_back, document)


def by_key(url: str) -> PrivateKeyJWTOAuthProvider:
    async def signed(audience: str) -> str:
        now, me = int(time.time()), GIVEN["client_id"]
        claims = {"iss": me, "sub": me, "aud": audience, "iat": now, "exp": now + 300, "jti": str(now)}
        return jwt.encode(claims, GIVEN["private_key_pem"], GIVEN.get("signing_algorithm", "ES256"))

    return PrivateKeyJWTOAuthProvider(url, Kept(), GIVEN["client_id"], signed)


def by_identity(url: str) -> IdentityAssertionOAuthProvider:
    async def assertion(audience: str, resource: str) -> str:
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "subject_token": GIVEN["idp_id_token"],
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "client_id": GIVEN["idp_client_id"],
            "audience": audience,
            "resource": resource,
        }
        async with httpx2.AsyncClient() as client:
            return (await client.post(GIVEN["idp_token_endpoint"], data=form)).json()["access_token"]

    issuer = (
        GIVEN.get("auth_issuer")
        or httpx2.get(url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")).json()["authorization_servers"][
            0
        ]
    )
    secret = GIVEN["client_secret"]
    return IdentityAssertionOAuthProvider(
        url, Kept(), GIVEN["client_id"], secret, issuer, assertion, token_endpoint_auth_method="client_secret_basic"
    )


def authorised(url: str):
    match SCENARIO:
        case "auth/client-credentials-jwt":
            return by_key(url)
        case "auth/client-credentials-basic":
            return ClientCredentialsOAuthProvider(url, Kept(), GIVEN["client_id"], GIVEN["client_secret"])
        case "auth/cross-app-access-complete-flow":
            return by_identity(url)
        case name if name.startswith("auth/"):
            return by_code(url)
    return None


def filled(schema):
    """Arguments that fit a simple schema."""
    listed = schema.get("properties", {})
    return {name: FILLED[listed.get(name, {}).get("type", "string")] for name in schema.get("required", listed)}


def calls_of(listed):
    """What the suite wants called, or else each tool once; one that wants a schema is given the first that there is."""
    if "toolCalls" in GIVEN:
        return [(f"suite__{one['name']}", one["arguments"]) for one in GIVEN["toolCalls"]]
    schemas = [one.input_schema for one in listed]
    echo = {"json_schema_echo": {"schema": schemas[0]}} if schemas else {}
    return [(one.name, echo.get(one.remote, filled(one.input_schema))) for one in listed]


async def main(url: str) -> None:
    server = MCPServer.http(url, name="suite", auth=authorised(url), ask=lambda question: {})
    async with server:
        calls = calls_of(await server.listed())
        agent = Agent(ScriptedModel([calls, "done"] if calls else ["done"]), tools=[server])
        result = await agent.run("Call what there is.")
    for record in result.tool_calls_made:
        print(record.name, record.result, file=sys.stderr)


asyncio.run(main(sys.argv[1]))
