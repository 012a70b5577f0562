"""The counts of Chat Completions: what a `usage` object reports, as a dozen servers write it. Pure.

Neighbours: `treadle.models.openai_chat_stream`, which reads the rest of a reply.
"""

from typing import Final

from treadle.kernel.messages import Json, Usage
from treadle.models.counts import count_in, fields_in, list_in, part_in, told_usage, with_total


def usage_in(chunk: Json) -> Json:
    """The `usage` object of a chunk, wherever a server puts it (Groq, Moonshot); empty if there is none."""
    holders = (chunk, fields_in(chunk, "x_groq"), *list_in(chunk, "choices"))
    return next(filter(None, (fields_in(holder, "usage") for holder in holders)), {})


def usage_of(usage: Json) -> Usage:
    """The tokens that a `usage` object reports, under the names that different servers give them."""
    sent, made = fields_in(usage, "prompt_tokens_details"), fields_in(usage, "completion_tokens_details")
    served = fields_in(usage, "server_tool_use_details") or fields_in(usage, "server_tool_use")
    parts = Usage(
        cache_read_tokens=_first_of(READ, sent, usage),
        cache_write_tokens=_first_of(WRITTEN, sent, usage),
        reasoning_tokens=part_in(made, "reasoning_tokens") or part_in(usage, "reasoning_tokens"),
        web_searches=part_in(served, "web_search_requests"),
        audio_tokens=part_in(sent, "audio_tokens"),
    )
    asked, received = count_in(usage, "prompt_tokens"), count_in(usage, "completion_tokens")
    return told_usage(parts, *with_total(asked, received, count_in(usage, "total_tokens")))


def _first_of(names: tuple[str, ...], *told: Json) -> int:
    return next(filter(None, (part_in(fields, name) for fields in told for name in names)), 0)


READ: Final = ("cached_tokens", "prompt_cache_hit_tokens", "num_cached_tokens", "cache_read_input_tokens")
WRITTEN: Final = ("cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens")
