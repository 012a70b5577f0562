"""Providers: where each one is, and in which variables of the environment people keep its key and address.

Reads the environment and nothing else. Neighbours: `treadle.models.http_model`, which is built from one;
`treadle.models.names`, which finds one by its name.
"""

import os
import re
from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Final, Literal

from msgspec import Struct

from treadle.kernel.errors import Misuse
from treadle.models.aws_stream import AWS_STREAM

Dialect = Literal["anthropic", "responses", "chat", "google", "converse"]


VERSION: Final = re.compile(r"/v\d+(?:alpha|beta)?\d*(?:/|$)")


class MissingKey(Misuse):
    """A model was made whose provider needs a key, and there is none."""


class Provider(Struct, frozen=True):
    """A provider of models.

    Attributes:
        name: what it is called in model names.
        dialect: the wire dialect that it speaks.
        base_url: its address, to which the dialect's path is added; empty if it must be given.
        key_variable: the environment variable that holds the key; empty if no key is needed.
        url_variable: the environment variable that holds another address, if people have one.
        needs_key: whether a model cannot be used without a key.
        headers: further headers, by name, and the environment variables that hold them.
        other_key_variable: another environment variable that holds the key, if people have one; it goes first.
    """

    name: str
    dialect: Dialect
    base_url: str
    key_variable: str = ""
    url_variable: str = ""
    needs_key: bool = True
    headers: tuple[tuple[str, str], ...] = ()
    other_key_variable: str = ""

    @property
    def key_set(self) -> str:
        """The environment variable that the key is taken from: the other one where that is set."""
        other = self.other_key_variable
        return other if other and os.environ.get(other, "").strip() else self.key_variable

    def address(self) -> str:
        """The base URL: of the environment if it has one, else the provider's own."""
        value = os.environ.get(self.url_variable, "").strip() if self.url_variable else ""
        if value and self.url_variable == "OLLAMA_HOST":
            return ollama_address(value)
        if value and self.url_variable == "AZURE_OPENAI_ENDPOINT":
            return azure_address(value)
        if value and self.dialect == "google":
            return google_address(value)
        return value or self.base_url

    def key(self) -> str:
        """The key in the environment. Raises `MissingKey`, saying how to set it, if one is needed and there is none."""
        value = os.environ.get(self.key_set, "").strip() if self.key_variable else ""
        if not value and self.needs_key:
            raise MissingKey(
                f"there is no key for {self.name}: set the environment variable {self.key_variable} "
                f"(export {self.key_variable}=...), or give api_key="
            )
        return value

    def auth_headers(self, key: str) -> Mapping[str, str]:
        """The headers that `key` is sent in."""
        if self.dialect == "anthropic":
            return {"anthropic-version": "2023-06-01"} | ({"x-api-key": key} if key else {})
        if self.dialect == "google":
            return {"x-goog-api-key": key} if key else {}
        bearer = {"authorization": f"Bearer {key}"} if key else {}
        return {"accept": f"{AWS_STREAM}, application/json"} | bearer if self.dialect == "converse" else bearer

    def environment_headers(self) -> dict[str, str]:
        """The further headers that the environment has values for."""
        return {name: value for name, variable in self.headers if (value := os.environ.get(variable, "").strip())}


def ollama_address(host: str) -> str:
    """The base URL that OLLAMA_HOST means: an address, a host with or without a port; 0.0.0.0 is this machine."""
    scheme, _, rest = host.rpartition("://")
    name, slash, path = rest.partition("/")
    if name.startswith(":"):
        name = f"127.0.0.1{name}"
    if ":" not in name.rpartition("]")[2]:
        name = f"{name}:{443 if scheme == 'https' else 80 if scheme else 11434}"
    if name.startswith(f"{IPv4Address(0)}:"):
        name = f"127.0.0.1{name[name.index(':') :]}"
    path = f"{slash}{path}".rstrip("/")
    return f"{scheme or 'http'}://{name}{path if path.endswith('/v1') else f'{path}/v1'}"


def google_address(address: str) -> str:
    """The base URL of Gemini at `address`, which has the version of the API in it or leaves it out."""
    path = address.partition("://")[2].partition("/")[2]
    versioned = VERSION.search(f"/{path}") or not address.startswith("http")
    return address if versioned else f"{address.rstrip('/')}/v1beta"


def azure_address(endpoint: str) -> str:
    """The base URL that AZURE_OPENAI_ENDPOINT means: that of its v1 API, where the endpoint has no path of its own."""
    scheme, _, rest = endpoint.partition("://")
    path = rest.partition("/")[2]
    return endpoint if path.strip("/") or not rest else f"{scheme}://{rest.rstrip('/')}/openai/v1"


ALIASES: Final[Mapping[str, str]] = {
    "claude": "anthropic",
    "gemini": "google",
    "grok": "xai",
    "kimi": "moonshot",
    "qwen": "alibaba",
    "dashscope": "alibaba",
    "hf": "huggingface",
    "glm": "zai",
    "x-ai": "xai",
    "z-ai": "zai",
    "togetherai": "together",
    "fireworks-ai": "fireworks",
    "moonshotai": "moonshot",
    "mistralai": "mistral",
}
"""What else providers are called in names of models, by people and by other libraries."""

MAKERS: Final[Mapping[str, str]] = {
    "gpt": "openai",
    "chatgpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude": "anthropic",
    "gemini": "google",
    "grok": "xai",
    "mistral": "mistral",
    "magistral": "mistral",
    "ministral": "mistral",
    "codestral": "mistral",
    "devstral": "mistral",
    "deepseek": "deepseek",
    "command": "cohere",
    "sonar": "perplexity",
    "kimi": "moonshot",
    "glm": "zai",
    "qwen": "ollama",
    "llama": "ollama",
    "gemma": "ollama",
    "phi": "ollama",
}
"""How names of models begin, and whom to ask for them: their maker, or this machine for those that anybody may run."""

_OPENAI_HEADERS: Final = (("openai-organization", "OPENAI_ORG_ID"), ("openai-project", "OPENAI_PROJECT_ID"))

PROVIDERS: Final[Mapping[str, Provider]] = {
    provider.name: provider
    for provider in (
        Provider("anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        Provider(
            "openai",
            "responses",
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            headers=_OPENAI_HEADERS,
        ),
        Provider(
            "openai-chat",
            "chat",
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            headers=_OPENAI_HEADERS,
        ),
        Provider("ollama", "chat", "http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", "OLLAMA_HOST", needs_key=False),
        Provider(
            "google",
            "google",
            "https://generativelanguage.googleapis.com/v1beta",
            "GEMINI_API_KEY",
            "GOOGLE_GEMINI_BASE_URL",
            other_key_variable="GOOGLE_API_KEY",
        ),
        Provider("openrouter", "chat", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        Provider("groq", "chat", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        Provider("mistral", "chat", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
        Provider("deepseek", "chat", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
        # Each region has an address of its own; this one tells the table of prices who it is.
        Provider(
            "bedrock",
            "converse",
            "https://bedrock-runtime.us-east-1.amazonaws.com",
            "AWS_BEARER_TOKEN_BEDROCK",
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        ),
        Provider("local", "chat", "", needs_key=False),
        # Each from the provider's own page on its OpenAI-compatible API, read in November 2026.
        # https://docs.x.ai/api/integrations
        Provider("xai", "chat", "https://api.x.ai/v1", "XAI_API_KEY"),
        # https://inference-docs.cerebras.ai/resources/openai
        Provider("cerebras", "chat", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
        # https://docs.together.ai/docs/inference/openai-compatibility
        Provider("together", "chat", "https://api.together.ai/v1", "TOGETHER_API_KEY"),
        # https://docs.fireworks.ai/tools-sdks/openai-compatibility
        Provider("fireworks", "chat", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
        # https://platform.kimi.ai/docs/api/quickstart
        Provider("moonshot", "chat", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
        # https://docs.z.ai/guides/develop/openai/python
        Provider("zai", "chat", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
        # https://www.alibabacloud.com/help/en/model-studio/base-url: the one address that takes the keys of all
        # workspaces, of the region Singapore; that of a workspace of one's own has its id in it.
        Provider(
            "alibaba",
            "chat",
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            "DASHSCOPE_API_KEY",
            "DASHSCOPE_API_BASE",
        ),
        # https://github.com/huggingface/hub-docs/blob/main/docs/inference-providers/index.md
        Provider("huggingface", "chat", "https://router.huggingface.co/v1", "HF_TOKEN"),
        # https://docs.perplexity.ai/docs/sonar/openai-compatibility
        Provider("perplexity", "chat", "https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
        # https://docs.cohere.com/docs/compatibility-api
        Provider("cohere", "chat", "https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY"),
        # https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle: each resource has its own address.
        Provider("azure", "chat", "", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"),
        # https://docs.github.com/en/github-models/quickstart
        Provider("github", "chat", "https://models.github.ai/inference", "GITHUB_TOKEN"),
    )
}
