"""The counts of Chat Completions: what a `usage` object reports, as a dozen servers write it. Pure.

Neighbours: `treadle.models.openai_chat_stream`, which reads the rest of a reply.
"""

from typing import Final

from treadle.kernel.messages import Json, Usage
from treadle.models.counts import count_in, fields_in, part_in, told_usage, with_total


def usage_of(usage: Json) -> Usage:
    """The tokens that a `usage` object reports, under the names that different servers give them."""
    sent, made = fields_in(usage, "prompt_tokens_details"), fields_in(usage, "completion_tokens_details")
    served = fields_in(usage, "server_tool_use_details") or fields_in(usage, "server_tool_use")
    cached = (part_in(sent, "cached_tokens"), *(part_in(usage, name) for name in CACHED))
    parts = Usage(
        cache_read_tokens=next((count for count in cached if count), 0),
        cache_write_tokens=part_in(sent, "cache_write_tokens"),
        reasoning_tokens=part_in(made, "reasoning_tokens") or part_in(usage, "reasoning_tokens"),
        web_searches=part_in(served, "web_search_requests"),
    )
    asked, received = count_in(usage, "prompt_tokens"), count_in(usage, "completion_tokens")
    return told_usage(parts, *with_total(asked, received, count_in(usage, "total_tokens")))


CACHED: Final = ("prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens")
