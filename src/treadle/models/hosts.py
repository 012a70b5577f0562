"""Hosts: in what servers that speak the same dialect differ, those of Chat Completions most.

Pure data. Most servers take OpenAI's fields; what is here is where one of them would refuse a request, or leave a
setting unheard, if it were asked as OpenAI is. Neighbour: `treadle.models.openai_chat`, which reads it.
"""

import re
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from treadle.models.profile import ModelProfile

MISTRALS: Final = re.compile(r"mistral|mixtral|ministral|magistral|devstral|codestral|pixtral", re.IGNORECASE)
SIGNING: Final = ("extra_content", "thought_signature")
"""The fields, of a message or of a call in it, in which Google's models sign what they thought."""


class Host(Struct, frozen=True):
    """How one host wants to be asked.

    Attributes:
        max_tokens: the field that bounds the reply.
        seed: the field for repeatable sampling.
        thinking: how an effort to think is asked for: OpenAI's `reasoning_effort`, OpenRouter's `reasoning` object,
            or a `thinking` object that only switches it on or off.
        stream_usage: whether usage in a stream must be asked for (a host that sends it anyway may refuse the question).
        json_schema: whether a reply can be held to a JSON Schema; if not, it is asked for JSON.
        schema_with_tools: whether a reply that is held to a schema may still call tools. Open servers hold all that the
            model writes to the schema, so that it never calls one (vLLM, Ollama), or refuse the request.
        echo: the fields in which reasoning, and what signs it, is sent back, if it came in them: "thinking" is a part
            of the content. One that came elsewhere, as where several hosts take turns, in a field that this one does
            not know, is left out: hosts refuse the whole request for it.
        needs_echo: whether each of the model's messages must have some, what another model said too. Models that think
            unless they are told not to refuse a history in which one that called tools has none, or an empty one:
            https://api-docs.deepseek.com/guides/thinking_mode
            https://platform.kimi.ai/docs/guide/use-kimi-k2-thinking-model
        short_ids: whether the ids of tool calls must be nine letters or digits, as the templates of Mistral's models
            have it too, wherever they are served.
        file_urls: what a file is called that is sent by its address; None where it may not be.
        taken_away: what becomes of tools that a step takes away from the model. "allowed_tools": they stay described,
            and a list says which may be called. "words": they stay described, and the messages alone tell the model,
            for what the host has cached, and charges less for, begins with the tools. "left_out": they are not
            described; where nobody charges for tokens, the surer way is the better. It becomes words by a price.
        cache_key: whether it takes a key for its prompt cache; another server may refuse the whole request for it.
        tells_cost: whether it says with each reply what that cost.
        adds: tokens that are billed for each request beyond what it holds, at most: a preamble, or one about thinking.
        adds_for_tools: those that are billed as soon as there are tools, beyond their descriptions.
        adds_for_schema: those that are billed as soon as the reply is held to a schema.
    """

    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    seed: Literal["seed", "random_seed"] = "seed"
    thinking: Literal["reasoning_effort", "reasoning", "thinking"] = "reasoning_effort"
    stream_usage: bool = True
    json_schema: bool = True
    schema_with_tools: bool = False
    echo: tuple[str, ...] = ("reasoning", "reasoning_content", "thinking", "reasoning_details", *SIGNING)
    needs_echo: bool = False
    short_ids: bool = False
    file_urls: Literal["file", "document_url"] | None = None
    taken_away: Literal["allowed_tools", "words", "left_out"] = "left_out"
    cache_key: bool = False
    tells_cost: bool = False
    # The most that any provider whose bills were looked at adds. Anthropic says 159 to 530 for tools, by model:
    # https://docs.anthropic.com/en/docs/tool-use-pricing-and-tokens
    adds: int = 80
    adds_for_tools: int = 640
    adds_for_schema: int = 240


OPENAI: Final = Host(
    max_tokens="max_completion_tokens",
    echo=(),
    schema_with_tools=True,
    taken_away="allowed_tools",
    cache_key=True,
    adds_for_tools=160,
    adds_for_schema=64,
)
# It serves other makers' models too, and some of its versions refuse the fields that came later.
AZURE: Final = replace(OPENAI, taken_away="words", cache_key=False)
ANTHROPIC: Final = Host(schema_with_tools=True)
# Messages are served in many places (clouds, gateways, open servers) that have no structured output.
ANTHROPIC_ELSEWHERE: Final = Host(json_schema=False)
MISTRAL: Final = Host(
    seed="random_seed",
    stream_usage=False,
    echo=("thinking",),
    short_ids=True,
    file_urls="document_url",
    taken_away="words",
    adds=16,
    adds_for_tools=64,
)
ZAI: Final = Host(thinking="thinking", json_schema=False, echo=("reasoning_content",), taken_away="words")
DEEPSEEK: Final = replace(ZAI, needs_echo=True)
# It takes either name: https://openrouter.ai/docs/use-cases/reasoning-tokens
OPENROUTER: Final = Host(
    thinking="reasoning",
    echo=("reasoning", "reasoning_content", "reasoning_details", *SIGNING),
    file_urls="file",
    taken_away="words",
    tells_cost=True,
)
PERPLEXITY: Final = Host(tells_cost=True)
# Its compatible API refuses `stream_options`, and holds a reply to JSON, but to no schema that is strict:
# https://docs.cohere.com/docs/compatibility-api
COHERE: Final = Host(stream_usage=False, json_schema=False)
CACHING: Final = Host(taken_away="words")
GROQ: Final = Host(max_tokens="max_completion_tokens", echo=("reasoning",), taken_away="words")
QWEN: Final = Host(json_schema=False, echo=("reasoning_content",), taken_away="words")
KIMI: Final = replace(QWEN, needs_echo=True)


def profile_at(host: Host, *, prefix_cache: bool | None = None, thinking: bool | None = None) -> ModelProfile:
    """What models can do at `host`: answers are held to a schema where it can, beside tools too if it can; else a tool.

    Args:
        host: where they are served.
        prefix_cache: whether it keeps what requests begin with, where that is known otherwise than by `taken_away`.
        thinking: whether the model can be told how hard to think, if that is known.
    """
    return ModelProfile(
        output="native" if host.json_schema else "tool",
        output_beside_tools="native" if host.json_schema and host.schema_with_tools else "tool",
        tools=True,
        parallel_calls=True,
        prefix_cache=True if prefix_cache is None and host.taken_away != "left_out" else prefix_cache,
        thinking=thinking,
    )


# By the end of the host's name.
HOSTS: Final[tuple[tuple[str, Host], ...]] = (
    ("openai.com", OPENAI),
    ("azure.com", AZURE),
    ("anthropic.com", ANTHROPIC),
    ("mistral.ai", MISTRAL),
    ("deepseek.com", DEEPSEEK),
    ("openrouter.ai", OPENROUTER),
    ("perplexity.ai", PERPLEXITY),
    ("groq.com", GROQ),
    ("cerebras.ai", GROQ),
    ("snowflakecomputing.com", Host(max_tokens="max_completion_tokens", thinking="reasoning")),
    ("z.ai", ZAI),
    ("x.ai", CACHING),
    # It refuses whatever it has no name for.
    ("generativelanguage.googleapis.com", replace(CACHING, echo=SIGNING)),
    ("googleapis.com", CACHING),
    ("cohere.ai", COHERE),
    ("cohere.com", COHERE),
    # JSON yes, a schema not of every model.
    ("moonshot.ai", KIMI),
    ("moonshot.cn", KIMI),
    ("aliyuncs.com", QWEN),
)


def host_of(name: str) -> Host:
    """How the host called `name` ("api.mistral.ai") wants Chat Completions."""
    return next((host for end, host in HOSTS if name == end or name.endswith(f".{end}")), Host())


def takes_turns(host: Host, model: str) -> bool:
    """Whether `model` refuses a user's word after another, or after a result, as Mistral's do wherever they are served.

    Source: https://github.com/mistralai/mistral-common
    """
    return host.short_ids or MISTRALS.search(model) is not None
