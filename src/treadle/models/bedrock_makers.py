"""Makers: in what the models that Bedrock serves differ, by who made them.

Pure data. Converse is one API over many makers' models, and refuses the whole request for a field that its model has
not got. What is here is what is known; a model whose name does not tell (the ARN of an application inference profile)
is asked as plainly as can be. Neighbour: `treadle.models.bedrock`, which reads it.

Sources: https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-supported-models-features.html,
https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html; the notes of the types `ToolChoice` and
`ToolResultBlock` in https://docs.aws.amazon.com/bedrock/latest/APIReference/API_Types_Amazon_Bedrock_Runtime.html.
"""

import re
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from treadle.models.anthropic_thinking import CLAUDE

CachePlace = Literal["tools", "system", "messages"]


class Maker(Struct, frozen=True):
    """How one maker's models want to be asked.

    Attributes:
        name: what it is called in model names; empty if that is not known.
        thinking: how an effort to think is asked for: Claude's `thinking`, Nova's `reasoningConfig`, OpenAI's
            `reasoning_effort`; None if no way is known.
        forced: by which words a call can be forced: of any tool, and of one by its name.
        cache: where cache points may stand; elsewhere the request is refused.
        hour: whether a prefix may be kept for an hour.
        json_results: whether the result of a tool must be a JSON object.
    """

    name: str = ""
    thinking: Literal["claude", "nova", "openai"] | None = None
    forced: tuple[Literal["any", "tool"], ...] = ("any", "tool")
    cache: tuple[CachePlace, ...] = ()
    hour: bool = False
    json_results: bool = False


CLAUDES: Final = Maker("anthropic", thinking="claude", cache=("tools", "system", "messages"))
# Points in its messages are refused where a message has results of tools; without any, Nova caches by itself.
NOVA: Final = Maker("amazon", cache=("system",))
NOVA_2: Final = Maker("amazon", thinking="nova")

MAKERS: Final = {
    maker.name: maker
    for maker in (
        CLAUDES,
        NOVA,
        Maker("openai", thinking="openai"),
        Maker("mistral", forced=("any",), json_results=True),
        Maker("meta", forced=()),
        Maker("ai21", forced=()),
        Maker("cohere", forced=()),
        Maker("deepseek", forced=()),
        Maker("writer", forced=()),
    )
}
# The Claude models that take no cache point, and the first that keeps a prefix for an hour.
UNCACHED: Final = re.compile(r"claude-(?:v\d|instant|3-(?:haiku|sonnet|opus)|3-5-sonnet)")
HOUR: Final = (4, 5)
OTHERS: Final = (
    "qwen",
    "google",
    "nvidia",
    "minimax",
    "moonshot",
    "moonshotai",
    "zai",
    "stability",
    "luma",
    "twelvelabs",
)
NAMED: Final = re.compile(rf"(?:^|[./:])({'|'.join([*MAKERS, *OTHERS])})\.")


def maker_of(model: str) -> Maker:
    """Who made `model`, which has a name such as "us.anthropic.claude-sonnet-4-5-20250929-v1:0", or an ARN with one."""
    found = NAMED.search(model)
    name = found[1] if found else ""
    if name == "anthropic":
        version = CLAUDE.search(model)
        later = version is None or version[1] is None or (int(version[1]), int(version[2] or 0)) >= HOUR
        return replace(CLAUDES, cache=() if UNCACHED.search(model) else CLAUDES.cache, hour=later)
    if name == "amazon" and "nova-2" in model:
        return NOVA_2
    return MAKERS.get(name) or Maker(name)
