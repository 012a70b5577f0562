"""AWS access: where Bedrock is in a region, and requests signed with the credentials of AWS.

Reads the environment, and, to sign, what botocore reads: profiles, files, the services that hand out credentials. What
has to wait for those does so in a thread. botocore is imported when it is first needed. Neighbours:
`treadle.models.bedrock_model`, which is made of these; `treadle.models.transport`, which sends what is signed.
"""

import os
import re
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from anyio import to_thread

from treadle.kernel.errors import Misuse
from treadle.models.errors import AuthenticationFailed, ConnectionFailed

REGION: Final = re.compile(r"[a-z]{2,6}(-[a-z]+)+-\d{1,2}")
ARN: Final = re.compile(r"arn:aws[a-z-]*:[a-z]+:([a-z0-9-]+):")
VARIABLES: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
# The ends of addresses in the partitions that have their own. https://docs.aws.amazon.com/general/latest/gr/rande.html
DOMAINS: Final = (("cn-", "amazonaws.com.cn"), ("eusc-", "amazonaws.eu"))
SERVICE: Final = "bedrock"


def bedrock_address(region: str) -> str:
    """The address of Bedrock's models in `region`. Raises `Misuse` for what is no region."""
    if not REGION.fullmatch(region):
        raise Misuse(f"a region of AWS is called like us-east-1 or eu-central-1; it was given {region[:40]!r}")
    domain = next((end for start, end in DOMAINS if region.startswith(start)), "amazonaws.com")
    return f"https://bedrock-runtime.{region}.{domain}"


def region_of(model: str, given: str | None, session: Any = None) -> str:
    """The region to ask in: as given, else that of an ARN, of the environment, of `session`; empty if nobody says.

    Args:
        model: the model's name, which may be an ARN.
        given: what the caller says.
        session: of botocore or boto3.
    """
    if given is not None:
        return given
    if arn := ARN.match(model):
        return arn[1]
    named = next((value for name in VARIABLES if (value := os.environ.get(name, "").strip())), "")
    if named or session is None:
        return named
    own = getattr(session, "region_name", None) or (
        session.get_config_variable("region") if hasattr(session, "get_config_variable") else None
    )
    return str(own or "")


def has_botocore() -> bool:
    """Whether requests can be signed here."""
    return find_spec("botocore") is not None


def new_session() -> Any:
    """A session of botocore, which has its usual chain of credentials. Raises `Misuse` for a wrong configuration."""
    errors = import_module("botocore.exceptions")
    try:
        session = import_module("botocore.session").Session()
        session.get_config_variable("region")
    except errors.BotoCoreError as problem:
        raise Misuse(f"the configuration of AWS cannot be read: {problem}") from problem
    return session


class AwsSigner:
    """Signs requests by Signature Version 4; it is a `treadle.models.transport.Sign`.

    Args:
        region: where the requests go.
        session: of botocore or boto3, which has the credentials.
    """

    def __init__(self, region: str, session: Any) -> None:
        self.region = region
        self._session = session
        self._used: Mapping[str, str] = {}

    @property
    def secrets(self) -> Mapping[str, str]:
        """What was signed with last, and may stand in no message, by what it is."""
        return self._used

    async def __call__(self, url: str, body: bytes) -> Mapping[str, str]:
        """The headers that sign the JSON `body` posted to `url`.

        Raises:
            AuthenticationFailed: there are no credentials, or whoever hands them out refuses.
            ConnectionFailed: who hands them out cannot be reached.
        """
        return await to_thread.run_sync(self._headers, url, body)

    def _headers(self, url: str, body: bytes) -> Mapping[str, str]:
        errors = import_module("botocore.exceptions")
        try:
            found = self._session.get_credentials()
            credentials = None if found is None else found.get_frozen_credentials()
        except (errors.BotoCoreError, errors.ClientError, OSError) as problem:
            told = f"the credentials of AWS could not be had: {problem} ({type(problem).__name__})"
            network = isinstance(problem, (errors.ConnectionError, errors.HTTPClientError, OSError))
            raise (ConnectionFailed if network else AuthenticationFailed)(told) from None
        if credentials is None or not credentials.access_key or not credentials.secret_key:
            raise AuthenticationFailed(
                "no credentials of AWS were found to sign with: not in the environment, its profiles, or the services "
                "that hand them out. Set AWS_BEARER_TOKEN_BEDROCK for a key of Bedrock's own, or give session="
            )
        used = {"secret key": credentials.secret_key, "access key": credentials.access_key, "token": credentials.token}
        self._used = {name: value for name, value in used.items() if value}
        sent = {"content-type": "application/json"}
        request: Any = import_module("botocore.awsrequest").AWSRequest("POST", url, headers=sent, data=body)
        import_module("botocore.auth").SigV4Auth(credentials, SERVICE, self.region).add_auth(request)
        return {name.lower(): value for name, value in request.headers.items()}
