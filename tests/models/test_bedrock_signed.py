"""Bedrock's requests signed by botocore: what is sent verifies, and no secret stands in an error."""

import hashlib
import hmac
import json
from typing import Any
from urllib.parse import quote

import pytest

from treadle import Agent, Misuse
from treadle.kernel.messages import UserMessage
from treadle.models import AuthenticationFailed, BedrockModel, model_from_name
from treadle.models.aws_access import AwsSigner
from treadle.models.port import ModelRequest
from treadle.models.providers import MissingKey

pytestmark = pytest.mark.anyio

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ACCESS, SECRET, TOKEN = (
    "AKIDEXAMPLE000000000",
    "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "IQoJb3JpZ2luX2VjEXAMPLETOKEN//",
)
JSON = {"content-type": "application/json"}
DONE = {"output": {"message": {"role": "assistant", "content": [{"text": "Done."}]}}, "stopReason": "end_turn"}


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)


@pytest.fixture
def botocore() -> Any:
    return pytest.importorskip("botocore", reason="botocore signs: pip install 'treadle[bedrock]'")


def verified(peer: Any, region: str = "eu-west-1") -> bool:
    """Whether a request is signed as Signature Version 4 has it, reckoned with nothing of botocore's.

    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
    """
    given = dict(part.strip().split("=", 1) for part in peer.headers["authorization"].split(" ", 1)[1].split(","))
    names = given["SignedHeaders"].split(";")
    scope = given["Credential"].partition("/")[2]
    when = peer.headers["x-amz-date"]
    assert scope == f"{when[:8]}/{region}/bedrock/aws4_request"
    lines = ["POST", quote(peer.path, safe="/~-_."), "", *[f"{name}:{peer.headers[name]}" for name in names], ""]
    asked = "\n".join([*lines, ";".join(names), hashlib.sha256(peer.body).hexdigest()])
    signed = "\n".join(["AWS4-HMAC-SHA256", when, scope, hashlib.sha256(asked.encode()).hexdigest()])
    key = f"AWS4{SECRET}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, signed.encode(), hashlib.sha256).hexdigest() == given["Signature"]


def answering(status: str, body: Any) -> Any:
    return lambda peer: peer.answer(status, JSON, json.dumps(body).encode())


@pytest.mark.parametrize(
    "name", [CLAUDE, "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/us.a.b", "x y/%2f\u00fc"]
)
async def test_every_request_is_signed(botocore, serve, monkeypatch, name):
    server = serve(answering("200 OK", DONE))
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url.removesuffix("/v1"))
    model = model_from_name(f"bedrock:{name}", streaming=False)
    for _ in range(2):
        assert (await Agent(model).run("go")).text == "Done."
    for peer in server.requests:
        assert verified(peer)
        assert peer.headers["x-amz-security-token"] == TOKEN
        assert "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token," in peer.headers["authorization"]
    assert SECRET not in repr(model)
    assert TOKEN not in repr(model)


async def test_a_key_goes_before_credentials(botocore, serve, monkeypatch):
    server = serve(answering("200 OK", DONE))
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url.removesuffix("/v1"))
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "ABSK-0123456789")
    await Agent(BedrockModel(CLAUDE, streaming=False)).run("go")
    assert server.requests[0].headers["authorization"] == "Bearer ABSK-0123456789"
    assert "x-amz-security-token" not in server.requests[0].headers


async def test_credentials_go_to_no_other_server_unless_somebody_says_so(botocore, serve, monkeypatch):
    from botocore.session import Session

    server = serve(answering("200 OK", DONE))
    there = server.url.removesuffix("/v1")
    await Agent(BedrockModel(CLAUDE, base_url=there, streaming=False)).run("go")
    assert not {"authorization", "x-amz-security-token"} & server.requests[0].headers.keys()
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "ABSK-0123456789")
    await Agent(BedrockModel(CLAUDE, base_url=there, streaming=False, session=Session())).run("go")
    assert verified(server.requests[1])


async def test_what_a_refusal_repeats_of_the_credentials_is_taken_out(botocore, serve, monkeypatch):
    canonical = f"The Canonical String should have been 'host:x x-amz-security-token:{TOKEN} {ACCESS} {SECRET}'"
    server = serve(answering("403 Forbidden", {"message": f"The request signature does not match. {canonical}"}))
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url.removesuffix("/v1"))
    result = await Agent(BedrockModel(CLAUDE, streaming=False), retries=0).run("go")
    told = f"{result.stop.detail} {result.error} {[str(event) for event in result.events]}"
    assert type(result.error) is AuthenticationFailed
    assert "Check the credentials of AWS that botocore found, and what they allow in eu-west-1" in told
    assert not [secret for secret in (ACCESS, SECRET, TOKEN) if secret in told]


async def test_without_credentials_nothing_is_sent(botocore, serve, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    server = serve(answering("200 OK", DONE))
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url.removesuffix("/v1"))
    with pytest.raises(AuthenticationFailed, match="no credentials of AWS were found"):
        async for _ in BedrockModel(CLAUDE).stream(ModelRequest((UserMessage("go"),))):
            pass
    assert server.requests == []


def test_a_profile_that_does_not_exist_is_told(botocore, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(Misuse, match="nobody"):
        BedrockModel(CLAUDE)


def test_the_region_of_a_profile_is_taken(botocore, monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(Misuse, match="no region is known"):
        BedrockModel(CLAUDE)
    (tmp_path / "config").write_text("[default]\nregion = eu-north-1\n")
    assert "bedrock-runtime.eu-north-1." in repr(BedrockModel(CLAUDE))


async def test_credentials_that_cannot_be_had_are_told_without_them(botocore):
    from botocore.exceptions import CredentialRetrievalError, EndpointConnectionError

    from treadle.models import ConnectionFailed

    class Session:
        def __init__(self, problem: Exception) -> None:
            self.problem = problem

        def get_credentials(self) -> Any:
            raise self.problem

    for problem, kind in [
        (CredentialRetrievalError(provider="sso", error_msg="the login has expired"), AuthenticationFailed),
        (EndpointConnectionError(endpoint_url="http://169.254.169.254"), ConnectionFailed),
    ]:
        with pytest.raises(kind, match="the credentials of AWS could not be had"):
            await AwsSigner("us-east-1", Session(problem))("https://x/model/m/converse", b"{}")


def test_without_a_key_and_without_botocore_it_is_told_what_to_do(monkeypatch):
    monkeypatch.setattr("treadle.models.bedrock_model.has_botocore", lambda: False)
    with pytest.raises(MissingKey, match=r'AWS_BEARER_TOKEN_BEDROCK.*pip install "treadle\[bedrock\]"'):
        BedrockModel(CLAUDE)
