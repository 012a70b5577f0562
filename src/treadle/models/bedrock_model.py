"""The model behind Amazon Bedrock: Converse under a region's address, with a key of Bedrock's or signed requests.

Neighbours: `treadle.models.http_model`, of which it is one; `treadle.models.bedrock`, its dialect;
`treadle.models.aws_access`, where it is and how requests are signed.
"""

import reprlib
from collections.abc import Mapping
from typing import Any, Literal, Unpack

from msgspec import structs

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import ModelSettings
from treadle.models.aws_access import VARIABLES, AwsSigner, bedrock_address, has_botocore, new_session, region_of
from treadle.models.bedrock import BedrockCodec, check_extra_fields
from treadle.models.bedrock_makers import maker_of
from treadle.models.extra import merged
from treadle.models.given import check_cache, check_options
from treadle.models.hidden import Hidden
from treadle.models.http_model import HttpModel, HttpOptions
from treadle.models.providers import PROVIDERS, MissingKey, Provider
from treadle.models.terms import USUAL, Terms


class BedrockModel(HttpModel):
    """A model that Amazon Bedrock serves, spoken to by Converse.

    It takes the key of `api_key` or AWS_BEARER_TOKEN_BEDROCK. Without one, requests are signed with the credentials
    that botocore finds in its usual chain (the extra `bedrock`): the environment, profiles, roles of machines.

    Args:
        model: the model's id, that of an inference profile, or an ARN: "us.anthropic.claude-sonnet-4-5-20250929-v1:0".
        region: where to ask; by default the ARN's, that of AWS_REGION or AWS_DEFAULT_REGION, or of the session.
        profile: what to call in the model's place, such as the ARN of an application inference profile, which does not
            tell what model it is: `model` then says what it can do and what it costs.
        session: of botocore or boto3, whose credentials sign the requests, also those to another `base_url`.
        cache: how long the provider is to keep the prefix of a run, for models that take cache points; None for no
            prompt caching. For an hour, "1h", only Claude's from 4.5 on keep one.
        options: see `HttpOptions`. An official client (`client=`) is none of them.

    Raises:
        MissingKey: there is no key, and botocore is not installed.
        Misuse: no region is known; or the name, a setting or an option cannot be right.
    """

    def __init__(
        self,
        model: str,
        *,
        region: str | None = None,
        profile: str | None = None,
        session: Any = None,
        cache: Literal["5m", "1h"] | None = "5m",
        **options: Unpack[HttpOptions],
    ) -> None:
        check_options(model, options)
        check_cache(cache, ("5m", "1h"))
        if options.get("client") is not None:
            raise Misuse(
                "BedrockModel takes session= (of botocore or boto3) and no client=, which is for other dialects"
            )
        if session is not None and not hasattr(session, "get_credentials"):
            raise Misuse(
                "BedrockModel takes session= as a Session of botocore or boto3; it was given a "
                f"{type(session).__name__}"
            )
        for name, given in (("region", region), ("profile", profile)):
            if given is not None and not (isinstance(given, str) and given):
                raise Misuse(f"BedrockModel takes {name} as a text; it was given {reprlib.repr(given)}")
        if session is not None and options.get("api_key") is not None:
            raise Misuse("BedrockModel takes either api_key= or session=, which signs the requests, not both")
        if cache == "1h" and not maker_of(model).hour:
            raise Misuse(
                f"Bedrock keeps no prefix of {model} for an hour, only of Claude's from 4.5 on; leave cache out"
            )
        check_extra_fields((options.get("settings") or ModelSettings()).extra)
        self._called = profile or model
        codec = BedrockCodec(model, cache=cache)
        codec.path(self._called, False)
        self._signer, provider = _access(self._called, region, session, options)
        self._headers = options.get("headers") or {}
        if self._signer is not None:
            self._sign = self._signature
        super().__init__(model, provider, codec, **options)

    def terms(self, settings: ModelSettings) -> Terms:
        """On what terms a request with `settings` is billed, those of the model itself included."""
        terms = super().terms(settings)
        extra = merged(self.settings, settings).extra or {}
        asked = (("serviceTier", "type"), ("performanceConfig", "latency"))
        words = [extra[name].get(word) for name, word in asked if isinstance(extra.get(name), dict)]
        services = [word for word in words if isinstance(word, str) and word not in USUAL]
        tools = extra.get("toolConfig")
        own = str(tools.get("tools")) if isinstance(tools, dict) else ""
        left = "systemTool" if "systemTool" in own else "a stored prompt" if "promptVariables" in extra else ""
        return structs.replace(terms, services=(*terms.services, *services), endless=terms.endless or left)

    @property
    def _path(self) -> str:
        return self.codec.path(self._called, self.streaming)

    @property
    def _listed(self) -> str:
        """What the table of known models calls it: the name in an ARN."""
        return self.model.rpartition("/")[2] if self.model.startswith("arn:") else self.model

    async def _signature(self, url: str, body: bytes) -> Mapping[str, str]:
        """The headers that sign a request."""
        if self._signer is None:
            return {}
        headers = await self._signer(url, body)
        # Credentials change while a program runs; they are known here only to be taken out of messages.
        self._hidden = Hidden(self._access.key, {**self._headers, **self._signer.secrets})
        return headers

    def _advice(self) -> str:
        if self._signer is None:
            return super()._advice()
        return f"Check the credentials of AWS that botocore found, and what they allow in {self._signer.region}"


def _access(called: str, region: str | None, session: Any, options: HttpOptions) -> tuple[AwsSigner | None, Provider]:
    """What signs the requests, if a key does not do, and who serves them."""
    provider = PROVIDERS["bedrock"]
    has_key = options.get("api_key") is not None or (
        session is None and structs.replace(provider, needs_key=False).key() != ""
    )
    elsewhere = options.get("base_url")
    if not has_key and session is None and not elsewhere:
        if not has_botocore():
            raise MissingKey(
                "there is no key for bedrock: set the environment variable AWS_BEARER_TOKEN_BEDROCK (export "
                "AWS_BEARER_TOKEN_BEDROCK=...), or give api_key=; to sign with the credentials of AWS instead, "
                'pip install "treadle[bedrock]"'
            )
        session = new_session()
    where = region_of(called, region, session)
    if where:
        provider = structs.replace(provider, base_url=bedrock_address(where))
    elif session is not None or not (elsewhere or provider.address() != provider.base_url):
        raise Misuse(
            f"no region is known for Bedrock: give region=, such as region='us-east-1', or set {' or '.join(VARIABLES)}"
        )
    # What the environment holds goes to no other server than the provider's, unless somebody says so by session=.
    signs = session is not None and not has_key
    return (AwsSigner(where, session) if signs else None), structs.replace(provider, needs_key=not signs)
