"""What a response of OpenAI's took: its tokens, and the searches of the web among its items.

Pure. Neighbours: `treadle.models.openai_responses_stream`, which reads the response; `treadle.models.counts`.
"""

from collections.abc import Iterable

from treadle.kernel.messages import Json, Usage
from treadle.models.counts import count_in, fields_in, name_in, part_in, told_usage, with_total
from treadle.models.terms import USUAL


def usage_of_response(response: Json, output: Iterable[Json] = ()) -> Usage | None:
    """What a response with the items of `output` has taken; None if nothing of it is known."""
    billed = fields_in(fields_in(response, "tool_usage"), "web_search")
    # One item may be several searches, and not each is charged for; a server that has no count of its own says 0.
    usage, searches = fields_in(response, "usage"), part_in(billed, "num_requests") or sum(map(is_search, output))
    if not usage:
        return Usage(web_searches=searches, estimated=True) if searches else None
    sent, came = fields_in(usage, "input_tokens_details"), fields_in(usage, "output_tokens_details")
    tier = name_in(response, "service_tier")
    parts = Usage(
        cache_read_tokens=part_in(sent, "cached_tokens"),
        cache_write_tokens=part_in(sent, "cache_write_tokens"),
        reasoning_tokens=part_in(came, "reasoning_tokens"),
        web_searches=searches,
        service="" if tier in USUAL else tier,
    )
    asked, received = count_in(usage, "input_tokens"), count_in(usage, "output_tokens")
    return told_usage(parts, *with_total(asked, received, count_in(usage, "total_tokens")))


def is_search(item: Json) -> bool:
    """Whether an item is a search of the web that is charged for; pages are opened, and looked through, for nothing."""
    if item.get("type") != "web_search_call" or (item.get("status") or "completed") != "completed":
        return False
    return bool(fields_in(item, "action").get("type", "search") == "search")
