"""The counts of Anthropic Messages: what a message, and what the provider ran for it, has taken. Pure.

Neighbours: `treadle.models.anthropic_stream`, which reads the message; `treadle.models.counts`.
"""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from treadle.kernel.messages import Json, Usage
from treadle.models.counts import count_in, fields_in, list_in, name_in, part_in, told_usage
from treadle.models.terms import ELSEWHERE, USUAL, served_within

BEGUN: Final = "begun_output_tokens"
"""Under what name the output is kept that the beginning of a message counts: it is no count of what comes after it."""


def searches_in(blocks: Iterable[Json]) -> int:
    """The searches of the web among `blocks`, without those that failed, which are not charged for."""
    made = 0
    for fields in blocks:
        if fields["type"] == "server_tool_use":
            made += fields.get("name") == "web_search"
        elif fields["type"] == "web_search_tool_result":
            made -= isinstance(fields.get("content"), dict)
    return made


def usage_of(usages: Iterable[Json], hour: bool, so_far: bool) -> Usage | None:
    """Tokens added up over the messages of a reply; None if the provider counted nothing.

    What the beginning of a message counts as its output is taken only for what has come `so_far`.

    What was sampled to compact the history is charged too, and stands in `iterations` alone.
    Source: https://platform.claude.com/docs/en/build-with-claude/compaction
    """
    total: Usage | None = None
    for counts in usages:
        if not {"input_tokens", "output_tokens", BEGUN} & counts.keys():
            continue
        if so_far and BEGUN in counts:
            counts = {"output_tokens": counts[BEGUN], **counts}
        iterations = list_in(counts, "iterations")
        beside = [_counted(one, hour) for one in iterations if one.get("type") == "compaction"]
        for usage in [replace(_counted(counts, hour), service=_service(counts, iterations)), *beside]:
            total = usage if total is None else replace(total + usage, service=total.service or usage.service)
    return total


def _counted(counts: Json, hour: bool) -> Usage:
    """The tokens of one count. Its `input_tokens` are those that the cache had no part in; the whole is the sum."""
    read, written = part_in(counts, "cache_read_input_tokens"), part_in(counts, "cache_creation_input_tokens")
    for_an_hour = written if hour else 0
    if counts.get("cache_creation") is not None:
        for_an_hour = part_in(fields_in(counts, "cache_creation"), "ephemeral_1h_input_tokens")
    parts = Usage(
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=part_in(fields_in(counts, "output_tokens_details"), "thinking_tokens"),
        cache_write_hour_tokens=min(for_an_hour, written),
        web_searches=part_in(fields_in(counts, "server_tool_use"), "web_search_requests"),
    )
    new = count_in(counts, "input_tokens")
    return told_usage(parts, None if new is None else new + read + written, count_in(counts, "output_tokens"))


def _service(counts: Json, iterations: Iterable[Json]) -> str:
    """How the call was served, where that changes the price: another model, speed or tier, and region."""
    others = [kind for one in iterations if (kind := name_in(one, "type")) in ELSEWHERE]
    words = [*others, name_in(counts, "speed"), name_in(counts, "service_tier")]
    return served_within(next((word for word in words if word not in USUAL), ""), name_in(counts, "inference_geo"))
